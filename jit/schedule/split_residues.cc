#include "jit/schedule/split_residues.h"

#include <utility>

#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::jit {
namespace {

using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;

// More copies of a nest are not worth their code.
constexpr int64_t kMostResidues = 8;

class ResidueSplitter {
 public:
  ResidueSplitter(Program& program, loop::Ranges& ranges) : program_(program), pool_(program.pool), ranges_(ranges) {}

  absl::optional<Scope> Split(const Loop& outermost) {
    Scope pieces = ScopeOf(outermost);
    bool changed = false;
    // Each loop of the nest splits all that the others have left.
    for (const Loop* loop = &outermost; loop != nullptr; loop = OnlyLoopIn(loop->body)) {
      const absl::optional<int64_t> divisor = DivisorOf(*loop);
      if (!divisor || !AreIndependent(program_, outermost, *loop)) continue;
      pieces = Divided(pieces, NumberOf(outermost, *loop), *divisor);
      changed = true;
    }
    return changed ? absl::optional<Scope>(std::move(pieces)) : absl::nullopt;
  }

 private:
  // What the loop's index, moved by some number, is divided by in the bounds of a sum.
  absl::optional<int64_t> DivisorOf(const Loop& loop) const {
    if (loop.step != 1 || !pool_.IsConst(loop.begin, 0)) return absl::nullopt;
    absl::optional<int64_t> divisor;
    VisitItems(loop.body, [&](const Item& item) {
      const Loop* sum = item.As<Loop>();
      if (sum == nullptr || divisor || !SumsProducts(*sum)) return;
      for (IndexId bound : {sum->begin, sum->end}) {
        VisitIndex(pool_, bound, [&](IndexId, const IndexNode& node) {
          if (node.kind != IndexKind::kDiv || !HoldsVar(pool_, node.args[0], loop.var)) return;
          const auto value = pool_.ConstValue(node.args[1]);
          if (value && *value > 1 && *value <= kMostResidues) divisor = value;
        });
      }
    });
    return divisor;
  }

  bool SumsProducts(const Loop& sum) const {
    bool sums = false;
    VisitItems(sum.body, [&](const Item& item) {
      const auto* statement = item.As<loop::Statement>();
      if (statement == nullptr || !statement->op) return;
      int loads = 0;
      VisitValues(program_, statement->value, [&](loop::ValueId, const loop::Value& value) {
        loads += absl::holds_alternative<loop::LoadValue>(value.node);
      });
      sums = sums || loads > 1;
    });
    return sums;
  }

  // Of a loop in its nest, from the outermost on.
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

  Scope Divided(const Scope& nests, int number, int64_t divisor) {
    Scope pieces;
    for (const Item& nest : nests) {
      for (int64_t rest = 0; rest < divisor; ++rest) {
        absl::optional<Loop> piece = Residue(*nest.As<Loop>(), number, divisor, rest);
        if (piece) Append(pieces, ScopeOf(*std::move(piece)));
      }
    }
    return pieces;
  }

  // Every iteration of the loop that leaves the rest.
  absl::optional<Loop> Residue(const Loop& nest, int number, int64_t divisor, int64_t rest) {
    Loop piece = nest;
    Loop& loop = At(piece, number);
    loop.end = pool_.Div(pool_.Add(loop.end, pool_.Const(divisor - 1 - rest)), pool_.Const(divisor));
    loop::VarReplacement replace(program_);
    replace.Set(loop.var, pool_.Add(pool_.Mul(pool_.Const(divisor), pool_.Var(loop.var)), pool_.Const(rest)));
    RewriteIndices(program_, loop.body, [&](IndexId e) { return replace(e); });
    return fusion::FreshCopy(program_, ranges_, piece);
  }

  Program& program_;
  IndexPool& pool_;
  loop::Ranges& ranges_;
};

}  // namespace

absl::StatusOr<bool> SplitResidues(Program& program) {
  loop::Ranges ranges(program);
  ResidueSplitter splitter(program, ranges);
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return splitter.Split(loop); });
}

}  // namespace nestor::jit
