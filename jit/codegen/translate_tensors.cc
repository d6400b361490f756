// Temporaries are compact; arguments have the layouts that the code is made for.
#include "jit/codegen/translate_tensors.h"

#include <utility>

namespace nestor::jit {

Tensors::Tensors(const loop::Program& program, std::vector<Home> homes,
                 const std::vector<Layout>& layouts)
    : homes_(std::move(homes)), places_(homes_.size()), registers_(homes_.size()) {
  for (size_t i = 0; i < places_.size(); ++i) {
    places_[i].layout = CompactLayout(program.tensors[i].shape.size());
    const HomeKind kind = homes_[i].kind;
    if (kind == HomeKind::kPrivate) places_[i].kind = TensorPlace::kPrivate;
    if (kind == HomeKind::kArgument || kind == HomeKind::kMemory)
      places_[i].kind = TensorPlace::kTable;
  }
  for (size_t i = 0; i < layouts.size(); ++i) {
    const size_t inputs = program.inputs.size();
    const loop::TensorId tensor = i < inputs ? program.inputs[i] : program.outputs[i - inputs];
    places_[tensor.value].layout = layouts[i];
  }
}

bool Tensors::AreRegisters(loop::TensorId tensor) const {
  return KindOf(tensor) == HomeKind::kScalar || KindOf(tensor) == HomeKind::kTile;
}

}  // namespace nestor::jit
