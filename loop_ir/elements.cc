// Passes that take a copy for its element ask for it here, so that none forgets the mask.
#include "loop_ir/elements.h"

namespace nestor::loop {

bool IsElement(const Program& program, ValueId id, const Access& access) {
  const auto* load = absl::get_if<LoadValue>(&program[id].node);
  return load != nullptr && load->access.tensor == access.tensor && !load->access.masked &&
         load->access.place == access.place;
}

}  // namespace nestor::loop
