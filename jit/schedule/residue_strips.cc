// The gradient of a convolution with stride 2 sums over different places of the window at even and
// at odd columns, so that split_residues makes a nest for each remainder. Each of these stores
// every second element of a row, so that each cache line is written twice. Here the sums of both go
// into a small temporary, side by side with kernels in lanes, and whole rows are stored from it.
//
// The nest qualifies if the loads divide between the column (with the row beside it) on one side
// and a loop over kernels on the other: then it is a contraction for each remainder. A load that
// depends on the column through its remainder alone, such as w[i%2 - 2*r], counts as fixed, since
// the remainder is a number in each nest (MovesBesideRests).
#include "jit/schedule/residue_strips.h"

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/kept_sum.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/split_residues.h"
#include "jit/target/lanes.h"
#include "loop_ir/affine.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {
namespace {

// Rows of a strip for each remainder: their operands and results stay in the second cache.
constexpr int64_t kMostRows = 7;

struct Nest {
  LoopsAround band;  // outermost first
  const Scope* core = nullptr;
  const Statement* step = nullptr;
  TensorId accumulator;
};

class Gatherer {
 public:
  Gatherer(Program& program, Ranges& ranges, jit::Isa isa)
      : program_(program), pool_(program.pool), ranges_(ranges), isa_(isa) {}

  // Tries each loop as the one over kernels, inner ones first.
  absl::optional<Scope> Gathered(const Loop& outermost) {
    const absl::optional<Nest> nest = NestOf(outermost);
    if (!nest || nest->band.size() < 3) return absl::nullopt;
    const Loop& column = *nest->band.back();
    if (!DivisorOfBounds(program_, column) || !AreIndependent(program_, outermost, column))
      return absl::nullopt;
    for (size_t kernel = nest->band.size() - 1; kernel-- > 0;) {
      const absl::optional<size_t> row = RowBeside(*nest, kernel);
      if (row && FillsVectors(*nest, *nest->band[kernel])) return InStrips(*nest, *row, kernel);
    }
    return absl::nullopt;
  }

 private:
  // A nest with one sum, which declares nothing else.
  absl::optional<Nest> NestOf(const Loop& outermost) const {
    Nest nest;
    nest.band = BandOf(outermost);
    const auto moves = [&](const Loop* loop) { return BoundsMove(pool_, *loop); };
    if (absl::c_any_of(nest.band, moves)) return absl::nullopt;
    nest.core = &nest.band.back()->body;
    const Loop* sum = OneLoopAmong(*nest.core);
    nest.step = sum == nullptr ? nullptr : OnlyStatementIn(*sum);
    if (nest.step == nullptr || !nest.step->op) return absl::nullopt;
    nest.accumulator = nest.step->target.tensor;
    const bool declares_sum_alone = absl::c_all_of(*nest.core, [&](const Item& item) {
      const auto* declaration = item.As<Declaration>();
      return declaration == nullptr || declaration->tensor == nest.accumulator;
    });
    return declares_sum_alone && program_[nest.accumulator].shape.empty()
               ? absl::optional<Nest>(nest)
               : absl::nullopt;
  }

  // The innermost divided loop that moves the same loads as the column, if all other loads move
  // with the kernel only.
  absl::optional<size_t> RowBeside(const Nest& nest, size_t kernel) const {
    const Loop &column = *nest.band.back(), &kernels = *nest.band[kernel];
    const std::vector<const Access*> loads = LoadsOf(nest);
    const auto move_with_one = [&](const Access* load) {
      return Moves(*load, column) != Moves(*load, kernels);
    };
    const auto move_with_kernel = [&](const Access* load) { return Moves(*load, kernels); };
    if (!absl::c_all_of(loads, move_with_one) || !absl::c_any_of(loads, move_with_kernel))
      return absl::nullopt;
    absl::optional<size_t> row;
    for (size_t i = 0; i + 1 < nest.band.size(); ++i) {
      const auto moves_as_column = [&](const Access* load) {
        return Moves(*load, *nest.band[i]) == Moves(*load, column);
      };
      if (DivisorOfBounds(program_, *nest.band[i]) && absl::c_all_of(loads, moves_as_column))
        row = i;
    }
    return row;
  }

  std::vector<const Access*> LoadsOf(const Nest& nest) const {
    std::vector<const Access*> loads;
    VisitLoads(program_, nest.step->value,
               [&](ValueId, const Access& access) { loads.push_back(&access); });
    return loads;
  }

  // Whether the access moves with the loop, at a fixed remainder of its index.
  bool Moves(const Access& access, const Loop& loop) const {
    const auto moves = [&](IndexId e) { return MovesBesideRests(e, loop.var); };
    return absl::c_any_of(access.place, moves) || absl::c_any_of(access.conditions, moves);
  }
  bool MovesBesideRests(IndexId e, int32_t var) const {
    const IndexNode& node = pool_[e];
    if (node.kind == IndexKind::kVar) return node.value == var;
    if (node.kind == IndexKind::kMod && pool_.ConstValue(node.args[1])) return false;
    return absl::c_any_of(node.args, [&](IndexId arg) { return MovesBesideRests(arg, var); });
  }

  bool FillsVectors(const Nest& nest, const Loop& kernels) {
    const auto length = KnownLength(program_, kernels);
    return !length || *length >= 2 * jit::LanesOf(program_[nest.accumulator].type, isa_);
  }

  // Strips have a multiple of the divisor's rows, so that each remainder has the same number.
  Scope InStrips(const Nest& nest, size_t row, size_t kernel) {
    const Loop &rows = *nest.band[row], &kernels = *nest.band[kernel], &column = *nest.band.back();
    const Strips strips =
        StripsOf(program_, ranges_, rows, kMostRows * *DivisorOfBounds(program_, rows));
    const KeptSum kept(program_, ranges_, "gathered", nest.accumulator,
                       {&strips.whole, &column, &kernels});
    ranges_.Enter(strips.over);
    Scope scope = Around(strips.over,
                         kept.SumsAndEnds(ranges_, *nest.core, {&strips.strip, &column, &kernels},
                                          {&kernels, &strips.strip, &column}));
    ranges_.Leave();
    LoopsAround around;
    absl::c_copy_if(nest.band, std::back_inserter(around), [&](const Loop* loop) {
      return loop != &rows && loop != &kernels && loop != &column;
    });
    return Around(around, std::move(scope));
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  const jit::Isa isa_;
};

}  // namespace

absl::StatusOr<bool> GatherResidues(Program& program, jit::Isa isa) {
  Ranges ranges(program);
  Gatherer gatherer(program, ranges, isa);
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return gatherer.Gathered(loop); });
}

}  // namespace nestor::loop
