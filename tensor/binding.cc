// A system of equations over the sizes of one call, solved without search. Dimensions are bound
// first, from every axis that is one dimension alone, in the order of the signature; all other
// forms are checked against the bound values.
//
//   x: f32[N, 2*N], given [4, 8]      N = 4 from axis 0;  axis 1: 2*N = 8, as given
//
// For each symbol the place that bound it is kept, so that a contradiction names both places.
#include "tensor/binding.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "uops/invariant.h"
#include "uops/message.h"

namespace nestor {
namespace {

// Names come from the caller.
absl::Status InvalidInput(absl::string_view message) {
  return absl::InvalidArgumentError(ClipWords(ValidUtf8(message)));
}

// An error for the first name, in alphabetical order, that `known` does not hold: the message must
// not depend on the order of a hash map.
template <class Map>
absl::Status CheckKnown(absl::string_view op, absl::string_view what, const Map& given,
                        const std::vector<std::string>& known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : given) names.push_back(name);
  std::sort(names.begin(), names.end());
  const absl::flat_hash_set<absl::string_view> found(known.begin(), known.end());
  for (const std::string& name : names) {
    if (found.contains(name)) continue;
    return InvalidInput(absl::StrCat(
        "op ", op, ": no ", what, " is named '", name, "'", DidYouMean(name, known),
        known.empty() ? "" : absl::StrCat(" (there are ", absl::StrJoin(known, ", "), ")")));
  }
  return absl::OkStatus();
}

// In the order of the signature, each once.
std::vector<std::string> DimensionsOf(const Signature& signature) {
  std::vector<std::string> names;
  absl::flat_hash_set<std::string> seen;
  for (const SignatureArgument& arg : signature.args) {
    for (IndexId extent : *arg.shape) {
      VisitIndex(*signature.pool, extent, [&](IndexId id, const IndexNode& node) {
        if (node.kind != IndexKind::kSymbol) return;
        const std::string& name = signature.pool->SymbolName(id);
        if (name[0] != '$' && seen.insert(name).second) names.push_back(name);
      });
    }
  }
  return names;
}

class Binder {
 public:
  Binder(const Signature& signature, const RunInputs& inputs)
      : signature_(signature), inputs_(inputs), pool_(*signature.pool) {}

  // Numbers first, then tensors; then what needs all symbols.
  absl::StatusOr<Binding> Run() {
    const std::vector<std::string> dimensions = DimensionsOf(signature_);
    NESTOR_RETURN_IF_ERROR(CheckNames(dimensions));
    NESTOR_RETURN_IF_ERROR(BindParams());
    NESTOR_RETURN_IF_ERROR(BindDimensions(dimensions));
    NESTOR_RETURN_IF_ERROR(BindTensors());
    NESTOR_RETURN_IF_ERROR(CheckExtents());
    NESTOR_RETURN_IF_ERROR(CheckEqualities());
    NESTOR_RETURN_IF_ERROR(CheckRanges());
    return std::move(binding_);
  }

 private:
  absl::Status Error(absl::string_view message) const {
    return InvalidInput(absl::StrCat("op ", signature_.name, ": ", message));
  }

  // A name that is not in the signature is a typing error: it is told what there is.
  absl::Status CheckNames(const std::vector<std::string>& dimensions) const {
    std::vector<std::string> args, params;
    for (const SignatureArgument& arg : signature_.args) args.push_back(arg.name);
    for (const ParamInfo& param : *signature_.params) params.push_back(param.name);
    NESTOR_RETURN_IF_ERROR(CheckKnown(signature_.name, "argument", inputs_.tensors, args));
    NESTOR_RETURN_IF_ERROR(CheckKnown(signature_.name, "parameter", inputs_.params, params));
    return CheckKnown(signature_.name, "dimension", inputs_.dims, dimensions);
  }

