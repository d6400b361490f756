// Constructors for adjoint expressions. They are exact in real arithmetic and keep gradients lean:
// signs float outwards, factors that a sum does not run over leave it, common divisors are taken
// out, and where a product is a value that the forward program computes already, that value is
// used. Thanks to the last, the gradient of softmax depends on its result alone.
#ifndef NESTOR_AUTODIFF_ALGEBRA_H_
#define NESTOR_AUTODIFF_ALGEBRA_H_

#include "absl/types/span.h"
#include "uops/graph.h"

namespace nestor {

class Algebra {
 public:
  // Nodes of `graph` below `forward_size` are the forward program's.
  Algebra(Graph& graph, int forward_size) : graph_(graph), forward_size_(forward_size) {}

  // Operands are floats of one type and shape.
  NodeId Neg(NodeId a);
  NodeId Add(NodeId a, NodeId b);
  NodeId Mul(NodeId a, NodeId b);
  NodeId Div(NodeId a, NodeId b);
  // The sum of x over `axes`; the others stay in order.
  NodeId SumOut(NodeId x, absl::Span<const int> axes);
  // `value` at every point of `shape`.
  NodeId Splat(double value, DType type, const Shape& shape);

 private:
  // If x is (a repetition of) op(..): its operands, repeated likewise.
  bool Match(NodeId x, ScalarOp op, NodeList& operands);
  // A value of the op itself, not one that the gradient has made.
  bool IsForward(NodeId x) const { return x.value < forward_size_; }
  NodeId ForwardQuotient(NodeId numerator, NodeId divisor);
  NodeId Reused(NodeId quotient, NodeId factor);
  // Whether x may differ along one of the axes.
  bool DependsOn(NodeId x, absl::Span<const int> axes) const;

  Graph& graph_;
  int forward_size_;
};

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_ALGEBRA_H_
