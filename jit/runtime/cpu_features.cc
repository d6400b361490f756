// A set of instructions may be used only where the CPU has each of them (its CPUID
// leaves say so) and the operating system saves the registers they write when it
// switches threads (XCR0 says so): a CPU with AVX-512 under a system that does not
// keep its state would lose half of a vector at a switch. Both are read here once, without the
// compiler's builtins, which do not specify which state they check.
//
// One table lists for each requirement its name and its bit, so that a refusal can name what is
// missing. The sets are in ascending order: a set needs all rows up to its own.
#include "uops/cpp20.h"

#include "jit/runtime/cpu_features.h"

#include <cpuid.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "jit/runtime/cpu_features_testing.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

struct Leaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero if the CPU does not have the leaf: no feature.
Leaf CpuId(uint32_t leaf, uint32_t subleaf) {
  Leaf out;
  if (!__get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx)) return Leaf();
  return out;
}

// The state components that the system saves; 0 where it saves none of them.
uint32_t EnabledState() {
  if ((CpuId(1, 0).ecx & bit_OSXSAVE) == 0) return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Bits of XCR0.
constexpr uint32_t kYmmState = 0x06;  // xmm and the upper halves of ymm
constexpr uint32_t kZmmState = 0xe6;  // these, the masks, and both parts of zmm

// The CPUID and XCR0 data of this machine.
struct Machine {
  Leaf basic = CpuId(1, 0);
  Leaf extended = CpuId(7, 0);
  uint32_t state = EnabledState();
};

const Machine& ThisMachine() {
  static const Machine machine;
  return machine;
}

struct Requirement {
  Isa isa;  // the first set that needs it
  absl::string_view name;
  bool (*holds)(const Machine&);
};

constexpr Requirement kRequirements[] = {
    {Isa::kAvx2, "the system's support of ymm registers",
     [](const Machine& m) { return (m.state & kYmmState) == kYmmState; }},
    {Isa::kAvx2, "FMA", [](const Machine& m) { return (m.basic.ecx & bit_FMA) != 0; }},
    {Isa::kAvx2, "F16C", [](const Machine& m) { return (m.basic.ecx & bit_F16C) != 0; }},
    {Isa::kAvx2, "BMI1", [](const Machine& m) { return (m.extended.ebx & bit_BMI) != 0; }},
    {Isa::kAvx2, "AVX2", [](const Machine& m) { return (m.extended.ebx & bit_AVX2) != 0; }},
    {Isa::kAvx2, "BMI2", [](const Machine& m) { return (m.extended.ebx & bit_BMI2) != 0; }},
    {Isa::kAvx512, "the system's support of zmm registers",
     [](const Machine& m) { return (m.state & kZmmState) == kZmmState; }},
    {Isa::kAvx512, "AVX512F", [](const Machine& m) { return (m.extended.ebx & bit_AVX512F) != 0; }},
    {Isa::kAvx512, "AVX512DQ",
     [](const Machine& m) { return (m.extended.ebx & bit_AVX512DQ) != 0; }},
    {Isa::kAvx512, "AVX512BW",
     [](const Machine& m) { return (m.extended.ebx & bit_AVX512BW) != 0; }},
    {Isa::kAvx512, "AVX512VL",
     [](const Machine& m) { return (m.extended.ebx & bit_AVX512VL) != 0; }},
};

// An extension that no set requires, but that a machine may have in addition.
constexpr Requirement kDotProducts = {Isa::kAvx512, "AVX512_VNNI", [](const Machine& m) {
                                        return (m.extended.ecx & bit_AVX512VNNI) != 0;
                                      }};

// A requirement that is treated as missing: see LackForTesting.
std::atomic<const Requirement*> lacking{nullptr};

bool Holds(const Machine& machine, const Requirement& requirement) {
  return requirement.holds(machine) && &requirement != lacking.load(std::memory_order_relaxed);
}

absl::Status Check(const Machine& machine, Isa isa) {
  std::vector<absl::string_view> missing;
  for (const Requirement& requirement : kRequirements) {
    if (requirement.isa <= isa && !Holds(machine, requirement)) missing.push_back(requirement.name);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("this machine cannot run ", Name(isa),
                                                    ": it lacks ", absl::StrJoin(missing, ", ")));
}

// The greatest instruction set that the machine has, from the one that NESTOR_ISA names downwards.
absl::StatusOr<Isa> FindBestIsa() {
  Isa best = std::rbegin(kIsas)->isa;
  if (const char* limit = std::getenv("NESTOR_ISA"); limit != nullptr && *limit != '\0') {
    const absl::StatusOr<Isa> named = IsaByName(limit);
    if (!named.ok())
      return absl::InvalidArgumentError(absl::StrCat("NESTOR_ISA: ", named.status().message()));
    best = *named;
  }
  for (; best > kIsas[0].isa; best = static_cast<Isa>(static_cast<int>(best) - 1)) {
    if (Check(ThisMachine(), best).ok()) return best;
  }
  if (absl::Status lowest = Check(ThisMachine(), best); !lowest.ok()) return lowest;
  return best;
}

// The bytes that the system's library knows of a cache; `typical` where it knows none.
int64_t BytesOfCache(int name, int64_t typical) {
  const int64_t bytes = sysconf(name);
  return bytes > 0 ? bytes : typical;
}

// The library knows each maker's ways to describe caches: a virtual machine may hide the leaves of
// CPUID that describe them in full, and show only older ones.
CacheSizes FindCaches() {
  constexpr int64_t kTypicalL1 = int64_t{32} << 10, kTypicalL2 = int64_t{512} << 10;
  CacheSizes sizes;
  sizes.l1 = BytesOfCache(_SC_LEVEL1_DCACHE_SIZE, kTypicalL1);
  sizes.l2 = BytesOfCache(_SC_LEVEL2_CACHE_SIZE, kTypicalL2);
  const int64_t last = BytesOfCache(_SC_LEVEL3_CACHE_SIZE, sizes.l2);
  sizes.last = std::max(ShareOfLastCache(last, sysconf(_SC_NPROCESSORS_ONLN)), sizes.l2);
  return sizes;
}

// Three leaves hold the name, 16 characters each, in the order of the registers.
// "AMD EPYC 9R45 96-Core Processor    " -> "AMD_EPYC_9R45_96-Core_Processor": one word of a line
std::string FindCpuName() {
  std::string name;
  for (uint32_t leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    const Leaf part = CpuId(leaf, 0);
    for (const uint32_t word : {part.eax, part.ebx, part.ecx, part.edx}) {
      for (int shift = 0; shift < 32; shift += 8) name += static_cast<char>(word >> shift & 0xff);
    }
  }
  const auto is_no_letter = [](char c) {
    return c == '\0' || !absl::ascii_isgraph(static_cast<unsigned char>(c));
  };
  std::replace_if(name.begin(), name.end(), is_no_letter, ' ');
  const std::vector<absl::string_view> words = absl::StrSplit(name, ' ', absl::SkipEmpty());
  return words.empty() ? "unknown" : absl::StrJoin(words, "_");
}

}  // namespace

