// Which inputs of a program are bound to tensors, and where a call finds the others.
#ifndef NESTOR_JIT_BOUND_INPUTS_H_
#define NESTOR_JIT_BOUND_INPUTS_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tensor/tensor.h"

namespace nestor::jit {

// Inputs have their numbers in the program's signature. A call gives those that are not bound, in
// the same order. Copies share the tensors. Thread-safe where it is const.
class BoundInputs {
 public:
  // How a call gets one input.
  class Input {
   public:
    bool is_bound() const { return position_ < 0; }
    // The view among those that a call gives, or that of the bound tensor.
    const TensorView& View(absl::Span<const TensorView> given) const {
      return is_bound() ? view_ : given[static_cast<size_t>(position_)];
    }

   private:
    friend class BoundInputs;
    int position_ = -1;  // among the inputs that a call gives; -1: bound
    std::shared_ptr<const Tensor> bound_;
    TensorView view_;  // of the bound tensor
  };

  // None of the program's inputs is bound.
  explicit BoundInputs(size_t count) : inputs_(count) {
    for (size_t i = 0; i < count; ++i) inputs_[i].position_ = static_cast<int>(i);
  }
  // Binds input `number`. The inputs after it move up by one in calls. REQUIRES: it is not bound.
  void Bind(size_t number, Tensor tensor) {
    Input& input = inputs_[number];
    for (Input& later : inputs_) later.position_ -= later.position_ > input.position_ ? 1 : 0;
    input.position_ = -1;
    input.bound_ = std::make_shared<const Tensor>(std::move(tensor));
    input.view_ = input.bound_->view();
  }

  // Of the program, the bound ones, too.
  absl::Span<const Input> all() const { return inputs_; }
  // Whether it is bound, by input, as TranslateOptions::constant wants it: empty where none is.
  std::vector<bool> Constant() const {
    std::vector<bool> constant;
    if (NumGiven() == inputs_.size()) return constant;
    for (const Input& input : inputs_) constant.push_back(input.is_bound());
    return constant;
  }
  // How many a call gives.
  size_t NumGiven() const {
    size_t given = 0;
    for (const Input& input : inputs_) given += input.is_bound() ? 0 : 1;
    return given;
  }

 private:
  std::vector<Input> inputs_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_BOUND_INPUTS_H_
