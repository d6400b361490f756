#include "jit/schedule/split_borders.h"

#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/lanes.h"
#include "loop_ir/ranges.h"

namespace nestor::jit {
namespace {

using loop::Loop;
using loop::Program;
using loop::Scope;

class BorderSplitter {
 public:
  BorderSplitter(Program& program, loop::Ranges& ranges) : program_(program), pool_(program.pool), ranges_(ranges) {}

  absl::optional<Scope> Split(const Loop& outermost) {
    if (outermost.step != 1) return absl::nullopt;
    // Inner ones first: there lie the lanes.
    std::vector<const Loop*> nest;
    for (const Loop* loop = &outermost; loop != nullptr; loop = OnlyLoop(loop->body)) nest.push_back(loop);
    while (!nest.empty()) {
      absl::optional<Scope> pieces = SplitAt(outermost, *nest.back());
      if (pieces) return pieces;
      nest.pop_back();
    }
    return absl::nullopt;
  }

 private:
  // The one loop in the scope, among declarations and statements.
  static const Loop* OnlyLoop(const Scope& scope) {
    const Loop* found = nullptr;
    for (const loop::Item& item : scope) {
      const Loop* loop = item.As<Loop>();
      if (loop != nullptr && found != nullptr) return nullptr;
      if (loop != nullptr) found = loop;
    }
    return found;
  }

  absl::optional<Scope> SplitAt(const Loop& outermost, const Loop& loop) {
    Inside inside = InsideOf(loop);
    if (!inside.is_bounded || (inside.from.empty() && inside.to.empty())) return absl::nullopt;
    IndexId begin = loop.begin;
    for (IndexId point : inside.from) begin = Larger(begin, point);
    IndexId end = loop.end;
    for (IndexId point : inside.to) end = Smaller(end, point);
    if (ranges_.LessEqual(end, begin)) return absl::nullopt;
    Loop middle = outermost;
    Loop& cut = Find(middle, loop.var);
    cut.begin = begin;
    cut.end = end;
    SettleBounds(cut.body, loop.var);
    if (!IsTileOf(middle, loop.var)) return absl::nullopt;
    Scope pieces = ScopeOf(std::move(middle));
    if (!inside.from.empty()) AddPiece(outermost, loop, loop.begin, Smaller(loop.end, begin), pieces);
    if (!inside.to.empty()) AddPiece(outermost, loop, Larger(begin, end), loop.end, pieces);
    return pieces;
  }

  // Whether the nest is a contraction that has the loop for its rows or columns.
  bool IsTileOf(const Loop& nest, int32_t var) {
    const absl::optional<Contraction> found = ContractionOf(program_, nest);
    return found && (found->column->var == var || found->row->var == var);
  }

  void AddPiece(const Loop& outermost, const Loop& loop, IndexId begin, IndexId end, Scope& pieces) {
    if (ranges_.LessEqual(end, begin)) return;
    Loop piece = outermost;
    Loop& cut = Find(piece, loop.var);
    cut.begin = begin;
    cut.end = end;
    absl::optional<Loop> fresh = fusion::FreshCopy(program_, ranges_, piece);
    if (!fresh) return;
    // The border of an image has an inside along the other axis.
    absl::optional<Scope> parts = Split(*fresh);
    Append(pieces, parts ? *std::move(parts) : ScopeOf(*std::move(fresh)));
  }

  // Where no bound inside moves with the loop: from the last of `from` up to the first of `to`.
  struct Inside {
    IndexList from, to;
    bool is_bounded = true;
  };

  Inside InsideOf(const Loop& loop) {
    Inside inside;
    VisitItems(loop.body, [&](const loop::Item& item) {
      const Loop* sum = item.As<Loop>();
      if (sum == nullptr) return;
      AddTurn(sum->begin, IndexKind::kMax, loop, inside);
      AddTurn(sum->end, IndexKind::kMin, loop, inside);
    });
    return inside;
  }

  // Where the fixed one of two bounds decides.
  void AddTurn(IndexId bound, IndexKind kind, const Loop& loop, Inside& inside) {
    if (!HoldsVar(pool_, bound, loop.var)) return;
    const absl::optional<IndexId> fixed = FixedOf(bound, kind, loop.var);
    const IndexId moving = fixed ? Other(bound, *fixed) : bound;
    const auto step = fixed ? CoefficientOf(program_, moving, loop.var) : absl::nullopt;
    const auto by = step ? pool_.ConstValue(*step) : absl::nullopt;
    inside.is_bounded = inside.is_bounded && by && (*by == 1 || *by == -1);
    if (!inside.is_bounded) return;
    // The index at which both are the same.
    const IndexId rest = pool_.Sub(moving, pool_.Mul(*step, pool_.Var(loop.var)));
    const IndexId same = pool_.Mul(*step, pool_.Sub(*fixed, rest));
    inside.is_bounded = !pool_.HasVar(same) && ranges_.Defined(same);
    const bool rises = (*by == 1) == (kind == IndexKind::kMin);
    if (rises) inside.from.push_back(same);
    else inside.to.push_back(pool_.Add(same, pool_.Const(1)));
  }

  absl::optional<IndexId> FixedOf(IndexId bound, IndexKind kind, int32_t var) const {
    const IndexNode& node = pool_[bound];
    if (node.kind != kind || node.args.size() != 2 || !HoldsVar(pool_, bound, var)) return absl::nullopt;
    for (IndexId arg : node.args) {
      if (!HoldsVar(pool_, arg, var)) return arg;
    }
    return absl::nullopt;
  }
  IndexId Other(IndexId bound, IndexId arg) const {
    const IndexNode& node = pool_[bound];
    return node.args[0] == arg ? node.args[1] : node.args[0];
  }

  void SettleBounds(Scope& body, int32_t var) {
    for (loop::Item& item : body) {
      Loop* sum = item.As<Loop>();
      if (sum == nullptr) continue;
      sum->begin = FixedOf(sum->begin, IndexKind::kMax, var).value_or(sum->begin);
      sum->end = FixedOf(sum->end, IndexKind::kMin, var).value_or(sum->end);
      SettleBounds(sum->body, var);
    }
  }

  static Loop& Find(Loop& outermost, int32_t var) {
    Loop* loop = &outermost;
    while (loop->var != var) loop = const_cast<Loop*>(OnlyLoop(loop->body));
    return *loop;
  }

  IndexId Larger(IndexId a, IndexId b) {
    return ranges_.LessEqual(a, b) ? b : ranges_.LessEqual(b, a) ? a : pool_.Max(a, b);
  }
  IndexId Smaller(IndexId a, IndexId b) {
    return ranges_.LessEqual(a, b) ? a : ranges_.LessEqual(b, a) ? b : pool_.Min(a, b);
  }

  Program& program_;
  IndexPool& pool_;
  loop::Ranges& ranges_;
};

}  // namespace

absl::StatusOr<bool> SplitBorders(Program& program) {
  loop::Ranges ranges(program);
  BorderSplitter splitter(program, ranges);
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return splitter.Split(loop); });
}

}  // namespace nestor::jit
