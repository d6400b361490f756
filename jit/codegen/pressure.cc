// The number of live ranges at each operation bounds from below the registers that an allocation
// needs, and linear scan reaches the bound: if no more are live than there are registers, it spills
// none.
//
// Ranges are counted where they begin and end, and the counts are summed up in the order of the
// list: linear in the ranges and the list together.
#include "jit/codegen/pressure.h"

#include <algorithm>
#include <cstdint>

#include "jit/codegen/operand_constraints.h"

namespace nestor::jit {

Pressure::Pressure(const OperationList& list, absl::Span<const LiveRange> ranges) {
  for (std::vector<int>& live : live_) live.resize(list.operations.size() + 2);
  for (const LiveRange& range : ranges) {
    std::vector<int>& live = live_[static_cast<int>(list.classes[range.reg])];
    // A result that is written early overlaps with the ranges that end there.
    const bool early =
        range.begin > 0 && Info(list.operations[range.begin].opcode).Is(kWritesEarly);
    ++live[range.begin - (early ? 1 : 0)];
    --live[std::max(range.end, range.begin + 1)];
  }
  for (std::vector<int>& live : live_) {
    for (size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
  }
}

int Pressure::Most(RegisterClass c, size_t first, size_t last) const {
  const std::vector<int>& live = live_[static_cast<int>(c)];
  return *std::max_element(live.begin() + static_cast<int64_t>(first),
                           live.begin() + static_cast<int64_t>(last));
}

void Pressure::Add(RegisterClass c, size_t first, size_t last, int registers) {
  std::vector<int>& live = live_[static_cast<int>(c)];
  for (size_t i = first; i < last; ++i) live[i] += registers;
}

}  // namespace nestor::jit
