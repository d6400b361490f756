// Writes a graph so that reading the text gives the same graph.
//
// A node that has a name (print_names.h) gets a statement of its own. Other nodes are written
// inside their users: elaboration computes an expression over just the indices that it mentions, as
// the graph's canonical form does, so the same graph comes back.
//
// The statement's ranges come back as well: what its accesses do not say, the statement does, after
// `where` (print_ranges.h).
#include "uops/notation/print.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "uops/index/operators.h"
#include "uops/invariant.h"
#include "uops/notation/print_names.h"
#include "uops/notation/print_ranges.h"
#include "uops/recurrence.h"

namespace nestor {
namespace {

using Names = StatedRanges::Names;

class Printer {
 public:
  Printer(const Op& op, const PrintOptions& options)
      : op_(op), options_(options), graph_(op.graph), pool_(op.graph.pool()), names_(op),
        ranges_(op, names_) {}

  // In the order of ids, which is topological; a block stands where the first view of it does.
  std::string Run() {
    std::string text = Header();
    if (options_.equalities) text += EqualitiesText();
    for (int i = 0; i < graph_.size(); ++i) {
      const NodeId id{i};
      if (!names_.Has(id) || graph_.As<Input>(id) != nullptr || names_.StepAxisOf(id) >= 0)
        continue;
      if (graph_.As<Carry>(id) != nullptr || IsHandedOn(id)) continue;
      const Recurrence* recurrence = graph_.As<Recurrence>(id);
      if (recurrence == nullptr) absl::StrAppend(&text, "  ", Definition(id), "\n");
      else text += BlockText(*recurrence);
    }
    for (const Result& result : op_.results) {
      if (names_.Of(result.node) != result.name) absl::StrAppend(&text, "  ", CopyOf(result), "\n");
    }
    return text + "}\n";
  }

 private:
  // Whether it is an argument that an op with a gradient of its own returns under its name: a copy,
  // so that the gradient has a place. The text has no such gradients, and one tensor of a name.
  bool IsHandedOn(NodeId id) const {
    NodeId x = id;
    for (const Map* map = graph_.As<Map>(x); map != nullptr && map->tag > 0;
         map = graph_.As<Map>(x)) {
      x = map->args[0];
    }
    return x != id && graph_.As<Input>(x) != nullptr && names_.Of(x) == names_.Of(id);
  }

  // ---- Recurrences: each system is a block, whose statements are its steps that have names.

  // The text of a block; empty for a system that has been written.
  //   for t < T {
  //     h[t, i] = tanh(h[t - 1, i] + x[t, i])
  //   }
  std::string BlockText(const Recurrence& recurrence) {
    if (!written_.insert(recurrence.carries[0]).second) return "";
    const std::vector<NodeId>& steps = names_.StepsOf(recurrence);
    const Carry& carry = *graph_.As<Carry>(recurrence.carries[0]);
    const IndexId extent = graph_.shape(recurrence.carries[0])[carry.axis];
    FindUntyped(steps);
    std::string text =
        absl::StrCat("  for ", names_.step_index(), " < ", SymbolicText(pool_, extent), " {\n");
    for (NodeId step : steps) {
      if (names_.Has(step)) absl::StrAppend(&text, "    ", Definition(step), "\n");
    }
    return text + "  }\n";
  }

  // Finds the steps that need a cast, as only other steps would give their type: as few as let all
  // types be found.
  void FindUntyped(absl::Span<const NodeId> steps) {
    std::vector<NodeId> open;
    for (NodeId step : steps) {
      if (names_.Has(step)) open.push_back(step);
    }
    absl::flat_hash_set<NodeId> typed;
    while (!open.empty()) {
      const size_t count = open.size();
      open.erase(std::remove_if(open.begin(), open.end(),
                                [&](NodeId step) {
                                  return SaysType(step, true, typed) && typed.insert(step).second;
                                }),
                 open.end());
      if (open.size() < count) continue;
      untyped_.insert(open[0]);
      typed.insert(open[0]);
      open.erase(open.begin());
    }
  }

