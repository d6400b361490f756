// Loop distribution guided by its use: fusion has merged nests as far as dependences allow, but a
// contraction wants a nest by itself. A sum that reads nothing that its nest computes can run
// before the nest, for all rows and columns; its results wait in a temporary. Whether a sum is
// worth that is asked of the matcher itself: it is tried in a copy of the loops, with nothing else
// in them, and only sums that ContractionOf accepts are split off, until the rest is a contraction,
// or holds none.
//
// Both nests keep the order of their steps, and nothing is computed twice. A temporary for all rows
// and columns must have a size that memory can be planned for: extents of symbols only.
#include "jit/schedule/split_contractions.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/kept_sum.h"
#include "jit/schedule/padded_sums.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/split_residues.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// With fewer steps, a contraction is not worth a temporary.
constexpr int64_t kLeastSteps = 8;

// Loops, each inside the one before.
using Path = std::vector<const Loop*>;

class Splitter {
 public:
  Splitter(Program& program, Ranges& ranges)
      : program_(program), pool_(program.pool), ranges_(ranges) {}

  // Splits the first core that gains by it; the pass asks again for the others.
  absl::optional<Scope> Split(const Loop& nest) {
    std::vector<Path> paths;
    Path path;
    FindCores(nest, path, paths);
    for (Path& to_core : paths) {
      path_ = std::move(to_core);
      const std::vector<Sum> sums = SumsToSplit();
      if (!sums.empty()) return Rebuilt(sums);
    }
    return absl::nullopt;
  }

 private:
  struct Sum {
    size_t item;  // of the core: its outermost loop
    TensorId accumulator;
    size_t shared;  // leading loops of the path that are neither rows nor columns
    // It is a contraction once each remainder of a quotient has its own nest (split_residues.h).
    bool by_rests;
  };

  const Scope& Core() const { return path_.back()->body; }

  // ---- Where sums are

  // Finds loops whose bodies hold other items beside sums, or which are not all that is
  // in the nest.
  void FindCores(const Loop& loop, Path& path, std::vector<Path>& paths) const {
    path.push_back(&loop);
    if (path.size() > 1 && MaySplit(path)) paths.push_back(path);
    for (const Item& item : loop.body) {
      if (const Loop* inner = item.As<Loop>()) FindCores(*inner, path, paths);
    }
    path.pop_back();
  }

  static bool MaySplit(const Path& path) {
    const Scope& core = path.back()->body;
    return IsPerfect(path) ? HoldsMore(core) : HasColumns(path) && HoldsSum(core);
  }

  static bool IsPerfect(const Path& path) {
    const auto has_one = [](const Loop* loop) { return OnlyLoopIn(loop->body) != nullptr; };
    return std::all_of(path.begin(), path.end() - 1, has_one);
  }

  // Whether the last two loops are perfectly nested. A single loop runs in strips (strips.h).
  static bool HasColumns(const Path& path) {
    return OnlyLoopIn(path[path.size() - 2]->body) != nullptr;
  }

  static bool IsLoop(const Item& item) { return item.As<Loop>() != nullptr; }
  static bool HoldsSum(const Scope& core) { return absl::c_any_of(core, IsLoop); }

  // Whether there are sums beside a sum: others, or one over the nest's own loops. If a sum with
  // nothing beside it is no contraction, a nest of its own does not make it one.
  static bool HoldsMore(const Scope& core) {
    const auto accumulates = [](const Item& item) {
      const auto* statement = item.As<Statement>();
      return statement != nullptr && statement->op.has_value();
    };
    const auto sums = absl::c_count_if(core, IsLoop);
    return sums > 1 || (sums > 0 && absl::c_any_of(core, accumulates));
  }

  // ---- Which sums

  // Takes one sum after the other, until the rest is a contraction.
  std::vector<Sum> SumsToSplit() {
    std::vector<Sum> sums;
    if (LoadsIndices() || IsAloneByRests() || IsContraction(sums) || IsSplitOff() ||
        IsAloneOncePadded())
      return sums;
    const Footprint made = FootprintOf(program_, path_[0]->body);
    absl::flat_hash_set<TensorId> own;  // of the nest
    for (const Item& item : path_[0]->body) {
      VisitItems(item, [&](const Item& inner) {
        if (const auto* declaration = inner.As<Declaration>()) own.insert(declaration->tensor);
      });
    }
    footprints_.clear();
    for (const Item& item : Core()) footprints_.push_back(FootprintOf(program_, item));
    const auto is_made = [&](TensorId tensor) {
      return made.Changes(tensor) || own.contains(tensor);
    };
    std::vector<Sum> candidates;
    for (size_t i = 0; i < Core().size(); ++i) {
      if (const auto sum = SumAt(i, is_made)) candidates.push_back(*sum);
    }
    // Sums that are contractions only by remainders go first, as the rest must not be one of these.
    std::stable_partition(candidates.begin(), candidates.end(),
                          [](const Sum& sum) { return sum.by_rests; });
    for (const Sum& sum : candidates) {
      sums.push_back(sum);
      if (IsContraction(sums)) break;
    }
    // Memory is planned for the whole program: extents are the same everywhere.
    const Shape extents = LengthsOf(ranges_, From(FirstOf(sums)));
    if (absl::c_any_of(extents, [&](IndexId extent) { return pool_.HasVar(extent); })) return {};
    return sums;
  }

