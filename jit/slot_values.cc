// Slots of symbols are evaluated as index expressions, with the sizes of the call; those of
// addresses are sums of factors, symbols and strides, modulo 2^64: a sum of addresses may leave
// int64 on the way and come back, as the code's own additions do.
#include "jit/slot_values.h"

#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace nestor::jit {

int64_t SlotValues::Of(const TableSlot& slot) const {
  switch (slot.kind) {
    case TableSlot::kIndex: return Symbols(slot.parts[0].symbols);
    // The result is not needed where the divisor is 0, but the division would trap.
    case TableSlot::kDivisor: {
      const int64_t value = Symbols(slot.parts[0].symbols);
      return value == 0 ? 1 : value;
    }
    case TableSlot::kCoefficient: {
      // Computed modulo 2^64: places that are accessed are proven not to overflow.
      uint64_t sum = 0;
      for (const TableSlot::Part& part : slot.parts) sum += Part(part);
      return static_cast<int64_t>(sum);
    }
    case TableSlot::kParam: {
      const Scalar& param = binding_.params.at(slot.param);
      // In registers 16-bit floats are f32 (scalar_rows.h).
      if (!IsNarrowFloat(param.type)) return static_cast<int64_t>(param.bits);
      return static_cast<int64_t>(ToBits(static_cast<float>(param.ToDouble())));
    }
    default: return 0;
  }
}

// 0 if it has no value: then it is not used.
int64_t SlotValues::Symbols(IndexId e) const {
  const IndexPool& pool = kernel_.program().pool;
  return EvaluateIndex(
             pool, e,
             [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
               const auto it = binding_.symbols.find(pool.SymbolNameAt(node.value));
               if (it == binding_.symbols.end()) return absl::nullopt;
               return it->second;
             })
      .value_or(0);
}

uint64_t SlotValues::Part(const TableSlot::Part& part) const {
  uint64_t product = static_cast<uint64_t>(part.factor);
  if (part.symbols.value >= 0) product *= static_cast<uint64_t>(Symbols(part.symbols));
  if (part.tensor.value >= 0)
    product *= static_cast<uint64_t>(strides_[part.tensor.value][part.axis]);
  return product;
}

}  // namespace nestor::jit
