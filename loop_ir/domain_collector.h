// Collects the domains of a program (Program::domains) while an op is lowered. CheckDomains reads
// all of them before each run, so a domain that holds for all sizes and $params is not kept, and no
// domain is kept twice.
#ifndef NESTOR_LOOP_IR_DOMAIN_COLLECTOR_H_
#define NESTOR_LOOP_IR_DOMAIN_COLLECTOR_H_

#include <cstddef>

#include "absl/container/flat_hash_set.h"
#include "loop_ir/program.h"
#include "uops/graph.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

class DomainCollector {
 public:
  // REQUIRES: `program` outlives this.
  explicit DomainCollector(Program& program) : program_(program), pool_(program.pool) {}

  // The loop indices of a domain of `rank` axes; the last `count` of them.
  IndexList Vars(size_t rank) { return LastVars(rank, rank); }
  IndexList LastVars(size_t rank, size_t count);

  // Adds a domain to the program, unless it asks nothing new. `places`, which may be conditions,
  // and `values` are over Vars(extents.size()). The domain holds only the affine parts of places,
  // and of values that gather.
  void Add(const Shape& extents, const IndexList& places, const IndexList& values);

 private:
  void AddAffineParts(IndexId e, IndexList& parts);
  void AddUnlessSmall(IndexId e, IndexList& list);
  void Keep(Domain domain);

  Program& program_;
  IndexPool& pool_;
  absl::flat_hash_set<Domain> domains_;
  absl::flat_hash_set<Shape> extents_;
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_DOMAIN_COLLECTOR_H_
