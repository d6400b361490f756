// Programs, steps, scopes and their declarations; loops are in translate_loops.cc, statements in
// translate_statements.cc. A step is the code between two points at which threads wait for each
// other: each parallel loop is a step, and the items between two of them share one. A tensor has
// its registers where it is declared, and starts there at its identity.
//
//   t = 0                      step 0, by one thread; t is a temp of the program, in memory
//   for i in [0, n) parallel   step 1, by all
//   y = sqrt(t)                step 2, by one
//
// The translation is one walk over the tree that appends operations; nothing is patched later. What
// must be known before, it asks of analyses at the start (homes, gated sums, constant blocks).
#include "jit/codegen/translate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "jit/codegen/operand_constraints.h"
#include "jit/codegen/translator.h"
#include "jit/target/lanes.h"
#include "loop_ir/constant_items.h"
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

const loop::Loop* ParallelLoop(const loop::Item& item) {
  const auto* loop = item.As<loop::Loop>();
  return loop != nullptr && loop->attributes.parallel ? loop : nullptr;
}

// The start value of an accumulator.
Scalar StartOf(const TensorInfo& info) {
  if (NESTOR_MUTANT("max_starts_at_zero") && info.op == ReduceOp::kMax)
    return Scalar::Zero(info.type);
  if (NESTOR_MUTANT("max_starts_at_lowest_finite") && info.op == ReduceOp::kMax &&
      IsFloat(info.type)) {
    return Scalar::Float(info.type, info.type == DType::kF16 ? -65504.0 : -3.3895313892515355e38);
  }
  return Identity(info.op, info.type);
}

}  // namespace

Translator::Translator(Program& program, const TranslateOptions& options, const StepSink* sink)
    : program_(program), options_(options), sink_(sink), registers_(program.tensors.size()) {}

// Each parallel loop has a step; the items between two share one, except constant ones.
// Declarations belong to none.
std::vector<int> Translator::StepsOfItems(const std::vector<bool>& is_constant) const {
  std::vector<int> steps;
  int step = -1;
  bool was_parallel = false, was_constant = false;
  for (size_t i = 0; i < program_.body.size(); ++i) {
    if (program_.body[i].As<loop::Declaration>() != nullptr) {
      steps.push_back(kNoStep);
      continue;
    }
    const bool parallel = ParallelLoop(program_.body[i]) != nullptr;
    if (step < 0 || parallel || was_parallel || is_constant[i] != was_constant) ++step;
    steps.push_back(step);
    was_parallel = parallel;
    was_constant = is_constant[i];
  }
  return steps;
}

absl::Status Translator::CheckLanes() {
  absl::Status status;
  VisitItems(program_, [&](const loop::Item& item) {
    const auto* loop = item.As<loop::Loop>();
    const int lanes = loop == nullptr ? 0 : loop->attributes.lanes;
    if (lanes == 0 || lanes <= MostLanesOf(program_, *loop, options_.isa)) return;
    status = absl::UnimplementedError(
        absl::StrCat("program ", program_.name, ": in `", loop::ToText(program_, item),
                     "`: so many lanes do not fit in the vectors of ", Name(options_.isa)));
  });
  return status;
}

// Private memory is laid out once for each shape, before the code runs; hence its extents must not
// depend on loop indices.
absl::Status Translator::CheckMemory() {
  for (size_t i = 0; i < program_.tensors.size(); ++i) {
    const TensorInfo& info = program_.tensors[i];
    const TensorId tensor{static_cast<int32_t>(i)};
    if (homes_[i].step < 0) continue;  // unused: passes leave such tensors
    const bool is_private = KindOf(tensor) == HomeKind::kPrivate;
    if (is_private || KindOf(tensor) == HomeKind::kMemory) out_.memory.push_back(tensor);
    if (!is_private) continue;
    for (IndexId extent : info.shape) {
      if (!program_.pool.HasVar(extent)) continue;
      return absl::UnimplementedError(absl::StrCat("program ", program_.name,
                                                   ": an extent of temp ", info.name,
                                                   " depends on a loop index"));
    }
  }
  return absl::OkStatus();
}

