// A small solver for constraints: one variable after the other takes the value nearest to its wish
// that satisfies every constraint whose other variables have values. A variable that an equality
// determines is next as soon as it is the only one left in it.
#include "check/sizes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/binding.h"
#include "uops/invariant.h"
#include "uops/notation/condition_text.h"

namespace nestor {
namespace {

// Counts stop here, so that no product overflows; every limit is far below.
constexpr int64_t kManyElements = int64_t{1} << 40;
constexpr int kAttempts = 60;
// A $param without limits of its own lies in [-kLargestParam, kLargestParam], and those that are
// wished for in [-kLargestWish, kLargestWish].
constexpr int64_t kLargestParam = 4096, kLargestWish = 64;

// a + b, or the end of int64 that lies before it.
int64_t Plus(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

// Around vectors of 4 to 64 elements, tiles and pages of them; some primes.
constexpr int64_t kEdges[] = {1,   2,    3,    4,    5,    6,    7,    8,   9,   11,  12,  13,
                              15,  16,   17,   19,   23,   24,   25,   31,  32,  33,  37,  47,
                              48,  49,   63,   64,   65,   66,   96,   97,  127, 128, 129, 130,
                              191, 192,  193,  255,  256,  257,  383,  384, 385, 511, 512, 513,
                              769, 1000, 1023, 1024, 1025, 2047, 2048, 2049};

int64_t Tiny(Random& random) { return random.Pick({0, 1, 1, 1, 2, 2, 3, 3, 4, 5}); }
int64_t Edge(Random& random, int64_t largest) {
  const auto end =
      std::upper_bound(std::begin(kEdges), std::end(kEdges), std::max<int64_t>(largest, 1));
  return kEdges[random.Below(end - std::begin(kEdges))];
}

// An edge in the upper part of [1, largest].
int64_t LongEdge(Random& random, int64_t largest) {
  const auto begin =
      std::lower_bound(std::begin(kEdges), std::end(kEdges), std::max<int64_t>(largest / 4, 1));
  const auto end =
      std::upper_bound(std::begin(kEdges), std::end(kEdges), std::max<int64_t>(largest, 1));
  return begin < end ? begin[random.Below(end - begin)] : largest;
}

}  // namespace

// ---- Construction

absl::StatusOr<SizeSolver> SizeSolver::Create(const Op& op,
                                              absl::Span<const std::string> conditions) {
  SizeSolver solver;
  solver.op_ = op;
  solver.AddVariables();
  for (const std::string& text : conditions) {
    const absl::StatusOr<IndexId> condition = ParseCondition(text, solver.op_);
    if (!condition.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(op.name, ": the condition \"", text, "\": ", condition.status().message()));
    }
    solver.AddConstraint(*condition, /*is_extent=*/false);
  }
  solver.AddLaw();
  solver.AddExtents();
  solver.NarrowVariables();
  return solver;
}

// After "N == 64" there is nothing to search for.
void SizeSolver::NarrowVariables() {
  const IndexPool& pool = op_.graph.pool();
  for (const Constraint& constraint : constraints_) {
    if (!constraint.is_equality) continue;
    for (int side : {0, 1}) {
      // Both N == 64 and 64 == N; an equality of expressions narrows nothing.
      const IndexNode& symbol = pool[pool[constraint.expr].args[side]];
      const IndexNode& number = pool[pool[constraint.expr].args[1 - side]];
      if (symbol.kind != IndexKind::kSymbol || number.kind != IndexKind::kConst) continue;
      Variable& variable =
          variables_[static_cast<size_t>(by_symbol_[static_cast<size_t>(symbol.value)])];
      variable.low = std::max(variable.low, number.value);
      variable.high = std::min(variable.high, number.value);
    }
  }
  is_fixed_ = std::all_of(variables_.begin(), variables_.end(),
                          [](const Variable& v) { return v.low >= v.high; });
}

// Whether the $param is the size of a result along some axis, as in `arange(; $n)`.
bool SizeSolver::IsExtentOfResult(const std::string& param) {
  const IndexId symbol = op_.graph.pool().Symbol(param);
  return std::any_of(op_.results.begin(), op_.results.end(), [&](const Result& result) {
    const Shape& shape = op_.graph.shape(result.node);
    return std::find(shape.begin(), shape.end(), symbol) != shape.end();
  });
}

// The range that the op gives, else numbers of the type around the default.
void SizeSolver::LimitParam(const ParamInfo& param, Variable& variable) {
  const int64_t middle = variable.preferred.value_or(0);
  variable.low = variable.is_dimension ? 0 : Plus(middle, -kLargestParam);
  variable.high = variable.is_dimension ? kMaxExtent : Plus(middle, kLargestParam);
  if (param.low) {
    variable.low = param.low->ToInt();
    variable.high = std::max(variable.high, Plus(variable.low, kLargestParam));
  }
  if (param.high) {
    variable.high = param.high->ToInt();
    if (!param.low) variable.low = std::min(variable.low, Plus(variable.high, -kLargestParam));
  }
  const Scalar least = Lowest(param.type), most = Highest(param.type);
  variable.low = std::max(variable.low, least.ToInt());
  if (most.FitsInt64()) variable.high = std::min(variable.high, most.ToInt());
}

void SizeSolver::AddVariables() {
  names_ = UnboundDimensions(SignatureOf(op_), {});
  variables_.resize(names_.size());
  for (Variable& variable : variables_) variable.high = kMaxExtent;
  for (const ParamInfo& param : op_.params) {
    if (!IsInteger(param.type)) continue;
    Variable variable;
    variable.is_dimension = IsExtentOfResult(param.name);
    if (param.value) variable.preferred = param.value->ToInt();
    LimitParam(param, variable);
    names_.push_back(param.name);
    variables_.push_back(variable);
  }
  IndexPool& pool = op_.graph.pool();
  for (size_t i = 0; i < names_.size(); ++i) {
    const int64_t symbol = pool[pool.Symbol(names_[i])].value;
    if (static_cast<size_t>(symbol) >= by_symbol_.size())
      by_symbol_.resize(static_cast<size_t>(symbol) + 1, -1);
    by_symbol_[static_cast<size_t>(symbol)] = static_cast<int>(i);
  }
}

void SizeSolver::AddConstraint(IndexId expr, bool is_extent) {
  const IndexPool& pool = op_.graph.pool();
  if (is_extent && pool[expr].kind == IndexKind::kSymbol) return;  // a variable has its limits
  Constraint constraint{expr, is_extent, pool[expr].kind == IndexKind::kEq, {}};
  VisitIndex(pool, expr, [&](IndexId, const IndexNode& node) {
    if (node.kind == IndexKind::kSymbol)
      constraint.variables.push_back(by_symbol_[static_cast<size_t>(node.value)]);
  });
  constraints_.push_back(std::move(constraint));
}

// Adds the conditions that binding puts on sizes.
void SizeSolver::AddLaw() {
  IndexPool& pool = op_.graph.pool();
  for (const Equality& e : op_.equalities)
    AddConstraint(pool.Condition(IndexKind::kEq, e.left, e.right), false);
  for (const RangeCheck& check : op_.range_checks) {
    if (check.low)
      AddConstraint(pool.Condition(IndexKind::kLe, pool.Const(*check.low), check.value), false);
    if (check.high)
      AddConstraint(pool.Condition(IndexKind::kLe, check.value, pool.Const(*check.high)), false);
  }
}

void SizeSolver::AddExtents() {
  const std::vector<bool> live = Reachable(op_.graph, op_.ResultNodes());
  std::vector<IndexId> extents;
  const auto add = [&](const Shape& shape) {
    extents.insert(extents.end(), shape.begin(), shape.end());
  };
  for (const Argument& arg : op_.args) {
    add(arg.shape);
    if (!arg.shape_only) tensors_.push_back(arg.shape);
  }
  for (const Result& result : op_.results) tensors_.push_back(op_.graph.shape(result.node));
  for (int i = 0; i < op_.graph.size(); ++i) {
    if (!live[static_cast<size_t>(i)]) continue;
    add(op_.graph.shape(NodeId{i}));
    points_.push_back(op_.graph.shape(NodeId{i}));
  }
  std::sort(extents.begin(), extents.end());
  extents.erase(std::unique(extents.begin(), extents.end()), extents.end());
  for (IndexId extent : extents) AddConstraint(extent, /*is_extent=*/true);
  std::sort(points_.begin(), points_.end());
  points_.erase(std::unique(points_.begin(), points_.end()), points_.end());
}

// ---- Evaluation

// nullopt where a variable has no value yet, or the arithmetic overflows or divides by 0.
absl::optional<int64_t> SizeSolver::Evaluate(
    IndexId e, absl::Span<const absl::optional<int64_t>> values) const {
  return EvaluateIndex(
      op_.graph.pool(), e,
      [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
        if (node.kind != IndexKind::kSymbol) return absl::nullopt;
        return values[static_cast<size_t>(by_symbol_[static_cast<size_t>(node.value)])];
      });
}

bool SizeSolver::Holds(const Constraint& constraint,
                       absl::Span<const absl::optional<int64_t>> values) const {
  const absl::optional<int64_t> value = Evaluate(constraint.expr, values);
  if (!value) return false;
  return constraint.is_extent ? *value >= 0 && *value <= kMaxExtent : *value != 0;
}

int64_t SizeSolver::Count(const Shape& shape,
                          absl::Span<const absl::optional<int64_t>> values) const {
  int64_t count = 1;
  for (IndexId extent : shape) {
    const int64_t factor = Evaluate(extent, values).value_or(0);
    if (factor <= 0) return 0;
    count = count > kManyElements / factor ? kManyElements : count * factor;
  }
  return count;
}

std::vector<absl::optional<int64_t>> SizeSolver::Values(const SymbolValues& sizes) const {
  std::vector<absl::optional<int64_t>> values(names_.size());
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto it = sizes.find(names_[i]);
    if (it != sizes.end()) values[i] = it->second;
  }
  return values;
}

