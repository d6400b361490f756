// Interval arithmetic (Moore, "Interval Analysis", 1966) over a program's domains and scopes, for
// known sizes: a loop index runs over the hull of its bounds; every operation on intervals is
// checked at the ends that reach its extremes. If each subexpression of an index expression stays
// within int64 for the whole interval of its operands, no evaluation overflows. The converse does
// not hold: intervals forget that two occurrences of an index are the same, so that some legal
// sizes run the code of the unfused program instead.
//
// A place may hold expressions that are not affine: there only their affine parts are checked.
// Values and assumptions are checked whole, including products of indices.
#include "loop_ir/intervals.h"

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "loop_ir/interval.h"
#include "uops/index/atom_sum.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

// The largest loop bound for which the distance of two bounds, and a step past one, fit.
constexpr int64_t kMaxBound = int64_t{1} << 62;
// Programs that would run for hours even if they did nothing but count are refused.
constexpr double kMaxIterations = 0x1p45;
bool IsBound(const absl::optional<Interval>& e) {
  return e && e->low >= -kMaxBound && e->high <= kMaxBound;
}

class Prover {
 public:
  Prover(const Program& program, SymbolValue symbol)
      : program_(program), symbol_(symbol), vars_(program.vars.size()) {}

  // The program as it is now: shapes, what passes assumed, and every expression in its loops.
  absl::Status CheckLoops() {
    for (const auto* list : {&program_.inputs, &program_.outputs}) {
      for (TensorId tensor : *list) {
        for (IndexId extent : program_[tensor].shape) NESTOR_RETURN_IF_ERROR(Check(extent));
      }
    }
    for (const VersionTest& test : program_.version) {
      if (test.value && ValueOf(test.flag) != 1) return OtherVersion(test.flag);
    }
    for (const Domain& domain : program_.assumptions)
      NESTOR_RETURN_IF_ERROR(CheckAssumption(domain));
    memo_.clear();
    for (int32_t var : program_.domain_vars) vars_[var].reset();
    NESTOR_RETURN_IF_ERROR(CheckScope(program_.body));
    return absl::OkStatus();
  }

  // Checks the shapes of arguments and results, even if no statement runs over them.
  absl::Status CheckShapes() {
    for (const auto* list : {&program_.inputs, &program_.outputs}) {
      for (TensorId tensor : *list) {
        for (IndexId extent : program_[tensor].shape) {
          const absl::optional<int64_t> value = ValueOf(extent);
          if (value && *value > kMaxExtent) return ExtentError(extent, *value, "exceeds 2^48");
        }
      }
    }
    return absl::OkStatus();
  }

  // A domain without points computes nothing, so nothing in it can go wrong.
  absl::Status CheckDomain(const Domain& domain) {
    NESTOR_ASSIGN_OR_RETURN(const bool runs, Enter(domain));
    if (!runs) return absl::OkStatus();
    for (IndexId place : domain.places) NESTOR_RETURN_IF_ERROR(Check(place));
    for (IndexId value : domain.values) {
      if (!Of(value) || zero_divisor_) return Failure(value);
    }
    return absl::OkStatus();
  }

  // Passes rearranged these numbers on the assumption that they do not overflow.
  absl::Status CheckAssumption(const Domain& domain) {
    NESTOR_ASSIGN_OR_RETURN(const bool runs, Enter(domain));
    if (!runs) return absl::OkStatus();
    for (IndexId e : domain.places) {
      // An expression that always divides by zero has no value that an assumption could be about.
      const bool known = Of(e).has_value() || zero_divisor_;
      if (!known || overflow_) return Failure(e);
    }
    return absl::OkStatus();
  }

  // The exact value of an expression over symbols: an interval may be wider.
  absl::optional<int64_t> ValueOf(IndexId e) const {
    return EvaluateIndex(
        program_.pool, e,
        [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
          if (node.kind != IndexKind::kSymbol) return absl::nullopt;
          return symbol_(program_.pool.SymbolNameAt(node.value));
        });
  }

 private:
  // Whether no extent is 0; then the indices have their intervals.
  absl::StatusOr<bool> Enter(const Domain& domain) {
    memo_.clear();
    bool runs = true;
    for (size_t k = 0; k < domain.extents.size(); ++k) {
      const absl::optional<int64_t> extent = ValueOf(domain.extents[k]);
      if (!extent) return Failure(domain.extents[k]);
      if (*extent < 0) return ExtentError(domain.extents[k], *extent, "is negative");
      if (*extent > kMaxExtent) return ExtentError(domain.extents[k], *extent, "exceeds 2^48");
      runs = runs && *extent > 0;
      vars_[program_.domain_vars[k]] = Interval{0, *extent - 1};
    }
    return runs;
  }

  absl::optional<Interval> BoundOf(IndexId e) {
    if (program_.pool.HasVar(e)) return Of(e);
    const absl::optional<int64_t> value = ValueOf(e);
    if (!value) return absl::nullopt;
    return Interval{*value, *value};
  }

