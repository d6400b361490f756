// Loops. `for v in [begin, end) vector(8) interleave(2) tail` becomes
//
//     v = begin
//     while (v + 16 <= end) { group at v; group at v + 8; v += 16 }
//     while (v + 8 <= end)  { group at v; v += 8 }
//     if (v < end)          { group at v, of the first end - v lanes }
//
// where a group is the loop's body on vectors. A vector loop that is unrolled has a copy of its
// body for each vector instead. Nested parallel loops are counted as one, whose iterations threads
// share by number.
#include "jit/codegen/translate_loops.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "jit/codegen/homes.h"
#include "jit/target/lanes.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/lanes.h"
#include "loop_ir/perfect_nest.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {

using loop::TensorId;

namespace {

// Interleaves groups of independent operations; each group reaches from its start to the next
// one's. A processor looks only so far ahead, and within a group most operations wait for the
// one before.
void Interleave(std::vector<Operation>& operations, absl::Span<const size_t> starts) {
  const size_t first = starts[0];
  if (starts.size() < 2 ||
      std::any_of(operations.begin() + static_cast<int64_t>(first), operations.end(), IsControl)) {
    return;
  }
  std::vector<Operation> mixed;
  mixed.reserve(operations.size() - first);
  for (size_t i = 0; mixed.size() < operations.size() - first; ++i) {
    for (size_t g = 0; g < starts.size(); ++g) {
      const size_t end = g + 1 < starts.size() ? starts[g + 1] : operations.size();
      if (starts[g] + i < end) mixed.push_back(operations[starts[g] + i]);
    }
  }
  std::copy(mixed.begin(), mixed.end(), operations.begin() + static_cast<int64_t>(first));
}

// Whether no statement of the loop changes the condition's inputs, and the condition does not
// depend on a loop inside.
bool StaysInside(const loop::Program& program, const loop::Loop& loop, IndexId condition) {
  bool stays = !HoldsVar(program.pool, condition, loop.var);
  VisitItems(loop.body, [&](const loop::Item& item) {
    const auto* inner = item.As<loop::Loop>();
    stays = stays && (inner == nullptr || !HoldsVar(program.pool, condition, inner->var));
  });
  if (!stays || !program.pool.HasLoad(condition)) return stays;
  const loop::Footprint footprint = FootprintOf(program, loop.body);
  VisitIndex(program.pool, condition, [&](IndexId, const IndexNode& node) {
    stays = stays && (node.kind != IndexKind::kLoad ||
                      !footprint.Changes(TensorId{static_cast<int32_t>(node.value)}));
  });
  return stays;
}

// How many iterations of a loop with lanes run at once: pieces for threads begin at multiples.
int64_t IterationsAtOnce(const loop::Program& program, const loop::Loop& loop) {
  if (!loop.attributes.unroll) return int64_t{loop.attributes.interleave} * loop.attributes.lanes;
  return std::max<int64_t>(loop::MostIterations(program, loop).value_or(1), 1);
}

// A condition, the same at all steps of the loop, without which each of its statements is dropped;
// invalid: there is none.
IndexId GuardOf(const loop::Program& program, const loop::Loop& loop) {
  absl::optional<IndexList> common;
  VisitItems(loop.body, [&](const loop::Item& item) {
    const auto* statement = item.As<loop::Statement>();
    if (statement == nullptr || (common && common->empty())) return;
    const IndexList& own = statement->target.conditions;
    if (!common) common = own;
    const auto is_missing = [&](IndexId e) { return !absl::c_linear_search(own, e); };
    common->erase(std::remove_if(common->begin(), common->end(), is_missing), common->end());
  });
  if (!common) return {};
  const auto guard =
      absl::c_find_if(*common, [&](IndexId e) { return StaysInside(program, loop, e); });
  return guard == common->end() ? IndexId() : *guard;
}

}  // namespace

// ---- Parallel loops

// Two arguments of the function say which iterations are this thread's piece.
void LoopTranslator::ParallelLoop(const loop::Loop& loop, Step& step) {
  const Operand begin = f_.General(Opcode::kParameterG, {}, {}, 0);
  const Operand end = f_.General(Opcode::kParameterG, {}, {}, 1);
  const std::vector<const loop::Loop*> chain = CollapsedChain(loop);
  if (chain.size() > 1) {
    IndexId iterations = program_.pool.Const(1);
    for (const loop::Loop* one : chain) {
      iterations =
          program_.pool.Mul(iterations, program_.pool.Max(one->end, program_.pool.Const(0)));
    }
    step.begin = Immediate(0);
    step.end = f_.Index(iterations);
    return Guarded(loop, [&] { CollapsedLoops(chain, begin, end); });
  }
  step.begin = f_.Index(loop.begin);
  step.end = f_.Index(loop.end);
  step.stride = loop.step;
  const bool in_lanes = loop.attributes.lanes > 0;
  if (in_lanes) step.granularity = IterationsAtOnce(program_, loop);
  Guarded(loop, [&] { in_lanes ? VectorLoop(loop, begin, end) : ScalarLoop(loop, begin, end); });
}

