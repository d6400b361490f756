// Attention as a transformer's layer calls it: each head a batch of two products with a
// softmax between them. A peer that runs one operation after the other writes the
// scores to memory several times; causal, it computes those that are masked, too.
#include "absl/strings/str_cat.h"
#include "bench/programs.h"
#include "bench/rows.h"
#include "bench/torch_peers.h"

namespace nestor::bench {
namespace {

constexpr int64_t kHeads = 12, kPlaces = 512, kFeatures = 64;

// Of one product of the scores' size.
double MultiplyAdds(bool causal) {
  const int64_t scores = causal ? kPlaces * (kPlaces + 1) / 2 : kPlaces * kPlaces;
  return static_cast<double>(kHeads * scores * kFeatures);
}

BufferSpec Buffer(std::string name, Fill fill = Fill::kUniform) {
  return {std::move(name), DType::kF32, {kHeads, kPlaces, kFeatures}, fill};
}

std::string Name(bool causal) {
  return absl::StrCat(causal ? "causal " : "", "attention f32 ", kHeads, "x", kPlaces, "x", kFeatures);
}

Row ForwardRow(bool causal, double times) {
  Row row;
  row.name = Name(causal);
  row.buffers = {Buffer("q"), Buffer("k"), Buffer("v"), Buffer("y", Fill::kOutput)};
  row.steps = {{Attention(causal)}};
  row.multiply_adds = 2 * MultiplyAdds(causal);
  row.peers = {TorchAttention(causal)};
  row.goal = {TimesPeer(kTorch, times)};
  return row;
}

// The gradients take four products more: by the values, by the probabilities, by q and k.
Row GradientRow(bool causal, double times) {
  Row row = ForwardRow(causal, times);
  row.name += ", fwd + bwd";
  row.buffers.push_back(Buffer("g_y"));
  for (const char* name : {"g_q", "g_k", "g_v"}) row.buffers.push_back(Buffer(name, Fill::kOutput));
  row.steps.push_back({Attention(causal), /*gradient=*/true});
  row.multiply_adds = 6 * MultiplyAdds(causal);
  row.peers = {TorchAttentionGradient(causal)};
  return row;
}

}  // namespace

std::vector<Row> AttentionRows() {
  return {ForwardRow(/*causal=*/false, 3.5), ForwardRow(/*causal=*/true, 6), GradientRow(/*causal=*/false, 2.5),
          GradientRow(/*causal=*/true, 4)};
}

}  // namespace nestor::bench
