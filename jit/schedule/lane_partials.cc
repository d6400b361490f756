// A reduction into a scalar is a chain: each addition waits for the one before. Here the chain
// becomes as many independent chains as there are lanes in a few vectors, each of which takes every
// 32nd element, say, and whose results are combined by a tree of halves. Several vectors hide the
// latency of an addition: while one waits, others begin.
//
// For floats this changes the order of additions, and so the rounding; the bound of a pairwise sum
// is if anything better (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed. 2002,
// sec. 4.2). The number of lanes depends on the type and the instruction set, never on the number
// of threads. For integers, maximum and minimum no bit changes.
//
// Loops are visited from the inside out. An innermost loop that qualifies is split in place into
// one over groups of lanes and one over the rest; the partial results that it needs then travel
// outwards, until something else uses their accumulator or its declaration is reached. In
//
//   acc s   for i { for k { s += x[i, k] } }   y = s
//
// the partial results are thus declared before the loop over i, and combined once after it.
#include "jit/schedule/lane_partials.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "fusion/cost/work.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/lane_gain.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/reordering.h"
#include "jit/target/lanes.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/lanes.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// A body of at least kLongSteps operations keeps the units busy with kLongVectors vectors.
constexpr int kLongVectors = 2;
constexpr int kLongSteps = 15;
// So many vector registers are few.
constexpr int kFewRegisters = 16;

struct Partial {
  TensorId accumulator, lanes;
};

class LaneSums {
 public:
  LaneSums(Program& program, const LanePartialsOptions& options)
      : program_(program), options_(options), ranges_(program) {}

  bool Run() {
    Surround(program_.body, Visit(program_.body, /*is_top=*/true));
    return changed_;
  }

 private:
  // Splits the loops that qualify in the scope and below; returns the partial results that are
  // wanted further out.
  std::vector<Partial> Visit(Scope& scope, bool is_top) {
    std::vector<Partial> outwards;
    Scope visited;
    for (size_t i = 0; i < scope.size(); ++i) {
      std::vector<Partial> wanted, here;
      Scope items = Split(std::move(scope[i]), wanted);
      const auto rest = absl::MakeConstSpan(scope).subspan(i + 1);
      for (const Partial& partial : wanted) {
        const bool stays =
            is_top || Use(visited, partial.accumulator) || Use(rest, partial.accumulator);
        (stays ? here : outwards).push_back(partial);
      }
      Surround(items, here);
      Append(visited, std::move(items));
    }
    scope = std::move(visited);
    return outwards;
  }

  // Whether the items declare the accumulator, or use it.
  bool Use(absl::Span<const Item> items, TensorId accumulator) const {
    bool use = false;
    for (const Item& item : items) {
      VisitItems(item, [&](const Item& each) {
        const auto* declaration = each.As<Declaration>();
        use |= declaration != nullptr && declaration->tensor == accumulator;
        VisitAccesses(program_, each, [&](TensorId tensor, absl::Span<const IndexId>, AccessKind) {
          use |= tensor == accumulator;
        });
      });
    }
    return use;
  }

  // The scope that replaces the item.
  Scope Split(Item item, std::vector<Partial>& wanted) {
    Scope one;
    auto* loop = item.As<Loop>();
    if (loop != nullptr) {
      const std::vector<TensorId> accumulators = Accumulators(*loop);
      if (!accumulators.empty() && HoldsShortLoopsAtMost(*loop) && Qualifies(*loop)) {
        changed_ = true;
        return SplitLoop(*loop, accumulators, wanted);
      }
    }
    if (loop != nullptr) {
      ranges_.Enter(*loop);
      wanted = Visit(loop->body, /*is_top=*/false);
      ranges_.Leave();
    }
    one.push_back(std::move(item));
    return one;
  }

  // Whether it holds only loops, over windows, that are known to be too short for lanes themselves.
  bool HoldsShortLoopsAtMost(const Loop& loop) const {
    int64_t longest = 0;
    bool are_known = true;
    VisitItems(loop.body, [&](const Item& item) {
      const auto* inner = item.As<Loop>();
      if (inner == nullptr) return;
      const auto length = KnownLength(program_, *inner);
      are_known = are_known && length;
      longest = std::max(longest, length.value_or(0));
    });
    return are_known && (longest == 0 || longest < jit::LanesOf(program_, loop, options_.isa));
  }

