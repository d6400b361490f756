// Masks: which conditions an access needs, and whether it is ever made.
#ifndef NESTOR_FUSION_SIMPLIFY_ACCESS_H_
#define NESTOR_FUSION_SIMPLIFY_ACCESS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// The findings about accesses at one place of a program. Expressions hold many accesses that differ
// only in the tensor, or in conditions that do not matter.
class AccessMemo {
 public:
  // The same facts must hold at all uses of one memo.
  AccessMemo() = default;

 private:
  friend class AccessSimplifier;
  struct Outcome {
    bool made, masked;
    IndexList place, conditions;
  };
  using Key = std::vector<int32_t>;  // of what is asked, see simplify_access.cc
  absl::flat_hash_map<Key, Outcome> outcomes_;
  absl::flat_hash_map<Key, absl::optional<bool>> decided_;  // conditions of accesses in range
};

// Simplifies the place and the conditions of an access made at the place of `ranges`; unmasks it if
// it is always in range. False where the access, a masked one, is never made: a load always gives
// its fill, a store is always dropped.
bool SimplifyAccess(Program& program, Ranges& ranges, AccessMemo& memo, Access& access);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_SIMPLIFY_ACCESS_H_