  // Whether the text of the node has a type by itself, once the steps `typed` have theirs.
  // `is_statement`: it is written out even if it has a name.
  bool SaysType(NodeId id, bool is_statement, const absl::flat_hash_set<NodeId>& typed) const {
    if (!is_statement && names_.Has(id))
      return !names_.IsStep(id) || typed.contains(names_.Named(id));
    if (const Reindex* reindex = graph_.As<Reindex>(id)) return SaysType(reindex->x, false, typed);
    if (const Reduce* reduce = graph_.As<Reduce>(id))
      return IsArg(reduce->op) || SaysType(reduce->x, false, typed);
    if (const Map* map = graph_.As<Map>(id)) {
      const ResultType result = Row(map->op).result;
      if (result != ResultType::kSame && result != ResultType::kChoice) return true;
      const auto first = map->args.begin() + (result == ResultType::kChoice);
      return std::any_of(first, map->args.end(),
                         [&](NodeId arg) { return SaysType(arg, false, typed); });
    }
    return graph_.As<Constant>(id) == nullptr && graph_.As<Index>(id) == nullptr;
  }

  // Index names are kept apart from all others; each statement starts anew.
  // No "t", which is the step of a recurrence, and no "x", "y" or "z", which are often names of
  // tensors.
  std::string FreshIndex() {
    constexpr absl::string_view kLetters = "ijklmnopqrsuvw";
    for (;;) {
      const size_t n = next_index_++;
      std::string name = n < kLetters.size() ? std::string(1, kLetters[n]) : absl::StrCat("i", n);
      if (!names_.Taken(name)) return name;
    }
  }

  // ---- Signature

  std::string Extents(const Shape& shape) const {
    return absl::StrJoin(shape, ", ", [&](std::string* out, IndexId e) {
      absl::StrAppend(out, SymbolicText(pool_, e));
    });
  }

  // The $param with the ranges that ops which the op calls ask of it: the text has no calls. (A
  // range of an expression, or one that the default lies outside of, is lost.)
  ParamInfo Narrowed(const ParamInfo& param) const {
    ParamInfo narrowed = param;
    for (const RangeCheck& check : op_.range_checks) {
      if (SymbolicText(pool_, check.value) != param.name) continue;
      const auto at = [&](int64_t end) { return Scalar::Integer(param.type, end); };
      if (check.low && (!narrowed.low || narrowed.low->ToInt() < *check.low))
        narrowed.low = at(*check.low);
      if (check.high && (!narrowed.high || narrowed.high->ToInt() > *check.high))
        narrowed.high = at(*check.high);
    }
    const auto has_value = [](const ParamInfo& p) {
      return (!p.low || p.low->ToInt() <= p.value->ToInt()) &&
             (!p.high || p.value->ToInt() <= p.high->ToInt());
    };
    return !param.value || has_value(narrowed) ? narrowed : param;
  }

  std::string ParamText(const ParamInfo& given) const {
    const ParamInfo param = IsInteger(given.type) ? Narrowed(given) : given;
    std::string text = param.name;
    if (param.type != DType::kI64) absl::StrAppend(&text, ": ", nestor::Name(param.type));
    if (param.value) absl::StrAppend(&text, " = ", LiteralText(*param.value));
    if (param.low || param.high) {
      absl::StrAppend(&text, " in [", param.low ? LiteralText(*param.low) : "-inf", ", ",
                      param.high ? LiteralText(*param.high) : "inf", "]");
    }
    return text;
  }

  // The signature, with the element types that the op has now: type variables are gone.
  std::string Header() const {
    std::string text = absl::StrCat("op ", op_.name, "(");
    text += absl::StrJoin(op_.args, ", ", [&](std::string* out, const Argument& arg) {
      absl::StrAppend(out, arg.name, ": ", arg.shape_only ? "shape " : "", nestor::Name(arg.type),
                      "[", Extents(arg.shape), "]");
    });
    if (!op_.params.empty()) text += "; ";
    text += absl::StrJoin(op_.params, ", ", [&](std::string* out, const ParamInfo& param) {
      absl::StrAppend(out, ParamText(param));
    });
    text += ") -> (";
    text += absl::StrJoin(op_.results, ", ", [](std::string* out, const Result& result) {
      absl::StrAppend(out, result.name);
    });
    return text + ") {\n";
  }

  // An equality that several statements require is written once.
  std::string EqualitiesText() const {
    std::vector<std::string> lines;
    for (const Equality& e : op_.equalities) {
      std::string left = SymbolicText(pool_, e.left), right = SymbolicText(pool_, e.right);
      if (right < left) std::swap(left, right);
      std::string line = absl::StrCat("  # ", left, " == ", right, "\n");
      if (std::find(lines.begin(), lines.end(), line) == lines.end())
        lines.push_back(std::move(line));
    }
    return absl::StrJoin(lines, "");
  }

  // ---- Statements

  // `step_axis`: the axis along which it is stepped, or -1.
  Names StartStatement(int rank, int step_axis) {
    next_index_ = 0;
    ranges_.Start();
    Names names;
    for (int i = 0; i < rank; ++i)
      names.push_back(i == step_axis ? names_.step_index() : FreshIndex());
    return names;
  }

