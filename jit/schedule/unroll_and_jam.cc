#include "jit/schedule/unroll_and_jam.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/dependence.h"
#include "loop_ir/lanes.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/graph.h"
#include "uops/mutant.h"
#include "uops/scalar_body.h"

namespace nestor::jit {
namespace {

using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::Storage;
using loop::ValueId;

constexpr int64_t kRows = 4;
constexpr int kMostOperations = 4;
constexpr int64_t kPageBytes = 4096;
constexpr int64_t kManyRows = int64_t{1} << 32;  // more than there are

class Jammer {
 public:
  explicit Jammer(Program& program) : program_(program), pool_(program.pool), ranges_(program) {}

  bool Run() {
    return ReplaceLoops(program_, ranges_, [&](Loop& loop) -> absl::optional<Scope> {
      if (!Qualifies(loop)) return absl::nullopt;
      absl::optional<Loop> rest = Jam(loop);
      Scope scope = ScopeOf(std::move(loop));
      if (rest) Append(scope, ScopeOf(*std::move(rest)));
      return scope;
    });
  }

 private:
  static bool IsPlain(const Loop& loop) {
    const loop::LoopAttributes& a = loop.attributes;
    return loop.step == 1 && !a.parallel && !a.vector && !a.unroll && loop.body.size() == 1;
  }

  bool Qualifies(const Loop& loop) {
    // What is left over by this pass begins somewhere else, or is short.
    if (!IsPlain(loop) || loop.body[0].As<Loop>() == nullptr || !pool_.ConstValue(loop.begin)) return false;
    const IndexId length = pool_.Sub(loop.end, loop.begin);
    if (!ranges_.Defined(length) || ranges_.Less(length, pool_.Const(kRows))) return false;
    ranges_.Enter(loop);
    const bool has_rows = HasRows(*loop.body[0].As<Loop>(), loop.var);
    ranges_.Leave();
    if (!has_rows) return false;
    const std::vector<IndexId> pages = PagesBetweenRows(loop);
    return std::none_of(pages.begin(), pages.end(), [&](IndexId p) { return pool_.ConstValue(p).value_or(1) <= 0; });
  }

  // Whether the loop and those in it reach each element once in each iteration of the
  // loop over `row`.
  bool HasRows(const Loop& loop, int32_t row) {
    if (!IsPlain(loop) || HoldsVar(pool_, loop.begin, row) || HoldsVar(pool_, loop.end, row)) return false;
    if (CarriedTensor(program_, loop).has_value()) return false;
    if (const auto* inner = loop.body[0].As<Loop>()) return HasRows(*inner, row);
    const auto* statement = loop.body[0].As<Statement>();
    return statement != nullptr && Accumulates(*statement, row) &&
           !FootprintOf(program_, loop.body).reads.contains(statement->target.tensor);
  }

  bool Accumulates(const Statement& statement, int32_t row) const {
    const loop::Access& target = statement.target;
    if (!statement.op || IsArg(*statement.op) || target.masked) return false;
    const Storage storage = program_[target.tensor].storage;
    if (storage != Storage::kTemp && storage != Storage::kOutput) return false;
    for (IndexId e : target.place) {
      if (HoldsVar(pool_, e, row) || pool_.HasLoad(e)) return false;
    }
    return IsLight(statement.value);
  }

  // Whether memory is most of what the value costs: else four at once are too many for
  // the registers.
  bool IsLight(ValueId root) const {
    int applied = 0;
    bool has_body = false;
    VisitValues(program_, root, [&](ValueId, const loop::Value& value) {
      const auto* apply = absl::get_if<loop::ApplyValue>(&value.node);
      if (apply == nullptr) return;
      ++applied;
      has_body |= FunctionOf(apply->op, program_[apply->args.back()].type, value.type).body != nullptr;
    });
    return applied <= kMostOperations && !has_body;
  }

