// Collapsing loops (and axes) that are always walked together, so that short rows become one long
// row. A constraint problem: merging a pair of loops requires to merge the axes that they walk, in
// every tensor, and merging a pair of axes requires all accesses to walk them by merged loops.
//
// One walk collects what is walked together: pairs of loops, one right inside the other, and pairs
// of axes. An access that walks a pair of axes by a pair of loops links the two; an access that
// uses an index otherwise spoils them, and a spoiled pair spoils all that it is linked to. The rest
// falls into groups of links (connected components), each of which can be merged by itself. Those
// that have no axis and no loop in common are merged at once, and then everything is repeated. For
// temporaries that may be walked otherwise, an access that does not link the two spoils neither: it
// computes the position of its element in the merged axis.
#include "fusion/merge_axes.h"

#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "absl/types/variant.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/index/index_expr.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

using Axes = std::pair<TensorId, size_t>;  // of a tensor the axis with this number, and the next
using Loops = int32_t;                     // the index of the outer one

struct Link {
  Axes axes;
  Loops loops;
};

// The pairs of axes of temporaries along which all accesses are in range, so that any of them may
// say where its element is in an axis that is made of both.
class Rows {
 public:
  explicit Rows(Program& program) : program_(program), ranges_(program) { Visit(program.body); }

  // Neighbouring axes of which every access stays within both.
  absl::flat_hash_set<Axes> Pairs() const {
    absl::flat_hash_set<Axes> pairs;
    for (int32_t i = 0; i < static_cast<int32_t>(program_.tensors.size()); ++i) {
      const TensorId tensor{i};
      if (!IsMatrix(tensor)) continue;
      for (size_t axis = 0; axis + 1 < program_[tensor].shape.size(); ++axis) {
        if (!left_.contains({tensor, axis}) && !left_.contains({tensor, axis + 1}))
          pairs.insert({tensor, axis});
      }
    }
    return pairs;
  }

 private:
  // Whether it is a temporary in memory with two axes or more.
  bool IsMatrix(TensorId tensor) const {
    const TensorInfo& info = program_[tensor];
    return info.storage == Storage::kTemp && !info.is_register && info.shape.size() > 1;
  }

  // Looks at every use of an axis: one that does not walk it together with the next forbids the
  // merge.
  void Visit(const Scope& scope) {
    for (const Item& item : scope) {
      VisitIndices(program_, item, [&](IndexId e) { Gathers(e); });
      if (const Loop* loop = item.As<Loop>()) {
        ranges_.Enter(*loop);
        Visit(loop->body);
        ranges_.Leave();
      } else if (const auto* statement = item.As<Statement>()) {
        Look(statement->target);
        Look(statement->value);
        if (statement->position.valid()) Look(statement->position);
      }
    }
  }

  void Look(ValueId id) {
    VisitLoads(program_, id, [&](ValueId, const Access& access) { Look(access); });
  }

  // An access that might leave an axis would, if that were merged, reach the next row instead.
  void Look(const Access& access) {
    if (!IsMatrix(access.tensor)) return;
    for (IndexId condition : access.conditions) ranges_.Assume(condition);
    const Shape& shape = program_[access.tensor].shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (left_.contains({access.tensor, axis})) continue;
      if (!ranges_.InRange(access.place[axis], shape[axis])) left_.insert({access.tensor, axis});
    }
    for (size_t i = 0; i < access.conditions.size(); ++i) ranges_.Forget();
  }

  // Tensors that indices load from are left as they are.
  void Gathers(IndexId e) {
    if (!program_.pool.HasLoad(e)) return;
    VisitIndex(program_.pool, e, [&](IndexId, const IndexNode& node) {
      if (node.kind != IndexKind::kLoad) return;
      const TensorId tensor{static_cast<int32_t>(node.value)};
      for (size_t axis = 0; axis < program_[tensor].shape.size(); ++axis)
        left_.insert({tensor, axis});
    });
  }

  Program& program_;
  Ranges ranges_;
  absl::flat_hash_set<Axes> left_;  // single axes that an access may leave
};

