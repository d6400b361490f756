// Sums of gated products, in register tiles. mulz(a, b) is 0 if a factor is 0, whatever the other
// one is: gradients through a mask sum such products. It equals a * b unless one factor is 0 and
// the other inf or NaN, and then a * b is NaN, which a sum keeps. So the sum first runs with
// products, and once more with the gates only if an element of the tile is then NaN.
//
// The bits are those of the gated sum: the only difference is the sign of a product that is 0,
// which matters only if the sum is -0. A sum that starts at +0 is never -0: x + y is -0 only if
// both are. But a sum of fused multiply-adds becomes -0 when a product smaller than the least
// number is rounded; from there on the gated sum may be +0 while the other one stays -0, so that an
// element of -0 at the end requires the gates, too.
#include "jit/codegen/translate_gated_sums.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "jit/target/products.h"
#include "loop_ir/dependence.h"
#include "loop_ir/elements.h"
#include "uops/mutant.h"

namespace nestor::jit {

using loop::ApplyValue;
using loop::IsElement;
using loop::LoadValue;
using loop::TensorId;
using loop::ValueId;

namespace {

const LoadValue* AsLoad(const loop::Program& program, ValueId id) {
  return absl::get_if<LoadValue>(&program[id].node);
}

// Whether the factor of a gated product contains no other gated product, and does not depend on
// the tensor.
bool IsPlainFactor(const loop::Program& program, ValueId factor, TensorId tensor) {
  bool plain = true;
  VisitValues(program, factor, [&](ValueId inner, const loop::Value&) {
    const LoadValue* load = AsLoad(program, inner);
    plain = plain && AsApply(program, inner, ScalarOp::kMulz) == nullptr &&
            (load == nullptr || load->access.tensor != tensor);
  });
  return plain;
}

bool IsGatedProduct(const loop::Program& program, ValueId id, TensorId tensor) {
  const ApplyValue* product = AsApply(program, id, ScalarOp::kMulz);
  return product != nullptr && absl::c_all_of(product->args, [&](ValueId factor) {
           return IsPlainFactor(program, factor, tensor);
         });
}

// target = target + product, rounded once.
bool IsFusedStep(const loop::Program& program, const loop::Statement& statement) {
  const auto step = statement.op ? absl::nullopt : GatedStepOf(program, statement.value);
  const TensorId target = statement.target.tensor;
  return step && IsElement(program, step->t, statement.target) &&
         IsPlainFactor(program, step->a, target) && IsPlainFactor(program, step->b, target);
}

// target += product, or target = target + product.
bool AddsGatedProduct(const loop::Program& program, const loop::Statement& statement) {
  const loop::Access& target = statement.target;
  if (target.masked) return false;
  if (statement.op)
    return statement.op == ReduceOp::kSum &&
           IsGatedProduct(program, statement.value, target.tensor);
  if (IsFusedStep(program, statement)) return true;
  const ApplyValue* sum = AsApply(program, statement.value, ScalarOp::kAdd);
  if (sum == nullptr) return false;
  const bool first = IsElement(program, sum->args[0], target);
  return (first || IsElement(program, sum->args[1], target)) &&
         IsGatedProduct(program, sum->args[first ? 1 : 0], target.tensor);
}

// target = +0
bool AssignsPlusZero(const loop::Program& program, const loop::Statement& statement) {
  return !statement.op && !statement.target.masked && IsPlusZero(program, statement.value);
}

// Calls f with each statement of the item; false if the item declares something, or f
// returns false.
template <class F>
bool AllStatements(const loop::Item& item, F f) {
  bool good = true;
  VisitItems(item, [&](const loop::Item& inner) {
    const auto* statement = inner.As<loop::Statement>();
    good =
        good && inner.As<loop::Declaration>() == nullptr && (statement == nullptr || f(*statement));
  });
  return good;
}

}  // namespace

GatedSums::GatedSums(const loop::Program& program, const Tensors& tensors)
    : program_(program), tensors_(tensors) {
  FindParts();
}

// Finds temporaries that hold only partial sums of gated products: all values stored to them are
// tiles that are such sums, and start at +0 or at such parts.
void GatedSums::FindParts() {
  absl::flat_hash_map<TensorId, std::vector<TensorId>> sources;
  absl::flat_hash_set<TensorId> others;
  VisitItems(program_, [&](const loop::Item& item) {
    const auto* statement = item.As<loop::Statement>();
    if (statement == nullptr) return;
    const TensorId target = statement->target.tensor;
    const bool is_tile = KindOf(target) == HomeKind::kTile;
    const LoadValue* load = AsLoad(program_, statement->value);
    const bool moves = !statement->op && load != nullptr && !load->access.masked &&
                       is_tile != (KindOf(load->access.tensor) == HomeKind::kTile) &&
                       program_[load->access.tensor].storage == loop::Storage::kTemp;
    const bool sums = is_tile && (AssignsPlusZero(program_, *statement) ||
                                  AddsGatedProduct(program_, *statement));
    if (moves) sources[target].push_back(load->access.tensor);
    else if (!sums) others.insert(target);
  });
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [target, from] : sources) {
      const bool is_other =
          absl::c_any_of(from, [&](TensorId source) { return others.contains(source); });
      changed |= is_other && others.insert(target).second;
    }
  }
  for (const auto& [target, from] : sources) {
    const bool is_temp = program_[target].storage == loop::Storage::kTemp;
    if (is_temp && !others.contains(target)) parts_.insert(target);
  }
}

