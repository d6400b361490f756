// Padding, strides and overlapping windows make an operand of a convolution awkward to read in a
// tile: accesses are masked, or a packed copy has each element once for each place in a window
// (im2col). Here the operand is copied as it lies, with its border, once for a strip of rows, and
// the tiles read windows of the copy in place, without masks.
//
// Decisions for each nest: which operands need a copy (NeedsView); how many iterations of the batch
// loops share it (SharingOf), since windows of adjacent rows overlap; and in which order its axes
// lie (PutFirst, PutLast in padded_view.h). A second rule lets nests beside each other, as the
// parts of a split contraction, share one copy as large as the largest (ShareViews); it comes
// first, since afterwards each nest would have its own.
//
//   for h { for o { for i { .. x[h + r - 1, i + q - 1 | 0] .. } } }
//     ->
//   for p { temp view  copy 4 + 2 rows  for h in 4 rows { for o { for i { .. view[..] .. } } } }
#include "jit/schedule/padded_views.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "fusion/split_loops.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/kept_sum.h"
#include "jit/schedule/padded_view.h"
#include "jit/schedule/replace_loops.h"
#include "jit/target/lanes.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

// Elements past the last of a row: whole vectors of a contraction's columns may be read, though the
// last lanes are no columns.
constexpr int64_t kSlack = 16;

// Iterations of a loop around windows that share a copy: for windows of three, half as much again
// is copied. Where a copy is read for a single tile of rows, or a single row, copying takes as long
// as reading: strips are longer.
constexpr int64_t kStripLength = 4, kStripOfFewKernels = 8, kStripOfOneChannel = 16;

// At most this many rows of a contraction are one tile.
constexpr int64_t kFewKernels = 8;

// All iterations of loops around windows that are known to be no longer, as those over the window
// in its gradient, share a copy.
constexpr int64_t kMostShared = 8;

// Loops around them with no more iterations share it, too: these are too few to be shared out.
constexpr int64_t kFewOutside = 4;

// The most elements, along each axis, of windows that are read in place.
constexpr int64_t kMostOfWindow = 16;

class Materializer {
 public:
  Materializer(Program& program, Ranges& ranges)
      : program_(program), pool_(program.pool), ranges_(ranges), views_(program, ranges) {}

  // The nest with views of its operands; nullopt where it needs none.
  absl::optional<Scope> Materialize(const Loop& loop) {
    absl::optional<Contraction> nest = ContractionOf(program_, loop);
    if (!nest) nest = WindowsOf(program_, loop);
    if (!nest) return absl::nullopt;
    const Sharing sharing = SharingOf(*nest);
    std::vector<View> views;
    if (nest->row != nullptr) AddViews(nest->rows, *nest->row, *nest, sharing, views);
    AddViews(nest->columns, *nest->column, *nest, sharing, views);
    if (views.empty()) return absl::nullopt;
    return Rebuilt(*nest, sharing, views);
  }

  // The loop with views that several nests in it share; nullopt where none do.
  absl::optional<Scope> ShareViews(const Loop& around) {
    ranges_.Enter(around);
    const std::vector<SharedView> shared = SharedViewsOf(around.body);
    Scope body = shared.empty() ? Scope() : WithShared(around.body, shared);
    ranges_.Leave();
    return shared.empty() ? absl::nullopt : absl::optional<Scope>(Around(around, std::move(body)));
  }

 private:
  // The innermost batch loops whose iterations all share views, and strips of the one around them.
  struct Sharing {
    std::vector<Loop> whole;       // outermost first, with as many iterations as there may be
    absl::optional<Strips> strip;  // windows of one iteration overlap those of the next
  };

