// Each variant really writes what it reads, or it would not measure the memory.
#include "bench/sweep.h"

#include <cstdint>
#include <cstring>
#include <numeric>

#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

// Eight steps, of which the middle six do not divide evenly into parts.
constexpr size_t kCount = 8 * kSweepStep / sizeof(uint32_t);
struct alignas(64) Array {
  uint32_t values[kCount];
};

TEST(SweepTest, EveryVariantWritesTheSumOfItsReads) {
  for (const int reads : {1, 2}) {
    const std::vector<SweepVariant> variants = SweepVariants(reads, 1);
    if (variants.empty()) GTEST_SKIP() << "this CPU has no AVX2";
    for (const SweepVariant& variant : variants) {
      static Array a, b, sum;
      std::iota(a.values, a.values + kCount, 1);
      std::iota(b.values, b.values + kCount, 1000);
      std::memset(&sum, 0, sizeof(sum));
      Streams streams{
          {reinterpret_cast<char*>(&a)}, {reinterpret_cast<char*>(&sum)}, sizeof(Array)};
      if (reads == 2) streams.reads.push_back(reinterpret_cast<char*>(&b));
      variant.sweep(streams, kSweepStep, 7 * kSweepStep);
      for (size_t i = 0; i < kCount; ++i) {
        const bool inside = i >= kCount / 8 && i < kCount / 8 * 7;
        const uint32_t want = inside ? a.values[i] + (reads == 2 ? b.values[i] : 0) : 0;
        ASSERT_EQ(sum.values[i], want) << variant.name << ", reads " << reads << ", element " << i;
      }
    }
  }
}

TEST(SweepTest, VariantsDifferInStoresOnlyWhereThereAreAny) {
  if (SweepVariants(1, 0).empty()) GTEST_SKIP() << "this CPU has no AVX2";
  EXPECT_EQ(SweepVariants(1, 1).size(), 2 * SweepVariants(1, 0).size());
  static Array a = {};
  for (const SweepVariant& variant : SweepVariants(1, 0)) {
    variant.sweep({{reinterpret_cast<char*>(&a)}, {}, sizeof(Array)}, 0, sizeof(Array));
  }
}

TEST(SweepTest, SlicesMeetAndCoverAllButARest) {
  for (const size_t bytes :
       {size_t{0}, size_t{255}, size_t{256}, size_t{4000000}, size_t{1000 * 256 + 7}}) {
    for (const int size : {1, 2, 3}) {
      size_t at = 0;
      for (int member = 0; member < size; ++member) {
        const SweepSlice slice = SliceFor(bytes, member, size);
        EXPECT_EQ(slice.begin, at) << bytes << " bytes, member " << member << " of " << size;
        EXPECT_EQ(slice.begin % kSweepStep, 0);
        at = slice.end;
      }
      EXPECT_EQ(at, bytes / kSweepStep * kSweepStep) << bytes << " bytes, " << size;
    }
  }
}

}  // namespace
}  // namespace nestor::bench
