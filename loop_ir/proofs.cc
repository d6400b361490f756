// Proofs cost time, and code generation needs their results: so they are made once and written into
// the program as marks, which the verifier proves again (VerifyProofs) and code generation trusts.
//
// One walk visits each access and loop with the facts that hold there. A proof about an access in a
// loop, which may not run at all, need not hold for the same access elsewhere; so where statements
// of several loops share a value, each gets its own.
#include "loop_ir/proofs.h"

#include <bit>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "loop_ir/affine.h"
#include "loop_ir/lanes.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "loop_ir/text.h"

namespace nestor::loop {
namespace {

class ProofWalk {
 public:
  explicit ProofWalk(Program& program) : program_(program), ranges_(program) {}

  // Calls the visitors on every loop and statement, with the ranges at its place; a loop is entered
  // where its visitor says so.
  void Run(absl::FunctionRef<bool(Loop&)> visit_loop,
           absl::FunctionRef<void(Statement&)> visit_statement) {
    Walk(program_.body, visit_loop, visit_statement);
  }

  Ranges& ranges() { return ranges_; }

  // What is not proven, as Access::checked.
  uint64_t Unproven(const Access& access) {
    IndexList key = access.place;
    key.insert(key.end(), access.conditions.begin(), access.conditions.end());
    const auto [known, is_new] =
        checked_.try_emplace({innermost_, access.tensor, std::move(key)}, 0);
    if (is_new) known->second = Prove(access);
    return known->second;
  }

 private:
  // An access is made only where its conditions hold, so they may be assumed. But loads in its
  // subscripts are made whether they hold or not.
  uint64_t Prove(const Access& access) {
    uint64_t checked = LoadsAreInRange(access) ? 0 : Access::kCheckedLoads;
    for (IndexId condition : access.conditions) ranges_.Assume(condition);
    const Shape& shape = program_[access.tensor].shape;
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      if (!ranges_.InRange(access.place[axis], shape[axis])) checked |= Access::CheckedBit(axis);
    }
    for (size_t i = 0; i < access.conditions.size(); ++i) ranges_.Forget();
    return checked;
  }

  bool LoadsAreInRange(const Access& access) {
    std::vector<IndexNode> loads;  // proofs add to the pool
    const auto collect = [&](IndexId, const IndexNode& node) {
      if (node.kind == IndexKind::kLoad) loads.push_back(node);
    };
    for (IndexId e : access.place) VisitIndex(program_.pool, e, collect);
    return absl::c_all_of(loads, [&](const IndexNode& load) {
      const TensorId tensor{static_cast<int32_t>(load.value)};
      return ranges_.InRange(load.args, program_[tensor].shape);
    });
  }

  // Statements see the facts of all loops around. A loop for which `visit_loop` is false is not
  // entered.
  void Walk(Scope& scope, absl::FunctionRef<bool(Loop&)> visit_loop,
            absl::FunctionRef<void(Statement&)> visit_statement) {
    for (Item& item : scope) {
      if (auto* statement = item.As<Statement>()) visit_statement(*statement);
      auto* loop = item.As<Loop>();
      if (loop == nullptr || !visit_loop(*loop)) continue;
      const int32_t around = std::exchange(innermost_, loop->var);
      ranges_.Enter(*loop);
      Walk(loop->body, visit_loop, visit_statement);
      ranges_.Leave();
      innermost_ = around;
    }
  }

  Program& program_;
  Ranges ranges_;
  int32_t innermost_ = -1;  // the index of the loop around
  // By this loop, and the access's tensor, place and conditions.
  absl::flat_hash_map<std::tuple<int32_t, TensorId, IndexList>, uint64_t> checked_;
};

bool EnterAll(Loop&) { return true; }

void VisitLoads(const Program& program, const Statement& statement,
                absl::FunctionRef<void(ValueId, const Access&)> visit) {
  for (ValueId root : {statement.value, statement.position}) {
    if (root.valid()) VisitLoads(program, root, visit);
  }
}

// The loads of the statement whose marks change, by number of the value.
using Marks = absl::flat_hash_map<int32_t, uint64_t>;

// Values are immutable: a load with other marks is a new one.
void SetMarks(Program& program, Statement& statement, const Marks& marks) {
  absl::flat_hash_map<int32_t, ValueId> marked;  // a load that is met twice stays one value
  const auto mark = [&](ValueId id) -> absl::optional<ValueId> {
    const auto found = marks.find(id.value);
    if (found == marks.end()) return absl::nullopt;
    const auto [known, is_new] = marked.try_emplace(id.value);
    if (is_new) {
      Access access = absl::get<LoadValue>(program[id].node).access;
      access.checked = found->second;
      known->second = program.AddLoad(std::move(access));
    }
    return known->second;
  };
  statement.value = RewriteValues(program, statement.value, mark);
  if (statement.position.valid())
    statement.position = RewriteValues(program, statement.position, mark);
}

}  // namespace

