// Passes treat affine index arithmetic as exact, but i*j is not affine: where it overflows, its
// access is out of bounds, and loses that meaning once a pass replaces i by a number and decides
// the condition. So all such numbers are written down, before any pass, as domains
// (loop_ir/program.h), and an engine proves for its sizes that none overflows (interval arithmetic,
// loop_ir/intervals.h).
//
// One walk: each expression is looked through from the top, and a number that is not affine is
// written over the indices of domains, in the order of the loops around it. An expression that is
// affine, or holds a load, needs no entry; conditions and loads are looked through.
#include "fusion/assume_products.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "loop_ir/intervals.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {
namespace {

int32_t DomainVar(Program& program, size_t number) {
  while (program.domain_vars.size() <= number) program.domain_vars.push_back(program.AddVar("d"));
  return program.domain_vars[number];
}

// How far the index of a loop as lowering makes them runs from 0: to its end, or, for a loop of one
// step inside a loop that counts from the last step down, over all steps. Else nullopt.
absl::optional<IndexId> ExtentOf(IndexPool& pool, const Loop& loop,
                                 absl::Span<const Loop* const> around) {
  if (pool.IsConst(loop.begin, 0) && !pool.HasVar(loop.end)) return loop.end;
  if (!pool.IsConst(pool.Sub(loop.end, loop.begin), 1)) return absl::nullopt;
  for (const Loop* counter : around) {
    const IndexId extent = pool.Add(loop.end, pool.Var(counter->var));
    if (!pool.HasVar(extent) && pool.IsConst(counter->begin, 0) && counter->end == extent)
      return extent;
  }
  return absl::nullopt;
}

// The number over the indices of a domain, in the order of the loops around it. nullopt where a
// loop is not as lowering makes them, or is not in `around`.
absl::optional<Domain> DomainOf(Program& program, IndexId e, absl::Span<const Loop* const> around) {
  Domain domain;
  std::vector<int64_t> vars;
  CollectVars(program.pool, e, vars);
  std::vector<IndexId> renamed(program.vars.size());
  for (const Loop* loop : around) {
    if (!HoldsVar(program.pool, e, loop->var)) continue;
    const auto extent = ExtentOf(program.pool, *loop, around);
    if (!extent) return absl::nullopt;
    renamed[loop->var] = program.pool.Var(DomainVar(program, domain.extents.size()));
    domain.extents.push_back(*extent);
  }
  if (domain.extents.size() != vars.size()) return absl::nullopt;
  domain.places.push_back(SubstituteVars(program.pool, e, renamed));
  return domain;
}

class ProductFinder {
 public:
  explicit ProductFinder(Program& program) : program_(program) {
    for (const Domain& known : program.assumptions) seen_.insert(known);
  }

  bool Run() {
    VisitItemsInLoops(program_, [&](const Item& item, const LoopsAround& around) {
      if (item.As<Statement>() == nullptr) return;
      VisitIndices(program_, item, [&](IndexId e) { Collect(e, around); });
    });
    const bool changed = !found_.empty();
    for (Domain& domain : found_) program_.assumptions.push_back(std::move(domain));
    return changed;
  }

 private:
  // The largest numbers count: all parts of an assumed number are proven with it.
  void Collect(IndexId e, const LoopsAround& around) {
    const IndexNode node = program_.pool[e];
    const bool is_number = !IsCondition(node.kind) && !program_.pool.HasLoad(e);
    if (is_number && program_.pool.IsAffine(e)) return;
    if (is_number) return Assume(e, around);
    for (IndexId arg : node.args) Collect(arg, around);
  }

  void Assume(IndexId e, const LoopsAround& around) {
    absl::optional<Domain> domain = DomainOf(program_, e, around);
    if (domain && seen_.insert(*domain).second) found_.push_back(*std::move(domain));
  }

  Program& program_;
  absl::flat_hash_set<Domain> seen_;
  std::vector<Domain> found_;
};

}  // namespace

absl::StatusOr<bool> AssumeProducts(Program& program) { return ProductFinder(program).Run(); }

// All or none: a pass that cannot assume one of its numbers leaves the program as it is.
bool AssumeNumbers(Program& program, absl::Span<const IndexId> numbers,
                   absl::Span<const Loop* const> around) {
  std::vector<Domain> domains;
  for (IndexId number : numbers) {
    if (IsAlwaysSmall(program.pool, number)) continue;
    absl::optional<Domain> domain = DomainOf(program, number, around);
    if (!domain) return false;
    domains.push_back(*std::move(domain));
  }
  for (Domain& domain : domains) {
    if (!absl::c_linear_search(program.assumptions, domain))
      program.assumptions.push_back(std::move(domain));
  }
  return true;
}

}  // namespace nestor::loop