bool SizeSolver::Allows(const SymbolValues& sizes) const {
  const auto values = Values(sizes);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i] || *values[i] < variables_[i].low || *values[i] > variables_[i].high)
      return false;
  }
  return std::all_of(constraints_.begin(), constraints_.end(),
                     [&](const Constraint& c) { return Holds(c, values); });
}

int64_t SizeSolver::Elements(const SymbolValues& sizes) const {
  const auto values = Values(sizes);
  int64_t sum = 0;
  for (const Shape& shape : tensors_) sum = std::min(kManyElements, sum + Count(shape, values));
  return sum;
}

int64_t SizeSolver::Work(const SymbolValues& sizes) const {
  const auto values = Values(sizes);
  int64_t sum = 0;
  for (const Shape& shape : points_) sum = std::min(kManyElements, sum + Count(shape, values));
  return sum;
}

// ---- Drawing

// A stride, a padding, a shift or a group count: mostly small, from 0 or the end of the range that
// is nearest to it; negative ones and large ones, too.
int64_t SizeSolver::ParamWish(const Variable& variable, Random& random) {
  const int64_t nearest = std::min(std::max<int64_t>(variable.low, 0), variable.high);
  const int64_t low = std::max(variable.low, Plus(nearest, -kLargestWish)),
                high = std::min(variable.high, Plus(nearest, kLargestWish));
  if (random.Chance(10)) return random.Between(low, high);
  const int64_t step = random.Pick({0, 0, 1, 1, 2, 3});
  const bool down = low < nearest && (high == nearest || random.Chance(25));
  return Plus(nearest, down ? -step : step);
}

