// A frame has three streams: what is done on entry, the body, and what a loop does
// behind each iteration. The bodies of all open frames lie behind each other in the list.
// A value goes to the entry of the outermost frame in which it can be computed; operations
// are pushed there directly, long before the frame closes and puts them before its body.
//
// The address of x[e1, e2, ..] is base + Σ coefficient * atom, one summand per loop
// index in the place (see Polynomial). Summands are added from the outermost frame to
// the innermost, so that each loop adds only what depends on it:
//
//   x[i, j] of f32, inside loops i, j:   p_i = base + i * stride   (runs with i)
//                                        [p_i + j * 4]             (scaled index)
#include "jit/codegen/function_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

bool FitsDisplacement(int64_t v) {
  return v >= std::numeric_limits<int32_t>::min() / 2 && v <= std::numeric_limits<int32_t>::max() / 2;
}

Operand Immediate(int64_t v) { return Operand::Immediate(v); }

bool IsScale(int64_t v) { return v == 1 || v == 2 || v == 4 || v == 8; }

Opcode GeneralOpcode(IndexKind kind) {
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

Condition ConditionOf(IndexKind kind) {
  switch (kind) {
    case IndexKind::kLt: return Condition::kLess;
    case IndexKind::kLe: return Condition::kLessEqual;
    case IndexKind::kNe: return Condition::kNotEqual;
    default: return Condition::kEqual;
  }
}

// Takes all out, and keeps the memory of a short list for the next frame.
void Empty(std::vector<Operation>& operations) {
  constexpr size_t kShort = 256;
  if (operations.capacity() <= kShort) operations.clear();
  else operations = std::vector<Operation>();
}

}  // namespace

FunctionBuilder::FunctionBuilder(loop::Program& program, Table& table, const std::vector<TensorPlace>& places,
                                 Isa isa)
    : program_(program), table_(table), places_(places), list_(isa), frames_(1) {}

OperationList FunctionBuilder::Finish() {
  NESTOR_CHECK(frames_.size() == 1, "an open frame");
  PutEntryBeforeBody(frames_[0]);
  return std::move(list_);
}

// ---- Frames

void FunctionBuilder::Frame::Clear() {
  for (std::vector<Operation>* operations : {&entry, &latch}) Empty(*operations);
  indices.clear();
  computed.clear();
  running.clear();
  var = -1;
  value = begin = {};
  offset = step = 0;
}

// The list is the bodies of all frames, so far.
void FunctionBuilder::OpenRegion() {
  if (closed_.empty()) closed_.emplace_back();
  frames_.push_back(std::move(closed_.back()));
  frames_.back().begin_of_body = list_.operations.size();
  closed_.pop_back();
}

void FunctionBuilder::PutEntryBeforeBody(const Frame& frame) {
  std::vector<Operation>& operations = list_.operations;
  operations.insert(operations.begin() + static_cast<int64_t>(frame.begin_of_body), frame.entry.begin(), frame.entry.end());
}

void FunctionBuilder::OpenIteration(int32_t var, Operand value, int64_t offset, int64_t step, Operand begin) {
  OpenRegion();
  Frame& frame = frames_.back();
  frame.var = var;
  frame.value = value;
  frame.offset = offset;
  frame.step = step;
  frame.begin = begin;
}

void FunctionBuilder::CloseRegion() {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  NESTOR_CHECK(frame.latch.empty(), "a region does not run");
  PutEntryBeforeBody(frame);
  frame.Clear();
  closed_.push_back(std::move(frame));
}

void FunctionBuilder::CloseIteration(Operand end) {
  Frame& frame = frames_.back();
  if (frame.step == 0) return CloseRegion();
  const int label = list_.NewLabel();
  Operation begin{Opcode::kLoopBegin};
  begin.immediate = label;
  frame.entry.insert(frame.entry.begin(), begin);
  std::vector<Operation>& body = list_.operations;
  body.insert(body.end(), frame.latch.begin(), frame.latch.end());
  frame.latch.clear();
  Operation next = Make(Opcode::kAddG, frame.value, Immediate(frame.step), 0);
  next.result = frame.value;
  body.push_back(next);
  Operation back = Make(Opcode::kLoopEnd, frame.value, end, label);
  back.condition = Condition::kLess;
  body.push_back(back);
  CloseRegion();
}

