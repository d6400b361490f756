// An index expression on its way into a statement. Part of builder.h; the other things that the
// front ends hand over are in expression.h.
#ifndef NESTOR_UOPS_INDEX_HANDLE_H_
#define NESTOR_UOPS_INDEX_HANDLE_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "uops/graph.h"
#include "uops/notation/ast.h"

namespace nestor::internal {

struct ExprNode;
using ExprNodePtr = std::shared_ptr<const ExprNode>;

// Where in a text something is written; a thing that is made in C++ has no position.
using TextPosition = absl::optional<ast::Position>;

struct IndexHandle {
  Graph* graph = nullptr;  // whose pool holds `id`; null: `constant` it is
  IndexId id = {};
  int64_t constant = 0;
  std::string error = {};  // a misuse, until a builder sees it
  // It is an index without arithmetic: on an axis it takes the extent as its range.
  bool alone = false;
  std::vector<ExprNodePtr> loads = {};  // the accesses in it, in the order of the text
  TextPosition position = {};
};

}  // namespace nestor::internal

#endif  // NESTOR_UOPS_INDEX_HANDLE_H_
