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
//
// Most accesses in an innermost loop move by the same number of elements with each of its indices.
// These are located twice in each run of the loop, at its ends, and not at each step (Line).
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
      : program_(program), vars_(program.vars.size()), memos_(program.pool.size()),
        loads_(program.values.size()) {}

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
    BeginRun(loop, *begin, *end);
    const absl::Status status = walk().RunIterations(loop, *begin, *end);
    run_.loop = nullptr;
    return status;
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

  // The same for a load, which is the value `id`, and for the target of the statement that runs.
  absl::optional<int64_t> LocateLoad(ValueId id, const Access& access) {
    return run_.loop == nullptr ? Locate(access) : Locate(access, loads_[id.value]);
  }
  absl::optional<int64_t> LocateTarget(const Statement& statement) {
    return run_.loop == nullptr
               ? Locate(statement.target)
               : Locate(statement.target, targets_[item_ - run_.loop->body.data()]);
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

    // Whether this loop index is in it. REQUIRES: they are not many.
    bool Holds(int32_t var) const {
      const auto end = vars.begin() + num_vars;
      return std::find(vars.begin(), end, var) != end;
    }
  };

  // One run of an innermost loop: its index goes from `first` to `last`.
  struct Run {
    const Loop* loop = nullptr;  // none of enough steps runs
    int64_t number = 0;
    int64_t first = 0, last = 0;
  };

  // The values of an expression at the ends of a run. Between them it is linear in the index of the
  // loop, and so are all expressions in it: if none overflows at the ends, none does between them,
  // and a subscript that is in range at both is in range at each step.
  struct Ends {
    int64_t first, last;
    bool AreEqual() const { return first == last; }
  };

  // Where an access is during a run.
  struct Line {
    enum Kind { kNone, kExcluded, kStraight };
    int64_t run = 0;    // its number
    Kind kind = kNone;  // kNone: it has to be located at each step
    int64_t first = 0;  // the offset at the first index
    int64_t step = 0;   // by which it grows when the index grows by 1
  };

  static constexpr int64_t kLongRun = 4;  // steps; fewer are not worth a line

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

  // ---- Lines

  // Leaves run_ as it is, without a loop, where there are few steps, or where the body has loops or
  // declares tensors, whose shapes could differ from step to step.
  void BeginRun(const Loop& loop, int64_t begin, int64_t end) {
    int64_t length = 0;
    if (begin >= end || __builtin_sub_overflow(end - 1, begin, &length)) return;
    const int64_t steps = length / loop.step;
    if (steps < kLongRun - 1) return;
    for (const Item& item : loop.body) {
      if (item.As<Statement>() == nullptr) return;
    }
    run_ = {&loop, run_.number + 1, begin, begin + steps * loop.step};
    if (targets_.size() < loop.body.size()) targets_.resize(loop.body.size());
  }

  absl::optional<int64_t> Locate(const Access& access, Line& line) {
    if (line.run != run_.number) line = LineOf(access);
    switch (line.kind) {
      case Line::kExcluded: return absl::nullopt;
      case Line::kStraight:
        return line.first + line.step * (vars_[run_.loop->var].value - run_.first);
      case Line::kNone: break;
    }
    return Locate(access);
  }

  // Errors are left to the steps at which they occur: kNone.
  ABSL_ATTRIBUTE_NOINLINE Line LineOf(const Access& access) {
    Line line{run_.number};
    for (IndexId condition : access.conditions) {
      const auto holds = EndsOf(condition);
      if (!holds || !holds->AreEqual()) return line;
      if (holds->first == 0) return {run_.number, Line::kExcluded};
    }
    const auto& view = walk().ViewOf(access.tensor);
    int64_t last = 0;
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      const auto i = EndsOf(access.place[axis]);
      const auto is_inside = [&](int64_t at) { return at >= 0 && at < view.shape[axis]; };
      if (!i || !is_inside(i->first) || !is_inside(i->last)) return line;
      line.first += i->first * view.strides[axis];
      last += i->last * view.strides[axis];
    }
    line.kind = Line::kStraight;
    line.step = (last - line.first) / (run_.last - run_.first);
    return line;
  }

  // Nullopt where the expression is not known to be linear in the index of the loop that runs, or
  // has no value.
  absl::optional<Ends> EndsOf(IndexId id) {
    const auto now = EvalIndex(id);  // this notes the indices in it, too
    const Memo& memo = memos_[id.value];
    if (!now || memo.num_vars == kManyVars) return absl::nullopt;
    if (!memo.Holds(run_.loop->var)) return Ends{*now, *now};
    const IndexNode& node = program_.pool[id];
    if (node.kind == IndexKind::kVar) return Ends{run_.first, run_.last};
    const auto a = EndsOf(node.args[0]);
    const auto b = node.args.size() > 1 ? EndsOf(node.args[1]) : a;
    if (!a || !b || !IsLinear(node.kind, *a, *b)) return absl::nullopt;
    if (node.kind == IndexKind::kNot) return Ends{a->first == 0, a->last == 0};
    const auto first = CheckedApply(node.kind, a->first, b->first);
    const auto last = CheckedApply(node.kind, a->last, b->last);
    if (!first || !last) return absl::nullopt;
    return Ends{*first, *last};
  }

  // What is linear and the same at both ends is the same between them.
  static bool IsLinear(IndexKind kind, const Ends& a, const Ends& b) {
    switch (kind) {
      case IndexKind::kAdd: return true;
      case IndexKind::kMul: return a.AreEqual() || b.AreEqual();
      // One changes at most once, and not at all where it is the same at both ends.
      case IndexKind::kLt: return (a.first < b.first) == (a.last < b.last);
      case IndexKind::kLe: return (a.first <= b.first) == (a.last <= b.last);
      default: return a.AreEqual() && b.AreEqual();
    }
  }

  // ---- Index expressions

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
    if (memo.Holds(var)) return;
    if (memo.num_vars == static_cast<int32_t>(memo.vars.size())) memo.num_vars = kManyVars;
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
  Run run_;
  std::vector<Line> loads_;    // by ValueId
  std::vector<Line> targets_;  // by the statement's number in the loop that runs
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_LOOP_WALK_H_
