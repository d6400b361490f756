// The loop becomes three: the steps up to a whole vector of memory, blocks (scan_block.h), and what
// is left over. Here is decided whether a loop is a scan along memory that may be reordered; the
// blocks are made elsewhere. The carried scalar passes from part to part, so that the parts need to
// know nothing else of each other.
#include "jit/schedule/scan_lanes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/reordering.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/scan_block.h"
#include "jit/schedule/scan_finder.h"
#include "jit/target/lanes.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/lanes.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "loop_ir/scans.h"

namespace nestor::loop {
namespace {

class LaneScans {
 public:
  LaneScans(Program& program, const ScanLanesOptions& options)
      : program_(program), pool_(program.pool), options_(options), ranges_(program) {}

  // Loops in steps of one whose recurrence may be computed in another order, along memory.
  bool Run() {
    return ReplaceLoops(program_, ranges_, [&](Loop& loop) -> absl::optional<Scope> {
      if (loop.step != 1) return absl::nullopt;
      const absl::optional<Scan> scan = FindScan(program_, loop);
      if (!scan || !MayReorderSteps(*scan)) return absl::nullopt;
      const absl::optional<bool> backward = Direction(loop);
      const int64_t width = jit::LanesOf(program_[scan->carried].type, options_.isa);
      if (!backward || !Qualifies(loop, *scan, width)) return absl::nullopt;
      return InBlocks(loop, *scan, width, *backward);
    });
  }

 private:
  bool MayReorderSteps(const Scan& scan) const {
    return absl::c_all_of(scan.path.terms, [&](const ScanPath::Term& term) {
      return MayReorder(term.op, program_[scan.carried].type, options_.reorders_rounding);
    });
  }

  // Whether time runs backward along memory; nullopt where most accesses jump.
  absl::optional<bool> Direction(const Loop& loop) {
    int up = 0, down = 0, jumps = 0;
    for (const Item& item : loop.body) {
      VisitAccesses(program_, item, [&](TensorId, absl::Span<const IndexId> place, AccessKind) {
        const auto moves = [&](IndexId e) { return HoldsVar(pool_, e, loop.var); };
        if (absl::c_none_of(place, moves)) return;
        const bool along_row = absl::c_none_of(place.first(place.size() - 1), moves);
        const auto step = along_row ? StrideIn(pool_, place.back(), loop.var) : absl::nullopt;
        ++(step == 1 ? up : step == -1 ? down : jumps);
      });
    }
    if (std::max(up, down) <= 2 * (jumps + std::min(up, down))) return absl::nullopt;
    return down > up;
  }

  // Without the statements that change the scalar, no iteration may depend on another.
  bool Qualifies(const Loop& loop, const Scan& scan, int64_t width) {
    if (jit::LanesOf(program_, loop, options_.isa) != width ||
        !RunsInLanes(program_, ranges_, loop))
      return false;
    // Only the scalar is carried.
    Loop rest = loop;
    rest.body.erase(std::remove_if(rest.body.begin(), rest.body.end(),
                                   [&](const Item& item) {
                                     const auto* statement = item.As<Statement>();
                                     return statement != nullptr &&
                                            statement->target.tensor == scan.carried;
                                   }),
                    rest.body.end());
    return !CarriedTensor(program_, rest).has_value();
  }

  // The number of steps after which rows of a block are whole vectors of memory, if a row of the
  // stored tensor begins with one.
  IndexId StepsBefore(const Loop& loop, int64_t width, bool backward) {
    for (const Item& item : loop.body) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || statement->target.place.empty()) continue;
      const IndexId place = statement->target.place.back();
      if (StrideIn(pool_, place, loop.var) != (backward ? -1 : 1)) continue;
      VarReplacement start(program_);
      start.Set(loop.var, loop.begin);
      const IndexId first = start(place), zero = pool_.Const(0);
      const IndexId steps = backward ? pool_.Add(first, pool_.Const(1)) : pool_.Sub(zero, first);
      return pool_.Mod(steps, pool_.Const(width));
    }
    return pool_.Const(0);
  }

  // The loop in three parts: up to a whole vector, whole blocks, and the rest.
  absl::optional<Scope> InBlocks(Loop& loop, const Scan& scan, int64_t width, bool backward) {
    const IndexId steps = pool_.Const(width * width);
    Loop rest = loop;
    rest.begin = pool_.Add(loop.begin, StepsBefore(loop, width, backward));
    if (ranges_.Less(pool_.Sub(rest.end, rest.begin), steps)) return absl::nullopt;
    const IndexId blocks = pool_.Div(ranges_.LengthOf(rest), steps);
    Scope scope;
    if (loop.begin != rest.begin) Append(scope, Fresh(loop, pool_.Min(rest.begin, loop.end)));
    Append(scope, Blocks(loop, scan, width, backward, rest.begin, blocks));
    rest.begin = pool_.Add(rest.begin, pool_.Mul(blocks, steps));
    if (!pool_.IsConst(pool_.Sub(rest.end, rest.begin), 0)) Append(scope, ScopeOf(std::move(rest)));
    return scope;
  }

  // `count` blocks from `begin` on, and the code that they share. Without a block, elements that
  // this code loads may not exist: then it must not run, either.
  Scope Blocks(const Loop& loop, const Scan& scan, int64_t width, bool backward, IndexId begin,
               IndexId count) {
    LoopMaker make(program_);
    const IndexId steps = pool_.Const(width * width);
    const std::unique_ptr<ScanBlocks> maker = BlocksOf(program_, loop, scan, width, backward);
    Scope scope = maker->Before();
    const bool loads = LoadsElements(scope);
    Append(scope, make.Counted(program_.vars[loop.var], count, kPlain, [&](IndexId block) {
      return maker->At(pool_.Add(begin, pool_.Mul(block, steps)));
    }));
    if (!loads) return scope;
    return make.If(pool_.Min(pool_.Const(1), count), [&] { return std::move(scope); });
  }

  bool LoadsElements(const Scope& scope) const {
    bool any = false;
    for (const Item& item : scope) {
      VisitAccesses(program_, item, [&](TensorId, absl::Span<const IndexId> place, AccessKind) {
        any |= !place.empty();
      });
    }
    return any;
  }

  // A copy of the loop up to `end`, with an index and tensors of its own.
  Scope Fresh(const Loop& loop, IndexId end) {
    Loop part = loop;
    part.end = end;
    absl::optional<Loop> copy = FreshCopy(program_, ranges_, part);
    return copy ? ScopeOf(*std::move(copy)) : Scope();
  }

  Program& program_;
  IndexPool& pool_;
  const ScanLanesOptions& options_;
  Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> ScanInLanes(Program& program, const ScanLanesOptions& options) {
  return LaneScans(program, options).Run();
}

}  // namespace nestor::loop
