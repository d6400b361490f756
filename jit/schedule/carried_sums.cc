// The statements of each outermost nest are listed in the order of the text, with the loops around
// them. A sum may run later if it loads the same values then: from a tensor that the nest does not
// change, or stores each element of once, before the sum loads it. A scalar of the nest may be read
// from where it was stored.
//
// This is loop distribution (Allen and Kennedy, "Optimizing Compilers for Modern Architectures",
// 2001) of a special case: the statements that move are sums which nothing in the nest reads, so
// that the only dependences on the way are flow dependences from the nest to them. These are
// checked one load at a time rather than by a dependence graph. Three cases keep a load's value
// until after the nest:
//
// - the tensor is not changed by the nest: x[i, k];
// - each element is stored once, in an iteration that the reader shares: y[i, j] = .. g[j] += y[i,
//   j];
// - a scalar of the body that some statement stored: y[i, j] = s .. g[j] += s, which then reads
//   y[i, j].
//
// Each sum keeps the order of its own iterations, so no bit changes.
#include "jit/schedule/carried_sums.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/dependence.h"
#include "loop_ir/elements.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

struct Site {
  const Statement* statement;
  LoopsAround loops;  // from the nest's outermost on
};

class Mover {
 public:
  explicit Mover(Program& program) : program_(program), pool_(program.pool) {}

  // The sums to put after the nest, which must then lose `removed`; nullopt where its iterations
  // would not become independent.
  absl::optional<Scope> Run(Item& nest, absl::flat_hash_set<const Statement*>& removed) {
    const std::vector<TensorId> carried = CarriedTensors(program_, *nest.As<Loop>());
    if (carried.empty()) return absl::nullopt;
    footprint_ = FootprintOf(program_, nest);
    std::vector<size_t> moved;
    VisitStatements(nest, [&](Statement& statement, const LoopsAround& loops) {
      if (absl::c_linear_search(carried, statement.target.tensor)) moved.push_back(sites_.size());
      sites_.push_back({&statement, loops});
    });
    if (!MayMove(moved)) return absl::nullopt;
    Scope sums;
    for (size_t number : moved) {
      const Site& site = sites_[number];
      removed.insert(site.statement);
      Statement sum = *site.statement;
      sum.value = ValueBehind(number);
      sums.push_back(InOwnLoops(program_, site.loops, std::move(sum)));
    }
    return sums;
  }

 private:
  // Whether it adds to an element whose place depends on loop indices only, and other statements
  // are deeper in the nest.
  bool IsPlainSum(const Site& site) const {
    const Statement& statement = *site.statement;
    const auto has_load = [&](IndexId e) { return pool_.HasLoad(e); };
    const auto is_gathered = [&](const Loop* loop) {
      return has_load(loop->begin) || has_load(loop->end);
    };
    if (!statement.op || statement.position.valid() || statement.target.masked) return false;
    if (absl::c_any_of(statement.target.place, has_load) || absl::c_any_of(site.loops, is_gathered))
      return false;
    return absl::c_any_of(
        sites_, [&](const Site& other) { return other.loops.size() > site.loops.size(); });
  }

  // Whether each is the only sum into its target, which the nest does not read, and its operands
  // are in memory when the nest has run.
  bool MayMove(const std::vector<size_t>& moved) const {
    absl::flat_hash_set<TensorId> targets;
    return absl::c_all_of(moved, [&](size_t number) {
      const Site& site = sites_[number];
      const TensorId target = site.statement->target.tensor;
      bool good =
          !footprint_.reads.contains(target) && targets.insert(target).second && IsPlainSum(site);
      VisitLoads(program_, site.statement->value, [&](ValueId id, const Access& access) {
        good = good && (IsThere(access, number) || CopyOf(access, program_[id].type, number));
      });
      return good;
    });
  }

  // The value that the statement sums, with scalars of the nest read from where they were stored.
  ValueId ValueBehind(size_t number) {
    return RewriteValues(
        program_, sites_[number].statement->value, [&](ValueId id) -> absl::optional<ValueId> {
          const auto* load = absl::get_if<LoadValue>(&program_[id].node);
          if (load == nullptr || IsThere(load->access, number)) return absl::nullopt;
          return program_.AddLoad(*CopyOf(load->access, program_[id].type, number));
        });
  }

  // Whether the element has the same value after the nest as at the statement.
  bool IsThere(const Access& access, size_t number) const {
    if (!access.conditions.empty()) return false;
    if (absl::c_any_of(access.place, [&](IndexId e) { return pool_.HasLoad(e); })) return false;
    const Site* store = nullptr;
    for (size_t i = 0; i < sites_.size(); ++i) {
      if (sites_[i].statement->target.tensor != access.tensor) continue;
      if (store != nullptr || i > number) return false;
      store = &sites_[i];
    }
    return store == nullptr || StoresOnce(*store, access, sites_[number]);
  }

  // Whether each iteration of the loops around the store has an element of its own, and the
  // access reads the one of the same iteration of the loops around both: then it was stored
  // in that iteration.
  bool StoresOnce(const Site& store, const Access& access, const Site& reader) const {
    const Statement& statement = *store.statement;
    if (statement.op || statement.target.masked || !footprint_.Changes(access.tensor)) return false;
    for (size_t i = 0; i < store.loops.size(); ++i) {
      const auto& place = statement.target.place;
      const auto axis = absl::c_find_if(
          place, [&](IndexId e) { return pool_.VarValue(e) == store.loops[i]->var; });
      if (axis == place.end()) return false;
      const bool around_both = i < reader.loops.size() && reader.loops[i] == store.loops[i];
      if (around_both && access.place[static_cast<size_t>(axis - place.begin())] != *axis)
        return false;
    }
    return true;
  }

  // Where the scalar, of this type, was stored by the nearest earlier statement in the same loops;
  // nullopt if the scalar changes between that store and statement `number`, or is stored nowhere. A
  // masked load may be of another value.
  absl::optional<Access> CopyOf(const Access& scalar, DType type, size_t number) const {
    if (!scalar.place.empty() || scalar.masked) return absl::nullopt;
    for (size_t i = number; i-- > 0;) {
      const Statement& store = *sites_[i].statement;
      if (store.target.tensor == scalar.tensor) return absl::nullopt;
      if (!IsElement(program_, store.value, scalar) || sites_[i].loops != sites_[number].loops)
        continue;
      if (program_[store.target.tensor].type == type && IsThere(store.target, number))
        return store.target;
    }
    return absl::nullopt;
  }

  Program& program_;
  IndexPool& pool_;
  Footprint footprint_;      // of the nest, without what it declares
  std::vector<Site> sites_;  // of the nest, in the order of the text
};

}  // namespace

// A sum that moves stands directly after its loop: nothing between them can write what it reads.
absl::StatusOr<bool> MoveCarriedSums(Program& program) {
  bool changed = false;
  Scope result;
  for (Item& item : program.body) {
    absl::flat_hash_set<const Statement*> removed;
    absl::optional<Scope> sums;
    if (item.As<Loop>() != nullptr) sums = Mover(program).Run(item, removed);
    if (sums) RemoveStatements(item.As<Loop>()->body, removed);
    result.push_back(std::move(item));
    if (!sums) continue;
    changed = true;
    Append(result, *std::move(sums));
  }
  program.body = std::move(result);
  return changed;
}

}  // namespace nestor::loop
