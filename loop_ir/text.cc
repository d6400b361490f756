// Prints programs. The text must parse back to the same program, and must not depend on how the
// program was built, as tests compare texts.
//
// The canonical form of index expressions orders loop indices and tensors by number. Numbers depend
// on how a program was built, so everything is printed through a copy in a pool of the writer's
// own, whose numbers follow the order of the text: they are those that reading the text gives.
// Names of loop indices are kept apart from those of dimensions and tensors here: a Program does
// not guarantee that, but the reader of a text needs it.
#include "loop_ir/text.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "uops/index/operators.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

// Old numbers in the order of the text; numbers that do not occur there come last.
// loops with the numbers 7, 3, 9 in the order of the text   ->   0, 1, 2
class Numbering {
 public:
  int64_t NewNumber(int64_t old) {
    const auto [it, inserted] = numbers_.try_emplace(old, static_cast<int64_t>(olds_.size()));
    if (inserted) olds_.push_back(old);
    return it->second;
  }
  int64_t OldNumber(int64_t number) const { return olds_[number]; }

 private:
  absl::flat_hash_map<int64_t, int64_t> numbers_;
  std::vector<int64_t> olds_;
};

class Writer {
 public:
  // Numbers tensors and indices by the order of their declarations, by which terms are sorted: the
  // text does not depend on ids.
  explicit Writer(const Program& program) : program_(program), var_names_(program.vars) {
    for (TensorId t : program.inputs) tensors_.NewNumber(t.value);
    for (TensorId t : program.outputs) tensors_.NewNumber(t.value);
    for (int32_t var : program.domain_vars) vars_.NewNumber(var);
    VisitItems(program, [&](const Item& item) { Number(item); });
    KeepVarNamesApart();
  }

  // In the order in which the parser needs it: what is used is declared before.
  std::string Whole() {
    absl::StrAppend(&text_, "program ", program_.name, "(", Arguments(program_.inputs), Params(),
                    ") -> (", Arguments(program_.outputs), ") {\n");
    for (const Equality& e : program_.equalities) {
      Line(1, absl::StrCat("require ", Index(e.left), " == ", Index(e.right), Message(e.message)));
    }
    for (const RangeCheck& c : program_.range_checks) {
      Line(1,
           absl::StrCat("require ", c.low ? absl::StrCat(*c.low) : "-inf", " <= ", Index(c.value),
                        " <= ", c.high ? absl::StrCat(*c.high) : "inf", Message(c.message)));
    }
    for (const Domain& domain : program_.domains)
      Line(1, absl::StrCat("domain ", DomainText(domain)));
    for (const Domain& domain : program_.assumptions)
      Line(1, absl::StrCat("assume ", DomainText(domain)));
    for (const VersionTest& test : program_.version)
      Line(1, absl::StrCat("version ", Index(test.flag), " == ", test.value ? 1 : 0));
    if (program_.proven) Line(1, "proven");
    WriteScope(program_.body, 1);
    absl::StrAppend(&text_, "}\n");
    return std::move(text_);
  }

  // ---- Pieces on one line

  // Renumbered by first occurrence before it is ordered and written, so that equal programs have
  // equal texts whatever their numbers are.
  std::string Index(IndexId id, int tightness = 0) {
    const IndexId renumbered = CopyIndex(
        program_.pool, id, pool_,
        [&](const IndexNode& node, absl::Span<const IndexId> args) -> absl::optional<IndexId> {
          if (node.kind == IndexKind::kVar) return pool_.Var(vars_.NewNumber(node.value));
          if (node.kind == IndexKind::kLoad)
            return pool_.Load(tensors_.NewNumber(node.value), args);
          return absl::nullopt;
        });
    const auto var = [&](int64_t number) { return var_names_[vars_.OldNumber(number)]; };
    const auto tensor = [&](int64_t number) {
      return program_.tensors[tensors_.OldNumber(number)].name;
    };
    return IndexText(pool_, renumbered, {var, tensor}, tightness);
  }

  // y[i]      drop y[i + 1] if i < N
  std::string Store(const Access& access) {
    std::string text = program_[access.tensor].name;
    if (!access.place.empty()) absl::StrAppend(&text, "[", Place(access), "]");
    if (!access.masked) return text;
    return absl::StrCat("drop ", text, Conditions(access));
  }

