// The inverse image of an affine map over a box of integers, symbolically: which iterations of a
// nest reach one element. A general solver (Hermite normal forms, or the integer sets of Pugh, "The
// Omega test", 1991) would give unions of sets with unknown bounds; here only those forms are
// solved that yield plain loops with conditions. One equation per axis, place[k] == element[k],
// over the indices of the nest. The solver alternates between two steps:
//
//   solve    every index that an equation determines. c*v == z gives v = z/c, if c
//            divides z. Mixed radix, v + M*u == z with v in an interval no longer
//            than M, gives v = z % M and the equation u == z/M. A pair X/D == p,
//            X % D == q is X == p*D + q.
//   iterate  the first index v of the nest that is not determined, over its range,
//            narrowed by equations (v + r)/D == z to an interval and by
//            (v + r) % D == z to a residue class.
//
// A step in between makes a gradient run like its forward program: where an equation c*v + d*w == z
// has two unknowns and w is the window that slides along,
//
//   for l { for r { t[l*$s + r*$d] += f(l, r) } }
//
// the loop runs over w and v is solved. Given the element and the loops around, v is the first
// index of the nest that moves, and it moves strictly with w: so if w runs such that v ascends,
// downwards where c and d have one sign, contributions keep their order. That is the whole
// argument: each loop of the result represents the first undetermined index, and makes it ascend.
// Where |d| is 1, the loop takes the residue class of w for which c divides; else that is a
// condition.
//
// Why not bound l to where 0 <= r < R, which needs no condition? Those bounds move with the
// element, so that loop could neither be interchanged nor run in lanes.
//
// Nothing is divided by a number that is not proven positive, with one exception: a solved index
// that has no value fails its own range condition, as a condition without a value is false. So
// bounds of loops must have values, and places need not.
#include "fusion/preimage.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "fusion/equation_system.h"
#include "uops/index/atom_division.h"
#include "uops/index/atom_sum.h"
#include "uops/index/index_expr.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

using Equation = EquationSystem::Equation;
using Sides = EquationSystem::Sides;
using Term = EquationSystem::Term;

// a / divisor where the divisor is one product, with a positive number, and divides each term.
absl::optional<IndexId> Quotient(IndexPool& pool, IndexId a, IndexId divisor) {
  const AtomSum by = AtomSum::Of(pool, divisor);
  if (by.size() != 1 || by.terms().front().coefficient <= 0) return absl::nullopt;
  const auto quotient = ExactQuotient(AtomSum::Of(pool, a), by);
  return quotient ? absl::make_optional(quotient->Build(pool)) : absl::nullopt;
}

class Solver {
 public:
  Solver(Program& program, absl::Span<const Loop* const> nest, const IndexList& element,
         const Shape& shape, bool ordered, Ranges& ranges)
      : pool_(program.pool), nest_(nest), element_(element), shape_(shape), ordered_(ordered),
        ranges_(ranges), system_(program, nest) {}

  // Equations are solved for one index at a time; an index that none determines is iterated, which
  // may determine others.
  absl::optional<Preimage> Solve(const IndexList& place) {
    for (size_t axis = 0; axis < place.size(); ++axis) system_.Add({place[axis], element_[axis]});
    for (;;) {
      while (SolveOne()) {
      }
      const auto first = std::find_if(nest_.begin(), nest_.end(),
                                      [&](const Loop* l) { return !system_.IsDetermined(l->var); });
      if (first == nest_.end()) break;
      if (!IterateWindow(**first)) IterateSelf(**first);
      if (!defined_) break;
    }
    absl::optional<Preimage> result = defined_ ? Finish() : absl::nullopt;
    for (size_t i = 0; i < loops_.size() - !defined_; ++i) ranges_.Leave();
    return result;
  }

 private:
  // ---- Small things

  IndexId Const(int64_t value) { return pool_.Const(value); }
  IndexId Extent(const Loop& loop) { return pool_.Sub(loop.end, loop.begin); }
  bool HasKnownBounds(const Loop& loop) const {
    return system_.IsKnown(loop.begin) && system_.IsKnown(loop.end);
  }

  const Loop& LoopOf(int64_t var) const {
    return **std::find_if(nest_.begin(), nest_.end(), [&](const Loop* l) { return l->var == var; });
  }

