// The costs of a program at given sizes, in figures to compare programs by.
#ifndef NESTOR_FUSION_COST_STATISTICS_H_
#define NESTOR_FUSION_COST_STATISTICS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "fusion/cost/bytes_walked.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/program.h"
#include "loop_ir/sized_program.h"

namespace nestor::loop {

struct Statistics {
  // Counts of the text.
  int64_t blocks = 0;  // loops at the top
  int64_t loops = 0;
  int64_t statements = 0;
  // Floating-point operations: an accumulation is one, and so is each application
  // of a scalar op to floats that gives their type, whether primitive, composed or
  // transcendental; one of three operands (fma) is two. Comparisons, choices, casts
  // and integers are none. Exact to 2^53 where loops are rectangles or no longer
  // than a few thousand; what masks leave out is counted.
  double flops = 0;
  // Bytes of the results of primitive scalar operations, with the operations of composed ops
  // counted one by one; an accumulation is one, too: the vectors that arithmetic yields, in bytes.
  // Then the same for products, and for quotients alone (work.h).
  double result_bytes = 0, product_bytes = 0, quotient_bytes = 0;
  int64_t input_bytes = 0;  // of inputs whose elements are read
  int64_t output_bytes = 0;
  int64_t temp_bytes = 0;  // all that live in memory (memory_plan.h), side by side
  // As memory_plan.h places them: the program's temporaries, and those of scopes for one worker.
  int64_t arena_bytes = 0, private_bytes = 0;
  int64_t arena_lower_bound = 0;  // of arena_bytes
  BytesWalked walked;             // bytes_walked.h
};

struct StatisticsOptions {
  int64_t cache_bytes = int64_t{1} << 20;
};

// InvalidArgument where a size is missing, negative or too large. Takes milliseconds for hundreds
// of blocks. REQUIRES: Verify accepts the program.
absl::StatusOr<Statistics> StatisticsOf(const Program& program, const Sizes& sizes,
                                        const StatisticsOptions& options = {});

// Sets temp_bytes, arena_bytes, private_bytes and arena_lower_bound to what the plan of
// the program says.
absl::Status MeasureMemory(const SizedProgram& program, const MemoryPlan& plan,
                           Statistics& statistics);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_COST_STATISTICS_H_
