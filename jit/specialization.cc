// Code for one size must refuse others, with the message that names the size. The scheduled program
// has numbers in its arguments' shapes. With the symbols restored it binds calls as before, and an
// equality for each number refuses sizes that it was not made for.
//
//   scheduled for N = 8:  x: f32[8]      signature: x: f32[N], and N == 8
#include "jit/specialization.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "uops/index/index_expr.h"
#include "uops/invariant.h"
#include "uops/message.h"

namespace nestor::jit {
namespace {

using loop::Program;
using loop::TensorId;

absl::Status Error(const Signature& signature, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("program ", signature.name, ": ", what));
}

absl::Status CheckParam(const Signature& signature, const ParamInfo& param, int64_t value) {
  const bool in_range =
      (!param.low || value >= param.low->ToInt()) && (!param.high || value <= param.high->ToInt());
  // The value must fit the $param's own type, and, as an index, int64.
  const Scalar narrow = Scalar::Integer(param.type, value);
  if (in_range && narrow.FitsInt64() && narrow.ToInt() == value) return absl::OkStatus();
  return Error(signature, absl::StrCat(param.name, " = ", value, " is out of its range"));
}

absl::Status CheckConstant(const Signature& signature, const std::vector<std::string>& known,
                           const std::string& name, int64_t value) {
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string list =
        known.empty() ? "" : absl::StrCat(" (there are ", absl::StrJoin(known, ", "), ")");
    return Error(signature, absl::StrCat("no dimension or integer $param is named '", name, "'",
                                         DidYouMean(name, known), list));
  }
  for (const ParamInfo& param : *signature.params) {
    if (param.name == name) return CheckParam(signature, param, value);
  }
  if (value >= 0 && value <= kMaxExtent) return absl::OkStatus();
  return Error(signature, absl::StrCat("dimension ", name, " = ", value,
                                       value < 0 ? " is negative" : " exceeds 2^48"));
}

// Copies expressions over symbols and the indices of domains from one program into another.
// The two programs number their symbols, indices and expressions apart.
class Importer {
 public:
  Importer(const Program& from, Program& to) : from_(from), to_(to) {
    for (size_t i = 0; i < from.domain_vars.size(); ++i) {
      if (i == to.domain_vars.size())
        to.domain_vars.push_back(to.AddVar(from.vars[from.domain_vars[i]]));
      var_of_[from.domain_vars[i]] = to.domain_vars[i];
    }
  }

  IndexId operator()(IndexId e) {
    return CopyIndex(
        from_.pool, e, to_.pool,
        [&](const IndexNode& node, absl::Span<const IndexId>) -> absl::optional<IndexId> {
          if (node.kind != IndexKind::kVar) return absl::nullopt;
          return to_.pool.Var(var_of_.at(node.value));
        });
  }
  IndexList operator()(const IndexList& list) {
    IndexList copy;
    for (IndexId e : list) copy.push_back((*this)(e));
    return copy;
  }

 private:
  const Program& from_;
  Program& to_;
  absl::flat_hash_map<int64_t, int32_t> var_of_;
};

void TakeShapes(Program& program, const std::vector<TensorId>& tensors, const Program& general,
                const std::vector<TensorId>& from, Importer& import) {
  for (size_t i = 0; i < tensors.size(); ++i)
    program[tensors[i]].shape = import(general[from[i]].shape);
}

}  // namespace

absl::Status CheckConstants(const Signature& signature, const SizeClass& constants) {
  std::vector<std::string> known = UnboundDimensions(signature, {});
  for (const ParamInfo& param : *signature.params) {
    if (IsInteger(param.type)) known.push_back(param.name);
  }
  for (const auto& [name, value] : constants)
    NESTOR_RETURN_IF_ERROR(CheckConstant(signature, known, name, value));
  return absl::OkStatus();
}

Program WithSignature(Program scheduled, const Program& general, const SizeClass& constants) {
  Importer import(general, scheduled);
  TakeShapes(scheduled, scheduled.inputs, general, general.inputs, import);
  TakeShapes(scheduled, scheduled.outputs, general, general.outputs, import);
  scheduled.params = general.params;
  scheduled.equalities = general.equalities;
  for (Equality& equality : scheduled.equalities) {
    equality.left = import(equality.left);
    equality.right = import(equality.right);
  }
  scheduled.range_checks = general.range_checks;
  for (RangeCheck& check : scheduled.range_checks) check.value = import(check.value);
  // With numbers in place of symbols, an expression may have been folded to one that does
  // not overflow.
  scheduled.domains = general.domains;
  for (loop::Domain& domain : scheduled.domains) {
    for (IndexList* list : {&domain.extents, &domain.places, &domain.values}) *list = import(*list);
  }
  // A call with another size fails on this equality, and a $param that a call leaves out has the
  // value.
  for (const auto& [name, value] : constants) {
    scheduled.equalities.push_back({scheduled.pool.Symbol(name), scheduled.pool.Const(value),
                                    absl::StrCat(name, ", which the program was specialized to")});
    for (ParamInfo& param : scheduled.params) {
      if (param.name == name) param.value = Scalar::Integer(param.type, value);
    }
  }
  return scheduled;
}

}  // namespace nestor::jit
