// A reader of the text of lists. It spells the names of conditions and modes once
// more, so that what ToString prints is checked against something.
#include "jit/codegen/operations_testing.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "uops/dtype.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

using Names = std::initializer_list<absl::string_view>;
constexpr Names kLanes = {"i8", "i16", "i32", "i64", "f32", "f64"};
constexpr Names kModes = {"nearest", "floor", "ceil", "truncate"};
constexpr Names kPredicates = {"equal", "less", "less_equal", "unordered", "not_equal"};
constexpr Names kConditions = {"equal",   "not_equal",     "less", "less_equal",
                               "greater", "greater_equal", "below"};

class Parser {
 public:
  explicit Parser(Isa isa) : list_(isa) {}

  OperationList Parse(absl::string_view text) && {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      line_ = line;
      rest_ = absl::StripAsciiWhitespace(line);
      if (rest_.empty()) continue;
      if (rest_[0] == 'c' && rest_.size() > 1 && absl::ascii_isdigit(rest_[1])) {
        ParseConstant();
      } else {
        ParseOperation();
      }
    }
    return std::move(list_);
  }

 private:
  void Expect(bool condition) const {
    NESTOR_CHECK(condition, "cannot read \"" + std::string(line_) + "\"");
  }

  // The text up to `end`, which is dropped; all of it if there is no `end`.
  absl::string_view Until(absl::string_view end) {
    const size_t at = std::min(rest_.find(end), rest_.size());
    const absl::string_view head = rest_.substr(0, at);
    rest_ = rest_.substr(std::min(rest_.size(), at + end.size()));
    return head;
  }

  int64_t Number(absl::string_view text) const {
    int64_t value = 0;
    Expect(absl::SimpleAtoi(text, &value));
    return value;
  }

  uint64_t Hex(absl::string_view text) const {
    uint64_t value = 0;
    Expect(absl::SimpleHexAtoi(text, &value));
    return value;
  }

  int64_t IndexIn(Names names, absl::string_view name) const {
    const auto at = std::find(names.begin(), names.end(), name);
    Expect(at != names.end());
    return at - names.begin();
  }

  void ParseConstant() {
    Until(" = ");
    PoolConstant constant;
    constant.lane = static_cast<Lane>(IndexIn(kLanes, Until(" ")));
    constant.bits = Hex(Until(" + lane * "));
    if (!rest_.empty()) constant.step = Hex(rest_);
    list_.constants.push_back(constant);
  }

  void ParseOperation() {
    Operation op;
    if (absl::StrContains(rest_, " = ")) op.result = ParseOperand(Until(" = "));
    ParseOpcode(op, Until(" "));
    ParseVariant(op);
    ParseMemory(op);
    for (int i = 0; i < 3; ++i) {
      if (Info(op.opcode).operands[i] != RegisterClass::kNone)
        op.operands[i] = ParseOperand(Until(", "));
    }
    if (absl::ConsumePrefix(&rest_, "L")) {
      op.immediate = Number(rest_);
      list_.labels = std::max(list_.labels, static_cast<int>(op.immediate) + 1);
    } else if (!rest_.empty()) {
      op.immediate = Number(rest_);
    }
    list_.operations.push_back(op);
  }

  void ParseOpcode(Operation& op, absl::string_view text) const {
    const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('.', 1));
    int opcode = 0;
    while (opcode < kNumOpcodes && Info(static_cast<Opcode>(opcode)).name != parts[0]) ++opcode;
    Expect(opcode < kNumOpcodes);
    op.opcode = static_cast<Opcode>(opcode);
    if (parts.size() == 1) return;
    const std::pair<absl::string_view, absl::string_view> lanes = absl::StrSplit(parts[1], 'x');
    op.lane = static_cast<Lane>(IndexIn(kLanes, lanes.first));
    op.lanes = static_cast<uint8_t>(Number(lanes.second));
  }

  void ParseVariant(Operation& op) {
    const OpcodeInfo& info = Info(op.opcode);
    if (info.Is(kConditional))
      op.condition = static_cast<Condition>(IndexIn(kConditions, Until(" ")));
    switch (info.immediate) {
      case ImmediateKind::kRounding: op.immediate = IndexIn(kModes, Until(" ")); break;
      case ImmediateKind::kPredicate: op.immediate = IndexIn(kPredicates, Until(" ")); break;
      case ImmediateKind::kCondition: op.immediate = IndexIn(kConditions, Until(" ")); break;
      case ImmediateKind::kLaneKind:
        Until("from ");
        op.immediate = IndexIn(kLanes, Until(" "));
        break;
      default: break;
    }
  }

  void ParseMemory(Operation& op) {
    const size_t at = rest_.find('[');
    if (at == rest_.npos || (at > 0 && rest_[at - 1] != ' ')) return;
    if (at > 0) {
      const auto type = TypeByName(Until(" "));
      Expect(type.has_value());
      op.type = *type;
      op.invariant = absl::ConsumePrefix(&rest_, "invariant ");
    }
    Expect(absl::ConsumePrefix(&rest_, "["));
    absl::string_view inside = Until("]");
    absl::ConsumePrefix(&rest_, ", ");
    for (bool minus = false, first = true; !inside.empty(); first = false) {
      const size_t end = std::min(inside.find_first_of("+-"), inside.size());
      ParseTerm(op.memory, absl::StripAsciiWhitespace(inside.substr(0, end)), first, minus);
      minus = end < inside.size() && inside[end] == '-';
      inside = inside.substr(std::min(inside.size(), end + 1));
    }
  }

  void ParseTerm(Memory& memory, absl::string_view term, bool first, bool minus) {
    if (first) {
      memory.base = ParseOperand(term);
    } else if (absl::StrContains(term, " * ")) {
      const std::vector<absl::string_view> parts = absl::StrSplit(term, " * ");
      memory.index = ParseOperand(parts[0]);
      memory.scale = static_cast<int8_t>(Number(parts[1]));
    } else {
      memory.displacement = static_cast<int32_t>(minus ? -Number(term) : Number(term));
    }
  }

  Operand ParseOperand(absl::string_view text) {
    if (text == "none") return {};
    if (absl::ConsumePrefix(&text, "table["))
      return Operand::Table(Number(absl::StripSuffix(text, "]")));
    if (absl::ConsumePrefix(&text, "stack["))
      return {Operand::kStack, Number(absl::StripSuffix(text, "]"))};
    if (absl::ConsumePrefix(&text, "c")) return Operand::Constant(Number(text));
    if (absl::ConsumePrefix(&text, "v")) return Register(RegisterClass::kVector, Number(text));
    if (absl::ConsumePrefix(&text, "m")) return Register(RegisterClass::kMask, Number(text));
    if (absl::ConsumePrefix(&text, "g")) return Register(RegisterClass::kGeneral, Number(text));
    return Operand::Immediate(Number(text));
  }

  Operand Register(RegisterClass c, int64_t number) {
    if (number >= static_cast<int64_t>(list_.classes.size()))
      list_.classes.resize(number + 1, RegisterClass::kNone);
    list_.classes[number] = c;
    return Operand::Register(number);
  }

  OperationList list_;
  absl::string_view line_, rest_;
};

}  // namespace

OperationList ParseOperations(absl::string_view text, Isa isa) { return Parser(isa).Parse(text); }

}  // namespace nestor::jit
