// Programs, steps, scopes and loops. A vector loop becomes
//
//     v = begin
//     while (v + lanes * unroll <= end) { group at v; group at v + lanes; ..; v += .. }
//     while (v + lanes <= end)          { group at v; v += lanes }
//     if (v < end)                      { group at v, of the first end - v lanes }
//
// where a group is the loop's body on vectors. A loop that walks a register tile has a
// copy of its body for each register of the tile instead, and a short one of fixed length
// for each vector.
#include "jit/codegen/translate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "jit/codegen/translator.h"
#include "jit/target/lanes.h"
#include "loop_ir/constant_blocks.h"
#include "loop_ir/dependence.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {

using loop::Program;
using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;

namespace {

// The most vectors of one loop that run side by side.
constexpr int kUnroll = 2;

const loop::Loop* ParallelLoop(const loop::Block& block) {
  if (block.body.size() != 1) return nullptr;
  const auto* loop = block.body[0].As<loop::Loop>();
  return loop != nullptr && loop->attributes.parallel ? loop : nullptr;
}

Operand Immediate(int64_t v) { return Operand::Immediate(v); }

// What an accumulator starts at.
Scalar StartOf(const TensorInfo& info) {
  if (NESTOR_MUTANT("max_starts_at_zero") && info.op == ReduceOp::kMax) return Scalar::Zero(info.type);
  if (NESTOR_MUTANT("max_starts_at_lowest_finite") && info.op == ReduceOp::kMax && IsFloat(info.type)) {
    return Scalar::Float(info.type, info.type == DType::kF16 ? -65504.0 : -3.3895313892515355e38);
  }
  return Identity(info.op, info.type);
}

// Makes groups of independent operations, each straight on from its start to the next
// one's, take turns: a processor looks only so far ahead, and within one group each
// operation mostly waits for the one before.
void Interleave(std::vector<Operation>& operations, absl::Span<const size_t> starts) {
  const size_t first = starts[0];
  if (starts.size() < 2 || std::any_of(operations.begin() + static_cast<int64_t>(first), operations.end(), IsControl)) {
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

}  // namespace

Translator::Translator(Program& program, const TranslateOptions& options, const StepSink* sink)
    : program_(program),
      options_(options),
      sink_(sink),
      registers_(program.tensors.size()) {}

// Parallel loops have a step each; what lies between shares one, but for what is constant.
std::vector<int> Translator::StepsOfBlocks(const std::vector<bool>& is_constant) const {
  std::vector<int> steps;
  int step = 0;
  bool was_parallel = false;
  for (size_t i = 0; i < program_.blocks.size(); ++i) {
    const bool parallel = ParallelLoop(program_.blocks[i]) != nullptr;
    if (i > 0 && (parallel || was_parallel || is_constant[i] != is_constant[i - 1])) ++step;
    steps.push_back(step);
    was_parallel = parallel;
  }
  return steps;
}

absl::Status Translator::CheckLanes() const {
  absl::Status status;
  VisitItems(program_, [&](const loop::Item& item) {
    const auto* loop = item.As<loop::Loop>();
    const int lanes = loop == nullptr ? 0 : loop->attributes.lanes;
    if (lanes == 0 || lanes <= LanesOf(program_, *loop, options_.isa)) return;
    status = absl::UnimplementedError(absl::StrCat("program ", program_.name, ": in `", loop::ToText(program_, item),
                                                   "`: so many lanes do not fit in the vectors of ", Name(options_.isa)));
  });
  return status;
}

absl::Status Translator::CheckMemory() {
  for (size_t i = 0; i < program_.tensors.size(); ++i) {
    const TensorInfo& info = program_.tensors[i];
    const TensorId tensor{static_cast<int32_t>(i)};
    if (homes_[i].step < 0) continue;  // used nowhere: passes leave such tensors behind
    const bool is_private = KindOf(tensor) == HomeKind::kPrivate;
    if (is_private || KindOf(tensor) == HomeKind::kMemory) out_.memory.push_back(tensor);
    if (!is_private) continue;
    for (IndexId extent : info.shape) {
      if (!program_.pool.HasVar(extent)) continue;
      return absl::UnimplementedError(absl::StrCat("program ", program_.name, ": an extent of temp ", info.name,
                                                   " depends on a loop index"));
    }
  }
  return absl::OkStatus();
}

std::vector<TensorPlace> Translator::Places() const {
  std::vector<TensorPlace> places(program_.tensors.size());
  for (size_t i = 0; i < places.size(); ++i) {
    places[i].layout = CompactLayout(program_.tensors[i].shape.size());
    const HomeKind kind = homes_[i].kind;
    if (kind == HomeKind::kPrivate) places[i].kind = TensorPlace::kPrivate;
    if (kind == HomeKind::kArgument || kind == HomeKind::kMemory) places[i].kind = TensorPlace::kTable;
  }
  for (size_t i = 0; i < options_.layouts.size(); ++i) {
    const size_t inputs = program_.inputs.size();
    const TensorId tensor = i < inputs ? program_.inputs[i] : program_.outputs[i - inputs];
    places[tensor.value].layout = options_.layouts[i];
  }
  return places;
}

absl::StatusOr<Translation> Translator::Run() {
  loop::ConstantBlocks constant{std::vector<bool>(program_.blocks.size(), false), {}};
  if (!options_.constant.empty()) constant = ConstantBlocksOf(program_, options_.constant);
  out_.kept = constant.kept;
  const std::vector<int> steps = StepsOfBlocks(constant.is_constant);
  NESTOR_RETURN_IF_ERROR(CheckLanes());
  homes_ = FindHomes(program_, steps, options_.isa);
  NESTOR_RETURN_IF_ERROR(CheckMemory());
  FindTempsOfSteps();
  places_ = Places();
  for (TensorId tensor : program_.temps) {
    const bool is_filled = KindOf(tensor) == HomeKind::kMemory && program_[tensor].storage == Storage::kAccumulator;
    if (is_filled) unfilled_.push_back(tensor);
  }
  for (size_t i = 0; i < program_.blocks.size(); ++i) {
    const loop::Block& block = program_.blocks[i];
    const loop::Loop* parallel = ParallelLoop(block);
    if (i == 0 || steps[i] != steps[i - 1]) {
      if (parallel != nullptr) NESTOR_RETURN_IF_ERROR(FillStep(block.body[0]));
      BeginStep(parallel != nullptr, constant.is_constant[i]);
      ProgramTemps(steps[i]);
    }
    if (parallel != nullptr) ParallelBlock(*parallel);
    else SequentialBlock(block);
    item_ += static_cast<int>(block.body.size());
    if (i + 1 == program_.blocks.size() || steps[i + 1] != steps[i]) NESTOR_RETURN_IF_ERROR(EndStep());
  }
  return std::move(out_);
}

void Translator::BeginStep(bool parallel, bool constant) {
  Step step{absl::StrCat(program_.name, ".", out_.steps.size()), item_, parallel, constant, {}, {}, 1, 1,
            OperationList(options_.isa)};
  out_.steps.push_back(std::move(step));
  f_ = std::make_unique<FunctionBuilder>(program_, out_.table, places_, options_.isa);
}

absl::Status Translator::EndStep() {
  Operation leave{Opcode::kReturn};
  leave.operands[0] = Immediate(0);
  f_->list().operations.push_back(leave);
  Step& step = out_.steps.back();
  step.operations = f_->Finish();
  if (sink_ == nullptr) return absl::OkStatus();
  const absl::Status taken = (*sink_)(step);
  step.operations = OperationList(options_.isa);
  return taken;
}

// Declares the program's temps that live in registers of `step`.
void Translator::ProgramTemps(int step) {
  const auto temps = temps_.find(step);
  if (temps == temps_.end()) return;
  for (TensorId tensor : temps->second) Declare(tensor);
}

void Translator::FindTempsOfSteps() {
  for (TensorId tensor : program_.temps) {
    if (KindOf(tensor) != HomeKind::kMemory) temps_[homes_[tensor.value].step].push_back(tensor);
  }
}

// Those that the item is the first to touch. Before it their memory may hold anything
// else: see loop_ir/memory_plan.h.
std::vector<TensorId> Translator::TakeUnfilled(const loop::Item& item) {
  if (unfilled_.empty()) return {};
  const loop::Footprint footprint = FootprintOf(program_, item);
  const auto taken = std::stable_partition(unfilled_.begin(), unfilled_.end(),
                                           [&](TensorId tensor) { return !footprint.Touches(tensor); });
  const std::vector<TensorId> touched(taken, unfilled_.end());
  unfilled_.erase(taken, unfilled_.end());
  return touched;
}

// A step of its own, before the parallel loop, for the accumulators that it touches
// first.
absl::Status Translator::FillStep(const loop::Item& item) {
  const std::vector<TensorId> tensors = TakeUnfilled(item);
  if (tensors.empty()) return absl::OkStatus();
  BeginStep(false);
  for (TensorId tensor : tensors) Fill(tensor);
  return EndStep();
}

void Translator::SequentialBlock(const loop::Block& block) {
  for (const loop::Item& item : block.body) {
    for (TensorId tensor : TakeUnfilled(item)) Fill(tensor);
    Item(item);
  }
}

void Translator::ParallelBlock(const loop::Loop& loop) {
  Step& step = out_.steps.back();
  const std::vector<const loop::Loop*> chain = CollapsedChain(loop);
  if (chain.size() > 1) {
    IndexId iterations = program_.pool.Const(1);
    for (const loop::Loop* one : chain) {
      iterations = program_.pool.Mul(iterations, program_.pool.Max(one->end, program_.pool.Const(0)));
    }
    step.begin = Immediate(0);
    step.end = f_->Index(iterations);
    return CollapsedLoops(chain, f_->General(Opcode::kParameterG, {}, {}, 0), f_->General(Opcode::kParameterG, {}, {}, 1));
  }
  step.begin = f_->Index(loop.begin);
  step.end = f_->Index(loop.end);
  step.stride = loop.step;
  const Operand begin = f_->General(Opcode::kParameterG, {}, {}, 0);
  const Operand end = f_->General(Opcode::kParameterG, {}, {}, 1);
  if (loop.attributes.lanes > 0) {
    step.granularity = int64_t{kUnroll} * loop.attributes.lanes;
    return VectorLoop(loop, begin, end);
  }
  ScalarLoop(loop, begin, end);
}

// The loop and those right inside it that are parallel, too, and do not run in lanes: their
// iterations are counted as one.
std::vector<const loop::Loop*> Translator::CollapsedChain(const loop::Loop& outermost) const {
  const auto counts = [&](const loop::Loop& loop) {
    return loop.attributes.parallel && loop.step == 1 && program_.pool.IsConst(loop.begin, 0) &&
           !program_.pool.HasVar(loop.end) && loop.attributes.lanes == 0;
  };
  std::vector<const loop::Loop*> chain;
  for (const loop::Loop* loop = &outermost; loop != nullptr && counts(*loop);
       loop = loop->body.size() == 1 ? loop->body[0].As<loop::Loop>() : nullptr) {
    chain.push_back(loop);
  }
  return chain;
}

// Iterations [begin, end) of all that the chain has. The innermost loop runs as it is, from
// and to where the piece begins and ends; of the others the number is decomposed.
void Translator::CollapsedLoops(const std::vector<const loop::Loop*>& chain, Operand begin, Operand end) {
  const loop::Loop& inner = *chain.back();
  const Operand count = CountOf(inner);
  const Operand first = f_->General(Opcode::kFloorDivG, begin, count);
  const Operand past = f_->General(Opcode::kAddG, end, f_->General(Opcode::kSubG, count, Immediate(1)));
  const Operand last = f_->General(Opcode::kFloorDivG, past, count);
  f_->OpenRegion();
  const Operand number = f_->General(Opcode::kMoveG, first);
  const int done = f_->list().NewLabel();
  f_->Branch(Condition::kGreaterEqual, number, last, done);
  f_->OpenIteration(chain.size() == 2 ? chain[0]->var : -1, number, 0, 1, first);
  std::vector<Operand> indices;  // of the outer loops, innermost first
  Operand rest = number;
  for (size_t i = chain.size() - 1; i-- > 1;) {
    const Operand of = CountOf(*chain[i]);
    indices.push_back(f_->General(Opcode::kFloorModG, rest, of));
    rest = f_->General(Opcode::kFloorDivG, rest, of);
  }
  indices.push_back(rest);
  const Operand start = f_->General(Opcode::kMulG, number, count);
  const Operand from = f_->General(Opcode::kMaxG, f_->General(Opcode::kSubG, begin, start), Immediate(0));
  const Operand left = NESTOR_MUTANT("piece_runs_on") ? count : f_->General(Opcode::kSubG, end, start);
  const Operand to = f_->General(Opcode::kMinG, left, count);
  const size_t opened = chain.size() == 2 ? 0 : chain.size() - 1;
  for (size_t i = 0; i < opened; ++i) f_->OpenIteration(chain[i]->var, indices[opened - 1 - i], 0, 0, {});
  ScalarLoop(inner, from, to);
  for (size_t i = 0; i < opened; ++i) f_->CloseIteration({});
  f_->CloseIteration(last);
  f_->Label(done);
  f_->CloseRegion();
}

// How often the loop, which begins at 0, runs; at least 1, as what would run never is not
// called.
Operand Translator::CountOf(const loop::Loop& loop) {
  return InRegister(f_->Index(program_.pool.Max(loop.end, program_.pool.Const(1))));
}

// ---- Scopes

void Translator::Scope(const loop::Scope& scope) {
  for (const loop::Item& item : scope) Item(item);
}

void Translator::Item(const loop::Item& item) {
  if (const auto* loop = item.As<loop::Loop>()) {
    Loop(*loop);
  } else if (const auto* statement = item.As<loop::Statement>()) {
    Statement(*statement);
  } else {
    Declare(item.As<loop::Declaration>()->tensor);
  }
}

void Translator::Declare(TensorId tensor) {
  switch (KindOf(tensor)) {
    case HomeKind::kScalar: return DeclareScalar(tensor);
    case HomeKind::kTile: return DeclareTile(tensor);
    case HomeKind::kMemory:
    case HomeKind::kPrivate:
      if (program_[tensor].storage == Storage::kAccumulator) Fill(tensor);
      return;
    case HomeKind::kArgument: return;
  }
}

void Translator::DeclareScalar(TensorId tensor) {
  const TensorInfo& info = program_[tensor];
  Registers& home = registers_[tensor.value];
  home = {};
  home.lanes = lanes_.count;
  if (homes_[tensor.value].is_single) return;  // bound where it is written
  const bool is_arg = info.storage == Storage::kAccumulator && IsArg(info.op);
  ValueBuilder builder = Builder();
  home.value = {info.type, info.type == DType::kBool ? f_->list().NewMask() : f_->list().NewVector(), 4};
  if (is_arg) {
    home.position = f_->list().NewVector();
    places_[tensor.value].scalar = home.position;
    TypedValue position{DType::kI64, home.position};
    Assign(position, builder.Constant(Scalar::I64(-1)));
  } else {
    places_[tensor.value].scalar = home.value.operand;
  }
  // A temp is written before it is read; but not on every path that the allocator
  // sees.
  const Scalar start = info.storage == Storage::kAccumulator && !is_arg ? StartOf(info) : Scalar::Zero(info.type);
  const auto assign = [&] { Assign(home.value, builder.Constant(start)); };
  NESTOR_MUTANT("stale_accumulator") ? f_->EmitOnEntry(0, assign) : assign();
}

void Translator::DeclareTile(TensorId tensor) {
  const TensorInfo& info = program_[tensor];
  Registers& home = registers_[tensor.value];
  home = {};
  home.lanes = homes_[tensor.value].tile_lanes;
  int64_t vectors = 1;
  for (size_t axis = 0; axis < info.shape.size(); ++axis) {
    int64_t extent = ConstantOf(info.shape[axis]);
    if (axis + 1 == info.shape.size()) extent = (extent + home.lanes - 1) / home.lanes;
    vectors *= extent;
  }
  ValueBuilder builder(f_->list(), home.lanes);
  const Scalar start = info.storage == Storage::kAccumulator ? StartOf(info) : Scalar::Zero(info.type);
  const TypedValue identity = builder.Constant(start);
  for (int64_t i = 0; i < vectors; ++i) {
    home.tile.push_back(f_->list().NewVector());
    Operation move{Opcode::kMove, LaneOf(info.type), static_cast<uint8_t>(home.lanes)};
    move.operands[0] = identity.operand;
    EmitTo(home.tile.back(), move);
  }
}

// An accumulator in memory starts at its identity.
void Translator::Fill(TensorId tensor) {
  const TensorInfo& info = program_[tensor];
  IndexId elements = program_.pool.Const(1);
  for (IndexId extent : info.shape) elements = program_.pool.Mul(elements, extent);
  const Operand count = f_->Index(elements);
  IndexList origin(info.shape.size(), program_.pool.Const(0));
  Location location{f_->Address(tensor, origin), {}, Immediate(0)};
  if (!IsArg(info.op)) return FillMemory(location.memory, info.type, StartOf(info).bits, count);
  FillMemory(PositionsOf(tensor, location).memory, DType::kI64, ~uint64_t{0}, count);
}

void Translator::FillMemory(Memory memory, DType type, uint64_t bits, Operand count) {
  const int lanes = VectorBytes(options_.isa) / LaneBytes(LaneOf(type));
  const Lanes around = lanes_;
  lanes_ = {lanes, -1, f_->Depth(), f_->Depth(), {}, -1};
  ValueBuilder builder = Builder();
  const Operand value = ToStored(builder, builder.Constant(Scalar{type, bits}));
  f_->OpenRegion();
  const Operand pointer = f_->General(Opcode::kAddressG, {});
  f_->list().operations.back().memory = memory;
  const Operand left = f_->General(Opcode::kMoveG, count);
  const int tail = f_->list().NewLabel(), again = f_->list().NewLabel();
  f_->Branch(Condition::kLess, left, Immediate(lanes), tail);
  Operation begin{Opcode::kLoopBegin};
  begin.immediate = again;
  f_->list().operations.push_back(begin);
  Operation store = MakeMemory(Opcode::kStore, type, lanes, {pointer, {}, 1, 0});
  store.operands[0] = value;
  Emit(store);
  const auto move = [&](Operand what, int64_t by) {
    Operation add{Opcode::kAddG};
    add.operands[0] = what;
    add.operands[1] = Immediate(by);
    EmitTo(what, add);
  };
  move(pointer, int64_t{lanes} * ByteSize(type));
  move(left, -lanes);
  Operation end{Opcode::kLoopEnd};
  end.condition = Condition::kGreaterEqual;
  end.operands[0] = left;
  end.operands[1] = Immediate(lanes);
  end.immediate = again;
  Emit(end);
  f_->Label(tail);
  lanes_.active = left;
  lanes_.group = f_->Depth();
  store.opcode = Opcode::kStorePartial;
  store.operands[1] = Emit([&] {
    Operation mask{Opcode::kMaskOfCount, LaneOf(type), static_cast<uint8_t>(lanes)};
    mask.operands[0] = left;
    return mask;
  }());
  store.operands[2] = left;
  Emit(store);
  f_->CloseRegion();
  lanes_ = around;
}

// ---- Loops

void Translator::Loop(const loop::Loop& loop) {
  const Operand begin = f_->Index(loop.begin), end = f_->Index(loop.end);
  if (IsUnrolled(program_, loop)) return UnrolledLoop(loop);
  if (loop.attributes.lanes > 0) return VectorLoop(loop, begin, end);
  ScalarLoop(loop, begin, end);
}

Operand Translator::InRegister(Operand operand) {
  return operand.is_register() ? operand : f_->General(Opcode::kMoveG, operand);
}

void Translator::ScalarLoop(const loop::Loop& loop, Operand begin, Operand end) {
  f_->OpenRegion();
  const Operand index = f_->General(Opcode::kMoveG, begin);
  const int done = f_->list().NewLabel();
  f_->Branch(Condition::kGreaterEqual, index, end, done);
  f_->OpenIteration(loop.var, index, 0, loop.step, begin);
  Scope(loop.body);
  for (const loop::Access& access : loop.prefetches) Prefetch(access);
  f_->CloseIteration(end);
  f_->Label(done);
  f_->CloseRegion();
}

void Translator::UnrolledLoop(const loop::Loop& loop) {
  const int64_t end = ConstantOf(loop.end);
  for (int64_t i = ConstantOf(loop.begin); i < end; i += loop.step) {
    f_->OpenIteration(loop.var, Immediate(i), 0, 0, {});
    Scope(loop.body);
    f_->CloseIteration({});
  }
}

void Translator::VectorLoop(const loop::Loop& loop, Operand begin, Operand end) {
  const Lanes around = lanes_;
  f_->OpenRegion();
  lanes_ = {loop.attributes.lanes, loop.var, f_->Depth(), f_->Depth(), {}, -1};
  const bool fixed = begin.kind == Operand::kImmediate && end.kind == Operand::kImmediate;
  if (const auto extent = TileExtent(loop)) {
    TileLoop(loop, begin, end, *extent);
  } else if (fixed && end.value - begin.value <= int64_t{kUnroll} * lanes_.count) {
    TileLoop(loop, begin, end, end.value - begin.value);
  } else {
    const Operand index = f_->General(Opcode::kMoveG, begin);
    if (kUnroll > 1) VectorGroups(loop, index, end, kUnroll);
    VectorGroups(loop, index, end, 1);
    VectorTail(loop, index, end);
  }
  f_->CloseRegion();
  lanes_ = around;
}

// while (index + lanes * unroll <= end)
void Translator::VectorGroups(const loop::Loop& loop, Operand index, Operand end, int unroll) {
  const int64_t step = int64_t{lanes_.count} * unroll;
  const Lanes around = lanes_;
  f_->OpenRegion();
  const Operand last = f_->General(Opcode::kSubG, end, Immediate(step - 1));
  const int done = f_->list().NewLabel();
  f_->Branch(Condition::kGreaterEqual, index, last, done);
  f_->OpenIteration(loop.var, index, 0, step, index);
  lanes_.region = f_->Depth() - 1;
  std::vector<size_t> starts;
  for (int u = 0; u < unroll; ++u) {
    starts.push_back(f_->list().operations.size());
    Group(loop, index, NESTOR_MUTANT("second_group_at_first") ? 0 : int64_t{u} * lanes_.count);
  }
  Interleave(f_->list().operations, starts);
  f_->CloseIteration(last);
  f_->Label(done);
  f_->CloseRegion();
  lanes_ = around;
}

void Translator::VectorTail(const loop::Loop& loop, Operand index, Operand end) {
  const Lanes around = lanes_;
  const int done = f_->list().NewLabel();
  f_->Branch(Condition::kGreaterEqual, index, end, done);
  f_->OpenRegion();
  lanes_.region = f_->Depth();
  lanes_.active = f_->General(Opcode::kSubG, end, index);
  if (NESTOR_MUTANT("tail_mask_too_long")) lanes_.active = f_->General(Opcode::kAddG, lanes_.active, Immediate(1));
  if (NESTOR_MUTANT("tail_mask_too_short")) lanes_.active = f_->General(Opcode::kSubG, lanes_.active, Immediate(1));
  Group(loop, index, 0);
  f_->CloseRegion();
  f_->Label(done);
  lanes_ = around;
}

void Translator::Group(const loop::Loop& loop, Operand index, int64_t offset) {
  f_->OpenIteration(loop.var, index, offset, 0, {});
  lanes_.group = f_->Depth();
  Scope(loop.body);
  for (const loop::Access& access : loop.prefetches) Prefetch(access);
  f_->CloseIteration({});
}

// The axis of the register tiles that the loop walks.
absl::optional<int64_t> Translator::TileExtent(const loop::Loop& loop) const {
  absl::optional<int64_t> extent;
  const auto look = [&](TensorId tensor, absl::Span<const IndexId> place, loop::AccessKind) {
    if (KindOf(tensor) != HomeKind::kTile) return;
    for (size_t axis = 0; axis < place.size(); ++axis) {
      if (!HoldsVar(program_.pool, place[axis], loop.var)) continue;
      extent = std::max(extent.value_or(0), ConstantOf(program_[tensor].shape[axis]));
    }
  };
  VisitItems(loop.body, [&](const loop::Item& item) { VisitAccesses(program_, item, look); });
  return extent;
}

void Translator::TileLoop(const loop::Loop& loop, Operand begin, Operand end, int64_t extent) {
  const bool fixed = begin.kind == Operand::kImmediate && end.kind == Operand::kImmediate;
  if (fixed) {
    extent = end.value - begin.value;
    lanes_.end = end.value;
  }
  const Lanes around = lanes_;
  const Operand index = begin.kind == Operand::kImmediate ? begin : InRegister(begin);
  const int done = f_->list().NewLabel();
  std::vector<size_t> starts;
  for (int64_t offset = 0; offset < extent; offset += lanes_.count) {
    starts.push_back(f_->list().operations.size());
    // Lanes beyond the end of a tile hold anything; those of memory are left alone.
    const bool whole = fixed && offset + lanes_.count <= extent;
    f_->OpenRegion();
    lanes_.region = f_->Depth();
    if (!whole) {
      Operand left = fixed ? Immediate(extent - offset) : f_->General(Opcode::kSubG, end, begin);
      if (!fixed && offset > 0) left = f_->General(Opcode::kSubG, left, Immediate(offset));
      if (!fixed) f_->Branch(Condition::kLessEqual, left, Immediate(0), done);
      if (!fixed) left = f_->General(Opcode::kMinG, left, Immediate(lanes_.count));
      lanes_.active = InRegister(left);
    }
    Group(loop, index, offset);
    f_->CloseRegion();
    lanes_ = around;
  }
  if (!starts.empty()) Interleave(f_->list().operations, starts);
  if (!fixed) f_->Label(done);
}

int64_t Translator::ConstantOf(IndexId e) const {
  const absl::optional<int64_t> value = program_.pool.ConstValue(e);
  NESTOR_CHECK(value.has_value(), "an extent of a register tile is a number");
  return *value;
}

absl::StatusOr<Translation> Translate(Program& program, const TranslateOptions& options, const StepSink* sink) {
  return Translator(program, options, sink).Run();
}

}  // namespace nestor::jit
