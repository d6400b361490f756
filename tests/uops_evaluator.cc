// Every live node becomes a dense tensor, computed whole before the next by a
// plain loop over its shape; nothing is fused, masked lazily or kept strided.
//
// An arg reduction looks for its extreme first and then for the place. Scalars are those of
// plain_scalars.cc.
#include "tests/uops_evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/plain_scalars.h"
#include "uops/invariant.h"
#include "uops/recurrence.h"

namespace nestor {
namespace {

using plain::Cast;
using plain::EncodeFloat;
using plain::FloorQuotient;
using plain::GreatestOf;
using plain::Int128;
using plain::LeastOf;
using plain::ToInteger;
using plain::ToReal;
using plain::Wrap;

// ---- Tensors

struct Dense {
  DType type = DType::kF32;
  Dims shape;
  std::vector<Bits> elements;  // row-major
};

constexpr int64_t kMaxElements = int64_t{1} << 24;

int64_t CountOf(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

// The index of the n-th element.
Dims PlaceOf(absl::Span<const int64_t> shape, int64_t n) {
  Dims at(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; n /= shape[axis]) at[axis] = n % shape[axis];
  return at;
}

// -1 where out of bounds.
int64_t OffsetOf(absl::Span<const int64_t> shape, absl::Span<const int64_t> at) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (at[axis] < 0 || at[axis] >= shape[axis]) return -1;
    offset = offset * shape[axis] + at[axis];
  }
  return offset;
}

Tensor ToTensor(const Dense& dense) {
  Tensor tensor = *Tensor::Create(dense.type, dense.shape);
  char* element = static_cast<char*>(tensor.data());
  for (Bits bits : dense.elements) {
    Store(Scalar{dense.type, bits}, element);
    element += ByteSize(dense.type);
  }
  return tensor;
}

// ---- The graph

class Evaluator {
 public:
  Evaluator(const Op& op, const RunInputs& inputs)
      : op_(op), graph_(op.graph), inputs_(inputs), values_(op.graph.size()) {}

  absl::StatusOr<std::vector<Tensor>> Run() {
    NESTOR_RETURN_IF_ERROR(EvaluateAll(op_.ResultNodes()));
    std::vector<Tensor> results;
    for (const Result& result : op_.results) results.push_back(ToTensor(Of(result.node)));
    return results;
  }

  absl::optional<std::string> FirstUnsound(absl::Span<const ConstructorCall> calls) {
    std::vector<NodeId> nodes;
    for (int i = 0; i < graph_.size(); ++i) nodes.push_back(NodeId{i});
    if (!EvaluateAll(nodes).ok()) return absl::nullopt;
    for (const ConstructorCall& call : calls) {
      if (IsFloat(call.asked.type) && DependsOnForm(call)) continue;
      const auto want = Asked(call);
      if (!want) continue;
      const auto difference = FirstDifference(ToTensor(Of(call.given)), ToTensor(*want));
      if (difference) return absl::StrCat("node ", call.given.value, ": ", *difference);
    }
    return absl::nullopt;
  }

 private:
  absl::Status EvaluateAll(absl::Span<const NodeId> roots) {
    NESTOR_ASSIGN_OR_RETURN(binding_, Bind(SignatureOf(op_), inputs_));
    const std::vector<bool> live = Reachable(graph_, roots);
    for (int i = 0; i < graph_.size(); ++i) {
      if (live[i]) NESTOR_RETURN_IF_ERROR(Evaluate(NodeId{i}));
    }
    return absl::OkStatus();
  }

  // Float sums and products whose order the canonical form chooses.
  static bool DependsOnForm(const ConstructorCall& call) {
    const Scatter* scatter = absl::get_if<Scatter>(&call.asked.op);
    return scatter != nullptr && scatter->op <= ReduceOp::kProd;
  }

