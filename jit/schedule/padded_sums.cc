// A sum whose bounds move with a column is no contraction: lanes of one vector would sum over
// different steps. If an operand is 0 at the steps outside of these bounds, the sum may as well run
// over all steps. First, a factor is found that is 0 at all added steps; then the nest is made with
// and without these steps, with code between the two that finds out whether the second has to run.
//
// Why this changes no bit: an added product is +0 or -0 as long as the other factors are finite,
// and a sum that starts at +0 is never -0 (+0 + -0 is +0), so that adding either leaves it as it
// is. If a factor is inf or NaN, the product is NaN, and so is the sum: the results are searched
// for NaN, and only if there is one, the other factors for inf and NaN. All factors that are no
// load of the zero are in ZeroFactor::others (zero_factor.h).
#include "jit/schedule/padded_sums.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/sum_nest.h"
#include "jit/schedule/zero_factor.h"
#include "jit/target/products.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// The nest, and a loop in it with which bounds of sums move.
struct Nest : SumNest {
  const Loop* loop = nullptr;
};

// One of each term of the summed value.
using ZeroFactors = std::vector<ZeroFactor>;

// What must be finite for all the terms to be 0.
std::vector<ValueId> OthersOf(const ZeroFactors& zeros) {
  std::vector<ValueId> others;
  for (const ZeroFactor& zero : zeros) absl::c_copy(zero.others, std::back_inserter(others));
  return others;
}

class SumPadder {
 public:
  SumPadder(Program& program, Ranges& ranges, bool leaves_out)
      : program_(program), pool_(program.pool), ranges_(ranges), leaves_out_(leaves_out) {}

  absl::optional<Scope> Padded(const Loop& outermost) {
    absl::optional<Scope> padded;
    FindLoop(outermost, [&](const Nest& nest, const ZeroFactors& zeros) {
      padded = PaddedAlong(nest, zeros);
      return padded.has_value();
    });
    return padded;
  }

  absl::optional<Loop> RunningOn(const Loop& outermost) {
    absl::optional<Loop> whole;
    FindLoop(outermost, [&](const Nest& nest, const ZeroFactors& zeros) {
      whole = RunningOn(nest, zeros, 0);
      return whole.has_value();
    });
    return whole;
  }

 private:
  // Tries the loops along which the sums may run on, until one will do. Inner loops first: the
  // lanes are there.
  void FindLoop(const Loop& outermost,
                absl::FunctionRef<bool(const Nest& nest, const ZeroFactors& zeros)> will_do) {
    const absl::optional<SumNest> found = SumNestOf(program_, outermost);
    if (!found) return;
    Nest nest{*found};
    for (size_t i = nest.band.size(); i-- > 0;) {
      nest.loop = nest.band[i];
      const ZeroFactors zeros = ZerosAlong(nest);
      if (!zeros.empty() && will_do(nest, zeros)) return;
    }
  }

  // ---- The nest

  bool Moves(const Nest& nest) const {
    return absl::c_any_of(
        nest.sums, [&](const Loop* sum) { return BoundsMoveWith(pool_, *sum, nest.loop->var); });
  }

  // The bound without the part that moves with the loop: the other argument of a maximum or
  // minimum. Invalid: all of it moves.
  IndexId FixedOf(IndexId bound, IndexKind kind, const Loop& loop) const {
    if (!HoldsVar(pool_, bound, loop.var)) return bound;
    const IndexNode& node = pool_[bound];
    if (node.kind != kind) return {};
    const auto fixed =
        absl::c_find_if(node.args, [&](IndexId arg) { return !HoldsVar(pool_, arg, loop.var); });
    return fixed == node.args.end() ? IndexId() : *fixed;
  }

  // The nest with its sums padded along nest.loop; nullopt where even then it is no contraction with
  // that loop for a side.
  absl::optional<Scope> PaddedAlong(const Nest& nest, const ZeroFactors& zeros) {
    // If a loop is around, operands are in a cache already.
    const bool is_sure = OthersOf(zeros).empty();
    const size_t depth =
        is_sure || !IsOutermost(program_, *nest.band[0]) ? 0 : LoopsOverImages(nest, zeros);
    absl::optional<Loop> whole = RunningOn(nest, zeros, depth);
    if (!whole) return absl::nullopt;
    if (is_sure) return ScopeOf(*std::move(whole));
    for (size_t i = 0; i < depth; ++i) ranges_.Enter(*nest.band[i]);
    Scope scope = WithSecondRun(program_, ranges_, nest, depth, *std::move(whole), OthersOf(zeros));
    for (size_t i = depth; i-- > 0;) {
      ranges_.Leave();
      scope = Around(*nest.band[i], std::move(scope));
    }
    return scope;
  }

