// Index-set splitting (Allen and Kennedy, "Optimizing Compilers for Modern Architectures", 2001,
// sec. 5.7): a loop is cut where the outcome of a comparison changes, so that each piece can leave
// it out. Each comparison in a loop's body that is affine in its index changes at one point
// (turning_points.h). Two points p, q cut the range [b, e) in three,
//
//   [b, min(e, p))   [max(b, p), min(e, q))   [max(b, p, q), e)
//
// which together are that range, each index once and in order, whatever the order of b, e, p and q:
// where q < p the one in the middle is empty. So nothing has to be proven for the cut to be right;
// proofs only keep min and max out of the bounds.
//
// If there are more than two points, the innermost ones are taken, if they are known. A loop stays
// whole if a piece of it would leave a comparison undecided, except for a border of few places,
// which is not cut again: so a second run finds nothing to cut. A piece is cut again only if it has
// fewer extremes than the loop, as with the clamped place of x[min(max(v - 2, 0), N - 1)], whose
// maximum changes first.
//
// A comparison that holds an inner index is left to the inner loop. Outer loops are cut first,
// since before and after the cuts their bodies are smaller, with less to split: the borders of an
// image are four nests, not eight.
//
// Windows (SplitWindows) are cut for lanes, not for fewer masks: the comparisons then are those
// between the arguments of an extreme in their bounds, and those that say that a masked load is in
// range at the least and greatest place of the window. A border has few places and may leave others
// of them undecided.
#include "fusion/split_loops.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "fusion/comparisons.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "fusion/turning_points.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// Statements that the pieces into which an item at the top is cut at once may hold.
constexpr int kMostStatements = 64;

// Places at which a window reaches beyond an image.
constexpr int64_t kMostAtBorder = 8;

// Which comparisons loops are cut at.
enum class CutAt { kMasks, kWindows };

class Splitter {
 public:
  Splitter(Program& program, CutAt at)
      : program_(program), pool_(program.pool), ranges_(program), at_(at) {}

  // Values and names that were added for pieces that were not taken are removed in the end.
  bool Run() {
    const size_t values = program_.values.size(), vars = program_.vars.size(),
                 tensors = program_.tensors.size();
    bool changed = false;
    tops_ = Apart(std::move(program_.body));
    for (size_t i = 0; i < tops_.size();) {
      if (!MayCut(tops_[i]) || !SplitTop(tops_[i])) {
        ++i;
        continue;
      }
      changed = true;
      // Pieces are items like others, with room for pieces of their own: a second run finds them.
      std::vector<Scope> pieces = Apart(std::move(tops_[i]));
      const auto place = tops_.erase(tops_.begin() + static_cast<int64_t>(i));
      tops_.insert(place, std::make_move_iterator(pieces.begin()),
                   std::make_move_iterator(pieces.end()));
    }
    program_.body = Joined(std::move(tops_));
    if (!changed) {
      // Drops the values of pieces that were made and not taken.
      program_.values.resize(values);
      program_.vars.resize(vars);
      program_.tensors.resize(tensors);
      return false;
    }
    return true;
  }

 private:
  // Whether there is a window that may be smaller, or masked, somewhere: this takes one walk, and
  // most nests have none.
  bool MayCut(const Scope& top) const {
    if (at_ == CutAt::kMasks) return true;
    bool may = false;
    VisitItems(top, [&](const Item& item) {
      const auto* loop = item.As<Loop>();
      const auto window = may || loop == nullptr ? absl::nullopt : WindowOf(program_, *loop);
      if (!window) return;
      may = pool_.HasVar(loop->begin) || pool_.HasVar(loop->end);
      VisitLoads(program_, window->step->value,
                 [&](ValueId, const Access& access) { may |= access.masked; });
    });
    return may;
  }

  // `budget_`: how many statements copies may add.
  bool SplitTop(Scope& top) {
    budget_ = kMostStatements - CountStatements(top);
    if (budget_ <= 0) return false;
    changed_ = false;
    const Scope before = top;
    SplitScope(top);
    if (!changed_) return false;
    // Some statement must go on writing each output, though it may never run.
    const bool keeps = std::all_of(program_.outputs.begin(), program_.outputs.end(),
                                   [&](TensorId output) { return IsWritten(output); });
    if (!keeps) top = before;
    return keeps;
  }

