// Packing an operand copies it; what the nest computes from the operand alone may then be computed
// in the copy, once for each element instead of once for each product: in f32(x[i, k]) * w[k, j],
// the cast. The part to take is found in one bottom-up walk over the summed value: a subtree reads
// the element (or one at a fixed distance, as the other half of a pair), or something else that
// differs from step to step, or both; the largest subtrees of the first kind are the candidates.
// There must be one, and it must be as wide as a lane, since narrower values are no faster to read
// from the copy than to compute.
#include "jit/schedule/operand_part.h"

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "loop_ir/affine.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// Narrower values are no faster to read from a copy.
constexpr int kLeastLaneBytes = 4;

class PartFinder {
 public:
  PartFinder(const Program& program, ValueId load)
      : program_(program), load_(load), access_(absl::get<LoadValue>(program[load].node).access) {}

  ValueId Find(ValueId value) {
    Visit(value);
    const bool is_one =
        !parts_.empty() && absl::c_all_of(parts_, [&](ValueId part) { return part == parts_[0]; });
    return is_one && ByteSize(program_[parts_[0]].type) >= kLeastLaneBytes ? parts_[0] : load_;
  }

 private:
  // Whether a part of the value reads the element, or one at a fixed distance, and whether anything
  // else in it differs from step to step.
  struct Reads {
    bool it = false, more = false;
  };

  // Where a value mixes the element with other reads, its operands that read the element alone are
  // parts: they are as large as parts can be.
  Reads Visit(ValueId id) {
    const auto& node = program_[id].node;
    if (const auto* load = absl::get_if<LoadValue>(&node)) {
      const bool is_it = id == load_ || IsBeside(load->access);
      return {is_it, !is_it};
    }
    if (const auto* index = absl::get_if<IndexValue>(&node))
      return {false, !MovesWithIt(index->index)};
    const auto* apply = absl::get_if<ApplyValue>(&node);
    if (apply == nullptr) return {};
    Reads all;
    absl::InlinedVector<ValueId, 3> with_it;
    for (const ValueId arg : apply->args) {
      const Reads reads = Visit(arg);
      if (reads.it && !reads.more) with_it.push_back(arg);
      all = {all.it || reads.it, all.more || reads.more};
    }
    if (all.more) parts_.insert(parts_.end(), with_it.begin(), with_it.end());
    return all;
  }

  // Whether the places are at a fixed distance from each other.
  bool IsBeside(const Access& other) const {
    if (access_.tensor != other.tensor || !access_.conditions.empty() || !other.conditions.empty())
      return false;
    for (size_t axis = 0; axis < access_.place.size(); ++axis) {
      if (!DifferenceOf(program_.pool, access_.place[axis], other.place[axis])) return false;
    }
    return true;
  }

  // Whether the index moves only with loops that the place moves with, too.
  bool MovesWithIt(IndexId index) const {
    bool does = true;
    VisitIndex(program_.pool, index, [&](IndexId, const IndexNode& node) {
      const auto holds = [&](IndexId e) {
        return HoldsVar(program_.pool, e, static_cast<int32_t>(node.value));
      };
      if (node.kind == IndexKind::kVar) does = does && absl::c_any_of(access_.place, holds);
    });
    return does;
  }

  const Program& program_;
  const ValueId load_;
  const Access access_;
  absl::InlinedVector<ValueId, 2> parts_;
};

}  // namespace

ValueId PartReading(const Program& program, ValueId value, ValueId load) {
  return PartFinder(program, load).Find(value);
}

// Then the fill takes part in the computation, and is not the fill of the whole.
bool ComputesOfMasked(const Program& program, ValueId part) {
  bool masked = false;
  VisitLoads(program, part,
             [&](ValueId id, const Access& access) { masked |= id != part && access.masked; });
  return masked;
}

}  // namespace nestor::loop