// Temporaries are compact; arguments have the layouts that the code is made for.
std::vector<TensorPlace> Translator::Places() const {
  std::vector<TensorPlace> places(program_.tensors.size());
  for (size_t i = 0; i < places.size(); ++i) {
    places[i].layout = CompactLayout(program_.tensors[i].shape.size());
    const HomeKind kind = homes_[i].kind;
    if (kind == HomeKind::kPrivate) places[i].kind = TensorPlace::kPrivate;
    if (kind == HomeKind::kArgument || kind == HomeKind::kMemory)
      places[i].kind = TensorPlace::kTable;
  }
  for (size_t i = 0; i < options_.layouts.size(); ++i) {
    const size_t inputs = program_.inputs.size();
    const TensorId tensor = i < inputs ? program_.inputs[i] : program_.outputs[i - inputs];
    places[tensor.value].layout = options_.layouts[i];
  }
  return places;
}

// Items in order; a step ends where the next item belongs to another one.
absl::StatusOr<Translation> Translator::Run() {
  loop::ConstantItems constant{std::vector<bool>(program_.body.size(), false), {}};
  if (!options_.constant.empty()) constant = ConstantItemsOf(program_, options_.constant);
  out_.kept = constant.kept;
  const std::vector<int> steps = StepsOfItems(constant.is_constant);
  NESTOR_RETURN_IF_ERROR(CheckLanes());
  homes_ = FindHomes(program_, steps, options_.isa);
  NESTOR_RETURN_IF_ERROR(CheckMemory());
  FindPartsOfGatedSums();
  places_ = Places();
  for (TensorId tensor : DeclaredIn(program_.body)) {
    if (KindOf(tensor) != HomeKind::kMemory || program_[tensor].storage == Storage::kAccumulator)
      undeclared_.push_back(tensor);
  }
  int step = kNoStep;
  for (size_t i = 0; i < program_.body.size(); ++i) {
    if (steps[i] == kNoStep) continue;
    const loop::Item& item = program_.body[i];
    item_ = static_cast<int>(i);
    if (steps[i] != step) {
      if (step != kNoStep) NESTOR_RETURN_IF_ERROR(EndStep());
      NESTOR_RETURN_IF_ERROR(BeginStepWith(item, constant.is_constant[i]));
      step = steps[i];
    }
    for (TensorId tensor : TakeUndeclared(item)) Declare(tensor);
    if (const loop::Loop* parallel = ParallelLoop(item)) ParallelLoopItself(*parallel);
    else Item(item);
  }
  if (step != kNoStep) NESTOR_RETURN_IF_ERROR(EndStep());
  return std::move(out_);
}

void Translator::BeginStep(bool parallel, bool constant) {
  Step step{absl::StrCat(program_.name, ".", out_.steps.size()),
            item_,
            parallel,
            constant,
            {},
            {},
            1,
            1,
            OperationList(options_.isa)};
  out_.steps.push_back(std::move(step));
  f_ = std::make_unique<FunctionBuilder>(program_, out_.table, places_, options_.isa);
}

// A function that comes to its end has found every access in range: 0.
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

// The program's tensors in registers, and accumulators in memory, that the item is the first to
// touch. Before it the memory may hold anything else: see loop_ir/memory_plan.h.
std::vector<TensorId> Translator::TakeUndeclared(const loop::Item& item) {
  if (undeclared_.empty()) return {};
  const loop::Footprint footprint = FootprintOf(program_, item);
  const auto taken =
      std::stable_partition(undeclared_.begin(), undeclared_.end(),
                            [&](TensorId tensor) { return !footprint.Touches(tensor); });
  const std::vector<TensorId> touched(taken, undeclared_.end());
  undeclared_.erase(taken, undeclared_.end());
  return touched;
}

// Begins the step whose first item this is. Accumulators in memory that a parallel loop touches
// first are filled in a step before it, since all threads add to them.
absl::Status Translator::BeginStepWith(const loop::Item& item, bool constant) {
  const bool parallel = ParallelLoop(item) != nullptr;
  std::vector<TensorId> filled, others;
  if (parallel) {
    for (TensorId tensor : TakeUndeclared(item))
      (KindOf(tensor) == HomeKind::kMemory ? filled : others).push_back(tensor);
  }
  if (!filled.empty()) {
    BeginStep(/*parallel=*/false, constant);
    for (TensorId tensor : filled) Fill(tensor);
    NESTOR_RETURN_IF_ERROR(EndStep());
  }
  BeginStep(parallel, constant);
  for (TensorId tensor : others) Declare(tensor);
  return absl::OkStatus();
}