  bool IsWritten(TensorId tensor) const {
    bool written = false;
    for (const Scope& top : tops_) {
      VisitItems(top, [&](const Item& item) {
        const auto* statement = item.As<Statement>();
        written = written || (statement != nullptr && statement->target.tensor == tensor);
      });
    }
    return written;
  }

  // Cuts the loops of the scope, then those within the pieces.
  void SplitScope(Scope& scope) {
    Scope result;
    const auto append = [&](Item& item) { std::swap(result.emplace_back(), item); };
    for (Item& item : scope) {
      const Loop* loop = item.As<Loop>();
      absl::optional<Scope> pieces = loop ? Pieces(*loop) : absl::nullopt;
      changed_ |= pieces.has_value();
      if (pieces) std::for_each(pieces->begin(), pieces->end(), append);
      else append(item);
    }
    scope = std::move(result);
    for (Item& item : scope) {
      Loop* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      ranges_.Enter(*loop);
      SplitScope(loop->body);
      ranges_.Leave();
    }
  }

  // The items that replace the loop; nullopt where it stays.
  absl::optional<Scope> Pieces(const Loop& loop) {
    if (loop.step != 1) return absl::nullopt;
    const std::vector<Turn> turns = TurnsIn(loop);
    // Most loops have no turns: only for the others it takes a proof that they are short.
    if (turns.empty() || IsBorder(loop)) return absl::nullopt;
    const IndexList points = PointsOf(ranges_, turns);
    const int statements = CountStatements(loop.body);
    if (points.empty() || statements * static_cast<int>(points.size()) > budget_)
      return absl::nullopt;
    absl::optional<Scope> pieces = Cut(loop, turns, points);
    if (pieces) budget_ -= std::max(CountStatements(*pieces) - statements, 0);
    return pieces;
  }

  static int CountStatements(const Scope& scope) {
    int statements = 0;
    VisitItems(scope, [&](const Item& item) { statements += item.As<Statement>() != nullptr; });
    return statements;
  }

  // ---- Where to cut

  // The iterations at which a comparison in the loop changes its truth.
  std::vector<Turn> TurnsIn(const Loop& loop) {
    std::vector<Turn> turns;
    for (const Comparison& comparison : OpenComparisons(loop)) {
      const auto turn = TurnOf(program_, ranges_, loop, comparison);
      if (turn && ranges_.Defined(turn->at)) turns.push_back(*turn);
    }
    return turns;
  }

  // The comparisons in the body that are not decided and hold no inner index, each once.
  std::vector<Comparison> OpenComparisons(const Loop& loop) {
    absl::flat_hash_set<int64_t> inner;
    VisitItems(loop.body, [&](const Item& item) {
      if (const Loop* l = item.As<Loop>()) inner.insert(l->var);
    });
    std::vector<Comparison> open;
    absl::flat_hash_set<Comparison> seen;
    const auto add = [&](Comparison c) {
      if (!seen.insert(c).second || !DependsOn(c, loop.var, inner)) return;
      if (!ranges_.LessEqual(c.left, c.right) && !ranges_.Less(c.right, c.left)) open.push_back(c);
    };
    const bool has_windows_of_sizes = at_ == CutAt::kWindows && HoldsWindowsOfSizes(loop);
    ranges_.Enter(loop);
    VisitItems(loop.body, [&](const Item& item) {
      const auto* inner_loop = item.As<Loop>();
      const bool may_be_window = at_ == CutAt::kWindows && inner_loop != nullptr;
      const auto window = may_be_window ? WindowOf(program_, *inner_loop) : absl::nullopt;
      if (window) {
        for (const IndexId bound : {inner_loop->begin, inner_loop->end})
          VisitExtreme(pool_, bound, add);
        const auto asks = [&](const Access& access, size_t axis) {
          return has_windows_of_sizes || !IsMaskedInLanes(access, axis, loop);
        };
        VisitWindow(program_, *window, asks, add);
      }
      const Statement* statement = item.As<Statement>();
      if (at_ != CutAt::kMasks || statement == nullptr) return;
      // An argmax is searched for in lanes, for which pieces of a window are too short.
      if (statement->op && IsArg(*statement->op)) return;
      VisitMask(program_, statement->target, add);
      VisitComparisons(program_, *statement, add);
    });
    ranges_.Leave();
    return open;
  }

  // Whether bounds of loops inside move with the loop: windows are smaller at its borders.
  bool HoldsWindowsOfSizes(const Loop& loop) const {
    bool holds = false;
    VisitItems(loop.body, [&](const Item& item) {
      const auto* inner = item.As<Loop>();
      holds = holds || (inner != nullptr && (HoldsVar(pool_, inner->begin, loop.var) ||
                                             HoldsVar(pool_, inner->end, loop.var)));
    });
    return holds;
  }

