// Each expression is drawn from a few forms. Every draw is a statement of its own, as in
// program_generator.cc: the order in which C++ evaluates operands is not fixed.
#include "check/engines/index_generator.h"

namespace nestor {

// A dimension, or an integer $param: what an extent or an offset may be made of.
IndexId IndexGenerator::Symbol() {
  if (!integer_params_.empty() && random_.Chance(25)) return random_.Pick(integer_params_);
  return random_.Pick(dims_);
}

// Mostly a dimension; else a small number or a form that windows, pads and halves have.
IndexId IndexGenerator::Extent() {
  if (const auto extreme = Extreme(3)) return pool_.Min(*extreme, random_.Pick(dims_));
  const int kind = static_cast<int>(random_.Below(100));
  if (kind < 60) return random_.Pick(dims_);
  if (kind < 75) return pool_.Const(random_.Between(kind < 62 ? 0 : 1, 4));
  const IndexId n = random_.Pick(dims_);
  const IndexId s = Symbol();
  const int64_t c = random_.Between(1, 3);
  const IndexId constant = pool_.Const(c);
  switch (random_.Below(9)) {
    case 0: return pool_.Add(n, constant);
    case 1: return pool_.Mul(n, constant);
    case 2: return pool_.Mul(n, random_.Pick(dims_));
    case 3: return pool_.Add(n, s);
    case 4: return pool_.Max(pool_.Sub(n, constant), pool_.Const(0));
    case 5: return pool_.Div(pool_.Add(n, s), pool_.Const(2));
    case 6: return pool_.Min(n, pool_.Add(s, constant));
    case 7:
      return pool_.Add(pool_.Div(pool_.Sub(pool_.Add(n, pool_.Mul(pool_.Const(2), s)), constant),
                                 pool_.Const(2)),
                       pool_.Const(1));
    default: return random_.Chance(50) ? pool_.Div(n, s) : pool_.Mod(n, pool_.Const(c + 1));
  }
}

// ---- Over the axes of a shape

IndexId IndexGenerator::Var(const Shape& over) {
  return pool_.Var(random_.Below(static_cast<int64_t>(over.size())));
}

// With options_.extremes, a number near the ends of int64 in `percent` of 100 cases.
absl::optional<IndexId> IndexGenerator::Extreme(int percent) {
  if (!options_.extremes || !random_.Chance(percent)) return absl::nullopt;
  return pool_.Const(random_.Extreme());
}

// Mostly 1, as in real programs: a place that is rarely in range tests little but fills.
IndexId IndexGenerator::Coefficient() {
  if (const auto extreme = Extreme(5)) return *extreme;
  const int kind = static_cast<int>(random_.Below(100));
  if (kind < 12 && !integer_params_.empty()) return random_.Pick(integer_params_);
  // A coefficient that overflows from index 2 on.
  if (kind == 12 && random_.Chance(40) && !options_.smooth) return pool_.Const(int64_t{3} << 61);
  return pool_.Const(random_.Pick({1, 1, 1, 1, -1, 2, 2, 3, -2}));
}

IndexId IndexGenerator::Offset() {
  if (const auto extreme = Extreme(8)) return *extreme;
  if (random_.Chance(15)) {
    const IndexId symbol = Symbol();
    return random_.Chance(50) ? pool_.Sub(symbol, pool_.Const(1)) : pool_.Neg(symbol);
  }
  return pool_.Const(random_.Pick({0, 0, 0, -1, 1, 1, 2, -2}));
}

// coefficient * index + ... + offset
IndexId IndexGenerator::Linear(const Shape& over) {
  IndexId sum = Offset();
  const int terms = over.empty() ? 0 : static_cast<int>(random_.Pick({0, 1, 1, 1, 1, 2, 2}));
  for (int i = 0; i < terms; ++i) {
    const IndexId coefficient = Coefficient();
    const IndexId var = Var(over);
    sum = pool_.Add(sum, pool_.Mul(coefficient, var));
  }
  return sum;
}

IndexId IndexGenerator::Divisor() {
  if (const auto extreme = Extreme(10)) return *extreme;
  if (random_.Chance(25)) return Symbol();
  return pool_.Const(random_.Pick({2, 2, 3, -2, 4, -1, 1}));
}

// Floor division and its remainder (SEMANTICS 1), of dividends and divisors of either sign.
IndexId IndexGenerator::Quotient(IndexId a, IndexId b) {
  return random_.Chance(50) ? pool_.Div(a, b) : pool_.Mod(a, b);
}

// An affine expression of any kind.
IndexId IndexGenerator::Affine(const Shape& over) {
  const IndexId a = Linear(over);
  switch (random_.Below(6)) {
    case 0: {
      const IndexId divisor = Divisor();
      const IndexId quotient = Quotient(a, divisor);
      return random_.Chance(30) ? pool_.Add(pool_.Mul(pool_.Const(2), quotient), Linear(over))
                                : quotient;
    }
    case 1: {
      const IndexId b = Linear(over);
      return random_.Chance(50) ? pool_.Min(a, b) : pool_.Max(a, b);
    }
    case 2: return pool_.Min(pool_.Max(a, pool_.Const(0)), pool_.Sub(Symbol(), pool_.Const(1)));
    default: return a;
  }
}

// Loads and products of indices, which may overflow anywhere. `depth`: how deep gathers may nest.
IndexId IndexGenerator::Irregular(const Shape& over, int depth) {
  if (random_.Chance(70)) {
    const IndexId load = Gather(over, depth);
    if (load.value >= 0) return Spoil(load, over);
  }
  if (over.empty()) return Affine(over);
  const IndexId a = Linear(over);
  const IndexId b = Linear(over);
  switch (random_.Below(4)) {
    case 0: return pool_.Div(a, b);
    case 1: return pool_.Mod(a, b);
    case 2: return pool_.Add(pool_.Mul(a, b), Linear(over));
    default: return pool_.Mul(a, b);
  }
}

// Arithmetic on a gathered value.
IndexId IndexGenerator::Spoil(IndexId load, const Shape& over) {
  const IndexId a = Linear(over);
  switch (random_.Below(12)) {
    case 0: return pool_.Add(load, a);
    case 1: return pool_.Sub(a, load);
    case 2: return pool_.Mul(load, a);
    case 3: return pool_.Div(load, a);
    case 4: return pool_.Mod(a, load);
    case 5: return pool_.Min(pool_.Max(load, pool_.Const(0)), a);
    case 6:
      return pool_.Div(pool_.Mul(load, pool_.Const(int64_t{1} << 62)),
                       pool_.Const(int64_t{1} << 61));
    case 7: return pool_.Neg(pool_.Add(load, pool_.Const(-1)));
    default: return load;
  }
}

// An element of an integer tensor as an index, where there is such a tensor.
IndexId IndexGenerator::Gather(const Shape& over, int depth) {
  std::vector<NodeId> integers;
  for (NodeId id : values_) {
    if (IsInteger(graph_.type(id))) integers.push_back(id);
  }
  if (integers.empty()) return IndexId();
  const NodeId tensor = random_.Pick(integers);
  const Shape extents = graph_.shape(tensor);
  IndexList place;
  for (IndexId extent : extents) place.push_back(Place(extent, over, depth - 1));
  return pool_.Load(tensor.value, place);
}

// An index into an axis of that extent, mostly inside of it.
IndexId IndexGenerator::Place(IndexId extent, const Shape& over, int depth) {
  std::vector<int64_t> fitting;
  for (size_t v = 0; v < over.size(); ++v) {
    if (over[v] == extent) fitting.push_back(static_cast<int64_t>(v));
  }
  const int kind = static_cast<int>(random_.Below(100));
  if (!fitting.empty() && kind < 55) return pool_.Var(random_.Pick(fitting));
  if (!over.empty() && kind < 65) return Var(over);
  if (kind < 70 && !over.empty()) return pool_.Sub(pool_.Sub(extent, pool_.Const(1)), Var(over));
  if (kind < 88 || depth <= 0 || options_.smooth) return Affine(over);
  return Irregular(over, depth);
}

IndexList IndexGenerator::PlaceIn(const Shape& extents, const Shape& over) {
  IndexList place;
  for (IndexId extent : extents) place.push_back(Place(extent, over));
  return place;
}

IndexId IndexGenerator::ConditionOperand(const Shape& over) {
  if (random_.Chance(15) && !options_.smooth) return Irregular(over, 1);
  return random_.Chance(50) ? Linear(over) : Affine(over);
}

// depth 0: i + 1 < N;   depth 1: i < j && !(2*i == N), and the like
IndexId IndexGenerator::Condition(const Shape& over, int depth) {
  const int kind = static_cast<int>(random_.Below(10));
  if (depth == 0 || kind < 6) {
    const IndexId a = ConditionOperand(over);
    const IndexId b = ConditionOperand(over);
    const IndexKind compare = random_.Pick(
        {IndexKind::kLt, IndexKind::kLt, IndexKind::kLe, IndexKind::kEq, IndexKind::kNe});
    return pool_.Condition(compare, a, b);
  }
  const IndexId a = Condition(over, depth - 1);
  if (kind == 6) return pool_.Not(a);
  const IndexId b = Condition(over, depth - 1);
  return pool_.Condition(kind == 7 ? IndexKind::kOr : IndexKind::kAnd, a, b);
}

}  // namespace nestor
