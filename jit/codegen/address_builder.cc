// Strength reduction of addresses (Cocke and Kennedy, "An algorithm for reduction of operator
// strength", 1977): a product of a loop's index becomes a pointer that is moved once in each
// iteration.
//
// The address of x[e1, e2, ..] is base + Σ coefficient * atom, one summand per loop index in the
// place (see AtomSum). Summands are added from the outermost frame to the innermost, so that
// each loop adds only what depends on it:
//
//   x[i, j] of f32, inside loops i, j:   p_i = base + i * stride   (runs with i)
//                                        [p_i + j * 4]             (scaled index)
//
// Places that differ by a constant share their pointers, and differ in the displacement: x[i, j +
// 1] is [p_i + j * 4 + 4]. All is modulo 2^64, as addresses are, so no sum can overflow.
#include "jit/codegen/address_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "uops/invariant.h"

namespace nestor::jit {
namespace {

bool FitsDisplacement(int64_t v) {
  return v >= std::numeric_limits<int32_t>::min() / 2 &&
         v <= std::numeric_limits<int32_t>::max() / 2;
}

bool IsScale(int64_t v) { return v == 1 || v == 2 || v == 4 || v == 8; }

}  // namespace

// ---- Index expressions

Opcode AddressBuilder::OpcodeOf(IndexKind kind) {
  switch (kind) {
    case IndexKind::kAdd: return Opcode::kAddG;
    case IndexKind::kMul: return Opcode::kMulG;
    case IndexKind::kDiv: return Opcode::kFloorDivG;
    case IndexKind::kMod: return Opcode::kFloorModG;
    case IndexKind::kMin: return Opcode::kMinG;
    case IndexKind::kMax: return Opcode::kMaxG;
    case IndexKind::kAnd: return Opcode::kAndG;
    case IndexKind::kOr: return Opcode::kOrG;
    default: return Opcode::kCompareG;
  }
}

Condition AddressBuilder::ConditionOf(IndexKind kind) {
  switch (kind) {
    case IndexKind::kLt: return Condition::kLess;
    case IndexKind::kLe: return Condition::kLessEqual;
    case IndexKind::kNe: return Condition::kNotEqual;
    default: return Condition::kEqual;
  }
}

std::pair<Operand, int64_t> AddressBuilder::Var(int64_t var) const {
  for (int depth = depth_; depth >= 0; --depth) {
    if (frames_[depth].var == var) return {frames_[depth].value, frames_[depth].offset};
  }
  NESTOR_CHECK(false, "a loop index outside its loop");
  return {};
}

// The frame of the innermost loop whose index is in e: there, and in all frames inside, e is known.
int AddressBuilder::FrameOf(IndexId e) const {
  if (!program_.pool.HasVar(e)) return 0;
  const int64_t own = program_.pool.VarValue(e);  // most are variables
  const auto knows = [&](const Frame& frame) {
    return own >= 0 ? frame.var == own : frame.var >= 0 && HoldsVar(program_.pool, e, frame.var);
  };
  int depth = Depth();
  while (depth > 0 && !knows(frames_[depth])) --depth;
  return depth;
}

// A number, a slot of the table if only sizes are in it, or a register that is set on entry to the
// frame of its innermost index; each expression once per frame.
Operand AddressBuilder::Index(IndexId e) {
  if (const auto value = program_.pool.ConstValue(e)) return Immediate(*value);
  if (!program_.pool.HasVar(e)) {
    TableSlot slot{TableSlot::kIndex};
    slot.parts.push_back({1, e, {}, 0});
    return Operand::Table(table_.Slot(slot));
  }
  const int depth = FrameOf(e);
  const auto known = frames_[depth].indices.find(e);
  if (known != frames_[depth].indices.end()) return known->second;
  const Operand result = Compute(e, depth);
  frames_[depth].indices.emplace(e, result);
  return result;
}

// The operation for one node, on operands that Index gives.
Operand AddressBuilder::Compute(IndexId e, int depth) {
  const IndexNode node = program_.pool[e];
  if (node.kind == IndexKind::kVar) {
    const auto [value, offset] = Var(node.value);
    if (value.kind == Operand::kImmediate) return Immediate(value.value + offset);
    return offset == 0 ? value : OnEntry(depth, Make(Opcode::kAddG, value, Immediate(offset)));
  }
  if (node.kind == IndexKind::kNot) {
    return OnEntry(depth, Make(Opcode::kCompareG, Index(node.args[0]), Immediate(0),
                               static_cast<int64_t>(Condition::kEqual)));
  }
  const Operand a = Index(node.args[0]);
  Operand b = Index(node.args[1]);
  const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
  if (divides && b.kind == Operand::kTable) {
    // It is computed even if the loop inside does not run, so it must never divide by zero.
    TableSlot slot{TableSlot::kDivisor};
    slot.parts.push_back({1, node.args[1], {}, 0});
    b = Operand::Table(table_.Slot(slot));
  }
  if (divides && b == Immediate(0)) b = Immediate(1);
  if (a.kind == Operand::kImmediate && b.kind == Operand::kImmediate && !IsCondition(node.kind)) {
    if (const auto value = CheckedApply(node.kind, a.value, b.value)) return Immediate(*value);
  }
  const int64_t condition =
      IsCondition(node.kind) ? static_cast<int64_t>(ConditionOf(node.kind)) : 0;
  return OnEntry(depth, Make(OpcodeOf(node.kind), a, b, condition));
}

// ---- Addresses

// An address of the call, or of the worker's own memory plus an offset that all workers share.
Operand AddressBuilder::BaseOf(loop::TensorId tensor) {
  if (places_[tensor.value].kind == TensorPlace::kTable) {
    return OnEntry(
        0, Make(Opcode::kMoveG, Operand::Table(table_.Slot({TableSlot::kAddress, tensor}))));
  }
  const Operand memory = OnEntry(0, Make(Opcode::kParameterG, {}, {}, 2));
  return OnEntry(
      0, Make(Opcode::kAddG, memory, Operand::Table(table_.Slot({TableSlot::kOffset, tensor}))));
}

// From the outside in: pointers of outer loops are shared by all places that go on differently
// inside. Of the steps that are multiples of an unknown distance, the last one is for the index.
Memory AddressBuilder::Address(loop::TensorId tensor, const IndexList& place,
                               absl::Span<const ComputedPlace> computed) {
  AddressSummands other;
  AddressSummands* const followed = sums_.OfFollowed(tensor, place);
  if (followed == nullptr) other = sums_.Of(tensor, place, computed);
  Memory memory;
  Operand pointer = BaseOf(tensor);
  const Steps steps = StepsOf(followed == nullptr ? other : *followed);
  const auto is_multiple = [](const Step& step) {
    return step.times && step.summand->coefficient.kind != Operand::kImmediate;
  };
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    const bool last = step + 1 == steps.end();
    const bool keeps_index = std::any_of(step + 1, steps.end(), is_multiple);
    pointer = PointerAt(pointer, *step, memory, last, keeps_index);
  }
  memory.base = pointer;
  return memory;
}