  // An integer param is a symbol, too: extents and indices may name it.
  absl::Status BindParams() {
    for (const ParamInfo& param : *signature_.params) {
      const auto given = inputs_.params.find(param.name);
      absl::optional<Scalar> value = param.value;
      if (given != inputs_.params.end()) {
        NESTOR_ASSIGN_OR_RETURN(value, Convert(param, given->second));
      }
      if (!value) return Error(absl::StrCat(param.name, " has no default and must be given"));
      NESTOR_RETURN_IF_ERROR(CheckParamRange(param, *value));
      binding_.params[param.name] = *value;
      if (IsInteger(param.type)) binding_.symbols[param.name] = value->ToInt();
    }
    return absl::OkStatus();
  }

  // Those that are given. Of several wrong ones the first in the signature is named.
  absl::Status BindDimensions(const std::vector<std::string>& dimensions) {
    for (const std::string& name : dimensions) {
      const auto given = inputs_.dims.find(name);
      if (given == inputs_.dims.end()) continue;
      const int64_t value = given->second;
      if (value < 0) return Error(absl::StrCat("dimension ", name, " = ", value, " is negative"));
      if (value > kMaxExtent)
        return Error(absl::StrCat("dimension ", name, " = ", value, " exceeds 2^48"));
      binding_.symbols[name] = value;
    }
    return absl::OkStatus();
  }

  // Rounded once, from whatever type it is given in.
  static Scalar AsFloat(const Scalar& given, DType type) {
    if (IsFloat(given.type)) return Scalar::Float(type, given.ToDouble());
    return given.FitsInt64() ? Scalar::Integer(type, given.ToInt())
                             : Scalar::Of(type, uint64_t{given.bits});
  }

  // A number that a caller gives fits if its value does, whatever its type; floats are rounded,
  // integers must be exact.
  absl::StatusOr<absl::optional<Scalar>> Convert(const ParamInfo& param,
                                                 const Scalar& given) const {
    // An integer $param is an index value, which is an i64.
    const bool fits = !IsInteger(param.type) || given.FitsInt64();
    if (given.type == param.type && fits) return absl::optional<Scalar>(given);
    const bool from_integer = IsInteger(given.type);
    if (IsFloat(param.type) && given.type != DType::kBool)
      return absl::optional<Scalar>(AsFloat(given, param.type));
    if (IsInteger(param.type) && from_integer && fits) {
      const Scalar narrow = Scalar::Integer(param.type, given.ToInt());
      if (narrow.FitsInt64() && narrow.ToInt() == given.ToInt())
        return absl::optional<Scalar>(narrow);
    }
    const bool is_beyond_indices = !fits && given.type == param.type;
    return Error(absl::StrCat(
        param.name, " is ", Name(param.type), ", ", LiteralText(given), " does not fit",
        is_beyond_indices ? ": an integer $param is an index value, at most 2^63 - 1" : ""));
  }

  // Floats are compared so that NaN is outside of every range.
  absl::Status CheckParamRange(const ParamInfo& param, const Scalar& value) const {
    const bool below =
        param.low && (IsInteger(param.type) ? value.ToInt() < param.low->ToInt()
                                            : !(value.ToDouble() >= param.low->ToDouble()));
    const bool above =
        param.high && (IsInteger(param.type) ? value.ToInt() > param.high->ToInt()
                                             : !(value.ToDouble() <= param.high->ToDouble()));
    if (!below && !above) return absl::OkStatus();
    return Error(absl::StrCat(param.name, " = ", LiteralText(value), " is outside [",
                              param.low ? LiteralText(*param.low) : "-inf", ", ",
                              param.high ? LiteralText(*param.high) : "inf", "]"));
  }

