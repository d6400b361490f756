// Which loop of a contraction fills the lanes is decided by where results lie (contraction.cc), but
// sometimes the other one would be faster even with a transpose of the results: windows that slide
// along a row load each element once for each place, and a row of 7 or 14 elements leaves lanes
// idle, while the number of kernels is mostly a multiple of the lanes. So the sum moves into a nest
// of its own, with row and column loops exchanged, or without the stores that kept rows of an image
// apart; statements that use the sum stay where they were, and the results pass through a
// temporary.
//
// The transpose costs one load and one store for each result, which has taken as many products as
// the sum has steps. All tests here are about whether more lanes are then busy, or fewer elements
// are copied; none about correctness, as the rows and columns of a contraction may run in any
// order.
#include "jit/schedule/turn_results.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_orientation.h"
#include "jit/schedule/kept_sum.h"
#include "jit/schedule/replace_loops.h"
#include "jit/target/lanes.h"
#include "loop_ir/affine.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {
namespace {

class Turner {
 public:
  Turner(Program& program, Ranges& ranges, jit::Isa isa, const std::vector<bool>& bound)
      : program_(program), pool_(program.pool), ranges_(ranges), isa_(isa), bound_(bound) {}

  // The sums go to a temporary that lies as they are computed, and a copy then turns it.
  absl::optional<Scope> Turned(const Loop& loop) {
    const absl::optional<Contraction> nest = ContractionOf(program_, loop);
    if (!nest || !MayKeepSums(*nest)) return absl::nullopt;
    if (IsBetterTurned(*nest)) {
      return HasStrips(*nest) ? InStrips(*nest)
                              : Rebuilt(*nest, "turned", {nest->column, nest->row});
    }
    if (ScattersRows(*nest))
      return Rebuilt(*nest, "gathered", {nest->row, nest->batch.back(), nest->column});
    return absl::nullopt;
  }

 private:
  // A temporary of the sums alone must suffice: nothing else may be declared beside them.
  bool MayKeepSums(const Contraction& nest) const {
    const auto is_plain = [&](const Item& item) {
      const auto* declaration = item.As<Declaration>();
      return declaration == nullptr || declaration->tensor == nest.accumulator;
    };
    return !nest.is_ragged && absl::c_all_of(*nest.core, is_plain) &&
           !BoundsMove(pool_, *nest.row) && !BoundsMove(pool_, *nest.column);
  }

  bool IsBetterTurned(const Contraction& nest) {
    const auto slides = [&](const Contraction::Operand& operand) { return Slides(nest, operand); };
    return (absl::c_all_of(nest.columns, slides) || OnlyColumnsLieAcross(nest) ||
            LeavesLanesIdle(nest)) &&
           FillsMoreLanes(nest);
  }

  // Whether lanes along columns would have to be gathered in each call, but lanes along rows need
  // not be: they lie side by side, or are packed once.
  bool OnlyColumnsLieAcross(const Contraction& nest) {
    const auto lies_across = [&](const Contraction::Operand& operand) {
      return LiesAcross(nest, operand);
    };
    const auto is_at_hand = [&](const Contraction::Operand& operand) {
      const Access access = AccessOf(program_, operand);
      const bool lies_together =
          !access.place.empty() && MovesWithAny(pool_, access.place.back(), nest.sums);
      return !lies_together || IsBound(program_, bound_, access.tensor);
    };
    return absl::c_all_of(nest.columns, lies_across) && absl::c_all_of(nest.rows, is_at_hand);
  }

  // Whether the operand is a temporary that is contiguous along a sum, and not along columns.
  bool LiesAcross(const Contraction& nest, const Contraction::Operand& operand) {
    const Access access = AccessOf(program_, operand);
    const auto lies_along = [&](const Loop* loop) { return IsAlong(program_, access, *loop); };
    return program_[access.tensor].storage == Storage::kTemp && !lies_along(nest.column) &&
           absl::c_any_of(nest.sums, lies_along);
  }

  // Whether only the places of the results keep the rows of an image apart, which lie one after the
  // other in the operands, so that they could be columns of one product (MergeRowsOfTemporaries).
  bool ScattersRows(const Contraction& nest) {
    if (nest.batch.empty()) return false;
    const Loop& row = *nest.batch.back();
    const auto walks_rows = [&](const Contraction::Operand& operand) {
      return WalksWhole(AccessOf(program_, operand), row, *nest.column);
    };
    const auto moves = [&](const Contraction::Operand& operand) {
      return DependsOn(program_, AccessOf(program_, operand), row);
    };
    return absl::c_all_of(nest.columns, walks_rows) && absl::c_none_of(nest.rows, moves) &&
           absl::c_any_of(*nest.core,
                          [&](const Item& item) { return StoresApart(item, *nest.column); });
  }

  // Whether the loops walk all of the last two axes of a temporary.
  bool WalksWhole(const Access& access, const Loop& outer, const Loop& inner) const {
    const TensorInfo& info = program_[access.tensor];
    const size_t rank = info.shape.size();
    const auto walks = [&](size_t axis, const Loop& loop) {
      return pool_.VarValue(access.place[axis]) == loop.var && info.shape[axis] == loop.end &&
             pool_.IsConst(loop.begin, 0);
    };
    return info.storage == Storage::kTemp && rank > 1 && !access.masked && walks(rank - 2, outer) &&
           walks(rank - 1, inner);
  }

