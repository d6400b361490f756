// Bytes walked: the traffic between memory and a cache that running a program
// takes, at given sizes.
//
// The cache is fully associative, replaces the least recently used, and holds `cache_bytes` of
// single elements. Counted here are
//   - a load whose element is not in the cache: one of an input that was not
//     touched before, or one whose reuse distance exceeds the cache (the bytes of
//     different elements touched since, the element's own included);
//   - a store that must be written: an element that leaves the cache changed and
//     is touched again, or holds an output at the end. Storing needs no load.
// An accumulation is a load and a store. Not counted: temps and accumulators that are registers
// (LivesInMemory), loads whose mask is closed; so nothing counts for a temporary whose whole life
// passes in the cache. A temp that a loop's body declares is one place, fresh on each entry: what
// it held is never written.
#ifndef NESTOR_FUSION_COST_BYTES_WALKED_H_
#define NESTOR_FUSION_COST_BYTES_WALKED_H_

#include <cstdint>

#include "loop_ir/sized_program.h"

namespace nestor::loop {

struct BytesWalked {
  double loads = 0;
  double stores = 0;
  double Total() const { return loads + stores; }
};

// Estimates from footprints, in milliseconds for hundreds of blocks, whatever the sizes. Exact
// where nests walk whole tensors in like order and reuse is either well within the cache or well
// beyond; else an estimate, mostly within 10 % (the tests say where it is not): footprints are
// boxes, indices of outer loops are represented by their middle value, gathers touch as many
// elements as they can, conditions of masks are taken to hold. Where a loop's working set is about
// the cache's size, it may be off by 2.
BytesWalked EstimateBytesWalked(const SizedProgram& program, int64_t cache_bytes);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_COST_BYTES_WALKED_H_
