// The micro-op graph: what a program computes, as immutable, hash-consed nodes.
//
// Nodes are typed by the shape of their operands and are in topological order: a node's
// operands have smaller ids. Two structurally equal nodes of a graph are one node (constants
// compare by bits).
//
// Constructors check types and shapes (a mismatch is a broken invariant: the
// front ends check what the caller wrote) and keep a canonical form:
//  - a reindex that moves nothing is its operand; a reindex that only repeats or
//    permutes (never out of bounds) composes with the reindex below it;
//  - nothing is computed once per point of an axis that it does not depend on:
//    elementwise ops and reductions run on the axes that their operands use, and
//    the result is repeated;
//  - a reduction runs over the trailing axes, a scatter's axes are in the order in which its place
//    mentions them.
// Printing and parsing rely on this: programs that are written differently but do the same
// point-by-point work have the same graph.
//
// A Graph is copyable (ids stay valid in the copy). Not thread-safe while
// building; const use from many threads is fine.
#ifndef NESTOR_UOPS_GRAPH_H_
#define NESTOR_UOPS_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "absl/types/variant.h"
#include "uops/dtype.h"
#include "uops/index/index_expr.h"
#include "uops/scalar_op.h"

namespace nestor {

// A node of a graph, by its number.
struct NodeId {
  int32_t value = -1;
  bool valid() const { return value >= 0; }
  friend bool operator==(NodeId a, NodeId b) { return a.value == b.value; }
  friend bool operator!=(NodeId a, NodeId b) { return a.value != b.value; }
  friend bool operator<(NodeId a, NodeId b) { return a.value < b.value; }
  template <class H>
  friend H AbslHashValue(H h, NodeId id) {
    return H::combine(std::move(h), id.value);
  }
};

using NodeList = absl::InlinedVector<NodeId, 3>;
using Shape = IndexList;  // extents: index expressions over symbols

enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin, kArgmax, kArgmin, kAny, kAll };

// "sum", "argmax", ..: the name in the notation.
absl::string_view Name(ReduceOp op);
// How an accumulation is written before its "=": "+", "*", or the name, as in `y max= x`.
absl::string_view AccumulationSign(ReduceOp op);
absl::optional<ReduceOp> ReduceOpByName(absl::string_view name);
inline bool IsArg(ReduceOp op) { return op == ReduceOp::kArgmax || op == ReduceOp::kArgmin; }
// The value that the reduction starts from; REQUIRES: !IsArg(op).
Scalar Identity(ReduceOp op, DType type);
// nullopt where `op` does not take elements of `type`.
absl::optional<DType> ReduceResultType(ReduceOp op, DType type);
// The binary op that one step of sum, prod, max, min, any, all is.
ScalarOp StepOp(ReduceOp op);

// ---- The micro-ops. Where a node holds index expressions, Var(i) is the index
// along axis i of: the node itself (Index, Reindex), its operand (Scatter).

struct Input {  // a tensor argument
  std::string name;
  template <class H>
  friend H AbslHashValue(H h, const Input& n) {
    return H::combine(std::move(h), n.name);
  }
};
struct Param {       // a $param used as a value: bool or float, or an integer as a fill; rank 0
  std::string name;  // with its "$"
  template <class H>
  friend H AbslHashValue(H h, const Param& n) {
    return H::combine(std::move(h), n.name);
  }
};
struct Constant {  // rank 0
  Scalar value;
  template <class H>
  friend H AbslHashValue(H h, const Constant& n) {
    return H::combine(std::move(h), n.value);
  }
};
struct Index {  // the i64 value of an expression at each point
  IndexId expr;
  template <class H>
  friend H AbslHashValue(H h, const Index& n) {
    return H::combine(std::move(h), n.expr);
  }
};
struct Reindex {  // y[i..] = x[place(i..)], or fill outside x or where a condition is false
  NodeId x;
  IndexList place;
  NodeId fill;  // a Constant or Param of x's type
  IndexList conditions;
  template <class H>
  friend H AbslHashValue(H h, const Reindex& n) {
    return H::combine(std::move(h), n.x, n.place, n.fill, n.conditions);
  }
};
struct Map {  // a scalar op on equal shapes
  ScalarOp op;
  NodeList args;
  int64_t tag = 0;  // of a copy that ends an op with its own gradient, else 0
  template <class H>
  friend H AbslHashValue(H h, const Map& n) {
    return H::combine(std::move(h), n.op, n.args, n.tag);
  }
};
struct Reduce {  // over the last `count` axes of x, row-major
  ReduceOp op;
  NodeId x;
  int count;
  template <class H>
  friend H AbslHashValue(H h, const Reduce& n) {
    return H::combine(std::move(h), n.op, n.x, n.count);
  }
};
struct Scatter {  // y starts at op's identity, then y[place(i..)] op= x[i..]
  ReduceOp op;    // sum, prod, max, min
  NodeId x;
  IndexList place;
  template <class H>
  friend H AbslHashValue(H h, const Scatter& n) {
    return H::combine(std::move(h), n.op, n.x, n.place);
  }
};