// The loop and those right inside it that are parallel, too, and do not run in lanes: their
// iterations are counted as one.
// (Loop coalescing: Polychronopoulos, 1987.) So a loop of 3 around one of 5 gives 15 pieces to
// share, not 3.
std::vector<const loop::Loop*> LoopTranslator::CollapsedChain(const loop::Loop& outermost) const {
  const auto counts = [&](const loop::Loop& loop) {
    return loop.attributes.parallel && loop.step == 1 && program_.pool.IsConst(loop.begin, 0) &&
           !program_.pool.HasVar(loop.end) && loop.attributes.lanes == 0;
  };
  std::vector<const loop::Loop*> chain;
  for (const loop::Loop* loop = &outermost; loop != nullptr && counts(*loop);
       loop = loop::OnlyLoopIn(loop->body)) {
    chain.push_back(loop);
  }
  return chain;
}

// Runs iterations [begin, end) of the chain. The innermost loop runs as it is, between the begin
// and the end of the piece; the number is decomposed into the indices of the others.
// So the divisions are made once per run of the innermost loop, not once per iteration.
void LoopTranslator::CollapsedLoops(const std::vector<const loop::Loop*>& chain, Operand begin,
                                    Operand end) {
  const loop::Loop& inner = *chain.back();
  const Operand count = CountOf(inner);
  const Operand first = f_.General(Opcode::kFloorDivG, begin, count);
  const Operand past =
      f_.General(Opcode::kAddG, end, f_.General(Opcode::kSubG, count, Immediate(1)));
  const Operand last = f_.General(Opcode::kFloorDivG, past, count);
  f_.OpenRegion();
  const Operand number = f_.General(Opcode::kMoveG, first);
  const int done = f_.list().NewLabel();
  f_.Branch(Condition::kGreaterEqual, number, last, done);
  f_.OpenIteration(chain.size() == 2 ? chain[0]->var : -1, number, 0, 1, first);
  std::vector<Operand> indices;  // of the outer loops, innermost first
  Operand rest = number;
  for (size_t i = chain.size() - 1; i-- > 1;) {
    const Operand of = CountOf(*chain[i]);
    indices.push_back(f_.General(Opcode::kFloorModG, rest, of));
    rest = f_.General(Opcode::kFloorDivG, rest, of);
  }
  indices.push_back(rest);
  const Operand start = f_.General(Opcode::kMulG, number, count);
  const Operand from =
      f_.General(Opcode::kMaxG, f_.General(Opcode::kSubG, begin, start), Immediate(0));
  const Operand left =
      NESTOR_MUTANT("piece_runs_on") ? count : f_.General(Opcode::kSubG, end, start);
  const Operand to = f_.General(Opcode::kMinG, left, count);
  const size_t opened = chain.size() == 2 ? 0 : chain.size() - 1;
  for (size_t i = 0; i < opened; ++i)
    f_.OpenIteration(chain[i]->var, indices[opened - 1 - i], 0, 0, {});
  ScalarLoop(inner, from, to);
  for (size_t i = 0; i < opened; ++i) f_.CloseIteration({});
  f_.CloseIteration(last);
  f_.Label(done);
  f_.CloseRegion();
}

// How often the loop, which begins at 0, runs; at least 1, because code with nothing to run is
// not called.
Operand LoopTranslator::CountOf(const loop::Loop& loop) {
  return f_.InRegister(f_.Index(program_.pool.Max(loop.end, program_.pool.Const(1))));
}

// ---- Loops

void LoopTranslator::Loop(const loop::Loop& loop) {
  Guarded(loop, [&] { LoopItself(loop); });
}

// Skips a loop that would drop all its results.
// (Loop unswitching; Allen and Cocke, 1971. The other copy of the loop is empty.)
void LoopTranslator::Guarded(const loop::Loop& loop, absl::FunctionRef<void()> run) {
  const IndexId guard =
      f_.lanes().var < 0 && guard_.value < 0 ? GuardOf(program_, loop) : IndexId();
  if (guard.value < 0) return run();
  const int skipped = f_.list().NewLabel();
  f_.Branch(Condition::kEqual, f_.ConditionValue(guard), Immediate(0), skipped);
  f_.OpenRegion();
  guard_ = guard;
  run();
  guard_ = {};
  f_.CloseRegion();
  f_.Label(skipped);
}

