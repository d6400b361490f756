// Scalar replacement (Callahan, Carr and Kennedy, "Improving register allocation for subscripted
// variables", 1990) for the one case that fusion leaves: an element that a store begins with the
// identity of a reduction and that only loops accumulating into it touch until the last of them.
// The scope is read in order: from the store on, each item that touches the tensor must be such a
// loop; the first one that is not ends the sum, and the store of the finished scalar goes before
// it. If other elements of the tensor are accumulated in the same loops, the subscript would differ
// from that of the store, and nothing is done.
#include "jit/schedule/promote_sums.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// A sum that begins at item number `begin` of a scope, and is complete after item number `last`.
struct Sum {
  size_t begin, last;
  ReduceOp op;
};

class Promoter {
 public:
  explicit Promoter(Program& program) : program_(program) {}

  bool Run() {
    VisitScopes(program_.body, [&](Scope& scope) { Promote(scope); });
    return changed_;
  }

 private:
  void Promote(Scope& scope) {
    for (size_t i = 0; i < scope.size(); ++i) {
      const auto* begin = scope[i].As<Statement>();
      const absl::optional<Sum> sum = begin == nullptr ? absl::nullopt : SumFrom(scope, i, *begin);
      if (sum) Replace(scope, *sum, Statement(*begin));
    }
  }

  // The sum that the store begins; nullopt: none that a scalar can hold.
  absl::optional<Sum> SumFrom(const Scope& scope, size_t number, const Statement& begin) const {
    const TensorInfo& info = program_[begin.target.tensor];
    const auto* constant = absl::get_if<ConstantValue>(&program_[begin.value].node);
    const bool is_kept =
        info.storage == Storage::kOutput || (info.storage == Storage::kTemp && !info.is_register);
    if (begin.op || begin.target.masked || constant == nullptr || !is_kept || info.shape.empty() ||
        !HoldsSums(info.type)) {
      return absl::nullopt;
    }
    if (absl::c_any_of(begin.target.place, [&](IndexId e) { return program_.pool.HasLoad(e); }))
      return absl::nullopt;
    absl::optional<Sum> sum;
    for (size_t i = number + 1; i < scope.size(); ++i) {
      if (!FootprintOf(program_, scope[i]).Touches(begin.target.tensor)) continue;
      const absl::optional<ReduceOp> op = OpOf(scope[i], begin.target);
      if (!op || (sum && *op != sum->op) || !(constant->value == Identity(*op, info.type))) break;
      sum = Sum{number, i, *op};
    }
    return sum;
  }

  // Types for which an accumulator is no wider.
  static bool HoldsSums(DType type) {
    return type == DType::kF32 || type == DType::kF64 || type == DType::kI32 || type == DType::kI64;
  }

  // The operation of the accumulations into the element, if the item is a loop that does nothing
  // else with the tensor; else nullopt.
  absl::optional<ReduceOp> OpOf(const Item& item, const Access& element) const {
    if (item.As<Loop>() == nullptr || FootprintOf(program_, item).reads.contains(element.tensor))
      return absl::nullopt;
    absl::optional<ReduceOp> op;
    bool good = true;
    VisitItems(item, [&](const Item& inner) {
      const auto* statement = inner.As<Statement>();
      if (statement == nullptr || statement->target.tensor != element.tensor) return;
      good = good && statement->op && !IsArg(*statement->op) && !statement->target.masked &&
             statement->target.place == element.place && (!op || *op == *statement->op);
      if (good) op = statement->op;
    });
    return good ? op : absl::nullopt;
  }

  // g[i] = 0  for .. { g[i] += .. }   ->   acc a  for .. { a += .. }  g[i] = a
  void Replace(Scope& scope, const Sum& sum, const Statement& begin) {
    TensorInfo info;
    info.name = "acc";
    info.type = program_[begin.target.tensor].type;
    info.storage = Storage::kAccumulator;
    info.op = sum.op;
    const TensorId accumulator = program_.AddTensor(std::move(info));
    scope[sum.begin] = DeclarationOf(accumulator);
    for (size_t i = sum.begin + 1; i <= sum.last; ++i) {
      VisitStatements(scope[i], [&](Statement& statement, const LoopsAround&) {
        if (statement.target.tensor == begin.target.tensor) statement.target = {accumulator};
      });
    }
    Scope store =
        Assignment(begin.target.tensor, begin.target.place, program_.AddLoad({accumulator}));
    scope.insert(scope.begin() + static_cast<int64_t>(sum.last) + 1, std::move(store[0]));
    changed_ = true;
  }

  Program& program_;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> PromoteSums(Program& program) { return Promoter(program).Run(); }

}  // namespace nestor::loop
