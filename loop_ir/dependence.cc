// Footprints, and which tensors carry something from one iteration to another: those for which
// neither an axis shows at once, nor dependence_proof.h proves, that iterations are apart.
//
// Data dependence is asked per loop, not per pair of statements (direction vectors would be; Allen
// and Kennedy, "Optimizing Compilers for Modern Architectures", 2001, ch. 2): the passes want to
// know whether a loop may run in any order. The cases that occur by far most often are decided
// without any proof: an axis that all accesses subscript by the same expression that steps with the
// loop's index (y[i, ..] in all), or a tensor whose places do not mention the index at all, which
// is then carried.
#include "loop_ir/dependence.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence_proof.h"

namespace nestor::loop {
namespace {

void VisitIndexLoads(const IndexPool& pool, IndexId id, AccessVisitor visit) {
  if (!pool.HasLoads() || !pool.HasLoad(id)) return;
  VisitIndex(pool, id, [&](IndexId, const IndexNode& node) {
    if (node.kind != IndexKind::kLoad) return;
    visit(TensorId{static_cast<int32_t>(node.value)}, node.args, AccessKind::kRead);
  });
}

void VisitIndexLoads(const IndexPool& pool, const Access& access, AccessVisitor visit) {
  if (!pool.HasLoads()) return;
  for (IndexId e : access.place) VisitIndexLoads(pool, e, visit);
  for (IndexId e : access.conditions) VisitIndexLoads(pool, e, visit);
}

// Collects a footprint; tensors that the scope declares are removed at the end.
class FootprintCollector {
 public:
  explicit FootprintCollector(const Program& program) : program_(program) {}

  // Tensors that the item declares are its own business: they are taken out in the end.
  void Add(const Item& item) {
    VisitItems(item, [&](const Item& each) {
      if (const auto* declaration = each.As<Declaration>())
        declared_.push_back(declaration->tensor);
      VisitAccesses(program_, each,
                    [&](TensorId tensor, absl::Span<const IndexId>, AccessKind kind) {
                      SetOf(kind).insert(tensor);
                    });
    });
  }

  // Tensors that the items declare themselves do not exist outside of them.
  Footprint Take() {
    for (TensorId tensor : declared_) {
      for (AccessKind kind : {AccessKind::kRead, AccessKind::kWrite, AccessKind::kAccumulate}) {
        SetOf(kind).erase(tensor);
      }
    }
    return std::move(footprint_);
  }

 private:
  Footprint::Set& SetOf(AccessKind kind) {
    return kind == AccessKind::kRead    ? footprint_.reads
           : kind == AccessKind::kWrite ? footprint_.writes
                                        : footprint_.accumulates;
  }

  const Program& program_;
  Footprint footprint_;
  std::vector<TensorId> declared_;
};

// ---- Independence

// The accesses in a loop's body to the tensors that the body changes, found in one walk.
class BodyAccesses {
 public:
  BodyAccesses(const Program& program, const Loop& loop, const Footprint& footprint)
      : program_(program), loop_(loop), footprint_(footprint) {
    Collect(loop.body, -1);
  }

  // The cheap test on all places at once first; the proof by pairs of accesses only where it fails.
  bool AreApart(TensorId tensor) const {
    if (const auto apart = AreApartAtOnce(tensor)) return *apart;
    std::vector<PlacedAccess> accesses;
    for (const Place& place : places_.at(tensor))
      accesses.push_back({place.place, LoopsAround(place.nest)});
    return loop::AreApart(program_, loop_, std::move(accesses));
  }

 private:
  struct InnerLoop {  // an inner loop, and the number of the one around it
    const Loop* loop;
    int around;
  };
  struct Place {
    absl::InlinedVector<IndexId, 4> place;  // a copy: the visitor's may be gone after the visit
    int nest;
  };

  // Accesses of the tensors that the body changes, each with the innermost loop around it.
  void Collect(const Scope& scope, int nest) {
    for (const Item& item : scope) {
      VisitAccesses(program_, item,
                    [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind) {
                      if (footprint_.Changes(tensor))
                        places_[tensor].push_back({{place.begin(), place.end()}, nest});
                    });
      const Loop* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      bounds_move_ =
          bounds_move_ || program_.pool.HasVar(loop->begin) || program_.pool.HasVar(loop->end);
      nests_.push_back({loop, nest});
      Collect(loop->body, static_cast<int>(nests_.size()) - 1);
    }
  }

  // Outermost first.
  std::vector<const Loop*> LoopsAround(int nest) const {
    std::vector<const Loop*> loops;
    for (; nest >= 0; nest = nests_[nest].around) loops.push_back(nests_[nest].loop);
    std::reverse(loops.begin(), loops.end());
    return loops;
  }

