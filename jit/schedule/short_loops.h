// The innermost batch loops of a contraction, if they are short: they go inside of its blocks.
#ifndef NESTOR_JIT_SCHEDULE_SHORT_LOOPS_H_
#define NESTOR_JIT_SCHEDULE_SHORT_LOOPS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::jit {

// Of the gradient of a window's elements, say, which lie together: with a loop over them outside, their results would
// be written line by line as often as there are elements. Of a strip of an image's rows: all of them read the columns
// of a block of the sum while those are in the cache.
class ShortLoops {
 public:
  // REQUIRES: the arguments outlive this.
  ShortLoops(loop::Program& program, loop::Ranges& ranges) : program_(program), ranges_(ranges) {}

  // Takes them from the nest's batch loops, of which the first `kept` stay. `rows`: of the tiles of a block.
  void TakeFrom(Contraction& nest, size_t kept, int64_t rows);

  // What `make` gives, in copies of those loops: of those around the blocks of a sum, and of those within.
  loop::Scope AroundSums(absl::FunctionRef<loop::Scope()> make) const {
    return Inside(around_sums_, make, kPlain);
  }
  loop::Scope InSums(absl::FunctionRef<loop::Scope()> make) const { return Inside(in_sums_, make, kPlain); }
  // The same, written out where the lengths of all are numbers.
  loop::Scope InSumsUnrolled(absl::FunctionRef<loop::Scope()> make) const;

  // Of those within blocks of a sum, outermost first: how many iterations there are at most, and which this is.
  bool HasAnyInSums() const { return !in_sums_.empty(); }
  Shape ExtentsInSums() const;
  IndexList PlaceInSums() const;
  // Whether what the statements of the scope store lies side by side along the innermost of them.
  bool StoresLieAlongInSums(const loop::Scope& scope) const;
  // Whether the access moves with one of them, and what is summed slides over it.
  bool SlideInSums(const loop::Access& access, const std::vector<const loop::Loop*>& sums) const;

 private:
  struct Short {
    const loop::Loop* loop;
    int64_t most;  // iterations
  };
  loop::Scope Inside(const std::vector<Short>& loops, absl::FunctionRef<loop::Scope()> make,
                     loop::LoopAttributes attributes) const;

  loop::Program& program_;
  loop::Ranges& ranges_;
  std::vector<Short> around_sums_, in_sums_;  // outermost first; the latter go inside the former
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_SHORT_LOOPS_H_
