// A comparison a <= b that is affine in the loop's index v is c*v + r >= 0 with c of a known sign:
// it holds from ceil(-r/c) on, or up to floor(r/-c). A quotient is unfolded once, as (v + r)/D >= z
// is v + r >= z*D for D > 0.
//
//   v - 1 >= 0        rising at 1         N - 1 - v >= 0    falling at N
//   (v + 1)/2 >= 3    v + 1 - 6 >= 0      rising at 5
#include "fusion/turning_points.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "uops/index/atom_sum.h"

namespace nestor::loop {
namespace {

class TurnFinder {
 public:
  TurnFinder(Program& program, Ranges& ranges) : pool_(program.pool), ranges_(ranges) {}

  // The turn of e >= 0, where e is c*v + r or, to be unfolded once, (c*v + r) over a divisor.
  absl::optional<Turn> Of(const Loop& loop, const Comparison& comparison, IndexId e, int depth) {
    const AtomSum sum = AtomSum::Of(pool_, e);
    const AtomProduct atoms = sum.Atoms();
    const auto moves = [&](IndexId a) { return HoldsVar(pool_, a, loop.var); };
    if (!sum.exact() || absl::c_count_if(atoms, moves) != 1) return absl::nullopt;
    const IndexId atom = *absl::c_find_if(atoms, moves);
    const auto parts = sum.SplitBy(atom);
    if (!parts) return absl::nullopt;
    const IndexId coefficient = parts->factor.Build(pool_), rest = parts->rest.Build(pool_);
    if (pool_.VarValue(atom) == loop.var) return LinearTurn(comparison, coefficient, rest);
    return depth > 0 ? absl::nullopt : Of(loop, comparison, Unfolded(atom, coefficient, rest), 1);
  }

 private:
  // c*i + rest >= 0 turns true at the ceiling of -rest / c for c > 0; for c < 0 it turns false at
  // one more than the floor of rest / -c.
  absl::optional<Turn> LinearTurn(const Comparison& comparison, IndexId coefficient, IndexId rest) {
    if (ranges_.Positive(coefficient)) {
      const IndexId up = pool_.Add(pool_.Neg(rest), pool_.Sub(coefficient, pool_.Const(1)));
      return Turn{comparison, pool_.Div(up, coefficient), true};
    }
    const IndexId magnitude = pool_.Neg(coefficient);
    if (!ranges_.Positive(magnitude)) return absl::nullopt;
    return Turn{comparison, pool_.Add(pool_.Div(rest, magnitude), pool_.Const(1)), false};
  }

  // An expression that is >= 0 exactly where +-(x/d) + rest is, d > 0: x + rest*d, or
  // (rest + 1)*d - 1 - x. If there is none, the atom itself, which is not linear.
  IndexId Unfolded(IndexId atom, IndexId coefficient, IndexId rest) {
    const IndexNode node = pool_[atom];
    const auto sign = pool_.ConstValue(coefficient);
    if (node.kind != IndexKind::kDiv || !sign || (*sign != 1 && *sign != -1)) return atom;
    const IndexId x = node.args[0], d = node.args[1];
    if (!ranges_.Positive(d)) return atom;
    if (*sign == 1) return pool_.Add(x, pool_.Mul(rest, d));
    const IndexId above = pool_.Mul(pool_.Add(rest, pool_.Const(1)), d);
    return pool_.Sub(pool_.Sub(above, pool_.Const(1)), x);
  }

  IndexPool& pool_;
  Ranges& ranges_;
};

// The last point from which a comparison holds and the first up to which one does; none if the
// order of two is not known.
IndexList InnermostOf(Ranges& ranges, const std::vector<Turn>& turns) {
  IndexList points;
  for (bool rising : {true, false}) {
    const auto is_further = [&](IndexId a, IndexId b) {
      return ranges.LessEqual(rising ? b : a, rising ? a : b);
    };
    absl::optional<IndexId> innermost;
    for (const Turn& turn : turns) {
      if (turn.rising != rising) continue;
      const bool is_inside = !innermost || is_further(turn.at, *innermost);
      if (!is_inside && !is_further(*innermost, turn.at)) return {};
      if (is_inside) innermost = turn.at;
    }
    if (innermost) points.push_back(*innermost);
  }
  return points;
}

}  // namespace

absl::optional<Turn> TurnOf(Program& program, Ranges& ranges, const Loop& loop,
                            const Comparison& comparison) {
  return TurnFinder(program, ranges)
      .Of(loop, comparison, program.pool.Sub(comparison.right, comparison.left), 0);
}

// At most two, so that a loop is split into at most three.
IndexList PointsOf(Ranges& ranges, const std::vector<Turn>& turns) {
  IndexList points;
  for (bool rising : {true, false}) {
    for (const Turn& turn : turns) {
      if (turn.rising == rising && !absl::c_linear_search(points, turn.at))
        points.push_back(turn.at);
    }
  }
  if (points.size() > 2) return InnermostOf(ranges, turns);
  if (points.size() == 2 && ranges.Less(points[1], points[0])) std::swap(points[0], points[1]);
  return points;
}

}  // namespace nestor::loop
