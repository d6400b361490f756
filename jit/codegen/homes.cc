// Which tensors stay in registers, and as what. One walk counts, for every tensor, the steps that
// use it and the statements that write it; a second looks whether register tensors are used as
// vectors.
//
// Registers have no addresses, so a register tensor needs subscripts that are numbers once its
// loops are unrolled, and along the last axis the lanes of exactly one register. A tensor that some
// access uses in another way goes to memory, which is always right and merely slower:
//
//   acc[r, v]  with r unrolled, v in 8 lanes    a register for each r and each 8 of v
//   acc[r, v + 1]                               lanes of two registers: memory
#include "jit/codegen/homes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/text.h"
#include "uops/index/atom_sum.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

using loop::Item;
using loop::Program;
using loop::Scope;
using loop::Storage;
using loop::TensorId;

constexpr int64_t kMostIterations = 64;

struct Use {
  int step = -1;
  bool several_steps = false;
  int writes = 0;
  bool written_where_declared = false;
};

class UseWalk {
 public:
  explicit UseWalk(const Program& program)
      : program_(program), uses_(program.tensors.size()), scopes_(program.tensors.size()) {}

  // The item is one of `scope`.
  void Walk(const Scope& scope, const Item& item, int step) {
    if (const auto* declaration = item.As<loop::Declaration>()) {
      scopes_[declaration->tensor.value] = &scope;
      // The program's tensors belong to the steps that use them.
      if (!IsAtTop(declaration->tensor)) See(declaration->tensor, step);
    }
    VisitAccesses(
        program_, item,
        [&](TensorId tensor, absl::Span<const IndexId>, loop::AccessKind) { See(tensor, step); });
    if (const auto* statement = item.As<loop::Statement>()) {
      Use& use = uses_[statement->target.tensor.value];
      ++use.writes;
      const bool here = scopes_[statement->target.tensor.value] == &scope;
      use.written_where_declared = here && !statement->op && !statement->target.masked;
    }
    if (const auto* loop = item.As<loop::Loop>()) {
      for (const Item& inner : loop->body) Walk(loop->body, inner, step);
    }
  }
  const Use& operator[](TensorId tensor) const { return uses_[tensor.value]; }
  bool IsDeclared(TensorId tensor) const { return scopes_[tensor.value] != nullptr; }
  bool IsAtTop(TensorId tensor) const { return scopes_[tensor.value] == &program_.body; }

 private:
  void See(TensorId tensor, int step) {
    Use& use = uses_[tensor.value];
    use.several_steps |= use.step >= 0 && use.step != step;
    use.step = step;
  }

  const Program& program_;
  std::vector<Use> uses_;
  std::vector<const Scope*> scopes_;  // by tensor: that declared it
};

// The program's tensors share one memory, those of loops' bodies each worker's own.
HomeKind MemoryOf(const UseWalk& uses, TensorId tensor) {
  return uses.IsAtTop(tensor) ? HomeKind::kMemory : HomeKind::kPrivate;
}

// Finds the register tensors that some access uses otherwise than in whole vectors.
class TileWalk {
 public:
  // `uses`: of the whole program.
  TileWalk(const Program& program, const UseWalk& uses, std::vector<Home>& homes)
      : program_(program), uses_(uses), homes_(homes) {}

  // A tile's elements are registers: an access that does not name one at translation time puts the
  // tensor into memory.
  void Walk(const Scope& scope) {
    for (const Item& item : scope) {
      VisitAccesses(program_, item,
                    [&](TensorId tensor, absl::Span<const IndexId> place, loop::AccessKind kind) {
                      if (homes_[tensor.value].kind != HomeKind::kTile) return;
                      if (!Conforms(tensor, place, kind == loop::AccessKind::kRead))
                        homes_[tensor.value].kind = MemoryOf(uses_, tensor);
                    });
      if (const auto* loop = item.As<loop::Loop>()) Enter(*loop);
    }
  }

 private:
  struct Vector {
    int32_t var = -1;
    int lanes = 1;
    int64_t begin = 0;
    absl::optional<int64_t> extent = 1;  // if it is a number
  };

  // The innermost loop in lanes counts: it decides which lanes an access uses.
  void Enter(const loop::Loop& loop) {
    const Vector around = vector_;
    const bool unrolled = IsUnrolled(program_, loop);
    const auto begin = program_.pool.ConstValue(loop.begin),
               end = program_.pool.ConstValue(loop.end);
    if (loop.attributes.lanes > 0 && begin) {
      vector_ = {loop.var, loop.attributes.lanes, *begin, absl::nullopt};
      if (end) vector_.extent = *end - *begin;
    }
    if (unrolled) fixed_.push_back(loop.var);
    Walk(loop.body);
    if (unrolled) fixed_.pop_back();
    vector_ = around;
  }

  // The outer axes are numbers once loops are unrolled; along the last one, the lanes are those
  // of one register; writes must cover all of them. A square tile may also be read along its
  // first axis.
  // A read may also begin at a lane that is a power of two, if it ends in the same register: so a
  // register is folded to one lane by halves.
  bool Conforms(TensorId tensor, absl::Span<const IndexId> place, bool is_read) const {
    if (is_read && IsColumn(tensor, place)) return true;
    for (IndexId e : place.first(place.size() - 1)) {
      std::vector<int64_t> vars;
      CollectVars(program_.pool, e, vars);
      if (program_.pool.HasLoad(e) || !program_.pool.IsAffine(e)) return false;
      for (int64_t var : vars) {
        if (std::find(fixed_.begin(), fixed_.end(), var) == fixed_.end()) return false;
      }
    }
    const auto offset = OffsetFrom(place.back(), vector_.var);
    if (!offset) return false;
    const int lanes = homes_[tensor.value].tile_lanes;
    if (vector_.var >= 0 && vector_.lanes != lanes) return false;
    const int64_t lane = (*offset + vector_.begin) % lanes;
    if (lane == 0) return true;
    const bool is_power = (lane & (lane - 1)) == 0;
    return is_read && is_power && vector_.extent && lane + *vector_.extent <= lanes;
  }

