// A function of a kernel under construction: a tree of frames, each with a place for computations
// that are done once on entry, and the index expressions and addresses of the program on top of it.
//
// An index expression is computed in the outermost frame that knows the loop indices in it, and
// only once there. An address is kept per loop as a pointer that runs with the loop's index, so
// that an inner loop neither multiplies nor divides.
#ifndef NESTOR_JIT_CODEGEN_FUNCTION_BUILDER_H_
#define NESTOR_JIT_CODEGEN_FUNCTION_BUILDER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/table.h"
#include "loop_ir/program.h"
#include "uops/index/atom_sum.h"

namespace nestor::jit {

inline Operand Immediate(int64_t value) { return Operand::Immediate(value); }

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

// An index expression that may have no value: a gather from outside a tensor, or an
// overflow. `valid`: kNone where it always has one, else 0 or 1.
struct CheckedIndex {
  Operand value, valid;
};

// The computed subscript of one axis of a place; kNone: the place's own expression is used.
// `depth`: the frame on whose entry it is known; -1: known only at the current position.
struct ComputedPlace {
  Operand value;
  int depth = -1;
};

class FunctionBuilder {
 public:
  // REQUIRES: the arguments outlive this. Adds expressions to the program's pool.
  FunctionBuilder(loop::Program& program, Table& table, const std::vector<TensorPlace>& places,
                  Isa isa);

  OperationList& list() { return list_; }
  // The whole function. REQUIRES: every frame but the first is closed.
  OperationList Finish();

  // ---- Frames. Emitted operations are appended to the body of the innermost.

  // Opens a region, which is entered once at this position: a preheader and a body.
  void OpenRegion();
  // Opens the body of a loop over `var`, whose index is `value` + `offset` there. Each iteration
  // moves `value` by `step`; 0: it does not move. The frame around it is the loop's preheader.
  void OpenIteration(int32_t var, Operand value, int64_t offset, int64_t step, Operand begin);
  // Appends the frame's operations to the one around. A frame that moves gets a loop
  // around them, which goes on while value < end.
  void CloseRegion();
  void CloseIteration(Operand end);
  int Depth() const { return depth_; }

  // ---- Operations at the end of the innermost frame's body.
  Operand General(Opcode opcode, Operand a, Operand b = {}, int64_t immediate = 0);
  void Label(int label);
  void Jump(int label);
  void Branch(Condition condition, Operand a, Operand b, int label, bool likely = false);

  // The result of `operation`, computed once on entry to frame `depth`: a register of its
  // result's class. An equal operation gets the same register.
  Operand OnEntry(int depth, Operation operation);
  // The same for all that `emit` emits. It may use only what is known there.
  void EmitOnEntry(int depth, absl::FunctionRef<void()> emit);

  // ---- Index expressions

  // REQUIRES: `e` is affine, without loads; see index_expr.h.
  Operand Index(IndexId e);
  // For any expression; emitted in place.
  CheckedIndex Checked(IndexId e);
  // The value of a condition, 0 or 1; 0 if e has no value.
  Operand ConditionValue(IndexId e);
  // 1 where 0 <= e < extent, with e as Checked gave it.
  Operand InRange(const CheckedIndex& e, IndexId extent);
  // a && b, where kNone means true.
  Operand Both(Operand a, Operand b);

  // Whether the code follows `e` by strides: it is affine, without loads, and its factors
  // fit int64.
  bool IsFollowed(IndexId e) { return TermsOf(e) != nullptr; }
  // The address of the element. `computed` has numbers for the axes that are not followed.
  Memory Address(loop::TensorId tensor, const IndexList& place,
                 absl::Span<const ComputedPlace> computed);
  Memory Address(loop::TensorId tensor, const IndexList& place) {
    return Address(tensor, place, {});
  }
  // The distance in bytes from one value of `var` to the next: a constant, or a slot.
  Operand Stride(loop::TensorId tensor, const IndexList& place, int32_t var);

  // The operand that holds a loop index now, and the offset to add to it.
  std::pair<Operand, int64_t> Var(int64_t var) const;
  // The innermost frame that knows an index of `e`; 0: none.
  int FrameOf(IndexId e) const;

 private:
  struct Frame {
    std::vector<Operation> entry, latch;
    // Where the frame's body begins; it lies at the end of the list, before those of the
    // frames inside.
    size_t begin_of_body = 0;
    int32_t var = -1;
    Operand value, begin;
    int64_t offset = 0, step = 0;
    absl::flat_hash_map<IndexId, Operand> indices;
    Computed computed;
    // Running pointers: (pointer around, step slot or constant) -> pointer
    absl::flat_hash_map<std::pair<Operand, Operand>, Operand> running;

    void Clear();  // back to an empty frame that keeps its memory
  };
  // Σ factor * atom: one summand of an address.
  struct Summand {
    IndexId atom;            // invalid: 1
    ComputedPlace computed;  // instead of an atom
    std::vector<TableSlot::Part> parts;
    Operand coefficient = {};  // their sum, once it was wanted
  };
  using Summands = std::vector<Summand>;

  void PutEntryBeforeBody(const Frame& frame);
  Operation Make(Opcode opcode, Operand a, Operand b, int64_t immediate) const;
  Operand Compute(IndexId e, int depth);  // in the frame that FrameOf gives
  Operand DividesByNonzero(IndexId e);
  CheckedIndex CheckedLoad(const IndexNode& node);
  Operand IsIndex(DType type, Operand number);
  CheckedIndex CheckedArithmetic(const IndexNode& node);
  // Null: not followed.
  const AtomSum::OrderedTerms* TermsOf(IndexId e);
  static int64_t WrappingProduct(int64_t a, int64_t b);
  absl::optional<int64_t> CompactStride(const loop::TensorInfo& tensor, int axis) const;
  TableSlot::Part StridePart(loop::TensorId tensor, int axis) const;
  Summands SummandsOf(loop::TensorId tensor, const IndexList& place,
                      absl::Span<const ComputedPlace> computed);
  // The summands of a place whose axes are all followed, as most are; computed once. Null for
  // other places.
  Summands* FollowedSummands(loop::TensorId tensor, const IndexList& place);
  static void AddPart(Summands& summands, IndexId atom, const ComputedPlace& computed,
                      TableSlot::Part part);
  // A constant or a table slot.
  Operand Coefficient(const std::vector<TableSlot::Part>& parts, int64_t times = 1);
  Operand BaseOf(loop::TensorId tensor);
  int NearDepth() const;
  // `depth`: the frame that knows the summand's atom.
  Operand PointerAt(Operand pointer, Summand& summand, int depth, Memory& memory, bool last);
  Operand RunningPointer(int depth, Operand pointer, const Summand& summand);

  loop::Program& program_;
  Table& table_;
  const std::vector<TensorPlace>& places_;
  OperationList list_;
  // The open frames, outermost first, and behind them empty ones: frames come by the thousand.
  std::vector<Frame> frames_;
  int depth_ = 0;  // of the innermost open frame
  absl::flat_hash_map<IndexId, absl::optional<AtomSum::OrderedTerms>> terms_;
  absl::flat_hash_map<std::pair<loop::TensorId, IndexList>, absl::optional<Summands>> followed_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_FUNCTION_BUILDER_H_