void LoopTranslator::LoopItself(const loop::Loop& loop) {
  const Operand begin = f_.Index(loop.begin), end = f_.Index(loop.end);
  if (IsUnrolled(program_, loop)) return UnrolledLoop(loop);
  if (loop.attributes.lanes > 0) return VectorLoop(loop, begin, end);
  ScalarLoop(loop, begin, end);
}

void LoopTranslator::BodyAndPrefetches(const loop::Loop& loop) {
  body_(loop.body);
  for (const loop::Prefetch& prefetch : loop.prefetches) accesses_.Prefetch(prefetch);
}

// Tests once before the loop whether it runs; a loop of at most one iteration is only that test.
void LoopTranslator::ScalarLoop(const loop::Loop& loop, Operand begin, Operand end) {
  const bool is_choice = begin == Immediate(0) && end.kind != Operand::kImmediate;
  if (is_choice && loop::IsAtMostOne(program_.pool, loop.end)) return Choice(loop, end);
  f_.OpenRegion();
  const Operand index = f_.General(Opcode::kMoveG, begin);
  const int done = f_.list().NewLabel();
  f_.Branch(Condition::kGreaterEqual, index, end, done);
  f_.OpenIteration(loop.var, index, 0, loop.step, begin);
  BodyAndPrefetches(loop);
  f_.CloseIteration(end);
  f_.Label(done);
  f_.CloseRegion();
}

// Runs one iteration, or none.
void LoopTranslator::Choice(const loop::Loop& loop, Operand runs) {
  const int done = f_.list().NewLabel();
  f_.Branch(Condition::kLessEqual, runs, Immediate(0), done);
  f_.OpenRegion();
  f_.OpenIteration(loop.var, Immediate(0), 0, 0, {});
  BodyAndPrefetches(loop);
  f_.CloseIteration({});
  f_.CloseRegion();
  f_.Label(done);
}

// The index is a number in each copy, so that places in register tiles are known.
void LoopTranslator::UnrolledLoop(const loop::Loop& loop) {
  const int64_t end = ConstantOf(program_, loop.end);
  for (int64_t i = ConstantOf(program_, loop.begin); i < end; i += loop.step) {
    f_.OpenIteration(loop.var, Immediate(i), 0, 0, {});
    BodyAndPrefetches(loop);
    f_.CloseIteration({});
  }
}

void LoopTranslator::VectorLoop(const loop::Loop& loop, Operand begin, Operand end) {
  NESTOR_CHECK(loop.attributes.HasVectors(), "it is decided how vectors run");
  const Lanes around = f_.lanes();
  f_.OpenRegion();
  const int count = loop.attributes.lanes;
  const bool is_narrow = count > LanesOf(program_, loop, f_.list().isa);
  f_.lanes() = {count,    is_narrow ? NarrowLaneBytes(program_, loop) : kLeastLaneBytes,
                loop.var, f_.Depth(),
                {},       -1,
                &loop};
  loop.attributes.unroll ? UnrolledVectors(loop, begin, end) : InterleavedVectors(loop, begin, end);
  f_.CloseRegion();
  f_.lanes() = around;
}

void LoopTranslator::InterleavedVectors(const loop::Loop& loop, Operand begin, Operand end) {
  const Operand index = f_.General(Opcode::kMoveG, begin);
  const int interleave = loop.attributes.interleave;
  if (interleave > 1) VectorGroups(loop, index, end, interleave);
  const bool are_left =
      !loop::LengthIsMultiple(program_, loop, int64_t{interleave} * f_.lanes().count);
  if (interleave == 1 || are_left) VectorGroups(loop, index, end, 1);
  if (!loop.attributes.tail) return;
  IndexPool& pool = program_.pool;
  const bool alike = RunsAlike(loop, begin, end);
  const IndexId left = pool.Mod(pool.Sub(loop.end, loop.begin), pool.Const(f_.lanes().count));
  VectorTail(loop, index, end, alike ? f_.Index(left) : f_.General(Opcode::kSubG, end, index));
}

// Whether these are the loop's own bounds, not those of a piece, and follow from sizes alone. What
// follows from them is in the table then, and masks of so many lanes are made once for all rows.
bool LoopTranslator::RunsAlike(const loop::Loop& loop, Operand begin, Operand end) {
  const IndexPool& pool = program_.pool;
  return !pool.HasVar(loop.begin) && !pool.HasVar(loop.end) && begin == f_.Index(loop.begin) &&
         end == f_.Index(loop.end);
}

