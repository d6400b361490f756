// An op that reshapes writes x[i / M, i % M]: a division at each element, and no vector loads, as
// nothing proves that i % M grows with i. Splitting i = q*M + r into two loops removes both: the
// quotient is the outer index, the remainder the inner one (strip-mining, with the divisor for the
// length of a strip).
//
// All is symbolic. M may be 0 or negative at run time, so that M itself may not be the width of the
// inner loop: it is max(M, 1), and the number of whole quotients is 0 unless M is positive; the
// rest, a copy of the nest as it was, then runs all iterations. A shifted index, (i - s) % N, has
// no whole quotients, but stretches in which the quotient is the same; there the loop over
// stretches goes around the same iterations in the same order, so that no independence has to be
// proven.
#include "jit/schedule/split_quotients.h"

#include <algorithm>
#include <utility>

#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

constexpr int64_t kLeastDivisor = 16;

class QuotientSplitter {
 public:
  QuotientSplitter(Program& program, Ranges& ranges)
      : program_(program), pool_(program.pool), ranges_(ranges) {}

  // The scope that replaces the nest; nullopt where none of its indices is divided.
  absl::optional<Scope> Divided(Loop& outermost) {
    const absl::optional<Split> split = SplitOf(outermost);
    if (!split) return absl::nullopt;
    absl::optional<Loop> rest = Rest(outermost, *split);
    if (split->shift) ReplaceShifted(outermost, *split);
    else Replace(outermost, *split);
    Scope scope = ScopeOf(std::move(outermost));
    if (rest) Append(scope, ScopeOf(*std::move(rest)));
    return scope;
  }

 private:
  struct Split {
    int32_t var;
    IndexId divisor;
    absl::optional<IndexId> shift = {};  // that is added to the index in the dividend
  };

  // The first loop, from the outside in, whose index is divided and which may be split.
  absl::optional<Split> SplitOf(const Loop& outermost) {
    for (const Loop* loop : BandOf(outermost)) {
      const bool is_plain =
          loop->step == 1 && !loop->attributes.parallel && !pool_.HasVar(loop->end);
      if (!is_plain) return absl::nullopt;
      const absl::optional<IndexId> divisor =
          pool_.IsConst(loop->begin, 0) ? DivisorOf(*loop) : absl::nullopt;
      // A loop that is shorter than the divisor has no whole quotient.
      const bool splits = divisor && !pool_.IsConst(WholeQuotients(*loop, *divisor), 0);
      if (splits && AreIndependent(program_, outermost, *loop)) return Split{loop->var, *divisor};
      if (const auto shifted = pool_.IsConst(loop->begin, 0) ? ShiftedIn(*loop) : absl::nullopt)
        return shifted;
    }
    return absl::nullopt;
  }