  // From the innermost batch loop outwards: loops over which windows slide share a copy, all
  // iterations of a short one, strips of the first that is longer.
  Sharing SharingOf(const Contraction& nest) {
    Sharing sharing;
    size_t around = nest.batch.size();
    for (; around > 0 && WindowsOverlap(nest, *nest.batch[around - 1]); --around) {
      const Loop& batch = *nest.batch[around - 1];
      const absl::optional<IndexId> most = MostIterations(batch);
      if (nest.row == nullptr || !most || !ranges_.Less(*most, pool_.Const(kMostShared + 1))) {
        sharing.strip = StripOf(nest, batch);
        break;
      }
      sharing.whole.insert(sharing.whole.begin(), batch);
      sharing.whole.front().end = pool_.Add(batch.begin, *most);
    }
    if (!sharing.whole.empty() && !sharing.strip && Iterations(nest, around) <= kFewOutside) {
      for (; around > 0; --around)
        sharing.whole.insert(sharing.whole.begin(), *nest.batch[around - 1]);
    }
    return sharing;
  }

  // Longer strips where the copy is read seldom; even ones where channels lie last, so that threads
  // get equal shares.
  Strips StripOf(const Contraction& nest, const Loop& batch) {
    if (nest.row == nullptr) return StripsOf(program_, ranges_, batch, kStripOfOneChannel);
    const bool channels_last = absl::c_any_of(nest.rows, [&](const Contraction::Operand& operand) {
      const Access access = AccessOf(program_, operand);
      return SlidesAlong(program_, access, nest.sums, batch) &&
             !MovesWithAny(pool_, access.place.back(), {nest.row, &batch});
    });
    if (channels_last) return EvenStripsOf(program_, ranges_, batch);
    const auto kernels = KnownLength(program_, *nest.row);
    const bool are_few = kernels && *kernels <= kFewKernels;
    return StripsOf(program_, ranges_, batch, are_few ? kStripOfFewKernels : kStripLength);
  }

  // All iterations of batch loops, if they are few.
  absl::optional<Sharing> SharingOfAll(const Contraction& nest) {
    Sharing sharing;
    for (const Loop* batch : nest.batch) {
      const absl::optional<IndexId> most = MostIterations(*batch);
      if (!most || !ranges_.Less(*most, pool_.Const(kMostShared + 1))) return absl::nullopt;
      sharing.whole.push_back(*batch);
      sharing.whole.back().end = pool_.Add(batch->begin, *most);
    }
    return sharing;
  }

  // An expression of symbols that bounds the loop's iterations at any iteration of
  // the loops around.
  absl::optional<IndexId> MostIterations(const Loop& loop) {
    return MostUpTo(loop.end, loop.begin);
  }
  // min(a, b) - begin is at most a - begin: the first argument for which no index is left.
  absl::optional<IndexId> MostUpTo(IndexId end, IndexId begin) {
    const IndexId length = pool_.Sub(end, begin);
    if (!pool_.HasVar(length)) return length;
    if (pool_[end].kind != IndexKind::kMin) return absl::nullopt;
    const auto arguments = pool_[end].args;  // a copy: the pool grows
    for (const IndexId argument : arguments) {
      if (const auto most = MostUpTo(argument, begin)) return most;
    }
    return absl::nullopt;
  }

  // The iterations of that many of the outermost batch loops, counted up to a few.
  int64_t Iterations(const Contraction& nest, size_t loops) const {
    int64_t iterations = 1;
    for (size_t i = 0; i < loops; ++i) {
      iterations *= std::min(KnownLength(program_, *nest.batch[i]).value_or(kFewOutside + 1),
                             kFewOutside + 1);
    }
    return iterations;
  }

  bool WindowsOverlap(const Contraction& nest, const Loop& loop) const {
    const auto has_windows = [&](const Contraction::Operand& operand) {
      return SlidesAlong(program_, AccessOf(program_, operand), nest.sums, loop);
    };
    return absl::c_any_of(nest.rows, has_windows) || absl::c_any_of(nest.columns, has_windows);
  }

