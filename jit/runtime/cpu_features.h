// Which instruction sets this machine has, and which of them may be used.
#ifndef NESTOR_JIT_RUNTIME_CPU_FEATURES_H_
#define NESTOR_JIT_RUNTIME_CPU_FEATURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/target/isa.h"

namespace nestor::jit {

// The names that IsaByName knows, in ascending order of the sets.
std::vector<absl::string_view> IsaNames();
// InvalidArgument, naming what there is.
absl::StatusOr<Isa> IsaByName(absl::string_view name);

// The best set that the CPU and the operating system support, up to the one that the environment
// variable NESTOR_ISA names, if it is set. FailedPrecondition where there is none, naming what is
// missing; InvalidArgument for a wrong NESTOR_ISA. Asks the CPU once; thread-safe.
absl::StatusOr<Isa> BestIsa();
// FailedPrecondition, naming what the CPU lacks, where it cannot run `isa`.
absl::Status CheckIsa(Isa isa);

// Whether the machine has AVX512_VNNI beside the set: sums of products of narrow integers in one
// instruction.
bool HasDotProducts(Isa isa);

// Bytes of the caches of one core as the system reports them, or typical ones where it does not
// know them; the last level as ShareOfLastCache.
struct CacheSizes {
  int64_t l1 = 0, l2 = 0, last = 0;
};
CacheSizes Caches();

// The part of a last cache of so many bytes that a machine with so many processors may count on:
// a virtual machine with two processors may report the whole cache that all processors of its
// host share.
int64_t ShareOfLastCache(int64_t bytes, int64_t processors);

// The processor's own name, with underscores for blanks: "AMD_EPYC_9R45"; "unknown" if it has none.
std::string CpuName();

}  // namespace nestor::jit

#endif  // NESTOR_JIT_RUNTIME_CPU_FEATURES_H_
