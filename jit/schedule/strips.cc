// Loops that may be ones of rows are tried on a copy of the program, which is kept if a
// contraction comes of one: what is one is for ContractionOf alone to say.
//
// The body becomes a list of items, sums split off from loops that do more. Each sum is a
// group, and so is all that lies between two of them. Since no iteration of the loop depends
// on another, each group may run for all rows of a strip before the next; only what lives
// from one group to another must then be there once for each row.
#include "jit/schedule/strips.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_tiles.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/split_sums.h"
#include "jit/schedule/widen.h"
#include "loop_ir/dependence.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

using loop::Access;
using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::TensorId;
using loop::Value;
using loop::ValueId;

// Whether what is summed has factors of the row and of the column, and none of both. What the
// row's loop declares is the row's.
bool SharesRowsAndColumns(const Program& program, const Loop& row, const Loop& column, const Statement& step) {
  const std::vector<TensorId> of_row = fusion::DeclaredIn(row.body);
  bool any_row = false, any_column = false, any_both = false;
  VisitValues(program, step.value, [&](ValueId, const Value& value) {
    const auto* load = absl::get_if<loop::LoadValue>(&value.node);
    if (load == nullptr) return;
    const bool in_row = DependsOn(program, load->access, row) || absl::c_linear_search(of_row, load->access.tensor);
    const bool in_column = DependsOn(program, load->access, column);
    any_row |= in_row;
    any_column |= in_column;
    any_both |= in_row && in_column;
  });
  return any_row && any_column && !any_both;
}

bool HasSum(const Program& program, const Loop& row, const Loop& column) {
  return absl::c_any_of(column.body, [&](const Item& item) {
    const auto* sum = item.As<Loop>();
    const Statement* step = sum == nullptr ? nullptr : OnlyStatementIn(*sum);
    return step != nullptr && step->op && SharesRowsAndColumns(program, row, column, *step);
  });
}

// Statements that a loop of rows may hold: what divides it takes time for each pair of them.
constexpr int kMostStatements = 64;

bool IsLong(const Loop& loop) {
  int statements = 0;
  VisitItems(loop.body, [&](const Item& item) { statements += item.As<Statement>() != nullptr; });
  return statements > kMostStatements;
}

// Whether one of the parts alone touches each tensor that goes from row to row.
bool AreCarriedInOnePart(const Program& program, const Loop& rows, const std::vector<loop::Footprint>& parts) {
  return absl::c_all_of(CarriedTensors(program, rows), [&](TensorId tensor) {
    return absl::c_count_if(parts, [&](const loop::Footprint& part) { return part.Touches(tensor); }) == 1;
  });
}

// Whether each part of the body may run for some rows before the next part does: what goes from
// row to row, a sum over rows above all, stays in one part, and so in the order of the rows.
bool MayDivide(const Program& program, const Loop& rows) {
  std::vector<loop::Footprint> parts;
  for (const Item& item : rows.body) parts.push_back(FootprintOf(program, item));
  return AreCarriedInOnePart(program, rows, parts);
}

// Loops that may be ones of rows, outer ones first.
void FindRows(Program& program, const Scope& scope, absl::flat_hash_set<int32_t>& rows) {
  for (const Item& item : scope) {
    const auto* loop = item.As<Loop>();
    if (loop == nullptr || ContractionOf(program, *loop)) continue;
    const bool has_sum = loop->step == 1 && absl::c_any_of(loop->body, [&](const Item& inner) {
      const auto* column = inner.As<Loop>();
      return column != nullptr && HasSum(program, *loop, *column);
    });
    if (has_sum && !IsLong(*loop) && MayDivide(program, *loop)) rows.insert(loop->var);
    FindRows(program, loop->body, rows);
  }
}

class Strips {
 public:
  Strips(Program& program, loop::Ranges& ranges, const StripOptions& options, const Loop& row)
      : program_(program), pool_(program.pool), ranges_(ranges), options_(options), row_(row), make_(program),
        declared_(fusion::DeclaredIn(row.body)) {}

