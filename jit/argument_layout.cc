// The stride of an axis of one element does not matter, so such an axis counts as compact.
#include "jit/argument_layout.h"

#include "uops/mutant.h"

#include <cstddef>

namespace nestor::jit {
namespace {

AxisLayout LayoutOf(const TensorView& view, size_t axis) {
  const bool last = axis + 1 == view.shape.size();
  if (view.shape[axis] <= 1) return last ? AxisLayout::kUnit : AxisLayout::kAny;
  if (NESTOR_MUTANT("layout_class_ignored") && last) return AxisLayout::kUnit;
  if (view.strides[axis] == 0) return NESTOR_MUTANT("broadcast_stride_of_one") ? AxisLayout::kUnit : AxisLayout::kZero;
  return view.strides[axis] == 1 ? AxisLayout::kUnit : AxisLayout::kAny;
}

}  // namespace

Layout LayoutOf(const TensorView& view) {
  Layout layout;
  for (size_t axis = 0; axis < view.shape.size(); ++axis) layout.push_back(LayoutOf(view, axis));
  return layout;
}

void AddToKey(const Layout& layout, std::string* key) {
  for (AxisLayout axis : layout) *key += "u0a"[static_cast<int>(axis)];
  *key += ',';
}

}  // namespace nestor::jit