  // Whether lanes of the loop can each have a mask for the axis, so that it need not be cut there:
  // elements of one or two bytes have none on some machines.
  bool IsMaskedInLanes(const Access& access, size_t axis, const Loop& loop) const {
    constexpr int kLeastBytes = 4;
    return axis + 1 == access.place.size() && StrideIn(pool_, access.place[axis], loop.var) == 1 &&
           ByteSize(program_[access.tensor].type) >= kLeastBytes;
  }

  // On this loop but on none inside of it: then the truth is the same in a whole iteration.
  bool DependsOn(const Comparison& c, int64_t var,
                 const absl::flat_hash_set<int64_t>& inner) const {
    if (!pool_.IsAffine(c.left) || !pool_.IsAffine(c.right)) return false;
    std::vector<int64_t> vars;
    CollectVars(pool_, c.left, vars);
    CollectVars(pool_, c.right, vars);
    return std::find(vars.begin(), vars.end(), var) != vars.end() &&
           std::none_of(vars.begin(), vars.end(), [&](int64_t v) { return inner.contains(v); });
  }

  IndexId Larger(IndexId a, IndexId b) {
    return ranges_.LessEqual(a, b) ? b : ranges_.LessEqual(b, a) ? a : pool_.Max(a, b);
  }
  IndexId Smaller(IndexId a, IndexId b) {
    return ranges_.LessEqual(a, b) ? a : ranges_.LessEqual(b, a) ? b : pool_.Min(a, b);
  }

  // Most pieces are not empty, so that the search is short.
  bool IsEmpty(IndexId begin, IndexId end) {
    return ranges_.IsEmpty(Loop{-1, begin, end, 1, {}, {}});
  }

  // ---- The pieces

  // A part of a loop's range: from its own begin and these points on, up to its own end and the next
  // point, if there is one.
  struct PieceRange {
    IndexId begin, end;
    absl::Span<const IndexId> from;
    IndexId before;
  };

  // nullopt where the comparisons that it is cut for would not be decided in a piece.
  absl::optional<Scope> Cut(const Loop& loop, const std::vector<Turn>& turns,
                            const IndexList& points) {
    Scope pieces;
    IndexId begin = loop.begin;
    for (size_t i = 0; i <= points.size(); ++i) {
      const IndexId end = i < points.size() ? Smaller(loop.end, points[i]) : loop.end;
      const PieceRange range{begin, end, absl::MakeConstSpan(points).first(i),
                             i < points.size() ? points[i] : IndexId()};
      if (!IsEmpty(begin, end) && !AddPiece(loop, range, turns, pieces)) return absl::nullopt;
      if (i < points.size()) begin = Larger(begin, points[i]);
    }
    return pieces;
  }

  // Adds the part of the loop, with what is decided there left out. False where something stays open
  // that the piece was cut for.
  bool AddPiece(const Loop& loop, const PieceRange& range, const std::vector<Turn>& turns,
                Scope& pieces) {
    Loop piece{loop.var, range.begin, range.end, 1, loop.attributes, loop.body};
    ranges_.Enter(piece);
    int assumed = 0;
    for (const Turn& turn : turns) assumed += AssumeOutcome(turn, range, pool_.Var(loop.var));
    if (at_ == CutAt::kWindows) DecideBounds(piece.body);
    else if (CountExtremes(piece.body) > 0)
      RewriteIndices(program_, piece.body, [&](IndexId e) { return Settled(e); });
    absl::optional<Loop> copy = DecidedCopy(program_, ranges_, piece, !pieces.empty());
    while (assumed-- > 0) ranges_.Forget();
    ranges_.Leave();
    if (!copy) return true;
    const std::vector<Turn> open = TurnsIn(*copy);
    if (open.empty() || (IsBorder(*copy) && LeavesMasksIn(loop))) {
      pieces.emplace_back().node = *std::move(copy);
      return true;
    }
    // One extreme within another is linear once the inner one is decided.
    if (CountExtremes(copy->body) >= CountExtremes(loop.body)) return false;
    const IndexList points = PointsOf(ranges_, open);
    absl::optional<Scope> parts = points.empty() ? absl::nullopt : Cut(*copy, open, points);
    if (parts) std::move(parts->begin(), parts->end(), std::back_inserter(pieces));
    return parts.has_value();
  }

