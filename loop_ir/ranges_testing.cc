// Judge asks Ranges about each access at its place in the program, and writes a letter for each
// answer: `t`, `f` or `?` for a condition, `y` or `n` for a place that is, or is not, proven to be
// in range. CheckVerdicts then runs the loops for small sizes and $params, evaluates the same
// accesses in the same order, and finds any letter that is wrong.
#include "loop_ir/ranges_testing.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/intervals.h"
#include "loop_ir/ranges.h"
#include "loop_ir/text.h"

namespace nestor::loop {
namespace {

std::vector<const Access*> Loads(const Program& program, const Statement& statement) {
  std::vector<const Access*> loads;
  VisitLoads(program, statement.value,
             [&](ValueId, const Access& access) { loads.push_back(&access); });
  return loads;
}

class Walker {
 public:
  explicit Walker(Program& program) : program_(program), ranges_(program) { Walk(program.body); }
  Verdicts verdicts;

 private:
  // Records the verdicts in the order in which Enumeration will meet the same questions.
  void Walk(const Scope& scope) {
    for (const Item& item : scope) {
      if (const Loop* loop = item.As<Loop>()) {
        ranges_.Enter(*loop);
        Walk(loop->body);
        ranges_.Leave();
      } else if (const Statement* statement = item.As<Statement>()) {
        std::string& own = verdicts.by_statement[statement];
        Add(*statement, own);
        absl::StrAppend(&verdicts.text, verdicts.text.empty() ? "" : " ", own);
      }
    }
  }

  void Add(const Statement& statement, std::string& own) {
    const Access& target = statement.target;
    AddConditions(target, own);
    for (IndexId condition : target.conditions) ranges_.Assume(condition);
    AddPlace(target, own);
    ranges_.AssumeInRange(target.place, program_[target.tensor].shape);
    for (const Access* load : Loads(program_, statement)) {
      AddConditions(*load, own);
      AddPlace(*load, own);
    }
    for (size_t i = 0; i <= target.conditions.size(); ++i) ranges_.Forget();
  }

  void AddConditions(const Access& access, std::string& own) {
    for (IndexId condition : access.conditions) {
      const auto decided = ranges_.Decide(condition);
      own += !decided ? '?' : *decided ? 't' : 'f';
    }
  }

  void AddPlace(const Access& access, std::string& own) {
    own += ranges_.InRange(access.place, program_[access.tensor].shape) ? 'y' : 'n';
  }

  Program& program_;
  Ranges ranges_;
};

// Runs a program's scopes for given symbols and compares.
class Enumeration {
 public:
  Enumeration(const Program& program, const Verdicts& verdicts)
      : program_(program), verdicts_(verdicts) {
    for (size_t i = 0; i < program.pool.size(); ++i) {
      const IndexNode& node = program.pool[IndexId{static_cast<int32_t>(i)}];
      may_overflow_ |=
          node.kind == IndexKind::kConst && (node.value > 1000000 || node.value < -1000000);
    }
  }

  // True where all verdicts agree with what happens.
  bool Agrees(const std::map<std::string, int64_t>& symbols) {
    symbols_ = &symbols;
    steps_ = 0;
    vars_.assign(program_.vars.size(), 0);
    if (!Admissible()) return true;
    Walk(program_.body);
    return agrees_;
  }
  int64_t checked = 0;

 private:
  // Whether a program may run with these symbols: binding would refuse the others.
  bool Admissible() const {
    for (const auto* tensors : {&program_.inputs, &program_.outputs}) {
      for (TensorId tensor : *tensors) {
        for (IndexId extent : program_[tensor].shape) {
          if (Eval(extent).value_or(-1) < 0) return false;
        }
      }
    }
    for (const ParamInfo& p : program_.params) {
      const int64_t value = symbols_->at(p.name);
      if ((p.low && value < p.low->ToInt()) || (p.high && value > p.high->ToInt())) return false;
    }
    for (const RangeCheck& c : program_.range_checks) {
      const auto value = Eval(c.value);
      if (!value || *value < c.low.value_or(*value) || *value > c.high.value_or(*value))
        return false;
    }
    for (const Equality& e : program_.equalities) {
      if (!Eval(e.left) || Eval(e.left) != Eval(e.right)) return false;
    }
    const auto value = [&](const std::string& name) -> absl::optional<int64_t> {
      return symbols_->at(name);
    };
    return !may_overflow_ || ProveNoOverflow(program_, value).ok();
  }

  absl::optional<int64_t> Eval(IndexId e) const {
    const auto leaf = [&](const IndexNode& node,
                          absl::Span<const int64_t>) -> absl::optional<int64_t> {
      if (node.kind == IndexKind::kVar) return vars_[node.value];
      if (node.kind == IndexKind::kSymbol)
        return symbols_->at(program_.pool.SymbolNameAt(node.value));
      return absl::nullopt;
    };
    return EvaluateIndex(program_.pool, e, leaf);
  }

