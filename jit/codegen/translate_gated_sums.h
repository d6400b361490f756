// Internal to the translation: sums of gated products, which run without the gates first.
#ifndef NESTOR_JIT_CODEGEN_TRANSLATE_GATED_SUMS_H_
#define NESTOR_JIT_CODEGEN_TRANSLATE_GATED_SUMS_H_

#include <cstddef>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/codegen/lane_builder.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/translate_tensors.h"
#include "jit/codegen/translate_values.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// The sums of gated products in register tiles of a program.
class GatedSums {
 public:
  // REQUIRES: the arguments outlive this.
  GatedSums(const loop::Program& program, const Tensors& tensors);

  // For the tile that item number `declaration` of the scope declares: the last of the items after
  // it that make up its sum of gated products, if the items in between only start the sum. They may
  // also copy elements to places that none of them has read, because that can be repeated. nullopt:
  // it has none.
  absl::optional<size_t> LastItemOf(const loop::Scope& scope, size_t declaration) const;

 private:
  void FindParts();
  bool StartsSum(const loop::Statement& statement) const;
  bool IsCopy(const loop::Statement& statement) const;
  HomeKind KindOf(loop::TensorId tensor) const { return tensors_.KindOf(tensor); }

  const loop::Program& program_;
  const Tensors& tensors_;
  absl::flat_hash_set<loop::TensorId> parts_;  // temporaries that hold only partial sums
};

class GatedSumTranslator {
 public:
  // REQUIRES: the arguments outlive this.
  GatedSumTranslator(const loop::Program& program, Tensors& tensors, LaneBuilder& f,
                     ValueTranslator& values)
      : program_(program), tensors_(tensors), f_(f), values_(values) {}

  // `items`: those that start the tile and make up its sum. `run` translates them; it is called
  // twice.
  void GatedSum(absl::Span<const loop::Item> items, loop::TensorId tile,
                absl::FunctionRef<void()> run);

 private:
  Operand AnyDoubtful(loop::TensorId tile, bool zeros);

  const loop::Program& program_;
  Tensors& tensors_;
  LaneBuilder& f_;
  ValueTranslator& values_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TRANSLATE_GATED_SUMS_H_
