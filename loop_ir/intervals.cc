// Interval arithmetic over a program's scopes: a loop index runs over the hull of
// its bounds; every operation on intervals is checked at the ends that reach its
// extremes. An expression that holds something not affine has no interval, but
// its affine parts are checked.
#include "loop_ir/intervals.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

struct Interval {
  int64_t low, high;
};

class Prover {
 public:
  Prover(const Program& program, absl::FunctionRef<absl::optional<int64_t>(const std::string&)> symbol)
      : program_(program), symbol_(symbol), vars_(program.vars.size()) {}

  absl::Status Run() {
    for (const TensorInfo& tensor : program_.tensors) {
      if (tensor.storage == Storage::kInput || tensor.storage == Storage::kOutput) {
        for (IndexId extent : tensor.shape) NESTOR_RETURN_IF_ERROR(Check(extent));
      }
    }
    for (const Block& block : program_.blocks) NESTOR_RETURN_IF_ERROR(CheckScope(block.body));
    return absl::OkStatus();
  }

 private:
  absl::Status CheckScope(const Scope& scope) {
    for (const Item& item : scope) {
      absl::Status status;
      VisitIndices(program_, item, [&](IndexId e) {
        if (status.ok()) status = Check(e);
      });
      NESTOR_RETURN_IF_ERROR(status);
      const Loop* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      const auto begin = Of(loop->begin), end = Of(loop->end);
      if (!begin || !end) return Failure(loop->end);
      if (end->high <= begin->low) continue;  // never runs
      vars_[loop->var] = Interval{begin->low, end->high - 1};
      NESTOR_RETURN_IF_ERROR(CheckScope(loop->body));
      vars_[loop->var].reset();
      memo_.clear();
    }
    return absl::OkStatus();
  }

  absl::Status Failure(IndexId e) const {
    const auto var = [&](int64_t v) { return program_.vars[v]; };
    const auto tensor = [&](int64_t t) { return program_.tensors[t].name; };
    return absl::InvalidArgumentError(absl::StrCat("program ", program_.name, ": the index expression ",
                                                   IndexText(program_.pool, e, {var, tensor}),
                                                   " overflows or divides by zero for these sizes"));
  }

  // Every maximal affine part of `e` has an interval.
  absl::Status Check(IndexId e) {
    const IndexNode& node = program_.pool[e];
    if (program_.pool.IsAffine(e) && !IsCondition(node.kind)) {
      // A division by a symbol that is zero is not an overflow: where it stands
      // in an access, that is out of bounds.
      return Of(e) || zero_divisor_ ? absl::OkStatus() : Failure(e);
    }
    for (IndexId arg : node.args) NESTOR_RETURN_IF_ERROR(Check(arg));
    return absl::OkStatus();
  }

  absl::optional<Interval> Of(IndexId e) {
    zero_divisor_ = false;
    return Compute(e);
  }

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
      if (const auto value = symbol_(program_.pool.SymbolName(e))) result = Interval{*value, *value};
    } else if (node.args.size() == 2) {
      const auto a = Compute(node.args[0]), b = Compute(node.args[1]);
      if (a && b) result = Apply(node.kind, *a, *b);
    }
    if (result) memo_.emplace(e, *result);
    return result;
  }

  absl::optional<Interval> Apply(IndexKind kind, Interval a, Interval b) {
    if (kind == IndexKind::kDiv || kind == IndexKind::kMod) {
      // The divisor of an affine expression is a single value.
      zero_divisor_ |= b.low == 0;
    }
    if (kind == IndexKind::kMod) {
      if (b.low == 0) return absl::nullopt;
      return b.low > 0 ? Interval{0, b.low - 1} : Interval{b.low + 1, 0};
    }
    absl::optional<Interval> hull;
    for (int64_t x : {a.low, a.high}) {
      for (int64_t y : {b.low, b.high}) {
        const auto value = CheckedApply(kind, x, y);
        if (!value) return absl::nullopt;
        if (!hull) hull = Interval{*value, *value};
        hull = Interval{std::min(hull->low, *value), std::max(hull->high, *value)};
      }
    }
    return hull;
  }

  const Program& program_;
  absl::FunctionRef<absl::optional<int64_t>(const std::string&)> symbol_;
  std::vector<absl::optional<Interval>> vars_;
  absl::flat_hash_map<IndexId, Interval> memo_;
  bool zero_divisor_ = false;
};

}  // namespace

absl::Status ProveNoOverflow(const Program& program,
                             absl::FunctionRef<absl::optional<int64_t>(const std::string&)> symbol) {
  return Prover(program, symbol).Run();
}

}  // namespace nestor::loop
