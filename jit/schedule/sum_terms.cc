// Loop distribution by statement, the inverse of what fusion does: a loop with several sums becomes
// a loop for each, provided that one of them could be a contraction. Scalars of the body are
// substituted into the terms, so that the sums share nothing (forward substitution), at the price
// of computing them once for each sum. Terms of more than kLargestTerm values stay as they are. The
// loop may be a perfect nest of several, which each sum gets whole.
#include "jit/schedule/sum_terms.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// The most values that a term may have when written out.
constexpr int64_t kLargestTerm = 24;

class Separator {
 public:
  explicit Separator(Program& program) : program_(program) {}

  bool Run() {
    Visit(program_.body);
    return changed_;
  }

 private:
  // Replaces each loop that SumsOf takes by one loop for each of its sums.
  void Visit(Scope& scope) {
    Scope result;
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      absl::optional<std::vector<Statement>> sums;
      if (loop != nullptr) sums = SumsOf(*loop);
      if (sums) {
        for (const Statement& sum : *sums) result.push_back(Copy(*loop, sum));
        changed_ = true;
        continue;
      }
      if (loop != nullptr) {
        around_.push_back({loop, DeclaredIn(loop->body)});
        Visit(loop->body);
        around_.pop_back();
      }
      result.push_back(std::move(item));
    }
    scope = std::move(result);
  }

  // The sums, with scalars replaced by their values, if the loops do nothing else; nullopt where
  // there is nothing to separate, or this could not yield a contraction.
  absl::optional<std::vector<Statement>> SumsOf(const Loop& loop) {
    const Scope& body = CoreOf(loop);
    if (body.size() < 2 || body.size() > static_cast<size_t>(kLargestTerm)) return absl::nullopt;
    const std::vector<TensorId> scalars = DeclaredIn(body);
    if (!HoldsOnlySums(body, scalars)) return absl::nullopt;
    // This is checked before any value is made, as most loops stay.
    if (!absl::c_any_of(body, [&](const Item& item) { return Shares(body, item); }))
      return absl::nullopt;
    absl::flat_hash_map<TensorId, ValueId> values;
    std::vector<Statement> sums;
    for (const Item& item : body) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) continue;
      const ValueId value = WithScalars(statement->value, values);
      if (!statement->op) {
        values[statement->target.tensor] = value;
        continue;
      }
      sums.push_back(*statement);
      sums.back().value = value;
    }
    return sums;
  }

  // Whether each item declares a scalar, sets one that no other item sets, or adds to an
  // accumulator that none of them reads.
  bool HoldsOnlySums(const Scope& body, const std::vector<TensorId>& scalars) const {
    std::vector<TensorId> targets;
    for (const Item& item : body) {
      if (item.As<Loop>() != nullptr) return false;
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) continue;
      const TensorInfo& target = program_[statement->target.tensor];
      const bool is_own = absl::c_linear_search(scalars, statement->target.tensor);
      if (!target.shape.empty() || statement->target.masked ||
          absl::c_linear_search(targets, statement->target.tensor))
        return false;
      if (is_own == statement->op.has_value()) return false;
      if (statement->op && (IsArg(*statement->op) || target.storage != Storage::kAccumulator))
        return false;
      targets.push_back(statement->target.tensor);
    }
    // A scalar that nothing sets is read in a loop that never runs.
    if (!absl::c_all_of(scalars,
                        [&](TensorId tensor) { return absl::c_linear_search(targets, tensor); }))
      return false;
    const Footprint footprint = FootprintOf(program_, body);
    return absl::c_none_of(footprint.reads,
                           [&](TensorId tensor) {
                             return footprint.Changes(tensor) &&
                                    !absl::c_linear_search(scalars, tensor);
                           }) &&
           !ReadsIndices(body);
  }

  bool ReadsIndices(const Scope& body) const {
    return absl::c_any_of(body, [&](const Item& item) {
      bool any = false;
      VisitIndices(program_, item, [&](IndexId e) { any = any || program_.pool.HasLoad(e); });
      return any;
    });
  }

  // Whether the item is a small sum with loads that move with one loop around and loads that move
  // with another, none with both.
  bool Shares(const Scope& body, const Item& item) const {
    const auto* sum = item.As<Statement>();
    if (sum == nullptr || !sum->op ||
        SizeOf(program_, Item{Loop{0, {}, {}, 1, {}, body}}) > kLargestTerm)
      return false;
    std::vector<const Access*> loads;
    CollectLoads(body, *sum, loads);
    for (size_t row = 0; row < around_.size(); ++row) {
      for (size_t column = 0; column < around_.size(); ++column) {
        if (row != column && Divide(loads, row, column)) return true;
      }
    }
    return false;
  }

  // Whether the loads fall into those of the row and those of the column, with none in both. Both
  // are numbers of loops around.
  bool Divide(const std::vector<const Access*>& loads, size_t row, size_t column) const {
    bool rows = false, columns = false;
    for (const Access* load : loads) {
      const bool in_row = MovesWith(*load, row), in_column = MovesWith(*load, column);
      if (in_row && in_column) return false;
      rows = rows || in_row;
      columns = columns || in_column;
    }
    return rows && columns;
  }

  // Whether the place depends on the loop, or the tensor is declared in it, anew for each
  // iteration.
  bool MovesWith(const Access& load, size_t number) const {
    const auto declares = [&](const Around& around) {
      return absl::c_linear_search(around.declared, load.tensor);
    };
    return DependsOn(program_, load, *around_[number].loop) ||
           std::any_of(around_.begin() + static_cast<std::ptrdiff_t>(number), around_.end(),
                       declares);
  }

  // Loads of the statement, and of the scalars that it reads.
  void CollectLoads(const Scope& body, const Statement& statement,
                    std::vector<const Access*>& loads) const {
    VisitLoads(program_, statement.value, [&](ValueId, const Access& access) {
      const auto set = absl::c_find_if(body, [&](const Item& item) {
        const auto* other = item.As<Statement>();
        return other != nullptr && !other->op && other->target.tensor == access.tensor;
      });
      if (set == body.end()) loads.push_back(&access);
      else CollectLoads(body, *set->As<Statement>(), loads);
    });
  }

  // The value with each scalar of the body replaced by what was assigned to it.
  ValueId WithScalars(ValueId value, const absl::flat_hash_map<TensorId, ValueId>& values) {
    return RewriteValues(program_, value, [&](ValueId id) -> absl::optional<ValueId> {
      const auto* load = absl::get_if<LoadValue>(&program_[id].node);
      const auto scalar = load == nullptr ? values.end() : values.find(load->access.tensor);
      if (scalar == values.end()) return absl::nullopt;
      return scalar->second;
    });
  }

  // The loops with only the sum in them.
  Item Copy(const Loop& outermost, const Statement& sum) {
    return InOwnLoops(program_, BandOf(outermost), sum);
  }

  struct Around {
    const Loop* loop;
    std::vector<TensorId> declared;  // in its body
  };

  Program& program_;
  std::vector<Around> around_;  // outermost first
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> SeparateSums(Program& program) { return Separator(program).Run(); }

}  // namespace nestor::loop
