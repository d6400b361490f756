// Passes that take a copy for its element ask for it here, so that none forgets the mask.
#include "loop_ir/elements.h"

#include "uops/mutant.h"

namespace nestor::loop {

bool IsElement(const Program& program, ValueId id, const Access& access) {
  const auto* load = absl::get_if<LoadValue>(&program[id].node);
  if (load == nullptr || (load->access.masked && !NESTOR_MUTANT("mask_of_element_ignored")))
    return false;
  return load->access.tensor == access.tensor && load->access.place == access.place;
}

}  // namespace nestor::loop
