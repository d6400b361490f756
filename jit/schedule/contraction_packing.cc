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
// The copies' layout is in packed_layout.h, the loops that copy in operand_copies.h.
#include "jit/schedule/contraction_packing.h"

#include <algorithm>
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
    : program_(program), pool_(program.pool), ranges_(ranges), nest_(nest), options_(options),
      layout_(program, ranges, nest, lanes), copies_(program, ranges, nest, layout_) {}

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

bool Packing::ColumnsAreInPlace() {
  return absl::c_all_of(nest_.columns, [&](const auto& operand) {
    return IsInPlace({operand, true, SumsOf(AccessOf(program_, operand)), {}});
  });
}

bool Packing::RowsAreInPlace() const {
  return absl::c_all_of(nest_.rows, [&](const auto& operand) { return IsRow(operand); });
}

// Columns are always candidates, and rows only where they cannot be read in place.
void Packing::Decide(IndexId whole) {
  layout_.SetWholeTiles(whole);
  for (const Contraction::Operand& operand : nest_.columns) AddPacked(operand, true);
  for (const Contraction::Operand& operand : nest_.rows) {
    if (!IsRow(operand)) AddPacked(operand, false);
  }
}

void Packing::AddPacked(const Contraction::Operand& operand, bool in_columns) {
  PackedOperand packed{operand, in_columns, SumsOf(AccessOf(program_, operand)), {}};
  if (IsInPlace(packed)) return;
  packed.in_panels = FitsPanels(packed);
  TensorInfo info;
  info.name = in_columns ? "columns" : "rows";
  info.type = program_[operand.read].type;
  info.shape = layout_.ShapeOf(packed);
  if (!FitsItsTensor(packed)) AssumeFewElements(program_, info.shape);
  packed.tensor = program_.AddTensor(std::move(info));
  packed_.push_back(std::move(packed));
}

// Whether tiles can read columns in place, and nothing else would use the copy: no other iteration
// of a loop around, and no other call.
bool Packing::FitsPanels(const PackedOperand& packed) const {
  if (!options_.panels || !packed.in_columns || packed.sums.size() != 1) return false;
  if (nest_.is_ragged || nest_.jammed != nullptr || nest_.sums.size() != 1) return false;
  const Access access = AccessOf(program_, packed.operand);
  const Loop& sum = *nest_.sums[0];
  if (!FitsItsTensor(packed) || !IsAlong(program_, access, *nest_.column)) return false;
  // If the number of whole tiles moves, memory for the copy of the columns beside them
  // cannot be planned.
  const auto moves = [&](IndexId e) { return pool_.HasVar(e); };
  if (moves(sum.begin) || moves(sum.end) || moves(layout_.whole())) return false;
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
bool Packing::FitsItsTensor(const PackedOperand& packed) const {
  const Access access = AccessOf(program_, packed.operand);
  std::vector<const Loop*> loops = {packed.in_columns ? nest_.column : nest_.row};
  for (const size_t sum : packed.sums) loops.push_back(nest_.sums[sum]);
  return IsReadOnce(program_, access, loops);
}

// Whether columns are read in place: copies of windows would hold each element several times.
bool Packing::IsInPlace(const PackedOperand& packed) {
  const Access access = AccessOf(program_, packed.operand);
  const auto slides = [&](const Loop* batch) {
    return SlidesAlong(program_, access, nest_.sums, *batch);
  };
  const bool is_window = !FitsItsTensor(packed) || absl::c_any_of(nest_.batch, slides);
  return packed.in_columns && !packed.operand.is_computed() && is_window &&
         layout_.ReadsBeyond(packed) && IsAlong(program_, access, *nest_.column);
}

// ---- Reading

// The summed value of the nest with each packed part replaced by a load from its copy, moved to
// `at`. An operand that is not packed keeps its own load, which is taken to the row and column.
ValueId Packing::ValueAt(const Place& at, Columns columns, const Panel* panel) {
  const ValueId value =
      RewriteValues(program_, nest_.step->value, [&](ValueId id) -> absl::optional<ValueId> {
        const auto packed = FindPacked(id);
        if (packed == packed_.end()) return absl::nullopt;
        if (!packed->in_panels || columns == Columns::kInCopies) {
          return program_.AddLoad({packed->tensor, layout_.PlaceIn(*packed, at)});
        }
        if (columns == Columns::kInOperands) return absl::nullopt;
        return program_.AddLoad({panel->tensors[static_cast<size_t>(packed - packed_.begin())],
                                 PlaceInPanel(*panel, at)});
      });
  return layout_.Moved(value, at);
}

Packing::Panel Packing::PanelOf(int64_t vectors, IndexId first_vector, Scope& scope) {
  Panel panel{{}, first_vector};
  for (const PackedOperand& packed : packed_) {
    panel.tensors.emplace_back();
    if (!packed.in_panels) continue;
    const Shape shape = {pool_.Const(vectors), LengthOfHull(0), pool_.Const(layout_.lanes())};
    panel.tensors.back() = program_.AddTensor({"panel", program_[packed.tensor].type, shape});
    scope.push_back(DeclarationOf(panel.tensors.back()));
  }
  return panel;
}

Scope Packing::ToPanel(const Panel& panel, const Place& at) {
  Scope scope;
  for (size_t i = 0; i < packed_.size(); ++i) {
    if (!packed_[i].in_panels) continue;
    const ValueId value = layout_.Moved(packed_[i].operand.read, at);
    Append(scope, Assignment(panel.tensors[i], PlaceInPanel(panel, at), value));
  }
  return scope;
}

std::vector<Access> Packing::ReadForPanel(const Place& at) {
  std::vector<Access> accesses;
  for (const PackedOperand& packed : packed_) {
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
  if (packed != packed_.end()) return {packed->tensor, layout_.PlaceIn(*packed, at)};
  return OperandAt(operand, at);
}

Access Packing::OperandAt(const Contraction::Operand& operand, const Place& at) {
  const ValueId load = layout_.Moved(operand.load, at);
  return AccessOf(program_, {load, load});
}

std::vector<PackedOperand>::const_iterator Packing::FindPacked(ValueId read) const {
  return absl::c_find_if(packed_,
                         [&](const PackedOperand& packed) { return packed.operand.read == read; });
}

IndexList Packing::PlaceInPanel(const Panel& panel, const Place& at) {
  const bool is_wrong = NESTOR_MUTANT("panel_of_other_columns");
  return {is_wrong ? pool_.Const(0) : pool_.Sub(at.vector, panel.first_vector), at.sums[0],
          at.lane};
}

// ---- Copying

size_t Packing::BatchLoops() const {
  int loops = 0;
  for (const PackedOperand& packed : packed_) loops = std::max(loops, packed.operand.batch_loops);
  return static_cast<size_t>(loops);
}

// An operand that depends on the first two of three batch loops is copied inside of the second:
// once for all iterations of the third.
Scope Packing::CopiesBehind(size_t depth, absl::optional<IndexId> flag) {
  Scope scope;
  for (const PackedOperand& packed : packed_) {
    // The copy is empty where whole tiles have all columns.
    const bool is_empty = pool_.IsConst(program_[packed.tensor].shape[0], 0);
    if (packed.operand.batch_loops != static_cast<int>(depth) || is_empty) continue;
    scope.push_back(DeclarationOf(packed.tensor));
    Append(scope, copies_.CopyOf(packed, flag));
  }
  return scope;
}

}  // namespace nestor::loop
