// Types other than f32. A row that is bound by bytes must reach the same part of the limit. In one
// that is bound by arithmetic, bf16 keeps up with f32 in elements a second (it is computed as f32),
// f64 reaches half (half as many fit a vector), and products of 8-bit integers reach twice; for
// this the f32 row of the same number of elements is also measured.
#include "absl/strings/str_cat.h"
#include "bench/programs.h"
#include "bench/rows.h"
#include "bench/torch_peers.h"

namespace nestor::bench {
namespace {

constexpr char kNestorF32[] = "Nestor f32";
constexpr int64_t kCount = 16 << 20, kSide = 1024;

// Two roundings to a type with so few bits differ by a part in 2^7, and the peer
// rounds after each operation, too.
double ToleranceOf(DType type) { return type == DType::kBF16 ? 3e-2 : 1e-3; }

std::vector<BufferSpec> ChainBuffers(DType type) {
  return {{"x", type, {kCount}}, {"y", type, {kCount}}, {"z", type, {kCount}, Fill::kOutput}};
}

std::vector<BufferSpec> SumBuffers(DType type) {
  const DType result = IsInteger(type) ? DType::kI32 : type;
  return {{"x", type, {256, 256, 256}}, {"y", result, {256, 256}, Fill::kOutput}};
}

std::vector<BufferSpec> ProductBuffers(DType type) {
  const DType result = IsInteger(type) ? DType::kI32 : type;
  return {{"a", type, {kSide, kSide}},
          {"b", type, {kSide, kSide}},
          {"c", result, {kSide, kSide}, Fill::kOutput}};
}

// The goal is a part of the limit; for floats also a part of f32's speed.
void SetGoal(DType type, double of_limit, const PeerMaker& f32, Row& row) {
  row.goal = {OfLimit(of_limit)};
  row.tolerance = ToleranceOf(type);
  if (!IsFloat(type)) return;
  const double of_f32 = type == DType::kF64 ? 0.5 : 1.0;
  row.goal.push_back({kNestorF32, of_f32, of_f32});
  row.peers.push_back(f32);
}

Row Chain(DType type) {
  Row row;
  const bool is_float = IsFloat(type);
  row.name = absl::StrCat(is_float ? "sigmoid(x*y+x)*y " : "x*y+x ", Name(type), " 16M");
  row.buffers = ChainBuffers(type);
  row.steps = {{is_float ? SigmoidChain(type) : MultiplyAdd(type)}};
  row.traffic = {{{"x", "y"}, {"z"}}};
  row.peers = {is_float ? TorchSigmoidChain() : TorchMultiplyAdd()};
  SetGoal(type, 0.92,
          NestorPeer(kNestorF32, ChainBuffers(DType::kF32), {{SigmoidChain(DType::kF32)}}), row);
  return row;
}

Row Sum(DType type) {
  Row row;
  row.name = absl::StrCat("sum over the last axis ", Name(type), " 256^3");
  row.buffers = SumBuffers(type);
  row.steps = {{SumOver(2, type)}};
  row.traffic = {{{"x"}, {}}};
  row.peers = {TorchSum(2)};
  SetGoal(type, 0.9, NestorPeer(kNestorF32, SumBuffers(DType::kF32), {{SumOver(2, DType::kF32)}}),
          row);
  return row;
}

// Narrow floats are widened once, and two narrow integers share a lane.
Row Product(DType type) {
  Row row;
  row.name = absl::StrCat("matmul ", Name(type), " ", kSide);
  row.buffers = ProductBuffers(type);
  row.steps = {{MatrixProduct(type)}};
  row.peers = {TorchMatrixProduct(),
               NestorPeer(kNestorF32, ProductBuffers(DType::kF32), {{MatrixProduct(DType::kF32)}})};
  row.tolerance = ToleranceOf(type);
  const double of_f32 = type == DType::kF64 ? 0.5 : IsInteger(type) ? 2.0 : 1.0;
  row.goal = {{kNestorF32, of_f32, of_f32}};
  return row;
}

}  // namespace

std::vector<Row> TypeRows() {
  std::vector<Row> rows;
  for (const DType type : {DType::kF64, DType::kBF16, DType::kI32, DType::kU8}) {
    rows.push_back(Chain(type));
    rows.push_back(Sum(type));
  }
  for (const DType type : {DType::kF64, DType::kBF16, DType::kI8}) rows.push_back(Product(type));
  return rows;
}

}  // namespace nestor::bench
