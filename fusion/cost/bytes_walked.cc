// The estimate goes through the program from the inside out. For each statement, scope and loop,
// and each tensor it touches, it knows the box of elements, the loads and stores of one execution
// with a cold cache, and how the box is swept when it is first and last touched. Two executions in
// a row (siblings of a scope, a body and itself in the next iteration) share the elements in both
// boxes, if the cache still has them:
//
//   for i { t[i] = f(x[i]) }  for i { y[i] = g(t[i]) }
//
// Between writing t[i] and reading it there are the rest of the first sweep, what is executed
// between the two, and the second sweep up to that point: (1 - p)*A + B + p*C bytes of different
// elements for the element at the share p of the sweeps. As this is linear in p, the share of hits
// follows in closed form. Sweeps in different order (a transpose) have two independent shares,
// taken over a grid.
//
// So it needs no polyhedra and no counting, and its time does not depend on
// sizes; in exchange boxes are approximate. Compare V. Sarkar, "Automatic selection
// of high-order transformations in the IBM XL FORTRAN compilers" (1997), for
// distinct elements per loop, and K. Beyls and E. D'Hollander, "Reuse distance as a
// metric for cache behavior" (2001). Entry point: EstimateBytesWalked.
#include "fusion/cost/bytes_walked.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "fusion/cost/bytes_walked_footprint.h"
#include "fusion/cost/bytes_walked_reuse.h"
#include "loop_ir/dependence.h"

namespace nestor::loop {
namespace {

// ---- Building nodes

void AddUp(WalkNode& node) {
  for (const Use& use : node.uses) node.bytes += use.bytes;
}

// Puts executions of nodes one after the other: determines what each of them finds in the cache.
class Sequencer {
 public:
  Sequencer(size_t tensors, ReuseDistance& reuse) : reuse_(reuse), places_(tensors, -1) {}

  // The sum of `node`'s children.
  void Combine(WalkNode& node, const Footprints& footprints) {
    for (size_t i = 0; i < node.children.size(); ++i) {
      FindHits(node, i);
      for (size_t u = 0; u < node.children[i]->uses.size(); ++u) {
        Append(node, i, node.children[i]->uses[u], found_[u], footprints);
      }
    }
    for (Use& use : node.uses) {
      SetShares(node, use);
      places_[use.tensor.value] = -1;
    }
    AddUp(node);
  }

 private:
  // The bytes of a child's use that earlier children have touched.
  struct Found {
    double left = 0;  // not looked at yet
    double hits = 0, misses = 0;
  };

  // The sum so far; while children are added up, its shares are bytes.
  Use* Sum(WalkNode& node, TensorId tensor) {
    const int place = places_[tensor.value];
    return place < 0 ? nullptr : &node.uses[place];
  }

  // Turns bytes into shares. A box that is empty here may not be empty in other iterations of the
  // loops around.
  static void SetShares(const WalkNode& node, Use& use) {
    if (use.bytes > 0) {
      use.load_share /= use.bytes;
      use.dirty_share /= use.bytes;
      return;
    }
    use.load_share = use.dirty_share = 0;
    for (const auto& child : node.children) {
      const Use* part = child->Find(use.tensor);
      if (part == nullptr) continue;
      use.load_share = std::max(use.load_share, part->load_share);
      use.dirty_share = std::max(use.dirty_share, part->dirty_share);
    }
  }

  // Walks from the last sibling backwards, as far as the cache reaches.
  void FindHits(WalkNode& node, size_t child) {
    const WalkNode& now = *node.children[child];
    found_.assign(now.uses.size(), Found());
    double left = 0;
    for (size_t u = 0; u < now.uses.size(); ++u) {
      const Use* sum = Sum(node, now.uses[u].tensor);
      if (sum == nullptr) continue;
      found_[u].left = std::min(now.uses[u].bytes, CommonBytes(*sum, now.uses[u]));
      left += found_[u].left;
    }
    reuse_.ClearBetween();
    for (size_t i = child; i > 0 && left > 0 && !reuse_.ExceedsCache(); --i) {
      const WalkNode& before = *node.children[i - 1];
      left -= FindHitsIn(before, now);
      reuse_.AddBetween(before);
    }
    for (Found& found : found_) found.misses += found.left;
  }

