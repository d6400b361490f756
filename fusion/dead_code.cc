// Liveness, backwards. Live are the tensors whose present value some later
// statement or the caller may read: outputs at the end, what a kept statement
// loads before it, nothing across a declaration (tensors are fresh on entry). At
// the end of a loop's body, what its first statements read is live, too:
//
//   for i in [0, N) { y[i] = t   t = x[i] }     # t is read by the next iteration
//
// so a body is walked until its live set holds still, first without removing
// anything. A body is walked again only where it starts with reads of something
// that it changes, so nests do not multiply walks.
#include "fusion/dead_code.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "loop_ir/dependence.h"

namespace nestor::fusion {
namespace {

using loop::Access;
using loop::AccessKind;
using loop::Block;
using loop::Declaration;
using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::TensorId;

// A set of tensors, one bit each: it is copied for every loop.
class LiveSet {
 public:
  explicit LiveSet(size_t tensors) : words_((tensors + 63) / 64) {}
  bool contains(TensorId t) const { return (words_[t.value / 64] >> (t.value % 64) & 1) != 0; }
  void insert(TensorId t) { words_[t.value / 64] |= uint64_t{1} << (t.value % 64); }
  void erase(TensorId t) { words_[t.value / 64] &= ~(uint64_t{1} << (t.value % 64)); }
  void insert(const LiveSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }

 private:
  std::vector<uint64_t> words_;
};

class Eliminator {
 public:
  explicit Eliminator(Program& program) : program_(program) {}

  bool Run() {
    LiveSet live(program_.tensors.size());
    for (TensorId output : program_.outputs) live.insert(output);
    std::vector<Block>& blocks = program_.blocks;
    for (size_t i = blocks.size(); i > 0; --i) {
      Sweep(blocks[i - 1].body, live);
      if (blocks[i - 1].body.empty()) Erase(blocks, i - 1);
    }
    LiveSet used(program_.tensors.size());
    for (const Block& block : blocks) AddUsed(block.body, used);
    for (size_t i = program_.temps.size(); i > 0; --i) {
      if (!used.contains(program_.temps[i - 1])) Erase(program_.temps, i - 1);
    }
    return changed_;
  }

 private:
  // ---- Liveness: from live behind to live before

  void Back(const Scope& scope, LiveSet& live) const {
    for (size_t i = scope.size(); i > 0; --i) Back(scope[i - 1], live);
  }

  void Back(const Item& item, LiveSet& live) const {
    absl::visit([&](const auto& node) { Back(node, item, live); }, item.node);
  }

  void Back(const Loop& loop, const Item&, LiveSet& live) const {
    const Iteration iteration = LiveIn(loop, live);
    live.insert(iteration.start);  // the loop may run no iteration
  }

  void Back(const Declaration& declaration, const Item&, LiveSet& live) const {
    live.erase(declaration.tensor);
  }

  void Back(const Statement& statement, const Item& item, LiveSet& live) const {
    const Access& target = statement.target;
    if (!live.contains(target.tensor)) return;
    if (!statement.op && target.place.empty() && !target.masked) live.erase(target.tensor);
    VisitAccesses(program_, item, [&](TensorId tensor, absl::Span<const IndexId>, AccessKind kind) {
      if (kind == AccessKind::kRead) live.insert(tensor);
    });
  }

  struct Iteration {
    LiveSet start, end;
  };

  // What is live at the start and the end of an iteration, `behind` being live
  // behind the loop.
  Iteration LiveIn(const Loop& loop, const LiveSet& behind) const {
    Iteration iteration{behind, behind};
    Back(loop.body, iteration.start);
    const std::vector<TensorId> changed = TargetsIn(loop.body);
    while (AddLive(changed, iteration)) {
      iteration.start = iteration.end;
      Back(loop.body, iteration.start);
    }
    return iteration;
  }

  static std::vector<TensorId> TargetsIn(const Scope& scope) {
    std::vector<TensorId> targets;
    VisitItems(scope, [&](const Item& item) {
      if (const auto* statement = item.As<Statement>()) targets.push_back(statement->target.tensor);
    });
    return targets;
  }

  // What the next iteration reads of that which this one changes is live at its end.
  static bool AddLive(const std::vector<TensorId>& changed, Iteration& iteration) {
    bool grown = false;
    for (TensorId tensor : changed) {
      if (!iteration.start.contains(tensor) || iteration.end.contains(tensor)) continue;
      iteration.end.insert(tensor);
      grown = true;
    }
    return grown;
  }

  // ---- Removal

  template <class List>
  void Erase(List& list, size_t position) {
    list.erase(list.begin() + static_cast<int64_t>(position));
    changed_ = true;
  }

  // Removes what is dead and takes `live` to the scope's beginning.
  void Sweep(Scope& scope, LiveSet& live) {
    for (size_t i = scope.size(); i > 0; --i) {
      Item& item = scope[i - 1];
      if (Loop* loop = item.As<Loop>()) {
        LiveSet body = LiveIn(*loop, live).end;
        Sweep(loop->body, body);
        live.insert(body);
        if (loop->body.empty()) Erase(scope, i - 1);
      } else if (IsDead(item, live)) {
        Erase(scope, i - 1);
      } else {
        Back(item, live);
      }
    }
    RemoveDeclarations(scope);
  }

  static bool IsDead(const Item& item, const LiveSet& live) {
    const Statement* statement = item.As<Statement>();
    return statement != nullptr && !live.contains(statement->target.tensor);
  }

  void AddUsed(const Scope& scope, LiveSet& used) const {
    VisitItems(scope, [&](const Item& item) {
      VisitAccesses(program_, item, [&](TensorId tensor, absl::Span<const IndexId>, AccessKind) {
        used.insert(tensor);
      });
    });
  }

  void RemoveDeclarations(Scope& scope) {
    const auto declares = [](const Item& item) { return item.As<Declaration>() != nullptr; };
    if (std::none_of(scope.begin(), scope.end(), declares)) return;
    LiveSet used(program_.tensors.size());
    AddUsed(scope, used);
    for (size_t i = scope.size(); i > 0; --i) {
      const auto* declaration = scope[i - 1].As<Declaration>();
      if (declaration != nullptr && !used.contains(declaration->tensor)) Erase(scope, i - 1);
    }
  }

  Program& program_;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> EliminateDeadCode(Program& program) { return Eliminator(program).Run(); }

}  // namespace nestor::fusion
