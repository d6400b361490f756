// The features that are found agree with what the system lists; messages name what a machine
// lacks.
#include "jit/runtime/cpu_features.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/runtime/cpu_features_testing.h"

namespace nestor::jit {
namespace {

using ::testing::HasSubstr;

// The features that the system says it and its first CPU have.
absl::flat_hash_set<std::string> SystemFlags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (absl::StartsWith(line, "flags")) return absl::StrSplit(line, ' ');
  }
  return {};
}

bool SystemHas(std::initializer_list<const char*> names) {
  static const auto& flags = *new absl::flat_hash_set<std::string>(SystemFlags());
  return absl::c_all_of(names, [](const char* name) { return flags.contains(name); });
}

bool SystemHas(Isa isa) {
  const bool avx2 = SystemHas({"avx2", "fma", "f16c", "bmi1", "bmi2"});
  if (isa == Isa::kAvx2) return avx2;
  return avx2 && SystemHas({"avx512f", "avx512vl", "avx512bw", "avx512dq"});
}

TEST(CpuFeatures, NamesAreReadBack) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) EXPECT_EQ(IsaByName(Name(isa)).value(), isa);
  EXPECT_EQ(VectorBytes(IsaByName("avx2").value()), 32);
  EXPECT_EQ(VectorBytes(IsaByName("avx512").value()), 64);
}

TEST(CpuFeatures, AWrongNameIsToldWhatThereIs) {
  for (const char* name : {"", "AVX2", "avx", "sse2", "avx512f"}) {
    const absl::Status status = IsaByName(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("avx2, avx512")) << name;
  }
}

TEST(CpuFeatures, AgreesWithTheSystem) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    EXPECT_EQ(CheckIsa(isa).ok(), SystemHas(isa)) << Name(isa) << ": " << CheckIsa(isa);
  }
}

TEST(CpuFeatures, ARefusalNamesWhatIsMissing) {
  for (const char* name : {"FMA", "AVX512F", "the system's support of zmm registers"}) {
    const LackForTesting lack(name);
    const bool is_of_both = name == std::string("FMA");
    const absl::Status status = CheckIsa(Isa::kAvx512);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_EQ(CheckIsa(Isa::kAvx2).ok(), SystemHas(Isa::kAvx2) && !is_of_both) << name;
    if (SystemHas(Isa::kAvx512)) {
      EXPECT_EQ(status.message(), absl::StrCat("this machine cannot run avx512: it lacks ", name));
    }
  }
  EXPECT_EQ(CheckIsa(Isa::kAvx512).ok(), SystemHas(Isa::kAvx512)) << "it lacks that no longer";
}

TEST(CpuFeatures, DotProductsAreBesideAvx512) {
  EXPECT_FALSE(HasDotProducts(Isa::kAvx2));
  EXPECT_EQ(HasDotProducts(Isa::kAvx512), SystemHas({"avx512_vnni"}));
  const LackForTesting lack("AVX512_VNNI");
  EXPECT_FALSE(HasDotProducts(Isa::kAvx512));
  EXPECT_EQ(CheckIsa(Isa::kAvx512).ok(), SystemHas(Isa::kAvx512)) << "the set does without";
}

// BestIsa asks once, so each value of the variable needs a process of its own, which shows the
// result on stderr.
[[noreturn]] void ShowBestIsa(const char* limit) {
  setenv("NESTOR_ISA", limit, 1);
  const absl::StatusOr<Isa> best = BestIsa();
  std::fprintf(stderr, "best: %s\n",
               best.ok() ? std::string(Name(*best)).c_str() : best.status().ToString().c_str());
  std::_Exit(0);
}

TEST(CpuFeaturesDeathTest, TheVariableIsALimit) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  if (!CheckIsa(Isa::kAvx2).ok()) GTEST_SKIP() << CheckIsa(Isa::kAvx2);
  const bool has_avx512 = CheckIsa(Isa::kAvx512).ok();
  const std::string highest = has_avx512 ? "best: avx512" : "best: avx2";
  EXPECT_EXIT(ShowBestIsa(""), testing::ExitedWithCode(0), highest);
  EXPECT_EXIT(ShowBestIsa("avx512"), testing::ExitedWithCode(0), highest);
  EXPECT_EXIT(ShowBestIsa("avx2"), testing::ExitedWithCode(0), "best: avx2");
  EXPECT_EXIT(ShowBestIsa("neon"), testing::ExitedWithCode(0),
              "best: INVALID_ARGUMENT: NESTOR_ISA: .*'neon'");
}

TEST(CpuFeatures, CachesAreOfSizesThatExist) {
  const CacheSizes caches = Caches();
  EXPECT_GE(caches.l1, 8 << 10);
  EXPECT_LE(caches.l1, 1 << 20);
  EXPECT_GT(caches.l2, caches.l1);
  EXPECT_GE(caches.last, caches.l2);
}

TEST(CpuFeatures, FewProcessorsHaveAShareOfTheLastCache) {
  constexpr int64_t kMiB = 1 << 20;
  EXPECT_EQ(ShareOfLastCache(480 * kMiB, 2), 8 * kMiB);
  EXPECT_EQ(ShareOfLastCache(480 * kMiB, 128), 480 * kMiB);
  EXPECT_EQ(ShareOfLastCache(3 * kMiB, 1), 3 * kMiB);
  EXPECT_EQ(ShareOfLastCache(0, 2), 0);
  EXPECT_EQ(ShareOfLastCache(32 * kMiB, -1), 4 * kMiB);  // not known
}

}  // namespace
}  // namespace nestor::jit