// ---- Operations

Operation FunctionBuilder::Make(Opcode opcode, Operand a, Operand b, int64_t immediate) const {
  Operation operation{opcode};
  operation.lane = Lane::kI64;
  operation.operands[0] = a;
  operation.operands[1] = b;
  operation.immediate = immediate;
  return operation;
}

Operand FunctionBuilder::General(Opcode opcode, Operand a, Operand b, int64_t immediate) {
  Operation operation = Make(opcode, a, b, immediate);
  operation.result = list_.NewGeneral();
  list_.operations.push_back(operation);
  return operation.result;
}

void FunctionBuilder::Label(int label) { list_.operations.push_back(Make(Opcode::kLabel, {}, {}, label)); }
void FunctionBuilder::Jump(int label) { list_.operations.push_back(Make(Opcode::kJump, {}, {}, label)); }

void FunctionBuilder::Branch(Condition condition, Operand a, Operand b, int label) {
  Operation operation = Make(Opcode::kBranch, a, b, label);
  operation.condition = condition;
  list_.operations.push_back(operation);
}

Operand FunctionBuilder::OnEntry(int depth, Operation operation) {
  Frame& frame = frames_[depth];
  const auto [known, is_new] = frame.computed.try_emplace(operation);
  if (!is_new) return known->second;
  const RegisterClass result_class = Info(operation.opcode).result;
  operation.result = result_class == RegisterClass::kMask ? list_.NewMask() : list_.NewRegister(result_class);
  frame.entry.push_back(operation);
  return known->second = operation.result;
}

void FunctionBuilder::EmitOnEntry(int depth, absl::FunctionRef<void()> emit) {
  std::vector<Operation> around = std::move(list_.operations);
  list_.operations.clear();
  emit();
  std::vector<Operation>& entry = frames_[depth].entry;
  entry.insert(entry.end(), list_.operations.begin(), list_.operations.end());
  list_.operations = std::move(around);
}

// ---- Index expressions

std::pair<Operand, int64_t> FunctionBuilder::Var(int64_t var) const {
  for (size_t depth = frames_.size(); depth-- > 0;) {
    if (frames_[depth].var == var) return {frames_[depth].value, frames_[depth].offset};
  }
  NESTOR_CHECK(false, "a loop index outside its loop");
  return {};
}

int FunctionBuilder::FrameOf(IndexId e) const {
  if (!program_.pool.HasVar(e)) return 0;
  const int64_t own = program_.pool.VarValue(e);  // as most are
  const auto knows = [&](const Frame& frame) {
    return own >= 0 ? frame.var == own : frame.var >= 0 && HoldsVar(program_.pool, e, frame.var);
  };
  int depth = Depth();
  while (depth > 0 && !knows(frames_[depth])) --depth;
  return depth;
}

Operand FunctionBuilder::Index(IndexId e) {
  if (const auto value = program_.pool.ConstValue(e)) return Immediate(*value);
  if (!program_.pool.HasVar(e)) {
    TableSlot slot{TableSlot::kIndex};
    slot.parts.push_back({1, e, {}, 0});
    return Operand::Table(table_.Slot(slot));
  }
  const int depth = FrameOf(e);
  const auto known = frames_[depth].indices.find(e);
  if (known != frames_[depth].indices.end()) return known->second;
  const Operand result = Compute(e);
  frames_[depth].indices.emplace(e, result);
  return result;
}