// ---- Scopes

// In order, but for sums of gated products, which are translated as wholes.
void Translator::Scope(const loop::Scope& scope) {
  for (size_t i = 0; i < scope.size(); ++i) {
    Item(scope[i]);
    const absl::optional<size_t> sum = GatedSumOf(scope, i);
    if (!sum) continue;
    GatedSum(scope, i + 1, *sum, scope[i].As<loop::Declaration>()->tensor);
    i = *sum;
  }
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

// Only accumulators in memory need code here: the others are registers, or unwritten.
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

// A register of its own for a scalar that is written more than once; an arg accumulator has a
// second one for its position, -1 at first.
void Translator::DeclareScalar(TensorId tensor) {
  const TensorInfo& info = program_[tensor];
  Registers& home = registers_[tensor.value];
  home = {};
  home.lanes = lanes_.count;
  if (homes_[tensor.value].is_single) return;  // bound when it is written
  const bool is_arg = info.storage == Storage::kAccumulator && IsArg(info.op);
  ValueBuilder builder = Builder();
  home.value = {info.type,
                info.type == DType::kBool ? f_->list().NewMask() : f_->list().NewVector(),
                LaneBytes(LaneOf(DType::kBool))};
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
  const Scalar start =
      info.storage == Storage::kAccumulator && !is_arg ? StartOf(info) : Scalar::Zero(info.type);
  const auto assign = [&] { Assign(home.value, builder.Constant(start)); };
  NESTOR_MUTANT("stale_accumulator") ? f_->EmitOnEntry(0, assign) : assign();
}

ValueBuilder Translator::TileBuilder(TensorId tile) {
  const int lanes = homes_[tile.value].tile_lanes;
  const DType type = program_[tile].type;
  const bool is_narrow = lanes > LanesOf(type, options_.isa);
  return ValueBuilder(f_->list(), lanes, is_narrow ? ByteSize(type) : kLeastLaneBytes);
}

// A register for each vector along the last axis, in row-major order; all start at the identity.
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
  ValueBuilder builder = TileBuilder(tensor);
  const Scalar start =
      info.storage == Storage::kAccumulator ? StartOf(info) : Scalar::Zero(info.type);
  const TypedValue identity = builder.Constant(start);
  for (int64_t i = 0; i < vectors; ++i) {
    home.tile.push_back(f_->list().NewVector());
    Operation move{Opcode::kMove, builder.LaneOf(info.type), static_cast<uint8_t>(home.lanes)};
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
  Location location{f_->Address(tensor, origin), {}, Immediate(0), {}};
  if (!IsArg(info.op)) return FillMemory(location.memory, info.type, StartOf(info).bits, count);
  FillMemory(PositionsOf(tensor, location).memory, DType::kI64, ~uint64_t{0}, count);
}

// A loop of whole vectors, then the rest under a mask:
//
//   while (left >= lanes) { store [pointer], value; pointer += ..; left -= lanes }
//   store_partial [pointer], value, left
void Translator::FillMemory(Memory memory, DType type, uint64_t bits, Operand count) {
  const int lanes = LanesOf(type, options_.isa);
  const Lanes around = lanes_;
  lanes_ = {lanes, kLeastLaneBytes, -1, f_->Depth(), f_->Depth(), {}, -1, nullptr};
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
  if (GoesByMask(store, f_->list().isa)) {
    Operation mask{Opcode::kMaskOfCount, LaneOf(type), static_cast<uint8_t>(lanes)};
    mask.operands[0] = left;
    store.operands[1] = Emit(mask);
  }
  store.operands[2] = left;
  Emit(store);
  f_->CloseRegion();
  lanes_ = around;
}

int64_t Translator::ConstantOf(IndexId e) const {
  const absl::optional<int64_t> value = program_.pool.ConstValue(e);
  NESTOR_CHECK(value.has_value(), "an extent of a register tile is a number");
  return *value;
}

absl::StatusOr<Translation> Translate(Program& program, const TranslateOptions& options,
                                      const StepSink* sink) {
  return Translator(program, options, sink).Run();
}

}  // namespace nestor::jit
