// Of each nest at the top the statements are listed in the order of the text, with the loops
// around them. A sum may run later where what it loads is the same then: a tensor that the nest
// does not change, or one each of whose elements it stores once, before the sum loads it. A
// scalar of the nest may be read from where it was stored.
#include "jit/schedule/carried_sums.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"

namespace nestor::jit {
namespace {

using loop::Access;
using loop::Item;
using loop::Loop;
using loop::LoopsAround;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::TensorId;
using loop::Value;
using loop::ValueId;

struct Site {
  const Statement* statement;
  LoopsAround loops;  // from that of the nest on
};

class Mover {
 public:
  Mover(Program& program, const Loop& nest) : program_(program), pool_(program.pool), nest_(nest) {}

  // What stands behind the nest, once it is without `removed`; nullopt where that would not leave
  // its iterations independent.
  absl::optional<Scope> Run(absl::flat_hash_set<const Statement*>& removed) {
    const std::vector<TensorId> carried = CarriedTensors(program_, nest_);
    if (carried.empty()) return absl::nullopt;
    LoopsAround around = {&nest_};
    List(nest_.body, around);
    std::vector<size_t> moved;
    for (size_t i = 0; i < sites_.size(); ++i) {
      if (absl::c_linear_search(carried, sites_[i].statement->target.tensor)) moved.push_back(i);
    }
    if (!MayMove(moved)) return absl::nullopt;
    Scope sums;
    for (size_t number : moved) {
      removed.insert(sites_[number].statement);
      sums.push_back(Copy(sites_[number], ValueBehind(number)));
    }
    return sums;
  }

 private:
  void List(const Scope& scope, LoopsAround& around) {
    for (const Item& item : scope) {
      if (item.As<Statement>() != nullptr) sites_.push_back({item.As<Statement>(), around});
      const auto* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      around.push_back(loop);
      List(loop->body, around);
      around.pop_back();
    }
  }

  // Whether it adds to an element whose place loops alone say, and others are deeper in the nest.
  bool IsPlainSum(const Site& site) const {
    const Statement& statement = *site.statement;
    const auto has_load = [&](IndexId e) { return pool_.HasLoad(e); };
    if (!statement.op || statement.position.valid() || statement.target.masked || absl::c_any_of(statement.target.place, has_load)) return false;
    if (absl::c_any_of(site.loops, [&](const Loop* loop) { return has_load(loop->begin) || has_load(loop->end); })) return false;
    return absl::c_any_of(sites_, [&](const Site& other) { return other.loops.size() > site.loops.size(); });
  }

  // Whether each is the only sum of its target, which the nest does not read, of what is in memory
  // when the nest has run.
  bool MayMove(const std::vector<size_t>& moved) const {
    const loop::Footprint footprint = FootprintOf(program_, nest_.body);
    absl::flat_hash_set<TensorId> targets;
    return absl::c_all_of(moved, [&](size_t number) {
      const Site& site = sites_[number];
      const TensorId target = site.statement->target.tensor;
      bool good = !footprint.reads.contains(target) && targets.insert(target).second && IsPlainSum(site);
      VisitValues(program_, site.statement->value, [&](ValueId, const Value& value) {
        const auto* load = absl::get_if<loop::LoadValue>(&value.node);
        good = good && (load == nullptr || IsThere(load->access, number) || CopyOf(load->access, value.type, number));
      });
      return good;
    });
  }

  // What the statement sums, with scalars of the nest read from where they were stored.
  ValueId ValueBehind(size_t number) {
    return RewriteValues(program_, sites_[number].statement->value, [&](ValueId id) -> absl::optional<ValueId> {
      const auto* load = absl::get_if<loop::LoadValue>(&program_[id].node);
      if (load == nullptr || IsThere(load->access, number)) return absl::nullopt;
      return program_.AddLoad(*CopyOf(load->access, program_[id].type, number));
    });
  }

