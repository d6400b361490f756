// A scope that declares a tile holds, one after the other: loops that fill it, loops that add to
// it, and its ends, which read it and store elsewhere. An end's places are translated to a fill by
// the places of both in the tile.
//
//   for r, l { t[r, l] = 0 }                          prefetch x[8*p + r, 16*q + l]   # the fill
//   for k { .. t[r, l] = t[r, l] + .. }
//   for r, l { y[8*p + r, ..] = t[r, l] + x[8*p + r, 16*q + l] }                      # the end
//
// The loads of an end would wait for memory, one cache line a row, with nothing else to do; fetched
// when the tile begins, they arrive while it sums.
#include "jit/schedule/tile_prefetches.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

class TilePrefetcher {
 public:
  explicit TilePrefetcher(Program& program)
      : program_(program), pool_(program.pool), temps_(DeclaredIn(program.body)) {}

  bool Run() {
    Visit(program_.body);
    return changed_;
  }

 private:
  // A loop with lanes that writes the tile, and the place that it writes.
  struct Fill {
    Loop* loop;
    IndexList in_tile;
  };
  struct End {
    IndexList in_tile;
    std::vector<Access> beside;
  };
  struct Tile {
    TensorId tensor;
    std::vector<Fill> fills;
    std::vector<End> ends;
    std::vector<int64_t> vars;  // of all loops in its scope
    bool is_summed = false;
  };

  // The items after a tile's declaration are sorted into fills, sums and ends.
  void Visit(Scope& scope) {
    for (size_t i = 0; i < scope.size(); ++i) {
      if (auto* loop = scope[i].As<Loop>()) Visit(loop->body);
      const auto* declaration = scope[i].As<Declaration>();
      if (declaration == nullptr || !program_[declaration->tensor].is_register) continue;
      Tile tile{declaration->tensor, {}, {}, {}};
      for (size_t k = i + 1; k < scope.size(); ++k) Collect(scope[k], tile);
      for (const End& end : tile.ends) {
        for (const Fill& fill : tile.fills) Prefetch(tile, end, fill);
      }
    }
  }

  // A loop with lanes is a fill if it writes the tile before any sum, a sum if it reads and writes
  // it, and an end if it reads the tile after a sum.
  void Collect(Item& item, Tile& tile) {
    auto* loop = item.As<Loop>();
    if (loop == nullptr) return;
    tile.vars.push_back(loop->var);
    if (loop->attributes.lanes == 0) {
      for (Item& inner : loop->body) Collect(inner, tile);
      return;
    }
    absl::optional<IndexList> written, read;
    for (const Item& inner : loop->body) {
      VisitAccesses(
          program_, inner, [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
            if (tensor != tile.tensor) return;
            (kind == AccessKind::kRead ? read : written) = IndexList(place.begin(), place.end());
          });
    }
    if (written && read) tile.is_summed = true;
    else if (written && !tile.is_summed) tile.fills.push_back({loop, *written});
    else if (read && tile.is_summed) tile.ends.push_back({*read, ReadsBeside(*loop)});
  }

  // Reads along the loop, at places that are known without reading memory.
  std::vector<Access> ReadsBeside(const Loop& loop) const {
    std::vector<Access> reads;
    for (const Item& item : loop.body) {
      VisitAccesses(
          program_, item, [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
            if (kind != AccessKind::kRead || !IsFromOutside(tensor) || place.empty()) return;
            if (absl::c_all_of(place,
                               [&](IndexId e) { return pool_.IsAffine(e) && !pool_.HasLoad(e); }) &&
                HoldsVar(pool_, place.back(), loop.var)) {
              reads.push_back({tensor, IndexList(place.begin(), place.end())});
            }
          });
    }
    return reads;
  }

  bool IsFromOutside(TensorId tensor) const {
    return program_[tensor].storage == Storage::kInput ||
           (!program_[tensor].is_register && absl::c_linear_search(temps_, tensor));
  }

  // In t[r2, l2] of the end, r2 and l2 become the subscripts of the fill. A place that moves with
  // another loop of the tile's scope has no counterpart in the fill.
  void Prefetch(const Tile& tile, const End& end, const Fill& fill) {
    VarReplacement to_fill(program_);
    std::vector<int64_t> others = tile.vars;
    for (size_t axis = 0; axis < end.in_tile.size(); ++axis) {
      const int64_t var = pool_.VarValue(end.in_tile[axis]);
      if (var < 0) return;
      to_fill.Set(var, fill.in_tile[axis]);
      others.erase(std::remove(others.begin(), others.end(), var), others.end());
    }
    const auto holds_other = [&](IndexId e) {
      return absl::c_any_of(others, [&](int64_t var) { return HoldsVar(pool_, e, var); });
    };
    for (Access read : end.beside) {
      if (absl::c_any_of(read.place, holds_other)) continue;
      for (IndexId& e : read.place) e = to_fill(e);
      changed_ |= AddPrefetch(*fill.loop, std::move(read));
    }
  }

  Program& program_;
  IndexPool& pool_;
  const std::vector<TensorId> temps_;  // at the top
  bool changed_ = false;
};

}  // namespace

bool PrefetchBesideTiles(Program& program) { return TilePrefetcher(program).Run(); }

}  // namespace nestor::loop
