// The range test (Blume and Eigenmann, "The range test: a dependence test for symbolic, non-linear
// expressions", 1994): the elements that one iteration may reach lie in a range, with symbolic
// bounds, and two iterations are independent if their ranges do not overlap. Unlike tests that
// solve equations in integers, it needs no numbers for strides and extents.
//
// Let v be the loop's index. Along one axis, every access of the tensor in the body has lower and
// upper bounds l, u over the inner loops, K*v + (terms that v does not move) each. Two iterations
// are at least `step` apart in v, so |K|*step apart in l. If u of any access exceeds l of any other
// by less than that, then no element is reached from two iterations:
//
//   for i in [0, N) step 8 parallel { for j in [i, min(N, i + 8)) { y[j] = .. } }
//
// j lies within [i, i + 7], and 7 < 1*8. Bounds come from replacing inner indices, innermost first,
// by the ends of their loops, and a min (max) by either argument where it bounds from above
// (below); each choice is a candidate. A min or max on the other side is replaced by the argument
// that is known to be the least (greatest) since all loops around the access have iterations: if a
// loop over [0, n/16) has one, n is at least 16. Loops that run only where an index is small give
// bounds, too: within [0, min(max(n - j, 0), 1)), j < n.
#include "loop_ir/dependence_proof.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "loop_ir/affine.h"
#include "loop_ir/least_value.h"
#include "uops/index/atom_sum.h"

namespace nestor::loop {
namespace {

using Candidates = std::vector<IndexId>;
constexpr size_t kMaxCandidates = 16;

bool HoldsExtreme(const IndexPool& pool, const AtomSum& sum) {
  const auto is_extreme = [&](IndexId atom) {
    return pool[atom].kind == IndexKind::kMin || pool[atom].kind == IndexKind::kMax;
  };
  return absl::c_any_of(sum.terms(), [&](const AtomSum::Term& term) {
    return absl::c_any_of(term.atoms, is_extreme);
  });
}

class Windows {
 public:
  Windows(const Program& program, const Loop& loop, std::vector<PlacedAccess> accesses)
      : program_(program), loop_(loop), accesses_(std::move(accesses)) {}

  // Tries the axes: most often the first one proves it.
  bool AreApart() {
    size_t rank = 0;
    for (const PlacedAccess& access : accesses_) rank = std::max(rank, access.place.size());
    for (size_t axis = 0; axis < rank; ++axis) {
      if (MovesAll(axis) && AreApartAlong(axis)) return true;
    }
    return false;
  }

 private:
  struct Range {
    Candidates lower, upper;
    friend bool operator==(const Range& a, const Range& b) {
      return a.lower == b.lower && a.upper == b.upper;
    }
  };

  // Whether the loop's index, or that of an inner loop whose bounds it moves, is in every access's
  // place along the axis.
  bool MovesAll(size_t axis) const {
    return absl::c_all_of(accesses_, [&](const PlacedAccess& access) {
      if (axis >= access.place.size()) return true;
      absl::InlinedVector<int64_t, 8> moved = {loop_.var};
      const auto moves = [&](IndexId e) {
        return program_.pool.HasVar(e) &&
               absl::c_any_of(moved, [&](int64_t var) { return HoldsVar(program_.pool, e, var); });
      };
      for (const Loop* inner : access.inner) {
        if (moves(inner->begin) || moves(inner->end)) moved.push_back(inner->var);
      }
      return moves(access.place[axis]);
    });
  }

