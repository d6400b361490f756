// Binding-time analysis (Jones, Gomard and Sestoft, "Partial Evaluation and Automatic Program
// Generation", 1993) with nests for expressions: which parts of a program can be computed once,
// when only the bound inputs are known. It is the greatest solution: all items are taken as
// constant at first. One that is not makes those not constant that read or write what it writes,
// and those after it that write what it reads, until no more are found.
//
//   t = pack(w)     constant, if w is bound
//   y = t * x       not: x varies; y is an output, and what others read of t is kept
#include "loop_ir/constant_items.h"

#include <cstdint>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "loop_ir/dependence.h"
#include "uops/mutant.h"

namespace nestor::loop {

// `varies`: by tensor, whether its elements may differ from run to run. At first outputs, and
// inputs that are not bound; then all that a varying item writes. A tensor that a constant item
// writes and a varying one, too, varies.
ConstantItems ConstantItemsOf(const Program& program, const std::vector<bool>& constant) {
  std::vector<bool> varies(program.tensors.size(), true);
  for (size_t i = 0; i < program.inputs.size(); ++i) varies[program.inputs[i].value] = !constant[i];
  const std::vector<TensorId> temps = DeclaredIn(program.body);
  for (TensorId temp : temps) varies[temp.value] = false;
  std::vector<Footprint> footprints;
  ConstantItems found;
  for (const Item& item : program.body) {
    footprints.push_back(FootprintOf(program, item));
    found.is_constant.push_back(item.As<Declaration>() == nullptr);
  }
  const auto is_varying = [&](TensorId tensor) { return varies[tensor.value]; };
  absl::flat_hash_set<TensorId> read;  // by items that are not constant
  // A later run would find what this item writes where an item before it wants what was there.
  const auto is_overwritten = [&](TensorId tensor) {
    return varies[tensor.value] ||
           (read.contains(tensor) && !NESTOR_MUTANT("kept_value_overwritten"));
  };
  for (bool changed = true; changed;) {
    changed = false;
    read.clear();
    for (size_t i = 0; i < footprints.size(); ++i) {
      const Footprint& footprint = footprints[i];
      const bool varies_too = absl::c_any_of(footprint.reads, is_varying) ||
                              absl::c_any_of(footprint.writes, is_overwritten) ||
                              absl::c_any_of(footprint.accumulates, is_overwritten);
      if (!found.is_constant[i] || varies_too)
        read.insert(footprint.reads.begin(), footprint.reads.end());
      if (!found.is_constant[i] || !varies_too) continue;
      found.is_constant[i] = false;
      for (TensorId tensor : footprint.writes) varies[tensor.value] = true;
      for (TensorId tensor : footprint.accumulates) varies[tensor.value] = true;
      changed = true;
    }
  }
  absl::c_copy_if(temps, std::back_inserter(found.kept),
                  [&](TensorId temp) { return !is_varying(temp) && read.contains(temp); });
  return found;
}

}  // namespace nestor::loop
