// The derivative of a product by one of its factors: the product of the others.
#ifndef NESTOR_AUTODIFF_PRODUCT_OF_OTHERS_H_
#define NESTOR_AUTODIFF_PRODUCT_OF_OTHERS_H_

#include "uops/graph.h"

namespace nestor {

// For each element of x, the product of all others whose subscripts differ from its own only on the
// last `count` axes. The result has x's type and shape, is right for any number of zeros, and takes
// time linear in the number of elements. Narrow floats are multiplied in f32 and rounded once.
// REQUIRES: 1 <= count <= rank of x, whose type is a float.
NodeId ProductOfOthers(Graph& graph, NodeId x, int count);

}  // namespace nestor

#endif  // NESTOR_AUTODIFF_PRODUCT_OF_OTHERS_H_
