// A sum that reads nothing which its nest makes can run before the nest, all of its rows and
// columns first. It is tried in a copy of the loops, with nothing else in them.
#include "jit/schedule/split_contractions.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/dependence.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::jit {
namespace {

using loop::Access;
using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::TensorId;

// Fewer are no contraction worth a temporary.
constexpr int64_t kLeastSteps = 8;

class Splitter {
 public:
  Splitter(Program& program, loop::Ranges& ranges) : program_(program), pool_(program.pool), ranges_(ranges) {}

  absl::optional<Scope> Split(const Loop& nest) {
    band_.clear();
    for (const Loop* loop = &nest; loop != nullptr; loop = OnlyLoopIn(loop->body)) band_.push_back(loop);
    if (band_.size() < 2 || !HoldsMore(band_.back()->body) || ContractionOf(program_, nest)) return absl::nullopt;
    core_ = band_.back()->body;
    if (LoadsIndices()) return absl::nullopt;
    const std::vector<Sum> sums = SumsToSplit();
    if (sums.empty()) return absl::nullopt;
    return Rebuilt(sums);
  }

 private:
  struct Sum {
    size_t item;  // of the core: its outermost loop
    TensorId accumulator;
    size_t shared;  // leading loops of the band that are neither rows nor columns
  };

  // Whether there are sums beside a sum: others, or one over the nest's own loops. What keeps a
  // sum with nothing beside it from being a contraction is not mended by a nest of its own.
  static bool HoldsMore(const Scope& core) {
    const auto is_sum = [](const Item& item) { return item.As<Loop>() != nullptr; };
    const auto accumulates = [](const Item& item) {
      const auto* statement = item.As<Statement>();
      return statement != nullptr && statement->op.has_value();
    };
    const auto sums = absl::c_count_if(core, is_sum);
    return sums > 1 || (sums > 0 && absl::c_any_of(core, accumulates));
  }

  // A sum may be one of them.
  bool LoadsIndices() const {
    bool found = false;
    for (const Item& item : core_) {
      VisitItems(item, [&](const Item& inner) {
        VisitIndices(program_, inner, [&](IndexId e) { found = found || pool_.HasLoad(e); });
      });
    }
    return found;
  }

  // ---- Which sums

  // One after the other, until what is left is a contraction.
  std::vector<Sum> SumsToSplit() {
    const loop::Footprint made = FootprintOf(program_, core_);
    const std::vector<TensorId> declared = fusion::DeclaredIn(core_);
    std::vector<Sum> sums;
    for (size_t i = 0; i < core_.size(); ++i) {
      const auto sum = SumAt(i, made, declared);
      if (!sum) continue;
      sums.push_back(*sum);
      if (IsContraction(Without(sums))) break;
    }
    return sums;
  }

  absl::optional<Sum> SumAt(size_t item, const loop::Footprint& made, const std::vector<TensorId>& declared) {
    const Loop* sum = core_[item].As<Loop>();
    const Statement* step = sum == nullptr ? nullptr : OnlyStatementIn(*sum);
    if (step == nullptr || !absl::c_linear_search(declared, step->target.tensor) || !HasManySteps(*sum)) return absl::nullopt;
    const TensorId accumulator = step->target.tensor;
    if (NumWrites(accumulator) != 1) return absl::nullopt;
    const loop::Footprint own = FootprintOf(program_, core_[item]);
    const bool waits = absl::c_any_of(own.reads, [&](TensorId tensor) {
      return tensor != accumulator && (made.Changes(tensor) || absl::c_linear_search(declared, tensor));
    });
    if (waits) return absl::nullopt;
    const Loop alone = Whole({fusion::DeclarationOf(accumulator), core_[item]});
    const auto found = ContractionOf(program_, alone);
    if (!found) return absl::nullopt;
    size_t shared = 0;
    while (band_[shared]->var != found->row->var && band_[shared]->var != found->column->var) ++shared;
    return Sum{item, accumulator, shared};
  }

