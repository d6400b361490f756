// The copy has an axis for each sum that the operand moves with, one for the innermost batch loop
// and one for the columns (or for rows, and then these two come first), so that its subscripts are
// those loops' indices, whatever the operand's places are.
// A 1x1 convolution with stride 2 reads every second element of every second row. Lanes would
// gather them at each kernel; copied once, they lie side by side, and the rows of an image can
// become one long row (merge_axes). The copy reads each element once, the product once for each
// kernel. Only bare loads that are proven in range are copied.
#include "jit/schedule/sampled_columns.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/affine.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

class Sampler {
 public:
  Sampler(Program& program, Ranges& ranges)
      : program_(program), pool_(program.pool), ranges_(ranges), make_(program) {}

  // The nest with a copy of its columns, or of its rows; nullopt where it needs none.
  absl::optional<Scope> Sampled(const Loop& loop) {
    const absl::optional<Contraction> nest = ContractionOf(program_, loop);
    if (!nest || nest->batch.empty() || nest->is_ragged) return absl::nullopt;
    const Side columns{nest->column, nest->row, nest->columns, /*are_rows=*/false};
    const Side rows{nest->row, nest->column, nest->rows, /*are_rows=*/true};
    for (const Side& side : {columns, rows}) {
      if (side.operands.size() == 1 && StoresPairs(*nest, side) && IsSampled(*nest, side))
        return WithCopy(*nest, side);
    }
    return absl::nullopt;
  }

 private:
  struct Side {
    const Loop* loop;
    const Loop* other;
    absl::Span<const Contraction::Operand> operands;
    bool are_rows;
  };

  // Whether each element is stored at (.., i, j, ..) of a temporary, i and j being the loops that
  // the copy has axes for.
  bool StoresPairs(const Contraction& nest, const Side& side) const {
    return absl::c_all_of(*nest.core, [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || statement->target.place.empty()) return true;
      const IndexList& place = statement->target.place;
      const auto i = absl::c_find_if(
          place, [&](IndexId e) { return pool_.VarValue(e) == nest.batch.back()->var; });
      return program_[statement->target.tensor].storage == Storage::kTemp && i != place.end() &&
             i + 1 != place.end() && pool_.VarValue(*(i + 1)) == side.loop->var;
    });
  }

  // Whether only some of the columns that lie side by side, or of the rows that lie along the
  // sum, are read.
  bool IsSampled(const Contraction& nest, const Side& side) {
    const Access access = AccessOf(program_, side.operands[0]);
    if (access.masked || access.place.empty() || !DependsOn(program_, access, *nest.batch.back()))
      return false;
    const auto axis =
        side.are_rows ? OnlyAxisAlong(program_, access.place, *side.loop) : access.place.size() - 1;
    if (!axis || (side.are_rows && !LieAlongSum(nest, side, access))) return false;
    return StrideIn(pool_, access.place[*axis], side.loop->var).value_or(0) > 1 &&
           IsInRange(program_, ranges_, nest, side.operands[0]);
  }

  // False where windows slide over rows: a copy would hold elements several times.
  bool LieAlongSum(const Contraction& nest, const Side& side, const Access& access) {
    return IsAlong(program_, access, *nest.sums.back()) &&
           !SlidesAlong(program_, access, nest.sums, *side.loop) &&
           !SlidesAlong(program_, access, nest.sums, *nest.batch.back());
  }

  // for batch { temp sample  copy  for other { for last batch loop { for side { core on sample } }
  // } }
  absl::optional<Scope> WithCopy(const Contraction& nest, const Side& side) {
    const std::vector<Loop> hulls = HullLoopsOf(nest);
    const Access access = AccessOf(program_, side.operands[0]);
    std::vector<const Loop*> walked;
    for (const Loop& hull : hulls) {
      if (DependsOn(program_, access, hull)) walked.push_back(&hull);
    }
    walked.insert(side.are_rows ? walked.begin() : walked.end(), {nest.batch.back(), side.loop});
    TensorInfo info;
    info.name = "sample";
    info.type = program_[side.operands[0].load].type;
    for (const Loop* loop : walked) info.shape.push_back(ranges_.LengthOf(*loop));
    // Memory cannot be planned for a shape that moves with a loop around.
    if (absl::c_any_of(info.shape, [&](IndexId extent) { return pool_.HasVar(extent); }))
      return absl::nullopt;
    AssumeFewElements(program_, info.shape);
    const TensorId sample = program_.AddTensor(std::move(info));
    Scope scope = {DeclarationOf(sample)};
    Append(scope, Copy(side.operands[0].load, walked, sample));
    Scope core = SampledCore(nest, side.operands[0].load, walked, sample);
    Append(scope,
           Around(*side.other, Around(*nest.batch.back(), Around(*side.loop, std::move(core)))));
    return Around(absl::MakeConstSpan(nest.batch).first(nest.batch.size() - 1), std::move(scope));
  }

  // A loop for each axis of the copy, and the assignment inside of them; `place`: the indices so
  // far.
  Scope Copy(ValueId load, const std::vector<const Loop*>& walked, TensorId sample,
             IndexList place = {}) {
    if (place.size() < walked.size()) {
      const Loop& loop = *walked[place.size()];
      return make_.Counted(program_.vars[loop.var], program_[sample].shape[place.size()], kPlain,
                           [&](IndexId index) {
                             IndexList with = place;
                             with.push_back(index);
                             return Copy(load, walked, sample, std::move(with));
                           });
    }
    VarReplacement replace(program_);
    for (size_t i = 0; i < walked.size(); ++i)
      replace.Set(walked[i]->var, pool_.Add(walked[i]->begin, place[i]));
    return Assignment(sample, place,
                      RewriteIndices(program_, load, [&](IndexId e) { return replace(e); }));
  }

  // The core with the copy in place of the load, indexed by how far each loop has come.
  Scope SampledCore(const Contraction& nest, ValueId load, const std::vector<const Loop*>& walked,
                    TensorId sample) {
    IndexList place;
    for (const Loop* loop : walked) place.push_back(pool_.Sub(pool_.Var(loop->var), loop->begin));
    Scope core = *nest.core;
    VisitStatements(core, [&](Statement& statement) {
      statement.value =
          RewriteValues(program_, statement.value, [&](ValueId id) -> absl::optional<ValueId> {
            return id == load ? absl::make_optional(program_.AddLoad({sample, place}))
                              : absl::nullopt;
          });
    });
    return core;
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  LoopMaker make_;
};

}  // namespace

absl::StatusOr<bool> CopySampledColumns(Program& program) {
  Ranges ranges(program);
  Sampler sampler(program, ranges);
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return sampler.Sampled(loop); });
}

}  // namespace nestor::loop
