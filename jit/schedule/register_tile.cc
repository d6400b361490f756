// The innermost part of a contraction: a tile of rows * vectors accumulators, each a vector
// register, to which each step of the sum adds the outer product of a column of the row operand
// (each element broadcast to all lanes) and a row of the column operand. So rows + vectors loads
// feed rows * vectors multiply-adds (Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", 2008; the loops around it are those of Van Zee and van de Geijn, "BLIS: A
// Framework for Rapidly Instantiating BLAS Functionality", 2015).
//
//   for r, v { t[r, v] = 0 }
//   for k { for r, v { t[r, v] = t[r, v] + a[i + r, k] * columns[j + v, k] } }
//   for r, v { y[i + r, j + v] = g(t[r, v]) }
//
// A tile begins with the identity, or with the partial sums of the blocks before; takes the steps
// of the sum; and is kept for the next block, or finished. Loops over r and v are written out, so
// that code generation keeps each element of the tile in a register of its own; `l` is the loop
// over lanes.
#include "jit/schedule/register_tile.h"

#include <algorithm>
#include <utility>

#include "fusion/cost/work.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "loop_ir/affine.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"
#include "uops/scalar_op.h"

namespace nestor::loop {

namespace {

// Scalar operations on a sum for which the registers beside a tile are enough.
constexpr int kMostOnRegisters = 12;

}  // namespace

// All of the core but the sum, with loads of the accumulator replaced and tensors of its own, since
// the nest is made several times.
Scope FinishSum(Program& program, Ranges& ranges, const Contraction& nest, const Access& sum,
                VarReplacement& at, IndexId column) {
  Loop ends = *nest.column;
  ends.body.clear();
  for (const Item& item : *nest.core) {
    const auto* declaration = item.As<Declaration>();
    if (item.As<Loop>() != nullptr ||
        (declaration != nullptr && declaration->tensor == nest.accumulator))
      continue;
    ends.body.push_back(item);
  }
  VisitStatements(ends.body, [&](Statement& statement) {
    RewriteLoads(program, statement, nest.accumulator, [&](Access& load) {
      load.tensor = sum.tensor;
      load.place = sum.place;
    });
  });
  absl::optional<Loop> copy = DecidedCopy(program, ranges, ends, /*fresh=*/true);
  if (!copy) return {};
  at.Set(copy->var, column);
  RewriteIndices(program, copy->body, [&](IndexId e) { return at(e); });
  return std::move(copy->body);
}

RegisterTile::RegisterTile(Program& program, Ranges& ranges, const Contraction& nest,
                           Packing& packing, int64_t lanes, IndexId rows, IndexId columns)
    : SizeArithmetic(program.pool), program_(program), ranges_(ranges), make_(program), nest_(nest),
      packing_(packing), prefetches_(program, nest, packing), type_(program[nest.accumulator].type),
      lanes_(lanes), rows_(rows), columns_(columns) {
  for (const Item& item : *nest_.core) {
    const auto* statement = item.As<Statement>();
    if (statement != nullptr) operations_after_sum_ += OperationsOf(program_, statement->value);
  }
}

// The tile's life: it begins at zero or with the part of the sum from before, takes the steps, and
// is finished or stored for the next part.
Scope RegisterTile::At(const Patch& patch, const absl::optional<SumBlock>& part,
                       const absl::optional<Below>& below) {
  const Extent extent = patch.extent;
  const TensorId tile =
      program_.AddTensor({"tile",
                          type_,
                          {Const(extent.rows), Const(extent.vectors), Const(lanes_)},
                          Storage::kTemp,
                          ReduceOp::kSum,
                          true});
  Scope scope;
  scope.push_back(DeclarationOf(tile));
  Append(scope, Begin(tile, extent, part));
  Append(scope, Sums(tile, patch, part, below));
  const auto finish = [&] {
    return patch.waiting ? Stored(tile, patch.extent, *patch.waiting) : Ends(tile, patch);
  };
  if (!part) {
    Append(scope, finish());
    return scope;
  }
  Append(scope,
         make_.If(part->HasMore(pool_), [&] { return Stored(tile, extent, PartialOf(*part)); }));
  Append(scope, AtEnd(*part, finish));
  return scope;
}

// Runs `body` after the last block of the sum.
Scope RegisterTile::AtEnd(const SumBlock& part, absl::FunctionRef<Scope()> body) {
  const IndexId is_first = pool_.Sub(Const(1), pool_.Min(Const(1), part.number));
  const IndexId is_last = pool_.Sub(Const(1), part.HasMore(pool_));
  return make_.If(NESTOR_MUTANT("epilogue_after_first_block") ? is_first : is_last, body);
}

// What is written out has no loop to share out.
void RegisterTile::PrefetchNextRows(Scope& sums, const Patch& patch,
                                    const absl::optional<SumBlock>& part) {
  if (!IsWrittenOut(0, patch, part)) prefetches_.NextRows(sums, patch, part);
}

// The first of the tiles that share a panel reads columns in place, and copies them.
Scope RegisterTile::Sums(TensorId tile, const Patch& patch, const absl::optional<SumBlock>& part,
                         const absl::optional<Below>& below) {
  const Packing::Panel* panel = below ? &below->panel : nullptr;
  const auto place = [&](const std::vector<IndexId>& sums, IndexId r, IndexId v, IndexId l) {
    return Packing::Place{RowToRead(patch, r), pool_.Add(patch.vector, v), l, sums};
  };
  NeededRows needed = NeededRowsOf(patch, part);
  const auto over = [&](Packing::Columns columns) {
    const auto step = [&](const std::vector<IndexId>& sums, IndexId r, IndexId v, IndexId l) {
      return Step(tile, {r, v, l}, place(sums, r, v, l), columns, panel);
    };
    if (nest_.is_ragged) return RaggedSums(patch, step);
    return OverSums(patch, part, needed, [&](const std::vector<IndexId>& sums) {
      const auto at = [&](IndexId r, IndexId v, IndexId l) { return step(sums, r, v, l); };
      const bool some_are = needed.first_sum() < nest_.sums.size();
      Scope scope = some_are ? OverNeededRows(patch, needed, sums, at) : OverRows(patch, at);
      if (panel == nullptr || columns == Packing::Columns::kInPanel) return scope;
      Append(scope, OverRow(Const(0), patch.extent.vectors, [&](IndexId r, IndexId v, IndexId l) {
               return packing_.ToPanel(*panel, place(sums, r, v, l));
             }));
      return scope;
    });
  };
  if (!below) {
    Scope sums = over(patch.columns);
    if (nest_.is_ragged) return sums;
    if (part) prefetches_.NextBlock(sums, patch, *part, needed.first_sum());
    PrefetchNextRows(sums, patch, part);
    return sums;
  }
  const IndexId is_below = pool_.Min(Const(1), pool_.Add(below->before, below->in_block));
  const auto panel_sums = [&](Packing::Columns columns) {
    Scope sums = over(columns);
    PrefetchNextRows(sums, patch, part);
    return sums;
  };
  Scope scope = make_.If(pool_.Sub(Const(1), is_below),
                         [&] { return panel_sums(Packing::Columns::kInOperands); });
  Scope fetching = over(Packing::Columns::kInPanel);
  if (!prefetches_.NextPanel(*fetching[0].As<Loop>(), patch, part, *below)) {
    Append(scope, make_.If(is_below, [&] { return fetching; }));
    return scope;
  }
  PrefetchNextRows(fetching, patch, part);
  const IndexId fetches = prefetches_.FetchesNextPanel(patch.extent, part, *below);
  Append(scope, make_.If(fetches, [&] { return fetching; }));
  Append(scope, make_.If(pool_.Sub(is_below, fetches),
                         [&] { return panel_sums(Packing::Columns::kInPanel); }));
  return scope;
}

// The number of columns in vector number `vector`, which may be the last.
IndexId RegisterTile::ColumnsFrom(IndexId vector) {
  if (nest_.jammed != nullptr) return columns_;
  return pool_.Min(Const(lanes_), pool_.Sub(columns_, pool_.Mul(Const(lanes_), vector)));
}

// Loops over the sums; that over the first sum has the steps of `part`, if it is given. Steps of a
// window are written out: here, if they say which rows are needed, else by code generation.
Scope RegisterTile::OverSums(const Patch& patch, const absl::optional<SumBlock>& part,
                             const NeededRows& needed, OverSteps body, std::vector<IndexId> known) {
  const size_t i = known.size();
  if (i == nest_.sums.size()) return body(known);
  const Loop& sum = *nest_.sums[i];
  const auto at = [&](IndexId k) {
    std::vector<IndexId> with = known;
    with.push_back(k);
    return OverSums(patch, part, needed, body, std::move(with));
  };
  if (i >= needed.first_sum()) {
    Scope scope;
    for (int64_t k = 0; k < *KnownLength(program_, sum); ++k) Append(scope, at(Const(k)));
    return scope;
  }
  const bool is_part = i == 0 && part.has_value();
  const IndexId from = is_part ? part->begin : pool_.Sub(sum.begin, nest_.hulls[i].begin);
  const IndexId to = is_part ? part->end : pool_.Sub(sum.end, nest_.hulls[i].begin);
  return make_.Between(program_.vars[sum.var], from, to,
                       IsWrittenOut(i, patch, part) ? kUnrolled : kPlain, at);
}

NeededRows RegisterTile::NeededRowsOf(const Patch& patch, const absl::optional<SumBlock>& part) {
  return {program_, ranges_, nest_, rows_, [&](size_t sum) {
            const bool is_whole = nest_.sums[sum]->begin == nest_.hulls[sum].begin;
            return is_whole && !patch.rows_left && IsWrittenOut(sum, patch, part);
          }};
}

// Whether the sum and those inside it have so few steps that they are written out: a window of
// known size. For the last vector, and where each row that is kept has a pointer, only the
// innermost sum is written out.
bool RegisterTile::IsWrittenOut(size_t sum, const Patch& patch,
                                const absl::optional<SumBlock>& part) {
  if (sum == 0 && part) return false;
  if ((!patch.is_whole || patch.rows_left) && sum + 1 < nest_.sums.size()) return false;
  int64_t steps = 1;
  for (size_t i = sum; i < nest_.sums.size(); ++i) {
    const auto length = KnownLength(program_, *nest_.sums[i]);
    if (!length || *length > kMostWrittenOut) return false;
    steps *= std::max<int64_t>(*length, 0);
  }
  return steps <= kMostWrittenOut;
}

// The steps that all rows of the tile have in common; before and after these, row by row, those
// that only some rows have.
Scope RegisterTile::RaggedSums(const Patch& patch, StepAt step) {
  const IndexId last = RowToRead(patch, Const(patch.extent.rows - 1));
  const Hull common = CommonBounds(program_, nest_, patch.row, last);
  Scope before = RaggedEnds(patch, common, true, step);
  Append(before, RaggedSteps(common, [&](const std::vector<IndexId>& sums) {
           return OverRows(patch,
                           [&](IndexId r, IndexId v, IndexId l) { return step(sums, r, v, l); });
         }));
  Append(before, RaggedEnds(patch, common, false, step));
  return before;
}

// In a triangle, row r of the tile sums some steps more than the row above: a loop for each row.
Scope RegisterTile::RaggedEnds(const Patch& patch, const Hull& common, bool before, StepAt step) {
  const IndexId moving = before ? nest_.sums[0]->begin : nest_.sums[0]->end;
  if (!HoldsVar(pool_, moving, nest_.row->var)) return {};
  Scope scope;
  for (int64_t r = 0; r < patch.extent.rows; ++r) {
    const Hull own = BoundsAt(program_, nest_, RowToRead(patch, Const(r)));
    const Hull part = before ? Hull{own.begin, pool_.Min(common.begin, own.end)}
                             : Hull{pool_.Max(common.begin, common.end), own.end};
    Append(scope, RaggedSteps(part, [&](const std::vector<IndexId>& sums) {
             return OverRow(Const(r), patch.extent.vectors, [&](IndexId, IndexId v, IndexId l) {
               return step(sums, Const(r), v, l);
             });
           }));
  }
  return scope;
}

// Steps count from the begin of the hull, as in packed operands.
Scope RegisterTile::RaggedSteps(const Hull& bounds, OverSteps body) {
  const auto from_hull = [&](IndexId e) { return pool_.Sub(e, nest_.hulls[0].begin); };
  return make_.Between(program_.vars[nest_.sums[0]->var], from_hull(bounds.begin),
                       from_hull(bounds.end), kPlain, [&](IndexId k) { return body({k}); });
}

RegisterTile::SumPlace RegisterTile::PartialOf(const SumBlock& part) {
  return {part.partial, part.around, part.row, part.vector};
}

Access RegisterTile::ElementOf(const SumPlace& sums, IndexId r, IndexId v, IndexId l) {
  IndexList place = sums.around;
  for (const IndexId e : {pool_.Add(sums.row, r), pool_.Add(sums.vector, v), l}) place.push_back(e);
  return {sums.tensor, place};
}

// Stores all of the tile to memory, as it is.
Scope RegisterTile::Stored(TensorId tile, Extent extent, const SumPlace& sums) {
  return OverTile(extent, [&](IndexId r, IndexId v, IndexId l) {
    return Assignment(sums.tensor, ElementOf(sums, r, v, l).place,
                      program_.AddLoad({tile, {r, v, l}}));
  });
}

// Sets the tile to the identity, or to the partial sums of the blocks before.
Scope RegisterTile::Begin(TensorId tile, Extent extent, const absl::optional<SumBlock>& part) {
  const auto identity = [&] {
    return OverTile(extent, [&](IndexId r, IndexId v, IndexId l) {
      return Assignment(tile, {r, v, l}, program_.AddConstant(Identity(*nest_.step->op, type_)));
    });
  };
  if (!part) return identity();
  const IndexId continues =
      NESTOR_MUTANT("sum_block_starts_anew") ? Const(0) : pool_.Min(Const(1), part->number);
  Scope scope = make_.If(pool_.Sub(Const(1), continues), identity);
  Append(scope, make_.If(continues, [&] {
    return OverTile(extent, [&](IndexId r, IndexId v, IndexId l) {
      return Assignment(tile, {r, v, l}, program_.AddLoad(ElementOf(PartialOf(*part), r, v, l)));
    });
  }));
  return scope;
}

// Rows that are not kept read the same elements as the last row.
IndexId RegisterTile::RowToRead(const Patch& patch, IndexId r) {
  const IndexId row = pool_.Add(patch.row, r);
  return patch.rows_left ? pool_.Min(row, pool_.Sub(rows_, Const(1))) : row;
}

// How many lanes of that vector of the patch are columns.
IndexId RegisterTile::LanesOf(const Patch& patch, IndexId vector) {
  if (NESTOR_MUTANT("last_vector_whole")) return Const(lanes_);
  return patch.is_whole && nest_.jammed == nullptr ? Const(lanes_) : ColumnsFrom(vector);
}

// Runs `body` if row r of the patch is one of the nest's.
Scope RegisterTile::IfKept(const Patch& patch, IndexId r, absl::FunctionRef<Scope()> body) {
  if (!patch.rows_left) return body();
  return make_.If(pool_.Min(Const(1), pool_.Max(Const(0), pool_.Sub(*patch.rows_left, r))), body);
}

Scope RegisterTile::OverTile(Extent extent, AtPlace at) {
  return make_.Counted("r", Const(extent.rows), kUnrolled,
                       [&](IndexId r) { return OverRow(r, extent.vectors, at); });
}
Scope RegisterTile::OverRow(IndexId r, int64_t vectors, AtPlace at) {
  return make_.Counted("v", Const(vectors), kUnrolled, [&](IndexId v) {
    return make_.Counted("l", Const(lanes_), kVector, [&](IndexId l) { return at(r, v, l); });
  });
}

// Writes out the rows where some may not be kept: then a minimum says which row is read, and with a
// number for r it depends on sizes alone, and is no work in the loop.
Scope RegisterTile::OverRows(const Patch& patch, AtPlace at) {
  if (!patch.rows_left) return OverTile(patch.extent, at);
  Scope scope;
  for (int64_t r = 0; r < patch.extent.rows; ++r)
    Append(scope, OverRow(Const(r), patch.extent.vectors, at));
  return scope;
}

// Takes only rows that are needed at the step: first those that always are, then the others, with
// which they share columns.
Scope RegisterTile::OverNeededRows(const Patch& patch, NeededRows& needed,
                                   const std::vector<IndexId>& sums, AtPlace at) {
  const int64_t count = patch.extent.rows;
  const int64_t vectors = patch.extent.vectors;
  Scope always, sometimes;
  for (int64_t r = 0, first = 0; r <= count; ++r) {
    const IndexId is_needed = r < count ? needed.At(patch.row, r, count, sums) : Const(0);
    if (pool_.IsConst(is_needed, 1)) continue;
    Append(always, make_.Between("r", Const(first), Const(r), kUnrolled,
                                 [&](IndexId row) { return OverRow(row, vectors, at); }));
    Append(sometimes, make_.If(is_needed, [&] { return OverRow(Const(r), vectors, at); }));
    first = r + 1;
  }
  Append(always, std::move(sometimes));
  return always;
}

// tile = tile op value
Scope RegisterTile::Step(TensorId tile, const IndexList& in_tile, const Packing::Place& at,
                         Packing::Columns columns, const Packing::Panel* panel) {
  const ValueId old = program_.AddLoad({tile, in_tile});
  const ValueId next = program_.AddApply(StepOp(*nest_.step->op),
                                         {old, packing_.ValueAt(at, columns, panel)}, type_);
  return Assignment(tile, in_tile, next);
}

// The statements of the nest that use the sums of a tile. If these take many registers, they read
// the sums from memory, one vector after the other: accumulators would leave too few registers.
Scope RegisterTile::Ends(TensorId tile, const Patch& patch) {
  const auto as_they_are = [](absl::FunctionRef<Scope()> make) { return make(); };
  const auto ends_of = [&](TensorId tensor, LoopAttributes attributes) {
    return EndsOf({tensor, {}, Const(0), Const(0)}, patch, attributes, kVector, as_they_are);
  };
  if (operations_after_sum_ <= kMostOnRegisters) return ends_of(tile, kUnrolled);
  const Extent extent = patch.extent;
  const Shape shape = {Const(extent.rows), Const(extent.vectors), Const(lanes_)};
  const TensorId sums = program_.AddTensor({"sums", type_, shape, Storage::kTemp});
  Scope scope = {DeclarationOf(sums)};
  Append(scope, Stored(tile, extent, {sums, {}, Const(0), Const(0)}));
  Append(scope, ends_of(sums, kPlain));
  return scope;
}

Scope RegisterTile::EndsOfWaiting(const Patch& patch, const absl::optional<SumBlock>& part,
                                  Around around) {
  const auto ends = [&] { return EndsOf(*patch.waiting, patch, kPlain, kPlain, around); };
  return part ? AtEnd(*part, ends) : ends();
}

// For each row that is kept, each vector, and each lane that is a column: the core's statements.
Scope RegisterTile::EndsOf(const SumPlace& sums, const Patch& patch, LoopAttributes attributes,
                           LoopAttributes lanes, Around around) {
  return make_.Counted("r", Const(patch.extent.rows), attributes, [&](IndexId r) {
    return IfKept(patch, r, [&] {
      return make_.Counted("v", Const(patch.extent.vectors), attributes, [&](IndexId v) {
        const IndexId vector = pool_.Add(patch.vector, v);
        return make_.Counted("l", LanesOf(patch, vector), lanes, [&](IndexId l) {
          return around([&] {
            VarReplacement at(program_);
            packing_.Locate(at, pool_.Add(patch.row, r), vector, l);
            return FinishSum(program_, ranges_, nest_, ElementOf(sums, r, v, l), at,
                             packing_.ColumnAt(vector, l));
          });
        });
      });
    });
  });
}

}  // namespace nestor::loop
