// The values lie in a stack, so that the last ones can be forgotten; a map from hashes finds them.
#include "jit/codegen/value_table.h"

#include "absl/hash/hash.h"

namespace nestor::jit {

size_t ValueTable::HashOf(const Operation& op, int64_t stores) {
  const size_t hash = absl::HashOf(op.opcode, op.lane, op.lanes, op.immediate, op.condition,
                                   op.operands[0], op.operands[1], op.operands[2]);
  if (!HasMemory(op)) return hash;
  const Memory& memory = op.memory;
  return absl::HashOf(hash, op.type, memory.base, memory.index, memory.scale, memory.displacement,
                      stores);
}

std::pair<Operand*, bool> ValueTable::TryAdd(const Operation& op, int64_t stores) {
  const size_t hash = HashOf(op, stores);
  if (const auto number = numbers_.find(hash); number != numbers_.end()) {
    Value& value = values_[number->second];
    if (value.stores == stores && SameComputation(value.op, op)) return {&value.op.result, false};
  }
  Add(op, stores, hash);
  return {&values_.back().op.result, true};
}

void ValueTable::Add(const Operation& op, int64_t stores, size_t hash) {
  numbers_[hash] = values_.size();
  values_.push_back({op, stores, hash});
}

void ValueTable::ForgetSince(size_t number) {
  for (; values_.size() > number; values_.pop_back()) numbers_.erase(values_.back().hash);
}

}  // namespace nestor::jit
