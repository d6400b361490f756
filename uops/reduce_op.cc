// What there is to know of each reduction, beside the graph that uses them (graph.h).
#include <iterator>

#include "uops/graph.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// In the order of ReduceOp. An arg reduction steps by its extremum; the position follows from it.
struct ReduceRow {
  const char* name;
  ScalarOp step;
};
constexpr ReduceRow kReduceRows[] = {
    {"sum", ScalarOp::kAdd}, {"prod", ScalarOp::kMul},   {"max", ScalarOp::kMax},
    {"min", ScalarOp::kMin}, {"argmax", ScalarOp::kMax}, {"argmin", ScalarOp::kMin},
    {"any", ScalarOp::kOr},  {"all", ScalarOp::kAnd},
};

}  // namespace

absl::string_view Name(ReduceOp op) { return kReduceRows[static_cast<int>(op)].name; }

absl::string_view AccumulationSign(ReduceOp op) {
  return op == ReduceOp::kSum ? "+" : op == ReduceOp::kProd ? "*" : Name(op);
}

absl::optional<ReduceOp> ReduceOpByName(absl::string_view name) {
  for (size_t i = 0; i < std::size(kReduceRows); ++i) {
    if (name == kReduceRows[i].name) return static_cast<ReduceOp>(i);
  }
  return absl::nullopt;
}

// 0 op x is x for sums, and so on: what an accumulation starts from, and an empty reduction gives.
Scalar Identity(ReduceOp op, DType type) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAny: return Scalar::Zero(type);
    case ReduceOp::kProd:
      return IsFloat(type) ? Scalar::Float(type, 1.0) : Scalar::Integer(type, 1);
    case ReduceOp::kAll: return Scalar::Of(type, true);
    case ReduceOp::kMax: return Lowest(type);
    case ReduceOp::kMin: return Highest(type);
    case ReduceOp::kArgmax:
    case ReduceOp::kArgmin: break;
  }
  NESTOR_CHECK(false, "an arg reduction has no identity");
}

absl::optional<DType> ReduceResultType(ReduceOp op, DType type) {
  const bool is_bool = type == DType::kBool;
  if (op == ReduceOp::kAny || op == ReduceOp::kAll) {
    return is_bool ? absl::optional<DType>(type) : absl::nullopt;
  }
  if (is_bool) return absl::nullopt;
  return IsArg(op) ? DType::kI64 : type;
}

ScalarOp StepOp(ReduceOp op) { return kReduceRows[static_cast<int>(op)].step; }

}  // namespace nestor
