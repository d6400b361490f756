// Slots are numbered in the order in which they are first asked for; equal ones are shared. So the
// numbers depend on the program alone, and two translations of it give the same code.
#include "jit/codegen/table.h"

namespace nestor::jit {

int Table::Slot(const TableSlot& slot) {
  const auto [it, is_new] = numbers_.try_emplace(slot, static_cast<int>(slots.size()));
  if (is_new) slots.push_back(slot);
  return it->second;
}

Layout CompactLayout(size_t rank) {
  Layout layout(rank, AxisLayout::kCompact);
  if (rank > 0) layout.back() = AxisLayout::kUnit;
  return layout;
}

}  // namespace nestor::jit
