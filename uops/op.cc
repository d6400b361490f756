#include "uops/op.h"

#include "absl/strings/str_cat.h"

// Look-ups by name and comparison of ops.

namespace nestor {
namespace {

template <class List>
auto FindByName(const List& list, absl::string_view name) -> decltype(&list[0]) {
  for (const auto& item : list) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

bool SameArgument(const Op& a, const Argument& x, const Op& b, const Argument& y) {
  if (x.name != y.name || x.type != y.type || x.shape_only != y.shape_only) return false;
  if (x.shape.size() != y.shape.size()) return false;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (SymbolicText(a.graph.pool(), x.shape[i]) != SymbolicText(b.graph.pool(), y.shape[i])) return false;
  }
  return true;
}

bool SameParam(const ParamInfo& x, const ParamInfo& y) {
  return x.name == y.name && x.type == y.type && x.value == y.value && x.low == y.low &&
         x.high == y.high;
}

}  // namespace

const Argument* Op::FindArgument(absl::string_view name) const { return FindByName(args, name); }
const ParamInfo* Op::FindParam(absl::string_view name) const { return FindByName(params, name); }
const Result* Op::FindResult(absl::string_view name) const { return FindByName(results, name); }

std::vector<NodeId> Op::ResultNodes() const {
  std::vector<NodeId> nodes;
  for (const Result& result : results) nodes.push_back(result.node);
  return nodes;
}

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

std::string FreshName(absl::string_view name, absl::FunctionRef<bool(absl::string_view)> taken) {
  std::string candidate(name);
  for (int i = 2; taken(candidate); ++i) candidate = absl::StrCat(name, "_", i);
  return candidate;
}

}  // namespace nestor
