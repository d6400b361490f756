// Sums of gated products, in register tiles. mulz(a, b) is 0 where a factor is 0, whatever the
// other one is: a gradient behind a mask sums such. It is a * b but where a factor is 0 and the
// other one inf or NaN, and there a * b is NaN, which a sum keeps. So the sum runs with products
// first, and once more with the gates only if an element of the tile is NaN then.
//
// Bits are those of the gated sum: what differs is the sign of a product that is 0, which matters
// to a sum of -0 alone. A sum that starts at +0 never is -0: x + y is only where both are.
#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "jit/codegen/translator.h"
#include "uops/mutant.h"

namespace nestor::jit {

using loop::ApplyValue;
using loop::LoadValue;
using loop::TensorId;
using loop::ValueId;

namespace {

const ApplyValue* AsApply(const loop::Program& program, ValueId id, ScalarOp op) {
  const auto* apply = absl::get_if<ApplyValue>(&program[id].node);
  return apply != nullptr && apply->op == op ? apply : nullptr;
}

const LoadValue* AsLoad(const loop::Program& program, ValueId id) {
  return absl::get_if<LoadValue>(&program[id].node);
}

bool IsElement(const loop::Program& program, ValueId id, const loop::Access& access) {
  const LoadValue* load = AsLoad(program, id);
  return load != nullptr && load->access.tensor == access.tensor && !load->access.masked &&
         load->access.place == access.place;
}

// Whether the value is one gated product, of factors that neither hold others nor follow from the tensor.
bool IsGatedProduct(const loop::Program& program, ValueId id, TensorId tensor) {
  const ApplyValue* product = AsApply(program, id, ScalarOp::kMulz);
  return product != nullptr && absl::c_all_of(product->args, [&](ValueId factor) {
    bool plain = true;
    VisitValues(program, factor, [&](ValueId inner, const loop::Value&) {
      const LoadValue* load = AsLoad(program, inner);
      plain = plain && AsApply(program, inner, ScalarOp::kMulz) == nullptr &&
              (load == nullptr || load->access.tensor != tensor);
    });
    return plain;
  });
}

// target += product, or target = target + product.
bool AddsGatedProduct(const loop::Program& program, const loop::Statement& statement) {
  const loop::Access& target = statement.target;
  if (target.masked) return false;
  if (statement.op) return statement.op == ReduceOp::kSum && IsGatedProduct(program, statement.value, target.tensor);
  const ApplyValue* sum = AsApply(program, statement.value, ScalarOp::kAdd);
  if (sum == nullptr) return false;
  const bool first = IsElement(program, sum->args[0], target);
  return (first || IsElement(program, sum->args[1], target)) &&
         IsGatedProduct(program, sum->args[first ? 1 : 0], target.tensor);
}

// target = +0
bool IsPlusZero(const loop::Program& program, const loop::Statement& statement) {
  const auto* constant = absl::get_if<loop::ConstantValue>(&program[statement.value].node);
  return !statement.op && !statement.target.masked && constant != nullptr && constant->value.bits == 0;
}

// Calls f with each statement of the item; false where it declares something, or f says so.
template <class F>
bool AllStatements(const loop::Item& item, F f) {
  bool good = true;
  VisitItems(item, [&](const loop::Item& inner) {
    const auto* statement = inner.As<loop::Statement>();
    good = good && inner.As<loop::Declaration>() == nullptr && (statement == nullptr || f(*statement));
  });
  return good;
}

}  // namespace

// Temporaries that hold nothing but parts of sums of gated products: only tiles are stored to
// them, which are such sums, and start at +0 or at such parts.
void Translator::FindPartsOfGatedSums() {
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
    const bool sums = is_tile && (IsPlusZero(program_, *statement) || AddsGatedProduct(program_, *statement));
    if (moves) sources[target].push_back(load->access.tensor);
    else if (!sums) others.insert(target);
  });
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [target, from] : sources) {
      const bool is_other = absl::c_any_of(from, [&](TensorId source) { return others.contains(source); });
      changed |= is_other && others.insert(target).second;
    }
  }
  for (const auto& [target, from] : sources) {
    const bool is_temp = program_[target].storage == loop::Storage::kTemp;
    if (is_temp && !others.contains(target)) parts_of_gated_sums_.insert(target);
  }
}