  // x[v, c] of a square tile, v running over all lanes of a vector: a column of its transpose.
  bool IsColumn(TensorId tensor, absl::Span<const IndexId> place) const {
    const Shape& shape = program_[tensor].shape;
    const int lanes = homes_[tensor.value].tile_lanes;
    if (place.size() != 2 || vector_.var < 0 || program_.pool.VarValue(place[0]) != vector_.var)
      return false;
    std::vector<int64_t> vars;
    CollectVars(program_.pool, place[1], vars);
    const bool fixed = std::all_of(vars.begin(), vars.end(), [&](int64_t var) {
      return std::find(fixed_.begin(), fixed_.end(), var) != fixed_.end();
    });
    return fixed && vector_.lanes == lanes && vector_.begin == 0 && vector_.extent == lanes &&
           program_.pool.IsConst(shape[0], lanes) && program_.pool.IsConst(shape[1], lanes);
  }

  // The offset in e = var + offset, or in e = offset if there is no vector loop.
  absl::optional<int64_t> OffsetFrom(IndexId e, int32_t var) const {
    const IndexPool& pool = program_.pool;
    const bool moves = var >= 0;
    if (moves && loop::StrideIn(pool, e, var) != 1) return absl::nullopt;
    const auto sum = AtomSum::Of(pool, e);
    const int64_t offset = sum.ConstantTerm();
    const bool is_alone = sum.exact() && sum.size() == size_t{moves} + (offset != 0);
    return is_alone && offset >= 0 ? absl::make_optional(offset) : absl::nullopt;
  }

  const Program& program_;
  const UseWalk& uses_;
  std::vector<Home>& homes_;
  Vector vector_;
  std::vector<int64_t> fixed_;  // indices of unrolled loops
};

// Gives each register tensor the most lanes of any loop that uses it.
void WidenTiles(const Program& program, const Scope& scope, int lanes, std::vector<Home>& homes) {
  for (const Item& item : scope) {
    VisitAccesses(program, item, [&](TensorId tensor, absl::Span<const IndexId>, loop::AccessKind) {
      homes[tensor.value].tile_lanes = std::max(homes[tensor.value].tile_lanes, lanes);
    });
    if (const auto* loop = item.As<loop::Loop>()) {
      WidenTiles(program, loop->body, std::max(lanes, loop->attributes.lanes), homes);
    }
  }
}

// A temp of the program that several steps see needs memory, even if it is a scalar or a register
// tensor: steps run on different threads. Booleans and arg accumulators take registers of two
// kinds, so there are no tiles of them.
Home HomeOf(const Program& program, TensorId tensor, const UseWalk& uses, Isa isa) {
  const Use& use = uses[tensor];
  const loop::TensorInfo& info = program[tensor];
  Home home;
  home.step = use.step;
  if (info.storage == Storage::kInput || info.storage == Storage::kOutput) {
    home.kind = HomeKind::kArgument;
  } else if (info.shape.empty() && !use.several_steps) {
    home.kind = HomeKind::kScalar;
    home.is_single =
        info.storage == Storage::kTemp && use.writes == 1 && use.written_where_declared;
  } else if (info.is_register && !use.several_steps && info.type != DType::kBool &&
             !(info.storage == Storage::kAccumulator && IsArg(info.op))) {
    home.kind = HomeKind::kTile;
    home.tile_lanes = LanesOf(info.type, isa);
  } else {
    home.kind = MemoryOf(uses, tensor);
  }
  // Memory is reserved for declared tensors only: for any other, code would write to
  // another tensor's.
  const bool is_argument = home.kind == HomeKind::kArgument;
  NESTOR_CHECK(use.step < 0 || is_argument || uses.IsDeclared(tensor),
               absl::StrCat(info.name, " is declared nowhere in\n", loop::ToText(program)));
  return home;
}

}  // namespace

bool IsUnrolled(const Program& program, const loop::Loop& loop) {
  const auto begin = program.pool.ConstValue(loop.begin), end = program.pool.ConstValue(loop.end);
  return loop.attributes.unroll && !loop.attributes.vector && begin && end &&
         *end - *begin <= kMostIterations * loop.step;
}

int64_t ConstantOf(const Program& program, IndexId e) {
  const absl::optional<int64_t> value = program.pool.ConstValue(e);
  NESTOR_CHECK(value.has_value(), "an extent of a register tile is a number");
  return *value;
}

// The lanes of tiles are fixed before accesses are compared with them.
std::vector<Home> FindHomes(const Program& program, const std::vector<int>& step_of_item, Isa isa) {
  UseWalk uses(program);
  for (size_t i = 0; i < program.body.size(); ++i)
    uses.Walk(program.body, program.body[i], step_of_item[i]);
  std::vector<Home> homes;
  for (size_t i = 0; i < program.tensors.size(); ++i)
    homes.push_back(HomeOf(program, TensorId{static_cast<int32_t>(i)}, uses, isa));
  WidenTiles(program, program.body, 0, homes);
  TileWalk tiles(program, uses, homes);
  tiles.Walk(program.body);
  return homes;
}

}  // namespace nestor::jit