class Walks {
 public:
  // `rows`: pairs of axes that alone change; null: any may that all accesses walk.
  Walks(const Program& program, const absl::flat_hash_set<Axes>* rows)
      : program_(program), pool_(program.pool), rows_(rows) {
    VisitItems(program, [&](const Item& item) { Add(item); });
    SpoilLinked();
  }

  // The links of groups that can be merged at once; empty if there are none.
  std::vector<Link> Groups() const {
    absl::flat_hash_set<Loops> seen;
    std::vector<Link> links;
    for (const Link& link : links_) {
      if (bad_loops_.contains(link.loops) || seen.contains(link.loops)) continue;
      const std::vector<Link> group = LinkedTo(link);
      for (const Link& member : group) seen.insert(member.loops);
      if (rows_ != nullptr &&
          absl::c_none_of(group, [&](const Link& member) { return SumsProducts(member); }))
        continue;
      std::vector<Link> with = links;
      with.insert(with.end(), group.begin(), group.end());
      if (AreApart(with)) links = std::move(with);
    }
    return links;
  }

 private:
  // ---- Collecting

  // A pair of loops: one that holds the other and nothing else, both over a whole axis. Bounds,
  // shapes and values that use an index spoil it.
  void Add(const Item& item) {
    if (const Loop* loop = item.As<Loop>()) {
      Spoil(loop->begin);
      Spoil(loop->end);
      const Loop* inner = OnlyLoopIn(loop->body);
      if (inner == nullptr || !IsWhole(*loop) || !IsWhole(*inner)) return;
      inner_of_[loop->var] = inner;
      outer_of_[inner->var] = loop;
    } else if (const auto* declaration = item.As<Declaration>()) {
      for (IndexId e : program_[declaration->tensor].shape) Spoil(e);
    } else if (const auto* statement = item.As<Statement>()) {
      Add(statement->target);
      Add(statement->value);
      if (statement->position.valid()) Add(statement->position);
    }
  }

  bool IsWhole(const Loop& loop) const {
    return pool_.IsConst(loop.begin, 0) && loop.step == 1 && !pool_.HasVar(loop.end);
  }

  void Add(ValueId id) {
    VisitValues(program_, id, [&](ValueId, const Value& value) {
      if (const auto* load = absl::get_if<LoadValue>(&value.node)) Add(load->access);
      if (const auto* index = absl::get_if<IndexValue>(&value.node)) Spoil(index->index);
    });
  }

