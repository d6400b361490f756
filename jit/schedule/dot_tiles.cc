// A product with few columns, say 4, leaves most lanes of a vector of columns empty. Here lanes
// hold steps of the sum instead: each element of the tile is a vector of partial sums, which are
// combined once at the end. That costs a sum of lanes for each result, so it pays only for long
// sums (IsLongSum).
//
// Columns are packed in the order in which tiles read them. A row for each would be as simple, but
// rows whose length is a multiple of a page would evict each other from the first cache.
//
// The steps are cut into whole vectors and one last vector of `left_` steps, which runs with fewer
// lanes: lanes beyond it keep the partial sums that they have. So no element beyond the sum is
// read, and none is added.
#include "jit/schedule/dot_tiles.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction_orientation.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/register_tile.h"
#include "jit/target/lanes.h"
#include "loop_ir/affine.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"
#include "uops/scalar_op.h"

namespace nestor::loop {
namespace {

// More rows would be too many streams of memory to fetch from at once.
constexpr int64_t kMostRows = 8;

// Summing the lanes of a vector takes about as long as this many multiply-adds.
constexpr int64_t kStepsToSumLanes = 4;

// Whether rows can be read in place, a vector of steps at a time, and columns can be copied.
bool IsTaken(Program& program, Ranges& ranges, const Contraction& nest, int64_t lanes,
             const std::vector<bool>& bound) {
  const auto lies_along = [&](const Contraction::Operand& operand) {
    const Access access = AccessOf(program, operand);
    return !access.masked && !IsBound(program, bound, access.tensor) &&
           IsAlong(program, access, *nest.sums[0]);
  };
  // Columns are copied even if there is no row.
  const auto is_safe = [&](const Contraction::Operand& operand) {
    return AccessOf(program, operand).masked || IsInRange(program, ranges, nest, operand);
  };
  return HasFewColumns(program, nest, lanes) && absl::c_all_of(nest.rows, lies_along) &&
         absl::c_all_of(nest.columns, is_safe);
}

class DotTiling : private SizeArithmetic {
 public:
  DotTiling(Program& program, Ranges& ranges, const Contraction& nest, jit::Isa isa)
      : SizeArithmetic(program.pool), program_(program), ranges_(ranges), make_(program),
        nest_(nest), type_(program[nest.accumulator].type), lanes_(jit::LanesOf(type_, isa)),
        columns_(*KnownLength(program, *nest.column)),
        // The tile has three quarters of the registers; the others hold rows and columns.
        rows_(std::clamp<int64_t>(jit::FactsOf(isa).vectors * 3 / 4 / columns_, 1, kMostRows)),
        whole_(pool_.Div(ranges.LengthOf(*nest.sums[0]), Const(lanes_))),
        left_(pool_.Mod(ranges.LengthOf(*nest.sums[0]), Const(lanes_))) {}

  Scope Run() {
    for (const Contraction::Operand& operand : nest_.columns) {
      const Shape shape = {pool_.Add(whole_, pool_.Min(left_, Const(1))), Const(columns_),
                           Const(lanes_)};
      if (!FitsItsTensor(operand)) AssumeFewElements(program_, shape);
      copies_.push_back({&operand, program_.AddTensor({"columns", program_[operand.read].type,
                                                       shape, Storage::kTemp})});
    }
    return Level(0);
  }

 private:
  struct Copy {
    const Contraction::Operand* operand;
    TensorId tensor;
  };
  // A step of the sum, counted from its begin: a vector of steps, and a lane in it.
  struct Step {
    IndexId vector, lane;
  };

  // The batch loops from number `depth` on, with the copies made there, around the rest.
  Scope Level(size_t depth) {
    Scope scope;
    for (const Copy& copy : copies_) {
      if (copy.operand->batch_loops == static_cast<int>(depth)) Append(scope, Pack(copy));
    }
    Append(scope,
           depth < nest_.batch.size() ? Around(*nest_.batch[depth], Level(depth + 1)) : Rows());
    return scope;
  }

