// Builds an Op in C++, without text:
//
//   OpBuilder b("matmul");
//   IndexExpr M = b.Dimension("M"), K = b.Dimension("K"), N = b.Dimension("N");
//   TensorRef a = b.Input("a", DType::kF32, {M, K}), w = b.Input("w", DType::kF32, {K, N});
//   IndexExpr i = b.NewIndex("i"), j = b.NewIndex("j"), k = b.NewIndex("k");
//   b.Result("c", b.Define({i, j}, Sum({k}, a(i, k) * w(k, j))));
//   NESTOR_ASSIGN_OR_RETURN(Op op, b.Build());
//
// Everything means the same as in the notation (SEMANTICS 1-2), and is built by the same code
// (statement_builder.h): ranges follow from accesses, literals and index values take the type of
// the values that they meet, and the same program gives the same graph. Three differences: an index
// is its handle, so that names may repeat and an Expr may be used many times; `a > b` of indices is
// `b < a`; and integer arithmetic among indices happens before it meets a value, so that N / 2 is a
// floor division everywhere.
//
// The first misuse is kept and returned by Build() as InvalidArgument; calls after it have no
// effect. Handles are small values that must not outlive their builder. Not thread-safe.
#ifndef NESTOR_UOPS_BUILDER_H_
#define NESTOR_UOPS_BUILDER_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "uops/index_handle.h"
#include "uops/op.h"

namespace nestor {

namespace internal {
struct IndexVariable;
struct Statement;
}  // namespace internal

template <class T>
using EnableInteger = std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int>;

// An index, a dimension, an integer $param, an integer, or arithmetic on these.
struct IndexExpr {
  IndexExpr() { handle.error = "an index handle that was never set"; }
  template <class T, EnableInteger<T> = 0>
  IndexExpr(T constant) {
    handle.constant = static_cast<int64_t>(constant);
  }
  explicit IndexExpr(internal::IndexHandle h) : handle(std::move(h)) {}
  internal::IndexHandle handle;
};
// A comparison of index expressions, or several joined.
struct Condition {
  internal::IndexHandle handle;
};

// A value at each point: built by the functions below, given to Define or Scatter.
class Expr {
 public:
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Expr(T literal) : Expr(OfLiteral(literal)) {}
  // An index value: an i64, or the literal that a number is. A condition: a bool.
  Expr(const IndexExpr& index);
  Expr(const Condition& condition);
  // For the builder itself.
  const internal::ExprNodePtr& node() const { return node_; }
  explicit Expr(internal::ExprNodePtr node) : node_(std::move(node)) {}

 private:
  static Expr Literal(DType type, std::string text);
  static Expr Literal(double value);
  template <class T>
  static Expr OfLiteral(T value) {
    if constexpr (std::is_same_v<T, bool>) return Literal(DType::kBool, value ? "true" : "false");
    else if constexpr (std::is_integral_v<T>) return Literal(DType::kI64, std::to_string(value));
    else return Literal(static_cast<double>(value));
  }
  internal::ExprNodePtr node_;
};

// An element of a tensor.
class Access : public Expr {
 public:
  using Expr::Expr;
  // The value outside the tensor, instead of 0 or false: a literal or a $param.
  Access Or(const Expr& fill) const;
  // Gives the fill also where `condition` is false.
  Access If(const Condition& condition) const;
};

// An integer tensor's element, an integer literal or an index value, as an index.
IndexExpr AsIndex(const Expr& value);

// A subscript of an access: an index expression or an element of an integer tensor.
struct Place {
  // Conversions, so that x(i, 0, idx(i)) can be written.
  template <class T, EnableInteger<T> = 0>
  Place(T constant) : index(constant) {}
  Place(IndexExpr e) : index(std::move(e)) {}
  Place(const Expr& gathered) : index(AsIndex(gathered)) {}
  IndexExpr index;
};

// An argument or a defined tensor; as an Expr, an access without indices.
class TensorRef {
 public:
  TensorRef() = default;
  // x(i, j + 1): the element at these subscripts, one for each axis; 0 or false outside of the
  // tensor.
  template <class... Places>
  Access operator()(const Places&... places) const {
    return At({Place(places)...});
  }
  Access At(std::vector<Place> places) const;
  operator Expr() const { return At({}); }

