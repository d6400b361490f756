// The signature of a program that was specialized to sizes: it takes no others.
#ifndef NESTOR_JIT_SPECIALIZATION_H_
#define NESTOR_JIT_SPECIALIZATION_H_

#include "absl/status/status.h"
#include "jit/size_classes.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"

namespace nestor::jit {

// InvalidArgument, naming it, if a constant belongs to no dimension or integer $param of the
// program, or no call could have it: it is a negative dimension, say, or out of its $param's range.
absl::Status CheckConstants(const Signature& signature, const SizeClass& constants);

// `scheduled`, in which numbers stand for some symbols of `general`, with the arguments'
// shapes and the checks of `general`, and with one more check for each of the constants: that
// a call has this size. A $param's default is its constant.
loop::Program WithSignature(loop::Program scheduled, const loop::Program& general,
                            const SizeClass& constants);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SPECIALIZATION_H_