  // The loops from this number on include rows and columns of all the sums.
  size_t FirstOf(const std::vector<Sum>& sums) const {
    size_t first = path_.size() - 2;
    for (const Sum& sum : sums) first = std::min(first, sum.shared);
    return first;
  }

  absl::Span<const Loop* const> From(size_t first) const {
    return absl::MakeConstSpan(path_).subspan(first);
  }

  // Whether each remainder of a quotient will have a nest of its own, with nothing beside the sum.
  bool IsAloneByRests() const {
    const auto is_divided = [&](const Loop* loop) {
      return DivisorOf(program_, *loop).has_value();
    };
    return !HoldsMore(Core()) && absl::c_any_of(path_, is_divided);
  }

  // Whether the core is that of a sum that was split off: it is not split off again.
  bool IsSplitOff() const {
    return absl::c_any_of(Core(), [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      return statement != nullptr && kept_.contains(statement->target.tensor);
    });
  }

  // Whether padded_sums makes a contraction of the nest around the core as it is.
  bool IsAloneOncePadded() {
    if (HoldsMore(Core())) return false;
    const auto sum = absl::c_find_if(Core(), IsLoop);
    if (sum == Core().end()) return false;
    const size_t first = FirstOfPerfect();
    for (size_t i = 0; i < first; ++i) ranges_.Enter(*path_[i]);
    const bool is_alone = SharedOncePadded(*path_[first], *sum->As<Loop>()).has_value();
    for (size_t i = 0; i < first; ++i) ranges_.Leave();
    return is_alone;
  }

  // The loops from this number on are perfectly nested around the core.
  size_t FirstOfPerfect() const {
    size_t first = path_.size() - 1;
    while (first > 0 && OnlyLoopIn(path_[first - 1]->body) != nullptr) --first;
    return first;
  }

  // Whether an index in the core is loaded: it may be loaded from a sum.
  bool LoadsIndices() const {
    bool found = false;
    for (const Item& item : Core()) {
      VisitItems(item, [&](const Item& inner) {
        VisitIndices(program_, inner, [&](IndexId e) { found = found || pool_.HasLoad(e); });
      });
    }
    return found;
  }

  // The sum at that item of the core, if it could run first (nothing that it reads is made in the
  // nest, nothing else changes its accumulator), has enough steps, and is a contraction alone.
  absl::optional<Sum> SumAt(size_t item, absl::FunctionRef<bool(TensorId)> is_made) {
    const Loop* sum = Core()[item].As<Loop>();
    const Statement* step = sum == nullptr ? nullptr : OnlyStatementIn(*sum);
    if (step == nullptr || !HasManySteps(*sum)) return absl::nullopt;
    const TensorId accumulator = step->target.tensor;
    if (!absl::c_linear_search(DeclaredIn(Core()), accumulator)) return absl::nullopt;
    const auto changes = [&](const Footprint& footprint) { return footprint.Changes(accumulator); };
    if (absl::c_count_if(footprints_, changes) != 1) return absl::nullopt;
    const auto waits_for = [&](TensorId tensor) {
      return tensor != accumulator && is_made(tensor) &&
             !NESTOR_MUTANT("split_sum_of_what_is_made");
    };
    if (absl::c_any_of(footprints_[item].reads, waits_for)) return absl::nullopt;
    const Scope alone = Inside(0, {DeclarationOf(accumulator), Core()[item]});
    const Loop& nest = *alone[0].As<Loop>();
    const absl::optional<Loop> residue = FirstResidueOf(program_, ranges_, nest);
    absl::optional<size_t> shared = SharedLoops(program_, residue ? *residue : nest);
    if (!shared && !residue) shared = SharedOncePadded(nest, *sum);
    if (!shared) return absl::nullopt;
    return Sum{item, accumulator, *shared, residue.has_value()};
  }

  // How many outer loops of the nest are neither rows nor columns; nullopt if it is no contraction.
  static absl::optional<size_t> SharedLoops(Program& program, const Loop& nest) {
    const absl::optional<Contraction> found = ContractionOf(program, nest);
    if (!found) return absl::nullopt;
    size_t shared = 0;
    for (const Loop* loop = &nest; loop != found->row && loop != found->column;
         loop = OnlyLoopIn(loop->body))
      ++shared;
    return shared;
  }

