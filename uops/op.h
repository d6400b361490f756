// An op: a micro-op graph with a signature, the meaning of one `op` of the notation once its types
// and ranks are known. Dimensions and $params stay symbols.
//
//   op pool(x: f32[N, L]; $k = 2 in [1, inf]) -> (y) {
//     y[n, i] = max[r](x[n, $k*i + r]) where i < L / $k, r < $k
//   }
//     args         x, f32, the shape {N, L}, its Input node
//     params       $k, i64, with the default 2 and the least value 1
//     results      y and the node that computes it
//
// An Op is a value: copying it copies the graph. Const use from many threads is fine.
#ifndef NESTOR_UOPS_OP_H_
#define NESTOR_UOPS_OP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "uops/graph.h"

namespace nestor {

// A tensor that the op is given.
struct Argument {
  std::string name;
  DType type;
  Shape shape;              // an extent that is just a symbol is bound by the tensor given
  bool shape_only = false;  // only its dimensions are read
  NodeId node;              // its Input
};

// A number that the op is given.
struct ParamInfo {
  std::string name;  // with its "$"
  DType type;
  // The default, and the range that `in` gives; absent bounds are not checked.
  absl::optional<Scalar> value, low, high;
};

// A tensor that the op returns; several names may share a node.
struct Result {
  std::string name;
  NodeId node;
};

// Checked when the op is run.
struct Equality {  // two extents are equal
  IndexId left, right;
  std::string message;  // names both places
};
struct RangeCheck {  // low <= value <= high
  IndexId value;
  absl::optional<int64_t> low, high;
  std::string message;
};

struct Op {
  // In the source, so that not each file that copies or ends one compiles them anew.
  Op();
  Op(const Op&);
  Op(Op&&) noexcept;
  Op& operator=(const Op&);
  Op& operator=(Op&&) noexcept;
  ~Op();

  std::string name;
  Graph graph;
  std::vector<Argument> args;
  std::vector<ParamInfo> params;
  std::vector<Result> results;
  std::vector<Equality> equalities;
  std::vector<RangeCheck> range_checks;

  // An op that the author gave as this one's gradient, or null. Its arguments are the g_<result>s
  // and any of this op's arguments and results by name; its results are g_<argument>s.
  std::shared_ptr<const Op> gradient;
  // A call of an op with such a gradient: the tagged copies number i + 1 of the graph are the
  // results of custom_calls[i].
  struct CustomCall {
    std::shared_ptr<const Op> op;
    std::vector<NodeId> args;  // in this graph
    std::vector<NodeId> results;
    std::vector<std::pair<std::string, NodeId>> value_params;
    std::vector<std::pair<std::string, IndexId>> index_params;
  };
  std::vector<CustomCall> custom_calls;

  // By name; null if there is none. Valid until the op changes.
  const Argument* FindArgument(absl::string_view name) const;
  const ParamInfo* FindParam(absl::string_view name) const;
  const Result* FindResult(absl::string_view name) const;
  std::vector<NodeId> ResultNodes() const;

  // Legal code that is hardly intended: an access that is out of bounds at all sizes. Each is one
  // line, which begins as an error would: with "LINE:COLUMN: " for an op from text.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Adds it if it is new.
  void AddWarning(std::string warning);

 private:
  std::vector<std::string> warnings_;
};

// Why the index `place` is out of bounds on an axis of `extent` elements, whatever the sizes are,
// as in "the index 3 is always out of bounds on axis 0 of x (3)"; "" where it may be in bounds.
// Recognises constants, and divisions by zero.
std::string AlwaysOutOfBounds(IndexPool& pool, IndexId place, IndexId extent,
                              absl::string_view tensor, size_t axis);

// True where the signatures (names, types, shapes) and the results' programs are
// equal.
bool SameOp(const Op& a, const Op& b);

// "name", or "name_2", "name_3"...: the first that `taken` does not hold.
std::string FreshName(absl::string_view name, absl::FunctionRef<bool(absl::string_view)> taken);

}  // namespace nestor

#endif  // NESTOR_UOPS_OP_H_
