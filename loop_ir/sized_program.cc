// Interval arithmetic with a stride and a count (intervals with congruences; Granger, "Static
// analysis of arithmetical congruences", 1989): which values an expression takes while loops run,
// without running them. Sums of progressions are dense as soon as their steps are small against the
// other's span: a convolution's row h*2 + r, with h in [0, 10) and r in [0, 3), takes min(10 * 3,
// (9*2 + 2)/1 + 1) = 21 values. Both are upper bounds.
#include "loop_ir/sized_program.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "loop_ir/interval.h"
#include "loop_ir/intervals.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

using Values = absl::optional<Progression>;

bool IsSingle(const Progression& p) { return p.low == p.high; }

// a * b for a, b >= 0, or the largest there is.
int64_t Saturated(int64_t a, int64_t b) {
  return CheckedApply(IndexKind::kMul, a, b).value_or(std::numeric_limits<int64_t>::max());
}

int64_t SaturatedSum(int64_t a, int64_t b) {
  return CheckedApply(IndexKind::kAdd, a, b).value_or(std::numeric_limits<int64_t>::max());
}

absl::optional<int64_t> Difference(int64_t a, int64_t b) {
  int64_t difference;
  if (__builtin_sub_overflow(a, b, &difference)) return absl::nullopt;
  return difference;
}

// A progression with `count` values, or as many as fit.
Values Bounded(int64_t low, int64_t high, int64_t step, int64_t count) {
  const auto span = Difference(high, low);
  if (!span || *span < 0) return absl::nullopt;
  step = std::max<int64_t>(step, 1);
  const int64_t places = *span / step;
  return Progression{low, high, step, places < count ? places + 1 : count};
}

Values Sum(const Progression& a, const Progression& b) {
  const auto low = CheckedApply(IndexKind::kAdd, a.low, b.low),
             high = CheckedApply(IndexKind::kAdd, a.high, b.high);
  if (!low || !high) return absl::nullopt;
  const int64_t step = IsSingle(a) ? b.step : IsSingle(b) ? a.step : std::gcd(a.step, b.step);
  return Bounded(*low, *high, step, Saturated(a.count, b.count));
}

// For an op that is monotonic in each operand.
Values AtCorners(IndexKind kind, const Progression& a, const Progression& b, int64_t step,
                 int64_t count) {
  const auto hull = AtCorners(kind, Interval{a.low, a.high}, Interval{b.low, b.high});
  return hull ? Bounded(hull->low, hull->high, step, count) : absl::nullopt;
}

// A progression times a number is one with a larger step; of two, only bounds are known.
Values Product(const Progression& a, const Progression& b) {
  const Progression& factor = IsSingle(a) ? a : b;
  const Progression& other = IsSingle(a) ? b : a;
  if (!IsSingle(factor)) return AtCorners(IndexKind::kMul, a, b, 1, Saturated(a.count, b.count));
  if (factor.low == 0) return Progression::Single(0);
  const auto step = CheckedApply(IndexKind::kMul, other.step, factor.low);
  if (!step || *step == std::numeric_limits<int64_t>::min()) return absl::nullopt;
  return AtCorners(IndexKind::kMul, a, b, std::abs(*step), other.count);
}

Values Quotient(const Progression& a, const Progression& b) {
  if (!IsSingle(b) || b.low == 0) return absl::nullopt;
  const bool exact = b.low > 0 && a.step % b.low == 0;
  return AtCorners(IndexKind::kDiv, a, b, exact ? a.step / b.low : 1, a.count);
}

// By a number only. Within one multiple of it remainders run like the operand; across several they
// cover the residues that the common divisor of step and number allows.
Values Remainder(const Progression& a, const Progression& b) {
  if (!IsSingle(b) || b.low == 0) return absl::nullopt;
  const auto low = CheckedApply(IndexKind::kDiv, a.low, b.low),
             high = CheckedApply(IndexKind::kDiv, a.high, b.low);
  if (!low || !high) return absl::nullopt;
  if (*low == *high) {  // no wrap within
    return AtCorners(IndexKind::kMod, a, b, a.step, a.count);
  }
  if (b.low < 0) return Bounded(b.low + 1, 0, 1, a.count);
  const int64_t step = std::gcd(a.step, b.low);
  // Remainders are low mod step apart from the multiples of step.
  const int64_t offset = ((a.low % step) + step) % step;
  return Bounded(offset, b.low - step + offset, step, a.count);
}

