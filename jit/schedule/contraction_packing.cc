// Register tiles want the columns that they read next to each other, in the order in which they
// read them: [vector of columns, steps of the sums, lane]. Copying an operand of N*K elements into
// that layout costs N*K, the product M*N*K, so the copy pays once there are a few rows (Goto and
// van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008). Its reads are also
// where padding, strides, dilation and casts are paid for, once for each element instead of once
// for each product.
//
//   temp columns: f32[ceil(N/16), K, 16]
//   for v, k, l { columns[v, k, l] = b[k, 16*v + l] }    # lanes beyond N: 0
//   t[r, v, l] = t[r, v, l] + a[i + r, k] * columns[q + v, k, l]
//
// For each operand one of three things is decided (IsRow, IsInPlace, FitsPanels):
//
// - it is read where it lies: rows whose summed elements lie together, or columns under a window,
//   of which a copy would hold each element several times;
// - it is copied before the nest, in the outermost batch iteration in which it is the same;
// - columns that only one block of rows uses are copied by the first tile of the block as it sums
//   (a panel), so that the copy is made from elements that are in registers anyway.
//
// Invariant: wherever a place (row, vector, lane, steps) is asked for, PlaceIn and Moved give the
// element that the nest as written would have read at that row, column and step. Steps count from
// the begin of the sums' hulls, so that one layout serves all iterations whose bounds move.
#include "jit/schedule/contraction_packing.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction_orientation.h"
#include "loop_ir/affine.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {

Packing::Packing(Program& program, Ranges& ranges, const Contraction& nest, int64_t lanes,
                 const Options& options)
    : program_(program), pool_(program.pool), ranges_(ranges), make_(program), nest_(nest),
      lanes_(lanes), options_(options) {}

IndexId Packing::LengthOfHull(const Loop& loop, const Hull& hull) {
  if (loop.begin == hull.begin && loop.end == hull.end) return ranges_.LengthOf(loop);
  const IndexId length = pool_.Sub(hull.end, hull.begin);
  return ranges_.NonNegative(length) ? length : pool_.Max(length, pool_.Const(0));
}

// ---- What is decided

bool Packing::IsInRange() {
  const auto is_safe = [&](const Contraction::Operand& operand) {
    return AccessOf(program_, operand).masked || loop::IsInRange(program_, ranges_, nest_, operand);
  };
  return absl::c_all_of(nest_.columns, is_safe) &&
         absl::c_all_of(nest_.rows,
                        [&](const auto& operand) { return IsRow(operand) || is_safe(operand); });
}

// Whether the operand is read in place: nothing is computed from it first, and the elements that a
// row sums lie together, or overlapping rows lie side by side.
bool Packing::IsRow(const Contraction::Operand& operand) const {
  const Access access = AccessOf(program_, operand);
  if (access.masked || operand.is_computed()) return false;
  const bool overlaps = !FitsItsTensor({operand, false, SumsOf(access), {}});
  if (overlaps && MovesLastAlone(program_, access, *nest_.row)) return true;
  // Rows of a single matrix are far apart from step to step of the sum, often by a power of two at
  // which cache lines compete for few sets.
  if (operand.batch_loops > 0 && AreRowsOfTemporary(program_, access, *nest_.row)) return true;
  bool in_sums = false;  // except for windows, whose few places are at as many other rows
  for (IndexId e : access.place) {
    if (in_sums && HoldsVar(pool_, e, nest_.row->var)) return false;
    in_sums =
        in_sums || (MovesWithAny(pool_, e, nest_.sums) && !MovesWithAny(pool_, e, nest_.batch));
  }
  return true;
}

std::vector<size_t> Packing::SumsOf(const Access& access) const {
  std::vector<size_t> sums;
  for (size_t i = 0; i < nest_.sums.size(); ++i) {
    if (DependsOn(program_, access, *nest_.sums[i])) sums.push_back(i);
  }
  return sums;
}

bool Packing::ColumnsLieWell() {
  return absl::c_all_of(nest_.columns, [&](const Contraction::Operand& operand) {
    const Access access = AccessOf(program_, operand);
    return !access.masked && (IsAlong(program_, access, *nest_.column) ||
                              IsAlong(program_, access, *nest_.sums.back()));
  });
}

