// Inputs come from memory through loads of whole registers, which the memory tests
// cover by themselves; code is also decoded by an independent disassembler.
#include "jit/codegen/emit_testing.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "jit/codegen/foreign_instructions.h"
#include "jit/runtime/cpu_features.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

uint64_t EdgeOfFloats(std::mt19937_64& random, Lane lane) {
  static constexpr double kEdges[] = {
      0.0,    -0.0,    1.0,  -1.0,  0.5,  1.5,    2.5,  -2.5,  0.1,          -7.9,         1e-40,
      1e-310, 65519.0, 1e10, -3e19, 3e38, -1e300, 2e-8, -6e-5, 2147483647.5, -2147483648.5};
  const double value = kEdges[random() % std::size(kEdges)];
  const uint64_t specials[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xff800001};
  if (lane == Lane::kF32) {
    if (random() % 4 == 0) return specials[random() % 4];
    const float narrow = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, 4);
    return bits;
  }
  if (random() % 4 == 0) return specials[random() % 4] << 32;
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  return bits;
}

}  // namespace

const char* Name(Stand stand) {
  static constexpr const char* kNames[] = {"register", "result", "constant", "stack", "table"};
  return kNames[static_cast<int>(stand)];
}

Operand TestFunction::NewSlot(int bytes) {
  used_bytes_ = (used_bytes_ + bytes - 1) / bytes * bytes;
  const Operand slot = Slot(used_bytes_);
  used_bytes_ += bytes;
  allocated_.frame_bytes = (used_bytes_ + 63) / 64 * 64;
  return slot;
}

void TestFunction::Whole(Opcode opcode, int vector, int64_t table, int32_t offset) {
  const Operand pointer = Operand::Register(8);
  MoveG(pointer, Operand::Table(table));
  Operation op{opcode, Lane::kI32, static_cast<uint8_t>(VectorBytes(isa()) / 4), DType::kI32};
  op.memory = {pointer, {}, 1, offset};
  (opcode == Opcode::kLoad ? op.result : op.operands[0]) = Operand::Register(vector);
  Add(op);
}

void TestFunction::MoveG(const Operand& result, const Operand& a) {
  Operation op{Opcode::kMoveG, Lane::kI64};
  op.result = result;
  op.operands[0] = a;
  Add(op);
}

void TestFunction::Return(const Operand& a) {
  Operation op{Opcode::kReturn, Lane::kI64};
  op.operands[0] = a;
  Add(op);
}

MachineCode TestFunction::Encode() const {
  absl::StatusOr<MachineCode> code = Emit(list_, allocated_, CodeBuffer());
  NESTOR_CHECK(code.ok(), code.status().ToString());
  const auto instructions =
      absl::MakeConstSpan(code->bytes).first(static_cast<size_t>(code->code_bytes));
  const absl::optional<std::string> foreign = FirstForeignInstruction(instructions, isa());
  EXPECT_FALSE(foreign.has_value()) << *foreign;
  return *std::move(code);
}

Sealed::Sealed(absl::Span<const MachineCode> codes) {
  constexpr size_t kAlignment = 64;  // of pooled constants
  std::vector<uint8_t> bytes;
  for (const MachineCode& code : codes) {
    bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment);
    begins_.push_back(bytes.size());
    bytes.insert(bytes.end(), code.bytes.begin(), code.bytes.end());
  }
  absl::StatusOr<CodeMemory> memory = CodeMemory::Seal(bytes);
  NESTOR_CHECK(memory.ok(), memory.status().ToString());
  memory_ = *std::move(memory);
}

DType MemoryType(Lane lane) {
  constexpr DType kTypes[] = {DType::kI8,  DType::kI16, DType::kI32,
                              DType::kI64, DType::kF32, DType::kF64};
  return kTypes[static_cast<int>(lane)];
}

bool Runs(Isa isa) { return CheckIsa(isa).ok(); }

uint64_t RandomLane(std::mt19937_64& random, Lane lane) {
  const uint64_t noise = random();
  const uint64_t own = ~uint64_t{0} >> (64 - 8 * LaneBytes(lane)), bits = noise & own;
  if (random() % 3 == 0) return bits;
  if (IsFloat(lane)) return EdgeOfFloats(random, lane);
  const uint64_t sign = uint64_t{1} << (8 * LaneBytes(lane) - 1);
  const uint64_t edges[] = {0, 1, ~uint64_t{0}, sign, sign - 1, noise % 70};
  return edges[random() % std::size(edges)] & own;
}

bool SameLane(Lane lane, uint64_t x, uint64_t y) {
  if (x == y || !IsFloat(lane)) return x == y;
  const uint64_t sign = lane == Lane::kF32 ? uint64_t{1} << 31 : uint64_t{1} << 63;
  const uint64_t infinity = lane == Lane::kF32 ? 0x7f800000 : uint64_t{0x7ff} << 52;
  return (x & ~sign) > infinity && (y & ~sign) > infinity;
}

uint64_t LaneAt(const uint8_t* bytes, int lane_bytes, int i) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes + i * lane_bytes, static_cast<size_t>(lane_bytes));
  return bits;
}

std::string Difference(uint64_t got, uint64_t want) {
  return absl::StrCat("0x", absl::Hex(got), ", not 0x", absl::Hex(want));
}

void SetLane(uint8_t* bytes, int lane_bytes, int i, uint64_t bits) {
  std::memcpy(bytes + i * lane_bytes, &bits, static_cast<size_t>(lane_bytes));
}

}  // namespace nestor::jit