  // How often four rows are taken: never where they lie on one page, which is read faster
  // from end to end.
  IndexId Count(const Loop& loop) {
    IndexId count = pool_.Div(ranges_.LengthOf(loop), pool_.Const(kRows));
    for (IndexId pages : PagesBetweenRows(loop)) {
      if (!pool_.ConstValue(pages)) count = pool_.Min(count, pool_.Mul(pages, pool_.Const(kManyRows)));
    }
    return count;
  }

  // By access that goes from row to row.
  std::vector<IndexId> PagesBetweenRows(const Loop& loop) {
    std::vector<IndexId> pages;
    VisitItems(loop.body, [&](const Item& item) {
      VisitAccesses(program_, item, [&](loop::TensorId tensor, absl::Span<const IndexId> place, loop::AccessKind) {
        const absl::optional<IndexId> distance = Distance(tensor, place, loop.var);
        if (!distance) return;
        pages.push_back(pool_.Div(Length(*distance), pool_.Const(kPageBytes / ByteSize(program_[tensor].type))));
      });
    });
    return pages;
  }

  // Rows may run backwards.
  IndexId Length(IndexId distance) {
    const IndexId opposite = pool_.Neg(distance);
    if (ranges_.NonNegative(distance)) return distance;
    return ranges_.NonNegative(opposite) ? opposite : pool_.Max(distance, opposite);
  }

  // Elements between the rows that follow each other; nullopt for what is not in rows, or
  // not compact.
  absl::optional<IndexId> Distance(loop::TensorId tensor, absl::Span<const IndexId> place, int32_t row) {
    if (place.empty() || HoldsVar(pool_, place.back(), row)) return absl::nullopt;
    IndexId distance = pool_.Const(0), extent = pool_.Const(1);
    for (size_t axis = place.size(); axis-- > 0; extent = pool_.Mul(extent, program_[tensor].shape[axis])) {
      const auto coefficient = CoefficientOf(program_, place[axis], row);
      if (!coefficient) return absl::nullopt;
      distance = pool_.Add(distance, pool_.Mul(*coefficient, extent));
    }
    if (pool_.IsConst(distance, 0)) return absl::nullopt;
    return distance;
  }

  // Makes `loop` take four rows at a time; what is left over is returned.
  absl::optional<Loop> Jam(Loop& loop) {
    const IndexId count = Count(loop);
    Loop tail = loop;
    tail.begin = pool_.Add(loop.begin, pool_.Mul(count, pool_.Const(kRows)));
    if (NESTOR_MUTANT("jam_remainder_skipped")) tail.begin = tail.end;
    if (NESTOR_MUTANT("jam_remainder_twice")) tail.begin = pool_.Max(pool_.Sub(tail.begin, pool_.Const(1)), loop.begin);
    ranges_.Enter(tail);
    absl::optional<Loop> rest = fusion::DecidedCopy(program_, ranges_, tail, /*fresh=*/true);
    ranges_.Leave();

    const int32_t var = program_.AddVar(program_.vars[loop.var]);
    const IndexId first = pool_.Add(loop.begin, pool_.Mul(pool_.Var(var), pool_.Const(kRows)));
    VisitStatements(loop.body, [&](Statement& statement) {
      ValueId value = program_.AddLoad(statement.target);
      for (int64_t row = 0; row < kRows; ++row) {
        loop::VarReplacement replace(program_);
        replace.Set(loop.var, pool_.Add(first, pool_.Const(row)));
        const ValueId next = RewriteIndices(program_, statement.value, [&](IndexId e) { return replace(e); });
        value = program_.AddApply(StepOp(*statement.op), {value, next}, program_[next].type);
      }
      statement.op.reset();
      statement.value = value;
    });
    loop.var = var;
    loop.begin = pool_.Const(0);
    loop.end = count;
    return rest;
  }

  Program& program_;
  IndexPool& pool_;
  loop::Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> UnrollAndJam(Program& program) { return Jammer(program).Run(); }

}  // namespace nestor::jit
