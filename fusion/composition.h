// The value of a temporary at a place: its definition, composed with that place.
#ifndef NESTOR_FUSION_COMPOSITION_H_
#define NESTOR_FUSION_COMPOSITION_H_

#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

constexpr int kSlowOp = 8;

// The statement `t[i, j] = value` that assigns every element of a temporary once.
struct Definition {
  TensorId tensor;
  std::vector<int32_t> vars;  // the loop index at each axis
  ValueId value;
  // The number of scalar ops applied, except for conversions of indices and constants; those that
  // are slower than a multiplication count kSlowOp.
  int cost = 0;
  bool is_alone = false;        // the item holds nothing else
  std::vector<TensorId> reads;  // what the value reads
};

// The definition of `tensor` by `item`: loops over the whole of its shape around one unmasked
// assignment, whose value reads nothing that the item changes or declares. nullopt where the item
// has another form.
absl::optional<Definition> DefinitionOf(const Program& program, const Item& item, TensorId tensor);

// The value of the load `access` of the definition's tensor; nullopt if no expression gives it.
absl::optional<ValueId> Compose(Program& program, const Definition& definition,
                                const Access& access);

// The same for a load in an index expression.
absl::optional<IndexId> ComposeIndex(Program& program, const Definition& definition,
                                     absl::Span<const IndexId> place);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_COMPOSITION_H_
