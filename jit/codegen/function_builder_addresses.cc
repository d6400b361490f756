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
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "jit/codegen/function_builder.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

bool FitsDisplacement(int64_t v) {
  return v >= std::numeric_limits<int32_t>::min() / 2 &&
         v <= std::numeric_limits<int32_t>::max() / 2;
}

bool IsScale(int64_t v) { return v == 1 || v == 2 || v == 4 || v == 8; }

}  // namespace

// The bytes from one element of a tensor that lies compactly to the next along the axis; nullopt:
// some later extents are symbols.
absl::optional<int64_t> FunctionBuilder::CompactStride(const loop::TensorInfo& tensor,
                                                       int axis) const {
  int64_t bytes = ByteSize(tensor.type);
  for (size_t i = static_cast<size_t>(axis) + 1; i < tensor.shape.size(); ++i) {
    const absl::optional<int64_t> extent = program_.pool.ConstValue(tensor.shape[i]);
    if (!extent || __builtin_mul_overflow(bytes, *extent, &bytes)) return absl::nullopt;
  }
  return bytes;
}

// The stride of an axis: a number of bytes if it is known, else a slot.
TableSlot::Part FunctionBuilder::StridePart(loop::TensorId tensor, int axis) const {
  const loop::TensorInfo& info = program_[tensor];
  const AxisLayout layout = places_[tensor.value].layout[axis];
  if (layout == AxisLayout::kZero) return {0, {}, {}, 0};
  if (layout == AxisLayout::kUnit) return {ByteSize(info.type), {}, {}, 0};
  const auto bytes = layout == AxisLayout::kCompact ? CompactStride(info, axis) : absl::nullopt;
  if (bytes) return {*bytes, {}, {}, 0};
  return {1, {}, tensor, axis};
}

// Adds a part to the summand of the same atom or computed number; there is one of each.
void FunctionBuilder::AddPart(Summands& summands, IndexId atom, const ComputedPlace& computed,
                              TableSlot::Part part) {
  if (part.factor == 0) return;
  const auto is_number = [](const TableSlot::Part& p) {
    return p.symbols.value < 0 && p.tensor.value < 0;
  };
  const bool is_fixed = atom.value < 0 && computed.value.kind == Operand::kNone;
  for (Summand& summand : summands) {
    if (summand.atom != atom || !(summand.computed.value == computed.value)) continue;
    // Constant summands become a displacement, separate from those known only at run time, which go
    // into the pointer: so the places in a window's row share a pointer, though the distance of its
    // rows may be unknown.
    if (is_fixed && is_number(part) != is_number(summand.parts[0])) continue;
    summand.parts.push_back(part);
    return;
  }
  summands.push_back({atom, computed, {part}});
}

const AtomSum::OrderedTerms* FunctionBuilder::TermsOf(IndexId e) {
  const auto [known, is_new] = terms_.try_emplace(e);
  if (is_new) {
    const AtomSum sum = AtomSum::Of(program_.pool, e);
    if (sum.exact()) known->second = sum.InOrder(program_.pool);
  }
  return known->second ? &*known->second : nullptr;
}

