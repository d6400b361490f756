// Factors of products that are 0, and what has to be finite for a product to be 0 with one.
#ifndef NESTOR_JIT_SCHEDULE_ZERO_FACTOR_H_
#define NESTOR_JIT_SCHEDULE_ZERO_FACTOR_H_

#include <vector>

#include "absl/types/optional.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// A load of a value that makes all of it 0 where it is 0 itself, as long as the others are finite.
struct ZeroFactor {
  ValueId load;
  std::vector<ValueId> others;
};

// nullopt where the value may be something else although the load is 0 and all else is finite.
absl::optional<ZeroFactor> ZeroFactorOf(const Program& program, ValueId value, ValueId load);

// Each load of the value.
std::vector<ValueId> LoadsOf(const Program& program, ValueId value);

// Whether the value is another at another step of the loop.
bool DependsOn(const Program& program, ValueId value, const Loop& loop);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_ZERO_FACTOR_H_
