// Accesses beside guarded memory fault, also where its pages come from a pool; and elements get to
// their places in every arrangement.
#include "check/guarded_memory.h"

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "check/arrangement.h"

namespace nestor {
namespace {

using Side = GuardedMemory::Side;
constexpr size_t kPage = 4096;

// An access to one byte by the operating system, which returns an error instead of faulting.
class Access {
 public:
  Access() { EXPECT_EQ(pipe(ends_), 0); }
  ~Access() {
    close(ends_[0]);
    close(ends_[1]);
  }
  bool CanRead(const char* byte) const {
    char taken;
    return write(ends_[1], byte, 1) == 1 && read(ends_[0], &taken, 1) == 1;
  }
  bool CanWrite(char* byte) const {
    char kept;
    if (write(ends_[1], "x", 1) != 1) return false;
    if (read(ends_[0], byte, 1) == 1) return true;
    return read(ends_[0], &kept, 1) != 1;
  }

 private:
  int ends_[2];
};

void ExpectGuarded(const GuardedMemory& memory, size_t bytes, Side side, size_t alignment) {
  const Access access;
  char* const data = memory.data();
  const auto address = reinterpret_cast<uintptr_t>(data);
  const size_t before = address % kPage, behind = (kPage - (address + bytes) % kPage) % kPage;
  EXPECT_EQ(address % alignment, 0u);
  if (side == Side::kEnd) EXPECT_LT(behind, alignment);
  else EXPECT_EQ(before, 0u);
  EXPECT_FALSE(access.CanRead(data - before - 1)) << bytes;
  EXPECT_FALSE(access.CanRead(data + bytes + behind)) << bytes;
  if (bytes == 0) return;
  EXPECT_TRUE(access.CanRead(data) && access.CanRead(data + bytes - 1)) << bytes;
  EXPECT_TRUE(access.CanWrite(data) && access.CanWrite(data + bytes - 1)) << bytes;
}

constexpr size_t kSizes[] = {1,         5000, 0,          3 * kPage, 100, kPage, 10 * kPage + 1,
                             2 * kPage, 64,   20 * kPage, 8};

TEST(GuardedMemory, FaultsBesideItsBytes) {
  for (bool is_pooled : {false, true}) {
    GuardedPool pool;
    for (size_t bytes : kSizes) {
      for (size_t alignment : {1, 4, 64}) {
        for (Side side : {Side::kEnd, Side::kBegin}) {
          const GuardedMemory one(bytes, side, alignment, is_pooled ? &pool : nullptr);
          const GuardedMemory other(bytes / 2, side, alignment, is_pooled ? &pool : nullptr);
          ExpectGuarded(one, bytes, side, alignment);
          ExpectGuarded(other, bytes / 2, side, alignment);
        }
      }
    }
  }
}

TEST(GuardedMemory, IsReadOnlyOnceSealedAndFreeAgainFromThePool) {
  GuardedPool pool;
  const Access access;
  for (int round = 0; round < 3; ++round) {
    GuardedMemory memory(5000, Side::kEnd, 1, &pool);
    std::memset(memory.data(), round, 5000);
    memory.Seal();
    EXPECT_TRUE(access.CanRead(memory.data()));
    EXPECT_FALSE(access.CanWrite(memory.data()));
    EXPECT_FALSE(access.CanRead(memory.data() + 5000));
  }
}

TEST(GuardedMemory, ComesFromThePoolAgain) {
  GuardedPool pool;
  const char* large = GuardedMemory(50 * kPage, Side::kEnd, 1, &pool).data();
  for (int round = 0; round < 3; ++round) {
    const GuardedMemory again(50 * kPage, Side::kBegin, 1, &pool);
    EXPECT_EQ(again.data(), large);
    const GuardedMemory other(1, Side::kEnd, 1, &pool);
    EXPECT_NE(other.data(), large);
  }
}

TEST(GuardedMemory, TellsWhatIsWrittenIntoTheRest) {
  for (Side side : {Side::kEnd, Side::kBegin}) {
    GuardedMemory memory(100, side, 64);
    memory.FillRest(0x5a);
    std::memset(memory.data(), 1, 100);
    EXPECT_TRUE(memory.RestIs(0x5a));
    char& beside = side == Side::kEnd ? memory.data()[-1] : memory.data()[100];
    beside = 1;
    EXPECT_FALSE(memory.RestIs(0x5a));
    beside = 0x5a;
    if (side == Side::kEnd) memory.data()[127] = 1;  // between the last byte and the guard
    EXPECT_EQ(memory.RestIs(0x5a), side != Side::kEnd);
  }
}

TEST(GuardedMemory, AllAreOneByte) {
  char bytes[70];
  std::memset(bytes, 7, sizeof(bytes));
  EXPECT_TRUE(AllAre(7, bytes, 0) && AllAre(8, bytes, 0) && AllAre(7, bytes, 70));
  EXPECT_FALSE(AllAre(8, bytes, 1));
  for (char& byte : bytes) {
    byte = 8;
    EXPECT_FALSE(AllAre(7, bytes, 70));
    byte = 7;
  }
}

// ---- Arrangements

const Dims kShapes[] = {{}, {1}, {5}, {0, 3}, {3, 0}, {2, 3}, {4, 1, 3}, {1, 2, 1, 5}};

bool IsBroadcast(Arrangement arrangement) {
  return arrangement == Arrangement::kBroadcast || arrangement == Arrangement::kBroadcastRow;
}

TEST(Arrangement, PutsElementsInTheirPlacesAndLeavesGaps) {
  for (DType type : AllTypes()) {
    for (const Dims& shape : kShapes) {
      for (Arrangement arrangement : kArrangements) {
        if (IsBroadcast(arrangement)) continue;
        TensorView view{type, shape, StridesOf(shape, arrangement), nullptr};
        std::vector<GuardedMemory> memory;
        PlaceGuarded(view, Side::kEnd, memory);
        Tensor tensor = Tensor::Create(type, shape).value();
        for (int64_t i = 0; i < tensor.num_elements(); ++i) {
          Store(Scalar::Of(type, i % 7), static_cast<char*>(tensor.data()) + i * ByteSize(type));
        }
        PutElements(tensor.data(), view);
        EXPECT_TRUE(BitEqual(view, tensor)) << Name(type) << ShapeText(shape) << Name(arrangement);
        EXPECT_TRUE(GapsAreUntouched(view)) << Name(type) << ShapeText(shape) << Name(arrangement);
        EXPECT_EQ(GapsAreUntouched(view, 0x11),
                  BytesUnder(view).size() == static_cast<size_t>(tensor.num_bytes()));
      }
    }
  }
}

// Each byte that belongs to no element.
TEST(Arrangement, TellsEveryTouchedGap) {
  for (DType type : {DType::kU8, DType::kF16, DType::kF32, DType::kF64}) {
    for (const Dims& shape : kShapes) {
      for (Arrangement arrangement : kArrangements) {
        TensorView view{type, shape, StridesOf(shape, arrangement), nullptr};
        std::vector<GuardedMemory> memory;
        PlaceGuarded(view, Side::kEnd, memory);
        Tensor zeros = Tensor::Create(type, shape).value();
        PutElements(zeros.data(), view);
        const absl::string_view bytes = BytesUnder(view);
        for (size_t i = 0; i < bytes.size(); ++i) {
          char& byte = const_cast<char&>(bytes[i]);
          if (byte == 0) continue;  // of an element
          byte = 1;
          EXPECT_FALSE(GapsAreUntouched(view))
              << Name(type) << ShapeText(shape) << Name(arrangement) << i;
          byte = static_cast<char>(kPoison);
        }
        EXPECT_TRUE(GapsAreUntouched(view));
      }
    }
  }
}

}  // namespace
}  // namespace nestor