  // nullopt where it has no value.
  absl::optional<Dense> Asked(const ConstructorCall& call) {
    Dense y;
    y.type = call.asked.type;
    const auto shape = EvaluateShape(graph_.pool(), call.asked.shape, binding_, "");
    if (!shape.ok()) return absl::nullopt;
    y.shape = *shape;
    y.elements.resize(CountOf(y.shape));
    if (const Reduce* reduce = absl::get_if<Reduce>(&call.asked.op)) {
      ReduceAxes(*reduce, call.axes, y);
    } else {
      absl::visit([&](const auto& node) { Fill(node, y); }, call.asked.op);
    }
    const bool defined = !overflow_;
    overflow_ = false;
    return defined ? absl::make_optional(y) : absl::nullopt;
  }

  const Dense& Of(NodeId id) const { return values_[id.value]; }

  absl::Status Evaluate(NodeId id) {
    Dense& y = values_[id.value];
    y.type = graph_.type(id);
    const std::string name = absl::StrCat("op ", op_.name, ": node ", id.value);
    NESTOR_ASSIGN_OR_RETURN(y.shape,
                            EvaluateShape(graph_.pool(), graph_.shape(id), binding_, name));
    NESTOR_ASSIGN_OR_RETURN(const int64_t count, NumElements(y.shape));
    if (count > kMaxElements)
      return absl::ResourceExhaustedError(absl::StrCat(name, " is too large"));
    y.elements.resize(count);
    absl::visit([&](const auto& node) { Fill(node, y); }, graph_[id].op);
    if (overflow_)
      return absl::InvalidArgumentError(absl::StrCat(name, ": an index expression overflows"));
    return absl::OkStatus();
  }

  // Sets every element of y to f of its index.
  template <class F>
  static void ForEach(Dense& y, F f) {
    for (size_t n = 0; n < y.elements.size(); ++n)
      y.elements[n] = f(PlaceOf(y.shape, static_cast<int64_t>(n)));
  }

  void Fill(const Input& node, Dense& y) {
    const TensorView& view = inputs_.tensors.at(node.name);
    if (op_.FindArgument(node.name)->shape_only) return;
    ForEach(y, [&](const Dims& at) { return At(view, at).bits; });
  }
  void Fill(const Param& node, Dense& y) { y.elements[0] = binding_.params.at(node.name).bits; }
  void Fill(const Constant& node, Dense& y) { y.elements[0] = node.value.bits; }

  void Fill(const Index& node, Dense& y) {
    ForEach(y, [&](const Dims& at) {
      const auto value = Value(node.expr, at);
      overflow_ |= !value;
      return value ? static_cast<Bits>(*value) : 0;
    });
  }

  void Fill(const Reindex& node, Dense& y) {
    const Dense& x = Of(node.x);
    ForEach(y, [&](const Dims& at) {
      bool inside = true;
      for (IndexId condition : node.conditions) inside &= Value(condition, at).value_or(0) != 0;
      const int64_t offset = Locate(node.place, at, x);
      return inside && offset >= 0 ? x.elements[offset] : Of(node.fill).elements[0];
    });
  }

  void Fill(const Map& node, Dense& y) {
    const DType operand = graph_.type(node.args.back());
    for (size_t n = 0; n < y.elements.size(); ++n) {
      Bits operands[3] = {};
      for (size_t i = 0; i < node.args.size(); ++i) operands[i] = Of(node.args[i]).elements[n];
      y.elements[n] = ApplyScalarOp(node.op, operand, y.type, operands);
    }
  }

  void Fill(const Reduce& node, Dense& y) {
    const Dense& x = Of(node.x);
    const absl::Span<const int64_t> reduced = absl::MakeSpan(x.shape).last(node.count);
    const int64_t count = CountOf(reduced);
    for (size_t n = 0; n < y.elements.size(); ++n) {
      const absl::Span<const Bits> row = absl::MakeSpan(x.elements).subspan(n * count, count);
      y.elements[n] = IsArg(node.op) ? Arg(node.op, x.type, row) : Fold(node.op, x.type, row);
    }
  }

