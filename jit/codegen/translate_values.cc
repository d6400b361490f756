// Values. A value is computed in the lanes of the surrounding loop; an element that all lanes share
// is loaded to all of them, and a scalar that was computed before the loop is broadcast.
//
// Masked loads are here, not with the other accesses: where one is not made it gives its fill,
// which is a value. So values build on accesses, and accesses need no values.
#include "jit/codegen/translate_values.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "jit/target/products.h"
#include "loop_ir/affine.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {

using loop::Access;
using loop::ValueId;

// How many registers the value takes if the operand that needs most is computed first; too many for
// a value that several others contain. (Sethi and Ullman, "The generation of optimal code for
// arithmetic expressions", 1970.)
int RegisterNeeds::Of(ValueId id) {
  for (size_t i = needs_.size(); i <= static_cast<size_t>(id.value); ++i) {
    const auto* apply = absl::get_if<loop::ApplyValue>(&program_.values[i].node);
    int need = 1;
    if (apply != nullptr) {
      absl::InlinedVector<int, 3> of_operands;
      for (ValueId arg : apply->args) of_operands.push_back(needs_[static_cast<size_t>(arg.value)]);
      std::sort(of_operands.begin(), of_operands.end(), std::greater<>());
      for (size_t k = 0; k < of_operands.size(); ++k)
        need = std::max(need, of_operands[k] + static_cast<int>(k));
    }
    needs_.push_back(need);
  }
  return needs_[static_cast<size_t>(id.value)];
}

const TypedValue* ValueTranslator::Memo::Find(ValueId id) const {
  const auto known = values_.find(id.value);
  return known == values_.end() ? nullptr : &known->second;
}

// Values of one statement that are used twice are computed once; their registers may then not be
// reused as results (Holds).
void ValueTranslator::Memo::Add(ValueId id, const TypedValue& value) {
  values_.emplace(id.value, value);
  operands_.insert(value.operand);
}

void ValueTranslator::Memo::Clear() {
  values_.clear();
  operands_.clear();
}

// Operands first, without recursion: a sum may have any number of terms.
TypedValue ValueTranslator::Value(ValueId root) {
  std::vector<std::pair<ValueId, bool>> stack = {{root, false}};  // whether its operands are known
  while (!stack.empty()) {
    const auto [id, ready] = stack.back();
    stack.pop_back();
    if (memo_.Find(id) != nullptr) continue;
    const auto* apply = absl::get_if<loop::ApplyValue>(&program_[id].node);
    if (ready || apply == nullptr) {
      memo_.Add(id, Compute(id));
      continue;
    }
    stack.emplace_back(id, true);
    absl::InlinedVector<ValueId, 3> args(apply->args.begin(), apply->args.end());
    if (ungated_.contains(id.value)) args = {apply->args[2]};
    std::stable_sort(args.begin(), args.end(),
                     [&](ValueId a, ValueId b) { return needs_.Of(a) > needs_.Of(b); });
    for (size_t i = args.size(); i-- > 0;) stack.emplace_back(args[i], false);
  }
  return *memo_.Find(root);
}

// The value from operands that are in `memo_` already.
TypedValue ValueTranslator::Compute(ValueId id) {
  struct Visitor {
    ValueTranslator& self;
    DType type;
    TypedValue operator()(const loop::ConstantValue& v) const {
      ValueBuilder builder = self.f_.Builder();
      return builder.Constant(v.value);
    }
    TypedValue operator()(const loop::ParamValue& v) const { return self.Param(v.name, type); }
    TypedValue operator()(const loop::IndexValue& v) const { return self.IndexNumber(v.index); }
    TypedValue operator()(const loop::LoadValue& v) const { return self.Load(v.access); }
    TypedValue operator()(const loop::ApplyValue& v) const {
      absl::InlinedVector<TypedValue, 3> args;
      for (ValueId arg : v.args) args.push_back(*self.memo_.Find(arg));
      ValueBuilder builder = self.f_.Builder();
      const bool is_product = v.op == ScalarOp::kMulz && self.without_gates_;
      return ApplyScalarOp(builder, is_product ? ScalarOp::kMul : v.op, args, type);
    }
  };
  // A copy: translating may add to the program.
  const loop::Value value = program_[id];
  if (ungated_.contains(id.value))
    return *memo_.Find(absl::get<loop::ApplyValue>(value.node).args[2]);
  return absl::visit(Visitor{*this, value.type}, value.node);
}

void ValueTranslator::WithoutGates(Ids ungated, absl::FunctionRef<void()> run) {
  ungated_ = std::move(ungated);
  without_gates_ = true;
  run();
  without_gates_ = false;
  ungated_.clear();
}