  // The block gives the range of the step's index.
  void SetRanges(const Names& names, const Shape& extents) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] != names_.step_index()) ranges_.Set(names[i], extents[i]);
    }
  }

  static std::string Left(const std::string& name, const Names& indices) {
    return indices.empty() ? name : absl::StrCat(name, "[", absl::StrJoin(indices, ", "), "]");
  }

  // A cast is written around a value whose type the parser would not find by itself.
  std::string Definition(NodeId id) {
    if (const Scatter* scatter = graph_.As<Scatter>(id)) return ScatterText(id, *scatter);
    const Names names = StartStatement(graph_.rank(id), names_.StepAxisOf(id));
    SetRanges(names, graph_.shape(id));
    std::string value = NodeText(id, names, 0, false);
    if (untyped_.contains(id)) value = absl::StrCat(nestor::Name(graph_.type(id)), "(", value, ")");
    return absl::StrCat(Left(names_.Of(id), names), " = ", value, ranges_.Where());
  }

  std::string CopyOf(const Result& result) {
    const Names names = StartStatement(graph_.rank(result.node), -1);
    SetRanges(names, graph_.shape(result.node));
    const std::string value = ValueText(result.node, names, 0, false);
    return absl::StrCat(Left(result.name, names), " = ", value, ranges_.Where());
  }

  // The indices run over the operand's axes; the left side says where each element goes.
  std::string ScatterText(NodeId id, const Scatter& scatter) {
    const int own_axis = names_.StepAxisOf(id);
    const int step_axis =
        own_axis < 0 ? -1 : static_cast<int>(pool_.VarValue(scatter.place[own_axis]));
    const Names names = StartStatement(graph_.rank(scatter.x), step_axis);
    SetRanges(names, graph_.shape(scatter.x));
    ranges_.Access(id, scatter.place, names);
    const std::string left = absl::StrCat(names_.Of(id), "[", PlaceText(scatter.place, names), "]");
    const std::string value = ValueText(scatter.x, names, 0, false);
    return absl::StrCat(left, ": ", nestor::Name(graph_.type(id)), "[", Extents(graph_.shape(id)),
                        "] ", AccumulationSign(scatter.op), "= ", value, ranges_.Where());
  }

  // ---- Accesses

  std::string PlaceText(const IndexList& place, const Names& names) const {
    return absl::StrJoin(place, ", ", [&](std::string* out, IndexId e) {
      absl::StrAppend(out, IndexExprText(e, names));
    });
  }

  std::string IndexExprText(IndexId e, const Names& names, int tightness = 0,
                            bool in_value = false) const {
    const auto var = [&](int64_t v) { return names[v]; };
    const auto tensor = [&](int64_t t) { return names_.Of(NodeId{static_cast<int32_t>(t)}); };
    return IndexText(pool_, e, {var, tensor, in_value}, tightness);
  }

  std::string ConditionExprText(IndexId c, const Names& names) const {
    if (const auto constant = pool_.ConstValue(c)) return *constant == 0 ? "false" : "true";
    return IndexExprText(c, names);
  }

  // ---- Values

  // A node as an operand: by its name, or written out.
  std::string ValueText(NodeId id, const Names& names, int tightness, bool bare_literal) {
    if (!names_.Has(id)) return NodeText(id, names, tightness, bare_literal);
    ranges_.Access(id, names);
    return Left(names_.Of(id), names);
  }

  // A node written out over its axes. `bare_literal`: a literal takes its type from the operand
  // beside it.
  std::string NodeText(NodeId id, const Names& names, int tightness, bool bare_literal) {
    struct Visitor {
      Printer& self;
      NodeId id;
      const Names& names;
      int tightness;
      bool bare_literal;
      std::string operator()(const Input& n) const { return n.name; }
      std::string operator()(const Param& n) const { return n.name; }
      std::string operator()(const Constant& n) const {
        return self.ConstantText(n.value, bare_literal);
      }
      std::string operator()(const Index& n) const {
        self.ranges_.Loads(n.expr, names);
        return self.IndexExprText(n.expr, names, tightness, true);
      }
      std::string operator()(const Reindex& n) const {
        return self.ReindexText(id, n, names, tightness, bare_literal);
      }
      std::string operator()(const Map& n) const { return self.MapText(id, n, names, tightness); }
      std::string operator()(const Reduce& n) const { return self.ReduceText(n, names); }
      std::string operator()(const Scatter&) const { return Unnamed(); }
      std::string operator()(const Carry&) const { return Unnamed(); }
      std::string operator()(const Recurrence&) const { return Unnamed(); }
      static std::string Unnamed() { NESTOR_CHECK(false, "it is always named"); }
    };
    return absl::visit(Visitor{*this, id, names, tightness, bare_literal}, graph_[id].op);
  }

  static std::string ConstantText(const Scalar& value, bool bare) {
    if (bare || value.type == DType::kBool) return LiteralText(value);
    return absl::StrCat(nestor::Name(value.type), "(", LiteralText(value), ")");
  }

  // A repetition is not written: the operand mentions fewer indices.
  std::string ReindexText(NodeId id, const Reindex& n, const Names& names, int tightness,
                          bool bare_literal) {
    if (names_.IsRepeat(id)) {
      Names kept;
      for (IndexId e : n.place) kept.push_back(names[pool_.VarValue(e)]);
      return ValueText(n.x, kept, tightness, bare_literal);
    }
    ranges_.Access(n.x, n.place, names);
    std::string text =
        absl::StrCat(names_.Of(n.x), "[", PlaceText(n.place, names), FillText(n.fill));
    const char* separator = " if ";
    for (IndexId condition : n.conditions) {
      ranges_.Loads(condition, names);
      absl::StrAppend(&text, separator, ConditionExprText(condition, names));
      separator = ", ";
    }
    return text + "]";
  }

  std::string FillText(NodeId fill) const {
    if (const Param* param = graph_.As<Param>(fill)) return absl::StrCat(" | ", param->name);
    const Scalar& value = graph_.As<Constant>(fill)->value;
    return value.bits == 0 ? "" : absl::StrCat(" | ", LiteralText(value));
  }

  // As an operator where there is one for the type, else as a function. A literal stands bare if
  // another operand gives it its type, else in a cast.
  std::string MapText(NodeId id, const Map& map, const Names& names, int tightness) {
    const DType operand = graph_.type(map.args.back());
    const bool choice = Row(map.op).result == ResultType::kChoice;
    bool typed = false;  // some operand gives a bare literal its type
    for (size_t i = choice ? 1 : 0; i < map.args.size(); ++i)
      typed |= !names_.IsConstantOperand(map.args[i]);
    if (const InfixOperator* infix = InfixOf(map.op, operand)) {
      // The left operand may be of the same tightness, as chains are read from the left; the right
      // may not. Comparisons do not chain, so both sides of one must bind more tightly.
      const std::string left =
          ValueText(map.args[0], names, infix->tightness + infix->Compares(), typed);
      const std::string right = ValueText(map.args[1], names, infix->tightness + 1, typed);
      const std::string text = absl::StrCat(left, " ", infix->text, " ", right);
      return infix->tightness < tightness ? absl::StrCat("(", text, ")") : text;
    }
    if (const PrefixOperator* prefix = PrefixOf(map.op, operand)) {
      const std::string text =
          absl::StrCat(prefix->text, ValueText(map.args[0], names, kPrefixTightness, false));
      return kPrefixTightness < tightness ? absl::StrCat("(", text, ")") : text;
    }
    std::string text = absl::StrCat(
        map.op == ScalarOp::kCast ? nestor::Name(graph_.type(id)) : Row(map.op).name, "(");
    for (size_t i = 0; i < map.args.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ", ",
                      ValueText(map.args[i], names, 0, typed && !(choice && i == 0)));
    }
    return text + ")";
  }

  // Fresh names for the reduced axes, which come last in the operand.
  std::string ReduceText(const Reduce& reduce, const Names& names) {
    Names inner = names, own;
    const Shape& shape = graph_.shape(reduce.x);
    for (int i = 0; i < reduce.count; ++i) {
      own.push_back(FreshIndex());
      inner.push_back(own.back());
      ranges_.Set(own.back(), shape[names.size() + i]);
    }
    const std::string body = ValueText(reduce.x, inner, 0, false);
    return absl::StrCat(nestor::Name(reduce.op), "[", absl::StrJoin(own, ", "), "](", body, ")");
  }

  const Op& op_;
  const PrintOptions options_;
  const Graph& graph_;
  const IndexPool& pool_;
  const NodeNames names_;
  absl::flat_hash_set<NodeId> written_;  // systems, by their first carries
  absl::flat_hash_set<NodeId> untyped_;  // steps that are written with a cast
  // State of the statement that is being written:
  size_t next_index_ = 0;
  StatedRanges ranges_;
};

}  // namespace

std::string PrintOp(const Op& op, const PrintOptions& options) {
  return Printer(op, options).Run();
}

}  // namespace nestor
