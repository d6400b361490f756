// Computations that go from step to step: running sums, an LSTM and a step of its training.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/programs.h"
#include "bench/rows.h"
#include "bench/torch_models.h"
#include "bench/torch_peers.h"

namespace nestor::bench {
namespace {

constexpr int64_t kElements = 1 << 24;

Row RunningSumRow() {
  Row row;
  row.name = "cumsum f32 16M";
  row.buffers = {{"x", DType::kF32, {kElements}}, {"y", DType::kF32, {kElements}, Fill::kOutput}};
  row.steps = {{RunningSum()}};
  row.traffic = {{{"x"}, {"y"}}};
  row.peers = {TorchRunningSum()};
  row.goal = {OfLimit(0.9)};
  return row;
}

constexpr int64_t kSteps = 128, kBatch = 16, kFeatures = 256, kHidden = 256, kGates = 4;

// Weights of the order of those that PyTorch starts with.
BufferSpec Parameter(const std::string& name, std::vector<int64_t> shape) {
  BufferSpec spec{name, DType::kF32, {shape.begin(), shape.end()}};
  spec.scale = 1 / std::sqrt(static_cast<double>(kHidden));
  return spec;
}

Row LstmRow() {
  Row row;
  row.name = absl::StrCat("LSTM f32 ", kSteps, "x", kBatch, "x", kFeatures);
  row.buffers = {{"x", DType::kF32, {kSteps, kBatch, kFeatures}},
                 {"h0", DType::kF32, {kBatch, kHidden}},
                 {"c0", DType::kF32, {kBatch, kHidden}},
                 Parameter("wx", {kGates, kHidden, kFeatures}),
                 Parameter("wh", {kGates, kHidden, kHidden}),
                 Parameter("bx", {kGates, kHidden}),
                 Parameter("bh", {kGates, kHidden}),
                 {"y", DType::kF32, {kSteps, kBatch, kHidden}, Fill::kOutput}};
  row.steps = {{.notation = Lstm(), .bound = {"wx", "wh", "bx", "bh"}}};
  row.multiply_adds =
      static_cast<double>(kSteps * kBatch * kGates * kHidden * (kFeatures + kHidden));
  row.peers = {TorchLstm()};
  row.goal = {TimesPeer(kTorch, 1.0)};
  return row;
}

// The gradients by the input and the parameters.
Row LstmStepRow() {
  const std::vector<std::string> wrt = {"x", "wx", "wh", "bx", "bh"};  // in the order of the op
  Row row = LstmRow();
  row.name += ", fwd + bwd";
  row.buffers.push_back({"g_y", DType::kF32, {kSteps, kBatch, kHidden}});
  for (const BufferSpec& spec : std::vector<BufferSpec>(row.buffers)) {
    for (const std::string& name : wrt) {
      if (spec.name == name)
        row.buffers.push_back({"g_" + name, DType::kF32, spec.shape, Fill::kOutput});
    }
  }
  row.steps = {{TrainingStep(Lstm(), wrt)}};
  row.multiply_adds *= 3;
  row.peers = {TorchLstmStep()};
  return row;
}

}  // namespace

std::vector<Row> RecurrenceRows() { return {RunningSumRow(), LstmRow(), LstmStepRow()}; }

}  // namespace nestor::bench