  // Whether some candidates show of each access that it is apart from each, itself included. Equal
  // ranges are looked at once; the first two that may meet settle it.
  bool AreApartAlong(size_t axis) {
    std::vector<Range> ranges;
    // By expression and innermost loop, which determines all loops around.
    absl::flat_hash_set<std::pair<IndexId, const Loop*>> seen;
    for (const PlacedAccess& access : accesses_) {
      if (axis >= access.place.size()) continue;
      const IndexId e = access.place[axis];
      if (!seen.insert({e, access.inner.empty() ? nullptr : access.inner.back()}).second) continue;
      Range range{Bounds(e, access.inner, false), Bounds(e, access.inner, true)};
      if (absl::c_linear_search(ranges, range)) continue;
      ranges.push_back(std::move(range));
      const Range& last = ranges.back();
      const auto is_apart = [&](const Range& other) {
        return Fits(other.lower, last.upper) && Fits(last.lower, other.upper);
      };
      if (!absl::c_all_of(ranges, is_apart)) return false;
    }
    return true;
  }

  // Whether some upper bound lies below some lower bound of the next iteration.
  bool Fits(const Candidates& lower, const Candidates& upper) {
    for (IndexId l : lower) {
      const auto move = MoveIn(l, loop_.var);
      if (!move) continue;
      const IndexId reach = pool_.Add(l, pool_.Mul(*move, pool_.Const(loop_.step)));
      for (IndexId u : upper) {
        if (IsNegative(pool_.Sub(u, reach))) return true;
      }
    }
    return false;
  }

  // Expressions are built in a pool of the proof's own, so that the program stays untouched.
  IndexId Import(IndexId id) {
    const auto [known, is_new] = imported_.try_emplace(id);
    if (is_new) known->second = CopyIndex(program_.pool, id, pool_);
    return known->second;
  }

  // Expressions, free of the inner loops' indices, that bound `id` on one side.
  Candidates Bounds(IndexId id, absl::Span<const Loop* const> inner, bool upper) {
    Candidates candidates = Relaxed({Import(id)}, upper);
    for (size_t i = inner.size(); i > 0; --i) {
      const Loop& loop = *inner[i - 1];
      const auto moves = [&](IndexId e) { return HoldsVar(pool_, e, loop.var); };
      if (absl::c_none_of(candidates, moves)) continue;  // most loops move other axes
      Candidates replaced;
      for (IndexId e : candidates) {
        const auto direction = DirectionIn(e, loop.var);
        if (!direction) continue;
        if (*direction == 0) {
          replaced.push_back(e);
          continue;
        }
        const bool last = (*direction > 0) == upper;
        replaced.push_back(Replace(e, loop.var, Extreme(loop, last)));
        if (!last) continue;
        for (IndexId most : GuardsOf(loop, inner.subspan(i)))
          replaced.push_back(Replace(e, loop.var, most));
      }
      candidates = Relaxed(std::move(replaced), upper);
    }
    // Facts from the loops around are derived only where an extreme is left.
    absl::optional<std::vector<IndexId>> known;
    for (IndexId& e : candidates) e = WithoutQuotients(Settled(e, upper, inner, known), upper);
    return candidates;
  }

  // Upper bounds of the loop's index where the loops inside it run: with [0, min(max(e - index, 0),
  // 1)), e - 1.
  Candidates GuardsOf(const Loop& loop, absl::Span<const Loop* const> inside) {
    Candidates guards;
    for (const Loop* guard : inside) {
      if (!program_.pool.IsConst(guard->begin, 0)) continue;
      for (IndexId end : Relaxed({Import(guard->end)}, true)) {
        const IndexNode node = pool_[end];
        if (node.kind != IndexKind::kMax) continue;
        for (size_t i = 0; i < 2; ++i) {
          if (!pool_.IsConst(node.args[i], 0) || !HoldsVar(pool_, node.args[1 - i], loop.var))
            continue;
          const IndexId last = pool_.Sub(node.args[1 - i], pool_.Const(1));
          const IndexId most = pool_.Add(last, pool_.Var(loop.var));
          const auto moves_it = [&](const Loop* other) {
            return HoldsVar(pool_, most, other->var);
          };
          if (!HoldsVar(pool_, most, loop.var) && absl::c_none_of(inside, moves_it))
            guards.push_back(most);
        }
      }
    }
    return guards;
  }