// A recurrence (recurrence.h) is a system of equations: a tensor at one step of an axis is computed
// from tensors at earlier steps. A Carry is a tensor at earlier steps inside the equations; a
// Recurrence is a tensor that they define, seen from outside.
struct Carry {
  int64_t number;  // tells the carries of a graph apart
  int axis;        // along which it is stepped
  bool backward;   // "earlier" is a greater index
  template <class H>
  friend H AbslHashValue(H h, const Carry& n) {
    return H::combine(std::move(h), n.number, n.axis, n.backward);
  }
};
struct Recurrence {  // x, where carries[k] is bodies[k] at each earlier step
  NodeId x;
  NodeList carries, bodies;
  template <class H>
  friend H AbslHashValue(H h, const Recurrence& n) {
    return H::combine(std::move(h), n.x, n.carries, n.bodies);
  }
};

using MicroOp =
    absl::variant<Input, Param, Constant, Index, Reindex, Map, Reduce, Scatter, Carry, Recurrence>;

// Its op, and what follows from it: the type and the shape of the tensor that it computes.
struct Node {
  MicroOp op;
  DType type;
  Shape shape;
  template <class H>
  friend H AbslHashValue(H h, const Node& n) {
    return H::combine(std::move(h), n.op, n.type, n.shape);
  }
};
bool operator==(const Node& a, const Node& b);

// Ids are handed out in the order 0, 1, 2, ..; none is ever removed, so a node that nothing uses
// stays. An Add.. that gives an equal node returns its id. Pointers and references to nodes are
// valid until the next Add... REQUIRES of all: ids of operands are this graph's.
class Graph {
 public:
  // In the source, so that not each file that copies or ends one compiles them anew.
  Graph();
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  // Leaves. A Param and a Constant have rank 0. Two inputs of one name, type and shape are one
  // node.
  NodeId AddInput(absl::string_view name, DType type, Shape shape);
  NodeId AddParam(absl::string_view name, DType type);
  NodeId AddConstant(Scalar value);
  // `expr` over the axes of `shape`: a node of type i64.
  NodeId AddIndex(IndexId expr, Shape shape);
  // The result has x's type and `shape`; `place` has an expression for each axis of x, over Var(i)
  // of the result's axes, as have `conditions`. `fill` may be left invalid: zero or false.
  //
  //   y[i, j] = x[j, i + 1]    x of rank 2, shape {N, M}, place {Var(1), Var(0) + 1}
  NodeId AddReindex(NodeId x, Shape shape, IndexList place, NodeId fill = NodeId(),
                    IndexList conditions = {});
  // All `args` have the result's shape. `target`: the type of a cast, else ignored.
  NodeId AddMap(ScalarOp op, absl::Span<const NodeId> args, DType target = DType::kF32);
  // `axes` are distinct; the reduction runs over them in the order listed. The result has the other
  // axes, in order; its type is ReduceResultType of x's.
  NodeId AddReduce(ReduceOp op, NodeId x, absl::Span<const int> axes);
  // The result has x's type and `shape`; `place` has an expression for each axis of it, over Var(i)
  // of x's axes.
  //
  //   y[ids[n], d] += x[n, d]    shape {V, D}, place {ids[Var(0)], Var(1)}
  NodeId AddScatter(ReduceOp op, NodeId x, Shape shape, IndexList place);
  // A tensor of a recurrence that is yet to be made, different from any other node:
  // see recurrence.h.
  NodeId AddCarry(DType type, Shape shape, int axis, bool backward);
  // REQUIRES: the equations are canonical (recurrence.h makes them so), x is one of their steps.
  NodeId AddRecurrence(NodeId x, absl::Span<const NodeId> carries, absl::Span<const NodeId> bodies);
  // x as the result of call number `tag`, from 1 on, of an op with a gradient of its own; 0: a
  // copy, where the number no longer matters.
  NodeId AddTaggedCopy(NodeId x, int64_t tag);

