// Which register holds the value of an operation: common subexpressions are found here, and nowhere
// else. Frames ask for what they compute on entry, and the optimiser of operations for the rest.
#ifndef NESTOR_JIT_CODEGEN_VALUE_TABLE_H_
#define NESTOR_JIT_CODEGEN_VALUE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "jit/codegen/operations.h"

namespace nestor::jit {

// Keyed by hash: of values with equal hashes it knows the last one, which costs a chance, and no
// error.
class ValueTable {
 public:
  // The result of the operation that computes the same, and false; or that of `op`, which is added,
  // and true. `stores`: those that it may depend on. Valid until the next call.
  std::pair<Operand*, bool> TryAdd(const Operation& op, int64_t stores = 0);
  // From here on, `op.result` holds the value of `op`.
  void Add(const Operation& op, int64_t stores = 0) { Add(op, stores, HashOf(op, stores)); }

  // Values have numbers, in the order in which they were added.
  size_t size() const { return values_.size(); }
  void ForgetSince(size_t number);

 private:
  struct Value {
    Operation op;
    int64_t stores;
    size_t hash;
  };
  static size_t HashOf(const Operation& op, int64_t stores);
  void Add(const Operation& op, int64_t stores, size_t hash);

  std::vector<Value> values_;
  absl::flat_hash_map<size_t, size_t> numbers_;  // by hash
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_VALUE_TABLE_H_
