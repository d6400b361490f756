// Live-variable analysis (Aho, Lam, Sethi and Ullman, "Compilers", 2nd ed. 2006, sec. 9.2.5),
// backwards over structured loops instead of a graph of blocks, with whole tensors for variables. A
// tensor is live if a later statement or the caller may read its present value: outputs are live at
// the end, the tensors that a kept statement loads are live before it, none is live across its
// declaration (tensors are fresh on entry). At the end of a loop's body, the tensors that its first
// statements read are live, too:
//
//   for i in [0, N) { y[i] = t   t = x[i] }     # t is read by the next iteration
//
// so a body is walked until its live set no longer changes, at first without removing anything. A
// body is walked again only where it starts with reads of something that it changes, so nests do
// not multiply walks. All walks share one set, which is restored afterwards: a copy for each loop
// would take time quadratic in the program.
#include "fusion/dead_code.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "loop_ir/dependence.h"

namespace nestor::loop {
namespace {

// A set of tensors that can return to an earlier state. A state is a number of changes.
class TensorSet {
 public:
  explicit TensorSet(size_t tensors) : holds_(tensors) {}
  bool contains(TensorId t) const { return holds_[t.value]; }
  void insert(TensorId t) {
    if (!contains(t)) Flip(t);
  }
  void insert(const std::vector<TensorId>& tensors) {
    for (TensorId t : tensors) insert(t);
  }
  void erase(TensorId t) {
    if (contains(t)) Flip(t);
  }

  size_t state() const { return flipped_.size(); }
  // The tensors that it holds now and may not have held at the state.
  std::vector<TensorId> NewSince(size_t state) const {
    std::vector<TensorId> held;
    for (size_t i = state; i < flipped_.size(); ++i) {
      if (contains(flipped_[i])) held.push_back(flipped_[i]);
    }
    return held;
  }
  void Restore(size_t state) {
    for (; flipped_.size() > state; flipped_.pop_back()) holds_[flipped_.back().value].flip();
  }

 private:
  void Flip(TensorId t) {
    holds_[t.value].flip();
    flipped_.push_back(t);
  }

  std::vector<bool> holds_;        // by tensor
  std::vector<TensorId> flipped_;  // in order
};

class Eliminator {
 public:
  explicit Eliminator(Program& program) : program_(program), used_(program.tensors.size()) {}

  bool Run() {
    TensorSet live(program_.tensors.size());
    live.insert(program_.outputs);
    Sweep(program_.body, live);
    return changed_;
  }

 private:
  // ---- Liveness: from live after to live before

  void Back(const Scope& scope, TensorSet& live) const {
    for (size_t i = scope.size(); i > 0; --i) Back(scope[i - 1], live);
  }

  void Back(const Item& item, TensorSet& live) const {
    absl::visit([&](const auto& node) { Back(node, item, live); }, item.node);
  }

  void Back(const Loop& loop, const Item&, TensorSet& live) const {
    live.insert(BackToEnd(loop, live));  // the loop may run no iteration
  }

  void Back(const Declaration& declaration, const Item&, TensorSet& live) const {
    live.erase(declaration.tensor);
  }

  // The transfer function of liveness, from after the statement to before it. Only a scalar that is
  // assigned is overwritten as a whole, and so dead before.
  void Back(const Statement& statement, const Item& item, TensorSet& live) const {
    const Access& target = statement.target;
    if (!live.contains(target.tensor)) return;
    if (!statement.op && target.place.empty() && !target.masked) live.erase(target.tensor);
    VisitAccesses(program_, item, [&](TensorId tensor, absl::Span<const IndexId>, AccessKind kind) {
      if (kind == AccessKind::kRead) live.insert(tensor);
    });
  }

  // Turns the set live after the loop into the one live at the end of an iteration. Returns the
  // tensors that are live at the start of an iteration and may not be at its end.
  std::vector<TensorId> BackToEnd(const Loop& loop, TensorSet& live) const {
    const std::vector<TensorId> changed = TargetsIn(loop.body);
    for (;;) {
      const size_t end = live.state();
      Back(loop.body, live);
      std::vector<TensorId> at_start = live.NewSince(end);
      // The tensors that this iteration changes and the next one reads.
      std::vector<TensorId> grown = changed;
      grown.erase(
          std::remove_if(grown.begin(), grown.end(), [&](TensorId t) { return !live.contains(t); }),
          grown.end());
      live.Restore(end);
      live.insert(grown);
      if (live.state() == end) return at_start;
    }
  }

  static std::vector<TensorId> TargetsIn(const Scope& scope) {
    std::vector<TensorId> targets;
    VisitItems(scope, [&](const Item& item) {
      if (const auto* statement = item.As<Statement>()) targets.push_back(statement->target.tensor);
    });
    return targets;
  }

  // ---- Removal

  void Erase(Scope& scope, size_t position) {
    scope.erase(scope.begin() + static_cast<int64_t>(position));
    changed_ = true;
  }

  // Removes dead items and moves `live` to the scope's beginning.
  void Sweep(Scope& scope, TensorSet& live) {
    for (size_t i = scope.size(); i > 0; --i) {
      Item& item = scope[i - 1];
      if (Loop* loop = item.As<Loop>()) {
        const size_t behind = live.state();
        BackToEnd(*loop, live);
        Sweep(loop->body, live);
        const std::vector<TensorId> at_start = live.NewSince(behind);
        live.Restore(behind);
        live.insert(at_start);
        if (loop->body.empty()) Erase(scope, i - 1);
      } else if (IsDead(item, live)) {
        Erase(scope, i - 1);
      } else {
        Back(item, live);
      }
    }
    RemoveDeclarations(scope);
  }

  static bool IsDead(const Item& item, const TensorSet& live) {
    const Statement* statement = item.As<Statement>();
    return statement != nullptr && !live.contains(statement->target.tensor);
  }

  void AddUsed(const Scope& scope) {
    VisitItems(scope, [&](const Item& item) {
      VisitAccesses(program_, item, [&](TensorId tensor, absl::Span<const IndexId>, AccessKind) {
        used_.insert(tensor);
      });
    });
  }

  // Those of tensors that nothing in the scope touches; from the end, so that numbers of items stay
  // valid.
  void RemoveDeclarations(Scope& scope) {
    const auto declares = [](const Item& item) { return item.As<Declaration>() != nullptr; };
    if (std::none_of(scope.begin(), scope.end(), declares)) return;
    AddUsed(scope);
    for (size_t i = scope.size(); i > 0; --i) {
      const auto* declaration = scope[i - 1].As<Declaration>();
      if (declaration != nullptr && !used_.contains(declaration->tensor)) Erase(scope, i - 1);
    }
    used_.Restore(0);
  }

  Program& program_;
  TensorSet used_;  // empty but while something is looked for
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> EliminateDeadCode(Program& program) { return Eliminator(program).Run(); }

}  // namespace nestor::loop
