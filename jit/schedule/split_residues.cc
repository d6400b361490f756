// j/2 and j%2 in subscripts and bounds make a nest irregular for lanes, but regular for all j with
// the same remainder: with j = 2*q + r and r a number, j/2 is q, (j + 1)/2 is q + r, and bounds
// that moved with j/2 no longer move, or do so by a number. So a loop becomes one loop for each
// remainder, and DecidedCopy drops what is then known to be false or empty. (Index-set splitting,
// by residue classes.)
//
// The order of iterations changes, so that the loops must carry nothing, or sums whose order may
// change. Each loop of the nest with such a divisor multiplies the number of nests; divisors above
// kMostResidues are left alone.
#include "jit/schedule/split_residues.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "fusion/simplify.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

// More copies of a nest are not worth the code.
constexpr int64_t kMostResidues = 8;

// The small number by which `e` divides something of the loop's index.
absl::optional<int64_t> DivisorIn(const IndexPool& pool, IndexId e, IndexKind kind, int32_t var) {
  absl::optional<int64_t> divisor;
  VisitIndex(pool, e, [&](IndexId, const IndexNode& node) {
    if (node.kind != kind || !HoldsVar(pool, node.args[0], var)) return;
    const auto value = pool.ConstValue(node.args[1]);
    if (value && *value > 1 && *value <= kMostResidues) divisor = value;
  });
  return divisor;
}

// Whether some statement in the loop reduces a value with two loads or more.
bool SumsProducts(const Program& program, const Loop& sum) {
  bool sums = false;
  VisitItems(sum.body, [&](const Item& item) {
    const auto* statement = item.As<Statement>();
    if (statement == nullptr || !statement->op) return;
    int loads = 0;
    VisitValues(program, statement->value, [&](ValueId, const Value& value) {
      loads += absl::holds_alternative<LoadValue>(value.node);
    });
    sums = sums || loads > 1;
  });
  return sums;
}

// The divisor in a condition that decides whether the only sum of the nest has a step.
absl::optional<int64_t> DivisorOfConditions(const Program& program, const Loop& loop) {
  const Loop* sum = OneLoopAmong(CoreOf(loop));
  const Statement* step = sum == nullptr ? nullptr : OnlyStatementIn(*sum);
  if (step == nullptr || !SumsProducts(program, *sum)) return absl::nullopt;
  absl::optional<int64_t> divisor;
  for (IndexId condition : step->target.conditions) {
    if (!divisor) divisor = DivisorIn(program.pool, condition, IndexKind::kMod, loop.var);
  }
  return divisor;
}

class ResidueSplitter {
 public:
  // Takes all remainders of each quotient, or only the first one.
  enum class Rests { kAll, kFirst };
  ResidueSplitter(Program& program, Ranges& ranges, Rests rests, const ResidueOptions& options = {})
      : program_(program), pool_(program.pool), ranges_(ranges), rests_(rests), options_(options) {}

  absl::optional<Scope> Split(const Loop& outermost) {
    Scope pieces = ScopeOf(outermost);
    bool changed = false;
    // Each loop of the nest splits all nests that the loops before it have made.
    for (const Loop* loop : BandOf(outermost)) {
      const absl::optional<int64_t> divisor =
          loop->step == 1 ? DivisorOf(program_, *loop) : absl::nullopt;
      if (!divisor || !BeginsAtMultiple(*loop, *divisor) || !MayReorder(outermost, *loop)) continue;
      pieces = Divided(pieces, NumberOf(outermost, *loop), *divisor);
      changed = true;
    }
    return changed ? absl::optional<Scope>(std::move(pieces)) : absl::nullopt;
  }

 private:
  bool BeginsAtMultiple(const Loop& loop, int64_t divisor) {
    return pool_.IsConst(pool_.Mod(loop.begin, pool_.Const(divisor)), 0);
  }

  // Whether the loops from `outermost` to `innermost` may run in another order.
  bool MayReorder(const Loop& outermost, const Loop& innermost) const {
    if (!options_.reorders_rounding) return AreIndependent(program_, outermost, innermost);
    const auto is_sum = [&](TensorId tensor) { return IsOnlySummed(outermost, tensor); };
    for (const Loop* loop = &outermost;; loop = OnlyLoopIn(loop->body)) {
      if (!absl::c_all_of(CarriedTensors(program_, *loop), is_sum)) return false;
      if (loop == &innermost) return true;
    }
  }

