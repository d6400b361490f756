// Which values are the same expression: a number per expression.
#ifndef NESTOR_FUSION_VALUE_NUMBERS_H_
#define NESTOR_FUSION_VALUE_NUMBERS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Two values have the same number if and only if they are written alike; loads of a tensor before
// and after a change of it are different.
class ValueNumbers {
 public:
  explicit ValueNumbers(const Program& program) : program_(program) {}

  int Of(ValueId id);

  // From now on, a load from `tensor` gives another value.
  void Change(TensorId tensor) {
    ++versions_[tensor.value];
    known_.clear();
  }

  // A load of `access` is the value `number` until the tensor is changed.
  void Alias(const Access& access, int number);

 private:
  using Key = std::vector<int64_t>;
  Key KeyOf(const Value& value);
  void AppendAccess(const Access& access, Key& key);
  void AppendIndex(IndexId e, Key& key);

  const Program& program_;
  absl::flat_hash_map<Key, int> numbers_;
  absl::flat_hash_map<int32_t, int> known_;  // by value, while nothing changes
  absl::flat_hash_map<std::string, int64_t> params_;
  absl::flat_hash_map<int32_t, int64_t> versions_;  // by tensor
};

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_VALUE_NUMBERS_H_