  // x[i]      x[i + 1 | 0.0 if i < N]      s, of rank 0
  std::string Load(const Access& access) {
    std::string text = program_[access.tensor].name;
    if (access.place.empty() && !access.masked) return text;
    absl::StrAppend(&text, "[", Place(access));
    if (access.masked) absl::StrAppend(&text, " | ", Fill(access), Conditions(access));
    return absl::StrCat(text, "]");
  }

  std::string ValueText(ValueId id, int surrounding = 0) {
    std::string text;
    AppendValue(id, surrounding, text);
    return text;
  }

  std::string StatementText(const Statement& s) {
    const std::string sign(s.op ? AccumulationSign(*s.op) : "");
    const std::string value =
        s.position.valid() ? absl::StrCat("(", ValueText(s.value), ", ", ValueText(s.position), ")")
                           : ValueText(s.value);
    const std::string needed =
        s.needed_if.empty() ? "" : absl::StrCat(" needed if ", Indices(s.needed_if));
    return absl::StrCat(s.streams ? "stream " : "", Store(s.target), " ", sign, "= ", value,
                        needed);
  }

  std::string OneLine(const Item& item) {
    struct {
      Writer& writer;
      std::string operator()(const Loop& loop) const { return writer.Head(loop); }
      std::string operator()(const Statement& s) const { return writer.StatementText(s); }
      std::string operator()(const Declaration& d) const { return writer.Declared(d.tensor); }
    } visitor{*this};
    return absl::visit(visitor, item.node);
  }

 private:
  void Number(const Item& item) {
    if (const Loop* loop = item.As<Loop>()) vars_.NewNumber(loop->var);
    if (const Declaration* declaration = item.As<Declaration>())
      tensors_.NewNumber(declaration->tensor.value);
  }

  // A loop index may have the name of a dimension in the program, but not in its text.
  // for N in [0, N) is the loop N_2 in the text
  void KeepVarNamesApart() {
    UniqueNames names;
    for (size_t i = 0; i < program_.pool.size(); ++i) {
      const IndexId id{static_cast<int32_t>(i)};
      if (program_.pool[id].kind == IndexKind::kSymbol) names.Take(program_.pool.SymbolName(id));
    }
    for (const TensorInfo& tensor : program_.tensors) names.Take(tensor.name);
    for (std::string& name : var_names_) name = names.Take(name);
  }

  // ---- Signature

  std::string TypeAndShape(const TensorInfo& tensor) {
    return absl::StrCat(Name(tensor.type),
                        tensor.shape.empty() ? "" : absl::StrCat("[", Indices(tensor.shape), "]"));
  }

  std::string Arguments(const std::vector<TensorId>& ids) {
    return absl::StrJoin(ids, ", ", [&](std::string* out, TensorId id) {
      const TensorInfo& tensor = program_[id];
      absl::StrAppend(out, tensor.name, ": ", tensor.shape_only ? "shape " : "",
                      TypeAndShape(tensor));
    });
  }

  std::string Params() const {
    std::string text;
    for (const ParamInfo& param : program_.params) {
      absl::StrAppend(&text, text.empty() ? "; " : ", ", param.name, ": ", Name(param.type));
      if (param.value) absl::StrAppend(&text, " = ", LiteralText(*param.value));
      if (!param.low && !param.high) continue;
      absl::StrAppend(&text, " in [", param.low ? LiteralText(*param.low) : "-inf", ", ",
                      param.high ? LiteralText(*param.high) : "inf", "]");
    }
    return text;
  }

  static std::string Message(const std::string& message) {
    return absl::StrCat(" \"", absl::Utf8SafeCEscape(message), "\"");
  }

  // d < E, d_2 < F: places; values
  std::string DomainText(const Domain& domain) {
    std::vector<std::string> indices;
    for (size_t k = 0; k < domain.extents.size(); ++k) {
      indices.push_back(absl::StrCat(var_names_[program_.domain_vars[k]], " < ",
                                     Index(domain.extents[k], kSumTightness)));
    }
    return absl::StrCat(absl::StrJoin(indices, ", "), domain.places.empty() ? "" : ": ",
                        Indices(domain.places), domain.values.empty() ? "" : "; ",
                        Indices(domain.values));
  }