  // `e` without quotients that move with the loop's index by an unknown step, where the bound holds
  // without them, too: they are not negative, since this iteration runs.
  IndexId WithoutQuotients(IndexId e, bool upper) {
    for (const AtomSum::Term& term : AtomSum::Of(pool_, e).InOrder(pool_)) {
      if ((term.coefficient > 0) == upper || term.atoms.size() != 1 ||
          !PositiveDivisor(pool_, term.atoms[0]))
        continue;
      if (!HoldsVar(pool_, term.atoms[0], loop_.var) ||
          !IsNonNegativeInLoop(pool_[term.atoms[0]].args[0]))
        continue;
      e = pool_.Sub(e, pool_.Mul(pool_.Const(term.coefficient), term.atoms[0]));
    }
    return e;
  }

  // e >= 0 at the iterations of the loop; a minimum is, if each of its operands is.
  bool IsNonNegativeInLoop(IndexId e) {
    const IndexNode node = pool_[e];
    if (node.kind == IndexKind::kMin) {
      return absl::c_all_of(node.args, [&](IndexId arg) { return IsNonNegativeInLoop(arg); });
    }
    const IndexId next = pool_.Add(pool_.Var(loop_.var), pool_.Const(1));
    return IsAtMost(pool_.Const(0), e, NonNegativeWith(loop_, next));
  }

  // The last value of the loop's index, or the first.
  IndexId Extreme(const Loop& loop, bool last) {
    return last ? pool_.Add(Import(loop.end), pool_.Const(-1)) : Import(loop.begin);
  }

  IndexId Replace(IndexId e, int64_t var, IndexId by) {
    return ReplaceLeaves(pool_, e, IndexKind::kVar, [&](int64_t held) {
      return held == var ? absl::make_optional(by) : absl::nullopt;
    });
  }

  // The candidates, and those with a min or max replaced by one of its arguments.
  Candidates Relaxed(Candidates candidates, bool upper) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      const IndexId e = candidates[i];
      const AtomSum sum = AtomSum::Of(pool_, e);
      if (!HoldsExtreme(pool_, sum)) continue;
      for (const AtomSum::Term& term : sum.InOrder(pool_)) {
        for (size_t number = 0; number < term.atoms.size(); ++number) {
          const IndexNode atom = pool_[term.atoms[number]];
          if (atom.kind != ((term.coefficient > 0) == upper ? IndexKind::kMin : IndexKind::kMax))
            continue;
          // A product without loop indices is kept: it may be a step of the loop's index.
          if (term.atoms.size() > 1 && !pool_.HasVar(term.atoms[number])) continue;
          const auto factor = FactorOf(term, number);
          if (!factor) continue;
          const IndexId rest = pool_.Sub(e, pool_.Mul(*factor, term.atoms[number]));
          for (IndexId arg : atom.args) {
            if (candidates.size() == kMaxCandidates) return candidates;
            const IndexId relaxed = pool_.Add(rest, pool_.Mul(*factor, arg));
            if (!absl::c_linear_search(candidates, relaxed)) candidates.push_back(relaxed);
          }
        }
      }
    }
    return candidates;
  }

  // The factor that the atom with this number is multiplied by: it has the coefficient's sign.
  // nullopt where that is not known.
  absl::optional<IndexId> FactorOf(const AtomSum::Term& term, size_t number) {
    IndexId factor = pool_.Const(term.coefficient);
    for (size_t i = 0; i < term.atoms.size(); ++i) {
      if (i == number) continue;
      if (!IsNonNegative(pool_, term.atoms[i])) return absl::nullopt;
      factor = pool_.Mul(factor, term.atoms[i]);
    }
    return factor;
  }

