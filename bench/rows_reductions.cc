// The same elements summed along each axis: over the last the sum is within a
// vector, over the others vectors are summed, with accumulators in a row (middle) or
// a plane (first) of memory. The bytes written are 1/256 of those read.
#include "absl/strings/str_cat.h"
#include "bench/programs.h"
#include "bench/rows.h"
#include "bench/torch_peers.h"

namespace nestor::bench {

std::vector<Row> ReductionRows() {
  std::vector<Row> rows;
  const struct {
    const char* name;
    int axis;
  } kAxes[] = {{"last", 2}, {"first", 0}, {"middle", 1}};
  for (const auto& [name, axis] : kAxes) {
    Row row;
    row.name = absl::StrCat("sum over the ", name, " axis f32 256^3");
    row.buffers = {{"x", DType::kF32, {256, 256, 256}},
                   {"y", DType::kF32, {256, 256}, Fill::kOutput}};
    row.steps = {{SumOver(axis, DType::kF32)}};
    row.traffic = {{{"x"}, {}}};
    row.peers = {TorchSum(axis)};
    row.goal = {OfLimit(0.9)};
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace nestor::bench
