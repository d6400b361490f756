// The interpreter's walk, with places for values.
#include "loop_ir/access_walk.h"

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "loop_ir/dependence.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

class Walk {
 public:
  Walk(const SizedProgram& sized, GatheredValue gathered, absl::FunctionRef<void(const WalkedAccess&)> access,
       absl::FunctionRef<void(TensorId)> declare)
      : sized_(sized), program_(sized.program()), gathered_(gathered), access_(access), declare_(declare),
        vars_(program_.vars.size()) {}

  absl::Status Run() {
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      NESTOR_ASSIGN_OR_RETURN(std::vector<int64_t> extents, sized_.Extents(TensorId{static_cast<int32_t>(i)}));
      extents_.push_back(std::move(extents));
    }
    for (const Block& block : program_.blocks) {
      for (const Item& item : block.body) {
        DeclareFor(item);
        RunItem(item);
      }
    }
    return status_;
  }

 private:
  void DeclareFor(const Item& item) {
    const Footprint footprint = FootprintOf(program_, item);
    for (TensorId temp : program_.temps) {
      if (footprint.Touches(temp) && declared_.insert(temp).second) declare_(temp);
    }
  }

  void RunItem(const Item& item) {
    if (!status_.ok()) return;
    if (const auto* loop = item.As<Loop>()) RunLoop(*loop);
    else if (const auto* statement = item.As<Statement>()) RunStatement(*statement);
    else declare_(item.As<Declaration>()->tensor);
  }

  void RunLoop(const Loop& loop) {
    const auto begin = Index(loop.begin), end = Index(loop.end);
    NESTOR_CHECK(begin && end, ToText(program_));  // SizedProgram evaluates all bounds
    for (int64_t i = *begin; i < *end; i += loop.step) {
      vars_[loop.var] = Progression::Single(i);
      for (const Item& item : loop.body) RunItem(item);
    }
  }

  void RunStatement(const Statement& statement) {
    const absl::optional<int64_t> element = Locate(statement.target);
    if (!element) return;
    RunValue(statement.value);
    if (statement.position.valid()) RunValue(statement.position);
    access_({statement.target.tensor, *element, statement.op.has_value(), true});
  }

  void RunValue(ValueId id) {
    const Value& value = program_[id];
    if (const auto* apply = absl::get_if<ApplyValue>(&value.node)) {
      for (ValueId arg : apply->args) RunValue(arg);
    } else if (const auto* index = absl::get_if<IndexValue>(&value.node)) {
      Index(index->index);
    } else if (const auto* load = absl::get_if<LoadValue>(&value.node)) {
      if (const auto element = Locate(load->access)) access_({load->access.tensor, *element, true, false});
    }
  }

  absl::optional<int64_t> Locate(const Access& access) {
    for (IndexId condition : access.conditions) {
      const auto holds = Index(condition);
      if (!holds || *holds == 0) return absl::nullopt;
    }
    const auto element = Locate(access.tensor, access.place);
    if (!element && !access.masked && status_.ok()) {
      status_ = absl::InvalidArgumentError(absl::StrCat("out of range: ", ToText(program_, access)));
    }
    return element;
  }

  absl::optional<int64_t> Locate(TensorId tensor, absl::Span<const IndexId> place) {
    int64_t element = 0;
    for (size_t axis = 0; axis < place.size(); ++axis) {
      const int64_t extent = extents_[tensor.value][axis];
      const auto i = Index(place[axis]);
      if (!i || *i < 0 || *i >= extent) return absl::nullopt;
      element = element * extent + *i;
    }
    return element;
  }

  absl::optional<int64_t> Index(IndexId id) {
    const IndexNode& node = program_.pool[id];
    if (node.kind == IndexKind::kLoad) {
      const TensorId tensor{static_cast<int32_t>(node.value)};
      const auto element = Locate(tensor, node.args);
      if (!element) return absl::nullopt;
      access_({tensor, *element, true, false});
      return gathered_(tensor, *element);
    }
    if (node.args.empty()) {
      const auto value = sized_.Over(id, vars_);
      return value ? absl::make_optional(value->low) : absl::nullopt;
    }
    const auto a = Index(node.args[0]);
    if (node.kind == IndexKind::kNot) return a ? absl::make_optional<int64_t>(*a == 0) : absl::nullopt;
    const auto b = Index(node.args[1]);
    return a && b ? CheckedApply(node.kind, *a, *b) : absl::nullopt;
  }

  const SizedProgram& sized_;
  const Program& program_;
  const GatheredValue gathered_;
  const absl::FunctionRef<void(const WalkedAccess&)> access_;
  const absl::FunctionRef<void(TensorId)> declare_;
  VarValues vars_;
  std::vector<std::vector<int64_t>> extents_;  // by tensor
  absl::flat_hash_set<TensorId> declared_;     // of the program's temps
  absl::Status status_;
};

}  // namespace

absl::Status WalkAccesses(const SizedProgram& program, GatheredValue gathered,
                          absl::FunctionRef<void(const WalkedAccess&)> access,
                          absl::FunctionRef<void(TensorId)> declare) {
  return Walk(program, gathered, access, declare).Run();
}

}  // namespace nestor::loop