  absl::Status ExtentError(IndexId e, int64_t value, absl::string_view what) const {
    const std::string number = program_.pool.ConstValue(e) ? "" : absl::StrCat(" = ", value);
    return absl::InvalidArgumentError(absl::StrCat("program ", program_.name, ": the extent ",
                                                   SymbolicText(program_.pool, e), number, " ",
                                                   what));
  }

  // A loop that never runs, by its hull, is not entered: its expressions are not evaluated either.
  absl::Status CheckScope(const Scope& scope) {
    for (const Item& item : scope) {
      const Loop* loop = item.As<Loop>();
      if (loop == nullptr) {
        NESTOR_RETURN_IF_ERROR(CheckIndices(item));
        continue;
      }
      NESTOR_RETURN_IF_ERROR(Check(loop->begin));
      NESTOR_RETURN_IF_ERROR(Check(loop->end));
      const auto begin = BoundOf(loop->begin), end = BoundOf(loop->end);
      if (!IsBound(begin)) return Failure(loop->begin);
      if (!IsBound(end)) return Failure(loop->end);
      if (end->high <= begin->low) continue;  // never runs
      NESTOR_RETURN_IF_ERROR(CheckBody(*loop, {begin->low, end->high - 1}));
      memo_.clear();
    }
    return absl::OkStatus();
  }

  absl::Status CheckIndices(const Item& item) {
    absl::Status status;
    VisitIndices(program_, item, [&](IndexId e) {
      if (status.ok()) status = Check(e);
    });
    return status;
  }

  // Checks the body, and what each iteration prefetches.
  absl::Status CheckBody(const Loop& loop, Interval var) {
    const double around = iterations_;
    iterations_ *= static_cast<double>(var.high - var.low) / static_cast<double>(loop.step) + 1;
    if (iterations_ > kMaxIterations) {
      return absl::ResourceExhaustedError(
          absl::StrCat("program ", program_.name, ": loop ", program_.vars[loop.var],
                       " would have more than 2^45 iterations in all"));
    }
    vars_[loop.var] = var;
    for (const Prefetch& prefetch : loop.prefetches) {
      for (IndexId e : prefetch.access.place) NESTOR_RETURN_IF_ERROR(Check(e));
    }
    NESTOR_RETURN_IF_ERROR(CheckScope(loop.body));
    vars_[loop.var].reset();
    iterations_ = around;
    return absl::OkStatus();
  }

  // Names the expression and the sizes: the caller can only choose other ones.
  absl::Status OtherVersion(IndexId flag) const {
    return absl::InvalidArgumentError(absl::StrCat("program ", program_.name,
                                                   ": its loops are for sizes at which ",
                                                   SymbolicText(program_.pool, flag), " is 1"));
  }

  absl::Status Failure(IndexId e) const {
    const auto var = [&](int64_t v) { return program_.vars[v]; };
    const auto tensor = [&](int64_t t) { return program_.tensors[t].name; };
    return absl::InvalidArgumentError(
        absl::StrCat("program ", program_.name, ": the index expression ",
                     IndexText(program_.pool, e, {var, tensor}),
                     " overflows or divides by zero for these sizes", Leaves(e)));
  }

  // The known values of the symbols and loop indices in `e`: " ($k = 9, i in [0, 2])".
  std::string Leaves(IndexId e) const {
    std::vector<std::string> known;
    VisitIndex(program_.pool, e, [&](IndexId id, const IndexNode& node) {
      if (node.kind == IndexKind::kSymbol) {
        const std::string& name = program_.pool.SymbolName(id);
        const auto value = symbol_(name);
        known.push_back(absl::StrCat(name, " = ", value ? absl::StrCat(*value) : "unknown"));
      } else if (node.kind == IndexKind::kVar && vars_[node.value]) {
        const Interval& range = *vars_[node.value];
        known.push_back(
            absl::StrCat(program_.vars[node.value], " in [", range.low, ", ", range.high, "]"));
      }
    });
    return known.empty() ? "" : absl::StrCat(" (", absl::StrJoin(known, ", "), ")");
  }

  // Each maximal affine part of `e` has an interval.
  absl::Status Check(IndexId e) {
    const IndexNode& node = program_.pool[e];
    if (program_.pool.IsAffine(e) && !IsCondition(node.kind)) {
      // A division by a symbol that is zero is not an overflow: an access that holds it is out
      // of bounds.
      return Of(e) || zero_divisor_ ? absl::OkStatus() : Failure(e);
    }
    for (IndexId arg : node.args) NESTOR_RETURN_IF_ERROR(Check(arg));
    return absl::OkStatus();
  }

  absl::optional<Interval> Of(IndexId e) {
    zero_divisor_ = overflow_ = false;
    return Compute(e);
  }

