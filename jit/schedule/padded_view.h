// A copy of the elements that an operand of a contraction reads, including those outside
// of its tensor.
#ifndef NESTOR_JIT_SCHEDULE_PADDED_VIEW_H_
#define NESTOR_JIT_SCHEDULE_PADDED_VIEW_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "jit/schedule/contraction.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// An operand's elements, indexed by how far the loops inside have moved along each of its axes.
struct View {
  struct Axis {
    int of_operand;
    int64_t step = 1;    // elements of the operand from one of the view to the next
    int32_t alone = -1;  // the index that moves it, from `begin` on, if there is only one
    IndexId begin = {};
  };
  Contraction::Operand operand;
  Shape shape;  // of the axes along which the loops move
  std::vector<Axis> axes;
  IndexList first;  // by axis of the operand: the place of the least element
  IndexList place;  // in the view, by the loops' indices
  // Elements of the last axis that hold none of the operand, filled separately.
  int64_t slack = 0;
  IndexId unused = {};  // elements of the last axis that are not copied, if any
};

class ViewMaker {
 public:
  ViewMaker(Program& program, Ranges& ranges)
      : program_(program), pool_(program.pool), ranges_(ranges) {}

  // The view of all that the operand reads in the loops `inside`, the last of which is that of its
  // rows or columns, with `slack` more elements along its last axis, if that loop moves it. nullopt
  // where places are not linear in the indices, or a condition does not follow from the
  // place. REQUIRES: `ranges` is at the place of the view.
  absl::optional<View> ViewOf(const Contraction::Operand& operand, const LoopsAround& inside,
                              int64_t slack);

  // Puts the axis that the loop moves first, if it is not the last; puts it last, with slack.
  void PutFirst(const Loop& side, View& view) const;
  void PutLast(const Loop& side, int64_t slack, View& view) const;

  // Makes rows along the last axis begin at no large powers of two, where cache lines compete
  // for few sets.
  void MoveRowsApart(View& view) const;

  // Whether both hold the same elements at the places that both have. Only for views of bare loads.
  bool HaveSameElements(const View& a, const View& b) const;

  // Makes a temporary with these elements. Its declaration, and the loops that copy them, are
  // appended to `scope`. It is assumed to be small (AssumeFewElements).
  TensorId Declare(const View& view, Scope& scope);

 private:
  bool HaveSameOutside(const Access& x, const Access& y) const;
  bool KnowsIndices(const View& view, const LoopsAround& inside) const;
  bool AddAxis(int axis, IndexId e, const LoopsAround& inside, View& view);
  Scope Copy(const View& view, TensorId tensor);
  ValueId ElementOf(const View& view, const IndexList& place);
  Scope Fill(TensorId tensor, const Shape& begin, const Shape& end,
             absl::FunctionRef<ValueId(const IndexList& place)> value);

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_PADDED_VIEW_H_
