// The walk over a program that all its interpreters make, whatever their values are: loops run,
// indices are evaluated, accesses are located. `Walk` derives from it and defines what is done
// at each step in members with these names, which are found at compile time, so that a walk
// costs nothing:
//
//   absl::Status RunStatement(const Statement&);
//   absl::Status Declare(TensorId);          // a scope declares the tensor
//   absl::Status StartIteration();           // of any loop
//   const View& ViewOf(TensorId);            // where elements are: View has `shape` and `strides`
//   absl::optional<int64_t> Gather(const Access&);  // the element that an index loads
//   void OutOfRange(const Access&);          // an unmasked access
//   absl::Status UndefinedBound(const Loop&);
//
// An index expression has no value where it overflows, divides by zero or gathers from outside of a
// tensor. An access with a subscript that has no value is out of range.
#ifndef NESTOR_LOOP_IR_LOOP_WALK_H_
#define NESTOR_LOOP_IR_LOOP_WALK_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "uops/invariant.h"

namespace nestor::loop {

template <class Walk>
class LoopWalk {
 protected:
  // REQUIRES: the program outlives this and does not change.
  explicit LoopWalk(const Program& program)
      : program_(program), vars_(program.vars.size()), memos_(program.pool.size()) {}

  // `value_of`: the value of a symbol, by its id; nullopt where it has none. Called at most once,
  // before anything is evaluated: symbols that are not bound have no value.
  template <class ValueOf>
  void BindSymbols(const ValueOf& value_of) {
    for (size_t i = 0; i < memos_.size(); ++i) {
      const IndexId id{static_cast<int32_t>(i)};
      if (program_.pool[id].kind != IndexKind::kSymbol) continue;
      memos_[i].value = value_of(id);
      memos_[i].time = time_;
    }
  }

  // ---- Scopes

  // The item that runs is noted, for messages.
  absl::Status RunItem(const Item& item) {
    item_ = &item;
    if (const auto* loop = item.As<Loop>()) return RunLoop(*loop);
    if (const auto* statement = item.As<Statement>()) return walk().RunStatement(*statement);
    return walk().Declare(item.As<Declaration>()->tensor);
  }

  // Bounds are evaluated once, on entry.
  absl::Status RunLoop(const Loop& loop) {
    const auto begin = EvalIndex(loop.begin), end = EvalIndex(loop.end);
    if (!begin || !end) return walk().UndefinedBound(loop);
    return walk().RunIterations(loop, *begin, *end);
  }

  // In order; the index after the last iteration need not be an int64_t.
  absl::Status RunIterations(const Loop& loop, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      NESTOR_RETURN_IF_ERROR(RunIteration(loop, i));
      if (__builtin_add_overflow(i, loop.step, &i)) break;
    }
    return absl::OkStatus();
  }

  absl::Status RunIteration(const Loop& loop, int64_t i) {
    NESTOR_RETURN_IF_ERROR(walk().StartIteration());
    vars_[loop.var] = {i, ++time_};
    for (const Item& item : loop.body) NESTOR_RETURN_IF_ERROR(RunItem(item));
    return absl::OkStatus();
  }

  // ---- Accesses