  // Shorthands.
  NodeId AddCast(NodeId x, DType type);  // x itself where it has the type
  // x repeated along the axes of `shape` that are not in `axes`; axis j of x
  // becomes axis axes[j].
  NodeId AddBroadcast(NodeId x, Shape shape, absl::Span<const int> axes);
  // The rank-0 `x` at every point of `shape`.
  NodeId AddSplat(NodeId x, Shape shape) { return AddBroadcast(x, std::move(shape), {}); }
  // The place that leaves each of `rank` axes where it is.
  IndexList IdentityPlace(size_t rank);

  // REQUIRES: `id` is a node of this graph.
  const Node& operator[](NodeId id) const { return nodes_[id.value]; }
  DType type(NodeId id) const { return nodes_[id.value].type; }
  const Shape& shape(NodeId id) const { return nodes_[id.value].shape; }
  int rank(NodeId id) const { return static_cast<int>(nodes_[id.value].shape.size()); }
  int size() const { return static_cast<int>(nodes_.size()); }
  // The node's op if it is of that kind, else null.
  template <class Kind>
  const Kind* As(NodeId id) const {
    return absl::get_if<Kind>(&nodes_[id.value].op);
  }
  // The node equal to `node`, if there is one.
  NodeId Find(const Node& node) const;
  // One Recurrence of each system of equations, in the order in which they came.
  const std::vector<NodeId>& recurrences() const { return recurrences_; }

  IndexPool& pool() { return pool_; }
  const IndexPool& pool() const { return pool_; }

 private:
  using SameHash = absl::InlinedVector<NodeId, 2>;

  NodeId Intern(MicroOp op, DType type, Shape shape);
  NodeId FindIn(const SameHash& ids, const Node& node) const;
  // The axes that x's value depends on, judged by its own node alone.
  std::vector<int> UsedAxes(NodeId x) const;
  // x, which depends on `axes` only, as a node that has only those axes.
  NodeId Restrict(NodeId x, absl::Span<const int> axes);
  bool NeverOutOfBounds(NodeId x, const Shape& shape, const IndexList& place) const;
  NodeId Compose(const Reindex& inner, Shape shape, const IndexList& place);
  NodeId PermuteOperands(NodeId x);
  NodeId ReduceNothing(ReduceOp op, NodeId x);
  NodeId FoldConstant(ScalarOp op, absl::Span<const NodeId> args, DType result);

  IndexPool pool_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<size_t, SameHash> interned_;  // by the hash of the node
  std::vector<NodeId> recurrences_;
  int64_t carries_ = 0;
};

// Calls `visit` on each operand of a node, including tensors that its index expressions load from.
void VisitOperands(const Graph& graph, NodeId id, absl::FunctionRef<void(NodeId)> visit);

// By id, whether one of the given nodes depends on it, themselves included. `cut`: nodes whose
// operands do not count.
std::vector<bool> Reachable(const Graph& graph, absl::Span<const NodeId> from,
                            absl::Span<const NodeId> cut = {});

// How one node is rebuilt from images of its parts.
struct Rebuilding {
  absl::FunctionRef<NodeId(NodeId)> image;    // of an operand
  absl::FunctionRef<IndexId(IndexId)> index;  // of an index expression, loads included
  absl::FunctionRef<int64_t(int64_t)> tag;    // of a tagged copy
};
// The node of `to` that does with the images what `id` does with its operands in `from`, which may
// be the same graph. REQUIRES: it is no Input, Param, Carry or Recurrence.
NodeId Rebuild(const Graph& from, NodeId id, Graph& to, const Rebuilding& rebuilding);

// Rebuilds the nodes that `roots` of `from` depend on in `to` and returns the
// images of the roots.
struct ImportLeaves {
  // The image of an Input or Param of `from`, and of the nodes in `cut`.
  absl::FunctionRef<NodeId(NodeId)> leaf;
  // The image of from's symbol with that number; nullopt: the same name.
  absl::FunctionRef<absl::optional<IndexId>(int64_t)> symbol;
  // The tag in `to` of a tagged copy.
  absl::FunctionRef<int64_t(int64_t)> tag;
  // Nodes whose images are given by `leaf`; their operands are not imported.
  absl::Span<const NodeId> cut = {};
};
std::vector<NodeId> ImportNodes(const Graph& from, absl::Span<const NodeId> roots, Graph& to,
                                const ImportLeaves& leaves);

// True where the roots are the same programs: structurally equal, with inputs and symbols compared
// by name. Works on graphs of any depth.
bool SameStructure(const Graph& a, absl::Span<const NodeId> roots_a, const Graph& b,
                   absl::Span<const NodeId> roots_b);

}  // namespace nestor

#endif  // NESTOR_UOPS_GRAPH_H_
