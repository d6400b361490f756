// Any sequence of bytes may have been taken for a program: before ids are known to be valid,
// nothing may be followed or printed. Follows every id from the program's lists down, each only
// after it is known to exist. Values refer to smaller ids, so the walk ends; each value is walked
// once.
#include "loop_ir/verify_ids.h"

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

class IdChecker {
 public:
  explicit IdChecker(const Program& program) : program_(program), seen_(program.values.size()) {}

  // Before any other check: those would follow a bad id into memory that is not theirs.
  absl::Status Run() {
    for (const TensorInfo& tensor : program_.tensors) NESTOR_RETURN_IF_ERROR(Indices(tensor.shape));
    for (const auto* list : {&program_.inputs, &program_.outputs}) {
      for (TensorId id : *list) NESTOR_RETURN_IF_ERROR(Tensor(id.value));
    }
    for (const Equality& e : program_.equalities)
      NESTOR_RETURN_IF_ERROR(Indices({e.left, e.right}));
    for (const RangeCheck& c : program_.range_checks) NESTOR_RETURN_IF_ERROR(Index(c.value));
    for (int32_t var : program_.domain_vars) NESTOR_RETURN_IF_ERROR(Var(var));
    for (const auto* domains : {&program_.domains, &program_.assumptions}) {
      for (const Domain& domain : *domains) {
        for (const IndexList* list : {&domain.extents, &domain.places, &domain.values}) {
          NESTOR_RETURN_IF_ERROR(Indices(*list));
        }
      }
    }
    for (const VersionTest& test : program_.version) NESTOR_RETURN_IF_ERROR(Index(test.flag));
    NESTOR_RETURN_IF_ERROR(Items(program_.body));
    return absl::OkStatus();
  }

 private:
  static absl::Status Within(int64_t id, size_t size, const char* what) {
    if (id >= 0 && id < static_cast<int64_t>(size)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(what, " number ", id, " does not exist"));
  }
  absl::Status Tensor(int64_t id) const { return Within(id, program_.tensors.size(), "tensor"); }
  absl::Status Var(int64_t id) const { return Within(id, program_.vars.size(), "loop index"); }

  // Collects the first error of a walk, which itself cannot fail.
  absl::Status Index(IndexId id) const {
    NESTOR_RETURN_IF_ERROR(Within(id.value, program_.pool.size(), "index expression"));
    absl::Status status;
    VisitIndex(program_.pool, id, [&](IndexId, const IndexNode& node) {
      if (node.kind == IndexKind::kVar) status.Update(Var(node.value));
      if (node.kind == IndexKind::kLoad) status.Update(Tensor(node.value));
    });
    return status;
  }

  absl::Status Indices(const IndexList& list) const {
    for (IndexId id : list) NESTOR_RETURN_IF_ERROR(Index(id));
    return absl::OkStatus();
  }

  // Recursion is as deep as loops are nested; a program from a text is limited by its parser.
  absl::Status Items(const Scope& scope) {
    for (const Item& item : scope) {
      NESTOR_RETURN_IF_ERROR(absl::visit([&](const auto& node) { return Node(node); }, item.node));
    }
    return absl::OkStatus();
  }

  absl::Status Node(const Loop& loop) {
    NESTOR_RETURN_IF_ERROR(Var(loop.var));
    NESTOR_RETURN_IF_ERROR(Indices({loop.begin, loop.end}));
    for (const Prefetch& prefetch : loop.prefetches)
      NESTOR_RETURN_IF_ERROR(Access(prefetch.access));
    return Items(loop.body);
  }
  absl::Status Node(const Statement& statement) {
    NESTOR_RETURN_IF_ERROR(Access(statement.target));
    NESTOR_RETURN_IF_ERROR(Indices(statement.needed_if));
    NESTOR_RETURN_IF_ERROR(Value(statement.value));
    return statement.position.valid() ? Value(statement.position) : absl::OkStatus();
  }
  absl::Status Node(const Declaration& declaration) { return Tensor(declaration.tensor.value); }

  absl::Status Access(const loop::Access& access) {
    NESTOR_RETURN_IF_ERROR(Tensor(access.tensor.value));
    NESTOR_RETURN_IF_ERROR(Indices(access.place));
    NESTOR_RETURN_IF_ERROR(Indices(access.conditions));
    return access.fill.valid() ? Within(access.fill.value, program_.values.size(), "value")
                               : absl::OkStatus();
  }

  // Checks the value and those that it refers to, with a stack of its own.
  absl::Status Value(ValueId root) {
    NESTOR_RETURN_IF_ERROR(Within(root.value, program_.values.size(), "value"));
    std::vector<ValueId> pending = {root};
    while (!pending.empty()) {
      const ValueId id = pending.back();
      pending.pop_back();
      // Values are shared: without this a chain of x + x would be walked once for each path.
      if (seen_[id.value]) continue;
      seen_[id.value] = true;
      const size_t first = pending.size();
      NESTOR_RETURN_IF_ERROR(absl::visit([&](const auto& node) { return Operands(node, pending); },
                                         program_[id].node));
      for (size_t i = first; i < pending.size(); ++i) {
        NESTOR_RETURN_IF_ERROR(Within(pending[i].value, program_.values.size(), "value"));
        if (pending[i].value < id.value) continue;
        return absl::InvalidArgumentError(absl::StrCat("value number ", id.value,
                                                       " refers to number ", pending[i].value,
                                                       ", which does not come before it"));
      }
    }
    return absl::OkStatus();
  }

  // Appends the values that a node refers to to `out`.
  absl::Status Operands(const ConstantValue&, std::vector<ValueId>&) { return absl::OkStatus(); }
  absl::Status Operands(const ParamValue&, std::vector<ValueId>&) { return absl::OkStatus(); }
  absl::Status Operands(const IndexValue& value, std::vector<ValueId>&) {
    return Index(value.index);
  }
  absl::Status Operands(const LoadValue& value, std::vector<ValueId>& out) {
    if (value.access.fill.valid()) out.push_back(value.access.fill);
    return Access(value.access);
  }
  absl::Status Operands(const ApplyValue& value, std::vector<ValueId>& out) {
    out.insert(out.end(), value.args.begin(), value.args.end());
    const bool any = !value.args.empty();
    return any ? absl::OkStatus() : absl::InvalidArgumentError("an application has no operands");
  }

  const Program& program_;
  std::vector<bool> seen_;
};

}  // namespace

absl::Status VerifyIds(const Program& program) { return IdChecker(program).Run(); }

}  // namespace nestor::loop