  // The number of extremes in places that move.
  int CountExtremes(const Scope& scope) const {
    int count = 0;
    const auto add = [&](const Access& access) {
      VisitExtremes(pool_, access, [&](Comparison) { ++count; });
    };
    VisitItems(scope, [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) return;
      VisitLoads(program_, statement->value, [&](ValueId, const Access& access) { add(access); });
    });
    return count;
  }

  // Whether the loop has so few places that undecided comparisons in it do not matter: the image
  // may end there, too. Masks are left only in pieces that were cut off; in other short loops they
  // are decided.
  bool IsBorder(const Loop& loop) {
    const bool is_piece =
        pool_[loop.begin].kind == IndexKind::kMax || pool_[loop.end].kind == IndexKind::kMin;
    if (at_ == CutAt::kMasks && !is_piece) return false;
    return ranges_.Less(ranges_.LengthOf(loop), pool_.Const(kMostAtBorder + 1));
  }

  // Whether it pays to cut the loop although a border keeps masks: not where the inside would
  // have no lanes even then, as it gathers along the loop, nor for steps of a recurrence with
  // loops inside.
  bool LeavesMasksIn(const Loop& loop) const {
    if (at_ == CutAt::kWindows) return true;
    bool gathers = false;
    VisitItems(loop.body, [&](const Item& item) {
      VisitAccesses(program_, item, [&](TensorId, absl::Span<const IndexId> place, AccessKind) {
        gathers = gathers || absl::c_any_of(place, [&](IndexId e) {
                    return pool_.HasLoad(e) && HoldsVar(pool_, e, loop.var);
                  });
      });
    });
    const bool holds_loop =
        absl::c_any_of(loop.body, [](const Item& item) { return item.As<Loop>() != nullptr; });
    return !gathers && !(holds_loop && CarriedTensor(program_, loop).has_value());
  }

  // Decides the bounds of loops over windows.
  void DecideBounds(Scope& scope) {
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      if (WindowOf(program_, *loop)) {
        loop->begin = Decided(loop->begin);
        loop->end = Decided(loop->end);
      }
      DecideBounds(loop->body);
    }
  }

  // The argument that an extreme is known to be.
  IndexId Decided(IndexId e) {
    const IndexNode node = pool_[e];
    if (node.kind != IndexKind::kMin && node.kind != IndexKind::kMax) return e;
    const bool is_least = node.kind == IndexKind::kMin;
    if (ranges_.LessEqual(node.args[0], node.args[1])) return node.args[is_least ? 0 : 1];
    if (ranges_.LessEqual(node.args[1], node.args[0])) return node.args[is_least ? 1 : 0];
    return e;
  }

  // `e` with each extreme in it replaced by its decided argument.
  IndexId Settled(IndexId e) {
    if (!pool_.HasVar(e) || !pool_.IsAffine(e) || pool_.VarValue(e) >= 0) return e;
    const IndexNode node = pool_[e];
    IndexList args;
    for (IndexId arg : node.args) args.push_back(Settled(arg));
    return Decided(pool_.Make(node.kind, node.value, args));
  }

  // Whether it is known in the piece, which is then assumed. Most turns are where the piece begins or
  // ends, and then nothing has to be proven.
  bool AssumeOutcome(const Turn& turn, const PieceRange& range, IndexId var) {
    const bool before = turn.at == range.before;
    const bool behind =
        !before && (absl::c_linear_search(range.from, turn.at) || ranges_.LessEqual(turn.at, var));
    if (!before && !behind && !ranges_.Less(var, turn.at)) return false;
    const Comparison& c = turn.comparison;
    if (behind == turn.rising) ranges_.Assume(pool_.Condition(IndexKind::kLe, c.left, c.right));
    else ranges_.Assume(pool_.Condition(IndexKind::kLt, c.right, c.left));
    return true;
  }

  Program& program_;
  IndexPool& pool_;
  Ranges ranges_;
  const CutAt at_;
  int budget_ = 0;
  bool changed_ = false;
  std::vector<Scope> tops_;  // the items at the top, each by itself
};

}  // namespace

absl::StatusOr<bool> SplitLoops(Program& program) { return Splitter(program, CutAt::kMasks).Run(); }
absl::StatusOr<bool> SplitWindows(Program& program) {
  return Splitter(program, CutAt::kWindows).Run();
}

}  // namespace nestor::loop