// Each gives a progression that holds all values; `count` bounds how many there are.
Values Apply(IndexKind kind, const Progression& a, const Progression& b) {
  switch (kind) {
    case IndexKind::kAdd: return Sum(a, b);
    case IndexKind::kMul: return Product(a, b);
    case IndexKind::kDiv: return Quotient(a, b);
    case IndexKind::kMod: return Remainder(a, b);
    case IndexKind::kMin:
    case IndexKind::kMax: return AtCorners(kind, a, b, 1, SaturatedSum(a.count, b.count));
    default: return absl::nullopt;
  }
}

}  // namespace

bool LivesInMemory(const TensorInfo& tensor) {
  const bool is_local = tensor.storage == Storage::kTemp || tensor.storage == Storage::kAccumulator;
  return !tensor.is_register && !(is_local && tensor.shape.empty());
}

int64_t ElementBytes(const TensorInfo& tensor) {
  return ByteSize(tensor.type) + (IsArgAccumulator(tensor) ? ByteSize(DType::kI64) : 0);
}

absl::optional<int64_t> BytesOf(const TensorInfo& tensor, int64_t count) {
  if (count > (kLargestTensor - kArenaAlignment) / ElementBytes(tensor)) return absl::nullopt;
  const int64_t values = count * ByteSize(tensor.type);
  return IsArgAccumulator(tensor) ? PositionsOffset(values) + count * ByteSize(DType::kI64)
                                  : values;
}

absl::StatusOr<SizedProgram> SizedProgram::Create(const Program& program, const Sizes& sizes) {
  SizedProgram sized(program);
  NESTOR_RETURN_IF_ERROR(sized.BindSymbols(sizes));
  sized.vars_.resize(program.vars.size());
  NESTOR_RETURN_IF_ERROR(sized.BindVars(program.body));
  return sized;
}

// Every symbol in use must have a value, and the sizes must be legal, as for any engine.
absl::Status SizedProgram::BindSymbols(const Sizes& sizes) {
  const IndexPool& pool = program_->pool;
  const auto value_of = [&](const std::string& name) -> absl::optional<int64_t> {
    const auto given = sizes.find(name);
    if (given != sizes.end()) return given->second;
    for (const ParamInfo& param : program_->params) {
      if (param.name == name && param.value && IsInteger(param.type)) return param.value->ToInt();
    }
    return absl::nullopt;
  };
  symbols_.resize(pool.size());
  for (size_t i = 0; i < pool.size(); ++i) {
    const IndexId id{static_cast<int32_t>(i)};
    if (pool[id].kind == IndexKind::kSymbol) symbols_[i] = value_of(pool.SymbolName(id));
  }
  absl::Status status;
  const auto check = [&](IndexId e) {
    VisitIndex(pool, e, [&](IndexId id, const IndexNode& node) {
      if (node.kind != IndexKind::kSymbol || !status.ok()) return;
      const std::string& name = pool.SymbolName(id);
      const auto value = symbols_[id.value];
      if (!value) {
        status = absl::InvalidArgumentError(
            absl::StrCat("program ", program_->name, ": no value is given for ", name));
      } else if (*value < 0 && name[0] != '$') {
        status = absl::InvalidArgumentError(absl::StrCat("program ", program_->name, ": dimension ",
                                                         name, " = ", *value, " is negative"));
      }
    });
  };
  for (const TensorInfo& tensor : program_->tensors) {
    for (IndexId extent : tensor.shape) check(extent);
  }
  for (const Domain& domain : program_->domains) {
    for (const IndexList* list : {&domain.extents, &domain.places, &domain.values}) {
      for (IndexId e : *list) check(e);
    }
  }
  VisitItems(*program_, [&](const Item& item) { VisitIndices(*program_, item, check); });
  NESTOR_RETURN_IF_ERROR(status);
  NESTOR_RETURN_IF_ERROR(CheckDomains(*program_, value_of));
  return ProveNoOverflow(*program_, value_of);
}