// Records for each access which axes are not proven, so that code generation proves nothing itself.
absl::StatusOr<bool> MarkChecked(Program& program) {
  bool changed = !std::exchange(program.proven, true);
  ProofWalk walk(program);
  walk.Run(EnterAll, [&](Statement& statement) {
    const uint64_t of_target = walk.Unproven(statement.target);
    changed |= std::exchange(statement.target.checked, of_target) != of_target;
    Marks marks;
    VisitLoads(program, statement, [&](ValueId id, const Access& access) {
      const uint64_t checked = walk.Unproven(access);
      if (checked != access.checked) marks.emplace(id.value, checked);
    });
    if (marks.empty()) return;
    SetMarks(program, statement, marks);
    changed = true;
  });
  return changed;
}

// Outermost first; loops inside of one that runs in lanes are left as they are.
absl::StatusOr<bool> MarkLanes(Program& program, absl::FunctionRef<int(const Loop&)> lanes_of) {
  bool changed = false;
  ProofWalk walk(program);
  const auto runs_in_lanes = [&](const Loop& loop) {
    return program.proven ? RunsInLanesAsMarked(program, loop)
                          : RunsInLanes(program, walk.ranges(), loop, LaneMasks::kLoads);
  };
  const auto mark = [&](Loop& loop) {
    LoopAttributes& attributes = loop.attributes;
    if (attributes.lanes == 0 && attributes.vector && runs_in_lanes(loop)) {
      attributes.lanes = lanes_of(loop);
      changed = true;
    }
    return attributes.lanes == 0;
  };
  walk.Run(mark, [](Statement&) {});
  return changed;
}

// Proves every mark anew on a copy of the program, as queries add expressions to the pool.
absl::Status VerifyProofs(const Program& program) {
  bool any = program.proven;
  VisitItems(program, [&](const Item& item) {
    any |= item.As<Loop>() != nullptr && item.As<Loop>()->attributes.lanes > 0;
  });
  if (!any) return absl::OkStatus();
  Program copy = program;  // proofs add to its pool
  ProofWalk walk(copy);
  absl::Status status;
  const auto error = [&](const std::string& piece, absl::string_view what) {
    if (status.ok())
      status = absl::InvalidArgumentError(
          absl::StrCat("program ", copy.name, ": in `", piece, "`: ", what));
  };
  const auto look_at_loop = [&](Loop& loop) {
    const LoopAttributes& attributes = loop.attributes;
    if (attributes.lanes == 0) return true;
    const bool good = attributes.vector &&
                      std::has_single_bit(static_cast<unsigned>(attributes.lanes)) &&
                      RunsInLanes(copy, walk.ranges(), loop, LaneMasks::kLoads);
    if (!good) error(ToText(copy, Item{loop}), "the loop cannot run in so many lanes");
    if (attributes.unroll && !MostIterations(copy, loop))
      error(ToText(copy, Item{loop}), "the number of its vectors is not known");
    if (attributes.HasVectors() && !attributes.tail &&
        !LengthIsMultiple(copy, loop, attributes.lanes))
      error(ToText(copy, Item{loop}), "its last vector may not be whole");
    VisitItems(loop.body, [&](const Item& item) {
      const auto* inner = item.As<Loop>();
      if (inner != nullptr && inner->attributes.lanes > 0)
        error(ToText(copy, item), "a loop around it has lanes");
    });
    return true;
  };
  walk.Run(look_at_loop, [&](Statement& statement) {
    if (!copy.proven) return;
    const auto look = [&](const Access& access) {
      if ((walk.Unproven(access) & ~access.checked) != 0)
        error(ToText(copy, access), "neither proven to be in range nor checked");
    };
    look(statement.target);
    VisitLoads(copy, statement, [&](ValueId, const Access& access) { look(access); });
  });
  return status;
}

}  // namespace nestor::loop
