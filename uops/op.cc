// Look-ups by name, comparison and warnings of ops.
#include "uops/op.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace nestor {
namespace {

// Lists are short, and kept in the order of the signature, so they are searched from the front.
template <class List>
auto FindByName(const List& list, absl::string_view name) -> decltype(&list[0]) {
  for (const auto& item : list) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

// Two ops have two pools, so extents are compared by their texts, which have one normal form.
bool SameArgument(const Op& a, const Argument& x, const Op& b, const Argument& y) {
  if (x.name != y.name || x.type != y.type || x.shape_only != y.shape_only) return false;
  if (x.shape.size() != y.shape.size()) return false;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (SymbolicText(a.graph.pool(), x.shape[i]) != SymbolicText(b.graph.pool(), y.shape[i]))
      return false;
  }
  return true;
}

bool SameParam(const ParamInfo& x, const ParamInfo& y) {
  return x.name == y.name && x.type == y.type && x.value == y.value && x.low == y.low &&
         x.high == y.high;
}

bool DividesByZero(const IndexPool& pool, IndexId e) {
  bool found = false;
  VisitIndex(pool, e, [&](IndexId, const IndexNode& node) {
    const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
    found |= divides && pool.IsConst(node.args[1], 0);
  });
  return found;
}

// `e` holds symbols alone, and is negative or not below `extent` whatever these are.
bool IsBeyond(IndexPool& pool, IndexId e, IndexId extent) {
  if (pool.HasVar(e) || pool.HasLoad(e)) return false;
  const auto value = pool.ConstValue(e), above = pool.ConstValue(pool.Sub(e, extent));
  return (value && *value < 0) || (above && *above >= 0);
}

}  // namespace

Op::Op() = default;
Op::Op(const Op&) = default;
Op::Op(Op&&) noexcept = default;
Op& Op::operator=(const Op&) = default;
Op& Op::operator=(Op&&) noexcept = default;
Op::~Op() = default;

const Argument* Op::FindArgument(absl::string_view name) const { return FindByName(args, name); }
const ParamInfo* Op::FindParam(absl::string_view name) const { return FindByName(params, name); }
const Result* Op::FindResult(absl::string_view name) const { return FindByName(results, name); }

std::vector<NodeId> Op::ResultNodes() const {
  std::vector<NodeId> nodes;
  for (const Result& result : results) nodes.push_back(result.node);
  return nodes;
}

void Op::AddWarning(std::string warning) {
  if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end())
    warnings_.push_back(std::move(warning));
}

// For warnings, so only what is certain: x[3] of x: f32[3], but not x[i + 3], which a mask may be
// meant for.
std::string AlwaysOutOfBounds(IndexPool& pool, IndexId place, IndexId extent,
                              absl::string_view tensor, size_t axis) {
  if (pool.VarValue(place) >= 0) return "";
  const bool divides = DividesByZero(pool, place);
  if (!divides && !IsBeyond(pool, place, extent)) return "";
  return absl::StrCat("the index ",
                      divides ? "divides by zero and " : SymbolicText(pool, place) + " ",
                      "is always out of bounds on axis ", axis, " of ", tensor, " (",
                      SymbolicText(pool, extent), ")");
}

// Checks and warnings are not compared: they follow from the statements, which may be written in
// different ways.
bool SameOp(const Op& a, const Op& b) {
  if (a.name != b.name || a.args.size() != b.args.size() || a.params.size() != b.params.size() ||
      a.results.size() != b.results.size()) {
    return false;
  }
  for (size_t i = 0; i < a.args.size(); ++i) {
    if (!SameArgument(a, a.args[i], b, b.args[i])) return false;
  }
  for (size_t i = 0; i < a.params.size(); ++i) {
    if (!SameParam(a.params[i], b.params[i])) return false;
  }
  for (size_t i = 0; i < a.results.size(); ++i) {
    if (a.results[i].name != b.results[i].name) return false;
  }
  return SameStructure(a.graph, a.ResultNodes(), b.graph, b.ResultNodes());
}

// "x", or "x_2", "x_3", .. where that is taken
std::string FreshName(absl::string_view name, absl::FunctionRef<bool(absl::string_view)> taken) {
  std::string candidate(name);
  for (int i = 2; taken(candidate); ++i) candidate = absl::StrCat(name, "_", i);
  return candidate;
}

}  // namespace nestor
