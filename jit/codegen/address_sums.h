// Addresses as sums: which loop indices move an access, and by how many bytes.
#ifndef NESTOR_JIT_CODEGEN_ADDRESS_SUMS_H_
#define NESTOR_JIT_CODEGEN_ADDRESS_SUMS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/table.h"
#include "loop_ir/program.h"
#include "uops/index/atom_sum.h"

namespace nestor::jit {

// Where the elements of a tensor are.
struct TensorPlace {
  enum Kind : uint8_t {
    kRegister,  // the tensor is a scalar: in a vector register
    kTable,     // in memory: the table has the address
    kPrivate,   // in the worker's private memory: the table has the offset
  };
  Kind kind = kRegister;
  Layout layout;   // in memory
  Operand scalar;  // in a register: what a load gives (of an arg accumulator the position)
};

// The computed subscript of one axis of a place; kNone: the place's own expression is used.
// `depth`: the frame on whose entry it is known; -1: known only at the current position.
struct ComputedPlace {
  Operand value;
  int depth = -1;
};

// Σ coefficient * atom: one summand of an address, in bytes.
struct AddressSummand {
  IndexId atom;            // invalid: 1
  ComputedPlace computed;  // instead of an atom
  std::vector<TableSlot::Part> parts;
  Operand coefficient = {};  // their sum, once it was wanted
};
using AddressSummands = std::vector<AddressSummand>;

// The address of x[2*i, j] of f32 is that of x, plus twice a row's bytes for each i, plus 4 for
// each j. Knows nothing of loops: who adds the summands up decides where.
class AddressSums {
 public:
  // REQUIRES: the arguments outlive this. Adds expressions to the program's pool, and slots to the
  // table.
  AddressSums(loop::Program& program, Table& table, const std::vector<TensorPlace>& places)
      : program_(program), table_(table), places_(places) {}

  // Whether the code follows `e` by strides: it is affine, without loads, and its factors
  // fit int64.
  bool IsFollowed(IndexId e) { return TermsOf(e) != nullptr; }

  AddressSummands Of(loop::TensorId tensor, const IndexList& place,
                     absl::Span<const ComputedPlace> computed);
  // Those of a place whose axes are all followed, as most are; computed once. Null for other
  // places.
  AddressSummands* OfFollowed(loop::TensorId tensor, const IndexList& place);

  // The sum of the parts, `times` times: a constant or a table slot.
  Operand Coefficient(const std::vector<TableSlot::Part>& parts, int64_t times = 1);

 private:
  // Null: not followed.
  const AtomSum::OrderedTerms* TermsOf(IndexId e);
  absl::optional<int64_t> CompactStride(const loop::TensorInfo& tensor, int axis) const;
  TableSlot::Part StridePart(loop::TensorId tensor, int axis) const;

  loop::Program& program_;
  Table& table_;
  const std::vector<TensorPlace>& places_;
  absl::flat_hash_map<IndexId, absl::optional<AtomSum::OrderedTerms>> terms_;
  absl::flat_hash_map<std::pair<loop::TensorId, IndexList>, absl::optional<AddressSummands>>
      followed_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_ADDRESS_SUMS_H_