  // Whether the element is, behind the nest, what it is at the statement.
  bool IsThere(const Access& access, size_t number) const {
    if (absl::c_any_of(access.place, [&](IndexId e) { return pool_.HasLoad(e); }) || !access.conditions.empty()) return false;
    const Site* store = nullptr;
    for (size_t i = 0; i < sites_.size(); ++i) {
      if (sites_[i].statement->target.tensor != access.tensor) continue;
      if (store != nullptr || i > number) return false;
      store = &sites_[i];
    }
    return store == nullptr || StoresOnce(*store, access, sites_[number]);
  }

  // Whether each iteration of the loops around the store has an element of its own, and those
  // around both have that of the access: then it was stored in the same iteration of them.
  bool StoresOnce(const Site& store, const Access& access, const Site& reader) const {
    const Statement& statement = *store.statement;
    if (statement.op || statement.target.masked || IsDeclaredInside(access.tensor)) return false;
    for (size_t i = 0; i < store.loops.size(); ++i) {
      const auto& place = statement.target.place;
      const auto axis = absl::c_find_if(place, [&](IndexId e) { return pool_.VarValue(e) == store.loops[i]->var; });
      if (axis == place.end()) return false;
      const bool around_both = i < reader.loops.size() && reader.loops[i] == store.loops[i];
      if (around_both && access.place[static_cast<size_t>(axis - place.begin())] != *axis) return false;
    }
    return true;
  }

  // Where the scalar, of this type, was stored beside the statement.
  absl::optional<Access> CopyOf(const Access& scalar, DType type, size_t number) const {
    if (!scalar.place.empty()) return absl::nullopt;
    for (size_t i = number; i-- > 0;) {
      const Statement& store = *sites_[i].statement;
      if (store.target.tensor == scalar.tensor) return absl::nullopt;
      const auto* load = absl::get_if<loop::LoadValue>(&program_[store.value].node);
      if (load == nullptr || load->access.tensor != scalar.tensor || sites_[i].loops != sites_[number].loops) continue;
      if (program_[store.target.tensor].type == type && IsThere(store.target, number)) return store.target;
    }
    return absl::nullopt;
  }

  bool IsDeclaredInside(TensorId tensor) const {
    bool found = false;
    VisitItems(nest_.body, [&](const Item& item) {
      const auto* declaration = item.As<loop::Declaration>();
      found = found || (declaration != nullptr && declaration->tensor == tensor);
    });
    return found;
  }

  // The statement alone in loops of its own.
  Item Copy(const Site& site, ValueId value) {
    Statement statement = *site.statement;
    statement.value = value;
    Scope scope = {Item{std::move(statement)}};
    for (auto loop = site.loops.rbegin(); loop != site.loops.rend(); ++loop) {
      scope = {Item{Loop{(*loop)->var, (*loop)->begin, (*loop)->end, (*loop)->step, {}, std::move(scope)}}};
    }
    loop::VarReplacement replace(program_);
    Scope* inner = &scope;
    while (auto* loop = (*inner)[0].As<Loop>()) {
      const int32_t var = program_.AddVar(program_.vars[loop->var]);
      replace.Set(loop->var, pool_.Var(var));
      loop->var = var;
      inner = &loop->body;
    }
    RewriteIndices(program_, scope, [&](IndexId e) { return replace(e); });
    return std::move(scope[0]);
  }

  Program& program_;
  IndexPool& pool_;
  const Loop& nest_;
  std::vector<Site> sites_;  // of the nest, in the order of the text
};

}  // namespace

absl::StatusOr<bool> MoveCarriedSums(Program& program) {
  bool changed = false;
  for (loop::Block& block : program.blocks) {
    Scope result;
    for (Item& item : block.body) {
      absl::flat_hash_set<const Statement*> removed;
      absl::optional<Scope> sums;
      if (const auto* nest = item.As<Loop>()) sums = Mover(program, *nest).Run(removed);
      if (sums) fusion::RemoveStatements(item.As<Loop>()->body, removed);
      result.push_back(std::move(item));
      if (!sums) continue;
      changed = true;
      for (Item& sum : *sums) result.push_back(std::move(sum));
    }
    block.body = std::move(result);
  }
  return changed;
}

}  // namespace nestor::jit
