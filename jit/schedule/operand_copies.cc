// A copy's reads are where padding, strides, dilation and casts are paid for, so its loops are
// shaped for the reads: where an operand lies across the order of the copy, the two loops that
// transpose_tiles takes are innermost and next to each other; where rows sum different steps, they
// are cut into rectangles.
#include "jit/schedule/operand_copies.h"

#include <iterator>
#include <utility>

#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "loop_ir/affine.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {

Scope OperandCopies::CopyOf(const PackedOperand& packed, absl::optional<IndexId> flag) {
  if (packed.in_columns) return CopyColumns(packed, flag);
  const bool is_ragged = nest_.is_ragged && !packed.sums.empty();
  return is_ragged
             ? CopyRaggedBlocks(packed, 0, pool_.Const(0), layout_.rows(), absl::nullopt, flag)
             : CopyRows(packed, flag);
}

// Copies one element.
Scope OperandCopies::Element(const PackedOperand& packed, const TilePlace& at) {
  return Assignment(packed.tensor, layout_.PlaceIn(packed, at),
                    layout_.Moved(packed.operand.read, at));
}

IndexId OperandCopies::Guarded(absl::optional<IndexId> flag, IndexId count) {
  return flag ? OnlyIf(pool_, *flag, count) : count;
}

// Loops over the sums of the operand from number `begin` to `end`.
Scope OperandCopies::OverHulls(const PackedOperand& packed, OverSteps body, Steps steps,
                               size_t begin, size_t end) {
  if (begin == end) return body(steps);
  const size_t sum = packed.sums[begin];
  return make_.Counted(program_.vars[nest_.sums[sum]->var], layout_.LengthOfHull(sum), kPlain,
                       [&](IndexId k) {
                         Steps with = steps;
                         with[sum] = k;
                         return OverHulls(packed, body, std::move(with), begin + 1, end);
                       });
}

// Where rows lie across the sum, the loop over them is next to the last sum, so that
// transpose_tiles takes both.
Scope OperandCopies::CopyRows(const PackedOperand& packed, absl::optional<IndexId> flag) {
  const Access access = AccessOf(program_, packed.operand);
  const bool across = !packed.sums.empty() && HoldsVar(pool_, access.place.back(), nest_.row->var);
  const size_t sums = packed.sums.size(), around = across ? sums - 1 : 0;
  const auto row_of = [&](const Steps& outer) {
    return make_.Counted("i", Guarded(flag, layout_.rows()), kPlain, [&](IndexId row) {
      const auto copy = [&](const Steps& steps) {
        return Element(packed, {row, pool_.Const(0), pool_.Const(0), steps});
      };
      return OverHulls(packed, copy, outer, around, sums);
    });
  };
  return OverHulls(packed, row_of, Steps(nest_.sums.size()), 0, around);
}

// Copies the elements that each row sums. First come those that all rows of a block sum, a
// rectangle for transpose_tiles; then, in the same way for smaller blocks, those before
// and after it.
//
// Blocks of 64 rows copy what all 64 have in common, blocks of 16 in each what those have in common
// besides, and single rows the rest. `copied`: what the block around has copied.
Scope OperandCopies::CopyRaggedBlocks(const PackedOperand& packed, size_t level, IndexId begin,
                                      IndexId rows, absl::optional<Hull> copied,
                                      absl::optional<IndexId> flag) {
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
IndexId OperandCopies::RoundedUp(IndexId step) {
  const IndexId line = pool_.Const(16), begin = nest_.hulls[0].begin;
  const IndexId lines = pool_.Div(pool_.Add(pool_.Sub(step, begin), pool_.Const(15)), line);
  return pool_.Add(begin, pool_.Mul(line, lines));
}

// `bounds` without the part within `taken`.
std::vector<Hull> OperandCopies::PartsBeside(const absl::optional<Hull>& taken,
                                             const Hull& bounds) {
  if (!taken) return {bounds};
  return RaggedParts(program_, nest_, *taken, bounds);
}

// The elements of `count` rows at all `steps` of the sum: a plain copy of a rectangle.
Scope OperandCopies::CopyRectangle(const PackedOperand& packed, IndexId first, IndexId count,
                                   const Hull& steps) {
  return make_.Counted("r", count, kPlain, [&](IndexId r) {
    const IndexId row = pool_.Add(first, r);
    const IndexId from = nest_.hulls[0].begin;
    return make_.Between("k", pool_.Sub(steps.begin, from), pool_.Sub(steps.end, from), kPlain,
                         [&](IndexId k) {
                           return Element(packed, {row, pool_.Const(0), pool_.Const(0), {k}});
                         });
  });
}

// Copies whole vectors, then one whose other lanes are zero.
Scope OperandCopies::CopyColumns(const PackedOperand& packed, absl::optional<IndexId> flag) {
  // Where the number of copied columns moves with a loop around, they may be fewer than there is
  // room for.
  const bool is_partial = pool_.HasVar(CopiedColumns(program_, nest_, packed.operand).end);
  const IndexId columns = is_partial ? ranges_.LengthOf(*nest_.column) : layout_.columns();
  const IndexId lanes = pool_.Const(layout_.lanes());
  const IndexId whole =
      !is_partial && layout_.ReadsBeyond(packed) ? layout_.Vectors() : pool_.Div(columns, lanes);
  const bool along = !LieAcross(AccessOf(program_, packed.operand));
  const auto fill = [&](IndexId vector, IndexId count,
                        absl::FunctionRef<Scope(const TilePlace& at)> element) {
    const auto copy = [&](const Steps& steps) {
      return make_.Counted("l", count, along ? kVector : kPlain, [&](IndexId lane) {
        return element({pool_.Const(0), vector, lane, steps});
      });
    };
    return OverHulls(packed, copy, Steps(nest_.sums.size()), 0, packed.sums.size());
  };
  const auto loaded = [&](const TilePlace& at) { return Element(packed, at); };
  const auto zero = [&](const TilePlace& at) {
    return Assignment(packed.tensor, layout_.PlaceIn(packed, at),
                      program_.AddConstant(Scalar::Zero(program_[packed.tensor].type)));
  };
  const IndexId first = packed.in_panels ? layout_.whole() : pool_.Const(0);
  Scope scope = make_.Counted("v", Guarded(flag, pool_.Sub(whole, first)), kPlain,
                              [&](IndexId v) { return fill(pool_.Add(first, v), lanes, loaded); });
  const IndexId more = pool_.Sub(layout_.Vectors(), whole);
  if (pool_.IsConst(more, 0)) return scope;
  Append(scope, make_.Counted("v", Guarded(flag, more), kPlain, [&](IndexId v) {
    const IndexId last = pool_.Add(whole, v);
    const IndexId left = pool_.Sub(columns, pool_.Mul(lanes, last));
    Scope both;
    if (!NESTOR_MUTANT("panel_tail_not_zeroed")) both = fill(last, lanes, zero);
    const IndexId count = is_partial ? pool_.Max(left, pool_.Const(0)) : left;
    Append(both, fill(last, pool_.Min(lanes, count), loaded));
    return both;
  }));
  return scope;
}

// Whether columns lie across rows, so that transpose_tiles takes them. A scalar that is masked by a
// condition on the column does not.
bool OperandCopies::LieAcross(const Access& access) const {
  return !access.place.empty() && !HoldsVar(pool_, access.place.back(), nest_.column->var);
}

}  // namespace nestor::loop
