// Which registers hold which values, at one operation of a list after the other: value numbering
// (Cocke and Schwartz, "Programming languages and their compilers", 1970), with a table whose
// entries go in and out of scope with control flow (as in Briggs, Cooper and Simpson, "Value
// numbering", 1997).
#ifndef NESTOR_JIT_CODEGEN_KNOWN_VALUES_H_
#define NESTOR_JIT_CODEGEN_KNOWN_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/value_table.h"

namespace nestor::jit {

// What a walk in the order of the list has found so far. A value is known from the operation that
// computes it on, until the walk comes to a place that control also reaches without passing that
// operation: a label ends the knowledge of values found since the first branch to it, both ends of
// a loop that of all values.
//
// A register that is written more than once has a version for each write so far; a load depends on
// all stores before it, because any of them may have written what it reads, unless it is invariant.
class KnownValues {
 public:
  explicit KnownValues(size_t registers) : versions_(registers, 0) {}

  // The result of the operation that has computed the same, and whose value is still known; null:
  // there was none, and that of `op` is known from here on. Valid until the next call.
  const Operand* FindOrAdd(const Operation& op) {
    const auto [result, is_new] = values_.TryAdd(Key(op), StoresOf(op));
    return is_new ? nullptr : result;
  }
  // The result of `op` is known from here on, in place of another one.
  void Add(const Operation& op) { values_.Add(Key(op), StoresOf(op)); }

  // The walk passes these.
  void Write(const Operand& result) { ++versions_[result.value]; }
  void Store() { ++stores_; }
  void Control(const Operation& op);

 private:
  // Its registers carry their versions: equal ones are the same versions of the same registers.
  Operation Key(Operation op) const;
  int64_t StoresOf(const Operation& op) const {
    return HasMemory(op) && !op.invariant ? stores_ : 0;
  }

  std::vector<int> versions_;  // by register: its writes so far
  int64_t stores_ = 0;
  ValueTable values_;  // the known ones, in the order in which they were found
  // By label: how many were known at the first branch to it.
  absl::flat_hash_map<int64_t, size_t> known_at_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_KNOWN_VALUES_H_
