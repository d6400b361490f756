// The table that a kernel's functions are given: one 64-bit slot for each number that
// does not change while the program runs. Whoever runs the kernel fills it: addresses for each run,
// the rest once for each shape. Hence no code evaluates expressions of symbols alone.
#ifndef NESTOR_JIT_CODEGEN_TABLE_H_
#define NESTOR_JIT_CODEGEN_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "loop_ir/program.h"

namespace nestor::jit {

struct TableSlot {
  enum Kind : uint8_t {
    kAddress,      // of the first element of `tensor`
    kOffset,       // of `tensor` in the private memory of a worker, in bytes
    kPositions,    // from an arg accumulator's address to its positions, in bytes
    kIndex,        // the value of `parts[0].symbols`, an expression over symbols
    kDivisor,      // the same, but 1 instead of 0: safe to divide by
    kCoefficient,  // bytes: the sum of the parts
    kParam,        // the bits of the $param `param`
  };
  // factor * symbols * stride of an axis.
  struct Part {
    int64_t factor = 1;
    IndexId symbols;        // invalid: 1
    loop::TensorId tensor;  // invalid: 1; else its stride along `axis`, in bytes
    int32_t axis = 0;
    friend bool operator==(const Part& x, const Part& y) {
      return x.factor == y.factor && x.symbols == y.symbols && x.tensor == y.tensor &&
             x.axis == y.axis;
    }
    template <class H>
    friend H AbslHashValue(H h, const Part& part) {
      return H::combine(std::move(h), part.factor, part.symbols, part.tensor, part.axis);
    }
  };

  Kind kind;
  loop::TensorId tensor = {};
  std::vector<Part> parts = {};
  std::string param = {};
  friend bool operator==(const TableSlot& x, const TableSlot& y) {
    return x.kind == y.kind && x.tensor == y.tensor && x.parts == y.parts && x.param == y.param;
  }
  template <class H>
  friend H AbslHashValue(H h, const TableSlot& slot) {
    return H::combine(std::move(h), slot.kind, slot.tensor, slot.parts, slot.param);
  }
};

struct Table {
  std::vector<TableSlot> slots;
  // The number of the slot that holds this; an equal one is shared.
  int Slot(const TableSlot& slot);

 private:
  absl::flat_hash_map<TableSlot, int> numbers_;
};

// How the elements of an argument lie along an axis.
enum class AxisLayout : uint8_t {
  kUnit,     // next to each other
  kZero,     // all in one place
  kAny,      // at a stride that the table gives
  kCompact,  // without gaps, as in all later axes: the stride is the product of their extents
};
// By axis. Compact tensors are kCompact, ..., kCompact, kUnit.
using Layout = std::vector<AxisLayout>;
Layout CompactLayout(size_t rank);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TABLE_H_