// Addresses are computed modulo 2^64: an address that is not in range is not accessed.
int64_t FunctionBuilder::WrappingProduct(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Asked for each access; places are split into summands once.
FunctionBuilder::Summands* FunctionBuilder::FollowedSummands(loop::TensorId tensor,
                                                             const IndexList& place) {
  const auto [known, is_new] = followed_.try_emplace({tensor, place});
  if (is_new && absl::c_all_of(place, [&](IndexId e) { return IsFollowed(e); })) {
    known->second = SummandsOf(tensor, place, {});
  }
  return known->second ? &*known->second : nullptr;
}

// Each term of each axis is (factor and symbols, for the table) * (index or other value of a loop),
// times the axis' stride. x[2*i + n*j] of f32 gives 8 * i and 4n * j.
FunctionBuilder::Summands FunctionBuilder::SummandsOf(loop::TensorId tensor, const IndexList& place,
                                                      absl::Span<const ComputedPlace> computed) {
  Summands summands;
  for (size_t axis = 0; axis < place.size(); ++axis) {
    const TableSlot::Part stride = StridePart(tensor, static_cast<int>(axis));
    const IndexId e = place[axis];
    const AtomSum::OrderedTerms* const terms = TermsOf(e);
    if (terms == nullptr) {
      AddPart(summands, {}, computed[axis], stride);
      continue;
    }
    for (const AtomSum::Term& term : *terms) {
      TableSlot::Part part = stride;
      part.factor = WrappingProduct(part.factor, term.coefficient);
      IndexId atom;
      for (IndexId factor : term.atoms) {
        if (program_.pool.HasVar(factor)) {
          atom = factor;
        } else {
          part.symbols = part.symbols.value < 0 ? factor : program_.pool.Mul(part.symbols, factor);
        }
      }
      AddPart(summands, atom, {}, part);
    }
  }
  return summands;
}

// Known parts are folded to one number; those that depend on sizes are summed up when the table is
// filled, not by the code.
Operand FunctionBuilder::Coefficient(const std::vector<TableSlot::Part>& parts, int64_t times) {
  if (times == 0) return Immediate(0);
  TableSlot slot{TableSlot::kCoefficient};
  int64_t constant = 0;
  for (TableSlot::Part part : parts) {
    part.factor = WrappingProduct(part.factor, times);
    if (part.symbols.value < 0 && part.tensor.value < 0) {
      constant = static_cast<int64_t>(static_cast<uint64_t>(constant) +
                                      static_cast<uint64_t>(part.factor));
    } else {
      slot.parts.push_back(part);
    }
  }
  if (slot.parts.empty()) return Immediate(constant);
  if (constant != 0) slot.parts.push_back({constant, {}, {}, 0});
  return Operand::Table(table_.Slot(slot));
}

// An address of the call, or of the worker's own memory plus an offset that all workers share.
Operand FunctionBuilder::BaseOf(loop::TensorId tensor) {
  if (places_[tensor.value].kind == TensorPlace::kTable) {
    return OnEntry(
        0, Make(Opcode::kMoveG, Operand::Table(table_.Slot({TableSlot::kAddress, tensor})), {}, 0));
  }
  const Operand memory = OnEntry(0, Make(Opcode::kParameterG, {}, {}, 2));
  return OnEntry(
      0, Make(Opcode::kAddG, memory, Operand::Table(table_.Slot({TableSlot::kOffset, tensor})), 0));
}

// From the outside in: pointers of outer loops are shared by all places that go on differently
// inside.
Memory FunctionBuilder::Address(loop::TensorId tensor, const IndexList& place,
                                absl::Span<const ComputedPlace> computed) {
  Summands other;
  Summands* const followed = FollowedSummands(tensor, place);
  if (followed == nullptr) other = SummandsOf(tensor, place, computed);
  Summands& summands = followed == nullptr ? other : *followed;
  // A pointer that runs with a loop starts before it, so within a frame the loop's own
  // index comes first.
  const auto order = [&](const Summand& s) {
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
  Memory memory;
  Operand pointer = BaseOf(tensor);
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto& [at, number] = sorted[i];
    pointer = PointerAt(pointer, summands[number], at.first, memory, i + 1 == sorted.size());
  }
  memory.base = pointer;
  return memory;
}

// The frame around the two innermost loops: a value that is known everywhere, but is reloaded as
// quickly as it is kept, occupies a register only there, and none in loops beside them.
int FunctionBuilder::NearDepth() const {
  int depth = Depth();
  for (int loops = 0; depth > 0; --depth) {
    if (frames_[depth].step != 0 && ++loops == 2) return depth - 1;
  }
  return 0;
}

// `pointer` with the summand added; a part of it may go into `memory` instead.
Operand FunctionBuilder::PointerAt(Operand pointer, Summand& summand, int depth, Memory& memory,
                                   bool last) {
  const auto add = [&](Operand bytes) {
    if (bytes == Immediate(0)) return pointer;
    return OnEntry(depth, Make(Opcode::kAddG, pointer, bytes, 0));
  };
  const auto displace = [&](int64_t times) {
    const Operand bytes = Coefficient(summand.parts, times);
    if (bytes.kind != Operand::kImmediate && depth > 0 && memory.index.kind == Operand::kNone) {
      // Few registers serve many multiples, for example for adjacent rows.
      const int64_t scale = std::min<int64_t>(times & -times, 8);
      memory.index = OnEntry(
          NearDepth(), Make(Opcode::kMoveG, Coefficient(summand.parts, times / scale), {}, 0));
      memory.scale = static_cast<int8_t>(scale);
    } else if (bytes.kind != Operand::kImmediate) {
      pointer = add(bytes);
    } else if (FitsDisplacement(bytes.value) &&
               FitsDisplacement(memory.displacement + bytes.value)) {
      memory.displacement += static_cast<int32_t>(bytes.value);
    } else {
      pointer = add(OnEntry(0, Make(Opcode::kMoveG, bytes, {}, 0)));
    }
  };
  if (summand.coefficient.kind == Operand::kNone) summand.coefficient = Coefficient(summand.parts);
  const Operand coefficient = summand.coefficient;
  if (summand.computed.value.kind != Operand::kNone) {
    const auto& [number, known_at] = summand.computed;
    if (known_at >= 0) return add(OnEntry(depth, Make(Opcode::kMulG, number, coefficient, 0)));
    return General(Opcode::kAddG, pointer, General(Opcode::kMulG, number, coefficient));
  }
  if (summand.atom.value < 0) {
    displace(1);
    return pointer;
  }
  const int64_t var = program_.pool.VarValue(summand.atom);
  if (var < 0) {
    return add(OnEntry(depth, Make(Opcode::kMulG, Index(summand.atom), coefficient, 0)));
  }
  NESTOR_CHECK(frames_[depth].var == var, "a loop index outside its loop");
  const Operand value = frames_[depth].value;
  const int64_t offset = frames_[depth].offset;
  if (value.kind == Operand::kImmediate) {
    displace(value.value + offset);
    return pointer;
  }
  if (last && memory.index.kind == Operand::kNone && coefficient.kind == Operand::kImmediate &&
      IsScale(coefficient.value)) {
    memory.index = value;
    memory.scale = static_cast<int8_t>(coefficient.value);
  } else {
    pointer = RunningPointer(depth, pointer, summand);
  }
  displace(offset);
  return pointer;
}

// pointer + value * coefficient, where value is the loop's register without its offset. In a loop
// that moves, it is a register that moves along.
// It begins in the loop's preheader at pointer + begin * coefficient, and the latch adds step *
// coefficient.
Operand FunctionBuilder::RunningPointer(int depth, Operand pointer, const Summand& summand) {
  const Operand coefficient = summand.coefficient;
  const Operand value = frames_[depth].value;
  int moving = depth;
  while (moving > 0 && !(frames_[moving].step != 0 && frames_[moving].value == value)) --moving;
  if (moving == 0) {
    const Operand bytes = OnEntry(depth, Make(Opcode::kMulG, value, coefficient, 0));
    return OnEntry(depth, Make(Opcode::kAddG, pointer, bytes, 0));
  }
  const auto [known, is_new] = frames_[moving].running.try_emplace({pointer, coefficient});
  if (!is_new) return known->second;
  Frame& preheader = frames_[moving - 1];
  const Operand begin = frames_[moving].begin;
  const Operand running = known->second = list_.NewGeneral();
  Operation start = Make(Opcode::kMoveG, pointer, {}, 0);
  if (!(begin == Immediate(0))) {
    Operation bytes = Make(Opcode::kMulG, begin, coefficient, 0);
    bytes.result = list_.NewGeneral();
    preheader.entry.push_back(bytes);
    start = Make(Opcode::kAddG, pointer, bytes.result, 0);
  }
  start.result = running;
  preheader.entry.push_back(start);
  Operation move =
      Make(Opcode::kAddG, running, Coefficient(summand.parts, frames_[moving].step), 0);
  move.result = running;
  frames_[moving].latch.push_back(move);
  return running;
}

// The coefficient of `var` in the address: x[2*v, v] has two parts, twice a row and one element.
Operand FunctionBuilder::Stride(loop::TensorId tensor, const IndexList& place, int32_t var) {
  std::vector<TableSlot::Part> parts;
  const std::vector<ComputedPlace> computed(place.size(), ComputedPlace{Immediate(0)});
  Summands other;
  const Summands* const followed = FollowedSummands(tensor, place);
  if (followed == nullptr) other = SummandsOf(tensor, place, computed);
  for (const Summand& summand : followed == nullptr ? other : *followed) {
    if (summand.atom.value < 0 || program_.pool.VarValue(summand.atom) != var) continue;
    parts.insert(parts.end(), summand.parts.begin(), summand.parts.end());
  }
  return Coefficient(parts);
}

}  // namespace nestor::jit
