// Square tiles are transposed in log2(lanes) rounds of instructions that mix two registers each,
// instead of a store and strided loads, or lanes * lanes moves of single elements.
//
// Two steps. Within each 128 bits, groups of as many rows as these hold lanes are transposed by
// unpacking: afterwards, register c of group k holds, in its 128 bits number b, the elements of
// column c of those 128 bits, from the rows of group k. Then blocks of 128 bits are transposed as
// wholes. For two groups of two rows, of 64-bit lanes:
//
//   a0 a1 | a2 a3        a0 b0 | a2 b2        a0 b0 | c0 d0      column 0
//   b0 b1 | b2 b3        a1 b1 | a3 b3        a1 b1 | c1 d1      column 1
//   c0 c1 | c2 c3   ->   c0 d0 | c2 d2   ->   a2 b2 | c2 d2      column 2
//   d0 d1 | d2 d3        c1 d1 | c3 d3        a3 b3 | c3 d3      column 3
#include "jit/codegen/transpose.h"

#include "uops/invariant.h"

namespace nestor::jit {
namespace {

class Tile {
 public:
  Tile(OperationList& list, int bytes) : list_(list), bytes_(bytes) {}

  // For a group of rows: 4 of 32-bit lanes, or 2 of 64-bit lanes.
  std::vector<Operand> Unpacked(Lane lane, absl::Span<const Operand> rows) {
    if (LaneBytes(lane) == 8) {
      return {Make(Opcode::kUnpackLow, lane, rows[0], rows[1]),
              Make(Opcode::kUnpackHigh, lane, rows[0], rows[1])};
    }
    const Lane wide = IsFloat(lane) ? Lane::kF64 : Lane::kI64;
    const Operand low01 = Make(Opcode::kUnpackLow, lane, rows[0], rows[1]);
    const Operand high01 = Make(Opcode::kUnpackHigh, lane, rows[0], rows[1]);
    const Operand low23 = Make(Opcode::kUnpackLow, lane, rows[2], rows[3]);
    const Operand high23 = Make(Opcode::kUnpackHigh, lane, rows[2], rows[3]);
    return {Make(Opcode::kUnpackLow, wide, low01, low23),
            Make(Opcode::kUnpackHigh, wide, low01, low23),
            Make(Opcode::kUnpackLow, wide, high01, high23),
            Make(Opcode::kUnpackHigh, wide, high01, high23)};
  }

  // The 128 bits number b of each of the groups' registers, in order, for every b.
  std::vector<Operand> Blocks(Lane lane, absl::Span<const Operand> groups) {
    if (groups.size() == 1) return {groups[0]};
    if (groups.size() == 2) {
      return {Make(Opcode::kPermute128, lane, groups[0], groups[1], 0x20),
              Make(Opcode::kPermute128, lane, groups[0], groups[1], 0x31)};
    }
    const auto pick = [&](Operand a, Operand b, bool odd) {
      return Make(Opcode::kShuffle128, lane, a, b, odd ? 0xdd : 0x88);
    };
    const Operand even01 = pick(groups[0], groups[1], false),
                  even23 = pick(groups[2], groups[3], false);
    const Operand odd01 = pick(groups[0], groups[1], true),
                  odd23 = pick(groups[2], groups[3], true);
    return {pick(even01, even23, false), pick(odd01, odd23, false), pick(even01, even23, true),
            pick(odd01, odd23, true)};
  }

 private:
  Operand Make(Opcode opcode, Lane lane, Operand a, Operand b, int64_t immediate = 0) {
    Operation operation{opcode, lane, static_cast<uint8_t>(bytes_ / LaneBytes(lane))};
    operation.operands[0] = a;
    operation.operands[1] = b;
    operation.immediate = immediate;
    operation.result = list_.NewVector();
    list_.operations.push_back(operation);
    return operation.result;
  }

  OperationList& list_;
  const int bytes_;
};

}  // namespace

// `whole` has, for column c of each 128 bits, the columns c, c + in_block, c + 2 in_block, ..
std::vector<Operand> TransposeTile(OperationList& list, Lane lane, absl::Span<const Operand> rows) {
  const size_t lanes = rows.size(), in_block = 16 / LaneBytes(lane), blocks = lanes / in_block;
  NESTOR_CHECK(blocks == 1 || blocks == 2 || blocks == 4, "a tile of whole vectors");
  Tile tile(list, static_cast<int>(lanes) * LaneBytes(lane));
  std::vector<std::vector<Operand>> groups;
  for (size_t k = 0; k < blocks; ++k)
    groups.push_back(tile.Unpacked(lane, rows.subspan(k * in_block, in_block)));
  std::vector<Operand> columns(lanes);
  for (size_t c = 0; c < in_block; ++c) {
    std::vector<Operand> of_column;
    for (const std::vector<Operand>& group : groups) of_column.push_back(group[c]);
    const std::vector<Operand> whole = tile.Blocks(lane, of_column);
    for (size_t b = 0; b < blocks; ++b) columns[b * in_block + c] = whole[b];
  }
  return columns;
}

}  // namespace nestor::jit