  // Types, ranks and layouts here; extents only bind names, which are checked when all are bound.
  absl::Status BindTensors() {
    for (const SignatureArgument& arg : signature_.args) {
      const auto it = inputs_.tensors.find(arg.name);
      if (it == inputs_.tensors.end())
        return Error(absl::StrCat("argument ", arg.name, " is missing"));
      const TensorView& view = it->second;
      const absl::Status sound = CheckView(view);
      if (!sound.ok()) return Error(absl::StrCat("argument ", arg.name, ": ", sound.message()));
      if (view.type != arg.type && !arg.shape_only) {
        return Error(absl::StrCat("argument ", arg.name, " is ", Name(arg.type), ", is given ",
                                  Name(view.type)));
      }
      if (view.shape.size() != arg.shape->size()) {
        return Error(absl::StrCat("argument ", arg.name, " has ", arg.shape->size(),
                                  " dimensions, is given ", ShapeText(view.shape)));
      }
      NESTOR_RETURN_IF_ERROR(BindAxes(arg, view));
    }
    return absl::OkStatus();
  }

  // The axes that bind: those whose extent is just a dimension's name.
  absl::Status BindAxes(const SignatureArgument& arg, const TensorView& view) {
    for (size_t axis = 0; axis < view.shape.size(); ++axis) {
      const IndexId extent = (*arg.shape)[axis];
      if (pool_[extent].kind != IndexKind::kSymbol || pool_.SymbolName(extent)[0] == '$') continue;
      const std::string& name = pool_.SymbolName(extent);
      const AxisOf place = {&arg, axis};
      if (view.shape[axis] > kMaxExtent)
        return Error(absl::StrCat(TextOf(place, name), ", which exceeds 2^48"));
      const auto [it, inserted] = binding_.symbols.emplace(name, view.shape[axis]);
      if (inserted) places_.emplace(name, place);
      else if (it->second != view.shape[axis])
        return Error(absl::StrCat(TextOf(place, name), ", but ", TextOfBinder(name)));
    }
    return absl::OkStatus();
  }

  struct AxisOf {
    const SignatureArgument* arg;
    size_t axis;
  };
  // "axis 1 of x (N) is 8", and with TextOfBinder: "axis 0 of y (N) is 7, but axis 1 of x (N) is 8"
  std::string TextOf(const AxisOf& place, absl::string_view name) const {
    return absl::StrCat("axis ", place.axis, " of ", place.arg->name, " (", name, ") is ",
                        inputs_.tensors.at(place.arg->name).shape[place.axis]);
  }
  // What gave the dimension its value: an axis, or the caller.
  std::string TextOfBinder(const std::string& name) const {
    const auto place = places_.find(name);
    if (place != places_.end()) return TextOf(place->second, name);
    return absl::StrCat(name, "=", binding_.symbols.at(name), " as given");
  }

  // An extent may be an expression of dimensions that another argument binds, such as N + K - 1, so
  // it is checked last.
  absl::Status CheckExtents() const {
    for (const SignatureArgument& arg : signature_.args) {
      const Dims& given = inputs_.tensors.at(arg.name).shape;
      const std::string what = absl::StrCat("op ", signature_.name, ": argument ", arg.name);
      NESTOR_ASSIGN_OR_RETURN(const Dims expected,
                              EvaluateShape(pool_, *arg.shape, binding_, what));
      for (size_t axis = 0; axis < given.size(); ++axis) {
        if (given[axis] == expected[axis]) continue;
        const IndexId extent = (*arg.shape)[axis];
        const std::string must = pool_.ConstValue(extent)
                                     ? "must be "
                                     : absl::StrCat(SymbolicText(pool_, extent), " = ");
        return Error(absl::StrCat("axis ", axis, " of ", arg.name, " is ", given[axis], ", but ",
                                  must, expected[axis]));
      }
    }
    return absl::OkStatus();
  }

  absl::optional<int64_t> Evaluate(IndexId id) const {
    return EvaluateIndex(
        pool_, id,
        [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
          if (node.kind != IndexKind::kSymbol) return absl::nullopt;
          const auto it = binding_.symbols.find(pool_.SymbolNameAt(node.value));
          if (it == binding_.symbols.end()) return absl::nullopt;
          return it->second;
        });
  }

