// Construction and traversal of programs. Values are trees in an arena, operands before their
// users, and may be any number of levels deep (a sum of n terms is n deep), so no traversal of
// values recurses. Loop nests are a few levels deep, so traversals of scopes do. Names are made
// unique as tensors and loop indices are added, so that every program prints.
#include "loop_ir/program.h"

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"

namespace nestor::loop {

// An argmax accumulates a pair of a value and a position; what is read is the position.
DType ReadType(const TensorInfo& tensor) {
  return tensor.storage == Storage::kAccumulator && IsArg(tensor.op) ? DType::kI64 : tensor.type;
}

// For each name the next number to try is kept: otherwise n tensors of one name would take n^2
// time.
// x, x, x_2, x   ->   x, x_2, x_2_2, x_3
std::string UniqueNames::Take(absl::string_view name) {
  if (next_.try_emplace(name, 2).second) return std::string(name);
  for (int& number = next_[std::string(name)];; ++number) {
    std::string candidate = absl::StrCat(name, "_", number);
    // `number` may move as the map grows: it is not used after a success.
    if (next_.contains(candidate)) continue;
    ++number;
    next_.emplace(candidate, 2);
    return candidate;
  }
}

TensorId Program::AddTensor(TensorInfo info) {
  info.name = tensor_names.Take(info.name);
  tensors.push_back(std::move(info));
  return TensorId{static_cast<int32_t>(tensors.size()) - 1};
}

int32_t Program::AddVar(absl::string_view name) {
  vars.push_back(var_names.Take(name));
  return static_cast<int32_t>(vars.size()) - 1;
}

namespace {

// References into `values` are invalid afterwards: the vector may move.
ValueId Append(Program& program, Value value) {
  program.values.push_back(std::move(value));
  return ValueId{static_cast<int32_t>(program.values.size()) - 1};
}

}  // namespace

Program::Program() = default;
Program::Program(const Program&) = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(const Program&) = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

ValueId Program::AddConstant(Scalar value) {
  return Append(*this, {ConstantValue{value}, value.type});
}

ValueId Program::AddParam(absl::string_view name, DType type) {
  return Append(*this, {ParamValue{std::string(name)}, type});
}

ValueId Program::AddIndexValue(IndexId index) {
  return Append(*this, {IndexValue{index}, DType::kI64});
}

ValueId Program::AddLoad(Access access) {
  const DType type = ReadType(tensors[access.tensor.value]);
  return Append(*this, {LoadValue{std::move(access)}, type});
}

ValueId Program::AddApply(ScalarOp op, absl::Span<const ValueId> args, DType target) {
  const auto type = ResultTypeOf(op, values[args.back().value].type, target);
  NESTOR_CHECK(type.has_value(), Row(op).name);
  return Append(*this, {ApplyValue{op, {args.begin(), args.end()}}, *type});
}

namespace {

// Whether nothing is to be visited before the value.
bool IsLeaf(const Value& value) {
  const auto* load = absl::get_if<LoadValue>(&value.node);
  return load != nullptr ? !load->access.fill.valid()
                         : !absl::holds_alternative<ApplyValue>(value.node);
}

}  // namespace

// Post-order with a stack of its own: an id is pushed again, complemented, under its operands.
void VisitValues(const Program& program, ValueId root,
                 absl::FunctionRef<void(ValueId, const Value&)> visit) {
  if (IsLeaf(program[root])) return visit(root, program[root]);
  // Values that several operands share are visited once for each: a tree is what is visited.
  absl::InlinedVector<int32_t, 64> stack = {root.value};  // ~id where the operands were visited
  while (!stack.empty()) {
    const int32_t top = stack.back();
    stack.pop_back();
    const ValueId id{top < 0 ? ~top : top};
    const Value& value = program[id];
    if (top < 0 || IsLeaf(value)) {
      visit(id, value);
      continue;
    }
    stack.push_back(~top);
    const auto* apply = absl::get_if<ApplyValue>(&value.node);
    if (apply == nullptr) stack.push_back(absl::get<LoadValue>(value.node).access.fill.value);
    else
      for (size_t i = apply->args.size(); i-- > 0;) stack.push_back(apply->args[i].value);
  }
}

void VisitLoads(const Program& program, ValueId root,
                absl::FunctionRef<void(ValueId, const Access&)> visit) {
  VisitValues(program, root, [&](ValueId id, const Value& value) {
    if (const auto* load = absl::get_if<LoadValue>(&value.node)) visit(id, load->access);
  });
}

Item DeclarationOf(TensorId tensor) { return Item{Declaration{tensor}}; }

void Append(Scope& scope, Scope more) {
  scope.insert(scope.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

std::vector<TensorId> DeclaredIn(const Scope& scope) {
  std::vector<TensorId> declared;
  for (const Item& item : scope) {
    if (const auto* declaration = item.As<Declaration>()) declared.push_back(declaration->tensor);
  }
  return declared;
}

void VisitItems(const Scope& scope, absl::FunctionRef<void(const Item&)> visit) {
  for (const Item& item : scope) VisitItems(item, visit);
}

void VisitItems(const Item& item, absl::FunctionRef<void(const Item&)> visit) {
  visit(item);
  if (const Loop* loop = item.As<Loop>()) VisitItems(loop->body, visit);
}

void VisitItems(const Program& program, absl::FunctionRef<void(const Item&)> visit) {
  VisitItems(program.body, visit);
}

namespace {

void VisitInLoops(const Scope& scope, LoopsAround& around,
                  absl::FunctionRef<void(const Item&, const LoopsAround&)> visit) {
  for (const Item& item : scope) {
    visit(item, around);
    const Loop* loop = item.As<Loop>();
    if (loop == nullptr) continue;
    around.push_back(loop);
    VisitInLoops(loop->body, around, visit);
    around.pop_back();
  }
}

}  // namespace

void VisitItemsInLoops(const Program& program,
                       absl::FunctionRef<void(const Item&, const LoopsAround&)> visit) {
  LoopsAround around;
  VisitInLoops(program.body, around, visit);
}

namespace {

void VisitAccess(const Access& access, absl::FunctionRef<void(IndexId)> visit) {
  for (IndexId e : access.place) visit(e);
  for (IndexId c : access.conditions) visit(c);
}

void VisitValueIndices(const Program& program, ValueId id, absl::FunctionRef<void(IndexId)> visit) {
  VisitValues(program, id, [&](ValueId, const Value& value) {
    if (const auto* index = absl::get_if<IndexValue>(&value.node)) visit(index->index);
    if (const auto* load = absl::get_if<LoadValue>(&value.node)) VisitAccess(load->access, visit);
  });
}

}  // namespace

// The item's own expressions, not those of items inside.
void VisitIndices(const Program& program, const Item& item,
                  absl::FunctionRef<void(IndexId)> visit) {
  if (const Loop* loop = item.As<Loop>()) {
    visit(loop->begin);
    visit(loop->end);
    for (const Prefetch& prefetch : loop->prefetches) VisitAccess(prefetch.access, visit);
  } else if (const Statement* statement = item.As<Statement>()) {
    VisitAccess(statement->target, visit);
    for (IndexId c : statement->needed_if) visit(c);
    VisitValueIndices(program, statement->value, visit);
    if (statement->position.valid()) VisitValueIndices(program, statement->position, visit);
  } else {
    for (IndexId extent : program[item.As<Declaration>()->tensor].shape) visit(extent);
  }
}

}  // namespace nestor::loop