AddressBuilder::Steps AddressBuilder::StepsOf(AddressSummands& summands) {
  // A pointer that runs with a loop starts before it, so within a frame the loop's own
  // index comes first.
  const auto order = [&](const AddressSummand& s) {
    if (s.computed.value.kind != Operand::kNone) {
      return std::make_pair(s.computed.depth < 0 ? Depth() + 1 : s.computed.depth, true);
    }
    if (s.atom.value < 0) return std::make_pair(0, false);
    return std::make_pair(FrameOf(s.atom), program_.pool.VarValue(s.atom) < 0);
  };
  // The order is stable, because the number comes last.
  absl::InlinedVector<std::pair<std::pair<int, bool>, size_t>, 8> sorted;
  for (size_t i = 0; i < summands.size(); ++i) sorted.push_back({order(summands[i]), i});
  std::sort(sorted.begin(), sorted.end());
  Steps steps;
  for (const auto& [at, number] : sorted) {
    AddressSummand& summand = summands[number];
    if (summand.coefficient.kind == Operand::kNone)
      summand.coefficient = sums_.Coefficient(summand.parts);
    steps.push_back({&summand, at.first, KnownTimes(summand, at.first)});
  }
  AddUp(steps);
  return steps;
}

// The value of the loop's index if it is known, as in a loop that is written out.
absl::optional<int64_t> AddressBuilder::KnownTimes(const AddressSummand& summand, int depth) const {
  const int64_t var = summand.atom.value < 0 ? -1 : program_.pool.VarValue(summand.atom);
  if (var < 0 || frames_[depth].value.kind != Operand::kImmediate) return absl::nullopt;
  return frames_[depth].value.value + frames_[depth].offset;
}

// Loops that are written out may step over the same distance: rows of a tile and elements of a
// window over them do. The distance is added once, where the innermost of them is.
void AddressBuilder::AddUp(Steps& steps) {
  for (auto step = steps.begin(); step != steps.end();) {
    const auto same = std::find_if(step + 1, steps.end(), [&](const Step& other) {
      return step->times && other.times && other.summand->parts == step->summand->parts;
    });
    if (same == steps.end()) {
      ++step;
      continue;
    }
    *same->times += *step->times;
    step = steps.erase(step);
  }
}

// The frame around the two innermost loops: a value that is known everywhere, but is reloaded as
// quickly as it is kept, occupies a register only there, and none in loops beside them.
int AddressBuilder::NearDepth() const {
  int depth = Depth();
  for (int loops = 0; depth > 0; --depth) {
    if (frames_[depth].step != 0 && ++loops == 2) return depth - 1;
  }
  return 0;
}