Operand FunctionBuilder::Compute(IndexId e) {
  const IndexNode node = program_.pool[e];
  const int depth = FrameOf(e);
  if (node.kind == IndexKind::kVar) {
    const auto [value, offset] = Var(node.value);
    if (value.kind == Operand::kImmediate) return Immediate(value.value + offset);
    return offset == 0 ? value : OnEntry(depth, Make(Opcode::kAddG, value, Immediate(offset), 0));
  }
  if (node.kind == IndexKind::kNot) {
    return OnEntry(depth, Make(Opcode::kCompareG, Index(node.args[0]), Immediate(0),
                               static_cast<int64_t>(Condition::kEqual)));
  }
  const Operand a = Index(node.args[0]);
  Operand b = Index(node.args[1]);
  const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
  if (divides && b.kind == Operand::kTable) {
    // Computed even where the loop inside does not run: never a division by zero.
    TableSlot slot{TableSlot::kDivisor};
    slot.parts.push_back({1, node.args[1], {}, 0});
    b = Operand::Table(table_.Slot(slot));
  }
  if (divides && b == Immediate(0)) b = Immediate(1);
  if (a.kind == Operand::kImmediate && b.kind == Operand::kImmediate && !IsCondition(node.kind)) {
    if (const auto value = CheckedApply(node.kind, a.value, b.value)) return Immediate(*value);
  }
  const int64_t condition = IsCondition(node.kind) ? static_cast<int64_t>(ConditionOf(node.kind)) : 0;
  return OnEntry(depth, Make(GeneralOpcode(node.kind), a, b, condition));
}

Operand FunctionBuilder::Both(Operand a, Operand b) {
  if (a.kind == Operand::kNone) return b;
  if (b.kind == Operand::kNone) return a;
  return General(Opcode::kAndG, a, b);
}

CheckedIndex FunctionBuilder::Checked(IndexId e) {
  const IndexNode node = program_.pool[e];
  if (program_.pool.IsAffine(e) && !program_.pool.HasLoad(e)) return {Index(e), DividesByNonzero(e)};
  if (node.kind == IndexKind::kLoad) return CheckedLoad(node);
  return CheckedArithmetic(node);
}

// 1 where no divisor in an affine expression is 0: all else in it has a value. Divisors
// are symbols' and numbers, so this is known before the first loop.
Operand FunctionBuilder::DividesByNonzero(IndexId e) {
  Operand valid;
  std::vector<IndexId> divisors;
  VisitIndex(program_.pool, e, [&](IndexId, const IndexNode& node) {
    const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
    if (!divides) return;
    const auto number = program_.pool.ConstValue(node.args[1]);
    if (!number) divisors.push_back(node.args[1]);
    else if (*number == 0) valid = Immediate(0);
  });
  for (IndexId divisor : divisors) {
    valid = Both(valid, OnEntry(0, Make(Opcode::kCompareG, Index(divisor), Immediate(0),
                                        static_cast<int64_t>(Condition::kNotEqual))));
  }
  return valid;
}

CheckedIndex FunctionBuilder::CheckedLoad(const IndexNode& node) {
  const loop::TensorId tensor{static_cast<int32_t>(node.value)};
  const TensorPlace& place = places_[tensor.value];
  const bool is_position = program_[tensor].storage == loop::Storage::kAccumulator && IsArg(program_[tensor].op);
  const DType type = loop::ReadType(program_[tensor]);
  if (place.kind == TensorPlace::kRegister) {
    Operation lane = Make(Opcode::kLaneG, place.scalar, {}, 0);
    lane.lane = LaneOf(type);
    lane.type = type;
    lane.result = list_.NewGeneral();
    list_.operations.push_back(lane);
    return {lane.result, IsIndex(type, lane.result)};
  }
  std::vector<ComputedPlace> computed(node.args.size());
  Operand valid;
  for (size_t axis = 0; axis < node.args.size(); ++axis) {
    const CheckedIndex e = Checked(node.args[axis]);
    valid = Both(valid, InRange(e, program_[tensor].shape[axis]));
    computed[axis].value = e.value;
  }
  const int outside = list_.NewLabel();
  const Operand result = General(Opcode::kMoveG, Immediate(0));
  const bool checks = !NESTOR_MUTANT("gather_unchecked");
  if (valid.kind != Operand::kNone && checks) Branch(Condition::kEqual, valid, Immediate(0), outside);
  Operation load = Make(Opcode::kLoadG, {}, {}, 0);
  load.memory = Address(tensor, {node.args.begin(), node.args.end()}, computed);
  if (is_position) {
    TableSlot slot{TableSlot::kPositions, tensor};
    load.memory.base = General(Opcode::kAddG, load.memory.base, Operand::Table(table_.Slot(slot)));
  }
  load.type = type;
  load.result = result;
  list_.operations.push_back(load);
  Label(outside);
  return {result, Both(valid, IsIndex(type, result))};
}

