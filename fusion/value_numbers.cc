// Value numbering by hashing (Cocke and Schwartz, 1970): the key of a value is its operation and
// the numbers of its operands, so equal trees get equal numbers in one step each. Index expressions
// are hash-consed in their pool already; those that hold loads carry the versions of the tensors
// that they load from. A change counts the tensor's version up, so that nothing has to be removed
// from the table.
#include "fusion/value_numbers.h"

#include "fusion/steps.h"
#include "uops/mutant.h"

namespace nestor::loop {

// Operands are numbered before, so a key is a node over numbers: equal trees have equal keys.
int ValueNumbers::Of(ValueId id) {
  const auto known = known_.find(id.value);
  if (known != known_.end()) return known->second;
  const Key key = KeyOf(program_[id]);
  const int next = static_cast<int>(numbers_.size());
  const int number = numbers_.try_emplace(key, next).first->second;
  known_.emplace(id.value, number);
  return number;
}

// Kind, type and parts; operands by their own numbers, so that a key is short however deep the
// value is.
ValueNumbers::Key ValueNumbers::KeyOf(const Value& value) {
  CountSteps(1);
  Key key = {static_cast<int64_t>(value.node.index()), static_cast<int64_t>(value.type)};
  struct Visitor {
    ValueNumbers& self;
    Key& key;
    void operator()(const ConstantValue& v) const {
      const bool is_zero = NESTOR_MUTANT("zeros_of_both_signs_are_one") && IsFloat(v.value.type) &&
                           v.value.ToDouble() == 0;
      key.push_back(is_zero ? 0 : static_cast<int64_t>(v.value.Canonical().bits));
    }
    void operator()(const ParamValue& v) const {
      key.push_back(self.params_.try_emplace(v.name, self.params_.size()).first->second);
    }
    void operator()(const IndexValue& v) const { self.AppendIndex(v.index, key); }
    void operator()(const LoadValue& v) const { self.AppendAccess(v.access, key); }
    void operator()(const ApplyValue& v) const {
      key.push_back(static_cast<int64_t>(v.op));
      for (ValueId arg : v.args) key.push_back(self.Of(arg));
    }
  };
  absl::visit(Visitor{*this, key}, value.node);
  return key;
}

// The version counts the writes to the tensor so far: a load before a write and one after it are
// different values.
void ValueNumbers::AppendAccess(const Access& access, Key& key) {
  key.push_back(access.tensor.value);
  key.push_back(
      NESTOR_MUTANT("common_subexpression_across_write") ? 0 : versions_[access.tensor.value]);
  key.push_back(access.masked);
  for (IndexId e : access.place) AppendIndex(e, key);
  if (!access.masked) return;
  key.push_back(Of(access.fill));
  for (IndexId e : access.conditions) AppendIndex(e, key);
}

void ValueNumbers::AppendIndex(IndexId e, Key& key) {
  key.push_back(e.value);
  if (!program_.pool.HasLoad(e)) return;
  VisitIndex(program_.pool, e, [&](IndexId, const IndexNode& node) {
    if (node.kind == IndexKind::kLoad) key.push_back(versions_[static_cast<int32_t>(node.value)]);
  });
}

void ValueNumbers::Alias(const Access& access, int number) {
  Key key = {static_cast<int64_t>(Value{LoadValue{}, DType::kF32}.node.index()),
             static_cast<int64_t>(ReadType(program_[access.tensor]))};
  AppendAccess(access, key);
  numbers_.insert_or_assign(key, number);
  known_.clear();
}

}  // namespace nestor::loop