void Packing::Measure() {
  rows_ = ranges_.LengthOf(*nest_.row);
  columns_ = LengthOfHull(*nest_.column, *HullOf(program_, *nest_.column));
}

bool Packing::ColumnsAreInPlace() {
  return absl::c_all_of(nest_.columns, [&](const auto& operand) {
    return IsInPlace({operand, true, SumsOf(AccessOf(program_, operand)), {}});
  });
}

// Columns are always candidates, and rows only where they cannot be read in place.
void Packing::Decide(IndexId whole) {
  whole_ = whole;
  for (const Contraction::Operand& operand : nest_.columns) AddPacked(operand, true);
  for (const Contraction::Operand& operand : nest_.rows) {
    if (!IsRow(operand)) AddPacked(operand, false);
  }
}

// The shape is [vectors, k.., lanes] for columns, [row, k..] for rows.
void Packing::AddPacked(const Contraction::Operand& operand, bool in_columns) {
  Packed packed{operand, in_columns, SumsOf(AccessOf(program_, operand)), {}};
  TensorInfo info;
  info.name = in_columns ? "columns" : "rows";
  info.type = program_[operand.read].type;
  info.shape.push_back(in_columns ? Vectors()
                                  : LengthOfHull(*nest_.row, *HullOf(program_, *nest_.row)));
  for (const size_t sum : packed.sums) info.shape.push_back(LengthOfHull(sum));
  if (in_columns) info.shape.push_back(pool_.Const(lanes_));
  if (IsInPlace(packed)) return;
  packed.in_panels = FitsPanels(packed);
  if (packed.in_panels) info.shape[0] = pool_.Sub(Vectors(), whole_);
  if (!FitsItsTensor(packed)) AssumeFewElements(program_, info.shape);
  packed.tensor = program_.AddTensor(std::move(info));
  packed_.push_back(std::move(packed));
}

// Whether tiles can read columns in place, and nothing else would use the copy: no other iteration
// of a loop around, and no other call.
bool Packing::FitsPanels(const Packed& packed) const {
  if (!options_.panels || !packed.in_columns || packed.sums.size() != 1) return false;
  if (nest_.is_ragged || nest_.jammed != nullptr || nest_.sums.size() != 1) return false;
  const Access access = AccessOf(program_, packed.operand);
  const Loop& sum = *nest_.sums[0];
  if (!FitsItsTensor(packed) || !IsAlong(program_, access, *nest_.column)) return false;
  // If the number of whole tiles moves, memory for the copy of the columns beside them
  // cannot be planned.
  const auto moves = [&](IndexId e) { return pool_.HasVar(e); };
  if (moves(sum.begin) || moves(sum.end) || moves(whole_)) return false;
  if (IsBound(program_, options_.bound, access.tensor)) return false;
  const auto moves_with = [&](int64_t var) {
    return absl::c_any_of(access.place, [&](IndexId e) { return HoldsVar(pool_, e, var); });
  };
  return absl::c_all_of(LoopsAround(), moves_with);
}

// The indices of loops around rows, columns and sums that anything in the nest moves with.
absl::flat_hash_set<int64_t> Packing::LoopsAround() const {
  absl::flat_hash_set<int64_t> around;
  const auto add = [&](IndexId e) {
    VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
      if (node.kind == IndexKind::kVar) around.insert(node.value);
    });
  };
  std::vector<int64_t> inside = {nest_.row->var, nest_.column->var};
  for (const Loop* loop : {nest_.row, nest_.column}) {
    add(loop->begin);
    add(loop->end);
  }
  VisitItems(*nest_.core, [&](const Item& item) {
    VisitIndices(program_, item, add);
    if (const auto* inner = item.As<Loop>()) inside.push_back(inner->var);
  });
  for (const int64_t var : inside) around.erase(var);
  return around;
}

// Whether each element is copied once: it is in range, and each loop moves along an axis of
// its own.
bool Packing::FitsItsTensor(const Packed& packed) const {
  const Access access = AccessOf(program_, packed.operand);
  std::vector<const Loop*> loops = {packed.in_columns ? nest_.column : nest_.row};
  for (const size_t sum : packed.sums) loops.push_back(nest_.sums[sum]);
  return IsReadOnce(program_, access, loops);
}

