// A chain of elementwise operations: fused, it reads two arrays and writes one. Its exponentials
// and quotients may take longer than that.
#include "bench/programs.h"
#include "bench/rows.h"
#include "bench/torch_peers.h"

namespace nestor::bench {

std::vector<Row> ChainRows() {
  constexpr int64_t kCount = 16 << 20;
  Row row;
  row.name = "sigmoid(x*y+x)*y f32 16M";
  row.buffers = {{"x", DType::kF32, {kCount}},
                 {"y", DType::kF32, {kCount}},
                 {"z", DType::kF32, {kCount}, Fill::kOutput}};
  row.steps = {{SigmoidChain(DType::kF32)}};
  row.traffic = {{{"x", "y"}, {"z"}}};
  row.peers = {TorchSigmoidChain()};
  row.goal = {TimesPeer(kTorch, 1.4)};
  return {row, OfOperations(row, 0.8)};
}

}  // namespace nestor::bench