  // `e` with each extreme that Relaxed leaves replaced by its argument where the loops around tell
  // which one it is. `known`: NonNegativeWithin(inner), once it was needed.
  IndexId Settled(IndexId e, bool upper, absl::Span<const Loop* const> inner,
                  absl::optional<std::vector<IndexId>>& known) {
    for (const AtomSum::Term& term : AtomSum::Of(pool_, e).InOrder(pool_)) {
      const IndexKind kind = (term.coefficient > 0) == upper ? IndexKind::kMax : IndexKind::kMin;
      if (term.atoms.size() != 1 || pool_[term.atoms[0]].kind != kind) continue;
      if (!known) known = NonNegativeWithin(inner);
      const auto argument = SettledArgument(term.atoms[0], *known);
      if (!argument) continue;
      const IndexId change = pool_.Sub(*argument, term.atoms[0]);
      e = pool_.Add(e, pool_.Mul(pool_.Const(term.coefficient), change));
    }
    return e;
  }

  // The argument that the min or max certainly is, if the expressions `known` are not negative.
  absl::optional<IndexId> SettledArgument(IndexId extreme, const std::vector<IndexId>& known) {
    const IndexNode node = pool_[extreme];
    const bool least = node.kind == IndexKind::kMin;
    for (IndexId argument : node.args) {
      const bool settles = absl::c_all_of(node.args, [&](IndexId other) {
        return other == argument ||
               IsAtMost(least ? argument : other, least ? other : argument, known);
      });
      if (settles) return argument;
    }
    return absl::nullopt;
  }

  // Whether a <= b is proven with one of the expressions known not to be negative, or without any.
  bool IsAtMost(IndexId a, IndexId b, const std::vector<IndexId>& known) {
    const IndexId less = pool_.Sub(pool_.Sub(a, b), pool_.Const(1));
    return IsNegative(less) ||
           absl::c_any_of(known, [&](IndexId e) { return IsNegative(pool_.Add(less, e)); });
  }

  // Expressions that are not negative because each of the loops has an iteration. If a loop begins
  // at the number b and ends at a quotient, the dividend is at least b + 1 times the divisor.
  std::vector<IndexId> NonNegativeWithin(absl::Span<const Loop* const> inner) {
    std::vector<IndexId> known;
    for (const Loop* loop : inner) {
      const auto begin = program_.pool.ConstValue(loop->begin);
      if (!begin || *begin < 0) continue;
      absl::c_copy(NonNegativeWith(*loop, pool_.Const(*begin + 1)), std::back_inserter(known));
    }
    return known;
  }

  // Expressions that are not negative because the loop's end is at least `least`.
  std::vector<IndexId> NonNegativeWith(const Loop& loop, IndexId least) {
    std::vector<IndexId> known;
    for (IndexId end : Relaxed({Import(loop.end)}, true)) {
      const int64_t divisor = PositiveDivisor(pool_, end).value_or(1);
      const IndexId whole = divisor > 1 ? pool_[end].args[0] : end;
      known.push_back(pool_.Sub(whole, pool_.Mul(least, pool_.Const(divisor))));
    }
    return known;
  }

  // 1 (-1) where `e` never falls (rises) as `var` rises, 0 where it does neither; nullopt where
  // that is not known.
  absl::optional<int> DirectionIn(IndexId e, int64_t var) {
    if (!HoldsVar(pool_, e, var)) return 0;
    const IndexNode node = pool_[e];
    switch (node.kind) {
      case IndexKind::kVar: return 1;
      case IndexKind::kMin:
      case IndexKind::kMax: return DirectionOfAll(node.args, var);
      case IndexKind::kDiv:
        return PositiveDivisor(pool_, e) ? DirectionIn(node.args[0], var) : absl::nullopt;
      case IndexKind::kAdd:
      case IndexKind::kMul: return DirectionOfSum(e, var);
      default: return absl::nullopt;
    }
  }

  absl::optional<int> DirectionOfSum(IndexId e, int64_t var) {
    const AtomSum sum = AtomSum::Of(pool_, e);
    return sum.exact() ? DirectionOfAll(sum.terms(), var) : absl::nullopt;
  }

