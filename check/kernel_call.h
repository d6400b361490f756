// One call of the kernel that is checked: its arguments, by the names of the op's signature.
#ifndef NESTOR_CHECK_KERNEL_CALL_H_
#define NESTOR_CHECK_KERNEL_CALL_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

// Thrown for a name that the op does not have, or a type other than the op's: Check catches it and
// returns it as an InvalidArgument.
class KernelCallError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Valid while the kernel runs. The functions throw KernelCallError; "$" may be left out of
// the names of $params.
class KernelCall {
 public:
  // `inputs` and `outputs` in the order of the signature. All must outlive the call.
  KernelCall(const Op& op, const Binding& binding, absl::Span<const TensorView> inputs,
             absl::Span<const TensorView> outputs)
      : op_(&op), binding_(&binding), inputs_(inputs), outputs_(outputs) {}

  const Op& op() const { return *op_; }

  // The extent of a dimension, "M"; of an element of a pack, "N0".
  int64_t dim(absl::string_view name) const;
  // An integer $param, "stride"; any $param in its own type, as `param<float>("eps")`.
  int64_t param(absl::string_view name) const;
  template <class T>
  T param(absl::string_view name) const;
  Scalar scalar(absl::string_view name) const;

  // The memory of an argument, which may not be written; null where only its shape is an argument.
  template <class T>
  const T* input(absl::string_view name) const;
  // The memory of a result.
  template <class T>
  T* output(absl::string_view name) const;

  // The type, shape, strides (in elements) and memory of an argument or a result.
  const TensorView& view(absl::string_view name) const;
  int64_t stride(absl::string_view name, int axis) const;

  // In the order of the signature.
  absl::Span<const TensorView> inputs() const { return inputs_; }
  absl::Span<const TensorView> outputs() const { return outputs_; }
  // Dimensions and $params by name.
  const Binding& binding() const { return *binding_; }

 private:
  void CheckType(absl::string_view name, DType type, DType asked) const;
  const TensorView& InputNamed(absl::string_view name) const;
  const TensorView& OutputNamed(absl::string_view name) const;

  const Op* op_;
  const Binding* binding_;
  absl::Span<const TensorView> inputs_, outputs_;
};

// The function that Check holds against an op. OK: the outputs are written. Unimplemented: it does
// not do these sizes, types or $params, which is counted and no fault. Any other Status is a fault,
// and so is an exception. It may be called from another process, and from one thread at a time; it
// may use threads of its own.
using Kernel = std::function<absl::Status(const KernelCall&)>;

// ---- Implementation

template <class T>
const T* KernelCall::input(absl::string_view name) const {
  const TensorView& view = InputNamed(name);
  CheckType(name, view.type, DTypeOf<T>());
  return static_cast<const T*>(view.data);
}

template <class T>
T* KernelCall::output(absl::string_view name) const {
  const TensorView& view = OutputNamed(name);
  CheckType(name, view.type, DTypeOf<T>());
  return static_cast<T*>(view.data);
}

template <class T>
T KernelCall::param(absl::string_view name) const {
  const Scalar value = scalar(name);
  CheckType(name, value.type, DTypeOf<T>());
  T result;
  Store(value, &result);
  return result;
}

}  // namespace nestor

#endif  // NESTOR_CHECK_KERNEL_CALL_H_
