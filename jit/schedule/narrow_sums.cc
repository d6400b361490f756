// The notation counts in i64, since a count has no bound; over a window of known size it has one.
// So has the gradient of a maximum, which is shared by all places at which the maximum stands:
//
//   acc n: i64 = sum  for k in [0, 9) { n += i64(x[i + k] == y[i]) }  g[i] = f32(n)
//   acc n: i32 = sum  for k in [0, 9) { n += i32(x[i + k] == y[i]) }  g[i] = f32(n)
//
// The range of a sum, whole or not, is that of an addend (integer_range.h) times 0 to the number of
// its steps; those of the loops that add to one accumulator are added up.
#include "jit/schedule/narrow_sums.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "fusion/gathered.h"
#include "fusion/scopes.h"
#include "jit/schedule/integer_range.h"
#include "loop_ir/dependence.h"
#include "loop_ir/interval.h"
#include "loop_ir/lanes.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

class Narrower {
 public:
  explicit Narrower(Program& program) : program_(program), ranges_(program) {}

  bool Run() {
    VisitScopes(program_.body, [&](Scope& scope) {
      for (TensorId tensor : DeclaredIn(scope)) {
        if (IsWideSum(tensor)) ranges_of_[tensor] = {0, 0};
      }
    });
    if (ranges_of_.empty()) return false;
    AddRanges(program_.body);
    RemoveGathered();
    RemoveMasked();
    if (ranges_of_.empty()) return false;
    for (const auto& [tensor, range] : ranges_of_) program_[tensor].type = DType::kI32;
    VisitStatements(program_, [&](Statement& statement) { Rewrite(statement); });
    return true;
  }

 private:
  bool IsWideSum(TensorId tensor) const {
    const TensorInfo& info = program_[tensor];
    return info.storage == Storage::kAccumulator && info.type == DType::kI64 &&
           info.shape.empty() && info.op == ReduceOp::kSum;
  }

  // To the range of each accumulator, what each statement adds to it.
  void AddRanges(const Scope& scope) {
    for (const Item& item : scope) {
      if (const auto* loop = item.As<Loop>()) {
        ranges_.Enter(*loop);
        around_.push_back(loop);
        AddRanges(loop->body);
        around_.pop_back();
        ranges_.Leave();
      }
      const auto* declaration = item.As<Declaration>();
      if (declaration != nullptr) depth_[declaration->tensor] = around_.size();
      const auto* statement = item.As<Statement>();
      if (statement != nullptr && ranges_of_.contains(statement->target.tensor))
        AddRange(*statement);
    }
  }

  void AddRange(const Statement& statement) {
    const auto sum = ranges_of_.find(statement.target.tensor);
    const auto added = RangeOfSteps(statement);
    const auto both = added ? AtCorners(IndexKind::kAdd, sum->second, *added) : absl::nullopt;
    if (both && both->IsWithin(RangeOf(DType::kI32))) sum->second = *both;
    else ranges_of_.erase(sum);
  }

  // The range of what a statement adds in some or all of its steps; nullopt: unknown.
  absl::optional<Interval> RangeOfSteps(const Statement& statement) {
    const absl::optional<ValueId> addend = Operand(statement.value);
    if (statement.target.masked || !addend) return absl::nullopt;
    absl::optional<Interval> range = Interval{0, 1};
    if (program_[*addend].type != DType::kBool) range = RangeOf(program_, ranges_, *addend);
    for (size_t i = depth_.at(statement.target.tensor); range && i < around_.size(); ++i) {
      const auto steps = MostIterations(program_, *around_[i]);
      range = steps ? AtCorners(IndexKind::kMul, *range, {0, *steps}) : absl::nullopt;
    }
    return range;
  }

  // What is cast, if the value is a cast.
  absl::optional<ValueId> Operand(ValueId id) const {
    const auto* apply = absl::get_if<ApplyValue>(&program_[id].node);
    if (apply == nullptr || apply->op != ScalarOp::kCast) return absl::nullopt;
    return apply->args[0];
  }

  // A place holds i64 only.
  void RemoveGathered() {
    Gathered gathered(program_.pool);
    absl::erase_if(ranges_of_, [&](const auto& entry) { return gathered.Contains(entry.first); });
  }

  // The fill of a masked read is of the type that is read.
  void RemoveMasked() {
    VisitStatements(program_, [&](Statement& statement) {
      for (ValueId root : {statement.value, statement.position}) {
        if (!root.valid()) continue;
        VisitLoads(program_, root, [&](ValueId, const Access& access) {
          if (access.masked) ranges_of_.erase(access.tensor);
        });
      }
    });
  }

  bool IsNarrowed(ValueId id) const {
    const auto* load = absl::get_if<LoadValue>(&program_[id].node);
    return load != nullptr && ranges_of_.contains(load->access.tensor);
  }

  void Rewrite(Statement& statement) {
    statement.value = Rewritten(statement.value);
    if (statement.position.valid()) statement.position = Rewritten(statement.position);
    if (ranges_of_.contains(statement.target.tensor))
      statement.value = Cast(*Operand(statement.value), DType::kI32);
  }

  // Operands come before what is applied to them.
  ValueId Rewritten(ValueId root) {
    return RewriteValues(program_, root, [&](ValueId id) -> absl::optional<ValueId> {
      if (IsNarrowed(id)) {
        const Access sum = absl::get<LoadValue>(program_[id].node).access;
        return Cast(program_.AddLoad(sum), DType::kI64);
      }
      const absl::optional<ValueId> wide = Operand(id), sum = wide ? Operand(*wide) : wide;
      if (!sum || !IsNarrowed(*sum)) return absl::nullopt;
      return Cast(*sum, program_[id].type);
    });
  }

  ValueId Cast(ValueId operand, DType type) {
    return program_[operand].type == type ? operand
                                          : program_.AddApply(ScalarOp::kCast, {operand}, type);
  }

  Program& program_;
  Ranges ranges_;
  std::vector<const Loop*> around_;
  absl::flat_hash_map<TensorId, size_t> depth_;        // of loops around a declaration
  absl::flat_hash_map<TensorId, Interval> ranges_of_;  // of the sums that become narrow
};

}  // namespace

absl::StatusOr<bool> NarrowSums(Program& program) { return Narrower(program).Run(); }

}  // namespace nestor::loop
