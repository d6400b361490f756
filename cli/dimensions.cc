// Equations (an axis of a given tensor has the given extent; the equalities that the op asserts)
// are solved one unknown at a time by trying numbers, which also inverts the floor divisions of a
// convolution's output. Symbols that no equation determines are guessed, by several recipes in
// turn, until every extent of the op's graph is at least 1: ascending sizes suit most ops,
// descending ones those whose kernels come last in the signature. Entry point: ChooseSizes.
#include "cli/dimensions.h"

#include <algorithm>
#include <random>

#include "tensor/binding.h"

namespace nestor::cli {
namespace {

constexpr int64_t kFirstSize = 4;
constexpr int kAttempts = 64;

struct Equation {
  IndexId left;
  IndexId right;  // not valid: `constant`
  int64_t constant = 0;
  const Equality* source = nullptr;  // of the op's equalities
};

class Chooser {
 public:
  Chooser(const Op& op, const KnownSizes& known) : op_(op), pool_(op.graph.pool()), known_(known) {
    BindShapes();
    for (const Equality& e : op.equalities) equations_.push_back({e.left, e.right, 0, &e});
    RunInputs given;
    given.dims.insert(known_.symbols.begin(), known_.symbols.end());
    unbound_ = UnboundDimensions(SignatureOf(op), given);
    CollectExtents();
  }

  // Several attempts, each with other numbers for what nothing determines; the one that violates
  // the fewest checks is taken, so that its message is about the checks that matter.
  ChosenSizes Run() {
    ChosenSizes best;
    int least = -1;
    for (int attempt = 0; attempt < kAttempts && least != 0; ++attempt) {
      ChosenSizes sizes = Complete(attempt);
      const int violations = CountViolations(sizes.symbols);
      if (least >= 0 && violations >= least) continue;
      least = violations;
      best = std::move(sizes);
      if (unbound_.empty()) break;
    }
    for (const std::string& name : unbound_) best.chosen.emplace_back(name, best.symbols[name]);
    return best;
  }

 private:
  // A given extent binds a dimension, or is an equation where the op has an expression there.
  void BindShapes() {
    for (const Argument& arg : op_.args) {
      const auto given = known_.shapes.find(arg.name);
      if (given == known_.shapes.end()) continue;
      for (size_t axis = 0; axis < arg.shape.size(); ++axis) {
        const IndexId extent = arg.shape[axis];
        if (pool_[extent].kind == IndexKind::kSymbol) {
          known_.symbols.emplace(pool_.SymbolName(extent), given->second[axis]);
        } else {
          equations_.push_back({extent, IndexId(), given->second[axis], nullptr});
        }
      }
    }
  }

  void CollectExtents() {
    for (int32_t i = 0; i < op_.graph.size(); ++i) {
      for (IndexId extent : op_.graph.shape(NodeId{i})) extents_.push_back(extent);
    }
    std::sort(extents_.begin(), extents_.end());
    extents_.erase(std::unique(extents_.begin(), extents_.end()), extents_.end());
  }

  absl::optional<int64_t> Evaluate(IndexId id, const SymbolValues& symbols) const {
    return EvaluateIndex(
        pool_, id,
        [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
          if (node.kind != IndexKind::kSymbol) return absl::nullopt;
          const auto it = symbols.find(pool_.SymbolNameAt(node.value));
          if (it == symbols.end()) return absl::nullopt;
          return it->second;
        });
  }

  // left - right; nullopt if it is undefined.
  absl::optional<int64_t> Difference(const Equation& equation, const SymbolValues& symbols) const {
    const auto left = Evaluate(equation.left, symbols);
    const auto right = equation.right.value >= 0 ? Evaluate(equation.right, symbols)
                                                 : absl::optional<int64_t>(equation.constant);
    int64_t difference;
    if (!left || !right || __builtin_sub_overflow(*left, *right, &difference)) return absl::nullopt;
    return difference;
  }

  std::vector<std::string> Unknowns(const Equation& equation, const SymbolValues& symbols) const {
    std::vector<std::string> names;
    for (IndexId side : {equation.left, equation.right}) {
      if (side.value < 0) continue;
      VisitIndex(pool_, side, [&](IndexId id, const IndexNode& node) {
        if (node.kind == IndexKind::kSymbol && !symbols.contains(pool_.SymbolName(id))) {
          names.push_back(pool_.SymbolName(id));
        }
      });
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

  // The least of the small values of `name` that satisfy the equation, or, if the equation is
  // linear in it, the one that does.
  absl::optional<int64_t> Solve(const Equation& equation, const std::string& name,
                                SymbolValues symbols) const {
    const auto at = [&](int64_t value) {
      symbols[name] = value;
      return Difference(equation, symbols);
    };
    const auto d1 = at(1), d2 = at(2);
    if (d1 && d2 && *d1 != *d2) {
      const auto slope = CheckedApply(IndexKind::kAdd, *d2, -*d1);
      const int64_t root = slope && *slope != 0 ? 1 - *d1 / *slope : -1;
      if (root >= 0 && at(root) == 0) return root;
    }
    for (int64_t value = 0; value < 1024; ++value) {
      if (at(value) == 0) return value;
    }
    return absl::nullopt;
  }

  // Finds one more symbol from an equation in which only it is unknown.
  bool Propagate(ChosenSizes& sizes, std::vector<bool>& used) const {
    SymbolValues& symbols = sizes.symbols;
    for (size_t i = 0; i < equations_.size(); ++i) {
      if (used[i]) continue;
      const std::vector<std::string> unknowns = Unknowns(equations_[i], symbols);
      if (unknowns.size() > 1) continue;
      used[i] = true;
      if (unknowns.empty()) continue;
      const auto value = Solve(equations_[i], unknowns[0], symbols);
      if (!value) continue;
      symbols[unknowns[0]] = *value;
      if (equations_[i].source != nullptr) sizes.reasons[unknowns[0]] = equations_[i].source;
      return true;
    }
    return false;
  }

  // All but `chosen`.
  ChosenSizes Complete(int attempt) const {
    ChosenSizes sizes;
    SymbolValues& symbols = sizes.symbols;
    symbols = known_.symbols;
    std::vector<bool> used(equations_.size(), false);
    std::minstd_rand random(attempt + 1);
    int64_t guesses = 0;
    for (const std::string& name : unbound_) {
      while (Propagate(sizes, used)) {
      }
      if (symbols.contains(name)) continue;
      const int64_t count = static_cast<int64_t>(unbound_.size());
      const int64_t guess = attempt == 0   ? kFirstSize + guesses
                            : attempt == 1 ? kFirstSize + count - 1 - guesses
                                           : 1 + static_cast<int64_t>(random() % 12);
      symbols[name] = guess;
      sizes.guessed.push_back(name);
      ++guesses;
    }
    return sizes;
  }

  int CountViolations(const SymbolValues& symbols) const {
    int violations = 0;
    for (const Equation& equation : equations_)
      violations += Difference(equation, symbols) != 0 ? 100 : 0;
    for (IndexId extent : extents_) {
      const auto value = Evaluate(extent, symbols);
      violations += !value || *value < 0 ? 10 : *value == 0 ? 1 : 0;
    }
    return violations;
  }

  const Op& op_;
  const IndexPool& pool_;
  KnownSizes known_;
  std::vector<Equation> equations_;
  std::vector<std::string> unbound_;
  std::vector<IndexId> extents_;  // all different ones of the graph
};

}  // namespace

ChosenSizes ChooseSizes(const Op& op, const KnownSizes& known) { return Chooser(op, known).Run(); }

}  // namespace nestor::cli