  std::string Declared(TensorId id) {
    const TensorInfo& tensor = program_[id];
    const bool accumulator = tensor.storage == Storage::kAccumulator;
    return absl::StrCat(accumulator ? "acc " : "temp ", tensor.name, ": ", TypeAndShape(tensor),
                        accumulator ? absl::StrCat(" = ", Name(tensor.op)) : "",
                        tensor.is_register ? " register" : "");
  }

  // ---- Scopes

  void Line(int depth, absl::string_view line) {
    absl::StrAppend(&text_, std::string(2 * depth, ' '), line, "\n");
  }

  void WriteScope(const Scope& scope, int depth) {
    for (const Item& item : scope) {
      const Loop* loop = item.As<Loop>();
      Line(depth, absl::StrCat(OneLine(item), loop ? " {" : ""));
      if (loop == nullptr) continue;
      WriteScope(loop->body, depth + 1);
      Line(depth, "}");
    }
  }

  std::string Head(const Loop& loop) {
    const LoopAttributes& a = loop.attributes;
    return absl::StrCat(
        "for ", var_names_[loop.var], " in [", Index(loop.begin), ", ", Index(loop.end), ")",
        loop.step == 1 ? "" : absl::StrCat(" step ", loop.step), a.parallel ? " parallel" : "",
        a.vector ? " vector" : "", a.lanes == 0 ? "" : absl::StrCat("(", a.lanes, ")"),
        a.interleave == 0 ? "" : absl::StrCat(" interleave(", a.interleave, ")"),
        a.unroll ? " unroll" : "", a.tail ? " tail" : "", Prefetches(loop));
  }

  std::string Prefetches(const Loop& loop) {
    std::string text;
    for (const Prefetch& prefetch : loop.prefetches) {
      const bool second = prefetch.cache == Prefetch::Cache::kSecond;
      absl::StrAppend(&text, second ? " prefetch(2) " : " prefetch ", Load(prefetch.access));
    }
    return text;
  }

  // ---- Accesses and values

  std::string Indices(const IndexList& list) {
    return absl::StrJoin(list, ", ",
                         [&](std::string* out, IndexId e) { absl::StrAppend(out, Index(e)); });
  }

