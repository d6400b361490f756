// The rows of the benchmark, a function for each family.
#ifndef NESTOR_BENCH_ROWS_H_
#define NESTOR_BENCH_ROWS_H_

#include <vector>

#include "bench/row.h"

namespace nestor::bench {

std::vector<Row> ChainRows();
std::vector<Row> NormalizationRows();  // softmax, gelu, layer_norm
std::vector<Row> GradientRows();
std::vector<Row> ReductionRows();
std::vector<Row> MovementRows();     // transpose, concat, gather
std::vector<Row> TypeRows();         // chains and reductions of other types than f32
std::vector<Row> ContractionRows();  // products of matrices
std::vector<Row> ConvolutionRows();  // and their gradients
std::vector<Row> AttentionRows();
std::vector<Row> RecurrenceRows();
std::vector<Row> ModelRows();  // steps of training and networks

// All of them, in this order.
std::vector<Row> AllRows();

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_ROWS_H_
