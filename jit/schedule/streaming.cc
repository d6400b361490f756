// Three rules for arguments that exceed the caches, each a walk over the program with the lanes
// already chosen: prefetch the next row or piece of a row (RowPrefetcher), what is combined with
// the sums of a tile (tile_prefetches.h), and far ahead along streams (stream_prefetches.h); and,
// where no cache holds the outputs, stores that bypass the caches, so that a line is not read
// before it is overwritten (non-temporal stores).
//
// The rows, or the pieces of rows, that loops with lanes walk are collected in the body of each
// loop; one of these loops then fetches the next row or piece, element for element. No prefetch
// changes a value; too many cost time, so that each rule says which access is not found by
// hardware.
#include "jit/schedule/streaming.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "fusion/cost/work.h"
#include "jit/runtime/cpu_features.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/stream_prefetches.h"
#include "jit/schedule/tile_prefetches.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/lanes.h"
#include "loop_ir/rewrite.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

class RowPrefetcher {
 public:
  explicit RowPrefetcher(Program& program) : program_(program), pool_(program.pool) {}

  bool Run() {
    Visit(program_.body);
    return changed_;
  }

 private:
  using Place = absl::Span<const IndexId>;
  // Walks along the rows of one input. Loops over a vector or two at the ends of a row count only
  // if no loop takes the rest of it.
  struct Walks {
    int count = 0;
    Loop* last = nullptr;
    std::vector<IndexList> places;  // in `last`
    bool gathered = false;
    bool is_long = false;
  };

  void Visit(Scope& scope) {
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr || loop->attributes.lanes > 0) continue;
      PrefetchIn(*loop);
      std::vector<int32_t> rows;
      PrefetchPieces(*loop, loop->body, rows);
      Visit(loop->body);
    }
  }

  // Counts how many items of the body walk a row of each input: from two on, or if rows are
  // gathered, the last walk fetches the next row.
  void PrefetchIn(Loop& around) {
    absl::flat_hash_map<TensorId, Walks> walks;
    for (Item& item : around.body) {
      absl::flat_hash_map<TensorId, Walks> here;
      VisitLanes(item, [&](Loop& loop, TensorId tensor, Place place) {
        if (!WalksRow(loop, tensor, place, around.var)) return;
        Walks& walk = here[tensor];
        const bool is_long = IsLong(loop, place);
        if (walk.is_long && !is_long) return;
        walk.is_long = is_long;
        if (walk.last != &loop) walk.places.clear();
        walk.last = &loop;
        walk.gathered |= IsGathered(place, around.var);
        if (!absl::c_linear_search(walk.places, place))
          walk.places.emplace_back(place.begin(), place.end());
      });
      for (auto& [tensor, walk] : here) {
        Walks& all = walks[tensor];
        if (all.is_long && !walk.is_long) continue;
        if (walk.is_long && !all.is_long) all = {};
        all = {all.count + 1, walk.last, std::move(walk.places), all.gathered || walk.gathered,
               walk.is_long};
      }
    }
    for (TensorId tensor : program_.inputs) {
      const auto walk = walks.find(tensor);
      if (walk == walks.end() || (walk->second.count == 1 && !walk->second.gathered)) continue;
      for (const IndexList& place : walk->second.places)
        Prefetch(around, *walk->second.last, tensor, place);
    }
  }

  // Not where all that the loop and those around walk of a row is a vector or two.
  bool IsLong(const Loop& loop, Place place) const {
    constexpr int64_t kFewVectors = 2;
    std::vector<int64_t> vars;
    CollectVars(pool_, place.back(), vars);
    const auto most = MostIterations(program_, loop);
    return vars.size() > 1 || !most || *most > kFewVectors * loop.attributes.lanes;
  }

  // `rows`: the loops between `around` and the scope.
  void PrefetchPieces(const Loop& around, Scope& scope, std::vector<int32_t>& rows) {
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      if (loop->attributes.lanes > 0) {
        PrefetchPiece(around, *loop, rows);
        continue;
      }
      rows.push_back(loop->var);
      PrefetchPieces(around, loop->body, rows);
      rows.pop_back();
    }
  }

  // Fetches the next piece of each row that the loop reads a piece of.
  void PrefetchPiece(const Loop& around, Loop& loop, absl::Span<const int32_t> rows) {
    for (Item& item : loop.body) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || statement->op) continue;
      VisitAccesses(program_, item, [&](TensorId tensor, Place place, AccessKind kind) {
        if (kind != AccessKind::kRead || !IsPiece(around, loop, rows, tensor, place)) return;
        Prefetch(around, loop, tensor, place);
      });
    }
  }

  // Whether the loop reads at most a cache line of a row of an input, `around` moves to the next
  // piece of the row, and one of the loops between moves to another row.
  bool IsPiece(const Loop& around, const Loop& loop, absl::Span<const int32_t> rows,
               TensorId tensor, Place place) const {
    if (program_[tensor].storage != Storage::kInput || place.empty()) return false;
    const auto elements = pool_.ConstValue(loop.end);
    if (!elements || *elements * ByteSize(program_[tensor].type) > jit::kCacheLineBytes)
      return false;
    if (absl::c_any_of(place, [&](IndexId e) { return pool_.HasLoad(e); })) return false;
    const auto holds_row = [&](IndexId e) {
      return absl::c_any_of(rows, [&](int32_t var) { return HoldsVar(pool_, e, var); });
    };
    const IndexId along = place.back();
    return HoldsVar(pool_, along, loop.var) && HoldsVar(pool_, along, around.var) &&
           !holds_row(along) && absl::c_any_of(place, holds_row);
  }

  template <class Visitor>
  void VisitLanes(Item& item, Visitor visit) {
    auto* loop = item.As<Loop>();
    if (loop == nullptr) return;
    for (Item& inner : loop->body) {
      VisitLanes(inner, visit);
      if (loop->attributes.lanes == 0) continue;
      VisitAccesses(program_, inner, [&](TensorId tensor, Place place, AccessKind kind) {
        if (kind == AccessKind::kRead) visit(*loop, tensor, place);
      });
    }
  }

  // Whether the loop reads a row of an input from its beginning, and the loop around
  // moves from row to row.
  bool WalksRow(const Loop& loop, TensorId tensor, Place place, int32_t around) const {
    if (program_[tensor].storage != Storage::kInput || place.empty()) return false;
    if (!absl::c_all_of(place, [&](IndexId e) { return IsPlain(e) || IsGather(e, loop.var); }))
      return false;
    return StrideIn(pool_, place.back(), loop.var) == 1 &&
           FixedPart(pool_, place.back()).IsZero() &&
           absl::c_any_of(place, [&](IndexId e) { return HoldsVar(pool_, e, around); });
  }

  bool IsGathered(Place place, int32_t around) const {
    return absl::c_any_of(
        place, [&](IndexId e) { return pool_.HasLoad(e) && HoldsVar(pool_, e, around); });
  }

  // Whether the index is looked up in inputs, once for all lanes.
  bool IsGather(IndexId e, int32_t var) const {
    return pool_.HasLoad(e) && LoadsOnlyInputs(program_, e) && !HoldsVar(pool_, e, var);
  }
  bool IsPlain(IndexId e) const { return pool_.IsAffine(e) && !pool_.HasLoad(e); }

  // Prefetches the place in the next row; indices that are looked up are those of the last
  // row at most.
  void Prefetch(const Loop& around, Loop& loop, TensorId tensor, Place place) {
    const IndexId row = pool_.Add(pool_.Var(around.var), pool_.Const(around.step));
    VarReplacement next(program_), next_that_is(program_);
    next.Set(around.var, row);
    next_that_is.Set(around.var, pool_.Min(row, pool_.Sub(around.end, pool_.Const(1))));
    Access access;
    access.tensor = tensor;
    for (IndexId e : place) access.place.push_back(pool_.HasLoad(e) ? next_that_is(e) : next(e));
    changed_ |= AddPrefetch(loop, std::move(access));
  }

  Program& program_;
  IndexPool& pool_;
  bool changed_ = false;
};

