// A hash that is the same in every process and on every machine, for data that is kept in files.
// Not for use against an adversary.
#ifndef NESTOR_UOPS_STABLE_HASH_H_
#define NESTOR_UOPS_STABLE_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace nestor {

// FNV-1a of 64 bits (Fowler, Noll, Vo). `seed`: for hashes of several kinds.
inline uint64_t StableHash(absl::string_view bytes, uint64_t seed = 0) {
  uint64_t hash = 14695981039346656037u ^ (seed * 0x9e3779b97f4a7c15u);
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

}  // namespace nestor

#endif  // NESTOR_UOPS_STABLE_HASH_H_