 private:
  friend class OpBuilder;
  TensorRef(Graph* graph, NodeId node, std::string name)
      : graph_(graph), node_(node), name_(std::move(name)) {}
  Graph* graph_ = nullptr;
  NodeId node_;
  std::string name_;
};

#define NESTOR_INDEX_OPERATOR(Name) IndexExpr Name(const IndexExpr& a, const IndexExpr& b);
#define NESTOR_CONDITION_OPERATOR(Name) Condition Name(const IndexExpr& a, const IndexExpr& b);
#define NESTOR_VALUE_OPERATOR(Name) Expr Name(const Expr& a, const Expr& b);
#define NESTOR_BOTH(Name) NESTOR_INDEX_OPERATOR(Name) NESTOR_VALUE_OPERATOR(Name)
#define NESTOR_COMPARISON(Name) NESTOR_CONDITION_OPERATOR(Name) NESTOR_VALUE_OPERATOR(Name)
// clang-format off
NESTOR_BOTH(operator+) NESTOR_BOTH(operator-) NESTOR_BOTH(operator*) NESTOR_BOTH(operator/)
NESTOR_BOTH(operator%) NESTOR_BOTH(Min) NESTOR_BOTH(Max)
NESTOR_COMPARISON(operator<) NESTOR_COMPARISON(operator<=) NESTOR_COMPARISON(operator>)
NESTOR_COMPARISON(operator>=) NESTOR_COMPARISON(operator==) NESTOR_COMPARISON(operator!=)
NESTOR_VALUE_OPERATOR(operator&&) NESTOR_VALUE_OPERATOR(operator||) NESTOR_VALUE_OPERATOR(Pow)
#undef NESTOR_COMPARISON
#undef NESTOR_BOTH
#undef NESTOR_VALUE_OPERATOR
#undef NESTOR_CONDITION_OPERATOR
#undef NESTOR_INDEX_OPERATOR
IndexExpr operator-(const IndexExpr& a);
// clang-format on
Expr operator-(const Expr& a);
Condition operator&&(const Condition& a, const Condition& b);
Condition operator||(const Condition& a, const Condition& b);
Condition operator!(const Condition& a);
Expr operator!(const Expr& a);

// Any row of the scalar ops except a cast.
// Operands that have a default in the table may be left out. All have one type, except the
// condition of kSelect, a bool.
Expr Apply(ScalarOp op, std::vector<Expr> operands);
// `a` as `type`, by the rules of docs/semantics.md, section 3: floats round to nearest even; from
// float to integer truncates and saturates, and NaN gives 0; integers wrap.
Expr Cast(DType type, const Expr& a);
// c ? a : b at each point. A bool and two values of one type; both are computed.
inline Expr Where(const Expr& c, const Expr& a, const Expr& b) {
  return Apply(ScalarOp::kSelect, {c, a, b});
}
// Shorthands for often used rows of the table; the operand is a float, for Square any number.
inline Expr Exp(const Expr& a) { return Apply(ScalarOp::kExp, {a}); }
inline Expr Log(const Expr& a) { return Apply(ScalarOp::kLog, {a}); }
inline Expr Sqrt(const Expr& a) { return Apply(ScalarOp::kSqrt, {a}); }
inline Expr Rsqrt(const Expr& a) { return Apply(ScalarOp::kRsqrt, {a}); }
inline Expr Square(const Expr& a) { return Apply(ScalarOp::kSquare, {a}); }
inline Expr Tanh(const Expr& a) { return Apply(ScalarOp::kTanh, {a}); }

// Reductions; `indices` live in `body`. In Max({k}, Expr(k)) the body must be written as an Expr;
// else it is the greater of two indices.
// The result has the body's type; argmax and argmin give an i64, the row-major number of the first
// extremum within the range of `indices`. Any and All take and give bool.
Expr Reduce(ReduceOp op, std::vector<IndexExpr> indices, const Expr& body);
using Indices = std::initializer_list<IndexExpr>;
inline Expr Sum(Indices i, const Expr& body) { return Reduce(ReduceOp::kSum, i, body); }
inline Expr Prod(Indices i, const Expr& body) { return Reduce(ReduceOp::kProd, i, body); }
inline Expr Max(Indices i, const Expr& body) { return Reduce(ReduceOp::kMax, i, body); }
inline Expr Min(Indices i, const Expr& body) { return Reduce(ReduceOp::kMin, i, body); }
inline Expr Argmax(Indices i, const Expr& body) { return Reduce(ReduceOp::kArgmax, i, body); }
inline Expr Argmin(Indices i, const Expr& body) { return Reduce(ReduceOp::kArgmin, i, body); }
inline Expr Any(Indices i, const Expr& body) { return Reduce(ReduceOp::kAny, i, body); }
inline Expr All(Indices i, const Expr& body) { return Reduce(ReduceOp::kAll, i, body); }

// The default of a $param and the range that it must lie in: literals. As in the notation, a lower
// limit of -inf and an upper one of inf are none.
struct ParamLimits {
  absl::optional<Expr> value = {}, low = {}, high = {};
};

class OpBuilder {
 public:
  // `name` and all names below: words of the notation that are not reserved, each used once.
  explicit OpBuilder(absl::string_view name);
  ~OpBuilder();
  OpBuilder(const OpBuilder&) = delete;
  OpBuilder& operator=(const OpBuilder&) = delete;