// +0, or the part of a sum that was stored before.
bool Translator::StartsSum(const loop::Statement& statement) const {
  const LoadValue* load = AsLoad(program_, statement.value);
  if (load == nullptr) return IsPlusZero(program_, statement);
  const bool moves = !statement.op && !statement.target.masked && !load->access.masked;
  return moves && parts_of_gated_sums_.contains(load->access.tensor);
}

// Of the tile that item number `declaration` of the scope declares: the item behind it that is its
// sum of gated products, where what stands between only starts the sum. nullopt: it has none.
absl::optional<size_t> Translator::GatedSumOf(const loop::Scope& scope, size_t declaration) const {
  const auto* declared = scope[declaration].As<loop::Declaration>();
  if (declared == nullptr || KindOf(declared->tensor) != HomeKind::kTile) return absl::nullopt;
  const TensorId tile = declared->tensor;
  const DType type = program_[tile].type;
  const bool is_temp = program_[tile].storage == loop::Storage::kTemp;
  if (!is_temp || (type != DType::kF32 && type != DType::kF64)) return absl::nullopt;
  const auto is_of_tile = [&](const loop::Statement& statement) { return statement.target.tensor == tile; };
  for (size_t i = declaration + 1; i < scope.size(); ++i) {
    const auto starts = [&](const loop::Statement& s) { return is_of_tile(s) && StartsSum(s); };
    const auto adds = [&](const loop::Statement& s) { return is_of_tile(s) && AddsGatedProduct(program_, s); };
    if (scope[i].As<loop::Loop>() != nullptr && AllStatements(scope[i], adds)) return i;
    if (!AllStatements(scope[i], starts)) return absl::nullopt;
  }
  return absl::nullopt;
}

// Items first .. last: what starts the tile, and its sum.
void Translator::GatedSum(const loop::Scope& scope, size_t first, size_t last, TensorId tile) {
  const auto run = [&] {
    for (size_t i = first; i <= last; ++i) Item(scope[i]);
  };
  without_gates_ = true;
  run();
  without_gates_ = false;
  if (NESTOR_MUTANT("gates_left_out")) return;
  const int done = f_->list().NewLabel();
  f_->Branch(Condition::kEqual, AnyNan(tile), Immediate(0), done);
  f_->OpenRegion();
  run();
  f_->CloseRegion();
  f_->Label(done);
}

// 0 where no element of the tile is NaN.
Operand Translator::AnyNan(TensorId tile) {
  const Registers& home = registers_[tile.value];
  const Lane lane = LaneOf(program_[tile].type);
  ValueBuilder builder(f_->list(), home.lanes);
  absl::optional<TypedValue> any;
  for (size_t i = 0; i < home.tile.size(); i += 2) {  // a comparison looks at two registers
    const Operand other = home.tile[std::min(i + 1, home.tile.size() - 1)];
    const TypedValue nan = builder.Compare(Predicate::kUnordered, lane, home.tile[i], other);
    any = any ? builder.Combine(Opcode::kMaskOr, *any, nan) : nan;
  }
  const Lane integers = LaneBytes(lane) == 4 ? Lane::kI32 : Lane::kI64;
  Operand lanes = builder.LanesOf(*any, LaneBytes(lane));
  for (int shift = home.lanes / 2; shift > 0; shift /= 2) {
    const Operand half = builder.Vector(Opcode::kLaneShift, integers, {lanes}, shift);
    lanes = builder.Vector(Opcode::kOr, integers, {lanes, half});
  }
  Operation get{Opcode::kLaneG, integers, 1, LaneBytes(lane) == 4 ? DType::kI32 : DType::kI64};
  get.operands[0] = lanes;
  return Emit(get);
}

}  // namespace nestor::jit
