// The oracle must compute a composed row by exactly the operations that the row's text says, one
// value at a time and fast enough for millions. A body is an op of the notation with rank-0
// arguments, so its graph is already a straight line in topological order: inputs and constants
// become registers, every map node a step. A transcendental on a 16-bit float is f32's body between
// two casts.
#include "uops/scalar_body.h"

#include <map>
#include <tuple>

#include "absl/container/fixed_array.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "uops/invariant.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

ScalarBody::Step StepOf(ScalarOp op, DType operand, DType target) {
  return {FunctionOf(op, operand, target), {0, 0, 0}, op, operand, target};
}

// Registers: arguments, then constants, then one per step.
ScalarBody Compile(const Op& op) {
  ScalarBody body;
  body.arity = static_cast<int>(op.args.size());
  const Graph& graph = op.graph;
  const std::vector<bool> live = Reachable(graph, op.ResultNodes());
  std::vector<int> registers(graph.size(), -1);
  for (size_t i = 0; i < op.args.size(); ++i)
    registers[op.args[i].node.value] = static_cast<int>(i);
  for (int i = 0; i < graph.size(); ++i) {
    const Constant* constant = graph.As<Constant>(NodeId{i});
    if (!live[i] || constant == nullptr) continue;
    registers[i] = body.arity + static_cast<int>(body.constants.size());
    body.constants.push_back(constant->value.bits);
    body.constant_types.push_back(constant->value.type);
  }
  for (int i = 0; i < graph.size(); ++i) {
    const Map* map = graph.As<Map>(NodeId{i});
    if (!live[i] || map == nullptr) continue;
    ScalarBody::Step step = StepOf(map->op, graph.type(map->args.back()), graph.type(NodeId{i}));
    for (size_t j = 0; j < map->args.size(); ++j) step.args[j] = registers[map->args[j].value];
    registers[i] = body.arity + static_cast<int>(body.constants.size() + body.steps.size());
    body.steps.push_back(step);
  }
  body.result = registers[op.results[0].node.value];
  return body;
}

// The row's body on `type`, or for a transcendental on a 16-bit float on f32.
ScalarBody CompileRow(ScalarOp op, DType type, BodyForm form) {
  const std::string text = BodyText(op, type, form);
  const absl::StatusOr<Module> module = Module::Parse(text);
  NESTOR_CHECK(module.ok(), absl::StrCat(Row(op).name, ": ", module.status().ToString()));
  const ArgumentSpecs specs = {{"a", ArgumentSpec{type, 0}}};
  const absl::StatusOr<Op> body = module->Instantiate("", specs);
  NESTOR_CHECK(body.ok(), absl::StrCat(Row(op).name, ": ", body.status().ToString()));
  return Compile(*body);
}

// cast, the f32 body, cast back.
ScalarBody Narrow(ScalarOp op, DType type) {
  ScalarBody body;
  body.arity = Row(op).arity;
  ScalarBody::Step call = StepOf(op, DType::kF32, DType::kF32);
  for (int i = 0; i < body.arity; ++i) {
    body.steps.push_back(StepOf(ScalarOp::kCast, type, DType::kF32));
    body.steps.back().args[0] = i;
    call.args[i] = body.arity + i;
  }
  body.steps.push_back(call);
  body.steps.push_back(StepOf(ScalarOp::kCast, DType::kF32, type));
  body.steps.back().args[0] = 2 * body.arity;
  body.result = 2 * body.arity + 1;
  return body;
}

}  // namespace

// Registers on the stack: bodies have some dozens of steps.
Bits ScalarFunction::operator()(const Bits* operands) const {
  if (primitive != nullptr) return primitive(operands);
  const size_t constants = body->constants.size();
  absl::FixedArray<Bits, 96> registers(body->arity + constants + body->steps.size());
  std::copy(operands, operands + body->arity, registers.begin());
  std::copy(body->constants.begin(), body->constants.end(), registers.begin() + body->arity);
  size_t next = body->arity + constants;
  for (const ScalarBody::Step& step : body->steps) {
    const Bits args[] = {registers[step.args[0]], registers[step.args[1]], registers[step.args[2]]};
    registers[next++] = step.function(args);
  }
  return registers[body->result];
}

// Compiled once per row, type and form, and never freed.
ScalarFunction FunctionOf(ScalarOp op, DType operand, DType target, BodyForm form) {
  if (!HasBody(op, operand)) {
    const PrimitiveFunction primitive = Primitive(op, operand, target);
    NESTOR_CHECK(primitive != nullptr, absl::StrCat(Row(op).name, " of ", Name(operand)));
    return {primitive, nullptr};
  }
  const bool narrow = Row(op).transcendental && AccumulatorType(operand) != operand;
  if (narrow || !HasForms(op, operand)) form = BodyForm::kFactors;  // one body serves both
  static absl::Mutex mutex;
  static auto* const compiled =
      new std::map<std::tuple<ScalarOp, DType, BodyForm>, std::unique_ptr<ScalarBody>>;
  {
    absl::MutexLock lock(&mutex);
    const auto it = compiled->find({op, operand, form});
    if (it != compiled->end()) return {nullptr, it->second.get()};
  }
  // This is compiled outside the lock, since a body may use other bodies; the first result is kept.
  auto body =
      std::make_unique<ScalarBody>(narrow ? Narrow(op, operand) : CompileRow(op, operand, form));
  absl::MutexLock lock(&mutex);
  const auto [it, inserted] =
      compiled->emplace(std::make_tuple(op, operand, form), std::move(body));
  return {nullptr, it->second.get()};
}

}  // namespace nestor
