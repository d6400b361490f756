// A masked access is made where all of its conditions hold and its place is in
// range: a conjunction. So each part may be simplified, or dropped, by what the
// others say:
//
//   x[i - 1 | 0.0 if i >= 1, i < N]  for i in [0, N), x: f32[N]
//
// i < N holds anyway, i >= 1 is what being in range says. One order matters: the
// conditions are evaluated in turn up to the first that is false, then the place.
// What stands before a gather keeps it from reading what was never written, so a
// condition is not dropped for the sake of something behind a gather that it may
// be guarding.
#include "fusion/simplify_access.h"

#include <algorithm>
#include <utility>

#include "fusion/index_simplify.h"

namespace nestor::fusion {
namespace {

using loop::Access;
using loop::Program;
using loop::Ranges;

class AccessSimplifier {
 public:
  AccessSimplifier(Program& program, Ranges& ranges, Access& access)
      : program_(program), pool_(program.pool), ranges_(ranges), access_(access) {}

  bool Run() {
    SplitConjunctions();
    if (!DropDecided()) return false;
    SimplifyPlace();
    if (!access_.masked) return true;
    if (!SimplifyConditions() || NeverInRange()) return false;
    if (access_.conditions.empty() && ranges_.InRange(access_.place, shape())) {
      access_.masked = false;
      access_.fill = {};
    }
    return true;
  }

 private:
  const Shape& shape() const { return program_[access_.tensor].shape; }

  // `a && b` is `a, b`.
  void SplitConjunctions() {
    IndexList split;
    std::vector<IndexId> rest(access_.conditions.rbegin(), access_.conditions.rend());
    while (!rest.empty()) {
      const IndexId condition = rest.back();
      rest.pop_back();
      const IndexNode& node = pool_[condition];
      if (node.kind == IndexKind::kAnd) rest.insert(rest.end(), {node.args[1], node.args[0]});
      else split.push_back(condition);
    }
    access_.conditions = split;
  }

  // What is decided here whatever the other conditions say: most of what composition
  // adds, and asked for each condition once. False where one never holds.
  bool DropDecided() {
    IndexList open;
    for (IndexId condition : access_.conditions) {
      const absl::optional<bool> decided = ranges_.Decide(condition);
      if (decided == false) return false;
      if (!decided && std::find(open.begin(), open.end(), condition) == open.end()) open.push_back(condition);
    }
    access_.conditions = std::move(open);
    return true;
  }

  // Where the conditions do not hold, the place does not matter.
  void SimplifyPlace() {
    for (IndexId condition : access_.conditions) ranges_.Assume(condition);
    for (IndexId& e : access_.place) e = SimplifyIndex(pool_, ranges_, e);
    for (size_t i = 0; i < access_.conditions.size(); ++i) ranges_.Forget();
  }

  // False where some condition never holds together with the rest. The later of
  // two that imply each other goes.
  bool SimplifyConditions() {
    IndexList& conditions = access_.conditions;
    for (size_t k = conditions.size(); k-- > 0;) {
      const IndexId simple = SimplifyByTheOthers(k);
      const auto constant = pool_.ConstValue(simple);
      if (constant == 0) return false;
      conditions[k] = simple;
      if (constant) conditions.erase(conditions.begin() + static_cast<int64_t>(k));
    }
    return true;
  }

  IndexId SimplifyByTheOthers(size_t k) {
    const IndexList& conditions = access_.conditions;
    int assumed = 0;
    const auto assume = [&](size_t begin, size_t end) {
      for (size_t j = begin; j < end; ++j, ++assumed) ranges_.Assume(conditions[j]);
    };
    assume(0, k);
    if (!GathersBehind(k)) {
      assume(k + 1, conditions.size());
      ranges_.AssumeInRange(access_.place, shape());
      ++assumed;
    }
    const IndexId simple = SimplifyIndex(pool_, ranges_, conditions[k]);
    while (assumed-- > 0) ranges_.Forget();
    return simple;
  }

  bool GathersBehind(size_t k) const {
    const auto gathers = [&](IndexId e) { return pool_.HasLoad(e); };
    return std::any_of(access_.conditions.begin() + static_cast<int64_t>(k) + 1, access_.conditions.end(), gathers) ||
           std::any_of(access_.place.begin(), access_.place.end(), gathers);
  }

  bool NeverInRange() {
    for (IndexId condition : access_.conditions) ranges_.Assume(condition);
    bool never = false;
    for (size_t axis = 0; axis < access_.place.size(); ++axis) {
      const IndexId e = access_.place[axis];
      never |= ranges_.Less(e, pool_.Const(0)) || ranges_.LessEqual(shape()[axis], e);
    }
    for (size_t i = 0; i < access_.conditions.size(); ++i) ranges_.Forget();
    return never;
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  Access& access_;
};

}  // namespace

bool SimplifyAccess(Program& program, Ranges& ranges, Access& access) {
  return AccessSimplifier(program, ranges, access).Run();
}

}  // namespace nestor::fusion