// The values of each loop index, outermost loops first. A loop that never runs leaves its index
// without, and what is inside it is dead.
absl::Status SizedProgram::BindVars(const Scope& scope) {
  for (const Item& item : scope) {
    const Loop* loop = item.As<Loop>();
    if (loop == nullptr) continue;
    const Values begin = Over(loop->begin, vars_), end = Over(loop->end, vars_);
    if (!begin || !end || !Difference(end->high, begin->low)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "program ", program_->name, ": the bounds of loop ", program_->vars[loop->var],
          " are undefined or too far apart for these sizes"));
    }
    vars_[loop->var] = IndexOf(*loop, vars_);
    if (vars_[loop->var]) NESTOR_RETURN_IF_ERROR(BindVars(loop->body));
  }
  return absl::OkStatus();
}

// nullopt: it gathers, is a condition, or has no value.
absl::optional<Progression> SizedProgram::Over(IndexId e, const VarValues& vars) const {
  const IndexNode& node = program_->pool[e];
  switch (node.kind) {
    case IndexKind::kConst: return Progression::Single(node.value);
    case IndexKind::kVar: return vars[node.value];
    case IndexKind::kSymbol: {
      const auto value = symbols_[e.value];
      return value ? absl::make_optional(Progression::Single(*value)) : absl::nullopt;
    }
    default: break;
  }
  if (node.kind == IndexKind::kLoad || IsCondition(node.kind)) return absl::nullopt;
  const Values a = Over(node.args[0], vars), b = Over(node.args[1], vars);
  if (!a || !b) return absl::nullopt;
  return Apply(node.kind, *a, *b);
}

// The values of a loop's index over all iterations of the loops around it.
absl::optional<Progression> SizedProgram::IndexOf(const Loop& loop, const VarValues& vars) const {
  const Values begin = Over(loop.begin, vars), end = Over(loop.end, vars);
  if (!begin || !end || end->high <= begin->low) return absl::nullopt;
  // With a single value of begin, the index stays on a grid.
  const int64_t step = IsSingle(*begin) ? loop.step : std::gcd(loop.step, begin->step);
  const int64_t high = begin->low + (end->high - 1 - begin->low) / step * step;
  return Bounded(begin->low, high, step, std::numeric_limits<int64_t>::max());
}

bool SizedProgram::IsDead(IndexId e) const {
  std::vector<int64_t> vars;
  CollectVars(program_->pool, e, vars);
  return std::any_of(vars.begin(), vars.end(), [&](int64_t v) { return !vars_[v]; });
}

// The greatest extents that the tensor has in any iteration.
absl::StatusOr<std::vector<int64_t>> SizedProgram::Extents(TensorId tensor) const {
  const TensorInfo& info = (*program_)[tensor];
  std::vector<int64_t> extents;
  for (IndexId extent : info.shape) {
    if (IsDead(extent)) return std::vector<int64_t>(info.shape.size(), 0);
    const Values values = Over(extent, vars_);
    if (!values || values->high < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "program ", program_->name, ": tensor ", info.name, ": an extent ",
          values ? absl::StrCat("is negative: ", values->high) : "divides by zero or overflows"));
    }
    extents.push_back(values->high);
  }
  return extents;
}

absl::StatusOr<int64_t> SizedProgram::Bytes(TensorId tensor) const {
  const TensorInfo& info = (*program_)[tensor];
  NESTOR_ASSIGN_OR_RETURN(const std::vector<int64_t> extents, Extents(tensor));
  const bool is_empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
  absl::optional<int64_t> count = is_empty ? 0 : 1;
  for (int64_t extent : extents) {
    if (count) count = CheckedApply(IndexKind::kMul, *count, extent);
  }
  const absl::optional<int64_t> bytes = count ? BytesOf(info, *count) : absl::nullopt;
  if (bytes) return *bytes;
  return absl::InvalidArgumentError(absl::StrCat("program ", program_->name, ": tensor ", info.name,
                                                 ": its size in bytes overflows"));
}

}  // namespace nestor::loop
