// Building ops from ops: a callee's graph becomes part of the caller's. There are no calls in a
// graph, so all that follows, fusion above all, sees one program.
//
//   NESTOR_ASSIGN_OR_RETURN(Op both, Combine("mlp", {linear, gelu}, {"y"}));
//
// Thread-safe, but for the op that is written to.
#ifndef NESTOR_UOPS_CALL_H_
#define NESTOR_UOPS_CALL_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "uops/op.h"

namespace nestor {

// An op whose graph has more micro-ops is refused, whether they come from the text or from calls,
// which may double their number at every level. A micro-op takes some hundred bytes.
constexpr int kMostMicroOps = 1 << 20;

// The images in the caller of a callee's $params (names with "$") and otherwise unbound dimensions;
// $params that are left out take their defaults. For `pad(x; $before in [0, inf])`, called with
// before = N - 1, indices holds {"$before", N - 1}.
struct CallBindings {
  absl::flat_hash_map<std::string, IndexId> indices;  // integers and dimensions
  absl::flat_hash_map<std::string, NodeId> values;    // bool and float $params: rank 0
};

// Inlines `callee` into `caller`: argument i is node args[i] of the caller's graph. Returns the
// results' nodes and adds the callee's checks to the caller. Errors (types, ranks, a missing $param
// or dimension, a $param out of its range, more than kMostMicroOps) are InvalidArgument; they name
// the callee and leave the caller unchanged except for unused nodes.
absl::StatusOr<std::vector<NodeId>> CallOp(const Op& callee, absl::Span<const NodeId> args,
                                           const CallBindings& bindings, Op& caller);

// One op that runs `ops` in order, connected by names: an argument takes the result with that name
// of an earlier op, or else is an argument of the whole op, which later ops with an argument of
// that name share; a $param is one of the whole op, with the first op's default. A dimension is the
// extent of a tensor that its op takes from an earlier op; where there is none, it is a dimension
// of the whole op, and those of one name are one size, which is checked when the op runs.
// `results` names what it returns, each the last op's that has it; empty: the results of all ops.
//   mlp of linear(x, w) -> (h) and gelu(h) -> (y), for {"y"}:  mlp(x, w) -> (y)
//   linear(x: f32[N, K], w: f32[K, M]) -> (h) and bias(h: f32[B, N], b: f32[N]):  b is f32[M]
// InvalidArgument where no op has a result of such a name, where two ops disagree about a $param,
// and as CallOp; also where the whole op's text could not be read back: `name` is no name for an
// op, a result is there twice or has the name of another argument or of a dimension, or an argument
// has the name of a dimension.
absl::StatusOr<Op> Combine(absl::string_view name, absl::Span<const Op> ops,
                           absl::Span<const std::string> results = {});

}  // namespace nestor

#endif  // NESTOR_UOPS_CALL_H_