  // The common cases, without windows: there is an axis that all accesses walk by the same steps of
  // the loop index; or no place holds the index of this loop or of one whose bounds it moves.
  absl::optional<bool> AreApartAtOnce(TensorId tensor) const {
    const std::vector<Place>& places = places_.at(tensor);
    std::vector<bool> walked(places[0].place.size(), true);
    bool mentioned = false;
    for (const Place& access : places) {
      for (size_t axis = 0; axis < access.place.size(); ++axis) {
        walked[axis] = walked[axis] && access.place[axis] == places[0].place[axis];
        mentioned = mentioned || HoldsVar(program_.pool, access.place[axis], loop_.var);
      }
    }
    for (size_t axis = 0; axis < walked.size(); ++axis) {
      if (walked[axis] && Steps(places[0].place[axis])) return true;
    }
    if (!mentioned && !bounds_move_) return false;
    return absl::nullopt;
  }

  // Whether e is the loop index times a number that is not 0, plus terms that do not change in
  // the loop.
  bool Steps(IndexId e) const {
    const IndexPool& pool = program_.pool;
    if (pool.VarValue(e) == loop_.var) return true;
    const auto moves = [&](const InnerLoop& nest) { return HoldsVar(pool, e, nest.loop->var); };
    return StrideIn(pool, e, loop_.var).value_or(0) != 0 && absl::c_none_of(nests_, moves);
  }

  const Program& program_;
  const Loop& loop_;
  const Footprint& footprint_;
  std::vector<InnerLoop> nests_;
  absl::flat_hash_map<TensorId, std::vector<Place>> places_;
  bool bounds_move_ = false;  // of an inner loop
};

}  // namespace

// The loads in indices come first; the values are walked once.
void VisitAccesses(const Program& program, const Item& item, AccessVisitor visit) {
  const Statement* statement = item.As<Statement>();
  const auto visit_index = [&](IndexId id) { VisitIndexLoads(program.pool, id, visit); };
  if (statement == nullptr) {
    if (program.pool.HasLoads()) VisitIndices(program, item, visit_index);
    return;
  }
  absl::InlinedVector<const Access*, 16> loads;
  const auto visit_value = [&](ValueId, const Value& value) {
    if (const auto* index = absl::get_if<IndexValue>(&value.node)) visit_index(index->index);
    const auto* load = absl::get_if<LoadValue>(&value.node);
    if (load == nullptr) return;
    VisitIndexLoads(program.pool, load->access, visit);
    loads.push_back(&load->access);
  };
  VisitIndexLoads(program.pool, statement->target, visit);
  VisitValues(program, statement->value, visit_value);
  if (statement->position.valid()) VisitValues(program, statement->position, visit_value);
  for (const Access* load : loads) visit(load->tensor, load->place, AccessKind::kRead);
  visit(statement->target.tensor, statement->target.place,
        statement->op ? AccessKind::kAccumulate : AccessKind::kWrite);
}

Footprint FootprintOf(const Program& program, const Scope& scope) {
  FootprintCollector collector(program);
  for (const Item& item : scope) collector.Add(item);
  return collector.Take();
}

Footprint FootprintOf(const Program& program, const Item& item) {
  FootprintCollector collector(program);
  collector.Add(item);
  return collector.Take();
}

namespace {

bool HasOneIteration(const IndexPool& pool, const Loop& loop) {
  const auto begin = pool.ConstValue(loop.begin), end = pool.ConstValue(loop.end);
  return begin && end && *end - *begin <= loop.step;
}

// At most `most`, in the order of the text.
std::vector<TensorId> FindCarried(const Program& program, const Loop& loop, size_t most) {
  if (HasOneIteration(program.pool, loop)) return {};
  const Footprint footprint = FootprintOf(program, loop.body);
  const BodyAccesses accesses(program, loop, footprint);
  absl::flat_hash_set<TensorId> seen;
  std::vector<TensorId> carried;
  VisitItems(loop.body, [&](const Item& item) {
    const Statement* statement = item.As<Statement>();
    if (carried.size() == most || statement == nullptr) return;
    const TensorId target = statement->target.tensor;
    if (!footprint.Changes(target) || !seen.insert(target).second) return;
    if (!accesses.AreApart(target)) carried.push_back(target);
  });
  return carried;
}

}  // namespace

absl::optional<TensorId> CarriedTensor(const Program& program, const Loop& loop) {
  const std::vector<TensorId> carried = FindCarried(program, loop, 1);
  return carried.empty() ? absl::nullopt : absl::make_optional(carried[0]);
}

std::vector<TensorId> CarriedTensors(const Program& program, const Loop& loop) {
  return FindCarried(program, loop, program.tensors.size());
}

}  // namespace nestor::loop
