// The product of the others is not the product divided by the element: that is 0/0 for a zero, and
// wrong where the product overflows or vanishes. Prefix and suffix products need no division and
// are linear in time (as for arrays in general).
//
// Along one axis the others are those before and those after: two recurrences, one forward, one
// backward. With several axes this is done along the last one for each row, and then each row's
// product is one factor among those of the other rows.
//
//   x      2   3   5        before  1   2   6       after  15  5   1       others  15  10  6
#include "autodiff/product_of_others.h"

#include "uops/invariant.h"
#include "uops/mutant.h"
#include "uops/recurrence.h"

namespace nestor {
namespace {

NodeId Times(Graph& graph, NodeId a, NodeId b) { return graph.AddMap(ScalarOp::kMul, {a, b}); }

// For each element, the product of the elements before it along the last axis, or of those after
// it; 1 where there are none.
NodeId ProductOnOneSide(Graph& graph, NodeId x, bool after) {
  const Shape shape = graph.shape(x);
  const int axis = graph.rank(x) - 1;
  const NodeId product = graph.AddCarry(graph.type(x), shape, axis, after);
  const NodeId one = graph.AddConstant(Identity(ReduceOp::kProd, graph.type(x)));
  IndexList neighbour = graph.IdentityPlace(shape.size());
  neighbour[axis] = graph.pool().Add(neighbour[axis], graph.pool().Const(after ? 1 : -1));
  const auto at_neighbour = [&](NodeId of) { return graph.AddReindex(of, shape, neighbour, one); };
  const NodeId body = Times(graph, at_neighbour(product), at_neighbour(x));
  return Settler(graph, {{product, body}}).Settle(body);
}

// The product over the last `count` axes of all elements but each one itself. In a row these are
// the products before it and after it; with several axes, also the whole products of the other
// rows, which is the same problem with one axis less.
NodeId OfOneType(Graph& graph, NodeId x, int count) {
  const NodeId after = ProductOnOneSide(graph, x, true);
  const NodeId before = ProductOnOneSide(graph, x, false);
  const NodeId in_row =
      NESTOR_MUTANT("factors_before_left_out") ? after : Times(graph, before, after);
  if (count == 1) return in_row;
  const int last = graph.rank(x) - 1;
  const NodeId other_rows =
      OfOneType(graph, graph.AddReduce(ReduceOp::kProd, x, {last}), count - 1);
  const Shape shape = graph.shape(x);
  const NodeId spread = graph.AddReindex(other_rows, shape, graph.IdentityPlace(last));
  return Times(graph, spread, in_row);
}

}  // namespace

NodeId ProductOfOthers(Graph& graph, NodeId x, int count) {
  NESTOR_CHECK(count >= 1 && count <= graph.rank(x), "a product of no axis");
  const DType type = graph.type(x), wide = AccumulatorType(type);
  return graph.AddCast(OfOneType(graph, graph.AddCast(x, wide), count), type);
}

}  // namespace nestor
