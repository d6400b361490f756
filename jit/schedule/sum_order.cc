// Loop interchange among the sums of a contraction. A window has few steps, and a loop of few steps
// around a long one costs less than the reverse: the innermost loop is entered seldom. Since all
// loops of the sums are perfectly nested, have step 1, and end in one statement, exchanging two is
// exchanging their heads (index and bounds); the body stays where it is.
#include "jit/schedule/sum_order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/zero_factor.h"
#include "loop_ir/affine.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {
namespace {

// A loop without its body.
struct Head {
  int32_t var;
  IndexId begin, end;
};

// The only loop in the body.
Loop* Inside(Loop& loop) {
  return absl::c_find_if(loop.body, [](const Item& item) { return item.As<Loop>() != nullptr; })
      ->As<Loop>();
}

// Windows first, in their order, and for small tiles the sums whose bounds move; then the few steps
// that can be written out move inside of a sum whose bounds move.
std::vector<const Loop*> Ordered(Program& program, const Contraction& nest, jit::Isa isa) {
  std::vector<const Loop*> ordered = nest.sums;
  std::stable_partition(ordered.begin(), ordered.end(), [&](const Loop* loop) {
    return absl::c_linear_search(nest.windows, loop) ||
           (!LeavesOutPadding(isa) && BoundsMove(program.pool, *loop));
  });
  for (size_t i = 0; i + 1 < ordered.size(); ++i) {
    const auto steps = KnownLength(program, *ordered[i]);
    const bool is_written_out = steps && *steps <= kMostWrittenOut;
    if (is_written_out && BoundsMove(program.pool, *ordered[i + 1]))
      std::swap(ordered[i], ordered[i + 1]);
  }
  return ordered;
}

// Permutes the loops of the sum by exchanging their heads, since each one holds only the next.
bool Order(Program& program, Loop& outermost, const Contraction& nest, jit::Isa isa) {
  const std::vector<const Loop*> ordered = Ordered(program, nest, isa);
  if (ordered == nest.sums) return false;
  std::vector<Head> heads;
  for (const Loop* loop : ordered) heads.push_back({loop->var, loop->begin, loop->end});
  // All of them are plain loops with step 1: their heads change places.
  Loop* loop = &outermost;
  while (loop->var != nest.sums[0]->var) loop = Inside(*loop);
  for (size_t i = 0; i < heads.size(); ++i) {
    loop->var = heads[i].var;
    loop->begin = heads[i].begin;
    loop->end = heads[i].end;
    if (i + 1 < heads.size()) loop = Inside(*loop);
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> SumWindowsFirst(Program& program, jit::Isa isa) {
  Ranges ranges(program);
  return ReplaceLoops(program, ranges, [&](Loop& loop) -> absl::optional<Scope> {
    const absl::optional<Contraction> nest = ContractionOf(program, loop);
    if (!nest || !Order(program, loop, *nest, isa)) return absl::nullopt;
    return ScopeOf(std::move(loop));
  });
}

}  // namespace nestor::loop
