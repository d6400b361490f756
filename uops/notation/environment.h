// The names that the statements of one op can use, while it is being elaborated.
#ifndef NESTOR_UOPS_NOTATION_ENVIRONMENT_H_
#define NESTOR_UOPS_NOTATION_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "uops/notation/ast.h"
#include "uops/op.h"

namespace nestor {

// The `for` block that is being elaborated, and what is known about the tensors that it defines.
struct StepBlock {
  struct Tensor {
    int axis = -1;  // the axis along which it is stepped; -1 until it is known
    absl::optional<DType> type;
    Shape shape;   // known with the type
    NodeId known;  // while types and ranges are inferred: a node of them
    NodeId carry;  // the node that reads of earlier steps read
    NodeId body;   // once its statement is built
  };
  std::string index;
  IndexId extent;
  bool inferring = true;  // types and ranges; then the statements are built
  absl::optional<bool> backward;
  absl::flat_hash_map<std::string, Tensor> tensors;
};

// Owned by one elaboration; the op in it grows with each statement.
struct Environment {
  Op op;  // under construction
  absl::flat_hash_map<std::string, NodeId> tensors;
  absl::flat_hash_set<std::string> shapes;  // arguments of which only dimensions are read
  absl::flat_hash_map<std::string, IndexId> dims;
  absl::flat_hash_map<std::string, std::vector<IndexId>> dim_packs;
  absl::flat_hash_map<std::string, DType> params;  // with "$"
  absl::flat_hash_map<std::string, DType> type_variables;
  absl::flat_hash_set<std::string> index_names;  // of the statements so far
  // Its tensors are among `tensors`, too: an invalid node is one whose shape is not known yet.
  absl::optional<StepBlock> block;

  // The tensor `name`, or an error at `position`. For a block's tensor: a node of its shape.
  absl::StatusOr<NodeId> Tensor(const std::string& name, const ast::Position& position) const;
  // A type or type variable.
  absl::StatusOr<DType> Type(const ast::TypeName& name) const;
  absl::optional<DType> FindType(const std::string& name) const;
  absl::Status UnknownName(const std::string& name, const ast::Position& position,
                           absl::string_view what) const;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_ENVIRONMENT_H_
