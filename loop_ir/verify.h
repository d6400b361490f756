// The law of the loop IR. Verify checks every sentence below; lowering and every
// pass yield programs that it accepts, and all consumers rely on it.
//
//  1. Ids. Every tensor, value, index expression and loop index in use exists. A
//     value's operands and fill have smaller ids than the value.
//  2. Names. The program, tensors and loop indices are named by identifiers that
//     are no reserved words; tensors among themselves, loop indices among
//     themselves and $params among themselves have distinct names.
//  3. Declarations. Inputs and outputs are declared by the program's signature, everything else by
//     one Declaration; each tensor once. Inputs and outputs have their storage, the others are
//     temps or accumulators.
//  4. Scopes. A tensor is used only after its declaration, in the scope that holds it and below.
//  5. Loop indices. Each is that of one loop, and used only in that loop's body; or it
//     is one of Program::domain_vars, and used only in domains with so many extents.
//  6. Symbols. An index expression names dimensions, which are the symbols in the
//     inputs' shapes, and integer $params of the program.
//  7. Shapes. Extents are numbers without loads; those of inputs and outputs hold no loop index. A
//     register tensor is a temp or an accumulator and has constant, positive extents.
//  8. Checks. Equalities, range checks and the extents of domains and assumptions hold
//     numbers without loads or loop indices, and so do the tests of a version; the places and values
//     of domains are numbers without loads.
//  9. Loops. Bounds are numbers without loads; the step is positive.
// 10. Index expressions. Operands of && || ! are conditions (or 0, 1), all other
//     operands are numbers. A load is from a tensor that reads as an integer.
// 11. Accesses. A place has one number per axis. Only masked accesses have
//     conditions or a fill; conditions are conditions. A masked load has a fill of
//     the tensor's type: a constant, a $param, or an IndexValue (or a cast of one)
//     without loads and loop indices. A store has none.
// 12. Reading and writing. A shape-only input is not read, no input is written,
//     every output that may have elements (MayHaveElements) is written by some statement.
// 13. Values. A value has the type that its node gives: a constant's own, a bool
//     or float $param's, i64 of an IndexValue (of a number), ReadType of a load,
//     the op table's of an application to operands that the row takes.
// 14. Statements. A value has its target's type. An accumulation's op takes that type. argmax and
//     argmin accumulate a pair with an i64 position, into an accumulator; other statements have no
//     position. An accumulator is changed only by accumulation with its own op. The expressions
//     that say whether a statement is needed are conditions without loads.
// 15. Attributes. A parallel or vector loop carries no dependence, as CarriedTensor (dependence.h)
//     can prove. A loop with lanes is a vector loop that can run in them (lanes.h), their number is
//     a power of two, and it holds no other loop with lanes. One that is unrolled has a known
//     length, or walks register tiles (MostIterations in lanes.h). Where it is decided how vectors
//     run, a loop without a tail has a multiple of its lanes as length (LengthIsMultiple).
// 16. Proofs. In a proven program each access is proven to be in range (ranges.h) along the
//     axes that it does not mark as checked, and so are the loads in its
//     subscripts, unless it marks these.
// 17. Prefetches. The accesses that a loop prefetches are unmasked, and to tensors in scope that
//     have axes and lie in memory.
//
// The interpreter checks what depends on run-time values (places in range, reads of elements that
// were not written, overflow).
#ifndef NESTOR_LOOP_IR_VERIFY_H_
#define NESTOR_LOOP_IR_VERIFY_H_

#include "absl/status/status.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// OK, or an InvalidArgument Status "program NAME: in `STATEMENT`: ..." about the
// first violation in the order of the text. No broken program crashes it.
absl::Status Verify(const Program& program);

// Whether no extent of the tensor is the number 0.
bool MayHaveElements(const Program& program, TensorId tensor);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_VERIFY_H_