// `pointer` with the summand added; a part of it may go into `memory` instead, but not into the
// index if that is kept for a later step.
Operand AddressBuilder::PointerAt(Operand pointer, const Step& step, Memory& memory, bool last,
                                  bool keeps_index) {
  const AddressSummand& summand = *step.summand;
  const int depth = step.depth;
  const auto add = [&](Operand bytes) {
    if (bytes == Immediate(0)) return pointer;
    return OnEntry(depth, Make(Opcode::kAddG, pointer, bytes));
  };
  const auto displace = [&](int64_t times) {
    const Operand bytes = sums_.Coefficient(summand.parts, times);
    if (bytes.kind != Operand::kImmediate && depth > 0 && !keeps_index &&
        memory.index.kind == Operand::kNone) {
      // Few registers serve many multiples, for example for adjacent rows.
      const int64_t scale = std::min<int64_t>(times & -times, 8);
      memory.index = OnEntry(NearDepth(),
                             Make(Opcode::kMoveG, sums_.Coefficient(summand.parts, times / scale)));
      memory.scale = static_cast<int8_t>(scale);
    } else if (bytes.kind != Operand::kImmediate) {
      pointer = add(bytes);
    } else if (FitsDisplacement(bytes.value) &&
               FitsDisplacement(memory.displacement + bytes.value)) {
      memory.displacement += static_cast<int32_t>(bytes.value);
    } else {
      pointer = add(OnEntry(0, Make(Opcode::kMoveG, bytes)));
    }
  };
  const Operand coefficient = summand.coefficient;
  if (summand.computed.value.kind != Operand::kNone) {
    const auto& [number, known_at] = summand.computed;
    if (known_at >= 0) return add(OnEntry(depth, Make(Opcode::kMulG, number, coefficient)));
    return General(Opcode::kAddG, pointer, General(Opcode::kMulG, number, coefficient));
  }
  if (summand.atom.value < 0) {
    displace(1);
    return pointer;
  }
  const int64_t var = program_.pool.VarValue(summand.atom);
  if (var < 0) {
    return add(OnEntry(depth, Make(Opcode::kMulG, Index(summand.atom), coefficient)));
  }
  NESTOR_CHECK(frames_[depth].var == var, "a loop index outside its loop");
  if (step.times) {
    displace(*step.times);
    return pointer;
  }
  const Operand value = frames_[depth].value;
  if (last && memory.index.kind == Operand::kNone && coefficient.kind == Operand::kImmediate &&
      IsScale(coefficient.value)) {
    memory.index = value;
    memory.scale = static_cast<int8_t>(coefficient.value);
  } else {
    pointer = RunningPointer(depth, pointer, summand);
  }
  displace(frames_[depth].offset);
  return pointer;
}

// pointer + value * coefficient, where value is the loop's register without its offset. In a loop
// that moves, it is a register that moves along.
// It begins in the loop's preheader at pointer + begin * coefficient, and the latch adds step *
// coefficient.
Operand AddressBuilder::RunningPointer(int depth, Operand pointer, const AddressSummand& summand) {
  const Operand coefficient = summand.coefficient;
  const Operand value = frames_[depth].value;
  int moving = depth;
  while (moving > 0 && !(frames_[moving].step != 0 && frames_[moving].value == value)) --moving;
  if (moving == 0) {
    const Operand bytes = OnEntry(depth, Make(Opcode::kMulG, value, coefficient));
    return OnEntry(depth, Make(Opcode::kAddG, pointer, bytes));
  }
  const auto [known, is_new] = frames_[moving].running.try_emplace({pointer, coefficient});
  if (!is_new) return known->second;
  Frame& preheader = frames_[moving - 1];
  const Operand begin = frames_[moving].begin;
  const Operand running = known->second = list_.NewGeneral();
  Operation start = Make(Opcode::kMoveG, pointer);
  if (!(begin == Immediate(0))) {
    Operation bytes = Make(Opcode::kMulG, begin, coefficient);
    bytes.result = list_.NewGeneral();
    preheader.entry.push_back(bytes);
    start = Make(Opcode::kAddG, pointer, bytes.result);
  }
  start.result = running;
  preheader.entry.push_back(start);
  Operation move =
      Make(Opcode::kAddG, running, sums_.Coefficient(summand.parts, frames_[moving].step));
  move.result = running;
  frames_[moving].latch.push_back(move);
  return running;
}

// The coefficient of `var` in the address: x[2*v, v] has two parts, twice a row and one element.
Operand AddressBuilder::Stride(loop::TensorId tensor, const IndexList& place, int32_t var) {
  std::vector<TableSlot::Part> parts;
  const std::vector<ComputedPlace> computed(place.size(), ComputedPlace{Immediate(0)});
  AddressSummands other;
  const AddressSummands* const followed = sums_.OfFollowed(tensor, place);
  if (followed == nullptr) other = sums_.Of(tensor, place, computed);
  for (const AddressSummand& summand : followed == nullptr ? other : *followed) {
    if (summand.atom.value < 0 || program_.pool.VarValue(summand.atom) != var) continue;
    parts.insert(parts.end(), summand.parts.begin(), summand.parts.end());
  }
  return sums_.Coefficient(parts);
}

}  // namespace nestor::jit