  // nullopt: the expression may leave int64, divides by zero at all values, or holds what is
  // unknown. Remembered until an index gets another interval.
  absl::optional<Interval> Compute(IndexId e) {
    const auto it = memo_.find(e);
    if (it != memo_.end()) return it->second;
    const IndexNode& node = program_.pool[e];
    absl::optional<Interval> result;
    if (node.kind == IndexKind::kConst) {
      result = Interval{node.value, node.value};
    } else if (node.kind == IndexKind::kVar) {
      result = vars_[node.value];
    } else if (node.kind == IndexKind::kSymbol) {
      if (const auto value = symbol_(program_.pool.SymbolName(e)))
        result = Interval{*value, *value};
    } else if (node.args.size() == 2) {
      const auto a = Compute(node.args[0]), b = Compute(node.args[1]);
      if (a && b) result = Apply(node.kind, *a, *b);
    }
    if (result) memo_.emplace(e, *result);
    return result;
  }

  // Quotients and remainders by the nonzero values of `b`; nullopt where there are none.
  absl::optional<Interval> ByNonzero(IndexKind kind, Interval a, Interval b) {
    absl::optional<Interval> below, above;
    if (b.low < 0) below = Apply(kind, a, {b.low, -1});
    if (b.high > 0) above = Apply(kind, a, {1, b.high});
    if ((b.low < 0 && !below) || (b.high > 0 && !above)) return absl::nullopt;
    if (!below || !above) return below ? below : above;
    return HullOf(*below, *above);
  }

  // All operations but the remainder are monotonic in each operand, on divisors of one sign, so the
  // extremes are at the corners.
  absl::optional<Interval> Apply(IndexKind kind, Interval a, Interval b) {
    const bool divides = kind == IndexKind::kDiv || kind == IndexKind::kMod;
    if (divides && b.low <= 0 && b.high >= 0) {
      zero_divisor_ = true;
      return ByNonzero(kind, a, b);
    }
    if (kind == IndexKind::kMod)
      return b.low > 0 ? Interval{0, b.high - 1} : Interval{b.low + 1, 0};
    const auto hull = AtCorners(kind, a, b);
    overflow_ |= !hull;
    return hull;
  }

  const Program& program_;
  absl::FunctionRef<absl::optional<int64_t>(const std::string&)> symbol_;
  std::vector<absl::optional<Interval>> vars_;
  double iterations_ = 1;  // of the loops around, at most
  absl::flat_hash_map<IndexId, Interval> memo_;
  bool zero_divisor_ = false, overflow_ = false;  // met since Of()
};

}  // namespace

absl::Status CheckDomains(const Program& program, SymbolValue symbol) {
  Prover prover(program, symbol);
  NESTOR_RETURN_IF_ERROR(prover.CheckShapes());
  for (const Domain& domain : program.domains) NESTOR_RETURN_IF_ERROR(prover.CheckDomain(domain));
  return absl::OkStatus();
}

absl::Status ProveNoOverflow(const Program& program, SymbolValue symbol) {
  return Prover(program, symbol).CheckLoops();
}

std::vector<bool> VersionAt(const Program& program, SymbolValue symbol) {
  const Prover prover(program, symbol);
  std::vector<bool> values;
  for (const VersionTest& test : program.version)
    values.push_back(prover.ValueOf(test.flag).value_or(test.value ? 1 : 0) == 1);
  return values;
}

namespace {

// Sums of so many terms with such factors stay below 2^60.
constexpr size_t kMostSmallTerms = 16;
constexpr int64_t kSmallFactor = 256;

// A loop index or a dimension, alone.
bool IsExtentLike(const IndexPool& pool, IndexId atom) {
  const IndexKind kind = pool[atom].kind;
  return kind == IndexKind::kVar || (kind == IndexKind::kSymbol && pool.SymbolName(atom)[0] != '$');
}

// A small number times an extent, or a number: far from 2^63 at all legal sizes.
bool IsSmallTerm(const IndexPool& pool, const AtomSum::Term& term) {
  const bool small = term.coefficient <= kSmallFactor && term.coefficient >= -kSmallFactor;
  if (term.atoms.empty()) return term.coefficient <= kMaxExtent && term.coefficient >= -kMaxExtent;
  return small && term.atoms.size() == 1 && IsExtentLike(pool, term.atoms[0]);
}

}  // namespace

// A sum of few small terms cannot overflow, so that no domain need record it.
bool IsAlwaysSmall(const IndexPool& pool, IndexId e) {
  if (IsCondition(pool[e].kind)) return false;
  const AtomSum sum = AtomSum::Of(pool, e);
  return sum.exact() && sum.size() <= kMostSmallTerms &&
         absl::c_all_of(sum.terms(), [&](const AtomSum::Term& t) { return IsSmallTerm(pool, t); });
}

bool IsPlainExtent(const IndexPool& pool, IndexId e) {
  if (const auto value = pool.ConstValue(e)) return *value >= 0 && *value <= kMaxExtent;
  return pool[e].kind == IndexKind::kSymbol && IsExtentLike(pool, e);
}

}  // namespace nestor::loop
