// Which loops can run in lanes, and how many.
#ifndef NESTOR_JIT_CODEGEN_LANES_H_
#define NESTOR_JIT_CODEGEN_LANES_H_

#include <cstdint>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/optional.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::jit {

// e as a function of the loop index alone is e(0) + c * var: c, an expression without
// loop indices, 0 where e does not depend on it; nullopt where e is no such function
// (a division, a minimum, a gathered value..).
absl::optional<IndexId> CoefficientOf(loop::Program& program, IndexId e, int32_t var);

// Whether iterations of the loop can run side by side in the lanes of vectors, each
// inner loop once for all lanes: inner bounds, conditions and gathered places do not
// depend on the loop's index, places are linear in it and proven in range, values of
// index expressions linear with a constant coefficient, and no tensor that the body
// declares lies in memory. The loop carries no dependence: that is the caller's to know
// (loop_ir/dependence.h). REQUIRES: `ranges` is at the place of the loop.
bool RunsInLanes(loop::Program& program, loop::Ranges& ranges, const loop::Loop& loop);

// How many lanes fit where the widest value of the loop's body fills a vector.
int LanesOf(const loop::Program& program, const loop::Loop& loop, Isa isa);

// Whether all that e loads, if anything, are inputs, which no code changes.
bool LoadsOnlyInputs(const loop::Program& program, IndexId e);

// What is proven about a program before it is translated, in one walk.
struct Proofs {
  // By loop index: the lanes of the loops marked `vector` that run in them. Of nested
  // ones that is the outer.
  absl::flat_hash_map<int32_t, int> lane_loops;
  // Of accesses: the axes along which each is in range. What is proven of one in a loop,
  // which may not run at all, need not hold for the same one elsewhere: the innermost loop
  // around it belongs to the key, by its index (-1: none), and behind the place the
  // conditions.
  using Axes = absl::InlinedVector<bool, 4>;
  using Key = std::tuple<int32_t, loop::TensorId, absl::InlinedVector<IndexId, 4>>;
  absl::flat_hash_map<Key, Axes> axes_in_range;
  // Those of an access that `loop` is around; none where it was not looked at.
  Axes AxesInRange(int32_t loop, const loop::Access& access) const;
  static bool All(const Axes& axes) { return absl::c_all_of(axes, [](bool proven) { return proven; }); }
  static Key KeyOf(int32_t loop, const loop::Access& access);
};
Proofs ProofsOf(loop::Program& program, Isa isa);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_LANES_H_
