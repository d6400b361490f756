// A step of training: the result, then the gradients by everything. At least, the forward op
// reads x and writes y, and the backward op reads x and g_y and writes g_x; arrays as long as one
// row do not count.
#include "bench/programs.h"
#include "bench/rows.h"
#include "bench/torch_peers.h"

namespace nestor::bench {

std::vector<Row> GradientRows() {
  constexpr int64_t kRows = 4096, kColumns = 1024;
  Row row;
  row.name = "gelu + layer_norm, fwd + bwd f32 4096x1024";
  row.buffers = {{"x", DType::kF32, {kRows, kColumns}},
                 {"scale", DType::kF32, {kColumns}},
                 {"bias", DType::kF32, {kColumns}},
                 {"g_y", DType::kF32, {kRows, kColumns}},
                 {"y", DType::kF32, {kRows, kColumns}, Fill::kOutput},
                 {"g_x", DType::kF32, {kRows, kColumns}, Fill::kOutput},
                 {"g_scale", DType::kF32, {kColumns}, Fill::kOutput},
                 {"g_bias", DType::kF32, {kColumns}, Fill::kOutput}};
  row.steps = {{GeluLayerNorm()}, {GeluLayerNorm(), /*gradient=*/true}};
  row.traffic = {{{"x"}, {"y"}}, {{"x", "g_y"}, {"g_x"}}};
  row.peers = {TorchGeluLayerNormGradient()};
  row.goal = {TimesPeer(kTorch, 3)};
  return {row};
}

}  // namespace nestor::bench
