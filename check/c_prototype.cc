// The op's names are kept wherever C allows them; others get a number, as in int_2. Strides have
// names of their own (x_stride0), which are changed where they clash with the op's.
#include "check/c_prototype.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tensor/binding.h"
#include "uops/notation/print.h"

namespace nestor {

// Includes names that the compilers of C and C++, and <stdint.h>, define.
bool IsTakenInC(absl::string_view name) {
  static const auto* const words = new absl::flat_hash_set<absl::string_view>(absl::StrSplit(
      "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class "
      "co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype "
      "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline "
      "int int8_t int16_t int32_t int64_t linux long main mutable namespace new noexcept not not_eq nullptr operator or or_eq "
      "private protected public register reinterpret_cast requires restrict return short signed sizeof static "
      "static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename "
      "typeof uint8_t uint16_t uint32_t uint64_t union unix unsigned using virtual void volatile wchar_t while xor xor_eq "
      "_Alignas _Alignof _Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local",
      ' '));
  return words->contains(name);
}

// Narrow floats take the last line: they are not signed integers, so bf16 becomes uint16_t.
std::string CType(DType type) {
  if (type == DType::kBool) return "bool";
  if (IsFloat(type) && !IsNarrowFloat(type)) return ByteSize(type) == 4 ? "float" : "double";
  return absl::StrCat(IsSigned(type) ? "int" : "uint", BitWidth(type), "_t");
}

namespace {

using Kind = CParameter::Kind;

// ---- Parameters

const Shape& ShapeOf(const Op& op, const CParameter& pointer) {
  if (pointer.kind == Kind::kInput) return op.FindArgument(pointer.of)->shape;
  return op.graph.shape(op.FindResult(pointer.of)->node);
}

// With strides, x: f32[M, N] becomes
//   const float* x, int64_t x_stride0, int64_t x_stride1
void AddTensor(const Op& op, Kind kind, const std::string& name, DType type,
               CPrototype& prototype) {
  prototype.parameters.push_back({kind, type, name, name});
  if (!prototype.strided) return;
  const int rank = static_cast<int>(ShapeOf(op, prototype.parameters.back()).size());
  for (int axis = 0; axis < rank; ++axis) {
    prototype.parameters.push_back(
        {Kind::kStride, DType::kI64, absl::StrCat(name, "_stride", axis), name, axis});
  }
}

void AddParameters(const Op& op, CPrototype& prototype) {
  for (const Argument& arg : op.args) {
    if (!arg.shape_only) AddTensor(op, Kind::kInput, arg.name, arg.type, prototype);
  }
  for (const Result& result : op.results) {
    AddTensor(op, Kind::kOutput, result.name, op.graph.type(result.node), prototype);
  }
  for (const std::string& name : UnboundDimensions(SignatureOf(op), {})) {
    prototype.parameters.push_back({Kind::kDimension, DType::kI64, name, name});
  }
  for (const ParamInfo& param : op.params) {
    // Without its "$", which is no character of a C name.
    prototype.parameters.push_back({Kind::kParam, param.type, param.name.substr(1), param.name});
  }
}

// Strides last, as their names are made up: x_stride0 yields where an argument is called so.
void MakeNamesDistinct(std::vector<CParameter>& parameters) {
  absl::flat_hash_set<std::string> given;
  const auto taken = [&](absl::string_view name) {
    return IsTakenInC(name) || given.contains(name);
  };
  for (const bool strides : {false, true}) {
    for (CParameter& parameter : parameters) {
      if ((parameter.kind == Kind::kStride) != strides) continue;
      parameter.name = FreshName(parameter.name, taken);
      given.insert(parameter.name);
    }
  }
}

// ---- Text

std::string Declaration(const CParameter& parameter) {
  const std::string type = CType(parameter.type);
  switch (parameter.kind) {
    case Kind::kInput: return absl::StrCat("const ", type, "* ", parameter.name);
    case Kind::kOutput: return absl::StrCat(type, "* ", parameter.name);
    case Kind::kStride:
    case Kind::kDimension:
    case Kind::kParam: return absl::StrCat(type, " ", parameter.name);
  }
  __builtin_unreachable();
}

std::string RangeText(const ParamInfo& param) {
  const auto bound = [](const absl::optional<Scalar>& value, absl::string_view otherwise) {
    return value ? LiteralText(*value) : std::string(otherwise);
  };
  if (!param.low && !param.high) return "";
  return absl::StrCat(" in [", bound(param.low, "-inf"), ", ", bound(param.high, "inf"), "]");
}

// A remark on what C does not say about the parameter.
std::string Remark(const Op& op, const CParameter& parameter) {
  const std::string type(Name(parameter.type));
  switch (parameter.kind) {
    case Kind::kInput:
    case Kind::kOutput: {
      const auto extent = [&](std::string* out, IndexId id) {
        absl::StrAppend(out, SymbolicText(op.graph.pool(), id));
      };
      return absl::StrCat(type, "[", absl::StrJoin(ShapeOf(op, parameter), ", ", extent), "]");
    }
    case Kind::kStride: return absl::StrCat("of axis ", parameter.axis, ", in elements");
    case Kind::kDimension:
      return parameter.name == parameter.of ? "" : absl::StrCat("the dimension ", parameter.of);
    case Kind::kParam:
      return absl::StrCat(parameter.of, ": ", type, RangeText(*op.FindParam(parameter.of)));
  }
  __builtin_unreachable();
}

// One parameter a line, remarks in one column:
//   int softmax(const float* x,  // f32[N0, C]
//               float* y,        // f32[N0, C]
//               int64_t N0,
//               int64_t C);
std::string ParameterList(const Op& op, const CPrototype& prototype) {
  if (prototype.parameters.empty()) return absl::StrCat("int ", prototype.symbol, "(void);\n");
  const std::string begin = absl::StrCat("int ", prototype.symbol, "(");
  size_t width = 0;
  for (const CParameter& parameter : prototype.parameters)
    width = std::max(width, Declaration(parameter).size());
  std::string text;
  for (const CParameter& parameter : prototype.parameters) {
    const bool is_last = &parameter == &prototype.parameters.back();
    const std::string declared = absl::StrCat(Declaration(parameter), is_last ? ");" : ",");
    const std::string remark = Remark(op, parameter);
    absl::StrAppend(&text, text.empty() ? begin : std::string(begin.size(), ' '));
    if (remark.empty()) absl::StrAppend(&text, declared, "\n");
    else
      absl::StrAppendFormat(&text, "%-*s  // %s\n", static_cast<int>(width) + 2, declared, remark);
  }
  return text;
}

std::string AsComment(absl::string_view text) {
  std::string comment;
  for (absl::string_view line : absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n')) {
    absl::StrAppend(&comment, "//", line.empty() ? "" : "   ", line, "\n");
  }
  return comment;
}

}  // namespace

CPrototype CPrototypeOf(const Op& op, const CPrototypeOptions& options) {
  CPrototype prototype;
  prototype.symbol = options.symbol;
  if (prototype.symbol.empty()) prototype.symbol = FreshName(op.name, IsTakenInC);
  prototype.strided = options.strided;
  AddParameters(op, prototype);
  MakeNamesDistinct(prototype.parameters);
  return prototype;
}

std::string CHeader(const Op& op, const CPrototype& prototype,
                    absl::Span<const std::string> conditions) {
  const std::string guard = absl::StrCat(absl::AsciiStrToUpper(prototype.symbol), "_H_");
  return absl::StrCat(
      "// A kernel of this op:\n//\n", AsComment(PrintOp(op, {/*equalities=*/true})), "//\n",
      conditions.empty() ? ""
                         : absl::StrCat("// Sizes meet ", absl::StrJoin(conditions, ", "), ".\n"),
      prototype.strided ? "// Strides may be 0 or negative, those of results are not 0. "
                        : "// Tensors are compact, and their last axis runs fastest. ",
      "Returns ", kKernelDone, " when\n// done, ", kKernelDeclines,
      " when it does not do these sizes.\n#ifndef ", guard, "\n#define ", guard,
      "\n\n#include <stdbool.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
      ParameterList(op, prototype), "\n#ifdef __cplusplus\n}\n#endif\n\n#endif  // ", guard, "\n");
}

}  // namespace nestor