  // Whether a result lies more than one element after that of the column before, as in y[2*j].
  bool StoresApart(const Item& item, const Loop& column) const {
    const auto* statement = item.As<Statement>();
    if (statement == nullptr || statement->target.place.empty()) return false;
    return StrideIn(pool_, statement->target.place.back(), column.var).value_or(0) > 1;
  }

  // Whether the last of several vectors is known to have so few columns that a
  // transpose costs less.
  bool LeavesLanesIdle(const Contraction& nest) const {
    constexpr double kBusy = 0.85;
    const int64_t lanes = jit::LanesOf(program_[nest.accumulator].type, isa_);
    const auto columns = KnownLength(program_, *nest.column);
    return columns && *columns > lanes &&
           Filled(*columns, lanes) < kBusy * static_cast<double>(lanes);
  }

  // How many lanes of a vector that many elements fill, on average.
  static double Filled(int64_t elements, int64_t lanes) {
    const int64_t vectors = (elements + lanes - 1) / lanes;
    return static_cast<double>(elements) / static_cast<double>(vectors);
  }

  // Whether a window of known size slides over the operand's rows, with the column.
  bool Slides(const Contraction& nest, const Contraction::Operand& operand) const {
    const Access access = AccessOf(program_, operand);
    if (access.place.empty() || !HoldsVar(pool_, access.place.back(), nest.column->var))
      return false;
    return absl::c_any_of(nest.sums, [&](const Loop* sum) {
      const auto length = KnownLength(program_, *sum);
      return HoldsVar(pool_, access.place.back(), sum->var) && length && *length > 1;
    });
  }

  // A single vector of kernels would be too narrow a tile. Where nothing is known, some idle lanes
  // of kernels matter less than those at the end of each row of an image.
  bool FillsMoreLanes(const Contraction& nest) const {
    const int64_t lanes = jit::LanesOf(program_[nest.accumulator].type, isa_);
    const auto kernels = KnownLength(program_, *nest.row),
               columns = KnownLength(program_, *nest.column);
    if (kernels && *kernels < 2 * lanes) return false;
    return !columns || (kernels ? Filled(*kernels, lanes) : static_cast<double>(lanes)) >
                           Filled(*columns, lanes);
  }

  // The sums along `order`, and then the statements that use them, in the batch loops that are
  // not in `order`.
  Scope Rebuilt(const Contraction& nest, absl::string_view name, const LoopsAround& order) {
    const KeptSum kept(program_, ranges_, name, nest.accumulator, order);
    LoopsAround around = nest.batch;
    if (order.size() > 2) around.pop_back();
    return Around(around, SumsAndEnds(nest, kept, order));
  }

  // Statements that use the sums run along the rows that they store; in a strip, through all rows
  // of a kernel, which lie one after the other.
  Scope SumsAndEnds(const Contraction& nest, const KeptSum& kept, const LoopsAround& order) {
    LoopsAround ends = order;
    if (ends.back() != nest.column) std::rotate(ends.begin(), ends.end() - 1, ends.end());
    return kept.SumsAndEnds(ranges_, *nest.core, order, ends);
  }

  // Whether windows slide over columns along the innermost batch loop, too, and rows are the same
  // at each of its iterations.
  bool HasStrips(const Contraction& nest) const {
    if (nest.batch.empty()) return false;
    const Loop& batch = *nest.batch.back();
    const auto length = KnownLength(program_, batch);
    const auto slides = [&](const Contraction::Operand& operand) {
      return SlidesAlong(program_, AccessOf(program_, operand), nest.sums, batch);
    };
    const auto moves = [&](const Contraction::Operand& operand) {
      return DependsOn(program_, AccessOf(program_, operand), batch);
    };
    return !(length && *length <= 1) && !BoundsMove(pool_, batch) &&
           absl::c_all_of(nest.columns, slides) && absl::c_none_of(nest.rows, moves);
  }

  // The same in strips of the innermost batch loop.
  Scope InStrips(const Contraction& nest) {
    const Strips strips = EvenStripsOf(program_, ranges_, *nest.batch.back());
    const KeptSum kept(program_, ranges_, "turned", nest.accumulator,
                       {&strips.whole, nest.column, nest.row});
    ranges_.Enter(strips.over);
    Scope scope =
        Around(strips.over, SumsAndEnds(nest, kept, {&strips.strip, nest.column, nest.row}));
    ranges_.Leave();
    return Around(absl::MakeConstSpan(nest.batch).first(nest.batch.size() - 1), std::move(scope));
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  const jit::Isa isa_;
  const std::vector<bool>& bound_;
};

}  // namespace

absl::StatusOr<bool> TurnResults(Program& program, jit::Isa isa, const std::vector<bool>& bound) {
  Ranges ranges(program);
  Turner turner(program, ranges, isa, bound);
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return turner.Turned(loop); });
}

}  // namespace nestor::loop
