// The innermost batch loops of a contraction, if they are short: they move inside of its blocks.
#ifndef NESTOR_JIT_SCHEDULE_SHORT_LOOPS_H_
#define NESTOR_JIT_SCHEDULE_SHORT_LOOPS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// A loop over the elements of a window in their gradient, say, which lie together: with this
// loop outside, each line of results would be written as often as there are elements. A loop
// over a strip of an image's rows: all of them read the columns of a block of the sum while
// those are in the cache.
class ShortLoops {
 public:
  // REQUIRES: the arguments outlive this.
  ShortLoops(Program& program, Ranges& ranges) : program_(program), ranges_(ranges) {}

  // Takes them from the nest's batch loops, of which the first `kept` stay. `rows`: how many rows
  // the tiles of a block have.
  void TakeFrom(Contraction& nest, size_t kept, int64_t rows);

  // The result of `make`, in copies of those loops: of those around the blocks of a sum, and
  // of those within.
  Scope AroundSums(absl::FunctionRef<Scope()> make) const {
    return Inside(around_sums_, make, kPlain);
  }
  Scope InSums(absl::FunctionRef<Scope()> make) const { return Inside(in_sums_, make, kPlain); }
  // The same, written out where the lengths of all are numbers.
  Scope InSumsUnrolled(absl::FunctionRef<Scope()> make) const;

  // For those within blocks of a sum, outermost first: the most iterations, and the number of
  // the current one.
  bool HasAnyInSums() const { return !in_sums_.empty(); }
  Shape ExtentsInSums() const;
  IndexList PlaceInSums() const;
  // Whether stores of the statements of the scope move from element to element with the
  // innermost of them.
  bool StoresLieAlongInSums(const Scope& scope) const;
  // Whether the access moves with one of them, along an axis along which a sum moves, too.
  bool SlideInSums(const Access& access, const std::vector<const Loop*>& sums) const;

 private:
  struct Short {
    const Loop* loop;
    int64_t most;  // iterations
  };
  Scope Inside(const std::vector<Short>& loops, absl::FunctionRef<Scope()> make,
               LoopAttributes attributes) const;

  Program& program_;
  Ranges& ranges_;
  std::vector<Short> around_sums_, in_sums_;  // outermost first; the latter go inside the former
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SHORT_LOOPS_H_
