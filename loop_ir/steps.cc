// A flow dependence carried by the loop is what makes it run in steps; an output dependence of a
// reduction does not. A loop that carries a value reads what it writes: a loop that only
// accumulates into a tensor carries it, too, but its iterations need not run in order.
#include "loop_ir/steps.h"

#include "absl/algorithm/container.h"
#include "loop_ir/dependence.h"

namespace nestor::loop {

// A loop carries a dependence that order decides, not a mere accumulation.
bool RunsInSteps(const Program& program, const Loop& loop) {
  const Footprint footprint = FootprintOf(program, loop.body);
  const auto reads_back = [&](TensorId tensor) {
    return footprint.writes.contains(tensor) && footprint.reads.contains(tensor);
  };
  // The first is quick to find out.
  if (absl::c_none_of(footprint.writes, reads_back)) return false;
  const auto carried = CarriedTensor(program, loop);
  return carried && reads_back(*carried);
}

}  // namespace nestor::loop