  // The sign of an expression that is proven not to be zero; else 0.
  int Sign(IndexId e) {
    if (ranges_.Positive(e)) return 1;
    return ranges_.Positive(pool_.Neg(e)) ? -1 : 0;
  }
  IndexId Signed(int sign, IndexId e) { return sign < 0 ? pool_.Neg(e) : e; }

  void Require(IndexKind kind, IndexId a, IndexId b) {
    conditions_.push_back(pool_.Condition(kind, a, b));
  }
  void RequireWithin(IndexId begin, IndexId e, IndexId end) {
    Require(IndexKind::kLe, begin, e);
    Require(IndexKind::kLt, e, end);
  }

  // ---- Solving

  // True where an equation was used up.
  bool SolveOne() {
    for (size_t i = 0; i < system_.equations().size(); ++i) {
      const auto sides = system_.SidesOf(system_.equations()[i]);
      if (sides && (SolveLinear(*sides, i) || SolveRadix(*sides, i) || SolvePair(*sides, i)))
        return true;
    }
    return false;
  }

  // c*v == known.
  bool SolveLinear(const Sides& sides, size_t equation) {
    if (sides.terms.size() != 1) return false;
    const int64_t var = pool_.VarValue(sides.terms[0].atom);
    const int sign = var < 0 ? 0 : Sign(sides.terms[0].coefficient);
    if (sign == 0) return false;
    system_.Determine(var,
                      Divided(Signed(sign, sides.known), Signed(sign, sides.terms[0].coefficient)));
    system_.Drop(equation);
    return true;
  }

  // z / c, where c > 0 must divide z.
  IndexId Divided(IndexId z, IndexId c) {
    if (pool_.IsConst(c, 1)) return z;
    Require(IndexKind::kEq, pool_.Mod(z, c), Const(0));
    return pool_.Div(z, c);
  }

  // +-v + M*(..) == known, where v has at most M values.
  bool SolveRadix(const Sides& sides, size_t equation) {
    for (const Term& digit : sides.terms) {
      const int64_t var = pool_.VarValue(digit.atom);
      const auto sign = pool_.ConstValue(digit.coefficient);
      if (var < 0 || !sign || (*sign != 1 && *sign != -1)) continue;
      for (const Term& other : sides.terms) {
        if (other.atom == digit.atom) continue;
        const int radix_sign = Sign(other.coefficient);
        const IndexId radix = Signed(radix_sign, other.coefficient);
        if (radix_sign != 0 && SplitDigit(sides, digit, static_cast<int>(*sign), radix, equation))
          return true;
      }
    }
    return false;
  }

  // v is the last digit in base M: v = begin + (z - begin) % M, and the others are the quotient.
  bool SplitDigit(const Sides& sides, const Term& digit, int sign, IndexId radix, size_t equation) {
    const Loop& loop = LoopOf(pool_.VarValue(digit.atom));
    if (!HasKnownBounds(loop)) return false;
    if (!ranges_.LessEqual(system_.InResult(Extent(loop)), radix)) return false;
    IndexId rest = Const(0);
    for (const Term& term : sides.terms) {
      if (term.atom == digit.atom) continue;
      const auto quotient = Quotient(pool_, Signed(sign, term.coefficient), radix);
      if (!quotient) return false;
      rest = pool_.Add(rest, pool_.Mul(*quotient, term.atom));
    }
    const IndexId begin = system_.InResult(loop.begin);
    const IndexId z = pool_.Sub(Signed(sign, sides.known), begin);
    system_.Determine(loop.var, pool_.Add(begin, pool_.Mod(z, radix)));
    system_.Replace(equation, {rest, pool_.Div(z, radix)});
    return true;
  }

  // X/D == p and X % D == q. Where D is 0 both are undefined, and 0 <= q < D false.
  bool SolvePair(const Sides& sides, size_t equation) {
    const auto quotient = system_.Alone(sides, IndexKind::kDiv);
    if (!quotient || !ranges_.NonNegative(quotient->args[1])) return false;
    for (size_t j = 0; j < system_.equations().size(); ++j) {
      const auto other = system_.SidesOf(system_.equations()[j]);
      const auto remainder = other ? system_.Alone(*other, IndexKind::kMod) : absl::nullopt;
      if (!remainder || remainder->args != quotient->args) continue;
      RequireWithin(Const(0), other->known, quotient->args[1]);
      system_.Replace(
          equation,
          {quotient->args[0], pool_.Add(pool_.Mul(sides.known, quotient->args[1]), other->known)});
      system_.Drop(j);
      return true;
    }
    return false;
  }