  // A bare index must be one of a pair that walks two adjacent axes here, in that order; anything
  // else spoils the pair.
  void Add(const Access& access) {
    for (IndexId condition : access.conditions) Spoil(condition);
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      const auto var = static_cast<int32_t>(pool_.VarValue(access.place[axis]));
      if (var < 0) {
        Spoil(access.place[axis]);
      } else {
        if (!Walk(access, axis, var)) bad_loops_.insert(var);
        const auto outer = outer_of_.find(var);
        if (outer == outer_of_.end()) continue;
        if (axis == 0 || !Walk(access, axis - 1, outer->second->var))
          bad_loops_.insert(outer->second->var);
      }
    }
    for (size_t axis = 0; axis + 1 < access.place.size(); ++axis) {
      const auto var = static_cast<int32_t>(pool_.VarValue(access.place[axis]));
      if (rows_ != nullptr && !rows_->contains({access.tensor, axis}))
        bad_axes_.insert({access.tensor, axis});
      if (var >= 0 && Walk(access, axis, var)) links_.push_back({{access.tensor, axis}, var});
      else if (rows_ == nullptr) bad_axes_.insert({access.tensor, axis});
    }
  }

  // Whether there is a sum inside the loops of the link with elements that all their iterations
  // share: a product.
  bool SumsProducts(const Link& link) const {
    const Loop& inner = *inner_of_.at(link.loops);
    const auto moves = [&](IndexId e) {
      return HoldsVar(pool_, e, link.loops) || HoldsVar(pool_, e, inner.var);
    };
    bool shares = false;
    for (const Item& item : inner.body) {
      if (item.As<Loop>() == nullptr) continue;
      VisitItems(item, [&](const Item& step) {
        VisitAccesses(program_, step,
                      [&](TensorId, absl::Span<const IndexId> place, AccessKind kind) {
                        shares = shares || (kind == AccessKind::kRead && !place.empty() &&
                                            absl::c_none_of(place, moves));
                      });
      });
    }
    return shares;
  }

  // Whether the loop with this index and the one inside it walk the axis and the next, whole.
  bool Walk(const Access& access, size_t axis, int32_t var) const {
    const auto inner = inner_of_.find(var);
    if (inner == inner_of_.end() || axis + 1 >= access.place.size()) return false;
    const Loop& outer = *outer_of_.at(inner->second->var);
    const Shape& shape = program_[access.tensor].shape;
    return pool_.VarValue(access.place[axis]) == var &&
           pool_.VarValue(access.place[axis + 1]) == inner->second->var &&
           shape[axis] == outer.end &&
           (shape[axis + 1] == inner->second->end || NESTOR_MUTANT("part_of_axis_merged"));
  }

  // ---- Axes and loops that cannot be merged

  // Loops whose index is used otherwise than as a place, and axes of what is gathered, stay apart.
  void Spoil(IndexId e) {
    VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
      if (node.kind == IndexKind::kVar) SpoilVar(static_cast<int32_t>(node.value));
      if (node.kind != IndexKind::kLoad) return;
      const TensorId tensor{static_cast<int32_t>(node.value)};
      for (size_t axis = 0; axis < program_[tensor].shape.size(); ++axis)
        bad_axes_.insert({tensor, axis});
    });
  }

  void SpoilVar(int32_t var) {
    bad_loops_.insert(var);
    const auto outer = outer_of_.find(var);
    if (outer != outer_of_.end()) bad_loops_.insert(outer->second->var);
  }

  // Axes and loops merge only together: whatever cannot merge spoils what is linked with it, until
  // nothing more is spoiled.
  void SpoilLinked() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Link& link : links_) {
        if (bad_loops_.contains(link.loops) && rows_ == nullptr)
          changed |= bad_axes_.insert(link.axes).second;
        if (bad_axes_.contains(link.axes)) changed |= bad_loops_.insert(link.loops).second;
      }
    }
  }

  // ---- Groups

  // The connected component of the link: grown until neither axes nor loops are added.
  std::vector<Link> LinkedTo(const Link& first) const {
    absl::flat_hash_set<Axes> axes = {first.axes};
    absl::flat_hash_set<Loops> loops = {first.loops};
    for (size_t size = 0; size != axes.size() + loops.size();) {
      size = axes.size() + loops.size();
      for (const Link& link : links_) {
        if (bad_loops_.contains(link.loops)) continue;
        if (axes.contains(link.axes)) loops.insert(link.loops);
        if (loops.contains(link.loops)) axes.insert(link.axes);
      }
    }
    std::vector<Link> group;
    absl::c_copy_if(links_, std::back_inserter(group), [&](const Link& link) {
      return axes.contains(link.axes) && !bad_loops_.contains(link.loops);
    });
    return group;
  }

  // Whether no axis, and no loop, is in two pairs.
  bool AreApart(const std::vector<Link>& links) const {
    absl::flat_hash_set<Axes> axes;
    absl::flat_hash_set<Loops> loops;
    for (const Link& link : links) {
      axes.insert(link.axes);
      loops.insert(link.loops);
    }
    return absl::c_none_of(links, [&](const Link& link) {
      return axes.contains({link.axes.first, link.axes.second + 1}) ||
             loops.contains(inner_of_.at(link.loops)->var);
    });
  }

  const Program& program_;
  const IndexPool& pool_;
  const absl::flat_hash_set<Axes>* const rows_;
  absl::flat_hash_map<int32_t, const Loop*> inner_of_, outer_of_;  // by index: of pairs
  std::vector<Link> links_;                                        // in the order of the program
  absl::flat_hash_set<Axes> bad_axes_;
  absl::flat_hash_set<Loops> bad_loops_;
};

