// Recurrences that sum or multiply the values they meet, or do both: scans, and linear recurrences.
#ifndef NESTOR_LOOP_IR_SCANS_H_
#define NESTOR_LOOP_IR_SCANS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Values that depend on elements of some tensors.
class DependentValues {
 public:
  explicit DependentValues(const Program& program) : program_(program) {}

  // Looks at `value` and what it is computed from, and returns whether it is dependent: whether it
  // is computed from elements of `tensors`, or from values that are known to be dependent by then.
  bool Add(ValueId value, const absl::flat_hash_set<TensorId>& tensors);
  bool Contains(ValueId value) const { return values_.contains(value.value); }

 private:
  const Program& program_;
  absl::flat_hash_set<int32_t> values_;
};

// value = (end op[n - 1] terms[n - 1]) .. op[0] terms[0], where `end` is a load.
struct ScanPath {
  struct Term {
    ScalarOp op;  // add, mul, max or min
    ValueId value;
    bool negated;  // it is subtracted
  };
  std::vector<Term> terms;  // none of which is dependent
  ValueId end;

  // Whether it adds and multiplies.
  bool IsLinear() const;
  // The op of all terms. REQUIRES: there is one, and not IsLinear().
  ScalarOp op() const { return terms.front().op; }
};

// Appends to `path` the operations that lead from the value, a dependent one, to the load that it
// depends on: one kind of operation alone, or sums and products, in the type of the value. False
// where no such path does.
bool FollowPath(const Program& program, ValueId value, const DependentValues& dependent,
                ScanPath& path);

// The statements of a program by which a recurrence is a sum, a product, or linear, so that its
// steps may run in another order (SEMANTICS 5): what some tensors hold at one step of a loop leads
// to what they hold at a later one through assignments, one to each of them, each of which reads
// one element of them and adds to it, or multiplies it by, a value that does not depend on them.
class Scans {
 public:
  struct Link {
    absl::optional<ReduceOp> op;  // sum or prod; none: the recurrence is linear
    ScanPath path;
  };

  // REQUIRES: the program outlives this and does not change.
  explicit Scans(const Program& program);
  // Null where the statement is not one of these. REQUIRES: it is in the program.
  const Link* Find(const Statement& statement) const {
    const auto link = links_.find(&statement);
    return link == links_.end() ? nullptr : &link->second;
  }

 private:
  void Visit(const Scope& scope);
  void FindIn(const Loop& steps);

  const Program& program_;
  absl::flat_hash_map<const Statement*, Link> links_;
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_SCANS_H_
