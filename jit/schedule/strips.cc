// Attention computes, for each row of q, a row of scores, its maximum, exponentials, and a product
// with v. Fused at the row, the scores stay in the cache, but each product has one row, and no
// tile. Here each part runs for a strip of 24 rows before the next part: the products get rows for
// their tiles, and the scores of a strip still fit a cache (the blocking of Dao et al.,
// "FlashAttention", 2022, without its rescaling of partial rows).
//
// Loops that may run over rows (strip_rows.h) are tried on a copy of the program, which is kept if
// one of them yields a contraction: only ContractionOf knows what is one.
//
// The body becomes a list of items, with sums split off from loops that do more. Each sum is a
// group, and so are all items between two sums. A loop with such sums further inside, as one over
// the heads of attention, is opened: its body is divided in its turn, and the loop is put around
// its groups. Since no iteration of the loop over rows depends on another, each group may run for
// all rows of a strip before the next (loop distribution within the strip); only tensors that live
// from one group to another must then exist once for each row (scalar expansion).
#include "jit/schedule/strips.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_tiles.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/split_sums.h"
#include "jit/schedule/stored_whole.h"
#include "jit/schedule/strip_rows.h"
#include "jit/schedule/widen.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

class Strips {
 public:
  // `stored_whole`: see stored_whole.h.
  Strips(Program& program, Ranges& ranges, const StripOptions& options,
         const absl::flat_hash_set<TensorId>& stored_whole, const Loop& row)
      : program_(program), pool_(program.pool), ranges_(ranges), options_(options),
        stored_whole_(stored_whole), row_(row), make_(program) {}

  // nullopt where this yields no contraction; then all tensors are as they were.
  absl::optional<Scope> Run() {
    std::vector<std::pair<TensorId, TensorInfo>> before;
    VisitItems(row_.body, [&](const Item& item) {
      const auto* declaration = item.As<Declaration>();
      if (declaration != nullptr)
        before.emplace_back(declaration->tensor, program_[declaration->tensor]);
    });
    absl::optional<Scope> scope = Try();
    if (!scope) {
      for (auto& [tensor, info] : before) program_[tensor] = std::move(info);
      return absl::nullopt;
    }
    for (TensorId tensor : expanded_) {
      if (program_[tensor].shape.size() > 1) AssumeFewElements(program_, program_[tensor].shape);
    }
    return scope;
  }

 private:
  struct Level;
  // Items that run for all rows of a strip; or a loop around the groups of its body.
  struct Group {
    Scope items;
    bool is_sum = false;
    const Loop* opened = nullptr;
    std::unique_ptr<Level> inside;  // of the opened loop
  };
  // The scope of the rows, or of an opened loop, as groups that run strip by strip.
  struct Level {
    std::vector<TensorId> declared;  // in the scope
    std::vector<TensorId> expanded;  // those with an axis for the strip's rows
    std::vector<Group> groups;
  };

  // Strips with their groups; nullopt where no group is a contraction, or rows are few.
  absl::optional<Scope> Try() {
    rows_ = ranges_.LengthOf(row_);
    if (ranges_.Less(rows_, pool_.Const(kLeastRows))) return absl::nullopt;
    ranges_.Enter(row_);
    Level level = Divide(row_.body, {row_, {}});
    ranges_.Leave();
    strips_ =
        pool_.Div(pool_.Add(rows_, pool_.Const(options_.rows - 1)), pool_.Const(options_.rows));
    if (!KeepsOrder(level) || !Expand(level)) return absl::nullopt;
    Scope scope = pool_.IsConst(strips_, 1)
                      ? Groups(level, pool_.Const(0))
                      : make_.Counted("p", strips_, kPlain,
                                      [&](IndexId strip) { return Groups(level, strip); });
    if (!has_contraction_ || IsVersionForFew(program_, rows_, kLeastRows, options_.version)) {
      return absl::nullopt;
    }
    return scope;
  }

  // ---- Groups

  // Divides a scope at that place.
  Level Divide(const Scope& scope, const RowPlace& place) {
    Level level;
    level.declared = DeclaredIn(scope);
    const RowPlace inside = place.Inside(scope);
    for (const Item& item : scope) {
      const auto* loop = item.As<Loop>();
      if (loop != nullptr) Divide(*loop, inside, level);
      else if (item.As<Statement>() != nullptr) AddToGroup(item, level);
    }
    return level;
  }

