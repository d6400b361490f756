// Strength reduction of a sum: n additions of one value are one product. Such sums are left when a
// mask is known in one part of a split loop: the masked columns of a row of scores all add the same
// value.
//
// A statement is moved after its loop where nothing else in the loop touches the tensor it adds to.
// The loop around the moved statement runs once or never, as a loop without iterations adds
// nothing. The product rounds twice (n and h * n) where the sum rounds n times, within its bound
// (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed. 2002, sec. 4.2).
#include "fusion/equal_terms.h"

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/invariance.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

class TermMultiplier {
 public:
  explicit TermMultiplier(Program& program) : program_(program) {}

  bool Run() {
    Walk(program_.body);
    return changed_;
  }

 private:
  // Inner loops first: their sums may be terms for the loop around.
  void Walk(Scope& scope) {
    Scope result;
    for (Item& item : scope) {
      Scope behind;
      auto* loop = item.As<Loop>();
      if (loop != nullptr) {
        Walk(loop->body);
        behind = TakeEqualTerms(*loop);
      }
      if (behind.empty() || !loop->body.empty()) result.push_back(std::move(item));
      absl::c_move(behind, std::back_inserter(result));
    }
    scope = std::move(result);
  }

  // Takes them out of the loop's body. Returns statements that do the same after the loop.
  Scope TakeEqualTerms(Loop& loop) {
    Scope behind;
    const auto terms = KnownLength(program_, loop);
    if (loop.step != 1 || RunsAtMostOnce(loop) || (terms && *terms < 1)) return behind;
    const Invariance invariance(program_, loop);
    std::vector<size_t> taken;
    for (size_t i = 0; i < loop.body.size(); ++i) {
      const auto* statement = loop.body[i].As<Statement>();
      if (statement == nullptr || !IsEqualTerm(*statement, invariance) ||
          IsTouchedElsewhere(loop.body, i))
        continue;
      behind.push_back(AllAtOnce(loop, *statement));
      taken.push_back(i);
    }
    for (auto i = taken.rbegin(); i != taken.rend(); ++i)
      loop.body.erase(loop.body.begin() + static_cast<int64_t>(*i));
    changed_ |= !taken.empty();
    return behind;
  }

  // The loops that this pass makes do.
  bool RunsAtMostOnce(const Loop& loop) const {
    const IndexPool& pool = program_.pool;
    return pool.ConstValue(loop.begin) == 0 && !pool.ConstValue(loop.end) &&
           IsAtMostOne(pool, loop.end);
  }

  // The same value is accumulated into the same place by each iteration: n times x, or just x for
  // an extremum. Products are left alone, as powers round otherwise.
  bool IsEqualTerm(const Statement& statement, const Invariance& invariance) const {
    if (!statement.op || statement.target.masked || !invariance.Holds(statement.value))
      return false;
    if (!absl::c_all_of(statement.target.place, [&](IndexId e) { return invariance.Holds(e); }))
      return false;
    const DType type = program_[statement.value].type;
    if (*statement.op == ReduceOp::kSum) return type == DType::kF32 || type == DType::kF64;
    return *statement.op == ReduceOp::kMax || *statement.op == ReduceOp::kMin;
  }

  // Whether another item of the scope touches its tensor, or the scope declares it.
  bool IsTouchedElsewhere(const Scope& scope, size_t position) const {
    const TensorId target = scope[position].As<Statement>()->target.tensor;
    for (size_t i = 0; i < scope.size(); ++i) {
      const auto* declaration = scope[i].As<Declaration>();
      if (declaration != nullptr
              ? declaration->tensor == target
              : i != position && FootprintOf(program_, scope[i]).Touches(target)) {
        return true;
      }
    }
    return false;
  }

  // The statement for all iterations of the loop, if there are any.
  Item AllAtOnce(const Loop& loop, Statement statement) {
    IndexPool& pool = program_.pool;
    const IndexId terms = pool.Sub(loop.end, loop.begin);
    const absl::optional<int64_t> known = pool.ConstValue(terms);
    if (*statement.op == ReduceOp::kSum && known != 1) {
      const DType type = program_[statement.value].type;
      const ValueId factor =
          known ? program_.AddConstant(Scalar::Float(type, static_cast<double>(*known)))
                : program_.AddApply(ScalarOp::kCast, {program_.AddIndexValue(terms)}, type);
      statement.value = program_.AddApply(ScalarOp::kMul, {statement.value, factor});
    }
    if (known) return Item{std::move(statement)};
    const IndexId once = pool.Min(pool.Max(terms, pool.Const(0)), pool.Const(1));
    Loop guard{program_.AddVar("z"), pool.Const(0), once, 1, {}, {}};
    guard.body.push_back(Item{std::move(statement)});
    return Item{std::move(guard)};
  }

  Program& program_;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> MultiplyEqualTerms(Program& program) { return TermMultiplier(program).Run(); }

}  // namespace nestor::loop