  // What the statements of the op demand, such as K == P where one index runs over both.
  absl::Status CheckEqualities() const {
    for (const Equality& e : *signature_.equalities) {
      const auto left = Evaluate(e.left), right = Evaluate(e.right);
      if (left && right && *left == *right) continue;
      const auto shown = [](absl::optional<int64_t> v) {
        return v ? absl::StrCat(*v) : std::string("undefined");
      };
      return Error(absl::StrCat(e.message, ": ", shown(left), " against ", shown(right)));
    }
    return absl::OkStatus();
  }

  // Of callees' $params, which are expressions over the caller's sizes.
  absl::Status CheckRanges() const {
    for (const RangeCheck& check : *signature_.range_checks) {
      const auto value = Evaluate(check.value);
      if (!value) return Error(absl::StrCat(check.message, ": its value is undefined"));
      if (*value >= check.low.value_or(*value) && *value <= check.high.value_or(*value)) continue;
      return Error(absl::StrCat(check.message, " = ", *value, " is out of its range"));
    }
    return absl::OkStatus();
  }

  const Signature& signature_;
  const RunInputs& inputs_;
  const IndexPool& pool_;
  Binding binding_;
  absl::flat_hash_map<std::string, AxisOf> places_;  // the axis that bound the dimension
};

}  // namespace

absl::optional<int64_t> Binding::Find(const std::string& name) const {
  const auto it = symbols.find(name);
  if (it == symbols.end()) return absl::nullopt;
  return it->second;
}

absl::optional<int64_t> Binding::Symbol(const IndexPool& pool, IndexId id) const {
  if (pool[id].kind != IndexKind::kSymbol) return absl::nullopt;
  return Find(pool.SymbolName(id));
}

absl::StatusOr<Binding> Bind(const Signature& signature, const RunInputs& inputs) {
  return Binder(signature, inputs).Run();
}

std::vector<std::string> UnboundDimensions(const Signature& signature, const RunInputs& inputs) {
  absl::flat_hash_set<std::string> bound;
  for (const SignatureArgument& arg : signature.args) {
    if (!inputs.tensors.contains(arg.name)) continue;
    for (IndexId extent : *arg.shape) {
      if ((*signature.pool)[extent].kind == IndexKind::kSymbol)
        bound.insert(signature.pool->SymbolName(extent));
    }
  }
  std::vector<std::string> unbound = DimensionsOf(signature);
  const auto is_known = [&](const std::string& name) {
    return bound.contains(name) || inputs.dims.contains(name);
  };
  unbound.erase(std::remove_if(unbound.begin(), unbound.end(), is_known), unbound.end());
  return unbound;
}

// Tells apart why there is no extent: a dimension that nothing binds, a value that is undefined,
// and one that is negative.
absl::StatusOr<Dims> EvaluateShape(const IndexPool& pool, const Shape& shape,
                                   const Binding& binding, absl::string_view what) {
  Dims dims;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    std::string unknown;
    const auto extent = EvaluateIndex(
        pool, shape[axis],
        [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
          if (node.kind != IndexKind::kSymbol) return absl::nullopt;
          const auto it = binding.symbols.find(pool.SymbolNameAt(node.value));
          if (it != binding.symbols.end()) return it->second;
          unknown = pool.SymbolNameAt(node.value);
          return absl::nullopt;
        });
    if (extent && *extent >= 0) {
      dims.push_back(*extent);
      continue;
    }
    const std::string place =
        absl::StrCat(what, ": axis ", axis, " (", SymbolicText(pool, shape[axis]), ")");
    if (!unknown.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": the dimension ", unknown, " is not known: give ", unknown, "=.."));
    }
    if (!extent)
      return absl::InvalidArgumentError(absl::StrCat(place, " divides by zero or overflows"));
    return absl::InvalidArgumentError(absl::StrCat(place, " is negative: ", *extent));
  }
  return dims;
}

}  // namespace nestor