  // ---- Iterating

  void AddLoop(int32_t var, IndexId begin, IndexId end, IndexId trips) {
    loops_.push_back({var, begin, end, 1, {}, {}});
    trips_.push_back(trips);
    defined_ = defined_ && ranges_.Defined(begin) && ranges_.Defined(end);
    if (defined_) ranges_.Enter(loops_.back());
  }

  // The values that an iterated index takes within its loop.
  struct Narrowed {
    IndexId begin, end, trips;
    absl::optional<IndexId> modulus, residue;
  };

  // A loop over the index itself; with a modulus, over the multiples: v = first + modulus * index.
  void IterateSelf(const Loop& loop) {
    const IndexId begin = system_.InResult(loop.begin), end = system_.InResult(loop.end);
    Narrowed range{begin, end, pool_.Sub(end, begin), absl::nullopt, absl::nullopt};
    for (size_t i = system_.equations().size(); i-- > 0;) {
      if (Narrow(loop.var, system_.equations()[i], range)) system_.Drop(i);
    }
    if (!range.modulus) {
      AddLoop(loop.var, range.begin, range.end, range.trips);
      return system_.Determine(loop.var, pool_.Var(loop.var));
    }
    const IndexId first = pool_.Add(
        range.begin, pool_.Mod(pool_.Sub(NESTOR_MUTANT("scatter_inverted_with_wrong_residue")
                                             ? pool_.Add(*range.residue, Const(1))
                                             : *range.residue,
                                         range.begin),
                               *range.modulus));
    const IndexId behind = pool_.Sub(pool_.Sub(range.end, first), Const(1));
    AddLoop(loop.var, Const(0), pool_.Add(pool_.Div(behind, *range.modulus), Const(1)),
            range.trips);
    system_.Determine(loop.var, pool_.Add(first, pool_.Mul(*range.modulus, pool_.Var(loop.var))));
  }

  // The trips of a loop that the elements of an axis share: no element of the axis repeats another
  // one's iterations.
  IndexId Shared(IndexId trips, IndexId right) {
    const auto axis = std::find(element_.begin(), element_.end(), right) - element_.begin();
    if (axis == static_cast<int64_t>(element_.size())) return trips;
    return pool_.Div(trips, shape_[axis]);
  }

  // Uses up (v + r)/D == z, D >= 0, and (v + r) % D == z, D > 0.
  bool Narrow(int64_t var, const Equation& equation, Narrowed& range) {
    const auto sides = system_.SidesOf(equation);
    if (!sides) return false;
    const auto quotient = system_.Alone(*sides, IndexKind::kDiv),
               remainder = system_.Alone(*sides, IndexKind::kMod);
    if (!quotient && !remainder) return false;
    const IndexNode node = quotient ? *quotient : *remainder;
    const auto inner = system_.SidesOf({node.args[0], Const(0)});  // v == -r
    if (!inner || inner->terms.size() != 1 || pool_.VarValue(inner->terms[0].atom) != var)
      return false;
    if (!pool_.IsConst(inner->terms[0].coefficient, 1)) return false;
    const IndexId shared = Shared(range.trips, equation.right);
    const bool used = quotient ? NarrowToInterval(sides->known, inner->known, node.args[1], range)
                               : NarrowToResidue(sides->known, inner->known, node.args[1], range);
    if (used) range.trips = pool_.Min(range.trips, shared);
    return used;
  }

  // (v - offset) / divisor = z: v lies in [z * divisor + offset, (z + 1) * divisor + offset).
  bool NarrowToInterval(IndexId z, IndexId offset, IndexId divisor, Narrowed& range) {
    if (!ranges_.NonNegative(divisor)) return false;
    const IndexId begin = pool_.Add(pool_.Mul(z, divisor), offset), end = pool_.Add(begin, divisor);
    const bool from_zero =
        pool_.IsConst(range.begin, 0) && pool_.IsConst(offset, 0) && ranges_.NonNegative(z);
    const bool behind = from_zero || ranges_.LessEqual(range.begin, begin);
    range.begin = behind ? begin : pool_.Max(range.begin, begin);
    range.end = ranges_.LessEqual(end, range.end) ? end : pool_.Min(range.end, end);
    range.trips = pool_.Min(range.trips, divisor);
    return true;
  }

