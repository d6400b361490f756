// Which loops can run in the lanes of vectors.
#ifndef NESTOR_LOOP_IR_LANES_H_
#define NESTOR_LOOP_IR_LANES_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// Whether all that e loads, if anything, are inputs, which no code changes.
bool LoadsOnlyInputs(const Program& program, IndexId e);

// Loads whose elements may be out of range in some lanes, and are masked there.
enum class LaneMasks { kNone, kLoads };

// Whether iterations of the loop can run side by side in the lanes of vectors, each inner loop once
// for all lanes: inner bounds, conditions and gathered places do not depend on the loop's index,
// places are linear in it and proven in range, values of index expressions linear with a constant
// coefficient, and no tensor that the body declares lies in memory. With kLoads, masked loads of
// anything but booleans may leave their range along one axis, along which they go up by one from
// lane to lane. The loop must carry no dependence, which the caller has to know
// (loop_ir/dependence.h). REQUIRES: `ranges` is at the place of the loop.
bool RunsInLanes(const Program& program, Ranges& ranges, const Loop& loop,
                 LaneMasks masks = LaneMasks::kNone);
// The same with kLoads, decided by the marks of accesses. REQUIRES: the program is
// proven (proofs.h).
bool RunsInLanesAsMarked(const Program& program, const Loop& loop);

// The longest axis of register tiles that the loop walks along; nullopt: it walks none.
absl::optional<int64_t> TileExtent(const Program& program, const Loop& loop);
// How often the loop runs at most: its length, if that is a number; the number that the form of its
// end says it does not exceed, as min(N, 7); else its tile's extent.
absl::optional<int64_t> MostIterations(const Program& program, const Loop& loop);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_LANES_H_