  // Reduces over `axes`, in their order: each element gathers its row first.
  void ReduceAxes(const Reduce& node, const std::vector<int>& axes, Dense& y) {
    const Dense& x = Of(node.x);
    Dims extents;
    for (int axis : axes) extents.push_back(x.shape[axis]);
    const int64_t count = CountOf(extents);
    ForEach(y, [&](const Dims& at) {
      std::vector<Bits> row;
      for (int64_t n = 0; n < count; ++n) {
        const Dims inner = PlaceOf(extents, n);
        Dims place = at;
        // The reduced axes take their places again, ascending.
        for (size_t axis = 0; axis < x.shape.size(); ++axis) {
          const auto listed = std::find(axes.begin(), axes.end(), static_cast<int>(axis));
          if (listed != axes.end())
            place.insert(place.begin() + axis, inner[listed - axes.begin()]);
        }
        row.push_back(x.elements[OffsetOf(x.shape, place)]);
      }
      return IsArg(node.op) ? Arg(node.op, x.type, row) : Fold(node.op, x.type, row);
    });
  }

  void Fill(const Scatter& node, Dense& y) {
    const Dense& x = Of(node.x);
    const DType wide = WideType(node.op, y.type);
    y.elements.assign(y.elements.size(), IdentityOf(node.op, wide));
    for (size_t n = 0; n < x.elements.size(); ++n) {
      const int64_t offset = Locate(node.place, PlaceOf(x.shape, static_cast<int64_t>(n)), y);
      if (offset < 0) continue;
      const Bits operands[] = {y.elements[offset], Cast(x.type, wide, x.elements[n])};
      y.elements[offset] = ApplyScalarOp(StepOf(node.op), wide, wide, operands);
    }
    for (Bits& element : y.elements) element = Cast(wide, y.type, element);
  }

  // A carry is empty at first, and then set to the bodies, as often as there are steps: a step is
  // right once those before it are.
  void Fill(const Carry&, Dense&) {}
  void Fill(const Recurrence& node, Dense& y) {
    const Steps steps = StepsOf(graph_, node);
    const Carry& carry = *graph_.As<Carry>(node.carries[0]);
    const int64_t count = Of(node.carries[0]).shape[carry.axis];
    for (int64_t step = 0; step < count; ++step) {
      for (size_t k = 0; k < node.carries.size(); ++k)
        values_[node.carries[k].value] = Of(node.bodies[k]);
      for (NodeId id : steps.nodes) NESTOR_CHECK(Evaluate(id).ok(), op_.name);
    }
    y.elements = Of(node.x).elements;
  }

  // ---- Reductions

  static ScalarOp StepOf(ReduceOp op) {
    switch (op) {
      case ReduceOp::kSum: return ScalarOp::kAdd;
      case ReduceOp::kProd: return ScalarOp::kMul;
      case ReduceOp::kMax: return ScalarOp::kMax;
      case ReduceOp::kMin: return ScalarOp::kMin;
      case ReduceOp::kAny: return ScalarOp::kOr;
      default: return ScalarOp::kAnd;
    }
  }

  static DType WideType(ReduceOp op, DType type) {
    const bool rounds = op == ReduceOp::kSum || op == ReduceOp::kProd;
    return rounds && IsFloat(type) && ByteSize(type) == 2 ? DType::kF32 : type;
  }

  static Bits IdentityOf(ReduceOp op, DType type) {
    const long double inf = std::numeric_limits<long double>::infinity();
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAny: return 0;
      case ReduceOp::kMax:
        return IsFloat(type) ? EncodeFloat(type, -inf) : Wrap(type, LeastOf(type));
      case ReduceOp::kMin:
        return IsFloat(type) ? EncodeFloat(type, inf) : Wrap(type, GreatestOf(type));
      default: return IsFloat(type) ? EncodeFloat(type, 1) : 1;
    }
  }

  static Bits Fold(ReduceOp op, DType type, absl::Span<const Bits> row) {
    const DType wide = WideType(op, type);
    Bits sum = IdentityOf(op, wide);
    for (Bits element : row) {
      const Bits operands[] = {sum, Cast(type, wide, element)};
      sum = ApplyScalarOp(StepOf(op), wide, wide, operands);
    }
    return Cast(wide, type, sum);
  }

