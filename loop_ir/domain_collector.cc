// A program keeps what the op as written demanded of sizes, although passes change its loops, so
// that every engine refuses the same sizes with the same message. For most ops that is little:
// extents are dimensions, and subscripts short sums of indices, which no legal size can make
// overflow (IsAlwaysSmall). Only the rest is written down, once.
#include "loop_ir/domain_collector.h"

#include <algorithm>
#include <utility>

#include "loop_ir/intervals.h"

namespace nestor::loop {

// All domains share indices, the k-th axis of each having number k: no two are used at once.
IndexList DomainCollector::LastVars(size_t rank, size_t count) {
  while (program_.domain_vars.size() < rank) program_.domain_vars.push_back(program_.AddVar("d"));
  IndexList vars;
  for (size_t axis = rank - count; axis < rank; ++axis)
    vars.push_back(pool_.Var(program_.domain_vars[axis]));
  return vars;
}

// A place counts by its affine parts alone: what it loads is known at run time, and checked then.
void DomainCollector::Add(const Shape& extents, const IndexList& places, const IndexList& values) {
  Domain domain{extents, {}, {}};
  for (IndexId place : places) AddAffineParts(place, domain.places);
  for (IndexId value : values) {
    if (pool_.HasLoad(value)) AddAffineParts(value, domain.values);
    else AddUnlessSmall(value, domain.values);
  }
  Keep(std::move(domain));
}

// An expression that is not affine may overflow at an access, but its affine parts may not.
void DomainCollector::AddAffineParts(IndexId e, IndexList& parts) {
  const IndexNode& node = pool_[e];
  if (pool_.IsAffine(e) && !pool_.HasLoad(e) && !IsCondition(node.kind))
    return AddUnlessSmall(e, parts);
  for (IndexId arg : node.args) AddAffineParts(arg, parts);
}

void DomainCollector::AddUnlessSmall(IndexId e, IndexList& list) {
  if (IsAlwaysSmall(pool_, e)) return;
  if (std::find(list.begin(), list.end(), e) == list.end()) list.push_back(e);
}

// Keeps equal domains once, and none that hold for every size or ask nothing new.
void DomainCollector::Keep(Domain domain) {
  const bool has_new_extents = extents_.insert(domain.extents).second;
  const bool plain = std::all_of(domain.extents.begin(), domain.extents.end(),
                                 [&](IndexId e) { return IsPlainExtent(pool_, e); });
  if (domain.places.empty() && domain.values.empty() && (plain || !has_new_extents)) return;
  if (domains_.insert(domain).second) program_.domains.push_back(std::move(domain));
}

}  // namespace nestor::loop