// The table holds the bits of Scalar; a 16-bit float is widened there.
TypedValue ValueTranslator::Param(const std::string& name, DType type) {
  if (NESTOR_MUTANT("param_read_at_compile_time")) {
    for (const ParamInfo& param : program_.params) {
      ValueBuilder builder = f_.Builder();
      if (param.name == name && param.value) return builder.Constant(*param.value);
    }
  }
  TableSlot slot{TableSlot::kParam};
  slot.param = name;
  ValueBuilder builder = f_.Builder();
  return FromLoaded(builder, type,
                    builder.Vector(Opcode::kBroadcastGeneral, builder.LaneOf(type),
                                   {Operand::Table(table_.Slot(slot))}));
}

// The number of the first lane, and that of lane k: k times the coefficient of the lanes' index
// more.
TypedValue ValueTranslator::IndexNumber(IndexId e) {
  const CheckedIndex index = f_.Checked(e);
  if (index.valid.kind != Operand::kNone) f_.Trap(index.valid);
  ValueBuilder builder = f_.Builder();
  const Operand first = builder.Vector(Opcode::kBroadcastGeneral, Lane::kI64, {index.value});
  if (f_.lanes().count == 1) return {DType::kI64, first};
  const auto step = loop::StrideIn(program_.pool, e, f_.lanes().var);
  NESTOR_CHECK(step.has_value(), "an index value that lanes cannot follow");
  if (*step == 0) return {DType::kI64, first};
  const Operand steps = f_.list().AddConstant({Lane::kI64, 0, static_cast<uint64_t>(*step)});
  return {DType::kI64, builder.Vector(Opcode::kAdd, Lane::kI64, {first, steps})};
}

// A masked access whose mask is not needed is a plain one.
TypedValue ValueTranslator::Load(const Access& access) {
  if (!access.masked) return accesses_.LoadUnmasked(access);
  const Location location = accesses_.Locate(access);
  if (location.valid.kind == Operand::kNone) return LoadLanes(access, location);
  return LoadMasked(access, location);
}

// Loads without testing the part of the mask that all lanes share.
TypedValue ValueTranslator::LoadLanes(const Access& access, const Location& location) {
  const TypedValue loaded = accesses_.LoadAt(access, location);
  // A masked load gives 0 in the lanes that it leaves out.
  if (location.lanes.kind == Operand::kNone || IsPlusZero(program_, access.fill)) return loaded;
  ValueBuilder builder = f_.Builder();
  const TypedValue fill = Value(access.fill);
  return {loaded.type, builder.Vector(Opcode::kBlend, f_.LaneOf(loaded.type),
                                      {location.lanes, loaded.operand, fill.operand})};
}

// The fill, over which the element is loaded only if the access is made:
//
//   r = move fill
//   branch if not valid to outside
//   r = load ..
//   outside:
TypedValue ValueTranslator::LoadMasked(const Access& access, const Location& location) {
  TypedValue result = Value(access.fill);
  if (NESTOR_MUTANT("fill_of_wrong_sign") && IsFloat(result.type)) {
    ValueBuilder builder = f_.Builder();
    result = ApplyScalarOp(builder, ScalarOp::kNeg, {result}, result.type);
  }
  const bool is_mask = result.type == DType::kBool;
  TypedValue target = result;
  target.operand = is_mask ? f_.list().NewMask() : f_.list().NewVector();
  Operation move{is_mask ? Opcode::kMaskMove : Opcode::kMove, f_.LaneOf(target.type),
                 static_cast<uint8_t>(f_.lanes().count)};
  move.operands[0] = result.operand;
  f_.EmitTo(target.operand, move);
  const int outside = f_.list().NewLabel();
  f_.Branch(Condition::kEqual, location.valid, Immediate(0), outside);
  f_.OpenRegion();
  Assign(target, LoadLanes(access, location));
  f_.CloseRegion();
  f_.Label(outside);
  return target;
}

// An operation that has just computed the value writes to the target directly.
void ValueTranslator::Assign(TypedValue& target, const TypedValue& value) {
  std::vector<Operation>& operations = f_.list().operations;
  const bool is_mask = target.type == DType::kBool;
  const bool fresh = !memo_.Holds(value.operand) && !operations.empty() &&
                     f_.IsOwn(value.operand) && operations.back().result == value.operand;
  if (is_mask && value.mask_lane_bytes != target.mask_lane_bytes) {
    ValueBuilder builder = f_.Builder();
    const Operand mask = builder.MaskFor(value, target.mask_lane_bytes);
    return Assign(target, {DType::kBool, mask, target.mask_lane_bytes});
  }
  if (fresh) {
    operations.back().result = target.operand;
    return;
  }
  Operation move{is_mask ? Opcode::kMaskMove : Opcode::kMove, f_.LaneOf(target.type),
                 static_cast<uint8_t>(f_.lanes().count)};
  if (is_mask) move.lane = IntegerLane(target.mask_lane_bytes);
  move.operands[0] = value.operand;
  f_.EmitTo(target.operand, move);
}

}  // namespace nestor::jit