// 0 where the number is no i64: a u64 from 2^63 on. None where every number is one.
Operand FunctionBuilder::IsIndex(DType type, Operand number) {
  if (WidensToI64(type)) return {};
  return General(Opcode::kCompareG, number, Immediate(0), static_cast<int64_t>(Condition::kGreaterEqual));
}

// Both operands are evaluated; where one has no value the result has none.
CheckedIndex FunctionBuilder::CheckedArithmetic(const IndexNode& node) {
  const CheckedIndex a = Checked(node.args[0]);
  if (node.kind == IndexKind::kNot) {
    return {General(Opcode::kCompareG, a.value, Immediate(0), static_cast<int64_t>(Condition::kEqual)),
            a.valid};
  }
  const CheckedIndex b = Checked(node.args[1]);
  Operand valid = Both(a.valid, b.valid);
  Operand divisor = b.value;
  const auto compare = [&](Condition condition, Operand x, Operand y) {
    return General(Opcode::kCompareG, x, y, static_cast<int64_t>(condition));
  };
  const auto is_false = [&](Operand x) { return compare(Condition::kEqual, x, Immediate(0)); };
  switch (node.kind) {
    case IndexKind::kAdd: valid = Both(valid, is_false(General(Opcode::kAddOverflowsG, a.value, b.value))); break;
    case IndexKind::kMul: valid = Both(valid, is_false(General(Opcode::kMulOverflowsG, a.value, b.value))); break;
    case IndexKind::kDiv:
    case IndexKind::kMod: {
      const Operand zero = is_false(b.value);
      valid = Both(valid, is_false(zero));
      divisor = General(Opcode::kAddG, b.value, zero);
      if (node.kind == IndexKind::kMod) break;
      const Operand least = compare(Condition::kEqual, a.value,
                                    Immediate(std::numeric_limits<int64_t>::min()));
      const Operand minus_one = compare(Condition::kEqual, b.value, Immediate(-1));
      valid = Both(valid, is_false(General(Opcode::kAndG, least, minus_one)));
      break;
    }
    default: break;
  }
  const Opcode opcode = GeneralOpcode(node.kind);
  return {General(opcode, a.value, divisor, static_cast<int64_t>(ConditionOf(node.kind))), valid};
}

Operand FunctionBuilder::ConditionValue(IndexId e) {
  const CheckedIndex condition = Checked(e);
  return Both(condition.valid, condition.value);
}

Operand FunctionBuilder::InRange(const CheckedIndex& e, IndexId extent) {
  const auto compare = [&](Condition condition, Operand y) {
    return General(Opcode::kCompareG, e.value, y, static_cast<int64_t>(condition));
  };
  Operand inside = compare(Condition::kGreaterEqual, Immediate(0));
  inside = General(Opcode::kAndG, inside, compare(Condition::kLess, Index(extent)));
  return Both(e.valid, inside);
}

// ---- Addresses

// The bytes from one element of a tensor that lies compactly to the next along the axis;
// nullopt: extents behind it are symbols.
absl::optional<int64_t> FunctionBuilder::CompactStride(const loop::TensorInfo& tensor, int axis) const {
  int64_t bytes = ByteSize(tensor.type);
  for (size_t i = static_cast<size_t>(axis) + 1; i < tensor.shape.size(); ++i) {
    const absl::optional<int64_t> extent = program_.pool.ConstValue(tensor.shape[i]);
    if (!extent || __builtin_mul_overflow(bytes, *extent, &bytes)) return absl::nullopt;
  }
  return bytes;
}