class Merger {
 public:
  Merger(Program& program, const std::vector<Link>& links) : program_(program) {
    for (const Link& link : links) {
      loops_.insert(link.loops);
      std::vector<size_t>& axes = axes_[link.axes.first.value];
      if (!absl::c_linear_search(axes, link.axes.second)) axes.push_back(link.axes.second);
    }
    for (auto& [tensor, axes] : axes_) absl::c_sort(axes, std::greater<>());
  }

  // Shapes first, then places, then loops: places are recognized by the indices of both loops.
  void Run() {
    IndexPool& pool = program_.pool;
    for (const auto& [tensor, axes] : axes_) {
      Shape& shape = program_[TensorId{tensor}].shape;
      for (const size_t axis : axes) {
        lengths_[{TensorId{tensor}, axis}] = shape[axis + 1];
        shape[axis] = pool.Mul(shape[axis], shape[axis + 1]);
        shape.erase(shape.begin() + static_cast<int64_t>(axis) + 1);
      }
    }
    VisitItems(program_, [&](const Item& item) {
      const Loop* loop = item.As<Loop>();
      if (loop != nullptr && loops_.contains(loop->var))
        inner_[loop->var] = loop->body[0].As<Loop>()->var;
    });
    RewritePlaces(program_, program_.body,
                  [&](TensorId tensor, IndexList& place) { return Merge(tensor, place); });
    VisitScopes(program_.body, [&](Scope& scope) {
      for (Item& item : scope) {
        if (Loop* loop = item.As<Loop>()) Merge(*loop);
      }
    });
  }

 private:
  // The index that is left is the outer loop's, or the number of the element in both axes.
  bool Merge(TensorId tensor, IndexList& place) const {
    const auto axes = axes_.find(tensor.value);
    if (axes == axes_.end()) return false;
    IndexPool& pool = program_.pool;
    for (const size_t axis : axes->second) {
      const auto pair = inner_.find(static_cast<int32_t>(pool.VarValue(place[axis])));
      const bool walks = pair != inner_.end() && pool.VarValue(place[axis + 1]) == pair->second;
      const IndexId length = lengths_.at({tensor, axis});
      if (!walks) place[axis] = pool.Add(pool.Mul(place[axis], length), place[axis + 1]);
      place.erase(place.begin() + static_cast<int64_t>(axis) + 1);
    }
    return true;
  }

  void Merge(Loop& loop) const {
    if (!loops_.contains(loop.var)) return;
    Loop inner = std::move(*loop.body[0].As<Loop>());
    loop.end = program_.pool.Mul(loop.end, inner.end);
    loop.body = std::move(inner.body);
  }

  Program& program_;
  std::map<int32_t, std::vector<size_t>> axes_;  // by tensor, the last first
  absl::flat_hash_set<Loops> loops_;
  absl::flat_hash_map<int32_t, int32_t> inner_;  // of those, the index of the loop inside
  absl::flat_hash_map<Axes, IndexId> lengths_;   // of the second axis
};

}  // namespace

// Two axes at a time; a merged axis may then be merged with a third.
bool MergeAxes(Program& program) {
  bool changed = false;
  while (true) {
    const std::vector<Link> links = Walks(program, nullptr).Groups();
    if (links.empty()) return changed;
    Merger(program, links).Run();
    changed = true;
  }
}

// Again after each merging, since three axes take two.
absl::StatusOr<bool> MergeRowsOfTemporaries(Program& program) {
  bool changed = false;
  while (true) {
    const absl::flat_hash_set<Axes> rows = Rows(program).Pairs();
    const std::vector<Link> links = Walks(program, &rows).Groups();
    if (links.empty()) return changed;
    Merger(program, links).Run();
    changed = true;
  }
}

}  // namespace nestor::loop
