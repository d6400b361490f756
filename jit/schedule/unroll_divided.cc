// Loop unrolling, by the number that makes quotients and remainders of the index linear: with
// i = 2*q + r and r a number, i/2 is q, and i%2 is r. So nearest neighbours of a larger image are
// read, and gradients of windows that lie side by side, from steps that follow one another.
// (split_residues.h makes loops of remainders with bounds of their own.)
#include "jit/schedule/unroll_divided.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/cost/work.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/step_copy.h"
#include "loop_ir/dependence.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

constexpr int64_t kMostSteps = 8;
constexpr int64_t kMostOperations = 75;  // of all steps

class Unroller {
 public:
  Unroller(Program& program, Ranges& ranges)
      : program_(program), pool_(program.pool), ranges_(ranges) {}

  absl::optional<Scope> Unrolled(const Loop& loop) {
    const absl::optional<int64_t> divisor = DivisorIn(loop);
    if (!divisor || !AssignsAlone(loop, kMostOperations / *divisor)) return absl::nullopt;
    const IndexId steps = pool_.Const(*divisor), begin = pool_.Div(loop.begin, steps),
                  end = pool_.Div(loop.end, steps);
    const bool begins_whole = pool_.IsConst(pool_.Mod(loop.begin, steps), 0);
    // Such as the last iterations of another round.
    if (!begins_whole || ranges_.Less(ranges_.LengthOf(loop), steps)) return absl::nullopt;
    Loop whole{
        program_.AddVar(program_.vars[static_cast<size_t>(loop.var)]), begin, end, 1, {}, {}};
    for (int64_t rest = 0; rest < *divisor; ++rest) {
      const IndexId index = pool_.Add(pool_.Mul(steps, pool_.Var(whole.var)), pool_.Const(rest));
      StepCopy(program_, loop, index).Stores(whole.body);
    }
    Loop last = loop;
    // A loop without iterations may end at a negative number.
    last.begin = pool_.Mul(steps, end);
    if (!ranges_.LessEqual(loop.begin, last.begin)) last.begin = pool_.Max(loop.begin, last.begin);
    Scope scope;
    for (Loop* piece : {&whole, &last}) {
      if (!ranges_.IsEmpty(*piece)) scope.push_back({std::move(*piece)});
    }
    return scope;
  }

 private:
  // Whether the loop's steps are so many operations at most, and assign nothing but scalars of its
  // own and elements, which they do not read.
  bool AssignsAlone(const Loop& loop, int64_t most) const {
    if (loop.step != 1 || !StepCopy::MayCopy(program_, loop)) return false;
    int64_t operations = 0;
    for (const Item& item : loop.body) {
      const auto* statement = item.As<Statement>();
      if (statement != nullptr) operations += OperationsOf(program_, statement->value);
    }
    const Footprint footprint = FootprintOf(program_, loop.body);
    return operations <= most && absl::c_all_of(footprint.writes, [&](TensorId t) {
             return !program_[t].shape.empty() && !footprint.reads.contains(t);
           });
  }

  // The number, if it is one, that divides the loop's index alone in all subscripts.
  absl::optional<int64_t> DivisorIn(const Loop& loop) const {
    absl::optional<int64_t> divisor;
    bool is_one = true;
    VisitItems(loop.body, [&](const Item& item) {
      VisitIndices(program_, item, [&](IndexId e) {
        VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
          const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
          if (!divides || !HoldsVar(pool_, node.args[0], loop.var)) return;
          const auto value = pool_.ConstValue(node.args[1]);
          is_one = is_one && value && pool_.VarValue(node.args[0]) == loop.var &&
                   (!divisor || *divisor == *value);
          divisor = value;
        });
      });
    });
    const bool is_small = is_one && divisor && *divisor > 1 && *divisor <= kMostSteps;
    return is_small ? divisor : absl::nullopt;
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
};

}  // namespace

absl::StatusOr<bool> UnrollDivided(Program& program) {
  Ranges ranges(program);
  Unroller unroller(program, ranges);
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return unroller.Unrolled(loop); });
}

}  // namespace nestor::loop