// The stride of an axis: a number of bytes where it is known, else a slot.
TableSlot::Part FunctionBuilder::StridePart(loop::TensorId tensor, int axis) const {
  const loop::TensorInfo& info = program_[tensor];
  const AxisLayout layout = places_[tensor.value].layout[axis];
  if (layout == AxisLayout::kZero) return {0, {}, {}, 0};
  if (layout == AxisLayout::kUnit) return {ByteSize(info.type), {}, {}, 0};
  const auto bytes = layout == AxisLayout::kCompact ? CompactStride(info, axis) : absl::nullopt;
  if (bytes) return {*bytes, {}, {}, 0};
  return {1, {}, tensor, axis};
}

void FunctionBuilder::AddPart(Summands& summands, IndexId atom, const ComputedPlace& computed, TableSlot::Part part) {
  if (part.factor == 0) return;
  const auto is_number = [](const TableSlot::Part& p) { return p.symbols.value < 0 && p.tensor.value < 0; };
  const bool is_fixed = atom.value < 0 && computed.value.kind == Operand::kNone;
  for (Summand& summand : summands) {
    if (summand.atom != atom || !(summand.computed.value == computed.value)) continue;
    // What no index moves is a displacement, and a pointer apart from it: so the places of a
    // window's row have one, though the distance of its rows is known only at run time.
    if (is_fixed && is_number(part) != is_number(summand.parts[0])) continue;
    summand.parts.push_back(part);
    return;
  }
  summands.push_back({atom, computed, {part}});
}

const Polynomial* FunctionBuilder::PolynomialOf(IndexId e) {
  const auto [known, is_new] = polynomials_.try_emplace(e);
  if (is_new && program_.pool.IsAffine(e) && !program_.pool.HasLoad(e)) {
    known->second = Polynomial::Of(program_.pool, e);
  }
  return known->second ? &*known->second : nullptr;
}

