// Unroll-and-jam (Callahan, Carr and Kennedy, "Improving register allocation for subscripted
// variables", 1990; Allen and Kennedy, "Optimizing Compilers for Modern Architectures", 2001, sec.
// 8.4): an outer loop is unrolled by four and the copies of its inner loop are fused. Then one load
// and one store of a result serve four rows of a reduction, and rows of windows share what they
// load.
//
// For reductions the four steps are one expression, ((a + x0) + x1) + .., in the order of the loop,
// so that no bit changes; the accumulator must be in memory, each element reached once in each
// iteration of the outer loop. For windows the bodies stand one after the other, statement by
// statement, and code generation loads each shared element once. In both cases the iterations left
// over are a copy of the loop as it was.
#include "jit/schedule/unroll_and_jam.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/graph.h"
#include "uops/mutant.h"
#include "uops/scalar_body.h"

namespace nestor::loop {
namespace {

constexpr int64_t kRows = 4;
constexpr int kMostOperations = 4;
constexpr int kMostOfWindow = 32;  // operations on the elements of a window
// Elements that a row shares with the next: they stay in registers.
constexpr size_t kMostShared = 8;
constexpr int64_t kPageBytes = 4096;
constexpr int64_t kManyRows = int64_t{1} << 32;  // more than there are

class Jammer {
 public:
  explicit Jammer(Program& program) : program_(program), pool_(program.pool), ranges_(program) {}

  // The loop over the rest of the rows is made before the jammed one, from the same body.
  bool Run() {
    FindChains();
    return ReplaceLoops(program_, ranges_, [&](Loop& loop) -> absl::optional<Scope> {
      const bool windows = SlidesWindows(loop);
      if (!windows && !Qualifies(loop)) return absl::nullopt;
      const IndexId count =
          windows ? pool_.Div(ranges_.LengthOf(loop), pool_.Const(kRows)) : Count(loop);
      absl::optional<Loop> rest = Rest(loop, count);
      windows ? JamWindows(loop, count) : Jam(loop, count);
      Scope scope = ScopeOf(std::move(loop));
      if (rest) Append(scope, ScopeOf(*std::move(rest)));
      return scope;
    });
  }

 private:
  static bool IsPlain(const Loop& loop) {
    const LoopAttributes& a = loop.attributes;
    return loop.step == 1 && !a.parallel && !a.vector && !a.unroll && loop.body.size() == 1;
  }

  bool MayHaveFourRows(const Loop& loop) {
    const IndexId length = pool_.Sub(loop.end, loop.begin);
    return ranges_.Defined(length) && !ranges_.Less(length, pool_.Const(kRows));
  }

  // Whether the loop, a reduction into rows, may take four rows at a time, at sizes where it pays.
  bool Qualifies(const Loop& loop) {
    // Loops left over by this pass begin at no constant, or are short.
    if (!IsPlain(loop) || loop.body[0].As<Loop>() == nullptr || !pool_.ConstValue(loop.begin))
      return false;
    if (!HasRows(*loop.body[0].As<Loop>(), loop.var) || !MayHaveFourRows(loop)) return false;
    const std::vector<IndexId> pages = PagesBetweenRows(loop);
    return std::none_of(pages.begin(), pages.end(),
                        [&](IndexId p) { return pool_.ConstValue(p).value_or(1) <= 0; });
  }

  // Whether the loop and those in it reach each element once in each iteration of the
  // loop over `row`.
  bool HasRows(const Loop& loop, int32_t row) {
    if (!IsPlain(loop) || BoundsMoveWith(pool_, loop, row)) return false;
    const auto* inner = loop.body[0].As<Loop>();
    const auto* statement = loop.body[0].As<Statement>();
    const bool has =
        inner != nullptr
            ? HasRows(*inner, row)
            : statement != nullptr && Accumulates(*statement, row) &&
                  !FootprintOf(program_, loop.body).reads.contains(statement->target.tensor);
    return has && !CarriedTensor(program_, loop).has_value();
  }

  // Whether the statement adds to an element that is the same at all rows.
  bool Accumulates(const Statement& statement, int32_t row) const {
    const Access& target = statement.target;
    if (!statement.op || IsArg(*statement.op) || target.masked) return false;
    const Storage storage = program_[target.tensor].storage;
    if (storage != Storage::kTemp && storage != Storage::kOutput) return false;
    for (IndexId e : target.place) {
      if (HoldsVar(pool_, e, row) || pool_.HasLoad(e)) return false;
    }
    return IsLight(statement.value);
  }

  // Whether memory is most of the value's cost: else four at once need too many registers.
  bool IsLight(ValueId root) const { return Operations(root) <= kMostOperations; }

