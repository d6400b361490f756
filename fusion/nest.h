// The facts about an item of a scope that passes need which move and merge loops.
#ifndef NESTOR_FUSION_NEST_H_
#define NESTOR_FUSION_NEST_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "loop_ir/dependence.h"
#include "loop_ir/program.h"

namespace nestor::loop {

struct LoopHead {
  int32_t var;
  IndexId begin, end;
  int64_t step;

  // Equal ranges; the indices may differ.
  friend bool SameRange(const LoopHead& a, const LoopHead& b) {
    return a.begin == b.begin && a.end == b.end && a.step == b.step;
  }
};

struct NestAccess {
  TensorId tensor;
  absl::InlinedVector<IndexId, 4> place;
  AccessKind kind;

  friend bool operator==(const NestAccess& a, const NestAccess& b) {
    return a.tensor == b.tensor && a.kind == b.kind && a.place == b.place;
  }
};

// A tensor that an item touches and does not itself declare.
struct Touch {
  TensorId tensor;
  bool reads = false;
  bool changes = false;  // assigns or accumulates
};

// Facts about one item. This is a value: it does not follow later changes of the item.
struct Nest {
  // The perfectly nested loops that the item begins with, outermost first; empty for a statement.
  // The innermost is a pivot: its body is something other than one loop.
  std::vector<LoopHead> band;
  std::vector<int32_t> vars;         // of all loops of the item, each before those in it
  std::vector<Touch> touches;        // by tensor, ascending
  std::vector<NestAccess> accesses;  // to those, each once, by tensor, ascending
  // It holds a sum of products whose operands are read again and again, from tensors of several
  // dimensions, along loops that they do not depend on: a matrix product or convolution, not a sum
  // over a row. A product that the nest stores before it sums it counts, too.
  bool contraction = false;
  // It sums a product of elements of two tensors. Inside of other loops, this may be a contraction.
  bool sums_product = false;

  const Touch* Find(TensorId tensor) const;
  absl::Span<const NestAccess> AccessesOf(TensorId tensor) const;
};

Nest NestOf(const Program& program, const Item& item);

// The same as NestOf of a loop that was made by joining two nests, computed from the facts of
// those: its body holds what theirs held, with the later one's indices renamed.
Nest JoinedNest(const Loop& joined, const Nest& earlier, const Nest& later,
                absl::FunctionRef<IndexId(IndexId)> rename);

// The order of the two items matters: one changes what the other touches.
bool Conflict(const Nest& a, const Nest& b);

// Tensors that several items touch, and whether they change them. It holds a byte for each tensor,
// so one set should be reused.
class TouchSet {
 public:
  void Add(absl::Span<const Touch> touches);
  // The order matters between an item of `touches` and one of those added.
  bool ConflictsWith(absl::Span<const Touch> touches) const;
  // Removes what was added; costs no more than adding it did.
  void Clear();

 private:
  enum class State : uint8_t { kUntouched, kRead, kChanged };
  std::vector<State> states_;    // by tensor; those past the last are untouched
  std::vector<TensorId> added_;  // those that are not untouched
};

// Whether the first and the last of `nests`, which follow each other in a scope, can be brought
// together: for each of those between, whether it depends on the first and so moves after the last;
// nullopt where the last depends on one that moves. `scratch` is empty before and after.
absl::optional<std::vector<bool>> MovedBehind(absl::Span<const Nest* const> nests,
                                              TouchSet& scratch);

// The heads of the loop's band (perfect_nest.h).
std::vector<LoopHead> HeadsOf(const Loop& outermost);
// `body` inside loops, the first outermost.
Scope Around(absl::Span<const LoopHead> heads, Scope body);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_NEST_H_
