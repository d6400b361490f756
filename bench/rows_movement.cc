// Programs that only move elements: their limit is a copy of as many bytes. Where the inputs are
// not one array as large as the output, the copy reads an extra array of that size.
#include "bench/programs.h"
#include "bench/rows.h"
#include "bench/torch_peers.h"

namespace nestor::bench {
namespace {

Row TransposeRow() {
  Row row;
  row.name = "transpose f32 4096x4096";
  row.buffers = {{"x", DType::kF32, {4096, 4096}}, {"y", DType::kF32, {4096, 4096}, Fill::kOutput}};
  row.steps = {{Transpose()}};
  row.traffic = {{{"x"}, {"y"}}};
  row.peers = {TorchTranspose()};
  row.goal = {OfLimit(0.5)};
  return row;
}

Row ConcatRow() {
  Row row;
  row.name = "concat f32 4096x(1024+1024)";
  row.buffers = {{"a", DType::kF32, {4096, 1024}},
                 {"b", DType::kF32, {4096, 1024}},
                 {"as_large", DType::kF32, {4096, 2048}},
                 {"y", DType::kF32, {4096, 2048}, Fill::kOutput}};
  row.steps = {{Concat()}};
  row.traffic = {{{"as_large"}, {"y"}}};
  row.peers = {TorchConcat()};
  row.goal = {OfLimit(0.8)};
  return row;
}

// Every row once, in random order.
Row GatherRow() {
  Row row;
  row.name = "gather of rows f32 16384x1024";
  row.buffers = {{"x", DType::kF32, {16384, 1024}},
                 {"ids", DType::kI64, {16384}, Fill::kPermutation},
                 {"y", DType::kF32, {16384, 1024}, Fill::kOutput}};
  row.steps = {{GatherRows()}};
  row.traffic = {{{"x"}, {"y"}}};
  row.peers = {TorchGatherRows()};
  row.goal = {OfLimit(0.8)};
  return row;
}

}  // namespace

std::vector<Row> MovementRows() { return {TransposeRow(), ConcatRow(), GatherRow()}; }

}  // namespace nestor::bench