  // Whether the copy has no more elements than its tensor.
  bool FitsItsTensor(const Contraction::Operand& operand) const {
    const Access access = AccessOf(program_, operand);
    const auto moves = [&](const Loop* loop) { return DependsOn(program_, access, *loop); };
    const Loop* const loops[] = {nest_.column, nest_.sums[0]};
    return absl::c_all_of(loops, moves) && IsReadOnce(program_, access, loops);
  }

  // columns[k, v, l] = b[16*k + l, v], with a last vector of steps that is filled in part.
  Scope Pack(const Copy& copy) {
    Scope scope = {DeclarationOf(copy.tensor)};
    const auto vectors = [&](IndexId first, IndexId count, IndexId lanes) {
      return make_.Counted("k", count, kPlain, [&](IndexId k) {
        return make_.Counted("v", Const(columns_), kPlain, [&](IndexId v) {
          return make_.Counted("l", lanes, kPlain, [&](IndexId l) {
            const Step step = {pool_.Add(first, k), l};
            return Assignment(copy.tensor, {step.vector, v, l},
                              At(copy.operand->read, Const(0), v, step));
          });
        });
      });
    };
    Append(scope, vectors(Const(0), whole_, Const(lanes_)));
    Append(scope, vectors(whole_, pool_.Min(left_, Const(1)), left_));
    return scope;
  }

  // `value` of the nest at a row, a column and a step.
  ValueId At(ValueId value, IndexId row, IndexId column, const Step& step) {
    VarReplacement at(program_);
    Locate(at, row, column);
    const Loop& sum = *nest_.sums[0];
    at.Set(sum.var,
           pool_.Add(sum.begin, pool_.Add(pool_.Mul(Const(lanes_), step.vector), step.lane)));
    return RewriteIndices(program_, value, [&](IndexId e) { return at(e); });
  }
  void Locate(VarReplacement& at, IndexId row, IndexId column) {
    at.Set(nest_.row->var, pool_.Add(nest_.row->begin, row));
    at.Set(nest_.column->var, ColumnAt(column));
  }
  IndexId ColumnAt(IndexId column) { return pool_.Add(nest_.column->begin, column); }

  // Whole tiles of rows, then the rows that are left one by one.
  Scope Rows() {
    const IndexId rows = ranges_.LengthOf(*nest_.row), tiles = pool_.Div(rows, Const(rows_));
    Scope scope = make_.Counted("p", tiles, kPlain,
                                [&](IndexId p) { return Tile(pool_.Mul(Const(rows_), p), rows_); });
    const IndexId first = pool_.Mul(Const(rows_), tiles);
    const IndexId left = NESTOR_MUTANT("last_rows_skipped") ? Const(0) : pool_.Sub(rows, first);
    Append(scope, make_.Counted("p", left, kPlain,
                                [&](IndexId p) { return Tile(pool_.Add(first, p), 1); }));
    return scope;
  }

  // A tile of `rows` rows from `row` on.
  Scope Tile(IndexId row, int64_t rows) {
    const TensorId tile = Register("tile", {Const(rows), Const(columns_), Const(lanes_)});
    Scope scope = {DeclarationOf(tile)};
    Append(scope, OverTile(rows, [&](IndexId r, IndexId v) {
             return make_.Counted("l", Const(lanes_), kVector, [&](IndexId l) {
               return Assignment(tile, {r, v, l},
                                 program_.AddConstant(Identity(*nest_.step->op, type_)));
             });
           }));
    const auto steps_of = [&](IndexId vector, IndexId count) {
      return OverTile(rows, [&](IndexId r, IndexId v) {
        return make_.Counted("l", count, kVector, [&](IndexId l) {
          return Accumulate(tile, {r, v, l}, pool_.Add(row, r), {vector, l});
        });
      });
    };
    Append(scope, make_.Counted("k", whole_, kPlain,
                                [&](IndexId k) { return steps_of(k, Const(lanes_)); }));
    Append(scope, steps_of(whole_, left_));
    Append(scope, OverTile(rows, [&](IndexId r, IndexId v) {
             return SumLanes(tile, r, v, pool_.Add(row, r));
           }));
    return scope;
  }

