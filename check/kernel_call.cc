// Names are looked up in the op's lists for each question: a kernel asks few.
#include "check/kernel_call.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "uops/dtype.h"
#include "uops/message.h"

namespace nestor {
namespace {

// "the kernel asks softmax for the argument 'xs', did you mean 'x'? (there are x)"
[[noreturn]] void Unknown(const Op& op, absl::string_view what, absl::string_view name,
                          const std::vector<std::string>& known) {
  throw KernelCallError(absl::StrCat("the kernel asks ", op.name, " for ", what, " '", name, "'",
                                     DidYouMean(name, known), " (there are ",
                                     absl::StrJoin(known, ", "), ")"));
}

std::vector<std::string> ArgumentNames(const Op& op) {
  std::vector<std::string> names;
  for (const Argument& arg : op.args) names.push_back(arg.name);
  return names;
}

std::vector<std::string> ResultNames(const Op& op) {
  std::vector<std::string> names;
  for (const Result& result : op.results) names.push_back(result.name);
  return names;
}

template <class List>
int NumberOf(const List& list, absl::string_view name) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

int64_t KernelCall::dim(absl::string_view name) const {
  const auto it = binding_->symbols.find(std::string(name));
  if (it != binding_->symbols.end() && it->first[0] != '$') return it->second;
  std::vector<std::string> known;
  for (const auto& [symbol, value] : binding_->symbols) {
    if (symbol[0] != '$') known.push_back(symbol);
  }
  Unknown(*op_, "the dimension", name, known);
}

Scalar KernelCall::scalar(absl::string_view name) const {
  const std::string full = name.substr(0, 1) == "$" ? std::string(name) : absl::StrCat("$", name);
  const auto it = binding_->params.find(full);
  if (it != binding_->params.end()) return it->second;
  std::vector<std::string> known;
  for (const ParamInfo& param : op_->params) known.push_back(param.name);
  Unknown(*op_, "the $param", full, known);
}

int64_t KernelCall::param(absl::string_view name) const {
  const Scalar value = scalar(name);
  if (IsInteger(value.type)) return value.ToInt();
  throw KernelCallError(absl::StrCat("the kernel asks for the $param ", name,
                                     " as an integer, but it is ", Name(value.type),
                                     ": use param<T>"));
}

const TensorView& KernelCall::InputNamed(absl::string_view name) const {
  const int number = NumberOf(op_->args, name);
  if (number < 0) Unknown(*op_, "the argument", name, ArgumentNames(*op_));
  return inputs_[static_cast<size_t>(number)];
}

const TensorView& KernelCall::OutputNamed(absl::string_view name) const {
  const int number = NumberOf(op_->results, name);
  if (number < 0) Unknown(*op_, "the result", name, ResultNames(*op_));
  return outputs_[static_cast<size_t>(number)];
}

const TensorView& KernelCall::view(absl::string_view name) const {
  const int number = NumberOf(op_->results, name);
  return number >= 0 ? outputs_[static_cast<size_t>(number)] : InputNamed(name);
}

int64_t KernelCall::stride(absl::string_view name, int axis) const {
  const TensorView& tensor = view(name);
  if (axis >= 0 && axis < tensor.rank()) return tensor.strides[static_cast<size_t>(axis)];
  throw KernelCallError(absl::StrCat("the kernel asks for axis ", axis, " of ", name,
                                     ", which has ", tensor.rank(),
                                     tensor.rank() == 1 ? " axis" : " axes"));
}

void KernelCall::CheckType(absl::string_view name, DType type, DType asked) const {
  if (type == asked) return;
  throw KernelCallError(
      absl::StrCat("the kernel asks for ", name, " as ", Name(asked), ", but it is ", Name(type)));
}

}  // namespace nestor
