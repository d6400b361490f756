// The layout of an argument: what code may assume about its strides.
#ifndef NESTOR_JIT_ARGUMENT_LAYOUT_H_
#define NESTOR_JIT_ARGUMENT_LAYOUT_H_

#include <string>

#include "jit/codegen/table.h"
#include "tensor/tensor.h"

namespace nestor::jit {

// CompactLayout if the whole view is compact, row-major without gaps; else axis by axis, and no
// axis is kCompact. A kernel is compiled for each combination of layouts that calls bring.
Layout LayoutOf(const TensorView& view);

// Appends text that tells layouts of the same ranks apart.
void AddToKey(const Layout& layout, std::string* key);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_ARGUMENT_LAYOUT_H_
