// Kernels of libraries that many use, for Check to judge: each with its op, its conditions, and the
// findings about it.
#ifndef NESTOR_TESTS_PEER_KERNELS_H_
#define NESTOR_TESTS_PEER_KERNELS_H_

#include <string>
#include <vector>

#include "check/check.h"
#include "check/kernel_call.h"
#include "tensor/tensor.h"

namespace nestor {

struct PeerKernel {
  std::string name;  // "dgemm", "softmax, backward"
  CheckedOp op;
  Kernel kernel;
  CheckOptions options;
  // The fault in it, as described in docs/peers.md; "" where nothing is.
  std::string finding = "";
};

std::vector<PeerKernel> OpenBlasKernels();

// The kernels of the files onednn_*_kernels.cc; together they are OneDnnKernels.
std::vector<PeerKernel> OneDnnContractions();
std::vector<PeerKernel> OneDnnRows();  // softmax, layer normalisation
std::vector<PeerKernel> OneDnnPoolings();
std::vector<PeerKernel> OneDnnElementwise();
std::vector<PeerKernel> OneDnnKernels();

// The view of a matrix as its transpose.
TensorView Transpose(TensorView view);
// Copies the elements of one view into another of the same shape.
void Copy(const TensorView& from, const TensorView& to);

// The gradient program of `op`, a macro op or an op's text, by `wrt`, taking the values that
// `given` names, with `type` for arguments that take any type.
Op GradientOf(const std::string& op, const std::vector<std::string>& wrt,
              const std::vector<std::string>& given, DType type = DType::kF32);

}  // namespace nestor

#endif  // NESTOR_TESTS_PEER_KERNELS_H_