// while (index + lanes * interleave <= end)
void LoopTranslator::VectorGroups(const loop::Loop& loop, Operand index, Operand end,
                                  int interleave) {
  const int64_t step = int64_t{f_.lanes().count} * interleave;
  const Lanes around = f_.lanes();
  f_.OpenRegion();
  const Operand last = f_.General(Opcode::kSubG, end, Immediate(step - 1));
  const int done = f_.list().NewLabel();
  f_.Branch(Condition::kGreaterEqual, index, last, done);
  f_.OpenIteration(loop.var, index, 0, step, index);
  f_.lanes().region = f_.Depth() - 1;
  std::vector<size_t> starts;
  for (int u = 0; u < interleave; ++u) {
    starts.push_back(f_.list().operations.size());
    Group(loop, index, NESTOR_MUTANT("second_group_at_first") ? 0 : int64_t{u} * f_.lanes().count);
  }
  Interleave(f_.list().operations, starts);
  f_.CloseIteration(last);
  f_.Label(done);
  f_.CloseRegion();
  f_.lanes() = around;
}

// One group, of the `left` iterations from index to end, if there are any.
void LoopTranslator::VectorTail(const loop::Loop& loop, Operand index, Operand end, Operand left) {
  const Lanes around = f_.lanes();
  const int done = f_.list().NewLabel();
  f_.Branch(Condition::kGreaterEqual, index, end, done);
  f_.OpenRegion();
  f_.lanes().region = f_.Depth();
  f_.lanes().active = left;
  if (NESTOR_MUTANT("tail_mask_too_long"))
    f_.lanes().active = f_.General(Opcode::kAddG, f_.lanes().active, Immediate(1));
  if (NESTOR_MUTANT("tail_mask_too_short"))
    f_.lanes().active = f_.General(Opcode::kSubG, f_.lanes().active, Immediate(1));
  Group(loop, index, 0);
  f_.CloseRegion();
  f_.Label(done);
  f_.lanes() = around;
}

void LoopTranslator::Group(const loop::Loop& loop, Operand index, int64_t offset) {
  f_.OpenIteration(loop.var, index, offset, 0, {});
  BodyAndPrefetches(loop);
  f_.CloseIteration({});
}

// The group of each vector knows its registers. If the length is not fixed, each asks first whether
// any lanes are left, and then how many. The copies are interleaved, so that their chains of
// operations overlap.
void LoopTranslator::UnrolledVectors(const loop::Loop& loop, Operand begin, Operand end) {
  const bool fixed = loop::KnownLength(program_, loop).has_value();
  const int64_t extent = *loop::MostIterations(program_, loop);
  if (fixed && end.kind == Operand::kImmediate) f_.lanes().end = end.value;
  const Lanes around = f_.lanes();
  const Operand index = begin.kind == Operand::kImmediate ? begin : f_.InRegister(begin);
  const int done = f_.list().NewLabel();
  std::vector<size_t> starts;
  for (int64_t offset = 0; offset < extent; offset += f_.lanes().count) {
    starts.push_back(f_.list().operations.size());
    // Lanes beyond the end of a tile hold anything; memory beyond the end is left alone.
    const bool whole = fixed && offset + f_.lanes().count <= extent;
    f_.OpenRegion();
    f_.lanes().region = f_.Depth();
    if (!whole) {
      f_.lanes().active = fixed ? Immediate(extent - offset) : LanesLeft(loop, begin, end, offset);
      if (!fixed) f_.Branch(Condition::kLessEqual, f_.lanes().active, Immediate(0), done);
    }
    Group(loop, index, offset);
    f_.CloseRegion();
    f_.lanes() = around;
  }
  if (!starts.empty()) Interleave(f_.list().operations, starts);
  if (!fixed) f_.Label(done);
}

// How many lanes of the group at begin + offset take part; not positive: none.
Operand LoopTranslator::LanesLeft(const loop::Loop& loop, Operand begin, Operand end,
                                  int64_t offset) {
  const int64_t lanes = f_.lanes().count;
  if (RunsAlike(loop, begin, end)) {
    IndexPool& pool = program_.pool;
    const IndexId length = pool.Sub(loop.end, loop.begin);
    return f_.Index(pool.Min(pool.Sub(length, pool.Const(offset)), pool.Const(lanes)));
  }
  Operand left = f_.General(Opcode::kSubG, end, begin);
  if (offset > 0) left = f_.General(Opcode::kSubG, left, Immediate(offset));
  return f_.General(Opcode::kMinG, left, Immediate(lanes));
}

}  // namespace nestor::jit
