// The sum moves into a nest of its own, with the loops that share its operands turned around;
// what is done with it stays where it was.
#include "jit/schedule/turn_results.h"

#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/kept_sum.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "jit/target/lanes.h"
#include "loop_ir/lanes.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::jit {
namespace {

using loop::Access;
using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;

class Turner {
 public:
  Turner(Program& program, loop::Ranges& ranges, Isa isa)
      : program_(program), pool_(program.pool), ranges_(ranges), isa_(isa) {}

  absl::optional<Scope> Turned(const Loop& loop) {
    const absl::optional<Contraction> nest = ContractionOf(program_, loop);
    if (!nest || !MayTurn(*nest) || !FillsMoreLanes(*nest)) return absl::nullopt;
    return Rebuilt(*nest);
  }

 private:
  bool MayTurn(const Contraction& nest) const {
    const auto is_plain = [&](const Item& item) {
      const auto* declaration = item.As<loop::Declaration>();
      return declaration == nullptr || declaration->tensor == nest.accumulator;
    };
    const auto is_fixed = [&](const Loop& side) { return !pool_.HasVar(side.begin) && !pool_.HasVar(side.end); };
    const auto slides = [&](const Contraction::Operand& operand) { return Slides(nest, operand); };
    return !nest.is_ragged && absl::c_all_of(*nest.core, is_plain) && is_fixed(*nest.row) && is_fixed(*nest.column) &&
           (absl::c_all_of(nest.columns, slides) || LeavesLanesIdle(nest));
  }

  // Whether so few columns are known to be in the last of some vectors that a turn costs less.
  bool LeavesLanesIdle(const Contraction& nest) const {
    constexpr double kBusy = 0.85;
    const int64_t lanes = LanesOf(program_[nest.accumulator].type, isa_);
    const auto columns = KnownLength(program_, *nest.column);
    return columns && *columns > lanes && Filled(*columns, lanes) < kBusy * static_cast<double>(lanes);
  }

  // Lanes of a vector that so many elements fill, on average.
  static double Filled(int64_t elements, int64_t lanes) {
    const int64_t vectors = (elements + lanes - 1) / lanes;
    return static_cast<double>(elements) / static_cast<double>(vectors);
  }

  // Whether a window of known size slides over the operand's rows, with the column.
  bool Slides(const Contraction& nest, const Contraction::Operand& operand) const {
    const Access access = AccessOf(program_, operand);
    if (access.place.empty() || !HoldsVar(pool_, access.place.back(), nest.column->var)) return false;
    return absl::c_any_of(nest.sums, [&](const Loop* sum) {
      const auto length = KnownLength(program_, *sum);
      return HoldsVar(pool_, access.place.back(), sum->var) && length && *length > 1;
    });
  }

  // A single vector of kernels would be too narrow a tile. Where nothing is known, some kernels
  // more or less matter less than what is left over of each row of an image.
  bool FillsMoreLanes(const Contraction& nest) const {
    const int64_t lanes = LanesOf(program_[nest.accumulator].type, isa_);
    const auto kernels = KnownLength(program_, *nest.row), columns = KnownLength(program_, *nest.column);
    if (kernels && *kernels < 2 * lanes) return false;
    return !columns || (kernels ? Filled(*kernels, lanes) : static_cast<double>(lanes)) > Filled(*columns, lanes);
  }

  // In the batch loops the sums, and then what is done with them.
  Scope Rebuilt(const Contraction& nest) {
    const KeptSum turned(program_, ranges_, "turned", nest.accumulator, {nest.column, nest.row});
    Scope scope = {fusion::DeclarationOf(turned.tensor())};
    Append(scope, Around(*nest.column, Around(*nest.row, Sums(nest, turned))));
    Append(scope, Ends(nest, turned));
    for (size_t i = nest.batch.size(); i-- > 0;) scope = Around(*nest.batch[i], std::move(scope));
    return scope;
  }

  static bool IsStatement(const Item& item) { return item.As<Statement>() != nullptr; }

  static Scope Sums(const Contraction& nest, const KeptSum& turned) {
    Scope sums;
    absl::c_remove_copy_if(*nest.core, std::back_inserter(sums), IsStatement);
    Append(sums, turned.Store());
    return sums;
  }

  // Statements at loops of their own.
  Scope Ends(const Contraction& nest, const KeptSum& turned) {
    Scope ends;
    absl::c_copy_if(*nest.core, std::back_inserter(ends), IsStatement);
    turned.LoadInstead(ends);
    Loop loop = *Around(*nest.row, Around(*nest.column, std::move(ends)))[0].As<Loop>();
    absl::optional<Loop> fresh = fusion::FreshCopy(program_, ranges_, loop);
    return fresh ? ScopeOf(*std::move(fresh)) : Scope();
  }

  Program& program_;
  IndexPool& pool_;
  loop::Ranges& ranges_;
  const Isa isa_;
};

}  // namespace

absl::StatusOr<bool> TurnResults(Program& program, Isa isa) {
  loop::Ranges ranges(program);
  Turner turner(program, ranges, isa);
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return turner.Turned(loop); });
}

}  // namespace nestor::jit
