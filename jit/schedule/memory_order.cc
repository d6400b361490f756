// A reduction over rows of a matrix, sum over k of x[k, j] for each j, jumps a whole row at each
// step if j is outside, so that a cache line is fetched for one element. Here the loop along memory
// moves inside: loop interchange, after the accumulator has become a row of accumulators (scalar
// expansion; Allen and Kennedy, "Optimizing Compilers for Modern Architectures", 2001, ch. 5).
// Strips bound that row, so that it stays in the first cache.
//
// The loop along memory is distributed over the items of its body, and moves inside the loops among
// them. This is legal, as its iterations do not depend on each other, and each has an element of
// its own for a scalar of the body. Each element is still summed over k in the same order.
#include "jit/schedule/memory_order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fusion/scopes.h"
#include "jit/schedule/attributes.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/lanes.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// The sums of so many columns stay in registers, and the rows in a cache line or two.
constexpr int64_t kFewColumns = 16;

// A loop that moves inside, in strips of `width`, which `strip` numbers.
struct Strips {
  const Loop* loop;
  int64_t width;
  int32_t strip;   // the loop over strips
  int32_t inside;  // stands for the place within a strip, until loops over it are made
  IndexId count;   // of places in a strip
};

class MemoryOrder {
 public:
  MemoryOrder(Program& program, const MemoryOrderOptions& options)
      : program_(program), pool_(program.pool), options_(options), ranges_(program) {}

  bool Run() { return Visit(program_.body); }

 private:
  bool Visit(Scope& scope) {
    bool changed = false;
    for (Item& item : scope) {
      if (auto* loop = item.As<Loop>()) changed |= Visit(*loop);
    }
    return changed;
  }

  // Two loops move where the reduction jumps over both, as in x[k, i, j] summed over k; else one
  // does.
  bool Visit(Loop& loop) {
    const Scheduled scheduled = ScheduledOf(loop);
    if (scheduled == Scheduled::kAll) return false;
    if (scheduled == Scheduled::kInPart) return Inside(loop);
    const Loop* only = OnlyLoopIn(loop.body);
    if (only != nullptr && Moves(loop) && !BoundsHold(*only, loop.var)) {
      ranges_.Enter(loop);
      const bool both = Qualifies(*only) && JumpsOver(*only, loop.var);
      ranges_.Leave();
      if (both) return Change(loop, {&loop, only});
    }
    if (Qualifies(loop)) return Change(loop, {&loop});
    return Inside(loop);
  }

  bool Inside(Loop& loop) {
    ranges_.Enter(loop);
    const bool changed = Visit(loop.body);
    ranges_.Leave();
    return changed;
  }

  bool Moves(const Loop& loop) const {
    return loop.step == 1 && !loop.attributes.vector && !CarriedTensor(program_, loop).has_value();
  }

  // Whether the bounds of the loop, or of one inside, move with the index: then the loop over that
  // index cannot move inside of it.
  bool BoundsHold(const Loop& loop, int32_t var) const {
    bool found = BoundsMoveWith(pool_, loop, var);
    VisitItems(loop.body, [&](const Item& item) {
      const auto* inner = item.As<Loop>();
      found |= inner != nullptr && BoundsMoveWith(pool_, *inner, var);
    });
    return found;
  }

  // Whether the body consists of scalars, loops that reduce across rows, and statements, for more
  // columns than a few.
  bool Qualifies(const Loop& loop) {
    if (MostIterations(program_, loop).value_or(kFewColumns + 1) <= kFewColumns) return false;
    bool reduces = false;
    for (const Item& item : loop.body) {
      if (const auto* inner = item.As<Loop>()) {
        if (!Reduces(*inner, loop.var)) return false;
        reduces = true;
      } else if (const auto* declaration = item.As<Declaration>()) {
        const TensorInfo& info = program_[declaration->tensor];
        const bool is_arg = info.storage == Storage::kAccumulator && IsArg(info.op);
        if (!info.shape.empty() || is_arg) return false;
      }
    }
    return reduces && Moves(loop) && RunsInLanes(program_, ranges_, loop);
  }

  // Whether the loop, or the innermost of a chain of loops, jumps itself, and holds only statements
  // that walk from element to element with `column`, or stay.
  bool Reduces(const Loop& loop, int32_t column) {
    if (const Loop* only = OnlyLoopIn(loop.body)) return Reduces(*only, column);
    bool walks = false, good = true;
    for (const Item& item : loop.body) {
      good = good && item.As<Loop>() == nullptr;
      VisitAccesses(program_, item, [&](TensorId, absl::Span<const IndexId> place, AccessKind) {
        if (AxisOf(place, column) == -1) return;
        good = good && AxisOf(place, column) + 1 == static_cast<int>(place.size()) &&
               AxisOf(place, loop.var) != static_cast<int>(place.size()) - 1;
        walks = true;
      });
    }
    return good && walks;
  }

  // The one axis that moves with the index, by one; -1: none, -2: others.
  int AxisOf(absl::Span<const IndexId> place, int32_t var) const {
    int found = -1;
    for (size_t axis = 0; axis < place.size(); ++axis) {
      const auto step = StrideIn(pool_, place[axis], var);
      if (step == 0) continue;
      if (step != 1 || found != -1) return -2;
      found = static_cast<int>(axis);
    }
    return found;
  }

