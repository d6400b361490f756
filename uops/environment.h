// What the statements of one op can name, while it is being elaborated.
#ifndef NESTOR_UOPS_ENVIRONMENT_H_
#define NESTOR_UOPS_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "uops/ast.h"
#include "uops/op.h"

namespace nestor {

struct Environment {
  Op op;  // under construction
  absl::flat_hash_map<std::string, NodeId> tensors;
  absl::flat_hash_set<std::string> shapes;         // arguments of which only dimensions are read
  absl::flat_hash_map<std::string, IndexId> dims;
  absl::flat_hash_map<std::string, std::vector<IndexId>> dim_packs;
  absl::flat_hash_map<std::string, DType> params;  // with "$"
  absl::flat_hash_map<std::string, DType> type_variables;
  absl::flat_hash_set<std::string> index_names;    // of the statements so far

  // The tensor `name`, or an error at `position`.
  absl::StatusOr<NodeId> Tensor(const std::string& name, const ast::Position& position) const;
  // A type or type variable.
  absl::StatusOr<DType> Type(const ast::TypeName& name) const;
  absl::optional<DType> FindType(const std::string& name) const;
  absl::Status UnknownName(const std::string& name, const ast::Position& position,
                           absl::string_view what) const;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_ENVIRONMENT_H_