  // ---- The signature.
  IndexExpr Dimension(absl::string_view name);  // must occur in an argument's shape
  // A tensor argument, of any rank. Extents are expressions of dimensions, integer $params and
  // integers; one that is just a dimension takes its value from the tensor given. ShapeInput: an
  // argument of which only the extents are read; its elements are never touched.
  TensorRef Input(absl::string_view name, DType type, const std::vector<IndexExpr>& shape);
  void ShapeInput(absl::string_view name, DType type, const std::vector<IndexExpr>& shape);
  // `name` with its "$". IndexParam: an i64.
  Expr Param(absl::string_view name, DType type, const ParamLimits& limits = {});
  IndexExpr IndexParam(absl::string_view name, const ParamLimits& limits = {});
  // A tensor that the op returns. An argument may be one under its own name. An op needs at least
  // one; their order is that of the calls.
  void Result(absl::string_view name, const TensorRef& tensor);
  // An op as this one's own gradient; see Op::gradient.
  void SetGradient(Op gradient);

  // ---- Statements.
  // An index whose range follows from the accesses, or is 0 .. extent-1.
  IndexExpr NewIndex(absl::string_view name);
  IndexExpr NewIndex(absl::string_view name, const IndexExpr& extent);
  // The tensor whose axes are `indices`, in order, with the value of `body` at each point. The body
  // must mention no index that is neither among these nor reduced.
  TensorRef Define(const std::vector<IndexExpr>& indices, const Expr& body);
  // Starts at op's identity; runs over every index that `places` or `body` mention.
  // By kSum, kProd, kMax or kMin. `places`: a subscript for each axis of `shape`; elements whose
  // place is outside are dropped.
  TensorRef Scatter(ReduceOp op, DType type, const std::vector<IndexExpr>& shape,
                    const std::vector<Place>& places, const Expr& body);
  // The results of `callee`; `bindings`: its $params (with "$") and dimensions.
  // Inlines a copy: `callee` need not outlive this. Its arguments must have the types and ranks of
  // `args`.
  std::vector<TensorRef> Call(const Op& callee, const std::vector<TensorRef>& args,
                              const std::vector<std::pair<std::string, Expr>>& bindings = {});

  // ---- Recurrences: y[t] = y[t - 1] + x[t] is
  //
  //   TensorRef before = b.Carry(DType::kF32, {N}, 0);
  //   TensorRef y = b.Define({t}, before(t - 1) + x(t));
  //   y = b.Settle({{before, y}}, {y})[0];
  //
  // A tensor to be read at earlier steps of its axis number `axis`: the subscript there is the
  // index of the step, which is alone on the left, minus a constant of at least 1 or an IndexParam
  // with such a limit; plus, if `backward`.
  TensorRef Carry(DType type, const std::vector<IndexExpr>& shape, int axis, bool backward = false);
  // The tensors that `tensors` are once each carry (first) is the tensor beside it (second), of its
  // type and shape. Tensors that are made of carries have no use anywhere else.
  std::vector<TensorRef> Settle(const std::vector<std::pair<TensorRef, TensorRef>>& equations,
                                const std::vector<TensorRef>& tensors);

  // The op so far, or the first misuse.
  // May be called again after more was added. The op does not refer to the builder.
  absl::StatusOr<Op> Build() const;

 private:
  absl::Status AddArgument(absl::string_view name, DType type, const std::vector<IndexExpr>& shape,
                           bool shape_only);
  absl::Status AddParam(absl::string_view name, DType type, const ParamLimits& limits);
  absl::Status BindCall(const Op& callee, const std::vector<TensorRef>& args,
                        const std::vector<std::pair<std::string, Expr>>& bindings,
                        std::vector<TensorRef>& results);
  absl::Status Claim(absl::string_view name, absl::string_view what);
  absl::StatusOr<std::vector<TensorRef>> SettleEquations(
      const std::vector<std::pair<TensorRef, TensorRef>>& equations,
      const std::vector<TensorRef>& tensors);
  TensorRef Build(internal::Statement statement);
  // The expression of `index`, which holds neither indices nor loads.
  absl::StatusOr<IndexId> ResolveExtent(const IndexExpr& index);
  absl::StatusOr<NodeId> NodeOf(const TensorRef& tensor) const;
  absl::Status CheckSignature() const;
  void Keep(const absl::Status& status, absl::string_view where);

  Op op_;
  absl::Status first_error_;
  std::vector<internal::IndexVariable> variables_;  // Var(i) of the handles
  std::vector<std::string> names_, dimensions_;
  int statements_ = 0;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_BUILDER_H_
