// How much of a program passes have looked at: a measure of work that is the same on each
// machine, for tests of how fusion grows with a program.
#ifndef NESTOR_FUSION_STEPS_H_
#define NESTOR_FUSION_STEPS_H_

#include <cstddef>
#include <cstdint>

namespace nestor::loop {

// Accesses, values and touched tensors that substitution, merging and value numbers of
// this thread have looked at so far, and conditions that simplification of accesses has
// tried to prove. Nothing depends on it.
inline int64_t& StepsOfThread() {
  thread_local int64_t steps = 0;
  return steps;
}

inline void CountSteps(size_t steps) { StepsOfThread() += static_cast<int64_t>(steps); }

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_STEPS_H_
