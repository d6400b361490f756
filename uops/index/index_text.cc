// The text of index expressions: written from the table of operators, with parentheses
// only where a reader needs them to build the same expression.
#include "absl/strings/str_cat.h"
#include "uops/index/index_expr.h"
#include "uops/index/operators.h"

namespace nestor {
namespace {

class TextWriter {
 public:
  TextWriter(const IndexPool& pool, const IndexNames& names) : pool_(pool), names_(names) {}

  // Each kind in the notation's own form. A comparison's operands bind tighter than itself on both
  // sides, since comparisons do not chain.
  std::string Write(IndexId id, int tightness) const {
    const IndexNode& node = pool_[id];
    switch (node.kind) {
      case IndexKind::kConst: return absl::StrCat(node.value);
      case IndexKind::kVar: return names_.var(node.value);
      case IndexKind::kSymbol: return pool_.SymbolName(id);
      case IndexKind::kLoad: return absl::StrCat(names_.tensor(node.value), "[", List(node), "]");
      case IndexKind::kMin:
      case IndexKind::kMax: return Function(node);
      case IndexKind::kNot: return absl::StrCat("!", Write(node.args[0], kPrefixTightness));
      case IndexKind::kAnd:
      case IndexKind::kOr: {
        const InfixOperator& infix = *InfixOf(node.kind);
        return Parenthesised(absl::StrCat(Condition(node.args[0], infix.tightness), Infix(infix),
                                          Condition(node.args[1], infix.tightness + 1)),
                             infix.tightness, tightness);
      }
      case IndexKind::kDiv:
        if (names_.in_value) return Function(node);
        break;
      case IndexKind::kAdd: return Parenthesised(Sum(node), kSumTightness, tightness);
      case IndexKind::kMul:
        if (pool_.IsConst(node.args[0], -1)) {
          return Parenthesised(absl::StrCat("-", Write(node.args[1], kPrefixTightness)),
                               kPrefixTightness, tightness);
        }
        break;
      default: break;
    }
    const InfixOperator& infix = *InfixOf(node.kind);
    return Parenthesised(absl::StrCat(Write(node.args[0], infix.tightness + infix.Compares()),
                                      Infix(infix), Write(node.args[1], infix.tightness + 1)),
                         infix.tightness, tightness);
  }

 private:
  static std::string Parenthesised(std::string text, int own, int surrounding) {
    return own < surrounding ? absl::StrCat("(", text, ")") : text;
  }

  std::string Function(const IndexNode& node) const {
    return absl::StrCat(Row(FindIndexFunction(node.kind)->op).name, "(", List(node), ")");
  }

  // Products are written close together.
  static std::string Infix(const InfixOperator& op) {
    return op.tightness == kProductTightness ? std::string(op.text)
                                             : absl::StrCat(" ", op.text, " ");
  }

  // A constant condition is a truth value, not a number.
  std::string Condition(IndexId id, int tightness) const {
    if (const auto constant = pool_.ConstValue(id)) return *constant == 0 ? "false" : "true";
    return Write(id, tightness);
  }

  std::string List(const IndexNode& node) const {
    std::string text;
    for (IndexId arg : node.args) absl::StrAppend(&text, text.empty() ? "" : ", ", Write(arg, 0));
    return text;
  }

  // a + b, written a - c where b is the negative of c. A sum that is not affine reads back as it
  // was written only where b is exactly -1 * c.
  std::string Sum(const IndexNode& node) const {
    const std::string left = Write(node.args[0], kSumTightness);
    const IndexId right = node.args[1];
    const IndexNode& b = pool_[right];
    if (b.kind == IndexKind::kMul && pool_.IsConst(b.args[0], -1)) {
      return absl::StrCat(left, " - ", Write(b.args[1], kSumTightness + 1));
    }
    std::string text = Write(right, kSumTightness + 1);
    IndexId first = right;  // the leftmost factor: a negative coefficient, or not
    while (pool_[first].kind == IndexKind::kMul) first = pool_[first].args[0];
    const auto c = pool_.ConstValue(first);
    if (c && *c < 0 && pool_.IsAffine(right)) return absl::StrCat(left, " - ", text.substr(1));
    return absl::StrCat(left, " + ", text);
  }

  const IndexPool& pool_;
  const IndexNames& names_;
};

}  // namespace

std::string IndexText(const IndexPool& pool, IndexId id, const IndexNames& names, int tightness) {
  return TextWriter(pool, names).Write(id, tightness);
}

std::string SymbolicText(const IndexPool& pool, IndexId id) {
  const auto number = [](int64_t v) { return absl::StrCat("?", v); };
  return IndexText(pool, id, {number, number});
}

}  // namespace nestor