  // The direction of an expression that rises, or falls, as all of these parts do.
  template <typename Parts>
  absl::optional<int> DirectionOfAll(const Parts& parts, int64_t var) {
    int direction = 0;
    for (const auto& part : parts) {
      const absl::optional<int> own = DirectionIn(part, var);
      if (!own || *own * direction < 0) return absl::nullopt;
      if (*own != 0) direction = *own;
    }
    return direction;
  }

  // Whether the term grows (1), falls (-1) or stays (0) as the index grows; nullopt: not known.
  absl::optional<int> DirectionIn(const AtomSum::Term& term, int64_t var) {
    if (!Holds(term, var)) return 0;
    absl::optional<int> direction;
    for (IndexId atom : term.atoms) {
      if (!HoldsVar(pool_, atom, var) && IsNonNegative(pool_, atom)) continue;
      // A product of two factors that move, or whose sign is not known.
      if (direction) return absl::nullopt;
      direction = DirectionIn(atom, var);
      if (!direction || *direction == 0) return absl::nullopt;
    }
    return term.coefficient > 0 ? *direction : -*direction;
  }

  bool Holds(const AtomSum::Term& term, int64_t var) const {
    return std::any_of(term.atoms.begin(), term.atoms.end(),
                       [&](IndexId atom) { return HoldsVar(pool_, atom, var); });
  }

  // By how much `e` moves with `var`: the magnitude of a coefficient that is one product. Its atoms
  // must be made of dimensions: those are never negative, where a $param may be. nullopt for other
  // coefficients, and for 0.
  absl::optional<IndexId> MoveIn(IndexId e, int64_t var) {
    const auto coefficient = CoefficientOf(pool_, e, var);
    if (!coefficient || coefficient->size() != 1) return absl::nullopt;
    const AtomSum::Term term = coefficient->terms().front();
    if (!absl::c_all_of(term.atoms, [&](IndexId atom) { return IsNonNegative(pool_, atom); }))
      return absl::nullopt;
    return (term.coefficient < 0 ? -*coefficient : *coefficient).Build(pool_);
  }

  // Whether e is a sum of terms none of which is positive, and a negative number; a quotient that
  // is added is bounded by its dividend, and a minimum by any argument.
  bool IsNegative(IndexId e) {
    const AtomSum sum = AtomSum::Of(pool_, e);
    if (sum.ConstantTerm() == 0) return false;
    for (const AtomSum::Term& term : sum.InOrder(pool_)) {
      if (term.coefficient > 0) return IsNegativeWithout(term, e);
      if (!absl::c_all_of(term.atoms, [&](IndexId atom) { return IsNonNegative(pool_, atom); }))
        return false;
    }
    return true;
  }

  // The same with c*a in place of the term c*b*(a/b) or c*min(a, b): c*a is no less.
  bool IsNegativeWithout(const AtomSum::Term& term, IndexId e) {
    if (term.atoms.size() != 1) return false;
    const IndexNode node = pool_[term.atoms[0]];
    const IndexId rest = pool_.Sub(e, pool_.Mul(pool_.Const(term.coefficient), term.atoms[0]));
    const auto with = [&](int64_t factor, IndexId by) {
      return IsNegative(pool_.Add(rest, pool_.Mul(pool_.Const(factor), by)));
    };
    if (node.kind == IndexKind::kMin) {
      return absl::c_any_of(node.args, [&](IndexId arg) { return with(term.coefficient, arg); });
    }
    const auto divisor = PositiveDivisor(pool_, term.atoms[0]);
    return divisor && term.coefficient % *divisor == 0 &&
           with(term.coefficient / *divisor, node.args[0]);
  }

  const Program& program_;
  const Loop& loop_;
  const std::vector<PlacedAccess> accesses_;
  IndexPool pool_;
  absl::flat_hash_map<IndexId, IndexId> imported_;
};

}  // namespace

bool AreApart(const Program& program, const Loop& loop, std::vector<PlacedAccess> accesses) {
  return Windows(program, loop, std::move(accesses)).AreApart();
}

}  // namespace nestor::loop