  // The offset in elements; nullopt where a condition excludes the access, and where it is out
  // of range.
  absl::optional<int64_t> Locate(const Access& access) {
    for (IndexId condition : access.conditions) {
      const auto holds = EvalIndex(condition);
      if (!holds || *holds == 0) return absl::nullopt;
    }
    const auto& view = walk().ViewOf(access.tensor);
    int64_t offset = 0;
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      const auto i = EvalIndex(access.place[axis]);
      if (!i || *i < 0 || *i >= view.shape[axis]) {
        if (!access.masked) walk().OutOfRange(access);
        return absl::nullopt;
      }
      offset += *i * view.strides[axis];
    }
    return offset;
  }

  // For errors: the tensor and its subscripts as they are now.
  std::string AccessText(const Access& access) {
    const auto text = [&](std::string* out, IndexId e) {
      const auto value = EvalIndex(e);
      absl::StrAppend(out, value ? absl::StrCat(*value) : "undefined");
    };
    return absl::StrCat(program_[access.tensor].name, "[", absl::StrJoin(access.place, ", ", text),
                        "] of [", absl::StrJoin(walk().ViewOf(access.tensor).shape, ", "), "]");
  }

  // ---- Index expressions

  // The value at this iteration, with checked arithmetic; a condition is 0 or 1.
  absl::optional<int64_t> EvalIndex(IndexId id) {
    Memo& memo = memos_[id.value];
    if (!IsCurrent(memo)) Update(id, memo);
    return memo.value;
  }

  const Program& program_;
  const Item* item_ = nullptr;  // that runs

 private:
  struct Var {
    int64_t value = 0, time = 0;  // since when it has this value
  };

  // What an expression was when it was last evaluated. Most are evaluated many times between two
  // changes of the loop indices in them: by several accesses, and in loops further in.
  struct Memo {
    absl::optional<int64_t> value;
    int64_t time = kNever;        // of the evaluation
    int32_t num_vars = 0;         // kManyVars: it is evaluated anew each time
    std::array<int32_t, 5> vars;  // the loop indices in it, which are few
  };

  static constexpr int64_t kNever = -1;
  static constexpr int32_t kManyVars = -1;

  Walk& walk() { return static_cast<Walk&>(*this); }

  bool IsCurrent(const Memo& memo) const {
    if (memo.time == kNever || memo.num_vars == kManyVars) return false;
    for (int32_t i = 0; i < memo.num_vars; ++i) {
      if (vars_[memo.vars[i]].time > memo.time) return false;
    }
    return true;
  }

  // This is not inlined: it is rare beside values that are current.
  ABSL_ATTRIBUTE_NOINLINE void Update(IndexId id, Memo& memo) {
    const IndexNode& node = program_.pool[id];
    memo.value = EvalNode(node);
    if (memo.time == kNever) NoteVars(node, memo);
    memo.time = time_;
  }

  absl::optional<int64_t> EvalNode(const IndexNode& node) {
    switch (node.kind) {
      case IndexKind::kConst: return node.value;
      case IndexKind::kVar: return vars_[node.value].value;
      case IndexKind::kSymbol: return absl::nullopt;  // it is not bound
      case IndexKind::kLoad: return EvalLoadIn(node);
      default: break;
    }
    const auto a = EvalIndex(node.args[0]);
    if (node.kind == IndexKind::kNot)
      return a ? absl::make_optional<int64_t>(*a == 0) : absl::nullopt;
    const auto b = EvalIndex(node.args[1]);
    return a && b ? CheckedApply(node.kind, *a, *b) : absl::nullopt;
  }

  // REQUIRES: the node's arguments were evaluated.
  void NoteVars(const IndexNode& node, Memo& memo) const {
    if (node.kind == IndexKind::kLoad) memo.num_vars = kManyVars;  // elements change, too
    if (node.kind == IndexKind::kVar) NoteVar(static_cast<int32_t>(node.value), memo);
    for (const IndexId arg : node.args) {
      const Memo& noted = memos_[arg.value];
      if (noted.num_vars == kManyVars) memo.num_vars = kManyVars;
      for (int32_t i = 0; i < noted.num_vars; ++i) NoteVar(noted.vars[i], memo);
    }
  }

  static void NoteVar(int32_t var, Memo& memo) {
    if (memo.num_vars == kManyVars) return;
    const auto end = memo.vars.begin() + memo.num_vars;
    if (std::find(memo.vars.begin(), end, var) != end) return;
    if (end == memo.vars.end()) memo.num_vars = kManyVars;
    else memo.vars[memo.num_vars++] = var;
  }

  // This is not inlined: it is rare, and its access would enlarge the frame of every evaluation.
  ABSL_ATTRIBUTE_NOINLINE absl::optional<int64_t> EvalLoadIn(const IndexNode& node) {
    return walk().Gather(
        {{static_cast<int32_t>(node.value)}, {node.args.begin(), node.args.end()}, true});
  }

  std::vector<Var> vars_;
  std::vector<Memo> memos_;  // by IndexId
  int64_t time_ = 0;         // iterations begun
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_LOOP_WALK_H_