  void AddViews(const std::vector<Contraction::Operand>& operands, const Loop& side,
                const Contraction& nest, const Sharing& sharing, std::vector<View>& views) {
    for (const Contraction::Operand& operand : operands) {
      if (!NeedsView(operand, side, nest) || IsMaskedInLanes(operand, nest)) continue;
      absl::optional<View> view = ViewOf(operand, side, nest, sharing);
      if (view) views.push_back(*std::move(view));
    }
  }

  bool NeedsView(const Contraction::Operand& operand, const Loop& side, const Contraction& nest) {
    return AccessOf(program_, operand).masked || LeavesAtHulls(operand, nest) ||
           IsWindow(operand, side, nest);
  }

  // Whether columns in lanes can read it in place, each with a mask of its own: windows of known
  // size, each read for one result, take hardly longer than a copy would. Some machines have no
  // masked loads of narrow elements.
  bool IsMaskedInLanes(const Contraction::Operand& operand, const Contraction& nest) {
    const Access access = AccessOf(program_, operand);
    const DType type = program_[access.tensor].type;
    const bool is_small = absl::c_all_of(nest.sums, [&](const Loop* sum) {
      return KnownLength(program_, *sum).value_or(kMostOfWindow + 1) <= kMostOfWindow;
    });
    return nest.row == nullptr && is_small && !operand.is_computed() && type != DType::kBool &&
           ByteSize(type) >= jit::kLeastLaneBytes &&
           OnlyAxisAlong(program_, access.place, *nest.column) == access.place.size() - 1 &&
           IsAlong(program_, access, *nest.column);
  }

  // The view of the operand in the sums, in the loops that share it, and along its side.
  absl::optional<View> ViewOf(const Contraction::Operand& operand, const Loop& side,
                              const Contraction& nest, const Sharing& sharing) {
    const std::vector<Loop> hulls = HullLoopsOf(nest);
    LoopsAround inside;
    for (const Loop& hull : hulls) inside.push_back(&hull);
    for (const Loop& batch : sharing.whole) inside.push_back(&batch);
    if (sharing.strip) inside.push_back(&sharing.strip->whole);
    inside.push_back(&side);
    const int64_t slack = nest.row != nullptr && &side == nest.column ? kSlack : 0;
    absl::optional<View> view = views_.ViewOf(operand, inside, slack);
    if (!view) return absl::nullopt;
    // Rows that lie across the sum are put one after the other in the copy: tiles read them there.
    if (&side == nest.column && FillsLanes(AccessOf(program_, operand), nest, sharing))
      views_.PutLast(side, kSlack, *view);
    else if (&side == nest.row) views_.PutFirst(side, *view);
    if (&side == nest.row && RowsLieAlongLast(*view, nest)) views_.MoveRowsApart(*view);
    return view;
  }

  // Whether the elements that a row sums lie along the last axis, and rows, of this loop or of one
  // around, lie next to each other.
  bool RowsLieAlongLast(const View& view, const Contraction& nest) const {
    if (view.place.size() < 2) return false;
    LoopsAround rows = nest.batch;
    rows.push_back(nest.row);
    return !MovesWithAny(pool_, view.place.back(), rows) &&
           MovesWithAny(pool_, view.place[view.place.size() - 2], rows);
  }