  // The index of the first NaN, else of the first value that no other one surpasses.
  static Bits Arg(ReduceOp op, DType type, absl::Span<const Bits> row) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (std::isnan(ToReal(type, row[i]))) return i;
    }
    for (size_t i = 0; i < row.size(); ++i) {
      bool surpassed = false;
      for (Bits other : row) {
        const long double a = ToReal(type, row[i]), b = ToReal(type, other);
        surpassed |= op == ReduceOp::kArgmax ? b > a : b < a;
      }
      if (!surpassed) return i;
    }
    return static_cast<Bits>(int64_t{-1});
  }

  // ---- Index expressions

  // The offset in `x`, -1 where out of bounds.
  int64_t Locate(const IndexList& place, const Dims& at, const Dense& x) {
    Dims index;
    bool defined = true;
    for (IndexId e : place) {
      const auto value = Value(e, at);
      defined &= value.has_value();
      index.push_back(value.value_or(0));
    }
    return defined ? OffsetOf(x.shape, index) : -1;
  }

  // nullopt where undefined; sets overflow_ where that is a Status.
  absl::optional<int64_t> Value(IndexId id, const Dims& at) {
    const IndexPool& pool = graph_.pool();
    const IndexNode& node = pool[id];
    Dims args;
    bool defined = true;
    for (IndexId arg : node.args) {
      const auto value = Value(arg, at);
      defined &= value.has_value();
      args.push_back(value.value_or(0));
    }
    if (!defined) return absl::nullopt;
    switch (node.kind) {
      case IndexKind::kConst: return node.value;
      case IndexKind::kVar: return at[node.value];
      case IndexKind::kSymbol: return binding_.Symbol(pool, id);
      case IndexKind::kLoad: {
        const Dense& tensor = values_[node.value];
        const int64_t offset = OffsetOf(tensor.shape, args);
        if (offset < 0) return absl::nullopt;
        const Int128 value = ToInteger(tensor.type, tensor.elements[offset]);
        if (value > GreatestOf(DType::kI64)) return absl::nullopt;
        return static_cast<int64_t>(value);
      }
      default: break;
    }
    const auto exact = Arithmetic(node.kind, args[0], args.size() > 1 ? args[1] : 0);
    if (!exact) return absl::nullopt;
    const bool fits = *exact >= LeastOf(DType::kI64) && *exact <= GreatestOf(DType::kI64);
    if (!fits) overflow_ |= pool.IsAffine(id);
    return fits ? absl::make_optional(static_cast<int64_t>(*exact)) : absl::nullopt;
  }

  static absl::optional<Int128> Arithmetic(IndexKind kind, Int128 a, Int128 b) {
    switch (kind) {
      case IndexKind::kAdd: return a + b;
      case IndexKind::kMul: return a * b;
      case IndexKind::kDiv:
        return b == 0 ? absl::nullopt : absl::make_optional(FloorQuotient(a, b));
      case IndexKind::kMod:
        return b == 0 ? absl::nullopt : absl::make_optional(a - b * FloorQuotient(a, b));
      case IndexKind::kMin: return a < b ? a : b;
      case IndexKind::kMax: return a < b ? b : a;
      case IndexKind::kLt: return a < b;
      case IndexKind::kLe: return a <= b;
      case IndexKind::kEq: return a == b;
      case IndexKind::kNe: return a != b;
      case IndexKind::kAnd: return a != 0 && b != 0;
      case IndexKind::kOr: return a != 0 || b != 0;
      case IndexKind::kNot: return a == 0;
      case IndexKind::kConst:
      case IndexKind::kVar:
      case IndexKind::kSymbol:
      case IndexKind::kLoad: break;
    }
    return absl::nullopt;
  }

  const Op& op_;
  const Graph& graph_;
  const RunInputs& inputs_;
  Binding binding_;
  std::vector<Dense> values_;  // by NodeId
  bool overflow_ = false;
};

}  // namespace

absl::StatusOr<std::vector<Tensor>> EvaluateGraph(const Op& op, const RunInputs& inputs) {
  return Evaluator(op, inputs).Run();
}

absl::optional<std::string> FirstUnsoundCall(const Op& op, absl::Span<const ConstructorCall> calls,
                                             const RunInputs& inputs) {
  return Evaluator(op, inputs).FirstUnsound(calls);
}

}  // namespace nestor