  // False where a bound has no value: the program ends with an error.
  bool Walk(const Scope& scope) {
    for (const Item& item : scope) {
      if (const Statement* statement = item.As<Statement>()) Check(*statement);
      const Loop* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      const auto begin = Eval(loop->begin), end = Eval(loop->end);
      if (!begin || !end) return false;
      if (*begin <= *end && CheckedApply(IndexKind::kAdd, *end, -*begin) == absl::nullopt)
        return false;
      for (int64_t i = *begin; i < *end; i += loop->step) {
        if (++steps_ > kMaxIterations) return false;
        vars_[loop->var] = i;
        if (!Walk(loop->body)) return false;
      }
    }
    return true;
  }

  // As a run would: a store whose condition is false evaluates nothing more.
  void Check(const Statement& statement) {
    const std::string& verdicts = verdicts_.by_statement.at(&statement);
    size_t next = 0;
    const bool holds = CheckConditions(statement.target, verdicts, next);
    if (!holds) return;
    if (!CheckPlace(statement.target, verdicts[next++])) return;
    for (const Access* load : Loads(program_, statement)) {
      CheckConditions(*load, verdicts, next);
      CheckPlace(*load, verdicts[next++]);
    }
  }

  // A verdict is what Ranges said of the condition: always true, always false, or not known.
  bool CheckConditions(const Access& access, const std::string& verdicts, size_t& next) {
    bool all = true;
    for (IndexId condition : access.conditions) {
      const auto value = Eval(condition);
      const char verdict = verdicts[next++];
      agrees_ &= verdict == '?' || (value && (*value != 0) == (verdict == 't'));
      all &= value && *value != 0;
      ++checked;
    }
    return all;
  }

  // A place that was proven must be within; one that was not proves nothing.
  bool CheckPlace(const Access& access, char verdict) {
    bool within = true;
    const Shape& shape = program_[access.tensor].shape;
    for (size_t k = 0; k < shape.size(); ++k) {
      const auto i = Eval(access.place[k]), extent = Eval(shape[k]);
      within &= i && extent && *i >= 0 && *i < *extent;
    }
    agrees_ &= verdict == 'n' || within;
    ++checked;
    return within;
  }

  const Program& program_;
  const Verdicts& verdicts_;
  const std::map<std::string, int64_t>* symbols_ = nullptr;
  std::vector<int64_t> vars_;
  static constexpr int kMaxIterations = 500;
  int steps_ = 0;
  bool may_overflow_ = false;  // checked only where constants are large
  bool agrees_ = true;
};

std::vector<std::string> SymbolsOf(const Program& program) {
  std::vector<std::string> names;
  const auto add = [&](IndexId e) {
    VisitIndex(program.pool, e, [&](IndexId id, const IndexNode& node) {
      if (node.kind == IndexKind::kSymbol) names.push_back(program.pool.SymbolName(id));
    });
  };
  for (TensorId tensor : program.inputs) {
    for (IndexId extent : program[tensor].shape) add(extent);
  }
  for (const ParamInfo& param : program.params) names.push_back(param.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

constexpr int64_t kMaxAssignments = 250;

}  // namespace

Verdicts Judge(Program& program) { return Walker(program).verdicts; }

// Dimensions from 0 to 4 and $params from -2 to 4, in all combinations if these are few.
int64_t CheckVerdicts(const Program& program, const Verdicts& verdicts, std::mt19937& random) {
  const std::vector<std::string> names = SymbolsOf(program);
  Enumeration enumeration(program, verdicts);
  int64_t count = 1;
  for (const std::string& name : names) count *= name[0] == '$' ? 7 : 5;
  const bool sample = count > kMaxAssignments;
  for (int64_t i = 0; i < (sample ? kMaxAssignments : count); ++i) {
    std::map<std::string, int64_t> symbols;
    int64_t rest = i;
    for (const std::string& name : names) {
      const int64_t size = name[0] == '$' ? 7 : 5;
      const int64_t digit = sample ? static_cast<int64_t>(random() % (size + 3)) : rest % size;
      rest /= size;
      symbols[name] = digit - (name[0] == '$' ? 2 : 0);
    }
    if (enumeration.Agrees(symbols)) continue;
    std::string text;
    for (const auto& [name, value] : symbols) absl::StrAppend(&text, " ", name, "=", value);
    ADD_FAILURE() << "a wrong proof at" << text << "\n" << ToText(program);
    break;
  }
  return enumeration.checked;
}

}  // namespace nestor::loop