  // The tensors that a loop declares.
  using Own = absl::flat_hash_set<TensorId>;
  static Own OwnOf(const Loop& loop) {
    const std::vector<TensorId> own = DeclaredIn(loop.body);
    return Own(own.begin(), own.end());
  }

  // The scalars that the loop carries, if it only accumulates into them, outside of the loops that
  // it holds, and in a way that may be reordered; else nothing.
  std::vector<TensorId> Accumulators(const Loop& loop) const {
    std::vector<TensorId> accumulators;
    bool good = !loop.attributes.vector && absl::c_any_of(loop.body, [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      return statement != nullptr && statement->op &&
             program_[statement->target.tensor].shape.empty();
    });
    if (!good) return accumulators;  // most loops: what follows takes walks
    const Own own = OwnOf(loop);
    for (const Item& item : loop.body) {
      if (const auto* inner = item.As<Loop>()) good = good && !CarriesFrom(own, *inner);
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || !IsCarried(own, statement->target.tensor)) continue;
      good = good && statement->op &&
             MayReorder(*statement->op, program_[statement->target.tensor]) &&
             !statement->target.masked;
      accumulators.push_back(statement->target.tensor);
    }
    std::sort(accumulators.begin(), accumulators.end(), ByNumber);
    VisitItems(loop.body, [&](const Item& item) {
      VisitAccesses(
          program_, item, [&](TensorId tensor, absl::Span<const IndexId>, AccessKind kind) {
            const bool reads = kind == AccessKind::kRead;
            good = good && !(reads && std::binary_search(accumulators.begin(), accumulators.end(),
                                                         tensor, ByNumber));
          });
    });
    const bool twice =
        std::adjacent_find(accumulators.begin(), accumulators.end()) != accumulators.end();
    return good && !twice ? accumulators : std::vector<TensorId>();
  }

  // Whether the loop writes scalars that are neither its own nor in `own`.
  bool CarriesFrom(Own own, const Loop& loop) const {
    own.merge(OwnOf(loop));
    return std::any_of(loop.body.begin(), loop.body.end(), [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      const auto* inner = item.As<Loop>();
      return inner != nullptr ? CarriesFrom(own, *inner)
                              : statement != nullptr && IsCarried(own, statement->target.tensor);
    });
  }

  static bool ByNumber(TensorId a, TensorId b) { return a.value < b.value; }

  bool IsCarried(const Own& own, TensorId tensor) const {
    return program_[tensor].shape.empty() && !own.contains(tensor);
  }

  bool MayReorder(ReduceOp op, const TensorInfo& tensor) const {
    if (IsArg(op) || tensor.storage != Storage::kAccumulator) return false;
    return loop::MayReorder(StepOp(op), tensor.type, options_.reorders_rounding);
  }

  // Narrow integers have as many lanes as fit, unless there are fewer steps.
  int LanesFor(const Loop& loop) {
    const int most = jit::MostLanesOf(program_, loop, options_.isa);
    return IsBelow(loop, most) ? jit::LanesOf(program_, loop, options_.isa) : most;
  }

  bool IsBelow(const Loop& loop, int64_t steps) {
    return ranges_.Less(program_.pool.Sub(loop.end, loop.begin), program_.pool.Const(steps));
  }

  // Long enough, faster in lanes, legal in lanes; and the loop without its accumulations is
  // independent.
  bool Qualifies(const Loop& loop) {
    if (IsBelow(loop, LanesFor(loop))) return false;
    if (LaneGain(program_, loop) <= 0 || !RunsInLanes(program_, ranges_, loop)) return false;
    // Only the accumulators are carried.
    Loop rest = loop;
    const Own own = OwnOf(loop);
    const auto is_one = [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      return statement != nullptr && IsCarried(own, statement->target.tensor);
    };
    rest.body.erase(std::remove_if(rest.body.begin(), rest.body.end(), is_one), rest.body.end());
    return !CarriedTensor(program_, rest).has_value();
  }

  // Whether the body takes many steps: then a few vectors keep the processor busy, and more would
  // need more registers than there are.
  bool IsLong(const Loop& loop) const {
    int steps = 0;
    const bool has_few_registers = jit::FactsOf(options_.isa).vectors <= kFewRegisters;
    VisitItems(loop.body, [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) return;
      // Maximum and minimum of floats take several steps, too, where registers are few.
      const bool is_extreme =
          statement->op && (*statement->op == ReduceOp::kMax || *statement->op == ReduceOp::kMin);
      if (is_extreme && has_few_registers && IsFloat(program_[statement->value].type))
        steps += kLongSteps;
      steps += OperationsOf(program_, statement->value);
    });
    return steps >= kLongSteps;
  }

  // for k in [b, e) -> for g in [0, (e - b)/W) { lanes at b + W*g }, then one loop of (e - b)%W
  // lanes.
  Scope SplitLoop(const Loop& loop, const std::vector<TensorId>& accumulators,
                  std::vector<Partial>& wanted) {
    IndexPool& pool = program_.pool;
    const int vectors = IsLong(loop) ? std::min(options_.vectors, kLongVectors) : options_.vectors;
    // Partial results are combined by halves.
    const int64_t width =
        int64_t{std::bit_floor(static_cast<unsigned>(std::max(vectors, 1)))} * LanesFor(loop);
    for (TensorId tensor : accumulators) {
      TensorInfo info = program_[tensor];
      info.name = absl::StrCat(info.name, "_lanes");
      info.shape = {pool.Const(width)};
      info.storage = Storage::kAccumulator;
      info.is_register = true;
      wanted.push_back({tensor, program_.AddTensor(std::move(info))});
    }
    const IndexId length = ranges_.LengthOf(loop);
    const IndexId groups = pool.Div(length, pool.Const(width)),
                  rest = pool.Mod(length, pool.Const(width));
    Scope split;
    const int32_t group = program_.AddVar(program_.vars[loop.var]);
    const IndexId first = pool.Add(loop.begin, pool.Mul(pool.Var(group), pool.Const(width)));
    Loop over_groups{group, pool.Const(0), groups, 1, {}, {}};
    over_groups.body.push_back({InLanes(loop, first, pool.Const(width), wanted)});
    split.push_back({std::move(over_groups)});
    if (!pool.IsConst(rest, 0)) {
      const IndexId behind = pool.Add(loop.begin, pool.Mul(groups, pool.Const(width)));
      split.push_back({InLanes(loop, behind, rest, wanted)});
    }
    return split;
  }

  // for l in [0, count) vector { the body at first + l, on partial results }
  Loop InLanes(const Loop& loop, IndexId first, IndexId count,
               const std::vector<Partial>& partials) {
    IndexPool& pool = program_.pool;
    const int32_t lane = program_.AddVar("l");
    absl::optional<Loop> copy = FreshCopy(program_, ranges_, loop);
    Loop lanes{lane, pool.Const(0), count, 1, {}, {}};
    lanes.attributes.vector = true;
    if (!copy) return lanes;
    lanes.body = std::move(copy->body);
    VarReplacement replace(program_);
    replace.Set(copy->var, pool.Add(first, pool.Var(lane)));
    RewriteIndices(program_, lanes.body, [&](IndexId e) { return replace(e); });
    absl::flat_hash_map<TensorId, TensorId> lanes_of;
    for (const Partial& partial : partials) lanes_of.emplace(partial.accumulator, partial.lanes);
    for (Item& item : lanes.body) {
      auto* statement = item.As<Statement>();
      if (statement == nullptr) continue;
      const auto partial = lanes_of.find(statement->target.tensor);
      if (partial != lanes_of.end()) statement->target = {partial->second, {pool.Var(lane)}};
    }
    return lanes;
  }

  // Declares the partial results before the items and combines them after them.
  void Surround(Scope& items, const std::vector<Partial>& partials) {
    Scope before, behind;
    for (const Partial& partial : partials) {
      before.push_back(DeclarationOf(partial.lanes));
      Combine(partial, behind);
    }
    Append(items, std::move(behind));
    Insert(items, 0, std::move(before));
  }

  // Combines lanes until one is left, which is added to the accumulator.
  void Combine(const Partial& partial, Scope& scope) {
    const ReduceOp op = program_[partial.lanes].op;
    const auto name = [&](int64_t width) {
      return absl::StrCat(program_[partial.accumulator].name, "_", width);
    };
    Access combined = CombineLanes(program_, partial.lanes, {}, op, name, scope);
    Statement last;
    last.target = {partial.accumulator};
    last.op = op;
    last.value = program_.AddLoad(std::move(combined));
    if (NESTOR_MUTANT("lane_partials_combined_twice")) scope.push_back({last});
    scope.push_back({std::move(last)});
  }

  Program& program_;
  const LanePartialsOptions& options_;
  Ranges ranges_;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> SumInLanes(Program& program, const LanePartialsOptions& options) {
  return LaneSums(program, options).Run();
}

}  // namespace nestor::loop