  // The split of the loop's index plus symbols, as in x[(i - $shift) % N], if the nest only copies:
  // sums are left to tiles.
  absl::optional<Split> ShiftedIn(const Loop& loop) const {
    const Statement* statement = OnlyStatementIn(loop);
    if (statement == nullptr || statement->op) return absl::nullopt;
    absl::optional<Split> split;
    VisitLoads(program_, statement->value, [&](ValueId, const Access& access) {
      if (split) return;
      for (IndexId e : access.place) {
        VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
          const auto shift = ShiftOf(node, loop.var);
          if (!split && shift) split = Split{loop.var, node.args[1], shift};
        });
      }
    });
    return split;
  }

  // The s of (var + s) / d and (var + s) % d.
  absl::optional<IndexId> ShiftOf(const IndexNode& node, int32_t var) const {
    const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
    if (!divides || pool_[node.args[0]].kind != IndexKind::kAdd || !IsLarge(node.args[1]))
      return absl::nullopt;
    const IndexId index = pool_.Var(var), shift = pool_.Sub(node.args[0], index);
    const bool is_sum =
        pool_.IsAffine(node.args[0]) && !pool_.HasVar(shift) && !pool_.HasLoad(shift);
    return is_sum ? absl::make_optional(shift) : absl::nullopt;
  }

  // The divisor of the loop's bare index.
  absl::optional<IndexId> DivisorOf(const Loop& loop) const {
    absl::optional<IndexId> divisor;
    VisitItems(loop.body, [&](const Item& item) {
      VisitIndices(program_, item, [&](IndexId e) {
        VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
          const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
          if (divisor || !divides || pool_.VarValue(node.args[0]) != loop.var) return;
          if (IsLarge(node.args[1])) divisor = node.args[1];
        });
      });
    });
    return divisor;
  }

  bool IsLarge(IndexId divisor) const {
    const auto value = pool_.ConstValue(divisor);
    if (value) return *value >= kLeastDivisor;
    return pool_.IsAffine(divisor) && !pool_.HasVar(divisor) && !pool_.HasLoad(divisor);
  }

  static Loop& Find(Loop& outermost, int32_t var) {
    Loop* loop = &outermost;
    while (loop->var != var) loop = loop->body[0].As<Loop>();
    return *loop;
  }

  IndexId Width(IndexId divisor) { return pool_.Max(divisor, pool_.Const(1)); }

  // 0 where the divisor is not positive: then the rest is the whole loop.
  IndexId WholeQuotients(const Loop& loop, IndexId divisor) {
    const IndexId whole = pool_.Div(ranges_.LengthOf(loop), Width(divisor));
    return OnlyIf(pool_, IsPositive(divisor), whole);
  }

  // 1 or 0.
  IndexId IsPositive(IndexId divisor) {
    if (ranges_.Positive(divisor)) return pool_.Const(1);
    const IndexId not_negative =
        ranges_.NonNegative(divisor) ? divisor : pool_.Max(divisor, pool_.Const(0));
    return pool_.Min(not_negative, pool_.Const(1));
  }

  // The nest for the iterations after the last whole quotient; for a shifted index, it has all of
  // them where the divisor is not positive, else none.
  absl::optional<Loop> Rest(const Loop& outermost, const Split& split) {
    Loop rest = outermost;
    Loop& part = Find(rest, split.var);
    if (split.shift) part.begin = pool_.Mul(IsPositive(split.divisor), part.end);
    else part.begin = pool_.Mul(WholeQuotients(part, split.divisor), Width(split.divisor));
    if (part.begin == part.end) return absl::nullopt;
    return FreshCopy(program_, ranges_, rest);
  }

  // for i in [0, N) { x[i / M, i % M] } -> for q in [0, whole) { for r in [0, width) { x[q, r] } }
  void Replace(Loop& outermost, const Split& split) {
    Loop& loop = Find(outermost, split.var);
    const IndexId width = Width(split.divisor);
    const int32_t quotient = program_.AddVar(program_.vars[split.var]);
    Loop inner{program_.AddVar(program_.vars[split.var]),
               pool_.Const(0),
               width,
               1,
               {},
               std::move(loop.body)};
    const Parts parts = {pool_.Var(quotient), pool_.Var(inner.var), width};
    RewriteIndices(program_, inner.body, [&](IndexId e) { return Rewritten(e, split, parts); });
    Loop outer{quotient, pool_.Const(0), WholeQuotients(loop, split.divisor), 1, {}, {}};
    outer.body.push_back({std::move(inner)});
    loop = std::move(outer);
  }

  // Puts a loop over quotients around one over the indices with that quotient: their order stays.
  void ReplaceShifted(Loop& outermost, const Split& split) {
    Loop& loop = Find(outermost, split.var);
    const IndexId width = Width(split.divisor), shift = *split.shift;
    const auto quotient_of = [&](IndexId index) {
      return pool_.Div(pool_.Add(index, shift), width);
    };
    const IndexId first = quotient_of(loop.begin),
                  last = quotient_of(pool_.Sub(loop.end, pool_.Const(1)));
    const IndexId count = pool_.Add(pool_.Sub(last, first), pool_.Const(1));
    Loop outer{program_.AddVar(program_.vars[split.var]),
               pool_.Const(0),
               OnlyIf(pool_, IsPositive(split.divisor), count),
               1,
               {},
               {}};
    const IndexId quotient = pool_.Add(first, pool_.Var(outer.var)),
                  begin = pool_.Sub(pool_.Mul(quotient, width), shift);
    Loop inner = loop;
    inner.begin = pool_.Max(begin, loop.begin);
    inner.end = pool_.Min(pool_.Add(begin, width), loop.end);
    RewriteIndices(program_, inner.body,
                   [&](IndexId e) { return RewrittenShifted(e, split, quotient, begin); });
    outer.body.push_back({std::move(inner)});
    loop = std::move(outer);
  }

  // `begin`: the index at which the sum with the shift is a multiple of the divisor.
  IndexId RewrittenShifted(IndexId e, const Split& split, IndexId quotient, IndexId begin) {
    if (!HoldsVar(pool_, e, split.var)) return e;
    const IndexNode node = pool_[e];
    if (node.kind == IndexKind::kVar) return e;
    if (ShiftOf(node, split.var) == split.shift && node.args[1] == split.divisor) {
      return node.kind == IndexKind::kDiv ? quotient : pool_.Sub(pool_.Var(split.var), begin);
    }
    IndexList args;
    for (IndexId arg : node.args) args.push_back(RewrittenShifted(arg, split, quotient, begin));
    return pool_.Make(node.kind, node.value, args);
  }

  struct Parts {
    IndexId quotient, rest, width;
  };

  // i / M becomes q, i % M becomes r, and any other i becomes q*width + r.
  IndexId Rewritten(IndexId e, const Split& split, const Parts& parts) {
    if (!HoldsVar(pool_, e, split.var)) return e;
    const IndexNode node = pool_[e];
    if (node.kind == IndexKind::kVar)
      return pool_.Add(pool_.Mul(parts.quotient, parts.width), parts.rest);
    const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
    if (divides && pool_.VarValue(node.args[0]) == split.var && node.args[1] == split.divisor) {
      return node.kind == IndexKind::kDiv ? parts.quotient : parts.rest;
    }
    IndexList args;
    for (IndexId arg : node.args) args.push_back(Rewritten(arg, split, parts));
    return pool_.Make(node.kind, node.value, args);
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
};

}  // namespace

absl::StatusOr<bool> SplitQuotients(Program& program) {
  Ranges ranges(program);
  QuotientSplitter splitter(program, ranges);
  bool changed = false;
  // One index of each nest is split in a round.
  while (ReplaceLoops(program, ranges, [&](Loop& loop) { return splitter.Divided(loop); }))
    changed = true;
  return changed;
}

}  // namespace nestor::loop