  // The same where padding the sum makes a contraction of the nest (padded_sums.h).
  absl::optional<size_t> SharedOncePadded(const Loop& nest, const Loop& sum) {
    const auto moves = [&](const Loop* loop) { return BoundsMove(pool_, *loop); };
    if (!absl::c_any_of(BandOf(sum), moves)) return absl::nullopt;
    const auto values = static_cast<int64_t>(program_.values.size());
    const absl::optional<Loop> padded = RunningOn(program_, ranges_, nest);
    const absl::optional<size_t> shared = padded ? SharedLoops(program_, *padded) : absl::nullopt;
    // It was only tried: the program must be as before.
    program_.values.erase(program_.values.begin() + values, program_.values.end());
    return shared;
  }

  // Unknown lengths count as many.
  bool HasManySteps(const Loop& outermost) {
    int64_t steps = 1;
    for (const Loop* loop : BandOf(outermost)) {
      const auto length = KnownLength(program_, *loop);
      if (!length || *length >= kLeastSteps) return true;
      steps *= std::max<int64_t>(*length, 0);
    }
    return steps >= kLeastSteps;
  }

  // Whether the perfect nest around the core is a contraction without these sums.
  bool IsContraction(const std::vector<Sum>& without) {
    Scope core = Core();
    Remove(without, core);
    const Scope nest = Inside(FirstOfPerfect(), std::move(core));
    return ContractionOf(program_, *nest[0].As<Loop>()).has_value();
  }

  // ---- The nests

  static Scope::iterator LoopIn(Scope& scope, int32_t var) {
    return absl::c_find_if(
        scope, [&](const Item& item) { return IsLoop(item) && item.As<Loop>()->var == var; });
  }

  // The loops from number `from` on around a core.
  Scope Inside(size_t from, Scope core) const { return Around(From(from), std::move(core)); }

  // Removes the sums, and the declarations of their accumulators, from the core.
  static void Remove(const std::vector<Sum>& sums, Scope& core) {
    Scope rest;
    for (size_t i = 0; i < core.size(); ++i) {
      const auto* declaration = core[i].As<Declaration>();
      const bool goes = absl::c_any_of(sums, [&](const Sum& sum) {
        return sum.item == i || (declaration != nullptr && declaration->tensor == sum.accumulator);
      });
      if (!goes) rest.push_back(std::move(core[i]));
    }
    core = std::move(rest);
  }

  // Puts the nests of the sums before loop number `shared` of the path, and removes the sums from
  // the core.
  Scope Rebuilt(const std::vector<Sum>& sums) {
    const size_t shared = FirstOf(sums);
    Scope whole = ScopeOf(*path_[0]);
    // The scope that holds loop number `shared`, and the core.
    Scope* around = &whole;
    Scope* core = &whole;
    for (size_t i = 0; i < path_.size(); ++i) {
      if (i == shared) around = core;
      core = &LoopIn(*core, path_[i]->var)->As<Loop>()->body;
    }
    Remove(sums, *core);
    Scope before;
    for (const Sum& sum : sums) {
      const KeptSum kept(program_, ranges_, "sums", sum.accumulator, From(shared));
      kept_.insert(kept.tensor());
      before.push_back(DeclarationOf(kept.tensor()));
      Append(before, Alone(sum, shared, kept));
      kept.LoadInstead(*core);
    }
    around->insert(LoopIn(*around, path_[shared]->var), std::make_move_iterator(before.begin()),
                   std::make_move_iterator(before.end()));
    return whole;
  }

  // The sum, and the store of its result, in copies of the loops from number `shared` on.
  Scope Alone(const Sum& sum, size_t shared, const KeptSum& kept) {
    Scope core = {DeclarationOf(sum.accumulator), Core()[sum.item]};
    Append(core, kept.Store());
    const Scope loops = Inside(shared, std::move(core));
    absl::optional<Loop> fresh = FreshCopy(program_, ranges_, *loops[0].As<Loop>());
    return fresh ? ScopeOf(*std::move(fresh)) : Scope();
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  absl::flat_hash_set<TensorId> kept_;  // the temporaries of sums that were split off
  Path path_;                           // to the core
  std::vector<Footprint> footprints_;   // of the core's items
};

}  // namespace

absl::StatusOr<bool> SplitContractions(Program& program) {
  Ranges ranges(program);
  Splitter splitter(program, ranges);
  bool changed = false;
  // A nest may hold several cores: one is split in each round.
  while (ReplaceLoops(program, ranges, [&](Loop& loop) { return splitter.Split(loop); }))
    changed = true;
  return changed;
}

}  // namespace nestor::loop
