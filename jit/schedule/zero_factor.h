// Factors of products that are 0, and the values that must be finite for a product with one
// to be 0.
#ifndef NESTOR_JIT_SCHEDULE_ZERO_FACTOR_H_
#define NESTOR_JIT_SCHEDULE_ZERO_FACTOR_H_

#include <vector>

#include "absl/types/optional.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// A load in a value that makes the whole value 0 where the load is 0, as long as
// `others` are finite.
struct ZeroFactor {
  ValueId load;
  std::vector<ValueId> others;
};

// nullopt where the value may differ from 0 although the load is 0 and everything else is finite.
absl::optional<ZeroFactor> ZeroFactorOf(const Program& program, ValueId value, ValueId load);

// All loads of the value.
std::vector<ValueId> LoadsOf(const Program& program, ValueId value);

// Whether the value differs from step to step of the loop.
bool DependsOn(const Program& program, ValueId value, const Loop& loop);

// Whether it pays to test for each row of a tile whether a factor is 0 there, and to leave the
// product out. In small tiles, tests take longer than products with zeros.
bool LeavesOutPadding(jit::Isa isa);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_ZERO_FACTOR_H_
