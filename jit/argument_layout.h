// The layout that an argument has: what code may take for granted of its strides.
#ifndef NESTOR_JIT_ARGUMENT_LAYOUT_H_
#define NESTOR_JIT_ARGUMENT_LAYOUT_H_

#include <string>

#include "jit/codegen/table.h"
#include "tensor/tensor.h"

namespace nestor::jit {

// Compact where all of it is (CompactLayout); else axis by axis, and none is kCompact.
Layout LayoutOf(const TensorView& view);

// Appends what tells layouts of the same ranks apart.
void AddToKey(const Layout& layout, std::string* key);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_ARGUMENT_LAYOUT_H_
