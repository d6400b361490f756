// Addresses and indices that do not change within a loop are computed before it, and nobody has to
// search for them: an index expression says itself in which loops it is known, and a pointer that
// runs with a loop must begin before it. (Values in lanes are emitted where they are used, and the
// optimiser of operations moves them.)
//
// A frame has three streams: the operations on entry, the body, and those of a loop after each
// iteration. The bodies of all open frames lie one after the other in the list. A value goes to the
// entry of the outermost frame in which it can be computed; operations are pushed there directly,
// long before the frame closes and puts them before its body.
//
//   open region; open iteration j        entry of the region:  p = x + 4 * i
//     load x[i, j]                       loop_begin
//   close iteration; close region          v = load [p + 4 * j];  latch: j += 1
//                                        loop_end
#include "jit/codegen/frames.h"

#include <utility>

#include "uops/invariant.h"

namespace nestor::jit {
OperationList Frames::Finish() {
  NESTOR_CHECK(depth_ == 0, "an open frame");
  PutEntryBeforeBody(frames_[0]);
  return std::move(list_);
}

// ---- Frames

void Frames::Frame::Clear() {
  entry.clear();
  latch.clear();
  indices.clear();
  computed.ForgetSince(0);
  running.clear();
  var = -1;
  value = begin = {};
  offset = step = 0;
}

// So far, the list consists of the bodies of all frames.
void Frames::OpenRegion() {
  if (++depth_ == static_cast<int>(frames_.size())) frames_.emplace_back();
  frames_[depth_].begin_of_body = list_.operations.size();
}

void Frames::PutEntryBeforeBody(const Frame& frame) {
  std::vector<Operation>& operations = list_.operations;
  operations.insert(operations.begin() + static_cast<int64_t>(frame.begin_of_body),
                    frame.entry.begin(), frame.entry.end());
}

void Frames::OpenIteration(int32_t var, Operand value, int64_t offset, int64_t step,
                           Operand begin) {
  OpenRegion();
  Frame& frame = frames_[depth_];
  frame.var = var;
  frame.value = value;
  frame.offset = offset;
  frame.step = step;
  frame.begin = begin;
}

// Code that runs on entry stands before the region's body; the frame is kept for the next region,
// as its memory is.
void Frames::CloseRegion() {
  Frame& frame = frames_[depth_--];
  NESTOR_CHECK(frame.latch.empty(), "a region does not run");
  PutEntryBeforeBody(frame);
  frame.Clear();
}

// A loop with its test at the end; whoever opened it tests before whether it runs at all.
void Frames::CloseIteration(Operand end) {
  Frame& frame = frames_[depth_];
  if (frame.step == 0) return CloseRegion();
  const int label = list_.NewLabel();
  Operation begin{Opcode::kLoopBegin};
  begin.immediate = label;
  frame.entry.insert(frame.entry.begin(), begin);
  std::vector<Operation>& body = list_.operations;
  body.insert(body.end(), frame.latch.begin(), frame.latch.end());
  frame.latch.clear();
  Operation next = Make(Opcode::kAddG, frame.value, Immediate(frame.step));
  next.result = frame.value;
  body.push_back(next);
  Operation back = Make(Opcode::kLoopEnd, frame.value, end, label);
  back.condition = Condition::kLess;
  body.push_back(back);
  CloseRegion();
}

// ---- Operations

Operation Frames::Make(Opcode opcode, Operand a, Operand b, int64_t immediate) {
  Operation operation{opcode};
  operation.lane = Lane::kI64;
  operation.operands[0] = a;
  operation.operands[1] = b;
  operation.immediate = immediate;
  return operation;
}

Operand Frames::General(Opcode opcode, Operand a, Operand b, int64_t immediate) {
  Operation operation = Make(opcode, a, b, immediate);
  operation.result = list_.NewGeneral();
  list_.operations.push_back(operation);
  return operation.result;
}

void Frames::Label(int label) { list_.operations.push_back(Make(Opcode::kLabel, {}, {}, label)); }
void Frames::Jump(int label) { list_.operations.push_back(Make(Opcode::kJump, {}, {}, label)); }

void Frames::Branch(Condition condition, Operand a, Operand b, int label, bool likely) {
  Operation operation = Make(Opcode::kBranch, a, b, label);
  operation.condition = condition;
  operation.likely = likely;
  list_.operations.push_back(operation);
}

Operand Frames::OnEntry(int depth, Operation operation) {
  Frame& frame = frames_[depth];
  const auto [result, is_new] = frame.computed.TryAdd(operation);
  if (!is_new) return *result;
  *result = operation.result = list_.NewGeneral();
  frame.entry.push_back(operation);
  return operation.result;
}

// Operations that `emit` appends are moved to the entry of the loop at `depth`: code that is
// invariant there.
void Frames::EmitOnEntry(int depth, absl::FunctionRef<void()> emit) {
  std::vector<Operation> around = std::move(list_.operations);
  list_.operations.clear();
  emit();
  std::vector<Operation>& entry = frames_[depth].entry;
  entry.insert(entry.end(), list_.operations.begin(), list_.operations.end());
  list_.operations = std::move(around);
}

}  // namespace nestor::jit