  // How often four rows are taken: never where they lie on one page, as this is read faster from
  // end to end.
  IndexId Count(const Loop& loop) {
    // The quotient is not positive for a loop that ends before 0, either: provers need not know
    // that none does.
    IndexId count = pool_.Div(pool_.IsConst(loop.begin, 0) ? loop.end : ranges_.LengthOf(loop),
                              pool_.Const(kRows));
    for (IndexId pages : PagesBetweenRows(loop)) {
      if (!pool_.ConstValue(pages))
        count = pool_.Min(count, pool_.Mul(pages, pool_.Const(kManyRows)));
    }
    return count;
  }

  // For each access that moves from row to row: the pages between two rows.
  std::vector<IndexId> PagesBetweenRows(const Loop& loop) {
    std::vector<IndexId> pages;
    VisitItems(loop.body, [&](const Item& item) {
      VisitAccesses(
          program_, item, [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind) {
            const absl::optional<IndexId> distance = Distance(tensor, place, loop.var);
            if (!distance) return;
            pages.push_back(pool_.Div(Length(*distance),
                                      pool_.Const(kPageBytes / ByteSize(program_[tensor].type))));
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

  // Elements from one row to the next; nullopt for accesses that are not in rows, or not compact.
  absl::optional<IndexId> Distance(TensorId tensor, absl::Span<const IndexId> place, int32_t row) {
    if (place.empty() || HoldsVar(pool_, place.back(), row)) return absl::nullopt;
    IndexId distance = pool_.Const(0), extent = pool_.Const(1);
    for (size_t axis = place.size(); axis-- > 0;
         extent = pool_.Mul(extent, program_[tensor].shape[axis])) {
      const auto coefficient = CoefficientOf(pool_, place[axis], row);
      if (!coefficient) return absl::nullopt;
      distance = pool_.Add(distance, pool_.Mul(coefficient->Build(pool_), extent));
    }
    if (pool_.IsConst(distance, 0)) return absl::nullopt;
    return distance;
  }

  // The rows left over after `count` times four rows.
  absl::optional<Loop> Rest(const Loop& loop, IndexId count) {
    Loop tail = loop;
    tail.begin = pool_.Add(loop.begin, pool_.Mul(count, pool_.Const(kRows)));
    // This always holds, but provers of places being in range must see it.
    if (!ranges_.LessEqual(loop.begin, tail.begin)) tail.begin = pool_.Max(loop.begin, tail.begin);
    if (NESTOR_MUTANT("jam_remainder_skipped")) tail.begin = tail.end;
    if (NESTOR_MUTANT("jam_remainder_twice"))
      tail.begin = pool_.Max(pool_.Sub(tail.begin, pool_.Const(1)), loop.begin);
    return FreshCopy(program_, ranges_, tail);
  }

  // Makes the loop take four rows at a time, and returns the first of them.
  IndexId CountByFour(Loop& loop, IndexId count) {
    const int32_t var = program_.AddVar(program_.vars[loop.var]);
    const IndexId first = pool_.Add(loop.begin, pool_.Mul(pool_.Var(var), pool_.Const(kRows)));
    loop.var = var;
    loop.begin = pool_.Const(0);
    loop.end = count;
    return first;
  }

  // a[c] += x[k, c]  ->  a[c] = a[c] + x[4*k, c] + x[4*k + 1, c] + x[4*k + 2, c] + x[4*k + 3, c]
  void Jam(Loop& loop, IndexId count) {
    const int32_t row_var = loop.var;
    const IndexId first = CountByFour(loop, count);
    VisitStatements(loop.body, [&](Statement& statement) {
      ValueId value = program_.AddLoad(statement.target);
      for (int64_t row = 0; row < kRows; ++row) {
        VarReplacement replace(program_);
        replace.Set(row_var, pool_.Add(first, pool_.Const(row)));
        const ValueId next =
            RewriteIndices(program_, statement.value, [&](IndexId e) { return replace(e); });
        value = program_.AddApply(StepOp(*statement.op), {value, next}, program_[next].type);
      }
      statement.op.reset();
      statement.value = value;
      statement.needed_if.clear();  // four steps may be needed at different places
    });
  }

  // ---- Windows

  // Finds the loops that are each the whole body of the loop around: they will be
  // shared among threads.
  void FindChains() {
    for (const Item& item : program_.body) {
      const Loop* outermost = item.As<Loop>();
      if (outermost == nullptr) continue;
      for (const Loop* loop : BandOf(*outermost)) {
        if (loop != outermost) chained_.insert(loop->var);
      }
    }
  }

  // Whether the loop moves from row to row of results that are computed from windows, in each
  // iteration its own.
  bool SlidesWindows(const Loop& loop) {
    const Loop* row =
        IsPlain(loop) && !chained_.contains(loop.var) ? OnlyLoopIn(loop.body) : nullptr;
    if (row == nullptr || row->step != 1 || BoundsMoveWith(pool_, *row, loop.var)) {
      return false;
    }
    return SharesElements(loop.var, *row) && !CarriedTensor(program_, loop).has_value() &&
           MayHaveFourRows(loop);
  }

  // Whether adjacent rows read the same elements, no more than registers hold, and compute
  // little with them.
  bool SharesElements(int32_t row_var, const Loop& row) {
    int operations = 0;
    absl::flat_hash_set<std::pair<TensorId, IndexList>> reads;
    for (const Item& item : row.body) {
      const auto* statement = item.As<Statement>();
      if (statement != nullptr) operations += Operations(statement->value);
      const auto* declaration = item.As<Declaration>();
      const bool is_register =
          declaration != nullptr && program_[declaration->tensor].shape.empty();
      if (statement == nullptr && !is_register) return false;
      VisitAccesses(program_, item,
                    [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
                      if (kind == AccessKind::kRead && !place.empty() &&
                          MovesBy(place.last(1), row.var) && MovesBy(place, row_var)) {
                        reads.emplace(tensor, IndexList(place.begin(), place.end()));
                      }
                    });
    }
    if (reads.empty() || operations > kMostOfWindow) return false;
    const size_t of_two = ReadBy(reads, row_var, 2), of_four = ReadBy(reads, row_var, kRows);
    return 2 * reads.size() - of_two <= kMostShared && of_four < 3 * reads.size();
  }

  // Whether each iteration of the loop moves the place by one along some axis.
  bool MovesBy(absl::Span<const IndexId> place, int32_t var) const {
    return std::any_of(place.begin(), place.end(),
                       [&](IndexId e) { return StrideIn(pool_, e, var) == 1; });
  }

  // How many elements `rows` rows read.
  template <class Reads>
  size_t ReadBy(const Reads& of_one, int32_t row_var, int64_t rows) {
    Reads all;
    for (int64_t row = 0; row < rows; ++row) {
      VarReplacement replace(program_);
      replace.Set(row_var, pool_.Add(pool_.Var(row_var), pool_.Const(row)));
      for (const auto& [tensor, place] : of_one) {
        IndexList moved;
        for (IndexId e : place) moved.push_back(replace(e));
        all.emplace(tensor, std::move(moved));
      }
    }
    return all.size();
  }

  // An operation with a body counts as more than the maximum.
  int Operations(ValueId root) const {
    int applied = 0;
    VisitValues(program_, root, [&](ValueId, const Value& value) {
      const auto* apply = absl::get_if<ApplyValue>(&value.node);
      if (apply == nullptr) return;
      const bool has_body =
          FunctionOf(apply->op, program_[apply->args.back()].type, value.type).body != nullptr;
      applied += has_body ? kMostOfWindow + 1 : 1;
    });
    return applied;
  }

  // Puts the rows' bodies in one loop along the rows, statement by statement: elements that rows
  // share are loaded once as long as nothing is stored in between.
  void JamWindows(Loop& loop, IndexId count) {
    const int32_t row_var = loop.var;
    Loop& row = *loop.body[0].As<Loop>();
    std::vector<Loop> more;
    ranges_.Enter(loop);
    ranges_.Enter(row);
    for (int64_t i = 1; i < kRows; ++i)
      more.push_back(*DecidedCopy(program_, ranges_, row, /*fresh=*/true));
    ranges_.Leave();
    ranges_.Leave();
    const IndexId first = CountByFour(loop, count);
    const auto put = [&](Loop& copy, int64_t number) {
      VarReplacement replace(program_);
      replace.Set(row_var, pool_.Add(first, pool_.Const(number)));
      if (copy.var != row.var) replace.Set(copy.var, pool_.Var(row.var));
      RewriteIndices(program_, copy.body, [&](IndexId e) { return replace(e); });
    };
    std::vector<Scope> bodies;
    put(row, 0);
    bodies.push_back(std::move(row.body));
    for (size_t i = 0; i < more.size(); ++i) {
      put(more[i], static_cast<int64_t>(i) + 1);
      bodies.push_back(std::move(more[i].body));
    }
    row.body.clear();
    size_t longest = 0;
    for (const Scope& body : bodies) longest = std::max(longest, body.size());
    for (size_t i = 0; i < longest; ++i) {
      for (Scope& body : bodies) {
        if (i < body.size()) row.body.push_back(std::move(body[i]));
      }
    }
  }

  Program& program_;
  IndexPool& pool_;
  Ranges ranges_;
  absl::flat_hash_set<int32_t> chained_;
};

}  // namespace

absl::StatusOr<bool> UnrollAndJam(Program& program) { return Jammer(program).Run(); }

}  // namespace nestor::loop