  // Opens the loop, or splits off its sums, one after the other, and adds the rest to the last
  // group.
  void Divide(const Loop& loop, const RowPlace& place, Level& level) {
    if (OpensInStrips(program_, place, loop)) {
      ranges_.Enter(loop);
      level.groups.push_back({{}, false, &loop, std::make_unique<Level>(Divide(loop.body, place))});
      ranges_.Leave();
      return;
    }
    Loop rest = loop;
    while (auto split =
               SplitSumOff(program_, ranges_, rest, [&](const Loop&, const Statement& step) {
                 return SharesRowsAndColumns(program_, place, rest, step);
               })) {
      if (split->kept) level.declared.push_back(*split->kept);
      level.groups.push_back({ScopeOf(std::move(split->sums)), true, nullptr, nullptr});
      if (!split->rest) return;
      rest = *std::move(split->rest);
    }
    AddToGroup({std::move(rest)}, level);
  }

  // Items share a group with those before, unless these are a sum or an opened loop.
  void AddToGroup(Item item, Level& level) {
    const bool is_open =
        !level.groups.empty() && !level.groups.back().is_sum && !level.groups.back().inside;
    if (!is_open) level.groups.emplace_back();
    level.groups.back().items.push_back(std::move(item));
  }

  // Whether each tensor carried from row to row stays in one group, and, if that is in an opened
  // loop, is not carried between iterations of that loop as well: then rows keep their order.
  bool KeepsOrder(const Level& level) const {
    std::vector<Footprint> parts;
    return KeepsOrder(level, CarriedTensors(program_, row_), parts) &&
           AreCarriedInOnePart(program_, row_, parts);
  }
  bool KeepsOrder(const Level& level, const std::vector<TensorId>& carried,
                  std::vector<Footprint>& parts) const {
    return absl::c_all_of(level.groups, [&](const Group& group) {
      if (!group.inside) {
        parts.push_back(FootprintOf(program_, group.items));
        return true;
      }
      const std::vector<TensorId> by_opened = CarriedTensors(program_, *group.opened);
      return absl::c_none_of(carried,
                             [&](TensorId t) { return absl::c_linear_search(by_opened, t); }) &&
             KeepsOrder(*group.inside, carried, parts);
    });
  }

  // ---- What lives from group to group

  bool Touches(const Group& group, TensorId tensor) const {
    if (group.inside) {
      return absl::c_any_of(group.inside->groups,
                            [&](const Group& inner) { return Touches(inner, tensor); });
    }
    return FootprintOf(program_, group.items).Touches(tensor);
  }
  bool Changes(const Group& group, TensorId tensor) const {
    if (group.inside) {
      return absl::c_any_of(group.inside->groups,
                            [&](const Group& inner) { return Changes(inner, tensor); });
    }
    return FootprintOf(program_, group.items).Changes(tensor);
  }

  // Whether more than one group of rows touches the tensor.
  bool IsShared(const Level& level, TensorId tensor) const {
    const auto number =
        absl::c_count_if(level.groups, [&](const Group& group) { return Touches(group, tensor); });
    const auto is_inside = [&](const Group& group) {
      return group.inside && Touches(group, tensor);
    };
    return number > 1 || absl::c_any_of(level.groups, is_inside);
  }

  // The largest that the extent is at some row.
  IndexId OfAllRows(IndexId extent) {
    if (!HoldsVar(pool_, extent, row_.var)) return extent;
    const auto extremes =
        ExtremesOver(program_, extent, row_.var, row_.begin, pool_.Sub(row_.end, pool_.Const(1)));
    return extremes ? extremes->greatest : extent;
  }

  // Gives shared tensors an axis for the strip's rows, of which a known number may be fewer: an
  // element that is never written may not be read, be it as an idle lane. False where extents of one
  // move with a loop, the row's or one around, since memory is planned for the whole program.
  bool Expand(Level& level) {
    for (size_t i = 0; i < level.declared.size(); ++i) {  // KeepAccumulator adds to it
      const TensorId tensor = level.declared[i];
      if (!IsShared(level, tensor)) continue;
      KeepAccumulator(tensor, level);
      Shape shape = program_[tensor].shape;
      for (IndexId& extent : shape) extent = OfAllRows(extent);
      if (absl::c_any_of(shape, [&](IndexId extent) { return pool_.HasVar(extent); })) return false;
      shape.insert(shape.begin(), pool_.IsConst(strips_, 1) ? rows_ : pool_.Const(options_.rows));
      program_[tensor].shape = std::move(shape);
      level.expanded.push_back(tensor);
      expanded_.push_back(tensor);
    }
    absl::c_copy(level.declared, std::back_inserter(declared_));
    return absl::c_all_of(
        level.groups, [&](const Group& group) { return !group.inside || Expand(*group.inside); });
  }

