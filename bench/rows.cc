// The table of contents of the benchmark.
#include "bench/rows.h"

#include <iterator>

namespace nestor::bench {

std::vector<Row> AllRows() {
  std::vector<Row> all;
  for (const auto family :
       {ChainRows, NormalizationRows, GradientRows, ReductionRows, MovementRows, TypeRows,
        ContractionRows, ConvolutionRows, AttentionRows, RecurrenceRows, ModelRows}) {
    std::vector<Row> rows = family();
    std::move(rows.begin(), rows.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace nestor::bench
