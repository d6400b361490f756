// To check sizes without memory for them, each argument is bound as a view whose elements share
// one place.
#include "cli/sizes.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "uops/invariant.h"
#include "uops/notation/module.h"

namespace nestor::cli {
namespace {

absl::Status Error(const Op& op, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat("op ", op.name, ": ", message));
}

}  // namespace

absl::StatusOr<int64_t> ReadExtent(const Op& op, const std::string& name, const std::string& text) {
  int64_t extent;
  if (!absl::SimpleAtoi(text, &extent)) {
    return Error(op, absl::StrCat(name, "=", text, ": a dimension is an integer of 64 bits"));
  }
  const std::string dimension = absl::StrCat("dimension ", name, " = ", extent);
  if (extent < 0) return Error(op, absl::StrCat(dimension, " is negative"));
  if (extent > kMaxExtent) return Error(op, absl::StrCat(dimension, " exceeds 2^48"));
  return extent;
}

absl::StatusOr<Scalar> ReadParam(const Op& op, const ParamInfo& param, const std::string& text) {
  const auto value = ParseLiteral(text, param.type);
  if (!value)
    return Error(op,
                 absl::StrCat(param.name, " is ", Name(param.type), ", '", text, "' does not fit"));
  // The $params of an op that has only this one.
  const std::vector<ParamInfo> params = {param};
  const std::vector<Equality> equalities;
  const std::vector<RangeCheck> range_checks;
  const Signature signature = {op.name, &op.graph.pool(), {}, &params, &equalities, &range_checks};
  NESTOR_RETURN_IF_ERROR(Bind(signature, {{}, {{param.name, *value}}, {}}).status());
  return *value;
}

absl::Status UnknownNumber(const Op& op, const std::string& name) {
  std::vector<std::string> known = UnboundDimensions(SignatureOf(op), {});
  for (const ParamInfo& param : op.params) known.push_back(param.name.substr(1));
  const std::string list =
      known.empty() ? "" : absl::StrCat(" (there are ", absl::StrJoin(known, ", "), ")");
  return Error(op, absl::StrCat("no $param and no dimension is named '", name, "'",
                                DidYouMean(name, known), list));
}

namespace {

absl::Status ReadParams(const Op& op, const Given& given, GivenSizes& sizes) {
  for (const auto& [name, text] : given.params) {
    const ParamInfo* param = op.FindParam(name);
    if (param == nullptr) return Error(op, absl::StrCat("no parameter is named ", name));
    NESTOR_ASSIGN_OR_RETURN(sizes.run.params[name], ReadParam(op, *param, text));
  }
  for (const ParamInfo& param : op.params) {
    const auto it = sizes.run.params.find(param.name);
    const auto value = it != sizes.run.params.end() ? it->second : param.value;
    if (!value) {
      return Error(op,
                   absl::StrCat(param.name, " has no default: give ", param.name.substr(1), "=.."));
    }
    if (IsInteger(param.type)) sizes.known.symbols[param.name] = value->ToInt();
  }
  return absl::OkStatus();
}

absl::Status ReadDims(const Op& op, const Given& given, GivenSizes& sizes) {
  const std::vector<std::string> dimensions = UnboundDimensions(SignatureOf(op), {});
  for (const auto& [name, text] : given.dims) {
    if (!absl::c_linear_search(dimensions, name)) return UnknownNumber(op, name);
    NESTOR_ASSIGN_OR_RETURN(const int64_t extent, ReadExtent(op, name, text));
    sizes.run.dims[name] = sizes.known.symbols[name] = extent;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GivenSizes> ReadSizes(const Op& op, const Given& given) {
  GivenSizes sizes;
  NESTOR_RETURN_IF_ERROR(ReadParams(op, given, sizes));
  NESTOR_RETURN_IF_ERROR(ReadDims(op, given, sizes));
  for (const auto& [name, tensor] : given.tensors) sizes.known.shapes[name] = tensor.shape();
  for (const auto& [name, shape] : given.shapes) sizes.known.shapes[name] = shape.shape;
  return sizes;
}

// Binds views without elements, so that a size is judged here as a run would judge it.
absl::StatusOr<SymbolValues> BindSizes(const Op& op, const Given& given) {
  NESTOR_ASSIGN_OR_RETURN(GivenSizes sizes, ReadSizes(op, given));
  const ChosenSizes chosen = ChooseSizes(op, sizes.known);
  if (!chosen.guessed.empty()) {
    return Error(op, absl::StrCat("no size is given for ", absl::StrJoin(chosen.guessed, ", "),
                                  ": give ", absl::StrJoin(chosen.guessed, "=.. "), "=.."));
  }
  for (const auto& [name, extent] : chosen.chosen) sizes.run.dims[name] = extent;
  Binding binding;
  binding.symbols = chosen.symbols;
  double element = 0;  // of any type; nothing reads it
  for (const Argument& arg : op.args) {
    const auto shape = sizes.known.shapes.find(arg.name);
    TensorView view{arg.type, {}, {}, &element};
    if (shape != sizes.known.shapes.end()) {
      view.shape = shape->second;
    } else {
      NESTOR_ASSIGN_OR_RETURN(view.shape,
                              EvaluateShape(op.graph.pool(), arg.shape, binding,
                                            absl::StrCat("op ", op.name, ": argument ", arg.name)));
    }
    view.strides.assign(view.shape.size(), 0);
    sizes.run.tensors[arg.name] = view;
  }
  NESTOR_ASSIGN_OR_RETURN(Binding bound, Bind(SignatureOf(op), sizes.run));
  return std::move(bound.symbols);
}

}  // namespace nestor::cli
