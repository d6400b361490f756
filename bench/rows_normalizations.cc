// Rows of a matrix: in memory, with a length that no vector divides evenly into
// registers, and within the first caches. A peer that walks a row three times pays for it in the
// first case, and the overhead of a call shows in the last.
#include <iterator>

#include "absl/strings/str_cat.h"
#include "bench/onednn_peers.h"
#include "bench/programs.h"
#include "bench/rows.h"
#include "bench/torch_peers.h"

namespace nestor::bench {
namespace {

struct Size {
  int64_t rows, columns;
};
constexpr Size kSizes[] = {{4096, 1024}, {1000, 1000}, {64, 128}};

// Goals are `times` oneDNN at each size.
void AddRows(const Row& prototype, absl::Span<const double> times, std::vector<Row>& rows) {
  for (size_t i = 0; i < times.size(); ++i) {
    const auto [n, c] = kSizes[i];
    Row row = prototype;
    absl::StrAppend(&row.name, " f32 ", n, "x", c);
    row.buffers = {{"x", DType::kF32, {n, c}},
                   {"scale", DType::kF32, {c}},
                   {"bias", DType::kF32, {c}},
                   {"y", DType::kF32, {n, c}, Fill::kOutput}};
    row.traffic = {{{"x"}, {"y"}}};
    row.goal = {TimesPeer(kOneDnn, times[i])};
    rows.push_back(std::move(row));
  }
}

// The first of the last rows has a second goal.
void AddOperations(std::vector<Row>& rows) {
  rows.insert(rows.end() - std::size(kSizes) + 1,
              OfOperations(*(rows.end() - std::size(kSizes)), 0.8));
}

Row Prototype(std::string name, std::string notation, std::vector<PeerMaker> peers) {
  Row row;
  row.name = std::move(name);
  row.steps = {{std::move(notation)}};
  row.peers = std::move(peers);
  return row;
}

}  // namespace

std::vector<Row> NormalizationRows() {
  std::vector<Row> rows;
  AddRows(Prototype("softmax", Softmax(), {OneDnnSoftmax, TorchSoftmax()}), {1.4, 1.6, 2.0}, rows);
  AddOperations(rows);
  AddRows(Prototype("gelu", Gelu(), {OneDnnGelu, TorchGelu()}), {1.4, 1.0, 1.0}, rows);
  AddOperations(rows);
  AddRows(Prototype("layer_norm", LayerNorm(), {OneDnnLayerNorm, TorchLayerNorm()}),
          {1.3, 1.1, 1.2}, rows);
  return rows;
}

}  // namespace nestor::bench
