// The numbers that code takes from its table: the values of its slots for the sizes and strides of
// one call.
#ifndef NESTOR_JIT_SLOT_VALUES_H_
#define NESTOR_JIT_SLOT_VALUES_H_

#include <cstdint>
#include <vector>

#include "jit/codegen/table.h"
#include "jit/kernel.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/index/index_expr.h"

namespace nestor::jit {

// Evaluates slots for one binding. All that it is given must outlive it.
class SlotValues {
 public:
  // `strides`: in bytes, by tensor.
  SlotValues(const Kernel& kernel, const Binding& binding, const std::vector<Dims>& strides)
      : kernel_(kernel), binding_(binding), strides_(strides) {}

  // The number that code reads from the slot. 0 for addresses and offsets, which do not follow from
  // sizes alone.
  int64_t Of(const TableSlot& slot) const;

 private:
  int64_t Symbols(IndexId e) const;
  uint64_t Part(const TableSlot::Part& part) const;

  const Kernel& kernel_;
  const Binding& binding_;
  const std::vector<Dims>& strides_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SLOT_VALUES_H_
