// Sizes from the NAME=value words: $params, dimensions, shapes.
#ifndef NESTOR_CLI_SIZES_H_
#define NESTOR_CLI_SIZES_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "cli/dimensions.h"
#include "cli/given.h"
#include "tensor/binding.h"
#include "uops/op.h"

namespace nestor::cli {

// A number that a dimension may have, whatever the op asks of it. An error names the op and
// the dimension.
absl::StatusOr<int64_t> ReadExtent(const Op& op, const std::string& name, const std::string& text);
// A $param's value, which is of its type and within its range.
absl::StatusOr<Scalar> ReadParam(const Op& op, const ParamInfo& param, const std::string& text);
// Says which dimensions and $params there are.
absl::Status UnknownNumber(const Op& op, const std::string& name);

struct GivenSizes {
  RunInputs run;     // $params and dimensions as given
  KnownSizes known;  // these, the $params' defaults, the shapes of arguments
};

// An error names the word: an unknown name, a number that does not fit, a $param
// without a value.
absl::StatusOr<GivenSizes> ReadSizes(const Op& op, const Given& given);

// Values of all dimensions and integer $params, checked as a run would check them.
// A dimension that nothing given determines is an error that names it.
absl::StatusOr<SymbolValues> BindSizes(const Op& op, const Given& given);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_SIZES_H_