  const Statement* OnlyStatementIn(const Loop& outermost) const {
    const Loop* innermost = &outermost;
    while (const Loop* inner = OnlyLoopIn(innermost->body)) innermost = inner;
    return innermost->body.size() == 1 ? innermost->body[0].As<Statement>() : nullptr;
  }

  bool HasManySteps(const Loop& outermost) {
    int64_t steps = 1;
    for (const Loop* loop = &outermost; loop != nullptr; loop = OnlyLoopIn(loop->body)) {
      const auto length = KnownLength(program_, *loop);
      if (!length || *length >= kLeastSteps) return true;
      steps *= std::max<int64_t>(*length, 0);
    }
    return steps >= kLeastSteps;
  }

  int64_t NumWrites(TensorId tensor) const {
    return absl::c_count_if(core_, [&](const Item& item) { return FootprintOf(program_, item).Changes(tensor); });
  }

  // ---- The nests

  // The band's loops around another core.
  Loop Whole(Scope core) const {
    for (size_t i = band_.size(); i-- > 0;) core = Around(*band_[i], std::move(core));
    return std::move(*core[0].As<Loop>());
  }

  // The core without these sums and their accumulators.
  Scope Without(const std::vector<Sum>& sums) const {
    Scope rest;
    for (size_t i = 0; i < core_.size(); ++i) {
      const auto* declaration = core_[i].As<loop::Declaration>();
      const bool goes = absl::c_any_of(sums, [&](const Sum& sum) {
        return sum.item == i || (declaration != nullptr && declaration->tensor == sum.accumulator);
      });
      if (!goes) rest.push_back(core_[i]);
    }
    return rest;
  }

  bool IsContraction(Scope core) {
    const Loop whole = Whole(std::move(core));
    return ContractionOf(program_, whole).has_value();
  }

  Scope Rebuilt(const std::vector<Sum>& sums) {
    size_t shared = band_.size() - 2;
    for (const Sum& sum : sums) shared = std::min(shared, sum.shared);
    Scope rest = Without(sums);
    Scope scope;
    for (const Sum& sum : sums) {
      IndexList place;
      Shape shape;
      for (size_t i = shared; i < band_.size(); ++i) {
        place.push_back(pool_.Sub(pool_.Var(band_[i]->var), band_[i]->begin));
        shape.push_back(ranges_.LengthOf(*band_[i]));
      }
      const TensorId kept = program_.AddTensor({"sums", program_[sum.accumulator].type, shape, loop::Storage::kTemp});
      AssumeFewElements(program_, shape);
      scope.push_back(fusion::DeclarationOf(kept));
      Append(scope, Alone(sum, shared, kept, place));
      VisitStatements(rest, [&](Statement& statement) {
        RewriteLoads(program_, statement, sum.accumulator, [&](Access& load) { load = {kept, place}; });
      });
    }
    Append(scope, Inside(shared, std::move(rest)));
    for (size_t i = shared; i-- > 0;) scope = Around(*band_[i], std::move(scope));
    return scope;
  }

  // The loops from number `shared` on around a core.
  Scope Inside(size_t shared, Scope core) const {
    for (size_t i = band_.size(); i-- > shared;) core = Around(*band_[i], std::move(core));
    return core;
  }

  Scope Alone(const Sum& sum, size_t shared, TensorId kept, const IndexList& place) {
    Scope core = {fusion::DeclarationOf(sum.accumulator), core_[sum.item]};
    Append(core, Assignment(kept, place, program_.AddLoad({sum.accumulator, {}})));
    const Scope loops = Inside(shared, std::move(core));
    absl::optional<Loop> fresh = fusion::FreshCopy(program_, ranges_, *loops[0].As<Loop>());
    return fresh ? ScopeOf(*std::move(fresh)) : Scope();
  }

  Program& program_;
  IndexPool& pool_;
  loop::Ranges& ranges_;
  std::vector<const Loop*> band_;
  Scope core_;
};

}  // namespace

absl::StatusOr<bool> SplitContractions(Program& program) {
  loop::Ranges ranges(program);
  Splitter splitter(program, ranges);
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return splitter.Split(loop); });
}

}  // namespace nestor::jit
