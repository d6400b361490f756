// Finds out whether two systems of equations (recurrence.h) are the same except for their carries.
// Each system has its own carries, so hash-consing keeps two such systems apart. A Settler compares
// them here, so that it can reuse a system that the graph already has.
#ifndef NESTOR_UOPS_MATCH_RECURRENCE_H_
#define NESTOR_UOPS_MATCH_RECURRENCE_H_

#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "uops/graph.h"

namespace nestor {

// Matches the system in which carries[k] is bodies[k] against `other`, where the first equation
// is number j of `other`. Returns, for each node of the first system, the node of `other` that it
// is; nullopt where the systems differ.
// REQUIRES: `carries` and `bodies` have one size, and the systems have as many equations.
absl::optional<absl::flat_hash_map<NodeId, NodeId>> MatchRecurrence(
    const Graph& graph, absl::Span<const NodeId> carries, absl::Span<const NodeId> bodies,
    const Recurrence& other, size_t j);

}  // namespace nestor

#endif  // NESTOR_UOPS_MATCH_RECURRENCE_H_
