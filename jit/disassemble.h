// Machine code as text to read.
#ifndef NESTOR_JIT_DISASSEMBLE_H_
#define NESTOR_JIT_DISASSEMBLE_H_

#include <string>

#include "jit/kernel.h"

namespace nestor::jit {

// The functions of `kernel` in the order in which they run, one instruction on each line, after its
// offset, in Intel's syntax; `#` begins a comment. The code of a statement follows the statement,
// and code that advances loops and addresses follows "# ...":
//
//   softmax.1:  # 412 bytes
//     # m max= x[n, k]
//     0040  vmaxps ymm1, ymm1, [rax+rcx*4]
//     # ...
//     0045  add rcx, 0x08
std::string Disassemble(const Kernel& kernel);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_DISASSEMBLE_H_
