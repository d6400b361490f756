// One run of a kernel on one case, and the faults that can be noticed without an oracle.
#ifndef NESTOR_CHECK_KERNEL_RUN_H_
#define NESTOR_CHECK_KERNEL_RUN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "check/case.h"
#include "check/elements.h"
#include "check/fault.h"
#include "check/kernel_call.h"
#include "tensor/tensor.h"

namespace nestor {

struct RunOptions {
  // The alignment of every buffer's first byte; a power of two.
  size_t alignment = 1;
  // Inputs lie in memory that faults when it is written.
  bool sealed = false;
};

struct KernelRun {
  Fault fault = Fault::kNone;
  std::string message;              // what is wrong
  std::vector<TensorView> outputs;  // compact; empty where the kernel did not get so far
  // For kUnwritten, kDependsOnOutput and kNotRepeatable: by result, the elements in question.
  ElementLists elements;

  // The memory that holds the outputs.
  std::vector<GuardedMemory> memory;
  std::vector<Tensor> copies;
};

// Calls the kernel twice, and where both calls differ up to twice more, on memory between guard
// pages: a stray access ends the process (check/fault_message.h says where it was). The memory is
// from `pool`, which must outlive the returned KernelRun.
KernelRun RunKernel(const Kernel& kernel, const Op& op, const Case& given,
                    const RunOptions& options, GuardedPool& pool);

}  // namespace nestor

#endif  // NESTOR_CHECK_KERNEL_RUN_H_
