// Proofs against tables, and every proof against enumeration: a program is walked
// once with Ranges, which gives a verdict on each condition and access, and then
// once per assignment of small numbers to its symbols, evaluating them.
#include "loop_ir/ranges.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "loop_ir/intervals.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

// Of a statement: each condition of the target 't' (always), 'f' (never) or '?';
// then, its conditions assumed, the target 'y' (in range) or 'n'; then, that
// assumed too, the same for each load.
using Verdicts = std::map<const Statement*, std::string>;

std::vector<const Access*> Loads(const Program& program, const Statement& statement) {
  std::vector<const Access*> loads;
  VisitValues(program, statement.value, [&](ValueId, const Value& value) {
    if (const auto* load = absl::get_if<LoadValue>(&value.node)) loads.push_back(&load->access);
  });
  return loads;
}

class Judge {
 public:
  explicit Judge(Program& program) : program_(program), ranges_(program) {
    for (const Block& block : program.blocks) Walk(block.body);
  }
  Verdicts verdicts;
  std::string text;

 private:
  void Walk(const Scope& scope) {
    for (const Item& item : scope) {
      if (const Loop* loop = item.As<Loop>()) {
        ranges_.Enter(*loop);
        Walk(loop->body);
        ranges_.Leave();
      } else if (const Statement* statement = item.As<Statement>()) {
        std::string& own = verdicts[statement];
        Add(*statement, own);
        absl::StrAppend(&text, text.empty() ? "" : " ", own);
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
  Enumeration(const Program& program, const Verdicts& verdicts) : program_(program), verdicts_(verdicts) {
    for (size_t i = 0; i < program.pool.size(); ++i) {
      const IndexNode& node = program.pool[IndexId{static_cast<int32_t>(i)}];
      may_overflow_ |= node.kind == IndexKind::kConst && (node.value > 1000000 || node.value < -1000000);
    }
  }

  // True where all verdicts agree with what happens.
  bool Agrees(const std::map<std::string, int64_t>& symbols) {
    symbols_ = &symbols;
    steps_ = 0;
    vars_.assign(program_.vars.size(), 0);
    if (!Admissible()) return true;
    for (const Block& block : program_.blocks) {
      if (!Walk(block.body)) break;
    }
    return agrees_;
  }
  int64_t checked = 0;

 private:
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
      if (!value || *value < c.low.value_or(*value) || *value > c.high.value_or(*value)) return false;
    }
    for (const Equality& e : program_.equalities) {
      if (!Eval(e.left) || Eval(e.left) != Eval(e.right)) return false;
    }
    return !may_overflow_ || ProveNoOverflow(program_, [&](const std::string& name) -> absl::optional<int64_t> { return symbols_->at(name); }).ok();
  }

  absl::optional<int64_t> Eval(IndexId e) const {
    return EvaluateIndex(program_.pool, e, [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
      if (node.kind == IndexKind::kVar) return vars_[node.value];
      if (node.kind == IndexKind::kSymbol) return symbols_->at(program_.pool.SymbolNameAt(node.value));
      return absl::nullopt;
    });
  }

  // False where a bound has no value: the program ends with an error.
  bool Walk(const Scope& scope) {
    for (const Item& item : scope) {
      if (const Statement* statement = item.As<Statement>()) Check(*statement);
      const Loop* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      const auto begin = Eval(loop->begin), end = Eval(loop->end);
      if (!begin || !end) return false;
      if (*begin <= *end && CheckedApply(IndexKind::kAdd, *end, -*begin) == absl::nullopt) return false;
      for (int64_t i = *begin; i < *end; i += loop->step) {
        if (++steps_ > kMaxIterations) return false;
        vars_[loop->var] = i;
        if (!Walk(loop->body)) return false;
      }
    }
    return true;
  }

  void Check(const Statement& statement) {
    const std::string& verdicts = verdicts_.at(&statement);
    size_t next = 0;
    const bool holds = CheckConditions(statement.target, verdicts, next);
    if (!holds) return;
    if (!CheckPlace(statement.target, verdicts[next++])) return;
    for (const Access* load : Loads(program_, statement)) {
      CheckConditions(*load, verdicts, next);
      CheckPlace(*load, verdicts[next++]);
    }
  }

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

// Checks all assignments of small numbers, a sample where there are too many.
int64_t CheckAll(const Program& program, const Verdicts& verdicts, std::mt19937& random) {
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

struct Case {
  const char* signature;  // arguments and $params; y: f32[N] and r: f32 are the results
  const char* items;
  const char* verdicts;  // of the statements, in order
};

void RunCases(const std::vector<Case>& cases) {
  std::mt19937 random(1);
  for (const Case& c : cases) {
    const std::string text = absl::StrCat("program p(", c.signature, ") -> (r: f32) {\n", c.items, "\n}");
    absl::StatusOr<Program> program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    Judge judge(*program);
    EXPECT_EQ(judge.text, c.verdicts) << text;
    CheckAll(*program, judge.verdicts, random);
  }
}

TEST(Ranges, Loops) {
  RunCases({
      {"x: f32[N]", "for i in [0, N) { r = x[i] }", "yy"},
      {"x: f32[N]", "for i in [0, N) { r = x[i + 1] }", "yn"},
      {"x: f32[N]", "for i in [0, N) { r = x[i - 1] }", "yn"},
      {"x: f32[N]", "for i in [1, N) { r = x[i - 1] }", "yy"},
      {"x: f32[N]", "for i in [0, N - 1) { r = x[i + 1] }", "yy"},
      {"x: f32[N]", "for i in [0, N) { r = x[N - 1 - i] }", "yy"},
      {"x: f32[N], z: f32[M]", "for i in [0, N) { r = x[i] + z[i] }", "yyn"},
      {"x: f32[N]", "for i in [0, N) { r = x[0] + x[N - 1] + x[1] }", "yyyn"},
      {"x: f32[N]", "block { r = x[0] }", "yn"},
      {"x: f32[N]; $k: i64", "for i in [0, $k) { r = x[i] }", "yn"},
      {"x: f32[$k]; $k: i64", "for i in [0, $k) { r = x[i] }", "yy"},
      {"x: f32[N]", "for i in [0, N) { for j in [0, i) { r = x[j] + x[i - j] + x[j + 1] } }", "yyyy"},
      {"x: f32[N]", "for i in [0, N) { for j in [i, N) { r = x[j] + x[j - i] + x[j + i] } }", "yyyn"},
      {"x: f32[N, C]", "for i in [0, N) { for c in [0, C) { r = x[i, c] } }", "yy"},
      {"x: f32[N, C]", "for i in [0, N) { for c in [0, C) { r = x[c, i] } }", "yn"},
      // Known sizes.
      {"x: f32[12]", "for i in [0, 3) { for j in [0, 4) { r = x[i*4 + j] + x[i + j*3] + x[i*5 + j] } }", "yyyn"},
      {"x: f32[12]", "for i in [2, 14) { r = x[i - 2] + x[13 - i] + x[i - 1] }", "yyyn"},
      {"x: f32[4]", "for i in [0, 30) { r = x[i/8] + x[i%4] + x[i/7] + x[(0-i)%4] }", "yyyny"},
  });
}

TEST(Ranges, Reshapes) {
  RunCases({
      {"x: f32[N*C]; $n: i64, $c: i64", "for i in [0, $n) { for c in [0, $c) { r = x[i*$c + c] } }", "yn"},
      {"x: f32[N, C], z: f32[N*C]", "for i in [0, N) { for c in [0, C) { r = z[i*C + c] + z[i*C] + z[i*C + c + 1] } }", "yyyn"},
      {"x: f32[A, B, C], z: f32[A*B*C]",
       "for a in [0, A) { for b in [0, B) { for c in [0, C) { r = z[(a*B + b)*C + c] + z[(c*B + b)*A + a] } } }", "yyy"},
      {"x: f32[A, B, C]", "for i in [0, A*B*C) { r = x[i/(B*C), i/C%B, i%C] }", "yn"},
      {"x: f32[A, B], z: f32[A*B]", "for i in [0, A*B) { r = x[i/B, i%B] }", "yn"},
      {"x: f32[A, 4], z: f32[A*4]", "for i in [0, A*4) { r = x[i/4, i%4] }", "yy"},
      {"x: f32[A, B], s: shape f32[A*B/B]", "for i in [0, A*B) { r = x[i/B, i%B] }", "yy"},
      // Grouped: C channels of each group; only where the groups divide O.
      {"x: f32[N, O, C], z: f32[$groups*C]; $groups: i64 = 1 in [1, inf]",
       "for o in [0, O) { for c in [0, C) { r = z[o/(O/$groups)*C + c] } }", "yn"},
      {"x: f32[N, O, C], z: f32[$groups*C]; $groups: i64 = 1 in [1, inf]",
       "for g in [0, $groups) { for c in [0, C) { r = z[g*C + c] } }", "yy"},
  });
}

TEST(Ranges, Windows) {
  const char* conv = "x: f32[H], w: f32[R]; $stride: i64 = 1 in [1, inf], $dilation: i64 = 1 in [1, inf]";
  const char* free = "x: f32[H], w: f32[R]; $stride: i64 = 1, $dilation: i64 = 1";
  const char* nest =
      "for h in [0, (H - $dilation*(R - 1) - 1)/$stride + 1) { for r0 in [0, R) { r = x[h*$stride + r0*$dilation] } }";
  RunCases({
      {conv, nest, "yy"},
      {free, nest, "yn"},
      {conv, "for h in [0, (H - R)/$stride + 1) { for k in [0, R) { r = x[h*$stride + k] } }", "yy"},
      {conv, "for h in [0, (H - R)/$stride + 2) { for k in [0, R) { r = x[h*$stride + k] } }", "yn"},
      {conv, "for h in [0, (H - R)/2 + 1) { for k in [0, R) { r = x[h*2 + k] + x[h*2 + k + 1] } }", "yyn"},
      {conv, "for h in [0, H - R + 1) { for k in [0, R) { r = x[h + k] + x[h + R - 1 - k] } }", "yyy"},
      {conv, "for h in [0, H/$stride) { for k in [0, $stride) { r = x[h*$stride + k] } }", "yy"},
      {free, "for h in [0, H/$stride) { for k in [0, $stride) { r = x[h*$stride + k] } }", "yy"},
      {conv, "for h in [0, (H + $stride - 1)/$stride) { r = x[h*$stride] + x[h*$stride + 1] }", "yyn"},
      // Padded: only inside.
      {"x: f32[H], w: f32[R]; $p: i64 in [0, inf]",
       "for h in [0, H + 2*$p - R + 1) { for k in [0, R) { r = x[h + k - $p] } }", "yn"},
      {"x: f32[H], w: f32[R]; $p: i64 in [0, inf]",
       "for h in [$p, H + $p - R + 1) { for k in [0, R) { r = x[h + k - $p] } }", "yy"},
      {"x: f32[H], w: f32[R]; $p: i64 in [0, inf]",
       "for h in [0, H + 2*$p) { for k in [max(0, $p - h), min(R, H + $p - h)) { r = x[h + k - $p] } }", "yy"},
  });
}

TEST(Ranges, Tiles) {
  RunCases({
      {"x: f32[N]", "for i in [0, N) step 8 { for j in [i, min(N, i + 8)) { r = x[j] + x[j + 1] } }", "yyn"},
      {"x: f32[N]", "for i in [0, N) step 8 { for j in [0, min(8, N - i)) { r = x[i + j] } }", "yy"},
      {"x: f32[N]", "for i in [0, N/8) { for j in [0, 8) { r = x[i*8 + j] } }  for i in [N/8*8, N) { r = x[i] }", "yy yy"},
      {"x: f32[N]", "for i in [0, N) step 8 { for j in [0, 8) { r = x[i + j] } }", "yn"},
      {"x: f32[N*8]", "for i in [0, N*8) step 8 { for j in [0, 8) { r = x[i + j] } }", "yy"},
      {"x: f32[N]", "for i in [0, N - N%4) step 4 { r = x[i + 3] }", "yn"},
      {"x: f32[N]", "for i in [0, N/4*4) step 4 { r = x[i + 3] }", "yy"},
      {"x: f32[N]; $t: i64 in [1, inf]",
       "for i in [0, (N + $t - 1)/$t) { for j in [i*$t, min(N, i*$t + $t)) { r = x[j] } }", "yy"},
      {"x: f32[N]; $t: i64 in [1, inf]", "for i in [0, N/$t*$t) { r = x[i/$t*$t + i%$t] + x[i/$t*$t] }", "yyy"},
      {"x: f32[8, N]", "for i in [0, N) step 8 { for j in [i, min(N, i + 8)) { r = x[j - i, j] + x[j%8, i] } }", "yyy"},
  });
}

TEST(Ranges, Checks) {
  RunCases({
      {"x: f32[N], z: f32[M]", "require N == M \"\"  for i in [0, N) { r = z[i] }", "yy"},
      {"x: f32[N], z: f32[M]", "require N == M + 1 \"\"  for i in [0, M) { r = x[i + 1] }", "yy"},
      {"x: f32[N], z: f32[M], w: f32[K]", "require N == M \"\" require M == K \"\"  for i in [0, N) { r = w[i] }", "yy"},
      {"x: f32[N], z: f32[M], w: f32[K]", "require N == K \"\" require M == K \"\"  for i in [0, N) { r = z[i] }", "yy"},
      {"x: f32[N], z: f32[M]", "require N/2 == M \"\"  for i in [0, M) { r = x[2*i + 1] + x[2*i + 2] }", "yyn"},
      {"x: f32[N], z: f32[M]; $s: i64", "require N/$s == M \"\" require 1 <= $s <= inf \"\"  for i in [0, M) { r = x[$s*i] }", "yy"},
      {"x: f32[N], z: f32[M]", "require 0 <= N - M <= inf \"\"  for i in [0, M) { r = x[i] }", "yy"},
      {"x: f32[N]; $k: i64 in [1, 3]", "for i in [0, N - 3) { r = x[i + $k] + x[i + $k + 1] }", "yyn"},
      {"x: f32[N]; $k: i64 in [-3, -1]", "for i in [3, N) { r = x[i + $k] + x[i - $k] }", "yyn"},
      {"x: f32[H/$s], z: f32[H]; $s: i64 in [1, inf]", "for i in [0, H/$s) { r = z[i*$s] + x[H/$s - 1 - i] }", "yyy"},
      {"x: f32[H/$s], z: f32[H]; $s: i64 in [1, inf]", "block { drop r if H/$s <= H, H/$s >= 0, H%$s < $s = 1.0 }", "ttty"},
      {"x: f32[N, M], s: shape f32[N - M]", "for i in [0, M) { r = x[i, i] }", "yy"},
  });
}

TEST(Ranges, Conditions) {
  RunCases({
      {"x: f32[N]", "for i in [0, N) { drop r if i >= 0, i < N, i < 0, i == N, i != N, i == 3 = 1.0 }", "ttfft?y"},
      {"x: f32[N]", "for i in [0, N) { drop r if i > 2 && i < 5 = x[i - 3] + x[i - 2] + x[i + 1] }", "?yyyn"},
      {"x: f32[N]", "for i in [0, N) { drop r if i + 1 < N, i != 0 = x[i + 1] + x[i - 1] }", "??yyy"},
      {"x: f32[N]", "for i in [0, N) { drop r if !(i + 1 >= N) = x[i + 1] }", "?yy"},
      {"x: f32[N]", "for i in [0, N) { drop r if !(i == 0 || i + 1 == N) = x[i + 1] + x[i - 1] }", "?yyy"},
      {"x: f32[N]", "for i in [0, N) { drop r if i < 0 || i >= 3 = x[i - 3] }", "?yy"},
      {"x: f32[N]; $k: i64", "for i in [0, N) { drop r if 0 <= i - $k, i < $k + N = x[i - $k] }", "??yy"},
      {"x: f32[N], z: f32[M]", "for i in [0, N) { for j in [0, M) { drop r if i + j < N, i == j = x[i + j] + x[j] } }", "??yyy"},
      {"x: f32[N], z: f32[M]", "for i in [0, N) { drop r if i < M = z[i] + z[i + 1] }", "?yyn"},
      {"x: f32[N], z: f32[M]", "for i in [0, N) { drop r if i/3 == M = x[3*M] }", "?yy"},
      {"x: f32[N], z: f32[M]", "for i in [0, N) { r = x[i | 0.0 if i < N, i < M, N >= 1, M >= 1] }", "yt?t?y"},
      // Undecided, since it may have no value.
      {"x: f32[N], z: f32[M]", "for i in [0, N) { drop r if i/M >= 0, i%M >= 0, i/N >= 0, M/M == 1 || i >= 0 = 1.0 }", "??t?y"},
      {"x: f32[N]; $k: i64", "for i in [0, N) { drop r if i%$k < $k, i/$k*$k <= i = 1.0 }", "??y"},
      {"x: f32[N]; $k: i64", "for i in [0, N) { drop r if i/$k == i/$k, $k > 0 && i%$k < $k = 1.0 }", "??y"},
      // Gathered values: what was assumed, no more.
      {"x: f32[N], d: i64[N]", "for i in [0, N) { drop r if d[i] < N, 0 <= d[i] = x[d[i] | 0.0 if d[i] < N] }", "??ytn"},
      {"x: f32[N]", "for i in [0, N) { for j in [0, N) { r = x[i*j | 0.0 if i*j >= 0] } }", "y?n"},
  });
}

TEST(Ranges, Edges) {
  RunCases({
      {"x: f32[N]", "for i in [0, N) { drop r if i < 9223372036854775807, i > -9223372036854775807 = 1.0 }", "?ty"},
      {"x: f32[N]", "for i in [-9223372036854775807, -9223372036854775805) { drop r if i < 0, i + 1 > -9223372036854775807, i - 1 < 0 = 1.0 }", "t?ty"},
      {"x: f32[N]", "for i in [9223372036854775800, 9223372036854775807) { drop r if i > 0, 2*i > 0, i + 1 > 0, i < 9223372036854775807 = 1.0 }", "t?tty"},
      {"x: f32[N]; $k: i64", "for i in [0, N) { drop r if i + $k >= $k, 9223372036854775807*i >= 0 = 1.0 }", "tty"},
      {"x: f32[N]; $k: i64 in [-1, 0]", "for i in [0, N) { drop r if i%$k <= 0, i/$k <= 0 = 1.0 }", "??y"},
      {"x: f32[N]; $k: i64 in [-3, -1]", "for i in [0, N) { drop r if i%$k <= 0, i/$k <= 0 = 1.0 }", "??y"},
      {"x: f32[N]", "for i in [0, 0) { r = x[i] }  for i in [N, 0) { r = x[i] }  for i in [0, 0 - N) { r = x[i] }", "yy yy yy"},
  });
}

// ---- Random programs

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  std::string Program() {
    std::string text = "program p(x: f32[N, M], z: f32[N*M], w: f32[K]; $s: i64";
    if (Pick(2)) absl::StrAppend(&text, " in [", Pick(3) - 1, ", ", Pick(2) ? "inf" : "4", "]");
    absl::StrAppend(&text, ", $t: i64) -> (r: f32) {\n");
    if (Pick(3) == 0) absl::StrAppend(&text, "  require ", Symbolic(1), " == ", Symbolic(1), " \"\"\n");
    if (Pick(3) == 0) absl::StrAppend(&text, "  require 1 <= $t <= inf \"\"\n");
    if (Pick(3) == 0) absl::StrAppend(&text, "  require 0 <= ", Symbolic(1), " <= inf \"\"\n");
    Scope(text, 1);
    return text + "}\n";
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % n); }

  std::string Atom() {
    static const char* const kSymbols[] = {"N", "M", "K", "$s", "$t"};
    if (!vars_.empty() && Pick(2)) return vars_[Pick(static_cast<int>(vars_.size()))];
    return Pick(3) ? kSymbols[Pick(5)] : absl::StrCat(Pick(5) - 1);
  }

  std::string Expression(int depth) {
    if (depth == 0 || Pick(4) == 0) return Atom();
    const std::string a = Expression(depth - 1), b = Expression(depth - 1);
    switch (Pick(8)) {
      case 0: return absl::StrCat("min(", a, ", ", b, ")");
      case 1: return absl::StrCat("max(", a, ", ", b, ")");
      case 2: return absl::StrCat("(", a, ")/", "(", Symbolic(1), ")");
      case 3: return absl::StrCat("(", a, ")%", "(", Symbolic(1), ")");
      case 4: return absl::StrCat("(", a, ")*", Symbolic(0));
      case 5: return absl::StrCat("(", a, ") - (", b, ")");
      default: return absl::StrCat("(", a, ") + (", b, ")");
    }
  }

  std::string Symbolic(int depth) {
    const std::vector<std::string> kept = std::move(vars_);
    vars_.clear();
    const std::string text = Expression(depth);
    vars_ = kept;
    return absl::StrCat("(", text, ")");
  }

  std::string Condition() {
    static const char* const kCompare[] = {" < ", " <= ", " >= ", " > ", " == ", " != "};
    if (Pick(6) == 0) return absl::StrCat("(", Condition(), Pick(2) ? ") && (" : ") || (", Condition(), ")");
    if (Pick(8) == 0) return absl::StrCat("!(", Condition(), ")");
    return absl::StrCat(Expression(1), kCompare[Pick(6)], Expression(Pick(3)));
  }

  std::string Place(int rank) {
    std::vector<std::string> place;
    for (int i = 0; i < rank; ++i) place.push_back(Expression(Pick(3)));
    return absl::StrJoin(place, ", ");
  }

  std::string Conditions() {
    std::vector<std::string> conditions = {Condition()};
    while (Pick(2)) conditions.push_back(Condition());
    return absl::StrJoin(conditions, ", ");
  }

  void Scope(std::string& text, int depth) {
    const std::string indent(2 * depth, ' ');
    const std::string var = absl::StrCat("i", next_var_++);
    const std::string begin = Pick(2) ? "0" : Expression(1);
    absl::StrAppend(&text, indent, "for ", var, " in [", begin, ", ", Expression(Pick(3)), ")",
                    Pick(4) ? "" : absl::StrCat(" step ", 1 + Pick(4)), " {\n");
    vars_.push_back(var);
    const std::string load = Pick(2) ? absl::StrCat("x[", Place(2)) : absl::StrCat(Pick(2) ? "z[" : "w[", Place(1));
    absl::StrAppend(&text, indent, "  drop r if ", Conditions(), " = ", load, " | 0.0 if ", Conditions(), "]\n");
    if (depth < 3) Scope(text, depth + 1);
    vars_.pop_back();
    absl::StrAppend(&text, indent, "}\n");
  }

  std::mt19937 random_;
  std::vector<std::string> vars_;
  int next_var_ = 0;
};

TEST(Ranges, RandomProgramsAgreeWithEnumeration) {
  std::mt19937 random(7);
  int64_t checked = 0, proven = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const std::string text = Generator(seed).Program();
    absl::StatusOr<Program> program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    Judge judge(*program);
    for (char c : judge.text) proven += c == 't' || c == 'f' || c == 'y';
    checked += CheckAll(*program, judge.verdicts, random);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
  RecordProperty("checked", absl::StrCat(checked));
  RecordProperty("proven", absl::StrCat(proven));
  EXPECT_GT(proven, 8000);
}

}  // namespace
}  // namespace nestor::loop
