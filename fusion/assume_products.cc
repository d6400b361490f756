// One walk: each expression is looked through from the top, and a number that is not affine
// is written over the indices of domains, in the order of the loops around it.
#include "fusion/assume_products.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "uops/index_expr.h"

namespace nestor::fusion {
namespace {

using loop::Domain;
using loop::Program;

class Walk {
 public:
  explicit Walk(Program& program) : program_(program) {
    for (const Domain& known : program.assumptions) seen_.insert(known);
  }

  bool Run() {
    for (const loop::Block& block : program_.blocks) Look(block.body);
    const bool changed = !found_.empty();
    for (Domain& domain : found_) program_.assumptions.push_back(std::move(domain));
    return changed;
  }

 private:
  void Look(const loop::Scope& scope) {
    for (const loop::Item& item : scope) {
      if (item.As<loop::Statement>() != nullptr) {
        VisitIndices(program_, item, [&](IndexId e) { Collect(e); });
      }
      const auto* loop = item.As<loop::Loop>();
      if (loop == nullptr) continue;
      around_.push_back(loop);
      Look(loop->body);
      around_.pop_back();
    }
  }

  void Collect(IndexId e) {
    const IndexNode node = program_.pool[e];
    const bool is_number = !IsCondition(node.kind) && !program_.pool.HasLoad(e);
    if (is_number && program_.pool.IsAffine(e)) return;
    if (is_number) return Assume(e);
    for (IndexId arg : node.args) Collect(arg);
  }

  void Assume(IndexId e) {
    Domain domain;
    std::vector<IndexId> renamed(program_.vars.size());
    for (const loop::Loop* loop : around_) {
      if (!HoldsVar(program_.pool, e, loop->var)) continue;
      if (!program_.pool.IsConst(loop->begin, 0) || program_.pool.HasVar(loop->end)) return;
      renamed[loop->var] = program_.pool.Var(DomainVar(domain.extents.size()));
      domain.extents.push_back(loop->end);
    }
    domain.places.push_back(CopyIndex(program_.pool, e, program_.pool, [&](const IndexNode& node, absl::Span<const IndexId>) {
      return node.kind == IndexKind::kVar ? absl::optional<IndexId>(renamed[node.value]) : absl::nullopt;
    }));
    if (seen_.insert(domain).second) found_.push_back(std::move(domain));
  }

  int32_t DomainVar(size_t number) {
    while (program_.domain_vars.size() <= number) program_.domain_vars.push_back(program_.AddVar("d"));
    return program_.domain_vars[number];
  }

  Program& program_;
  std::vector<const loop::Loop*> around_;
  absl::flat_hash_set<Domain> seen_;
  std::vector<Domain> found_;
};

}  // namespace

absl::StatusOr<bool> AssumeProducts(Program& program) { return Walk(program).Run(); }

}  // namespace nestor::fusion
