// The walk over a program (loop_walk.h) that computes no values: loops run, conditions and
// subscripts are evaluated, and each access is reported instead of made. Tests of the estimates of
// statistics and memory plans replay programs with it, so it follows the interpreter's order
// exactly: the conditions and place of a store come before the loads of its value, and a dropped
// store loads nothing. Values that subscripts gather come from the caller, as nothing is computed.
#include "loop_ir/access_walk_testing.h"

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "loop_ir/dependence.h"
#include "loop_ir/loop_walk.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

class AccessWalk : LoopWalk<AccessWalk> {
 public:
  AccessWalk(const SizedProgram& sized, GatheredValue gathered,
             absl::FunctionRef<void(const WalkedAccess&)> access,
             absl::FunctionRef<void(TensorId)> declare)
      : LoopWalk(sized.program()), sized_(sized), gathered_(gathered), access_(access),
        declare_(declare) {}

  // Symbols are numbers here; the extents of tensors that loops declare may still differ from
  // iteration to iteration, and the greatest ones are used for their layouts.
  absl::Status Run() {
    BindSymbols([&](IndexId id) -> absl::optional<int64_t> {
      const auto value = sized_.Over(id, {});
      return value ? absl::make_optional(value->low) : absl::nullopt;
    });
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      NESTOR_ASSIGN_OR_RETURN(std::vector<int64_t> extents,
                              sized_.Extents(TensorId{static_cast<int32_t>(i)}));
      layouts_.push_back({extents, RowMajor(extents)});
    }
    for (const Item& item : program_.body) {
      if (item.As<Declaration>() != nullptr) continue;
      DeclareFor(item);
      NESTOR_RETURN_IF_ERROR(RunItem(item));
    }
    return absl::OkStatus();
  }

 private:
  friend LoopWalk;

  struct Layout {
    std::vector<int64_t> shape, strides;
  };

  static std::vector<int64_t> RowMajor(const std::vector<int64_t>& extents) {
    std::vector<int64_t> strides(extents.size());
    int64_t stride = 1;
    for (size_t axis = extents.size(); axis-- > 0; stride *= extents[axis]) strides[axis] = stride;
    return strides;
  }

  // Temporaries of the program are born at their first use.
  void DeclareFor(const Item& item) {
    const Footprint footprint = FootprintOf(program_, item);
    for (TensorId temp : DeclaredIn(program_.body)) {
      if (footprint.Touches(temp) && declared_.insert(temp).second) declare_(temp);
    }
  }

  absl::Status Declare(TensorId tensor) {
    declare_(tensor);
    return absl::OkStatus();
  }

  absl::Status StartIteration() const { return absl::OkStatus(); }

  absl::Status UndefinedBound(const Loop& loop) const {
    return absl::InvalidArgumentError(
        absl::StrCat("a bound of loop ", program_.vars[loop.var], " is undefined"));
  }

  absl::Status RunStatement(const Statement& statement) {
    if (const absl::optional<int64_t> element = Locate(statement.target)) {
      RunValue(statement.value);
      if (statement.position.valid()) RunValue(statement.position);
      access_({statement.target.tensor, *element, statement.op.has_value(), true});
    }
    return status_;
  }

  // The loads of the value in the interpreter's order; a masked load outside is none.
  void RunValue(ValueId id) {
    const Value& value = program_[id];
    if (const auto* apply = absl::get_if<ApplyValue>(&value.node)) {
      for (ValueId arg : apply->args) RunValue(arg);
    } else if (const auto* index = absl::get_if<IndexValue>(&value.node)) {
      EvalIndex(index->index);
    } else if (const auto* load = absl::get_if<LoadValue>(&value.node)) {
      if (const auto element = Locate(load->access))
        access_({load->access.tensor, *element, true, false});
    }
  }

  const Layout& ViewOf(TensorId tensor) const { return layouts_[tensor.value]; }

  void OutOfRange(const Access& access) {
    if (status_.ok())
      status_ = absl::InvalidArgumentError(absl::StrCat("out of range: ", AccessText(access)));
  }

  // An index that loads reads an element, too.
  absl::optional<int64_t> Gather(const Access& access) {
    const auto element = Locate(access);
    if (!element) return absl::nullopt;
    access_({access.tensor, *element, true, false});
    return gathered_(access.tensor, *element);
  }

  const SizedProgram& sized_;
  const GatheredValue gathered_;
  const absl::FunctionRef<void(const WalkedAccess&)> access_;
  const absl::FunctionRef<void(TensorId)> declare_;
  std::vector<Layout> layouts_;             // by tensor
  absl::flat_hash_set<TensorId> declared_;  // of the program's temps
  absl::Status status_;
};

}  // namespace

absl::Status WalkAccesses(const SizedProgram& program, GatheredValue gathered,
                          absl::FunctionRef<void(const WalkedAccess&)> access,
                          absl::FunctionRef<void(TensorId)> declare) {
  return AccessWalk(program, gathered, access, declare).Run();
}

}  // namespace nestor::loop