// Where each byte takes more operations than this, arithmetic bounds the loop, and stores that
// bypass the caches, which delay the loads after them, cost more than they save.
constexpr int kMostOperationsForByte = 16;

bool IsQuick(const Program& program, const Statement& statement) {
  const int bytes = ByteSize(program[statement.target.tensor].type);
  return OperationsOf(program, statement.value) <= kMostOperationsForByte * bytes;
}

// Whether it adds values to the elements of a register tile that each shares with others, as a
// product of matrices does: then much is computed for each stored element.
bool SumsShared(Program& program, const Item& item) {
  if (const auto* loop = item.As<Loop>()) {
    return absl::c_any_of(loop->body,
                          [&](const Item& inner) { return SumsShared(program, inner); });
  }
  const auto* statement = item.As<Statement>();
  if (statement == nullptr || !program[statement->target.tensor].is_register) return false;
  std::vector<int64_t> vars;
  for (IndexId e : statement->target.place) CollectVars(program.pool, e, vars);
  const auto is_shared = [&](absl::Span<const IndexId> place) {
    return absl::c_any_of(vars, [&](int64_t var) {
      return absl::c_none_of(place, [&](IndexId e) { return HoldsVar(program.pool, e, var); });
    });
  };
  bool adds = false, all_shared = true;
  VisitAccesses(program, item,
                [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
                  if (kind != AccessKind::kRead) return;
                  if (tensor != statement->target.tensor) all_shared &= is_shared(place);
                  else adds |= absl::c_equal(place, statement->target.place);
                });
  return adds && all_shared;
}

// Marks assignments to outputs, nest by nest; marks that are wrong by now are taken back.
bool StreamOutputs(Program& program) {
  bool changed = false;
  for (Item& nest : program.body) {
    const bool is_contraction = SumsShared(program, nest);
    VisitStatements(nest, [&](Statement& statement, const LoopsAround&) {
      const bool streams = !statement.op &&
                           program[statement.target.tensor].storage == Storage::kOutput &&
                           !is_contraction && IsQuick(program, statement);
      changed |= std::exchange(statement.streams, streams) != streams;
    });
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> PrefetchArguments(Program& program) {
  bool changed = RowPrefetcher(program).Run();
  changed |= PrefetchBesideTiles(program);
  return PrefetchAlongStreams(program) || changed;
}

absl::StatusOr<bool> StreamArguments(Program& program) {
  NESTOR_ASSIGN_OR_RETURN(const bool prefetches, PrefetchArguments(program));
  return StreamOutputs(program) || prefetches;
}

}  // namespace nestor::loop
