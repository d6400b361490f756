// The fast judge's law, for tests.
#ifndef NESTOR_CHECK_BOUNDS_FAST_JUDGE_TESTING_H_
#define NESTOR_CHECK_BOUNDS_FAST_JUDGE_TESTING_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "check/bounds/fast_judge.h"
#include "tensor/binding.h"
#include "uops/op.h"

namespace nestor {

struct BoundCounts {
  int64_t runs = 0, refused = 0;              // by the oracle and the judge
  int64_t elements = 0, known = 0, wide = 0;  // of them with bounds, with more than one value
};
std::ostream& operator<<(std::ostream& out, const BoundCounts& counts);

// Runs the oracle and the judge. "" where each known bound of each element is a value of its type
// in the oracle's enclosure, or where both refuse the inputs; else the first that is not.
// `judge` is op's.
std::string BoundsViolation(const Op& op, const RunInputs& inputs, FastJudge& judge,
                            BoundCounts& counts);

}  // namespace nestor

#endif  // NESTOR_CHECK_BOUNDS_FAST_JUDGE_TESTING_H_