  // tile = tile + value
  Scope Accumulate(TensorId tile, const IndexList& in_tile, IndexId row, const Step& step) {
    const IndexId v = in_tile[1];
    const ValueId value =
        RewriteValues(program_, nest_.step->value, [&](ValueId id) -> absl::optional<ValueId> {
          const auto copy =
              absl::c_find_if(copies_, [&](const Copy& c) { return c.operand->read == id; });
          if (copy == copies_.end()) return absl::nullopt;
          return program_.AddLoad({copy->tensor, {step.vector, v, step.lane}});
        });
    const ValueId old = program_.AddLoad({tile, in_tile});
    return Assignment(
        tile, in_tile,
        program_.AddApply(StepOp(*nest_.step->op), {old, At(value, row, v, step)}, type_));
  }

  // Sums the lanes of a vector of the tile, and uses the sum.
  Scope SumLanes(TensorId tile, IndexId r, IndexId v, IndexId row) {
    Scope scope;
    const Access sum = CombineLanes(
        program_, tile, {r, v}, *nest_.step->op, [](int64_t) { return "lanes"; }, scope);
    VarReplacement at(program_);
    Locate(at, row, v);
    Append(scope, FinishSum(program_, ranges_, nest_, sum, at, ColumnAt(v)));
    return scope;
  }

  Scope OverTile(int64_t rows, absl::FunctionRef<Scope(IndexId r, IndexId v)> at) {
    return make_.Counted("r", Const(rows), kUnrolled, [&](IndexId r) {
      return make_.Counted("v", Const(columns_), kUnrolled, [&](IndexId v) { return at(r, v); });
    });
  }

  TensorId Register(const char* name, Shape shape) {
    return program_.AddTensor(
        {name, type_, std::move(shape), Storage::kTemp, ReduceOp::kSum, /*is_register=*/true});
  }

  Program& program_;
  Ranges& ranges_;
  LoopMaker make_;
  const Contraction& nest_;
  const DType type_;
  const int64_t lanes_, columns_, rows_;
  const IndexId whole_, left_;  // vectors of steps, and steps after them
  std::vector<Copy> copies_;
};

}  // namespace

// The nest or its exchange, whichever has so few columns that lanes along the sum pay.
absl::optional<Contraction> WithFewColumns(Program& program, Ranges& ranges,
                                           const Contraction& nest, jit::Isa isa,
                                           const std::vector<bool>& bound) {
  const auto moves = [&](const Loop& loop) { return program.pool.HasVar(ranges.LengthOf(loop)); };
  if (*nest.step->op != ReduceOp::kSum || nest.is_ragged || nest.sums.size() != 1)
    return absl::nullopt;
  if (moves(*nest.row) || moves(*nest.column) || moves(*nest.sums[0])) return absl::nullopt;
  const int64_t lanes = jit::LanesOf(program[nest.accumulator].type, isa);
  for (const Contraction& either : {nest, Exchanged(nest)}) {
    if (IsTaken(program, ranges, either, lanes, bound)) return either;
  }
  return absl::nullopt;
}

// Lanes of steps need only columns / lanes times the multiply-adds that lanes of columns need.
IndexId IsLongSum(Program& program, Ranges& ranges, const Contraction& nest, jit::Isa isa) {
  const int64_t lanes = jit::LanesOf(program[nest.accumulator].type, isa),
                columns = *KnownLength(program, *nest.column);
  const int64_t least = kStepsToSumLanes * lanes * columns / (lanes - columns);
  IndexPool& pool = program.pool;
  return pool.Min(pool.Const(1), pool.Div(ranges.LengthOf(*nest.sums[0]), pool.Const(least)));
}

Scope DotTiles(Program& program, Ranges& ranges, const Contraction& nest, jit::Isa isa) {
  return DotTiling(program, ranges, nest, isa).Run();
}

}  // namespace nestor::loop