// Whether columns are read in place: copies of windows would hold each element several times.
bool Packing::IsInPlace(const Packed& packed) {
  const Access access = AccessOf(program_, packed.operand);
  const auto slides = [&](const Loop* batch) {
    return SlidesAlong(program_, access, nest_.sums, *batch);
  };
  const bool is_window = !FitsItsTensor(packed) || absl::c_any_of(nest_.batch, slides);
  return packed.in_columns && !packed.operand.is_computed() && is_window && ReadsBeyond(packed) &&
         IsAlong(program_, access, *nest_.column);
}

IndexId Packing::Vectors() {
  if (nest_.jammed != nullptr) return ranges_.LengthOf(*nest_.jammed);
  return OverUp(pool_, columns_, pool_.Const(lanes_));
}

IndexId Packing::Guarded(absl::optional<IndexId> flag, IndexId count) {
  return flag ? OnlyIf(pool_, *flag, count) : count;
}

// ---- Reading

// The summed value of the nest with each packed part replaced by a load from its copy, moved to
// `at`. An operand that is not packed keeps its own load, which Moved takes to the row and column.
ValueId Packing::ValueAt(const Place& at, Columns columns, const Panel* panel) {
  const ValueId value =
      RewriteValues(program_, nest_.step->value, [&](ValueId id) -> absl::optional<ValueId> {
        const auto packed = FindPacked(id);
        if (packed == packed_.end()) return absl::nullopt;
        if (!packed->in_panels || columns == Columns::kInCopies) {
          return program_.AddLoad({packed->tensor, PlaceIn(*packed, at)});
        }
        if (columns == Columns::kInOperands) return absl::nullopt;
        return program_.AddLoad({panel->tensors[static_cast<size_t>(packed - packed_.begin())],
                                 PlaceInPanel(*panel, at)});
      });
  return Moved(value, at.row, at.vector, at.lane, at.sums);
}

Packing::Panel Packing::PanelOf(int64_t vectors, IndexId first_vector, Scope& scope) {
  Panel panel{{}, first_vector};
  for (const Packed& packed : packed_) {
    panel.tensors.emplace_back();
    if (!packed.in_panels) continue;
    const Shape shape = {pool_.Const(vectors), LengthOfHull(0), pool_.Const(lanes_)};
    panel.tensors.back() = program_.AddTensor({"panel", program_[packed.tensor].type, shape});
    scope.push_back(DeclarationOf(panel.tensors.back()));
  }
  return panel;
}

Scope Packing::ToPanel(const Panel& panel, const Place& at) {
  Scope scope;
  for (size_t i = 0; i < packed_.size(); ++i) {
    if (!packed_[i].in_panels) continue;
    const ValueId value = Moved(packed_[i].operand.read, at.row, at.vector, at.lane, at.sums);
    Append(scope, Assignment(panel.tensors[i], PlaceInPanel(panel, at), value));
  }
  return scope;
}

std::vector<Access> Packing::ReadForPanel(const Place& at) {
  std::vector<Access> accesses;
  for (const Packed& packed : packed_) {
    if (packed.in_panels) accesses.push_back(OperandAt(packed.operand, at));
  }
  return accesses;
}

std::vector<Access> Packing::ReadOfColumns(const Place& at) {
  std::vector<Access> accesses;
  for (const Contraction::Operand& operand : nest_.columns) {
    const auto packed = FindPacked(operand.read);
    if (packed == packed_.end() || !packed->in_panels) accesses.push_back(ReadOf(operand, at));
  }
  return accesses;
}

Access Packing::ReadOf(const Contraction::Operand& operand, const Place& at) {
  const auto packed = FindPacked(operand.read);
  if (packed != packed_.end()) return {packed->tensor, PlaceIn(*packed, at)};
  return OperandAt(operand, at);
}

Access Packing::OperandAt(const Contraction::Operand& operand, const Place& at) {
  const ValueId load = Moved(operand.load, at.row, at.vector, at.lane, at.sums);
  return AccessOf(program_, {load, load});
}

std::vector<Packing::Packed>::const_iterator Packing::FindPacked(ValueId read) const {
  return absl::c_find_if(packed_,
                         [&](const Packed& packed) { return packed.operand.read == read; });
}