  std::string Place(const Access& access) {
    std::string text;
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      absl::StrAppend(&text, axis == 0 ? "" : ", ", Index(access.place[axis]),
                      access.IsChecked(axis) ? " checked" : "");
    }
    if (access.ChecksLoads()) absl::StrAppend(&text, " loads checked");
    return text;
  }

  std::string Conditions(const Access& access) {
    return access.conditions.empty() ? "" : absl::StrCat(" if ", Indices(access.conditions));
  }

  std::string Fill(const Access& access) {
    if (!access.fill.valid()) return "?";  // a broken program's
    const auto* constant = absl::get_if<ConstantValue>(&program_[access.fill].node);
    if (constant == nullptr) return ValueText(access.fill, kPrimaryTightness);
    if (constant->value.type != ReadType(program_[access.tensor]))
      return TypedConstant(constant->value);
    return LiteralText(constant->value);
  }

  static std::string TypedConstant(const Scalar& value) {
    return absl::StrCat(Name(value.type), "(", LiteralText(value), ")");
  }

  // A part of a value that is still to be written: a piece of text, or a value.
  struct Piece {
    absl::string_view text;
    ValueId value = {};
    int surrounding = 0;  // the tightness around the value
  };

  // Writes without recursion and straight to the end of `out`, so that an expression of any depth
  // takes no stack, and time linear in its length.
  void AppendValue(ValueId id, int surrounding, std::string& out) {
    std::vector<Piece> pieces = {{"", id, surrounding}};  // the next one last
    while (!pieces.empty()) {
      const Piece piece = pieces.back();
      pieces.pop_back();
      if (!piece.value.valid()) {
        out.append(piece.text.data(), piece.text.size());
      } else if (const auto* apply = absl::get_if<ApplyValue>(&program_[piece.value].node)) {
        const std::vector<Piece> parts =
            PartsOf(*apply, program_[piece.value].type, piece.surrounding);
        pieces.insert(pieces.end(), parts.rbegin(), parts.rend());
      } else {
        out += LeafText(piece.value);
      }
    }
  }

  // The parts in the order of the text.
  std::vector<Piece> PartsOf(const ApplyValue& apply, DType type, int surrounding) const {
    const DType operand = program_[apply.args[0]].type;
    if (const InfixOperator* row = apply.args.size() == 2 ? InfixOf(apply.op, operand) : nullptr) {
      // As in uops/notation/print.cc: a chain is read from the left, and comparisons do not chain.
      const int left = row->tightness + row->Compares();
      return Parenthesised({{"", apply.args[0], left},
                            {" "},
                            {row->text},
                            {" "},
                            {"", apply.args[1], row->tightness + 1}},
                           row->tightness, surrounding);
    }
    // A sign before a constant, or a type around one, would read as part of it.
    const bool constant = absl::holds_alternative<ConstantValue>(program_[apply.args[0]].node);
    const PrefixOperator* row =
        apply.args.size() == 1 && !constant ? PrefixOf(apply.op, operand) : nullptr;
    if (row != nullptr) {
      return Parenthesised({{row->text}, {"", apply.args[0], kPrefixTightness}}, kPrefixTightness,
                           surrounding);
    }
    const bool cast = apply.op == ScalarOp::kCast;
    std::vector<Piece> parts = {{cast ? Name(type) : Row(apply.op).name}, {"("}};
    if (cast && constant) return Around(apply.args[0], operand, std::move(parts));
    for (size_t i = 0; i < apply.args.size(); ++i) {
      if (i > 0) parts.push_back({", "});
      parts.push_back({"", apply.args[i]});
    }
    parts.push_back({")"});
    return parts;
  }

  // A constant that is cast is written with its own type, too.
  static std::vector<Piece> Around(ValueId constant, DType type, std::vector<Piece> cast) {
    const bool bare = IsBare(type);
    if (bare) cast.push_back({Name(type)});
    if (bare) cast.push_back({"("});
    cast.push_back({"", constant});
    if (bare) cast.push_back({")"});
    cast.push_back({")"});
    return cast;
  }

  // Whether a literal alone has the type.
  static bool IsBare(DType type) {
    return type == DType::kF32 || type == DType::kI64 || type == DType::kBool;
  }

  static std::vector<Piece> Parenthesised(std::vector<Piece> parts, int own, int surrounding) {
    if (own >= surrounding) return parts;
    parts.insert(parts.begin(), {"("});
    parts.push_back({")"});
    return parts;
  }

  // Values without operands; literals of types that a bare literal does not have bear their type.
  std::string LeafText(ValueId id) {
    struct {
      Writer& writer;
      DType type;
      std::string operator()(const ConstantValue& v) const {
        return IsBare(type) ? LiteralText(v.value) : TypedConstant(v.value);
      }
      std::string operator()(const ParamValue& v) const { return v.name; }
      std::string operator()(const IndexValue& v) const {
        return absl::StrCat("index(", writer.Index(v.index), ")");
      }
      std::string operator()(const LoadValue& v) const { return writer.Load(v.access); }
      std::string operator()(const ApplyValue&) const { NESTOR_CHECK(false, "no leaf"); }
    } visitor{*this, program_[id].type};
    return absl::visit(visitor, program_[id].node);
  }

  const Program& program_;
  std::vector<std::string> var_names_;  // by the program's numbers
  Numbering vars_, tensors_;
  IndexPool pool_;  // over new numbers
  std::string text_;
};

}  // namespace

std::string ToText(const Program& program) { return Writer(program).Whole(); }
std::string ToText(const Program& program, const Item& item) {
  return Writer(program).OneLine(item);
}
std::vector<std::string> ToTexts(const Program& program, absl::Span<const Statement> statements) {
  Writer writer(program);
  std::vector<std::string> texts;
  for (const Statement& statement : statements) texts.push_back(writer.StatementText(statement));
  return texts;
}
std::string ToText(const Program& program, const Access& access) {
  return Writer(program).Load(access);
}
std::string ToText(const Program& program, ValueId value) {
  return Writer(program).ValueText(value);
}
std::string ToText(const Program& program, IndexId index) { return Writer(program).Index(index); }

}  // namespace nestor::loop