  // (v - offset) % divisor = z: v is z + offset modulo the divisor, if z is a remainder of it.
  bool NarrowToResidue(IndexId z, IndexId offset, IndexId divisor, Narrowed& range) {
    if (range.modulus || !ranges_.Positive(divisor)) return false;
    range.modulus = divisor;
    range.trips = pool_.Div(range.trips, divisor);
    range.residue = pool_.Add(z, offset);
    RequireWithin(Const(0), z, divisor);
    return true;
  }

  // c*v + d*w == known, c > 0.
  struct Slide {
    size_t equation;
    const Loop* window;
    IndexId c, d, known;
    int sign;  // of d, 0 if not known
  };

  // Replaces v's loop by that of a window that slides along v, if there is one.
  bool IterateWindow(const Loop& v) {
    absl::optional<Slide> best;
    for (size_t i = 0; i < system_.equations().size(); ++i) {
      const auto slide = SlideOf(i, v);
      if (slide && IsWindow(Extent(*slide->window), Extent(best ? *best->window : v))) best = slide;
    }
    if (best) Iterate(v, *best);
    return best.has_value();
  }

  // The equation as c*v + d*w == known with c > 0; nullopt if it has another form, or if the order
  // of contributions matters and the sign of d is not known.
  absl::optional<Slide> SlideOf(size_t equation, const Loop& v) {
    const auto sides = system_.SidesOf(system_.equations()[equation]);
    if (!sides || sides->terms.size() != 2) return absl::nullopt;
    const bool first = pool_.VarValue(sides->terms[0].atom) == v.var;
    const Term& own = sides->terms[first ? 0 : 1];
    const Term& other = sides->terms[first ? 1 : 0];
    const int64_t window = pool_.VarValue(other.atom);
    const int sign = pool_.VarValue(own.atom) == v.var ? Sign(own.coefficient) : 0;
    if (window < 0 || sign == 0) return absl::nullopt;
    const Loop& loop = LoopOf(window);
    const Slide slide{equation,
                      &loop,
                      Signed(sign, own.coefficient),
                      Signed(sign, other.coefficient),
                      Signed(sign, sides->known),
                      sign * Sign(other.coefficient)};
    if (!HasKnownBounds(loop) || (ordered_ && slide.sign == 0)) return absl::nullopt;
    return slide;
  }

  // Whether `a`, the extent of one of two loops that slide along each other, is the
  // smaller one, as far as one can tell: it does not grow with the tensor and the
  // other does, or is what the other one's extent was reduced by, (H - R)/$s + 1.
  bool IsWindow(IndexId a, IndexId b) {
    const auto x = pool_.ConstValue(a), y = pool_.ConstValue(b);
    if (x && y) return *x < *y;
    const auto in_a = Symbols(a), in_b = Symbols(b);
    const bool a_grows = Grows(in_a), b_grows = Grows(in_b);
    if (a_grows != b_grows) return b_grows;
    return in_a.size() < in_b.size() &&
           std::all_of(in_a.begin(), in_a.end(), [&](IndexId s) { return in_b.contains(s); });
  }

  absl::flat_hash_set<IndexId> Symbols(IndexId e) const {
    absl::flat_hash_set<IndexId> symbols;
    VisitIndex(pool_, e, [&](IndexId id, const IndexNode& node) {
      if (node.kind == IndexKind::kSymbol) symbols.insert(id);
    });
    return symbols;
  }

  // True where a dimension of the tensor is among them.
  bool Grows(const absl::flat_hash_set<IndexId>& symbols) const {
    return std::any_of(shape_.begin(), shape_.end(), [&](IndexId extent) {
      const auto in_shape = Symbols(extent);
      return std::any_of(in_shape.begin(), in_shape.end(), [&](IndexId s) {
        return pool_.SymbolName(s)[0] != '$' && symbols.contains(s);
      });
    });
  }

  void Iterate(const Loop& v, const Slide& slide) {
    const bool unit = pool_.IsConst(slide.d, 1) || pool_.IsConst(slide.d, -1);
    if (unit) IterateResidues(v, slide);
    else IterateAll(slide);
  }

