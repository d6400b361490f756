// The NAME=value words: tensors from .npy files, shapes of inputs to make up, types for
// type variables, numbers for $params and dimensions.
#ifndef NESTOR_CLI_GIVEN_H_
#define NESTOR_CLI_GIVEN_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "cli/arguments.h"
#include "cli/program.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor::cli {

struct GivenShape {
  absl::optional<DType> type;
  Dims shape;
};

struct Given {
  absl::flat_hash_map<std::string, Tensor> tensors;         // by argument name
  absl::flat_hash_map<std::string, GivenShape> shapes;      // of arguments without a tensor
  absl::flat_hash_map<std::string, DType> types;            // by type variable
  std::vector<std::pair<std::string, std::string>> params;  // "$k" and the text of its value
  std::vector<std::pair<std::string, std::string>> dims;    // "N" and the text of its value
};

// Sorts the words by what they name in the op's signature and reads the files. An
// unknown name is an error with a suggestion; whether a number names a dimension
// is known only of the instantiated op.
absl::StatusOr<Given> ReadWords(const Arguments& arguments, const Program& program);

// The same where only types and shapes make sense: `x=f32[2,3]`, `T=bf16`.
absl::StatusOr<Given> ReadShapeWords(const Arguments& arguments, const Program& program);

// The type of --type, where it is given. It is an error if it names no type, or if the op has no
// type variable that could take it.
absl::StatusOr<absl::optional<DType>> ReadType(const Arguments& arguments, const Program& program);

// The op for arguments of these types and ranks, which must be the op's. `type` is the type of the
// type variables that no argument determines.
absl::StatusOr<Op> InstantiateFor(const Program& program, const Given& given,
                                  absl::optional<DType> type = {});

}  // namespace nestor::cli

#endif  // NESTOR_CLI_GIVEN_H_
