// The loops with lanes that read an input are collected in each nest. Loops over elements left over
// after whole vectors of a row do not count: they begin at a place that depends on sizes alone.
//
// Whether loops walk memory in order is read off the axes: from the outermost loop to the
// innermost, each must move one axis, and none an earlier axis than the loop around it. For x[n, c,
// h, w] and loops over n, c, h, w this holds. With strips of rows, x[n, c, 4*p + h, w] in loops
// over n, p, c, h, w, the loops from c on walk a piece of each plane, and the next plane's piece is
// fetched instead.
#include "jit/schedule/stream_prefetches.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// An element is fetched this far ahead of its use.
constexpr int64_t kBytesAhead = 4096;

class StreamPrefetcher {
 public:
  explicit StreamPrefetcher(Program& program) : program_(program), pool_(program.pool) {}

  // An input is prefetched if one loop with lanes reads it in the nest, and no other rule
  // prefetches it there already.
  bool Run() {
    bool changed = false;
    for (Item& nest : program_.body) {
      walks_.clear();
      fetched_.clear();
      std::vector<const Loop*> loops;
      Collect(nest, loops);
      for (TensorId tensor : program_.inputs) {
        const auto walk = walks_.find(tensor);
        if (walk == walks_.end() || walk->second.count != 1 || fetched_.contains(tensor)) continue;
        if (walk->second.ahead != 0) changed |= PrefetchAhead(tensor, walk->second);
        else if (walk->second.planes >= 0) changed |= PrefetchNextPlane(tensor, walk->second);
      }
    }
    return changed;
  }

 private:
  using Place = absl::Span<const IndexId>;
  // How loops with lanes read an input.
  struct Walk {
    int count = 0;         // of these loops
    Loop* loop = nullptr;  // one of them
    IndexList place;       // of the first read there
    // The direction, 1 or -1, in which the loops around it move through memory; 0 where they jump.
    int64_t ahead = 0;
    // The index of the loop that moves from plane to plane, where they jump after the last plane.
    int32_t planes = -1;
  };

  void Collect(Item& item, std::vector<const Loop*>& loops) {
    auto* loop = item.As<Loop>();
    if (loop == nullptr) return;
    loops.push_back(loop);
    for (const Prefetch& prefetch : loop->prefetches) fetched_.insert(prefetch.access.tensor);
    for (Item& inner : loop->body) {
      if (loop->attributes.lanes == 0) Collect(inner, loops);
      else CollectReads(inner, *loop, loops);
    }
    loops.pop_back();
  }

  // Several reads of one input in a loop count once; the first of them says how it is walked.
  void CollectReads(const Item& item, Loop& loop, absl::Span<const Loop* const> loops) {
    VisitAccesses(program_, item, [&](TensorId tensor, Place place, AccessKind kind) {
      if (kind != AccessKind::kRead || place.empty() || IsLeftOver(loops, place.back())) return;
      Walk& walk = walks_[tensor];
      if (walk.loop == &loop) return;
      const IndexList list(place.begin(), place.end());
      walk = {walk.count + 1, &loop, list, DirectionOf(loops, list), PlanesOf(loops, list)};
    });
  }

  // Whether one loop moves along the row, upward from a place that depends on sizes alone.
  bool IsLeftOver(absl::Span<const Loop* const> loops, IndexId along) const {
    if (absl::c_count_if(loops,
                         [&](const Loop* loop) { return HoldsVar(pool_, along, loop->var); }) != 1)
      return false;
    return StrideIn(pool_, along, loops.back()->var) == 1 && !FixedPart(pool_, along).Constant();
  }

  // (A gathered index jumps.) Loops along the last axis must agree in their direction.
  int64_t DirectionOf(absl::Span<const Loop* const> loops, const IndexList& place) const {
    if (absl::c_any_of(place, [&](IndexId e) { return pool_.HasLoad(e); })) return 0;
    size_t last = 0;
    int64_t direction = 0;
    for (const Loop* loop : loops) {
      const auto axis = OnlyAxisAlong(program_, place, *loop);
      if (!axis || *axis < last) return 0;
      last = *axis;
      if (last + 1 < place.size()) continue;
      const auto step = StrideIn(pool_, place.back(), loop->var);
      if (!step || *step == 0) return 0;
      if (direction == 0) direction = *step > 0 ? 1 : -1;
    }
    const auto lane = StrideIn(pool_, place.back(), loops.back()->var);
    return lane == 1 || lane == -1 ? direction : 0;
  }

  // The outermost of the innermost loops that move through memory in its order, if the loop around
  // it does not, and there are rows between; else -1.
  int32_t PlanesOf(absl::Span<const Loop* const> loops, const IndexList& place) const {
    if (absl::c_any_of(place, [&](IndexId e) { return pool_.HasLoad(e); })) return -1;
    size_t next = place.size(), first = loops.size();
    while (first > 0) {
      const auto axis = OnlyAxisAlong(program_, place, *loops[first - 1]);
      if (!axis || *axis >= next) break;
      next = *axis;
      --first;
    }
    return first > 0 && first + 3 <= loops.size() && next + 3 <= place.size() ? loops[first]->var
                                                                              : -1;
  }

  // The same element in the next plane: it is a whole piece away, so it goes into the second cache.
  bool PrefetchNextPlane(TensorId tensor, const Walk& walk) {
    VarReplacement next(program_);
    next.Set(walk.planes, pool_.Add(pool_.Var(walk.planes), pool_.Const(1)));
    Access access;
    access.tensor = tensor;
    for (const IndexId e : walk.place) access.place.push_back(next(e));
    return AddPrefetch(*walk.loop, std::move(access), Prefetch::Cache::kSecond);
  }

  // A fixed distance in the direction of the walk. Beyond the end of a row this is the next row.
  bool PrefetchAhead(TensorId tensor, const Walk& walk) {
    const int64_t elements = walk.ahead * kBytesAhead / ByteSize(program_[tensor].type);
    Access access;
    access.tensor = tensor;
    access.place = walk.place;
    access.place.back() = pool_.Add(access.place.back(), pool_.Const(elements));
    return AddPrefetch(*walk.loop, std::move(access));
  }

  Program& program_;
  IndexPool& pool_;
  // In the current nest.
  absl::flat_hash_map<TensorId, Walk> walks_;
  absl::flat_hash_set<TensorId> fetched_;  // by another rule
};

}  // namespace

bool PrefetchAlongStreams(Program& program) { return StreamPrefetcher(program).Run(); }

}  // namespace nestor::loop
