// Code is made for a layout, not for strides: fewer kinds of code, and as much as it can use. The
// stride of an axis of one element does not matter: a tensor is compact whatever it is.
//
//   f32[4, 8], strides 8 1      compact: no stride is read at run time
//   f32[4, 8], strides 16 1     any, unit: rows apart by a number from the table
//   f32[4, 8], strides 1 4      unit, any: a transposed view
#include "jit/argument_layout.h"

#include <algorithm>
#include <cstddef>

#include "uops/mutant.h"

namespace nestor::jit {
namespace {

AxisLayout LayoutOf(const TensorView& view, size_t axis) {
  const bool last = axis + 1 == view.shape.size();
  if (view.shape[axis] <= 1) return last ? AxisLayout::kUnit : AxisLayout::kAny;
  if (NESTOR_MUTANT("layout_class_ignored") && last) return AxisLayout::kUnit;
  if (view.strides[axis] == 0)
    return NESTOR_MUTANT("broadcast_stride_of_one") ? AxisLayout::kUnit : AxisLayout::kZero;
  return view.strides[axis] == 1 ? AxisLayout::kUnit : AxisLayout::kAny;
}

// Row-major without gaps, from the last axis to the first.
bool IsCompact(const TensorView& view) {
  if (std::count(view.shape.begin(), view.shape.end(), 0) > 0) return true;  // any strides will do
  int64_t elements = 1;                                                      // of the later axes
  for (size_t axis = view.shape.size(); axis-- > 0; elements *= view.shape[axis]) {
    if (view.shape[axis] > 1 && view.strides[axis] != elements) return false;
  }
  return true;
}

}  // namespace

Layout LayoutOf(const TensorView& view) {
  if (IsCompact(view)) return CompactLayout(view.shape.size());
  Layout layout;
  for (size_t axis = 0; axis < view.shape.size(); ++axis) layout.push_back(LayoutOf(view, axis));
  return layout;
}

void AddToKey(const Layout& layout, std::string* key) {
  for (AxisLayout axis : layout) *key += "u0ac"[static_cast<int>(axis)];
  *key += ',';
}

}  // namespace nestor::jit
