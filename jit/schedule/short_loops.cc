// A short batch loop around a product, as over the 3 x 3 places of a window in the gradient by
// weights, may run inside of the loops over blocks: then the columns of a block are read from the
// cache by all of its iterations. The price is memory for partial sums: if the sum is cut into
// blocks, each iteration keeps its own between them. So loops are taken from the innermost on while
// the number of rows whose sums wait stays below kMostRowsWaiting, and those beyond go around the
// sum's blocks instead.
#include "jit/schedule/short_loops.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "jit/schedule/access_moves.h"
#include "loop_ir/affine.h"

namespace nestor::loop {
namespace {

// A batch loop inside of blocks has no more iterations than this: the results that they write stay
// in the caches.
constexpr int64_t kMostInside = 8;

// Loops inside of a block of the sum share its columns, but partial sums of this many rows are kept
// for the next block: blocks of 128 rows at the nine places of a 3x3 window.
constexpr int64_t kMostRowsWaiting = 1152;

}  // namespace

// Stops at the first loop that is not proven to be short: loops keep their order.
void ShortLoops::TakeFrom(Contraction& nest, size_t kept, int64_t rows) {
  while (nest.batch.size() > kept) {
    const Loop& batch = *nest.batch.back();
    const int64_t length = std::max<int64_t>(KnownLength(program_, batch).value_or(kMostInside), 1);
    if (length > kMostInside ||
        !ranges_.Less(ranges_.LengthOf(batch), program_.pool.Const(length + 1)))
      return;
    rows *= length;
    std::vector<Short>& loops = rows <= kMostRowsWaiting ? in_sums_ : around_sums_;
    loops.insert(loops.begin(), {&batch, length});
    nest.batch.pop_back();
  }
}

Scope ShortLoops::InSumsUnrolled(absl::FunctionRef<Scope()> make) const {
  const bool known = absl::c_all_of(
      in_sums_, [&](const Short& batch) { return KnownLength(program_, *batch.loop); });
  return Inside(in_sums_, make, known ? kUnrolled : kPlain);
}

Scope ShortLoops::Inside(const std::vector<Short>& loops, absl::FunctionRef<Scope()> make,
                         LoopAttributes attributes) const {
  Scope scope = make();
  for (size_t i = loops.size(); i-- > 0;) {
    scope = AroundAnew(program_, *loops[i].loop, std::move(scope));
    scope[0].As<Loop>()->attributes = attributes;
  }
  return scope;
}

Shape ShortLoops::ExtentsInSums() const {
  Shape extents;
  for (const Short& batch : in_sums_) extents.push_back(program_.pool.Const(batch.most));
  return extents;
}

IndexList ShortLoops::PlaceInSums() const {
  IndexPool& pool = program_.pool;
  IndexList place;
  for (const Short& batch : in_sums_)
    place.push_back(pool.Sub(pool.Var(batch.loop->var), batch.loop->begin));
  return place;
}

bool ShortLoops::StoresLieAlongInSums(const Scope& scope) const {
  return !in_sums_.empty() && StoresLieAlong(program_, scope, *in_sums_.back().loop);
}

bool ShortLoops::SlideInSums(const Access& access, const std::vector<const Loop*>& sums) const {
  return absl::c_any_of(in_sums_, [&](const Short& batch) {
    return SlidesAlong(program_, access, sums, *batch.loop);
  });
}

}  // namespace nestor::loop
