// Attention as a transformer's layer calls it: each head is a batch of two products with a softmax
// between them. A peer that runs one operation after the other writes the scores to memory several
// times; with a causal mask, it also computes the masked scores.
#include "absl/strings/str_cat.h"
#include "bench/programs.h"
#include "bench/rows.h"
#include "bench/torch_peers.h"

namespace nestor::bench {
namespace {

struct Size {
  int64_t heads, places, features;
};
constexpr Size kLayer = {12, 512, 64};
constexpr Size kOneHead = {1, 2048, 64};

// The multiply-adds of one product of the scores' size.
double MultiplyAdds(const Size& size, bool causal) {
  const int64_t scores = causal ? size.places * (size.places + 1) / 2 : size.places * size.places;
  return static_cast<double>(size.heads * scores * size.features);
}

BufferSpec Buffer(std::string name, const Size& size, Fill fill = Fill::kUniform) {
  return {std::move(name), DType::kF32, {size.heads, size.places, size.features}, fill};
}

std::string Name(const Size& size, bool causal) {
  return absl::StrCat(causal ? "causal " : "", "attention f32 ", size.heads, "x", size.places, "x",
                      size.features);
}

Row ForwardRow(const Size& size, bool causal, double times) {
  Row row;
  row.name = Name(size, causal);
  row.buffers = {Buffer("q", size), Buffer("k", size), Buffer("v", size),
                 Buffer("y", size, Fill::kOutput)};
  row.steps = {{Attention(causal)}};
  row.multiply_adds = 2 * MultiplyAdds(size, causal);
  row.peers = {TorchAttention(causal)};
  row.goal = {TimesPeer(kTorch, times)};
  return row;
}

// The gradients take four more products: by the values, by the probabilities, by q and k.
Row GradientRow(bool causal, double times) {
  Row row = ForwardRow(kLayer, causal, times);
  row.name += ", fwd + bwd";
  row.buffers.push_back(Buffer("g_y", kLayer));
  for (const char* name : {"g_q", "g_k", "g_v"})
    row.buffers.push_back(Buffer(name, kLayer, Fill::kOutput));
  row.steps.push_back({Attention(causal), /*gradient=*/true});
  row.multiply_adds = 6 * MultiplyAdds(kLayer, causal);
  row.peers = {TorchAttentionGradient(causal)};
  return row;
}

}  // namespace

std::vector<Row> AttentionRows() {
  return {ForwardRow(kLayer, /*causal=*/false, 3.5),   ForwardRow(kLayer, /*causal=*/true, 6),
          GradientRow(/*causal=*/false, 2.5),          GradientRow(/*causal=*/true, 4),
          ForwardRow(kOneHead, /*causal=*/false, 3.5), ForwardRow(kOneHead, /*causal=*/true, 6)};
}

}  // namespace nestor::bench
