// The loops that copy a contraction's operands into the order in which tiles read them.
#ifndef NESTOR_JIT_SCHEDULE_OPERAND_COPIES_H_
#define NESTOR_JIT_SCHEDULE_OPERAND_COPIES_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/packed_layout.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

class OperandCopies {
 public:
  // REQUIRES: the arguments outlive this; `layout` is measured before the first call.
  OperandCopies(Program& program, Ranges& ranges, const Contraction& nest,
                const PackedLayout& layout)
      : program_(program), pool_(program.pool), ranges_(ranges), make_(program), nest_(nest),
        layout_(layout) {}

  // The copy of all rows, or of all columns that are not copied to panels. If `flag` is given, its
  // loops run only where it is 1.
  Scope CopyOf(const PackedOperand& packed, absl::optional<IndexId> flag);

 private:
  using Steps = std::vector<IndexId>;  // by sum; invalid: any
  using OverSteps = absl::FunctionRef<Scope(const Steps& steps)>;

  Scope CopyRows(const PackedOperand& packed, absl::optional<IndexId> flag);
  Scope CopyRaggedBlocks(const PackedOperand& packed, size_t level, IndexId begin, IndexId rows,
                         absl::optional<Hull> copied, absl::optional<IndexId> flag);
  IndexId RoundedUp(IndexId step);
  std::vector<Hull> PartsBeside(const absl::optional<Hull>& taken, const Hull& bounds);
  Scope CopyRectangle(const PackedOperand& packed, IndexId first, IndexId count, const Hull& steps);
  Scope CopyColumns(const PackedOperand& packed, absl::optional<IndexId> flag);
  bool LieAcross(const Access& access) const;
  Scope Element(const PackedOperand& packed, const TilePlace& at);
  Scope OverHulls(const PackedOperand& packed, OverSteps body, Steps steps, size_t begin,
                  size_t end);
  IndexId Guarded(absl::optional<IndexId> flag, IndexId count);

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  LoopMaker make_;
  const Contraction& nest_;
  const PackedLayout& layout_;
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_OPERAND_COPIES_H_