  // Whether the nest only adds to the tensor, or only multiplies it.
  bool IsOnlySummed(const Loop& nest, TensorId tensor) const {
    if (FootprintOf(program_, nest.body).reads.contains(tensor)) return false;
    bool good = true;
    absl::optional<ReduceOp> op;
    VisitItems(nest.body, [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || statement->target.tensor != tensor) return;
      good = good && statement->op && (!op || *op == *statement->op);
      op = statement->op;
    });
    return good && (op == ReduceOp::kSum || op == ReduceOp::kProd);
  }

  // The number of a loop in its nest, from the outermost on.
  static int NumberOf(const Loop& outermost, const Loop& inner) {
    int number = 0;
    for (const Loop* loop = &outermost; loop != &inner; loop = OnlyLoopIn(loop->body)) ++number;
    return number;
  }
  static Loop& At(Loop& outermost, int number) {
    Loop* loop = &outermost;
    for (; number > 0; --number) loop = loop->body[0].As<Loop>();
    return *loop;
  }

  // Each nest once for each rest of its loop `number`, which then steps by the divisor.
  Scope Divided(const Scope& nests, int number, int64_t divisor) {
    Scope pieces;
    for (const Item& nest : nests) {
      for (int64_t rest = 0; rest < (rests_ == Rests::kAll ? divisor : 1); ++rest) {
        absl::optional<Loop> piece = Residue(*nest.As<Loop>(), number, divisor, rest);
        if (piece) Append(pieces, ScopeOf(*std::move(piece)));
      }
    }
    return pieces;
  }

  // The iterations of the loop whose index has the remainder `rest`.
  absl::optional<Loop> Residue(const Loop& nest, int number, int64_t divisor, int64_t rest) {
    Loop piece = nest;
    Loop& loop = At(piece, number);
    loop.begin = pool_.Div(loop.begin, pool_.Const(divisor));
    loop.end = Quotient(loop.end, divisor - 1 - rest, divisor);
    VarReplacement replace(program_);
    replace.Set(loop.var,
                pool_.Add(pool_.Mul(pool_.Const(divisor), pool_.Var(loop.var)), pool_.Const(rest)));
    RewriteIndices(program_, loop.body, [&](IndexId e) { return replace(e); });
    ranges_.Enter(piece);
    absl::optional<Loop> copy =
        DecidedCopy(program_, ranges_, piece, /*fresh=*/rests_ == Rests::kAll);
    ranges_.Leave();
    return copy;
  }

  // (e + more)/divisor; for a minimum, it is applied to each argument, so that provers
  // see through it.
  IndexId Quotient(IndexId e, int64_t more, int64_t divisor) {
    const IndexNode node = pool_[e];
    if (node.kind == IndexKind::kMin) {
      return pool_.Min(Quotient(node.args[0], more, divisor),
                       Quotient(node.args[1], more, divisor));
    }
    return pool_.Div(pool_.Add(e, pool_.Const(more)), pool_.Const(divisor));
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  const Rests rests_;
  const ResidueOptions options_;
};

}  // namespace

// The divisor of a division of the loop's variable in the bounds of a sum inside.
absl::optional<int64_t> DivisorOfBounds(const Program& program, const Loop& loop) {
  absl::optional<int64_t> divisor;
  VisitItems(loop.body, [&](const Item& item) {
    const Loop* sum = item.As<Loop>();
    if (sum == nullptr || divisor || !SumsProducts(program, *sum)) return;
    for (IndexId bound : {sum->begin, sum->end}) {
      if (!divisor) divisor = DivisorIn(program.pool, bound, IndexKind::kDiv, loop.var);
    }
  });
  return divisor;
}

absl::optional<int64_t> DivisorOf(const Program& program, const Loop& loop) {
  const absl::optional<int64_t> divisor = DivisorOfBounds(program, loop);
  return divisor ? divisor : DivisorOfConditions(program, loop);
}

absl::optional<Loop> FirstResidueOf(Program& program, Ranges& ranges, const Loop& nest) {
  absl::optional<Scope> first =
      ResidueSplitter(program, ranges, ResidueSplitter::Rests::kFirst).Split(nest);
  if (!first || first->empty()) return absl::nullopt;
  return std::move(*first->front().As<Loop>());
}

absl::StatusOr<bool> SplitResidues(Program& program, const ResidueOptions& options) {
  Ranges ranges(program);
  ResidueSplitter splitter(program, ranges, ResidueSplitter::Rests::kAll, options);
  if (!ReplaceLoops(program, ranges, [&](Loop& loop) { return splitter.Split(loop); }))
    return false;
  NESTOR_RETURN_IF_ERROR(Simplify(program).status());
  return true;
}

}  // namespace nestor::loop
