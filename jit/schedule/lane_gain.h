// How well a loop suits vectors.
#ifndef NESTOR_JIT_SCHEDULE_LANE_GAIN_H_
#define NESTOR_JIT_SCHEDULE_LANE_GAIN_H_

#include "loop_ir/program.h"

namespace nestor::loop {

// The weight of a loop level: an inner loop repeats its body about this often.
constexpr double kIterations = 16;

// A sum over the accesses and operations in the loop's body, each counted as often as the loops
// inside repeat it: positive for accesses that step from one element to the next, or stay, as the
// loop goes on, and for loads of every second element where the code has shuffles for them;
// negative for accesses that jump; positive for operations, by a little.
double LaneGain(const Program& program, const Loop& loop);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_LANE_GAIN_H_