  // A scalar that only the first of its groups accumulates into stays a scalar there, and is stored
  // for the others: sums in lanes begin with scalars.
  void KeepAccumulator(TensorId tensor, Level& level) {
    std::vector<Group>& groups = level.groups;
    TensorInfo& info = program_[tensor];
    if (info.storage != Storage::kAccumulator || !info.shape.empty()) return;
    const auto first =
        absl::c_find_if(groups, [&](const Group& group) { return Touches(group, tensor); });
    const auto changes = [&](const Group& group) { return Changes(group, tensor); };
    if (first->inside || std::any_of(first + 1, groups.end(), changes) ||
        LooksUp(first->items, tensor))
      return;
    const TensorId own = program_.AddTensor(TensorInfo(program_[tensor]));
    Rename(first->items, tensor, own);
    program_[tensor].storage = Storage::kTemp;
    program_[tensor].type = ReadType(program_[own]);
    level.declared.push_back(own);
    Append(first->items, Assignment(tensor, {}, program_.AddLoad({own})));
  }

  // Whether an index is read from the tensor.
  bool LooksUp(const Scope& scope, TensorId tensor) const {
    bool any = false;
    VisitItems(scope, [&](const Item& item) {
      VisitIndices(program_, item, [&](IndexId e) { any = any || LoadsFrom(pool_, e, tensor); });
    });
    return any;
  }

  void Rename(Scope& scope, TensorId tensor, TensorId by) {
    VisitStatements(scope, [&](Statement& statement) {
      if (statement.target.tensor == tensor) statement.target.tensor = by;
      RewriteLoads(program_, statement, tensor, [&](Access& access) { access.tensor = by; });
    });
  }

  // ---- Columns that differ from row to row

  // Where the number of columns depends on the row, each row of the strip takes the columns of all
  // its rows: nothing reads what it stores beyond its own. REQUIRES: `column` is the loop of the
  // group at the row `r` of the strip.
  void Widen(const Level& level, const Group& group, Loop& column, IndexId strip, IndexId r) {
    if (!HoldsVar(pool_, column.begin, row_.var) && !HoldsVar(pool_, column.end, row_.var)) return;
    const IndexId before = pool_.Add(row_.begin, pool_.Mul(pool_.Const(options_.rows), strip));
    const IndexId end = pool_.Min(pool_.Add(before, pool_.Const(options_.rows)), row_.end);
    const IndexId last = pool_.Sub(end, pool_.Const(1));
    const auto begins = ExtremesOver(program_, column.begin, row_.var, before, last);
    const auto ends = ExtremesOver(program_, column.end, row_.var, before, last);
    if (!begins || !ends || !StoresOnlyItsOwn(level, group, column)) return;
    Loop wide = column;
    wide.begin = begins->least;
    wide.end = ends->greatest;
    ranges_.Enter(
        {static_cast<int32_t>(pool_.VarValue(strip)), pool_.Const(0), strips_, 1, {}, {}});
    for (const Loop* opened : opened_) ranges_.Enter(*opened);
    ranges_.Enter({static_cast<int32_t>(pool_.VarValue(r)),
                   pool_.Const(0),
                   pool_.Sub(end, before),
                   1,
                   {},
                   {}});
    ranges_.Enter({row_.var, before, end, 1, {}, {}});
    if (IsInRange(program_, ranges_, wide)) column = std::move(wide);
    for (size_t i = 0; i < opened_.size() + 3; ++i) ranges_.Leave();
  }