std::vector<int64_t> SizeSolver::DrawWishes(Random& random, Style style, int64_t largest) const {
  const int64_t common = Edge(random, largest);
  std::vector<size_t> dimensions;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].is_dimension) dimensions.push_back(i);
  }
  const size_t chosen = dimensions.empty() ? 0 : random.Pick(dimensions);
  std::vector<int64_t> wishes;
  for (size_t i = 0; i < variables_.size(); ++i) {
    const Variable& variable = variables_[i];
    if (!variable.is_dimension) {
      const bool usual = variable.preferred && random.Chance(50);
      wishes.push_back(usual ? *variable.preferred : ParamWish(variable, random));
      continue;
    }
    switch (style) {
      case Style::kTiny: wishes.push_back(Tiny(random)); break;
      case Style::kEdge: wishes.push_back(Edge(random, largest)); break;
      // The others are tiny, so 16 times the length is still little work.
      case Style::kOneLong:
        wishes.push_back(i == chosen ? LongEdge(random, 16 * largest) : Tiny(random));
        break;
      case Style::kEqual: wishes.push_back(common); break;
      case Style::kUniform:
        wishes.push_back(random.Between(1, std::max<int64_t>(largest, 1)));
        break;
    }
  }
  return wishes;
}

// The values that variables have so far.
class SizeSolver::Assignment {
 public:
  Assignment(const SizeSolver& solver, int64_t max_extent)
      : solver_(solver), max_extent_(max_extent), values_(solver.names_.size()) {
    for (const Constraint& constraint : solver.constraints_)
      missing_.push_back(constraint.variables.size());
    constraints_of_.resize(values_.size());
    for (size_t i = 0; i < solver.constraints_.size(); ++i) {
      for (int variable : solver.constraints_[i].variables)
        constraints_of_[static_cast<size_t>(variable)].push_back(i);
    }
  }

  const std::vector<absl::optional<int64_t>>& values() const { return values_; }

  // The variable that an equality determines, or -1.
  int Determined() const {
    for (size_t i = 0; i < missing_.size(); ++i) {
      const Constraint& constraint = solver_.constraints_[i];
      if (missing_[i] != 1 || !constraint.is_equality) continue;
      for (int variable : constraint.variables) {
        if (!values_[static_cast<size_t>(variable)]) return variable;
      }
    }
    return -1;
  }