  // Each use looks for its bytes in the latest walk that touched them; bytes that are found there
  // are not looked for in earlier ones.
  double FindHitsIn(const WalkNode& before, const WalkNode& now) {
    double all = 0;
    for (size_t u = 0; u < now.uses.size(); ++u) {
      const Use& use = now.uses[u];
      const Use* earlier = found_[u].left > 0 ? before.Find(use.tensor) : nullptr;
      if (earlier == nullptr) continue;
      const double common = std::min(found_[u].left, CommonBytes(*earlier, use));
      const double hits = common * reuse_.HitShare(earlier->last, use.first);
      found_[u].hits += hits;
      found_[u].misses += common - hits;
      found_[u].left -= common;
      all += common;
    }
    return all;
  }

  static double CommonBytes(const Use& a, const Use& b) {
    return b.box.elements > 0 ? CommonElements(a.box, b.box) * (b.bytes / b.box.elements) : 0;
  }

  // Adds the use of child number `child` to the sum: its loads without those that hit, its stores
  // and those of changed elements that have left the cache, and the box of both.
  void Append(WalkNode& node, size_t child, const Use& use, const Found& found,
              const Footprints& footprints) {
    Use* sum = Sum(node, use.tensor);
    if (sum == nullptr) {
      places_[use.tensor.value] = static_cast<int>(node.uses.size());
      node.uses.push_back({use.tensor});
      sum = &node.uses.back();
      sum->first = use.first;
      for (size_t i = 0; i < child; ++i) sum->first.beside.push_back(node.children[i].get());
    }
    sum->loads += use.loads - use.load_share * found.hits;
    sum->load_share += use.load_share * std::max(0.0, use.bytes - found.hits - found.misses);
    // Elements that were changed before and have left the cache are written; those that have not
    // left it are still dirty.
    const double left = std::min(sum->dirty_share, found.misses);
    sum->stores += use.stores + left;
    const double again =
        std::min(sum->dirty_share - left, use.dirty_share * CommonBytes(*sum, use));
    sum->dirty_share += use.dirty_share * use.bytes - left - again;
    sum->box = BoundingBox(sum->box, use.box);
    sum->bytes = sum->box.elements * footprints.ElementBytes(use.tensor);
    sum->last = use.last;
    for (size_t i = child + 1; i < node.children.size(); ++i)
      sum->last.beside.push_back(node.children[i].get());
  }

  ReuseDistance& reuse_;
  std::vector<int> places_;   // by tensor: its position in the uses of the sum
  std::vector<Found> found_;  // by use of the child
};

class Estimator {
 public:
  Estimator(const SizedProgram& sized, double cache)
      : program_(sized.program()), footprints_(sized), reuse_(program_.tensors.size(), cache),
        sequencer_(program_.tensors.size(), reuse_) {}

  // Bytes that are still dirty in the end are written back only if they are an output's; those that
  // were never written before need not be fetched.
  BytesWalked Run() {
    WalkNode whole;
    AddItems(program_.body, whole);
    sequencer_.Combine(whole, footprints_);
    BytesWalked walked;
    for (const Use& use : whole.uses) {
      const Storage storage = program_[use.tensor].storage;
      walked.loads += use.loads;
      walked.stores += use.stores;
      if (storage != Storage::kInput) walked.loads -= use.load_share * use.bytes;
      if (storage == Storage::kOutput) walked.stores += use.dirty_share * use.bytes;
    }
    return walked;
  }

 private:
  void AddItems(const Scope& scope, WalkNode& node) {
    for (const Item& item : scope) {
      std::unique_ptr<WalkNode> child;
      if (const auto* loop = item.As<Loop>()) child = OfLoop(*loop);
      else if (const auto* statement = item.As<Statement>()) child = OfStatement(item, *statement);
      if (child != nullptr && !child->uses.empty()) node.children.push_back(std::move(child));
    }
  }

  // A masked load outside its tensor touches nothing here, but may elsewhere.
  std::unique_ptr<WalkNode> OfStatement(const Item& item, const Statement& statement) {
    auto node = std::make_unique<WalkNode>();
    VisitAccesses(
        program_, item, [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
          if (!footprints_.IsWalked(tensor)) return;
          const Use* found = node->Find(tensor);
          if (found == nullptr) {
            node->uses.push_back({tensor});
            node->uses.back().load_share = kind == AccessKind::kWrite ? 0 : 1;
          }
          Use& use =
              node->uses[found == nullptr ? node->uses.size() - 1 : found - node->uses.data()];
          use.box = BoundingBox(use.box, footprints_.Of(tensor, place));
          if (tensor == statement.target.tensor && kind != AccessKind::kRead) use.dirty_share = 1;
        });
    for (Use& use : node->uses) {
      use.bytes = use.box.elements * footprints_.ElementBytes(use.tensor);
      use.loads = use.load_share * use.bytes;
      use.first.walk = use.last.walk = node.get();
    }
    AddUp(*node);
    return node;
  }