  // The loops of the nest from number `depth` on, with sums that run on; nullopt where they are no
  // contraction even then.
  absl::optional<Loop> RunningOn(const Nest& nest, const ZeroFactors& zeros, size_t depth) {
    Loop whole = *nest.band[depth];
    PutSumsFirst(nest, whole);
    Pad(nest, zeros, whole);
    const absl::optional<Contraction> found = ContractionOf(program_, whole);
    if (!found || (found->column->var != nest.loop->var && found->row->var != nest.loop->var))
      return absl::nullopt;
    return whole;
  }

  // ---- The zero

  // Factors that are 0 where the sums would run on along nest.loop; none where a term has none, or
  // their bounds do not move with that loop.
  ZeroFactors ZerosAlong(const Nest& nest) {
    ZeroFactors zeros;
    if (!Moves(nest)) return zeros;
    for (const ValueId term : TermsOf(nest.step->value)) {
      absl::optional<ZeroFactor> zero = ZeroIn(nest, term);
      if (!zero) return {};
      zeros.push_back(*std::move(zero));
    }
    return zeros;
  }

  // The values of which the value is made by sums and differences, each once: sums may share parts,
  // and be nested deeply.
  std::vector<ValueId> TermsOf(ValueId value) const {
    std::vector<ValueId> terms, left = {value};
    absl::flat_hash_set<int32_t> seen;
    while (!left.empty()) {
      const ValueId id = left.back();
      left.pop_back();
      if (!seen.insert(id.value).second) continue;
      const ApplyValue* sum = jit::AsApply(program_, id, ScalarOp::kAdd);
      if (sum == nullptr) sum = jit::AsApply(program_, id, ScalarOp::kSub);
      if (sum == nullptr) terms.push_back(id);
      else absl::c_copy(sum->args, std::back_inserter(left));
    }
    return terms;
  }

  absl::optional<ZeroFactor> ZeroIn(const Nest& nest, ValueId term) {
    for (const ValueId load : LoadsOf(program_, term)) {
      absl::optional<ZeroFactor> zero = ZeroFactorOf(program_, term, load);
      if (zero && CanBePadded(nest, term, load)) return zero;
    }
    return absl::nullopt;
  }

  bool CanBePadded(const Nest& nest, ValueId term, ValueId zero) {
    const Access& access = absl::get<LoadValue>(program_[zero].node).access;
    const bool is_zero_outside = !access.masked || jit::IsPlusZero(program_, access.fill);
    return is_zero_outside && OthersAreInRange(nest, term, zero) &&
           absl::c_all_of(nest.sums,
                          [&](const Loop* sum) { return LiesOutsideBeside(nest, access, *sum); });
  }

  // All other loads are read at the added steps, too.
  bool OthersAreInRange(const Nest& nest, ValueId term, ValueId zero) {
    for (const Loop* loop : nest.band) ranges_.Enter(*loop);
    for (const Loop& sum : nest.hulls) ranges_.Enter(sum);
    bool good = true;
    VisitLoads(program_, term, [&](ValueId id, const Access& access) {
      if (id == zero || access.masked) return;
      good = good && ranges_.InRange(access.place, program_[access.tensor].shape);
    });
    for (size_t i = 0; i < nest.band.size() + nest.sums.size(); ++i) ranges_.Leave();
    return good;
  }

  // Whether the access leaves its tensor at each bound of the sum that moves, so that it stays
  // outside at all steps beyond.
  bool LiesOutsideBeside(const Nest& nest, const Access& access, const Loop& sum) {
    const IndexId begin = FixedOf(sum.begin, IndexKind::kMax, *nest.loop);
    const IndexId end = FixedOf(sum.end, IndexKind::kMin, *nest.loop);
    if (begin.value < 0 || end.value < 0) return false;
    if (begin != sum.begin) {
      const IndexId last_before = pool_.Sub(Other(sum.begin, begin), pool_.Const(1));
      if (!IsOutside(nest, access, sum, last_before, -1)) return false;
    }
    return end == sum.end || IsOutside(nest, access, sum, Other(sum.end, end), 1);
  }

  // The other argument of a minimum or maximum: max(R - j - 1, 0) without 0.
  IndexId Other(IndexId bound, IndexId arg) const {
    const IndexNode& node = pool_[bound];
    return node.args[0] == arg ? node.args[1] : node.args[0];
  }