  // Gives it the fitting value nearest to `wish`; false where none fits.
  // Outwards from the wish: w, w+1, w-1, w+2, .. A solution may lie behind an earlier choice; then
  // Draw tries again with other wishes instead of going back.
  bool Assign(int variable, int64_t wish) {
    const Variable& limits = solver_.variables_[static_cast<size_t>(variable)];
    const int64_t low = limits.low,
                  high = limits.is_dimension ? std::min(limits.high, max_extent_) : limits.high;
    wish = std::min(std::max(wish, low), high);
    for (int64_t distance = 0; wish - distance >= low || wish + distance <= high; ++distance) {
      if (distance > kFarthest) return false;
      if (wish + distance <= high && Fits(variable, wish + distance)) return true;
      if (distance > 0 && wish - distance >= low && Fits(variable, wish - distance)) return true;
    }
    return false;
  }

 private:
  static constexpr int64_t kFarthest = 5000;

  // Keeps the value where it fits; where it does not, the variable is without a value again.
  bool Fits(int variable, int64_t value) {
    values_[static_cast<size_t>(variable)] = value;
    for (size_t number : constraints_of_[static_cast<size_t>(variable)]) {
      // Only a constraint of which this is the last variable can be decided.
      if (missing_[number] == 1 && !solver_.Holds(solver_.constraints_[number], values_)) {
        values_[static_cast<size_t>(variable)] = absl::nullopt;
        return false;
      }
    }
    for (size_t number : constraints_of_[static_cast<size_t>(variable)]) --missing_[number];
    return true;
  }

  const SizeSolver& solver_;
  const int64_t max_extent_;
  std::vector<absl::optional<int64_t>> values_;
  std::vector<size_t> missing_;  // by constraint: its variables without a value
  std::vector<std::vector<size_t>> constraints_of_;
};

absl::optional<std::vector<absl::optional<int64_t>>> SizeSolver::Solve(
    Random& random, absl::Span<const int64_t> wishes, int64_t max_extent) const {
  Assignment assignment(*this, max_extent);
  // A random order, as the later variables have less choice: each must be the free one now and
  // then.
  std::vector<int> order(names_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  random.Shuffle(order);
  for (size_t next = 0; next < order.size();) {
    const int determined = assignment.Determined();
    const int variable = determined >= 0 ? determined : order[next];
    if (determined < 0) ++next;
    if (assignment.values()[static_cast<size_t>(variable)]) continue;
    if (!assignment.Assign(variable, wishes[static_cast<size_t>(variable)])) return absl::nullopt;
  }
  return assignment.values();
}

// Whether something is empty though no dimension is 0: a window that is larger than the axis
// it slides over.
// Most kernels do nothing then, so one such case in ten is enough.
bool SizeSolver::IsVain(absl::Span<const absl::optional<int64_t>> values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (variables_[i].is_dimension && values[i] == 0) return false;
  }
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [&](const Shape& shape) { return Count(shape, values) == 0; });
}

absl::optional<SymbolValues> SizeSolver::Draw(Random& random, const SizeLimits& limits) const {
  // The style is drawn once: otherwise a style whose sizes are too large too often, such as one
  // long axis, would lose to the others.
  // Five styles with equal chances; `largest` says how large the extents of a style are.
  const Style style =
      random.Pick({Style::kTiny, Style::kEdge, Style::kOneLong, Style::kEqual, Style::kUniform});
  int64_t largest = random.Pick({5, 9, 17, 40, 70, 130});
  absl::optional<SymbolValues> vain;
  for (int attempt = 0; attempt < (is_fixed_ ? 1 : kAttempts); ++attempt) {
    const std::vector<int64_t> wishes =
        DrawWishes(random, style, std::min(largest, limits.max_extent));
    const auto values = Solve(random, wishes, limits.max_extent);
    if (!values) continue;
    SymbolValues sizes;
    for (size_t i = 0; i < names_.size(); ++i) sizes[names_[i]] = *(*values)[i];
    // A condition without variables was not checked before.
    if (!Allows(sizes)) return absl::nullopt;
    const bool is_too_large =
        Elements(sizes) > limits.max_elements || Work(sizes) > limits.max_work;
    if (!is_too_large && (!IsVain(*values) || random.Chance(10))) return sizes;
    // After some attempts all is small: the style stays, its sizes shrink.
    if (is_too_large) largest = std::max<int64_t>(1, largest * 2 / 3);
    else vain = std::move(sizes);
  }
  return vain;  // the conditions may ask for nothing else
}

}  // namespace nestor