  // nullopt where no contraction comes of it; then all tensors are as they were.
  absl::optional<Scope> Run() {
    std::vector<std::pair<TensorId, loop::TensorInfo>> before;
    VisitItems(row_.body, [&](const Item& item) {
      const auto* declaration = item.As<loop::Declaration>();
      if (declaration != nullptr) before.emplace_back(declaration->tensor, program_[declaration->tensor]);
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
  struct Group {
    Scope items;
    bool is_sum;
  };

  absl::optional<Scope> Try() {
    rows_ = ranges_.LengthOf(row_);
    if (ranges_.Less(rows_, pool_.Const(kLeastRows))) return absl::nullopt;
    Scope scope = FewRows();
    ranges_.Enter(row_);
    Divide();
    ranges_.Leave();
    if (!KeepOrder() || !Expand()) return absl::nullopt;
    bool any = false;
    strips_ = pool_.Div(pool_.Add(rows_, pool_.Const(options_.rows - 1)), pool_.Const(options_.rows));
    if (many_) strips_ = OnlyIf(pool_, *many_, strips_);
    Append(scope, make_.Counted("p", strips_, kPlain, [&](IndexId strip) {
      Scope groups;
      for (TensorId tensor : expanded_) groups.push_back(fusion::DeclarationOf(tensor));
      for (Group& group : groups_) {
        Append(groups, OverRows(group, strip));
        any = any || (group.is_sum && ContractionOf(program_, *groups.back().As<Loop>()));
      }
      return groups;
    }));
    if (!any) return absl::nullopt;
    return scope;
  }

  // The loop as it was, for few rows.
  Scope FewRows() {
    const auto known = pool_.ConstValue(rows_);
    if (known && *known >= kLeastRows) return {};
    const IndexId few = pool_.Min(pool_.Const(1), pool_.Max(pool_.Const(0), pool_.Sub(pool_.Const(kLeastRows), rows_)));
    many_ = pool_.Sub(pool_.Const(1), few);
    absl::optional<Loop> fresh = fusion::FreshCopy(program_, ranges_, row_);
    if (!fresh) return {};
    fresh->end = pool_.Add(fresh->begin, pool_.Min(rows_, pool_.Mul(pool_.Const(kLeastRows - 1), few)));
    return ScopeOf(*std::move(fresh));
  }

  // ---- Groups

  void Divide() {
    for (const Item& item : row_.body) {
      const auto* loop = item.As<Loop>();
      if (loop != nullptr) Divide(*loop);
      else if (item.As<Statement>() != nullptr) AddToGroup(item);
    }
  }

  void Divide(Loop loop) {
    while (auto split = SplitSumOff(program_, ranges_, loop, [&](const Loop&, const Statement& step) {
             return SharesRowsAndColumns(program_, row_, loop, step);
           })) {
      if (split->kept) declared_.push_back(*split->kept);
      groups_.push_back({ScopeOf(std::move(split->sums)), true});
      if (!split->rest) return;
      loop = *std::move(split->rest);
    }
    AddToGroup({std::move(loop)});
  }

  bool KeepOrder() const {
    std::vector<loop::Footprint> parts;
    for (const Group& group : groups_) parts.push_back(FootprintOf(program_, group.items));
    return AreCarriedInOnePart(program_, row_, parts);
  }

  void AddToGroup(Item item) {
    if (groups_.empty() || groups_.back().is_sum) groups_.push_back({{}, false});
    groups_.back().items.push_back(std::move(item));
  }

  // ---- What lives from group to group

  bool Touches(const Group& group, TensorId tensor) const {
    return FootprintOf(program_, group.items).Touches(tensor);
  }
  bool Changes(const Group& group, TensorId tensor) const {
    return FootprintOf(program_, group.items).Changes(tensor);
  }

  // Finds it, and gives it an axis for the strip's rows; false where its extents move with a
  // loop, the row's or one around, since memory is planned for the whole program.
  bool Expand() {
    for (size_t i = 0; i < declared_.size(); ++i) {  // KeepAccumulator adds to it
      const TensorId tensor = declared_[i];
      if (absl::c_count_if(groups_, [&](const Group& group) { return Touches(group, tensor); }) < 2) continue;
      KeepAccumulator(tensor);
      Shape& shape = program_[tensor].shape;
      if (absl::c_any_of(shape, [&](IndexId extent) { return pool_.HasVar(extent); })) return false;
      shape.insert(shape.begin(), pool_.Const(options_.rows));
      expanded_.push_back(tensor);
    }
    return true;
  }

  // A scalar that just the first of its groups accumulates into stays one there, and is stored
  // for the others: sums in lanes begin with scalars.
  void KeepAccumulator(TensorId tensor) {
    loop::TensorInfo& info = program_[tensor];
    if (info.storage != loop::Storage::kAccumulator || !info.shape.empty()) return;
    const auto first = absl::c_find_if(groups_, [&](const Group& group) { return Touches(group, tensor); });
    const auto changes = [&](const Group& group) { return Changes(group, tensor); };
    if (std::any_of(first + 1, groups_.end(), changes) || LooksUp(first->items, tensor)) return;
    const TensorId own = program_.AddTensor(loop::TensorInfo(program_[tensor]));
    Rename(first->items, tensor, own);
    program_[tensor].storage = loop::Storage::kTemp;
    program_[tensor].type = ReadType(program_[own]);
    declared_.push_back(own);
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

  // ---- Columns that are others for each row

  // Where columns are as many as a row's number says, all rows of the strip take those of any:
  // what they store beyond their own is read by nobody.
  // REQUIRES: `column` is the loop of the group at the row `r` of the strip.
  void Widen(const Group& group, Loop& column, IndexId strip, IndexId r) {
    if (!HoldsVar(pool_, column.begin, row_.var) && !HoldsVar(pool_, column.end, row_.var)) return;
    const IndexId before = pool_.Add(row_.begin, pool_.Mul(pool_.Const(options_.rows), strip));
    const IndexId end = pool_.Min(pool_.Add(before, pool_.Const(options_.rows)), row_.end);
    const IndexId last = pool_.Sub(end, pool_.Const(1));
    const auto begins = ExtremesOver(program_, column.begin, row_.var, before, last);
    const auto ends = ExtremesOver(program_, column.end, row_.var, before, last);
    if (!begins || !ends || !StoresOnlyItsOwn(group, column)) return;
    Loop wide = column;
    wide.begin = begins->least;
    wide.end = ends->greatest;
    ranges_.Enter({static_cast<int32_t>(pool_.VarValue(strip)), pool_.Const(0), strips_, 1, {}, {}});
    ranges_.Enter({static_cast<int32_t>(pool_.VarValue(r)), pool_.Const(0), pool_.Sub(end, before), 1, {}, {}});
    ranges_.Enter({row_.var, before, end, 1, {}, {}});
    if (IsInRange(program_, ranges_, wide)) column = std::move(wide);
    for (int i = 0; i < 3; ++i) ranges_.Leave();
  }

  // Whether it stores to temporaries of the row that nothing has been stored to before, and
  // reads at each column what is there for all of them.
  bool StoresOnlyItsOwn(const Group& group, const Loop& column) const {
    bool good = true;
    const auto stores = [&](TensorId tensor) {
      const bool is_own = program_[tensor].storage == loop::Storage::kTemp && absl::c_linear_search(declared_, tensor);
      return is_own && std::none_of(&groups_[0], &group, [&](const Group& earlier) { return Changes(earlier, tensor); });
    };
    const std::vector<TensorId> own = fusion::DeclaredIn(column.body);
    VisitItems(column.body, [&](const Item& item) {
      VisitAccesses(program_, item, [&](TensorId tensor, absl::Span<const IndexId> place, loop::AccessKind kind) {
        if (absl::c_linear_search(own, tensor)) return;
        const bool moves = absl::c_any_of(place, [&](IndexId e) { return HoldsVar(pool_, e, column.var); });
        const bool stays = !moves || program_[tensor].storage == loop::Storage::kInput;
        good = good && (kind == loop::AccessKind::kRead ? stays : stores(tensor));
      });
    });
    return good;
  }

  // ---- Strips

  // The group at each row of the strip.
  Scope OverRows(Group& group, IndexId strip) {
    const IndexId first = pool_.Mul(pool_.Const(options_.rows), strip);
    const IndexId count = pool_.Min(pool_.Const(options_.rows), pool_.Sub(rows_, first));
    return make_.Counted("r", count, kPlain, [&](IndexId r) {
      std::vector<TensorId> own;
      for (TensorId tensor : declared_) {
        if (!absl::c_linear_search(expanded_, tensor) && Touches(group, tensor)) own.push_back(tensor);
      }
      Scope body = fusion::WithDeclarations(program_, group.items, own);
      RewritePlaces(program_, body, [&](TensorId tensor, IndexList& place) {
        if (!absl::c_linear_search(expanded_, tensor)) return false;
        const bool stale = NESTOR_MUTANT("strip_reads_row_before") && !Changes(group, tensor);
        place.insert(place.begin(), stale ? pool_.Max(pool_.Sub(r, pool_.Const(1)), pool_.Const(0)) : r);
        return true;
      });
      const auto is_loop = [](const Item& item) { return item.As<Loop>() != nullptr; };
      if (group.is_sum) Widen(group, *absl::c_find_if(body, is_loop)->As<Loop>(), strip, r);
      loop::VarReplacement replace(program_);
      replace.Set(row_.var, pool_.Add(pool_.Add(row_.begin, first), r));
      RewriteIndices(program_, body, [&](IndexId e) { return replace(e); });
      return body;
    });
  }

  Program& program_;
  IndexPool& pool_;
  loop::Ranges& ranges_;
  const StripOptions& options_;
  const Loop& row_;
  LoopMaker make_;
  IndexId rows_, strips_;          // how many
  absl::optional<IndexId> many_;   // 0 where they are few, and the loop runs as it was; else 1
  std::vector<TensorId> declared_; // in the row's body
  std::vector<TensorId> expanded_;
  std::vector<Group> groups_;
};

}  // namespace

absl::StatusOr<bool> RunInStrips(Program& program, const StripOptions& options) {
  absl::flat_hash_set<int32_t> rows;
  for (const loop::Block& block : program.blocks) FindRows(program, block.body, rows);
  if (rows.empty()) return false;
  Program tried = program;
  loop::Ranges ranges(tried);
  const bool changed = ReplaceLoops(tried, ranges, [&](Loop& loop) -> absl::optional<Scope> {
    if (!rows.contains(loop.var)) return absl::nullopt;
    return Strips(tried, ranges, options, loop).Run();
  });
  if (changed) program = std::move(tried);
  return changed;
}

}  // namespace nestor::jit
