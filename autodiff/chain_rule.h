// The chain rule for scalar ops: multiplies the adjoint of an elementwise value by the value's
// partial derivative with respect to one operand.
//
// An adjoint that passed a select, a mask, a fill or a tie is 0 where its value did not matter.
// There the partial derivative may be inf or NaN, and then the product must be mulz, which is 0
// where a factor is 0. So each adjoint carries an AdjointMask, which says what it has passed.
#ifndef NESTOR_AUTODIFF_CHAIN_RULE_H_
#define NESTOR_AUTODIFF_CHAIN_RULE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "autodiff/algebra.h"
#include "uops/graph.h"
#include "uops/op.h"

namespace nestor {

// The masks that an adjoint has passed: something that makes it 0 where its value did not matter,
// and, on the way back through a gradient, a mulz, after which it need not be 0 there.
enum AdjointMask : uint8_t { kUnmasked = 0, kZeroed = 1, kUnbridled = 2 };

// An op that computes g times the derivative of `scalar_op` with respect to one operand. Its
// arguments have rank 0: the operands, the value y of `scalar_op`, and the adjoint g of y. `type`
// is the type of the last operand, `result` that of y. Made at first use and kept; thread-safe.
// REQUIRES: the row of `scalar_op` has that derivative.
const Op& DerivativeOf(ScalarOp scalar_op, int operand, DType type, DType result);

class ChainRule {
 public:
  // REQUIRES: `algebra` builds nodes of `graph`, and both outlive this.
  ChainRule(Graph& graph, Algebra& algebra) : graph_(graph), algebra_(algebra) {}

  // Applies the derivative's rank-0 graph to whole tensors. Values that carry the adjoint are built
  // through the algebra, or multiplied by mulz.
  NodeId Apply(const Op& derivative, absl::Span<const NodeId> args, NodeId y, NodeId g,
               uint8_t mask);

  // Whether the product of x[0] and x[1] must be mulz, where x[carrier] carries the adjoint.
  bool NeedsMulz(const NodeList& x, int carrier, uint8_t mask);

 private:
  bool IsConstant(NodeId x) const;
  bool MayBeNonFinite(NodeId x);
  NodeId Carried(const Map& map, const NodeList& x, int carrier, DType type, uint8_t mask);

  Graph& graph_;
  Algebra& algebra_;
  std::vector<bool> non_finite_;  // by node, up to the last asked about
};

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_CHAIN_RULE_H_
