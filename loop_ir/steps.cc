// A loop that carries a value reads what it writes: a loop that only accumulates into a tensor carries
// it, too, but its iterations need not run in order.
#include "loop_ir/steps.h"

#include "loop_ir/dependence.h"

namespace nestor::loop {

bool RunsInSteps(const Program& program, const Loop& loop) {
  const auto carried = CarriedTensor(program, loop);
  if (!carried) return false;
  const Footprint footprint = FootprintOf(program, loop.body);
  return footprint.writes.contains(*carried) && footprint.reads.contains(*carried);
}

}  // namespace nestor::loop