  // Tensors that a scope declares are new in each entry: outside of it nobody walks them.
  std::unique_ptr<WalkNode> OfScope(const Scope& scope) {
    auto node = std::make_unique<WalkNode>();
    AddItems(scope, *node);
    sequencer_.Combine(*node, footprints_);
    for (const Item& item : scope) {
      if (const auto* declaration = item.As<Declaration>()) MakeLocal(declaration->tensor, *node);
    }
    return node;
  }

  // The tensor is fresh on entry, and forgotten at the end.
  static void MakeLocal(TensorId tensor, WalkNode& node) {
    for (Use& use : node.uses) {
      if (use.tensor != tensor) continue;
      use.loads -= use.load_share * use.bytes;
      use.load_share = use.dirty_share = 0;
    }
  }

  // One iteration, at the middle of the run, stands for all; Repeat says what they reuse from each
  // other.
  std::unique_ptr<WalkNode> OfLoop(const Loop& loop) {
    const double trips = footprints_.Enter(loop);
    if (trips == 0) return nullptr;
    std::unique_ptr<WalkNode> body = OfScope(loop.body);
    footprints_.Leave(loop);
    const Boxes boxes = footprints_.Of(loop);
    auto node = std::make_unique<WalkNode>();
    for (const Use& once : body->uses) node->uses.push_back(Widened(once, boxes, *node));
    AddUp(*node);
    for (size_t u = 0; u < node->uses.size(); ++u)
      Repeat(body->uses[u], trips, *node, node->uses[u]);
    node->children.push_back(std::move(body));
    return node;
  }

  // The use with the box of all iterations.
  Use Widened(const Use& once, const Boxes& boxes, const WalkNode& node) const {
    Use use = once;
    const auto box = boxes.find(once.tensor);
    if (box == boxes.end()) return use;
    use.box = box->second;
    use.bytes = use.box.elements * footprints_.ElementBytes(once.tensor);
    if (use.bytes <= once.bytes) return use;
    use.first = use.last = {&node, WidestAxis(once.box, use.box), {}};
    return use;
  }

  // The axis along which iterations differ.
  static int WidestAxis(const Box& once, const Box& all) {
    for (size_t axis = 0; axis < std::min(once.axes.size(), all.axes.size()); ++axis) {
      if (once.axes[axis].low != all.axes[axis].low ||
          once.axes[axis].high != all.axes[axis].high) {
        return static_cast<int>(axis);
      }
    }
    return -1;
  }

  // Each iteration touches `fresh` bytes that no earlier one did, and `again` bytes that the one
  // before did; a share `hits` of the latter is still in the cache.
  void Repeat(const Use& once, double trips, const WalkNode& node, Use& use) {
    const double fresh = trips > 1 ? (use.bytes - once.bytes) / (trips - 1) : 0;
    const double again = std::clamp(once.bytes - fresh, 0.0, once.bytes);
    double hits = 0;
    if (again > 0 && trips > 1) {
      reuse_.ClearBetween();
      const bool is_scattered = use.box.is_scattered && use.bytes > once.bytes;
      hits =
          is_scattered ? reuse_.HitShareOfScattered(node) : reuse_.HitShare(once.last, once.first);
    }
    const double beyond = std::max(0.0, use.bytes - trips * once.bytes);
    use.loads = trips * once.loads + once.load_share * (beyond - (trips - 1) * hits * again);
    use.stores = trips * once.stores + (trips - 1) * (1 - hits) * again * once.dirty_share;
  }

  const Program& program_;
  Footprints footprints_;
  ReuseDistance reuse_;
  Sequencer sequencer_;
};

}  // namespace

BytesWalked EstimateBytesWalked(const SizedProgram& program, int64_t cache_bytes) {
  return Estimator(program, static_cast<double>(cache_bytes)).Run();
}

}  // namespace nestor::loop