  // The window's index k, of which d*k == known mod c. In terms of v = (known - d*k)/c
  // these are neighbours: from low/c + 1 to high/c, where d*k is at an end.
  void IterateResidues(const Loop& v, const Slide& slide) {
    const IndexId begin = system_.InResult(slide.window->begin),
                  end = system_.InResult(slide.window->end);
    const IndexId below = pool_.Sub(begin, Const(1)), last = pool_.Sub(end, Const(1));
    const IndexId low =
        slide.sign > 0 ? pool_.Sub(slide.known, end) : pool_.Add(slide.known, below);
    const IndexId high =
        slide.sign > 0 ? pool_.Sub(slide.known, begin) : pool_.Add(slide.known, last);
    const IndexId before = pool_.Div(low, slide.c);
    AddLoop(slide.window->var, Const(0), pool_.Sub(pool_.Div(high, slide.c), before),
            pool_.Div(pool_.Sub(end, begin), slide.c));
    const IndexId count = pool_.Add(pool_.Var(slide.window->var), Const(1));
    const IndexId value = pool_.Add(before, count);
    system_.Determine(v.var, value);
    system_.Determine(slide.window->var,
                      pool_.Mul(slide.d, pool_.Sub(slide.known, pool_.Mul(slide.c, value))));
    system_.Drop(slide.equation);
  }

  // Iterates over all of the window's indices; then one unknown is left, and its value must be
  // an integer.
  void IterateAll(const Slide& slide) {
    const int32_t window = slide.window->var;
    const IndexId begin = system_.InResult(slide.window->begin),
                  end = system_.InResult(slide.window->end);
    const IndexId k = pool_.Var(window);
    AddLoop(window, Const(0), pool_.Sub(end, begin), pool_.Sub(end, begin));
    const bool down = ordered_ && slide.sign > 0;
    system_.Determine(window, down ? pool_.Sub(pool_.Sub(end, Const(1)), k) : pool_.Add(begin, k));
  }

  // ---- The result

  // Demands that the solution does not meet by itself become conditions: equations that were not
  // used, and the bounds of the loops that are gone.
  absl::optional<Preimage> Finish() {
    const bool asked = RequireEquations();
    for (const Loop* loop : nest_) {
      const bool iterated = std::any_of(loops_.begin(), loops_.end(),
                                        [&](const Loop& l) { return l.var == loop->var; });
      if (iterated) continue;
      RequireWithin(system_.InResult(loop->begin), system_.ValueOf(loop->var),
                    system_.InResult(loop->end));
    }
    if (!asked) return absl::nullopt;
    Preimage result{loops_, trips_, {}, Undecided()};
    for (const Loop* loop : nest_) result.solution.push_back(system_.ValueOf(loop->var));
    return result;
  }

  // Equations that were not solved become conditions; but not those of gathered places in every
  // iteration: that would walk the whole nest for each element.
  bool RequireEquations() {
    for (const Equation& equation : system_.equations()) {
      const IndexId left = system_.InResult(equation.left);
      std::vector<int64_t> vars;
      CollectVars(pool_, left, vars);
      const bool varies = std::any_of(loops_.begin(), loops_.end(), [&](const Loop& l) {
        return std::find(vars.begin(), vars.end(), l.var) != vars.end();
      });
      if (varies && !pool_.IsAffine(left)) return false;
      Require(IndexKind::kEq, left, equation.right);
    }
    return true;
  }

  // Conditions that are proven are dropped, each with those before it assumed.
  IndexList Undecided() {
    std::stable_partition(conditions_.begin(), conditions_.end(),
                          [&](IndexId c) { return !pool_.HasLoad(c); });
    IndexList left;
    for (IndexId condition : conditions_) {
      if (ranges_.Decide(condition) == true) continue;
      left.push_back(condition);
      ranges_.Assume(condition);
    }
    for (size_t i = 0; i < left.size(); ++i) ranges_.Forget();
    return left;
  }

  IndexPool& pool_;
  const absl::Span<const Loop* const> nest_;
  const IndexList& element_;
  const Shape& shape_;
  const bool ordered_;
  Ranges& ranges_;
  EquationSystem system_;
  std::vector<Loop> loops_;  // `ranges` has entered them
  IndexList trips_;
  bool defined_ = true;  // except for the last, if one of its bounds may have no value
  IndexList conditions_;
};

}  // namespace

absl::optional<Preimage> SolvePreimage(Program& program, absl::Span<const Loop* const> nest,
                                       const IndexList& place, const IndexList& element,
                                       const Shape& shape, bool ordered, Ranges& ranges) {
  return Solver(program, nest, element, shape, ordered, ranges).Solve(place);
}

}  // namespace nestor::loop