// Addresses are computed modulo 2^64: what is not in range is not accessed.
int64_t FunctionBuilder::WrappingProduct(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

FunctionBuilder::Summands* FunctionBuilder::FollowedSummands(loop::TensorId tensor, const IndexList& place) {
  const auto [known, is_new] = followed_.try_emplace({tensor, place});
  if (is_new && absl::c_all_of(place, [&](IndexId e) { return IsFollowed(e); })) {
    known->second = SummandsOf(tensor, place, {});
  }
  return known->second ? &*known->second : nullptr;
}

FunctionBuilder::Summands FunctionBuilder::SummandsOf(loop::TensorId tensor, const IndexList& place,
                                                      absl::Span<const ComputedPlace> computed) {
  Summands summands;
  for (size_t axis = 0; axis < place.size(); ++axis) {
    const TableSlot::Part stride = StridePart(tensor, static_cast<int>(axis));
    const IndexId e = place[axis];
    const Polynomial* const polynomial = PolynomialOf(e);
    if (polynomial == nullptr) {
      AddPart(summands, {}, computed[axis], stride);
      continue;
    }
    for (const Polynomial::Term& term : polynomial->terms()) {
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

Operand FunctionBuilder::Coefficient(const std::vector<TableSlot::Part>& parts, int64_t times) {
  TableSlot slot{TableSlot::kCoefficient};
  if (times == 0) return Immediate(0);
  int64_t constant = 0;
  for (TableSlot::Part part : parts) {
    part.factor = WrappingProduct(part.factor, times);
    if (part.symbols.value < 0 && part.tensor.value < 0) {
      constant = static_cast<int64_t>(static_cast<uint64_t>(constant) + static_cast<uint64_t>(part.factor));
    } else {
      slot.parts.push_back(part);
    }
  }
  if (slot.parts.empty()) return Immediate(constant);
  if (constant != 0) slot.parts.push_back({constant, {}, {}, 0});
  return Operand::Table(table_.Slot(slot));
}

Operand FunctionBuilder::BaseOf(loop::TensorId tensor) {
  if (places_[tensor.value].kind == TensorPlace::kTable) {
    return OnEntry(0, Make(Opcode::kMoveG, Operand::Table(table_.Slot({TableSlot::kAddress, tensor})), {}, 0));
  }
  const Operand memory = OnEntry(0, Make(Opcode::kParameterG, {}, {}, 2));
  return OnEntry(0, Make(Opcode::kAddG, memory, Operand::Table(table_.Slot({TableSlot::kOffset, tensor})), 0));
}

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
  std::vector<std::pair<std::pair<int, bool>, size_t>> sorted;  // stable, as the number comes last
  for (size_t i = 0; i < summands.size(); ++i) sorted.push_back({order(summands[i]), i});
  std::sort(sorted.begin(), sorted.end());
  Memory memory;
  Operand pointer = BaseOf(tensor);
  for (size_t i = 0; i < sorted.size(); ++i) {
    pointer = PointerAt(pointer, summands[sorted[i].second], memory, i + 1 == sorted.size());
  }
  memory.base = pointer;
  return memory;
}

// `pointer` with the summand added; a part of it may go into `memory` instead.
Operand FunctionBuilder::PointerAt(Operand pointer, Summand& summand, Memory& memory, bool last) {
  const auto add = [&](int depth, Operand bytes) {
    if (bytes == Immediate(0)) return pointer;
    return OnEntry(depth, Make(Opcode::kAddG, pointer, bytes, 0));
  };
  const auto displace = [&](int depth, int64_t times) {
    const Operand bytes = Coefficient(summand.parts, times);
    if (bytes.kind != Operand::kImmediate && depth > 0 && memory.index.kind == Operand::kNone) {
      // Few registers serve many multiples: of rows side by side, say.
      const int64_t scale = std::min<int64_t>(times & -times, 8);
      memory.index = OnEntry(0, Make(Opcode::kMoveG, Coefficient(summand.parts, times / scale), {}, 0));
      memory.scale = static_cast<int8_t>(scale);
    } else if (bytes.kind != Operand::kImmediate) {
      pointer = add(depth, bytes);
    } else if (FitsDisplacement(bytes.value) && FitsDisplacement(memory.displacement + bytes.value)) {
      memory.displacement += static_cast<int32_t>(bytes.value);
    } else {
      pointer = add(depth, OnEntry(0, Make(Opcode::kMoveG, bytes, {}, 0)));
    }
  };
  if (summand.coefficient.kind == Operand::kNone) summand.coefficient = Coefficient(summand.parts);
  const Operand coefficient = summand.coefficient;
  if (summand.computed.value.kind != Operand::kNone) {
    const auto& [number, depth] = summand.computed;
    if (depth >= 0) return add(depth, OnEntry(depth, Make(Opcode::kMulG, number, coefficient, 0)));
    return General(Opcode::kAddG, pointer, General(Opcode::kMulG, number, coefficient));
  }
  if (summand.atom.value < 0) {
    displace(0, 1);
    return pointer;
  }
  const int depth = FrameOf(summand.atom);
  const int64_t var = program_.pool.VarValue(summand.atom);
  if (var < 0) {
    return add(depth, OnEntry(depth, Make(Opcode::kMulG, Index(summand.atom), coefficient, 0)));
  }
  const auto [value, offset] = Var(var);
  if (value.kind == Operand::kImmediate) {
    displace(depth, value.value + offset);
    return pointer;
  }
  if (last && memory.index.kind == Operand::kNone && coefficient.kind == Operand::kImmediate &&
      IsScale(coefficient.value)) {
    memory.index = value;
    memory.scale = static_cast<int8_t>(coefficient.value);
  } else {
    pointer = RunningPointer(depth, pointer, summand.parts);
  }
  displace(depth, offset);
  return pointer;
}

// pointer + value * coefficient, where value is the loop's register without its offset.
// In a loop that moves, a register that moves along.
Operand FunctionBuilder::RunningPointer(int depth, Operand pointer, const std::vector<TableSlot::Part>& parts) {
  const Operand coefficient = Coefficient(parts);
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
  Operation move = Make(Opcode::kAddG, running, Coefficient(parts, frames_[moving].step), 0);
  move.result = running;
  frames_[moving].latch.push_back(move);
  return running;
}

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