IndexList Packing::PlaceInPanel(const Panel& panel, const Place& at) {
  const bool is_wrong = NESTOR_MUTANT("panel_of_other_columns");
  return {is_wrong ? pool_.Const(0) : pool_.Sub(at.vector, panel.first_vector), at.sums[0],
          at.lane};
}

IndexList Packing::PlaceIn(const Packed& packed, const Place& at) {
  IndexList place = {packed.in_columns ? at.vector : at.row};
  if (packed.in_panels) place[0] = pool_.Sub(at.vector, whole_);
  for (const size_t sum : packed.sums) place.push_back(at.sums[sum]);
  if (packed.in_columns) place.push_back(at.lane);
  return place;
}

void Packing::Locate(VarReplacement& replace, IndexId row, IndexId vector, IndexId lane) {
  replace.Set(nest_.row->var, pool_.Add(nest_.row->begin, row));
  if (nest_.jammed != nullptr)
    replace.Set(nest_.jammed->var, pool_.Add(nest_.jammed->begin, vector));
  replace.Set(nest_.column->var, ColumnAt(vector, lane));
}

IndexId Packing::ColumnAt(IndexId vector, IndexId lane) {
  const IndexId before =
      nest_.jammed != nullptr ? pool_.Const(0) : pool_.Mul(pool_.Const(lanes_), vector);
  return pool_.Add(nest_.column->begin, pool_.Add(before, lane));
}

// `value` of the nest at a row, a column and steps of the sums, counted from the first.
ValueId Packing::Moved(ValueId value, IndexId row, IndexId vector, IndexId lane,
                       const Steps& steps) {
  VarReplacement replace(program_);
  Locate(replace, row, vector, lane);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].value >= 0)
      replace.Set(nest_.sums[i]->var, pool_.Add(nest_.hulls[i].begin, steps[i]));
  }
  return RewriteIndices(program_, value, [&](IndexId e) { return replace(e); });
}

// ---- Copying

size_t Packing::BatchLoops() const {
  int loops = 0;
  for (const Packed& packed : packed_) loops = std::max(loops, packed.operand.batch_loops);
  return static_cast<size_t>(loops);
}

// An operand that depends on the first two of three batch loops is copied inside of the second:
// once for all iterations of the third.
Scope Packing::CopiesBehind(size_t depth, absl::optional<IndexId> flag) {
  Scope scope;
  for (const Packed& packed : packed_) {
    // The copy is empty where whole tiles have all columns.
    const bool is_empty = pool_.IsConst(program_[packed.tensor].shape[0], 0);
    if (packed.operand.batch_loops != static_cast<int>(depth) || is_empty) continue;
    scope.push_back(DeclarationOf(packed.tensor));
    Append(scope, packed.in_columns ? CopyColumns(packed, flag) : CopyRows(packed, flag));
  }
  return scope;
}

// Loops over the sums of the operand from number `begin` to `end`.
Scope Packing::OverHulls(const Packed& packed, OverSteps body, Steps steps, size_t begin,
                         size_t end) {
  if (begin == end) return body(steps);
  const size_t sum = packed.sums[begin];
  return make_.Counted(program_.vars[nest_.sums[sum]->var], LengthOfHull(sum), kPlain,
                       [&](IndexId k) {
                         Steps with = steps;
                         with[sum] = k;
                         return OverHulls(packed, body, std::move(with), begin + 1, end);
                       });
}

// Where rows lie across the sum, the loop over them is next to the last sum, so that
// transpose_tiles takes both.
Scope Packing::CopyRows(const Packed& packed, absl::optional<IndexId> flag) {
  if (nest_.is_ragged && !packed.sums.empty()) return CopyRaggedRows(packed, flag);
  const Access access = AccessOf(program_, packed.operand);
  const bool across = !packed.sums.empty() && HoldsVar(pool_, access.place.back(), nest_.row->var);
  const size_t sums = packed.sums.size(), around = across ? sums - 1 : 0;
  const auto row_of = [&](const Steps& outer) {
    return make_.Counted("i", Guarded(flag, rows_), kPlain, [&](IndexId row) {
      const auto copy = [&](const Steps& steps) {
        return Assignment(packed.tensor, PlaceIn(packed, {row, {}, {}, steps}),
                          Moved(packed.operand.read, row, pool_.Const(0), pool_.Const(0), steps));
      };
      return OverHulls(packed, copy, outer, around, sums);
    });
  };
  return OverHulls(packed, row_of, Steps(nest_.sums.size()), 0, around);
}

