// The definition of bytes_walked.h, element by element, which the estimate is tested against. Takes
// the time of an interpreter.
#ifndef NESTOR_FUSION_COST_BYTES_WALKED_TESTING_H_
#define NESTOR_FUSION_COST_BYTES_WALKED_TESTING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "fusion/cost/bytes_walked.h"
#include "loop_ir/access_walk_testing.h"
#include "loop_ir/sized_program.h"

namespace nestor::loop {

// InvalidArgument where a tensor's size overflows or an unmasked access is out of
// range.
absl::StatusOr<BytesWalked> SimulateBytesWalked(const SizedProgram& program, int64_t cache_bytes,
                                                GatheredValue gathered);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_COST_BYTES_WALKED_TESTING_H_