  // Whether the access is outside along an axis at the step, and further steps, in `direction`,
  // move it away from its tensor.
  bool IsOutside(const Nest& nest, const Access& access, const Loop& sum, IndexId step,
                 int64_t direction) {
    const Shape& shape = program_[access.tensor].shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const auto by = StrideIn(pool_, access.place[axis], sum.var);
      if (!by || *by == 0) continue;
      VarReplacement replace(program_);
      replace.Set(sum.var, step);
      const IndexId place = replace(access.place[axis]);
      for (const Loop* loop : nest.band) ranges_.Enter(*loop);
      const bool outside = *by * direction > 0 ? ranges_.LessEqual(shape[axis], place)
                                               : ranges_.Less(place, pool_.Const(0));
      for (size_t i = 0; i < nest.band.size(); ++i) ranges_.Leave();
      if (outside) return true;
    }
    return false;
  }

  // ---- What becomes of the nest

  // Makes the sums run over all steps, at which the load of the zero may be outside.
  void Pad(const Nest& nest, const ZeroFactors& zeros, Loop& whole) {
    const IndexList needed_if = leaves_out_ ? BoundsThatMove(nest) : IndexList();
    const auto is_zero = [&](ValueId id) {
      return absl::c_any_of(zeros, [&](const ZeroFactor& zero) { return zero.load == id; });
    };
    const auto is_sum = [&](const Loop& loop) {
      return absl::c_any_of(nest.sums, [&](const Loop* sum) { return sum->var == loop.var; });
    };
    VisitScopes(whole.body, [&](Scope& scope) {
      for (Item& item : scope) {
        auto* sum = item.As<Loop>();
        if (sum == nullptr || !is_sum(*sum)) continue;
        sum->begin = FixedOf(sum->begin, IndexKind::kMax, *nest.loop);
        sum->end = FixedOf(sum->end, IndexKind::kMin, *nest.loop);
      }
    });
    VisitStatements(whole.body, [&](Statement& statement) {
      const bool is_step = statement.target.tensor == nest.step->target.tensor;
      if (is_step) absl::c_copy(needed_if, std::back_inserter(statement.needed_if));
      statement.value =
          RewriteValues(program_, statement.value, [&](ValueId id) -> absl::optional<ValueId> {
            if (!is_zero(id)) return absl::nullopt;
            Access access = absl::get<LoadValue>(program_[id].node).access;
            if (!access.masked) access.fill = program_.AddConstant(Scalar::Zero(program_[id].type));
            access.masked = true;
            return program_.AddLoad(std::move(access));
          });
    });
  }

  // Conditions that hold at the original steps.
  IndexList BoundsThatMove(const Nest& nest) const {
    IndexList conditions;
    for (const Loop* sum : nest.sums) {
      const IndexId begin = FixedOf(sum->begin, IndexKind::kMax, *nest.loop);
      const IndexId end = FixedOf(sum->end, IndexKind::kMin, *nest.loop);
      const IndexId step = pool_.Var(sum->var);
      if (begin != sum->begin)
        conditions.push_back(pool_.Condition(IndexKind::kLe, Other(sum->begin, begin), step));
      if (end != sum->end)
        conditions.push_back(pool_.Condition(IndexKind::kLt, step, Other(sum->end, end)));
    }
    return conditions;
  }

  // The number of loops around that the other factors do not depend on, and along which
  // no windows slide.
  size_t LoopsOverImages(const Nest& nest, const ZeroFactors& zeros) const {
    const std::vector<ValueId> others = OthersOf(zeros);
    const auto is_over_images = [&](const Loop* loop) {
      const bool moves =
          absl::c_any_of(others, [&](ValueId other) { return DependsOn(program_, other, *loop); });
      const bool slides = absl::c_any_of(zeros, [&](const ZeroFactor& zero) {
        const Access& access = absl::get<LoadValue>(program_[zero.load].node).access;
        return SlidesAlong(program_, access, nest.sums, *loop);
      });
      return loop != nest.loop && !moves && !slides;
    };
    return absl::c_find_if_not(nest.band, is_over_images) - nest.band.begin();
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  const bool leaves_out_;  // the added steps may be left out
};

}  // namespace

absl::optional<Loop> RunningOn(Program& program, Ranges& ranges, const Loop& nest) {
  return SumPadder(program, ranges, /*leaves_out=*/false).RunningOn(nest);
}

absl::StatusOr<bool> PadSums(Program& program, jit::Isa isa) {
  Ranges ranges(program);
  SumPadder padder(program, ranges, LeavesOutPadding(isa));
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return padder.Padded(loop); });
}

}  // namespace nestor::loop
