// Products of matrices: squares from the first cache to memory, few rows, one row, few
// columns, many small ones. They are bound by their multiply-adds, except for the product with one
// row, which uses each element of the matrix once and so is bound by reading it.
#include "absl/strings/str_cat.h"
#include "bench/onednn_contractions.h"
#include "bench/openblas_peers.h"
#include "bench/programs.h"
#include "bench/rows.h"
#include "bench/torch_peers.h"

namespace nestor::bench {
namespace {

Row ProductRow(int64_t m, int64_t k, int64_t n) {
  Row row;
  row.name = absl::StrCat("matmul f32 ", m, "x", k, "x", n);
  row.buffers = {{"a", DType::kF32, {m, k}},
                 {"b", DType::kF32, {k, n}},
                 {"c", DType::kF32, {m, n}, Fill::kOutput}};
  row.steps = {{.notation = MatrixProduct(), .bound = {"b"}}};
  row.multiply_adds = static_cast<double>(m * k * n);
  row.peers = OneDnnProducts();
  row.peers.push_back(OpenBlasProduct);
  row.goal = {TimesPeer(kBestPeer, 1.0)};
  return row;
}

Row OfOneRow(Row row) {
  row.multiply_adds = 0;
  row.traffic = {{{"b"}, {}}};
  row.goal = {OfLimit(0.92)};
  return row;
}

// Square matrices with a side shorter than a vector: a peer calls a product for each.
Row BatchRow(int64_t count, int64_t side) {
  const Dims shape = {count, side, side};
  Row row;
  row.name = absl::StrCat("batched matmul f32 ", count, " of ", side, "x", side);
  row.buffers = {{"a", DType::kF32, shape},
                 {"b", DType::kF32, shape},
                 {"c", DType::kF32, shape, Fill::kOutput}};
  row.steps = {{BatchedMatrixProduct()}};
  row.traffic = {{{"a", "b"}, {"c"}}};
  row.peers = {TorchMatrixProduct()};
  row.goal = {TimesPeer(kTorch, 1.0)};
  return row;
}

}  // namespace

std::vector<Row> ContractionRows() {
  std::vector<Row> rows;
  for (const int64_t size : {128, 512, 1024, 2048}) rows.push_back(ProductRow(size, size, size));
  rows.push_back(ProductRow(64, 1024, 1024));
  rows.push_back(OfOneRow(ProductRow(1, 1024, 1024)));
  rows.push_back(ProductRow(1024, 1024, 8));
  for (const int64_t side : {3, 4}) rows.push_back(BatchRow(100'000, side));
  return rows;
}

}  // namespace nestor::bench