  // Whether the operand is read at each place of a window, whose loop is around, and results are
  // stored across both rows and columns: then its elements fill lanes, side by side in the copy,
  // and nothing is packed for each place.
  bool FillsLanes(const Access& access, const Contraction& nest, const Sharing& sharing) const {
    const auto slides = [&](const Loop& batch) {
      return SlidesAlong(program_, access, nest.sums, batch);
    };
    const auto is_stored_along = [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) return false;
      const IndexList& place = statement->target.place;
      const auto moves_with = [&](const Loop* side) {
        return HoldsVar(pool_, place.back(), side->var);
      };
      return !place.empty() && (moves_with(nest.row) || moves_with(nest.column));
    };
    return nest.row != nullptr && absl::c_any_of(sharing.whole, slides) &&
           absl::c_none_of(*nest.core, is_stored_along);
  }

  // Whether it leaves its tensor at steps that are not summed.
  bool LeavesAtHulls(const Contraction::Operand& operand, const Contraction& nest) {
    return !IsInRange(program_, ranges_, nest, operand) &&
           IsInRange(program_, ranges_, nest, operand, CheckedSteps::kOfSums);
  }

  // Whether columns overlap, so that a packed copy would hold each element several times, and are
  // not in a view yet.
  bool IsWindow(const Contraction::Operand& operand, const Loop& side, const Contraction& nest) {
    const Access access = AccessOf(program_, operand);
    const auto slides = [&](const Loop* sum) {
      return HoldsVar(pool_, access.place.back(), sum->var);
    };
    const bool overlaps = &side == nest.column && IsAlong(program_, access, side) &&
                          absl::c_any_of(nest.sums, slides);
    return overlaps && program_[access.tensor].storage != Storage::kTemp &&
           IsInRange(program_, ranges_, nest, operand);
  }

  // ---- Views of several nests

  struct SharedView {
    View view;  // as large as the largest
    struct Use {
      size_t item;  // of the scope
      View view;
    };
    std::vector<Use> uses;
  };

  // A nest that may share views with others.
  struct Candidate {
    size_t item;  // of the scope
    Contraction nest;
    Sharing sharing;
  };

  // Contractions side by side that may read one view.
  std::vector<Candidate> CandidatesIn(const Scope& scope) {
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < scope.size(); ++i) {
      const Loop* loop = scope[i].As<Loop>();
      absl::optional<Contraction> nest =
          loop == nullptr ? absl::nullopt : ContractionOf(program_, *loop);
      absl::optional<Sharing> sharing = nest ? SharingOfAll(*nest) : absl::nullopt;
      if (sharing) candidates.push_back({i, *std::move(nest), *std::move(sharing)});
    }
    return candidates;
  }

  // The views that one nest of the scope needs, and others can read as well.
  std::vector<SharedView> SharedViewsOf(const Scope& scope) {
    std::vector<SharedView> found;
    const std::vector<Candidate> candidates = CandidatesIn(scope);
    if (candidates.size() < 2) return found;
    for (const bool needed : {true, false}) {
      for (const auto& [item, nest, sharing] : candidates) {
        AddUses(item, nest.rows, *nest.row, nest, sharing, needed, found);
        AddUses(item, nest.columns, *nest.column, nest, sharing, needed, found);
      }
    }
    const auto is_no_use = [&](const SharedView& shared) {
      return shared.uses.size() < 2 || Changes(scope, shared);
    };
    found.erase(std::remove_if(found.begin(), found.end(), is_no_use), found.end());
    return found;
  }

  // In the first round operands that need a view found one, or join one; in the second, operands
  // that could do without join one that is there.
  void AddUses(size_t item, const std::vector<Contraction::Operand>& operands, const Loop& side,
               const Contraction& nest, const Sharing& sharing, bool needed,
               std::vector<SharedView>& found) {
    for (const Contraction::Operand& operand : operands) {
      if (NeedsView(operand, side, nest) != needed || (found.empty() && !needed)) continue;
      absl::optional<View> view = ViewOf(operand, side, nest, sharing);
      if (!view) continue;
      const auto same = absl::c_find_if(found, [&](const SharedView& shared) {
        return views_.HaveSameElements(shared.view, *view);
      });
      if (same != found.end()) {
        for (size_t axis = 0; axis < view->shape.size(); ++axis) {
          same->view.shape[axis] = Larger(same->view.shape[axis], view->shape[axis]);
        }
        same->uses.push_back({item, *view});
      } else if (needed) {
        found.push_back({*view, {{item, *view}}});
      }
    }
  }

  IndexId Larger(IndexId a, IndexId b) {
    if (ranges_.LessEqual(a, b)) return b;
    return ranges_.LessEqual(b, a) ? a : pool_.Max(a, b);
  }

  // Whether elements may change after they are copied.
  bool Changes(const Scope& scope, const SharedView& shared) const {
    const TensorId tensor = AccessOf(program_, shared.view.operand).tensor;
    return std::any_of(
        scope.begin() + static_cast<int64_t>(FirstUse(shared)), scope.end(),
        [&](const Item& item) { return FootprintOf(program_, item).Changes(tensor); });
  }

  static size_t FirstUse(const SharedView& shared) {
    return absl::c_min_element(shared.uses,
                               [](const auto& a, const auto& b) { return a.item < b.item; })
        ->item;
  }

  // Each view is made just before the first item that reads it.
  Scope WithShared(const Scope& scope, const std::vector<SharedView>& views) {
    Scope with;
    std::vector<TensorId> tensors(views.size());
    for (size_t i = 0; i < scope.size(); ++i) {
      Item item = scope[i];
      for (size_t v = 0; v < views.size(); ++v) {
        if (FirstUse(views[v]) == i) tensors[v] = views_.Declare(views[v].view, with);
        for (const auto& use : views[v].uses) {
          if (use.item == i) ReadInstead(use.view, tensors[v], item.As<Loop>()->body);
        }
      }
      with.push_back(std::move(item));
    }
    return with;
  }

  // ---- Rebuilding

  // Replaces reads of the view's operand by reads of the tensor.
  void ReadInstead(const View& view, TensorId tensor, Scope& scope) {
    VisitStatements(scope, [&](Statement& statement) {
      statement.value =
          RewriteValues(program_, statement.value, [&](ValueId id) -> absl::optional<ValueId> {
            if (id != view.operand.read) return absl::nullopt;
            return program_.AddLoad({tensor, view.place});
          });
    });
  }

  bool AreSame(const View& a, const View& b) const {
    return a.shape == b.shape && a.place == b.place && views_.HaveSameElements(a, b);
  }

  // The batch loops around the views; inside, the loops that share these, then rows and columns.
  Scope Rebuilt(const Contraction& nest, const Sharing& sharing, const std::vector<View>& views) {
    Scope scope;
    std::vector<TensorId> tensors;
    for (const View& view : views) {
      const auto before = absl::MakeConstSpan(views).first(tensors.size());
      const auto same =
          absl::c_find_if(before, [&](const View& other) { return AreSame(other, view); });
      tensors.push_back(same != before.end() ? tensors[same - before.begin()]
                                             : views_.Declare(view, scope));
    }
    Scope core = *nest.core;
    for (size_t i = 0; i < views.size(); ++i) ReadInstead(views[i], tensors[i], core);
    Scope tile = Around(*nest.column, std::move(core));
    if (nest.row != nullptr) tile = Around(*nest.row, std::move(tile));
    size_t outer = nest.batch.size();
    for (size_t i = 0; i < sharing.whole.size(); ++i)
      tile = Around(*nest.batch[--outer], std::move(tile));
    if (sharing.strip) {
      --outer;
      tile = Around(sharing.strip->strip, std::move(tile));
    }
    Append(scope, std::move(tile));
    if (sharing.strip) scope = Around(sharing.strip->over, std::move(scope));
    while (outer-- > 0) scope = Around(*nest.batch[outer], std::move(scope));
    return scope;
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  ViewMaker views_;
};

}  // namespace

absl::StatusOr<bool> MaterializePaddedViews(Program& program) {
  Ranges ranges(program);
  Materializer materializer(program, ranges);
  bool changed =
      ReplaceLoops(program, ranges, [&](Loop& loop) { return materializer.ShareViews(loop); });
  changed |=
      ReplaceLoops(program, ranges, [&](Loop& loop) { return materializer.Materialize(loop); });
  // The inside of a copy needs no mask.
  if (changed) NESTOR_RETURN_IF_ERROR(SplitLoops(program).status());
  return changed;
}

}  // namespace nestor::loop
