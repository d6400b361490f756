// Counts what the process asks operator new for. Linking this replaces operator new.
#ifndef NESTOR_TESTS_ALLOCATION_COUNTER_H_
#define NESTOR_TESTS_ALLOCATION_COUNTER_H_

#include <cstdint>

namespace nestor {

struct Allocations {
  int64_t count = 0, bytes = 0;
};
Allocations AllocationsSoFar();

}  // namespace nestor

#endif  // NESTOR_TESTS_ALLOCATION_COUNTER_H_