  // Whether reductions in `columns` move along an axis further out than `row` does.
  bool JumpsOver(const Loop& columns, int32_t row) {
    bool jumps = true;
    for (const Item& item : columns.body) {
      const Loop* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      loop = BandOf(*loop).back();
      for (const Item& inner : loop->body) {
        VisitAccesses(program_, inner,
                      [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind) {
                        if (program_[tensor].shape.empty()) return;
                        const int outer = AxisOf(place, loop->var), inside = AxisOf(place, row);
                        jumps = jumps && outer >= 0 && outer < inside;
                      });
      }
    }
    return jumps;
  }

  // Replaces `target` by the loops over strips; the last of `loops` is the one along
  // memory, and the one before it, if any, holds nothing else.
  bool Change(Loop& target, const std::vector<const Loop*>& loops) {
    std::vector<Strips> strips;
    for (size_t i = 0; i < loops.size(); ++i) {
      const bool last = i + 1 == loops.size();
      strips.push_back(StripsOf(*loops[i], last ? options_.columns : options_.rows));
    }
    Scope body = loops.back()->body;
    Scope changed = Expand(body, strips);
    Distribute(std::move(body), strips, changed);
    for (size_t i = strips.size(); i-- > 0;) {
      const Strips& s = strips[i];
      const IndexId length = ranges_.LengthOf(*s.loop);
      const IndexId count =
          pool_.Div(pool_.Add(length, pool_.Const(s.width - 1)), pool_.Const(s.width));
      Loop over{s.strip, pool_.Const(0), count, 1, s.loop->attributes, std::move(changed)};
      changed.clear();
      changed.push_back({std::move(over)});
    }
    Loop result = std::move(*changed[0].As<Loop>());
    target = std::move(result);
    return true;
  }

  Strips StripsOf(const Loop& loop, int64_t width) {
    Strips strips{&loop, width, program_.AddVar(program_.vars[loop.var]), program_.AddVar("c"), {}};
    const IndexId done = pool_.Mul(pool_.Var(strips.strip), pool_.Const(width));
    strips.count = pool_.Min(pool_.Const(width), pool_.Sub(ranges_.LengthOf(loop), done));
    if (NESTOR_MUTANT("last_strip_whole")) strips.count = pool_.Const(width);
    return strips;
  }

  // The scalars of the body get an element for each place in the strips; returns their declarations
  // and the statements that set accumulators to their identities.
  Scope Expand(Scope& body, const std::vector<Strips>& strips) {
    const std::vector<TensorId> scalars = DeclaredIn(body);
    Scope declarations, identities;
    for (TensorId tensor : scalars) {
      declarations.push_back(DeclarationOf(tensor));
      TensorInfo& info = program_[tensor];
      if (info.storage == Storage::kAccumulator) {
        Statement identity;
        identity.target = {tensor};
        identity.value = program_.AddConstant(Identity(info.op, info.type));
        identities.push_back({std::move(identity)});
      }
    }
    Insert(body, 0, std::move(identities));
    body.erase(std::remove_if(body.begin(), body.end(),
                              [](const Item& item) { return item.As<Declaration>() != nullptr; }),
               body.end());
    const absl::flat_hash_set<TensorId> expanded(scalars.begin(), scalars.end());
    RewritePlaces(program_, body, [&](TensorId tensor, IndexList& place) {
      if (!expanded.contains(tensor)) return false;
      for (const Strips& s : strips) place.push_back(pool_.Var(s.inside));
      return true;
    });
    for (TensorId tensor : scalars) {
      TensorInfo& info = program_[tensor];
      info.storage = Storage::kTemp;
      for (const Strips& s : strips) info.shape.push_back(pool_.Const(s.width));
    }
    return declarations;
  }

  // Appends `items` to `out`, with the loops inside strips around their statements.
  //
  //   a = 0  for k { a += x[k, j] }  y[j] = a
  //     ->  for c { a[c] = 0 }  for k { for c { a[c] += x[k, ..] } }  for c { y[..] = a[c] }
  void Distribute(Scope items, const std::vector<Strips>& strips, Scope& out) {
    Scope run;
    const auto flush = [&] {
      if (!run.empty()) out.push_back(Inside(std::move(run), strips));
      run.clear();
    };
    for (Item& item : items) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr) {
        run.push_back(std::move(item));
        continue;
      }
      flush();
      Scope body;
      Distribute(std::move(loop->body), strips, body);
      loop->body = std::move(body);
      out.push_back(std::move(item));
    }
    flush();
  }

  // for q in a strip of rows { for c in a strip of columns { items } }
  Item Inside(Scope items, const std::vector<Strips>& strips) {
    VarReplacement replace(program_);
    std::vector<int32_t> vars;
    for (const Strips& s : strips) {
      vars.push_back(program_.AddVar("c"));
      const IndexId inside = pool_.Var(vars.back());
      replace.Set(s.inside, inside);
      const IndexId done = pool_.Mul(pool_.Var(s.strip), pool_.Const(s.width));
      replace.Set(s.loop->var, pool_.Add(s.loop->begin, pool_.Add(done, inside)));
    }
    RewriteIndices(program_, items, [&](IndexId e) { return replace(e); });
    for (size_t i = strips.size(); i-- > 0;) {
      Loop loop{vars[i], pool_.Const(0), strips[i].count, 1, {}, std::move(items)};
      items.clear();
      items.push_back({std::move(loop)});
    }
    return std::move(items[0]);
  }

  Program& program_;
  IndexPool& pool_;
  const MemoryOrderOptions& options_;
  Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> WalkInMemoryOrder(Program& program, const MemoryOrderOptions& options) {
  return MemoryOrder(program, options).Run();
}

}  // namespace nestor::loop