std::vector<absl::string_view> IsaNames() {
  std::vector<absl::string_view> names;
  for (const IsaFacts& facts : kIsas) names.push_back(facts.name);
  return names;
}

absl::StatusOr<Isa> IsaByName(absl::string_view name) {
  for (const IsaFacts& facts : kIsas) {
    if (facts.name == name) return facts.isa;
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no instruction set '", name, "', only ",
                                                 absl::StrJoin(IsaNames(), ", ")));
}

absl::StatusOr<Isa> BestIsa() {
  static const absl::StatusOr<Isa>& best = *new absl::StatusOr<Isa>(FindBestIsa());
  return best;
}

absl::Status CheckIsa(Isa isa) { return Check(ThisMachine(), isa); }

bool HasDotProducts(Isa isa) {
  return isa >= kDotProducts.isa && Holds(ThisMachine(), kDotProducts);
}

LackForTesting::LackForTesting(absl::string_view requirement) {
  const auto named = [&](const Requirement& r) { return r.name == requirement; };
  const Requirement* found =
      std::find_if(std::begin(kRequirements), std::end(kRequirements), named);
  if (named(kDotProducts)) found = &kDotProducts;
  NESTOR_CHECK(found != std::end(kRequirements) && lacking == nullptr, std::string(requirement));
  lacking = found;
}

LackForTesting::~LackForTesting() { lacking = nullptr; }

std::string CpuName() {
  static const std::string& name = *new std::string(FindCpuName());
  return name;
}

int64_t ShareOfLastCache(int64_t bytes, int64_t processors) {
  // About the amount that server processors have for each core.
  constexpr int64_t kMostForOne = int64_t{4} << 20;
  return std::min(bytes, kMostForOne * std::max<int64_t>(processors, 1));
}

CacheSizes Caches() {
  static const CacheSizes sizes = FindCaches();
  return sizes;
}

}  // namespace nestor::jit
