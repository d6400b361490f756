// Square tiles of every kind of lane and every width of a vector, on the model of
// operations, each lane with bits of its own.
#include "jit/codegen/transpose.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/codegen/operation_model_testing.h"
#include "jit/codegen/operations.h"
#include "jit/target/isa.h"
#include "uops/dtype.h"

namespace nestor::jit {
namespace {

constexpr DType kTypes[] = {DType::kI32, DType::kI64, DType::kF32, DType::kF64};

Operation RowAccess(Opcode opcode, DType type, int lanes, int table, int row) {
  Operation operation{opcode, LaneOf(type), static_cast<uint8_t>(lanes), type};
  operation.memory.base = Operand::Table(table);
  operation.memory.displacement = row * lanes * LaneBytes(LaneOf(type));
  return operation;
}

// Loads the rows, transposes them, and stores the columns.
OperationList Transposition(Isa isa, DType type, int lanes) {
  OperationList list(isa);
  std::vector<Operand> rows;
  for (int row = 0; row < lanes; ++row) {
    rows.push_back(list.NewVector());
    list.operations.push_back(RowAccess(Opcode::kLoad, type, lanes, 0, row));
    list.operations.back().result = rows.back();
  }
  const std::vector<Operand> columns = TransposeTile(list, LaneOf(type), rows);
  for (int column = 0; column < lanes; ++column) {
    list.operations.push_back(RowAccess(Opcode::kStore, type, lanes, 1, column));
    list.operations.back().operands[0] = columns[column];
  }
  return list;
}

void ExpectTransposed(Isa isa, DType type, int lanes) {
  const int bytes = ByteSize(type);
  // No lane is a NaN.
  std::vector<uint8_t> tile(lanes * lanes * bytes), transposed(tile.size());
  for (size_t i = 0; i < tile.size(); ++i)
    tile[i] = static_cast<uint8_t>(i % bytes == 0 ? i / bytes : 1 + i % bytes);
  const int64_t table[] = {reinterpret_cast<int64_t>(tile.data()),
                           reinterpret_cast<int64_t>(transposed.data())};
  RunModel(Transposition(isa, type, lanes), table);
  for (int row = 0; row < lanes; ++row) {
    for (int column = 0; column < lanes; ++column) {
      const uint8_t* want = tile.data() + (row * lanes + column) * bytes;
      const uint8_t* got = transposed.data() + (column * lanes + row) * bytes;
      EXPECT_EQ(std::memcmp(want, got, bytes), 0) << "row " << row << ", column " << column;
    }
  }
}

TEST(Transpose, EveryTile) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    for (const DType type : kTypes) {
      for (int vector = 16; vector <= VectorBytes(isa); vector *= 2) {
        const testing::ScopedTrace trace(__FILE__, __LINE__,
                                         absl::StrCat(Name(type), " in ", vector, " bytes"));
        ExpectTransposed(isa, type, vector / ByteSize(type));
      }
    }
  }
}

// Each step makes as many registers as the tile has, and unpacking takes a step for
// every power of two below a block of 128 bits.
TEST(Transpose, Operations) {
  const struct {
    Isa isa;
    DType type;
    int lanes;
    int steps;
  } kCases[] = {
      {Isa::kAvx2, DType::kF32, 4, 2},   {Isa::kAvx2, DType::kF32, 8, 3},
      {Isa::kAvx2, DType::kF64, 4, 2},   {Isa::kAvx512, DType::kF32, 16, 4},
      {Isa::kAvx512, DType::kI64, 8, 3},
  };
  for (const auto& c : kCases) {
    const OperationList list = Transposition(c.isa, c.type, c.lanes);
    EXPECT_EQ(list.operations.size(), static_cast<size_t>(c.lanes * (2 + c.steps)))
        << ToString(list);
  }
}

}  // namespace
}  // namespace nestor::jit