  // Whether it stores only to temporaries of its level that no earlier group changes, and reads
  // only inputs, temporaries that are stored whole, and elements that are the same for all columns.
  bool StoresOnlyItsOwn(const Level& level, const Group& group, const Loop& column) const {
    bool good = true;
    const auto stores = [&](TensorId tensor) {
      const bool is_own = program_[tensor].storage == Storage::kTemp &&
                          absl::c_linear_search(level.declared, tensor);
      const auto changes = [&](const Group& earlier) { return Changes(earlier, tensor); };
      return is_own && std::none_of(&level.groups[0], &group, changes);
    };
    const std::vector<TensorId> own = DeclaredIn(column.body);
    VisitItems(column.body, [&](const Item& item) {
      VisitAccesses(
          program_, item, [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
            if (absl::c_linear_search(own, tensor)) return;
            const bool moves =
                absl::c_any_of(place, [&](IndexId e) { return HoldsVar(pool_, e, column.var); });
            const bool stays = !moves || HasAllValues(program_, stored_whole_, tensor);
            good = good && (kind == AccessKind::kRead ? stays : stores(tensor));
          });
    });
    return good;
  }

  // ---- Strips

  // The groups in their order, after the declarations of what lives from one to another.
  Scope Groups(Level& level, IndexId strip) {
    Scope scope;
    for (TensorId tensor : level.expanded) scope.push_back(DeclarationOf(tensor));
    for (Group& group : level.groups) {
      Append(scope, group.inside ? Opened(group, strip) : OverRows(level, group, strip));
    }
    return scope;
  }

  Scope Opened(Group& group, IndexId strip) {
    opened_.push_back(group.opened);
    Scope scope = Around(*group.opened, Groups(*group.inside, strip));
    opened_.pop_back();
    return scope;
  }

  // The group at each row of the strip.
  Scope OverRows(const Level& level, const Group& group, IndexId strip) {
    const IndexId first = pool_.Mul(pool_.Const(options_.rows), strip);
    const IndexId count = pool_.Min(pool_.Const(options_.rows), pool_.Sub(rows_, first));
    Scope scope = make_.Counted("r", count, kPlain, [&](IndexId r) {
      std::vector<TensorId> own;
      for (TensorId tensor : declared_) {
        if (!absl::c_linear_search(expanded_, tensor) && Touches(group, tensor))
          own.push_back(tensor);
      }
      Scope body = WithDeclarations(program_, group.items, own);
      RewritePlaces(program_, body, [&](TensorId tensor, IndexList& place) {
        if (!absl::c_linear_search(expanded_, tensor)) return false;
        const bool stale = NESTOR_MUTANT("strip_reads_row_before") && !Changes(group, tensor);
        place.insert(place.begin(),
                     stale ? pool_.Max(pool_.Sub(r, pool_.Const(1)), pool_.Const(0)) : r);
        return true;
      });
      const auto is_loop = [](const Item& item) { return item.As<Loop>() != nullptr; };
      if (group.is_sum) Widen(level, group, *absl::c_find_if(body, is_loop)->As<Loop>(), strip, r);
      VarReplacement replace(program_);
      replace.Set(row_.var, pool_.Add(pool_.Add(row_.begin, first), r));
      RewriteIndices(program_, body, [&](IndexId e) { return replace(e); });
      return body;
    });
    has_contraction_ =
        has_contraction_ ||
        (group.is_sum && ContractionOf(program_, *scope.back().As<Loop>(), stored_whole_));
    return scope;
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  const StripOptions& options_;
  const absl::flat_hash_set<TensorId>& stored_whole_;
  const Loop& row_;
  LoopMaker make_;
  IndexId rows_, strips_;                      // how many
  std::vector<TensorId> declared_, expanded_;  // of all levels
  std::vector<const Loop*> opened_;            // around the groups that are made
  bool has_contraction_ = false;
};

}  // namespace

// The strips are tried on a copy: an attempt adds tensors and variables before it may fail.
absl::StatusOr<bool> RunInStrips(Program& program, const StripOptions& options) {
  const absl::flat_hash_set<int32_t> rows = StripRows(program);
  if (rows.empty()) return false;
  const absl::flat_hash_set<TensorId> stored_whole = StoredWhole(program);
  Program tried = program;
  Ranges ranges(tried);
  const bool changed = ReplaceLoops(tried, ranges, [&](Loop& loop) -> absl::optional<Scope> {
    if (!rows.contains(loop.var)) return absl::nullopt;
    return Strips(tried, ranges, options, stored_whole, loop).Run();
  });
  // The version for few rows has no strips, but the test that says so.
  const bool is_taken = changed || tried.version.size() > program.version.size();
  if (is_taken) program = std::move(tried);
  return is_taken;
}

}  // namespace nestor::loop