// Copies the elements that each row sums. First come those that all rows of a block sum, a
// rectangle for transpose_tiles; then, in the same way for smaller blocks, those before
// and after it.
Scope Packing::CopyRaggedRows(const Packed& packed, absl::optional<IndexId> flag) {
  return CopyRaggedBlocks(packed, 0, pool_.Const(0), rows_, absl::nullopt, flag);
}

// Blocks of 64 rows copy what all 64 have in common, blocks of 16 in each what those have in common
// besides, and single rows the rest. `copied`: what the block around has copied.
Scope Packing::CopyRaggedBlocks(const Packed& packed, size_t level, IndexId begin, IndexId rows,
                                absl::optional<Hull> copied, absl::optional<IndexId> flag) {
  constexpr int64_t kRows[] = {64, 16, 1};  // of a block
  if (level == std::size(kRows)) return {};
  const IndexId size = pool_.Const(kRows[level]);
  const IndexId blocks = pool_.Div(pool_.Add(rows, pool_.Const(kRows[level] - 1)), size);
  return make_.Counted("i", Guarded(flag, blocks), kPlain, [&](IndexId block) {
    const IndexId first = pool_.Add(begin, pool_.Mul(size, block));
    const IndexId count = pool_.Min(size, pool_.Sub(pool_.Add(begin, rows), first));
    Hull common =
        CommonBounds(program_, nest_, first, pool_.Sub(pool_.Add(first, count), pool_.Const(1)));
    if (kRows[level] > 1) common.begin = RoundedUp(common.begin);
    Scope scope;
    for (const Hull& part : PartsBeside(copied, common))
      Append(scope, CopyRectangle(packed, first, count, part));
    Append(scope, CopyRaggedBlocks(packed, level + 1, first, count, common, absl::nullopt));
    return scope;
  });
}

// Rounds up to whole cache lines of the copy: lines that tiles share would be fetched twice.
IndexId Packing::RoundedUp(IndexId step) {
  const IndexId line = pool_.Const(16), begin = nest_.hulls[0].begin;
  const IndexId lines = pool_.Div(pool_.Add(pool_.Sub(step, begin), pool_.Const(15)), line);
  return pool_.Add(begin, pool_.Mul(line, lines));
}

// `bounds` without the part within `taken`.
std::vector<Hull> Packing::PartsBeside(const absl::optional<Hull>& taken, const Hull& bounds) {
  if (!taken) return {bounds};
  return RaggedParts(program_, nest_, *taken, bounds);
}

// The elements of `count` rows at all `steps` of the sum: a plain copy of a rectangle.
Scope Packing::CopyRectangle(const Packed& packed, IndexId first, IndexId count,
                             const Hull& steps) {
  return make_.Counted("r", count, kPlain, [&](IndexId r) {
    const IndexId row = pool_.Add(first, r);
    const IndexId from = nest_.hulls[0].begin;
    return make_.Between(
        "k", pool_.Sub(steps.begin, from), pool_.Sub(steps.end, from), kPlain, [&](IndexId k) {
          return Assignment(packed.tensor, PlaceIn(packed, {row, {}, {}, {k}}),
                            Moved(packed.operand.read, row, pool_.Const(0), pool_.Const(0), {k}));
        });
  });
}

