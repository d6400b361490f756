#include "jit/codegen/table.h"

#include <algorithm>
#include <utility>

namespace nestor::jit {

int Table::Slot(TableSlot slot) {
  const auto it = std::find(slots.begin(), slots.end(), slot);
  if (it != slots.end()) return static_cast<int>(it - slots.begin());
  slots.push_back(std::move(slot));
  return static_cast<int>(slots.size()) - 1;
}

Layout CompactLayout(size_t rank) {
  Layout layout(rank, AxisLayout::kAny);
  if (rank > 0) layout.back() = AxisLayout::kUnit;
  return layout;
}

}  // namespace nestor::jit