// Whether it assigns +0, or the part of a sum that was stored before.
bool GatedSums::StartsSum(const loop::Statement& statement) const {
  const LoadValue* load = AsLoad(program_, statement.value);
  if (load == nullptr) return AssignsPlusZero(program_, statement);
  const bool moves = !statement.op && !statement.target.masked && !load->access.masked;
  return moves && parts_.contains(load->access.tensor);
}

absl::optional<size_t> GatedSums::LastItemOf(const loop::Scope& scope, size_t declaration) const {
  const auto* declared = scope[declaration].As<loop::Declaration>();
  if (declared == nullptr || KindOf(declared->tensor) != HomeKind::kTile) return absl::nullopt;
  const TensorId tile = declared->tensor;
  const DType type = program_[tile].type;
  const bool is_temp = program_[tile].storage == loop::Storage::kTemp;
  if (!is_temp || (type != DType::kF32 && type != DType::kF64)) return absl::nullopt;
  const auto is_of_tile = [&](const loop::Statement& statement) {
    return statement.target.tensor == tile;
  };
  const auto starts = [&](const loop::Statement& s) { return is_of_tile(s) && StartsSum(s); };
  size_t i = declaration + 1;
  while (i < scope.size() && AllStatements(scope[i], starts)) ++i;
  loop::Footprint::Set read, copied;
  bool adds = false;
  const auto adds_or_copies = [&](const loop::Statement& s) {
    adds = adds || is_of_tile(s);
    if (!is_of_tile(s)) copied.insert(s.target.tensor);
    return is_of_tile(s) ? AddsGatedProduct(program_, s) : IsCopy(s);
  };
  absl::optional<size_t> last;
  for (; i < scope.size() && scope[i].As<loop::Loop>() != nullptr; ++i) {
    adds = false;
    copied.clear();
    if (!AllStatements(scope[i], adds_or_copies) || !adds) break;
    read.merge(FootprintOf(program_, scope[i]).reads);
    if (absl::c_any_of(copied, [&](TensorId tensor) { return read.contains(tensor); })) break;
    last = i;
  }
  return last;
}

// Whether it copies an element to a temporary that is not a tile.
bool GatedSums::IsCopy(const loop::Statement& statement) const {
  const LoadValue* load = AsLoad(program_, statement.value);
  const TensorId target = statement.target.tensor;
  return !statement.op && load != nullptr && load->access.tensor != target &&
         program_[target].storage == loop::Storage::kTemp && KindOf(target) != HomeKind::kTile &&
         KindOf(load->access.tensor) != HomeKind::kTile;
}

void GatedSumTranslator::GatedSum(absl::Span<const loop::Item> items, TensorId tile,
                                  absl::FunctionRef<void()> run) {
  ValueTranslator::Ids ungated;
  for (const loop::Item& item : items) {
    AllStatements(item, [&](const loop::Statement& statement) {
      const auto step = GatedStepOf(program_, statement.value);
      if (step) ungated.insert({step->gated_a.value, step->gated_b.value});
      return true;
    });
  }
  const bool is_fused = !ungated.empty();
  values_.WithoutGates(std::move(ungated), run);
  if (NESTOR_MUTANT("gates_left_out")) return;
  const int done = f_.list().NewLabel();
  f_.Branch(Condition::kEqual, AnyDoubtful(tile, is_fused), Immediate(0), done, /*likely=*/true);
  f_.OpenRegion();
  run();
  f_.CloseRegion();
  f_.Label(done);
}

// 0 if no element of the tile is NaN, nor, with `zeros`, -0.
Operand GatedSumTranslator::AnyDoubtful(TensorId tile, bool zeros) {
  const TensorRegisters& home = tensors_.Registers(tile);
  const Lane lane = f_.LaneOf(program_[tile].type);
  const Lane integers = LaneBytes(lane) == 4 ? Lane::kI32 : Lane::kI64;
  ValueBuilder builder(f_.list(), home.lanes);
  absl::optional<TypedValue> any;
  const auto add = [&](const TypedValue& found) {
    any = any ? builder.Combine(Opcode::kMaskOr, *any, found) : found;
  };
  for (size_t i = 0; i < home.tile.size(); i += 2) {  // a comparison looks at two registers
    add(builder.Compare(Predicate::kUnordered, lane, home.tile[i],
                        home.tile[std::min(i + 1, home.tile.size() - 1)]));
  }
  const Operand minus_zero = builder.ConstantOf(integers, uint64_t{1} << (8 * LaneBytes(lane) - 1));
  for (size_t i = 0; zeros && i < home.tile.size(); ++i) {
    add(builder.Compare(Predicate::kEqual, integers, home.tile[i], minus_zero));
  }
  Operand lanes = builder.LanesOf(*any, LaneBytes(lane));
  for (int shift = home.lanes / 2; shift > 0; shift /= 2) {
    const Operand half = builder.Vector(Opcode::kLaneShift, integers, {lanes}, shift);
    lanes = builder.Vector(Opcode::kOr, integers, {lanes, half});
  }
  Operation get{Opcode::kLaneG, integers, 1, LaneBytes(lane) == 4 ? DType::kI32 : DType::kI64};
  get.operands[0] = lanes;
  return f_.Emit(get);
}

}  // namespace nestor::jit