// Copies whole vectors, then one whose other lanes are zero.
Scope Packing::CopyColumns(const Packed& packed, absl::optional<IndexId> flag) {
  // Only the stored columns of a temporary are copied: where their number moves with a loop around,
  // they may be fewer than there is room for.
  const TensorId from = AccessOf(program_, packed.operand).tensor;
  const bool is_partial =
      program_[from].storage == Storage::kTemp && pool_.HasVar(nest_.column->end);
  const IndexId columns = is_partial ? ranges_.LengthOf(*nest_.column) : columns_;
  const IndexId whole =
      !is_partial && ReadsBeyond(packed) ? Vectors() : pool_.Div(columns, pool_.Const(lanes_));
  const bool along = !LieAcross(AccessOf(program_, packed.operand));
  using ValueOf = absl::FunctionRef<ValueId(IndexId vector, IndexId lane, const Steps& steps)>;
  const auto fill = [&](IndexId vector, IndexId count, ValueOf value) {
    const auto copy = [&](const Steps& steps) {
      return make_.Counted("l", count, along ? kVector : kPlain, [&](IndexId lane) {
        return Assignment(packed.tensor, PlaceIn(packed, {{}, vector, lane, steps}),
                          value(vector, lane, steps));
      });
    };
    return OverHulls(packed, copy, Steps(nest_.sums.size()), 0, packed.sums.size());
  };
  const auto loaded = [&](IndexId vector, IndexId lane, const Steps& steps) {
    return Moved(packed.operand.read, pool_.Const(0), vector, lane, steps);
  };
  const auto zero = [&](IndexId, IndexId, const Steps&) {
    return program_.AddConstant(Scalar::Zero(program_[packed.tensor].type));
  };
  const IndexId first = packed.in_panels ? whole_ : pool_.Const(0);
  Scope scope = make_.Counted("v", Guarded(flag, pool_.Sub(whole, first)), kPlain, [&](IndexId v) {
    return fill(pool_.Add(first, v), pool_.Const(lanes_), loaded);
  });
  const IndexId more = pool_.Sub(Vectors(), whole);
  if (pool_.IsConst(more, 0)) return scope;
  Append(scope, make_.Counted("v", Guarded(flag, more), kPlain, [&](IndexId v) {
    const IndexId last = pool_.Add(whole, v);
    const IndexId left = pool_.Sub(columns, pool_.Mul(pool_.Const(lanes_), last));
    Scope both;
    if (!NESTOR_MUTANT("panel_tail_not_zeroed")) both = fill(last, pool_.Const(lanes_), zero);
    const IndexId count = is_partial ? pool_.Max(left, pool_.Const(0)) : left;
    Append(both, fill(last, pool_.Min(pool_.Const(lanes_), count), loaded));
    return both;
  }));
  return scope;
}

// Whether columns lie across rows, so that transpose_tiles takes them. A scalar that is masked by a
// condition on the column does not.
bool Packing::LieAcross(const Access& access) const {
  return !access.place.empty() && !HoldsVar(pool_, access.place.back(), nest_.column->var);
}

// Whether all lanes of the last vector can be read, though they are no columns.
bool Packing::ReadsBeyond(const Packed& packed) {
  const std::vector<Access> accesses = AccessesOf(program_, packed.operand);
  return !accesses[0].masked && absl::c_all_of(accesses, [&](const Access& access) {
    return access.masked || ReadsBeyond(access);
  });
}

// An access that only grows along its column and its sums is greatest at the last of each: if that
// lies in the tensor, all of them do.
bool Packing::ReadsBeyond(const Access& access) {
  const IndexId beside = nest_.jammed != nullptr ? pool_.Const(1) : Vectors();
  const IndexId last = pool_.Sub(pool_.Mul(pool_.Const(lanes_), beside), pool_.Const(1));
  VarReplacement at_end(program_);
  at_end.Set(nest_.column->var, pool_.Add(nest_.column->begin, last));
  std::vector<const Loop*> loops = nest_.sums;
  loops.push_back(nest_.column);
  for (size_t i = 0; i < nest_.hulls.size(); ++i) {
    at_end.Set(nest_.sums[i]->var, pool_.Sub(nest_.hulls[i].end, pool_.Const(1)));
  }
  const auto walks_forward = [&](IndexId e) {
    return absl::c_all_of(loops, [&](const Loop* loop) {
      const auto step = CoefficientOf(pool_, e, loop->var);
      return step && ranges_.NonNegative(step->Build(pool_));
    });
  };
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    const IndexId e = access.place[axis];
    if (!HoldsVar(pool_, e, nest_.column->var)) continue;
    const IndexId end = at_end(e);
    if (!walks_forward(e) || pool_.HasVar(end) ||
        !ranges_.Less(end, program_[access.tensor].shape[axis]))
      return false;
  }
  return true;
}

}  // namespace nestor::loop
