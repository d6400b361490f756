// A table of texts that are refused, with the messages, and programs broken by hand in ways that
// text cannot express.
#include "loop_ir/verify.h"

#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"

namespace nestor::loop {
namespace {

using ::testing::HasSubstr;

// `items` in a program with a bit of everything.
std::string Around(absl::string_view items) {
  return absl::StrCat("program p(x: f32[N, C], ids: i64[N], b: bool[N], h: shape f32[A]; "
                      "$k: i64, $eps: f32, $i: i32) -> (y: f32[N, C], r: f32) {\n"
                      "  temp t: f32[N]\n"
                      "  acc best: f32 = argmax\n"
                      "  r = 0.0\n"
                      "  for o in [0, N) { for q in [0, C) { y[o, q] = 0.0 } }\n"
                      "  ",
                      items, "\n}\n");
}

Program ParseOrDie(const std::string& text) {
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  return program.value_or(Program());
}

TEST(Verify, Accepts) {
  const char* const kItems[] = {
      "",
      "temp l: f32[4] register",
      "temp more: f32[2*N + A, $k, max($i, 3)] require N == A \"m\" version min(N, 1) == 0 require 0 <= N*$k <= 7 \"m\"",
      "for i in [0, N) { t[i] = x[i, 0 | 0.5 if i < 3 && !(ids[i] == 2)] }",
      "for i in [$k, min(N, A)) step 3 { drop t[ids[ids[i]]] if 0 < 1, i != 3 += $eps }",
      "for i in [0, N) { best argmax= (t[i], index(i))  t[best[]] = f32(index(best[] + $k)) + f32(best) }",
      "for i in [0, N) { temp l: f32[i + 1] acc s: f32[4, 16] = sum register  s[0, 3] += l[i] }",
      "for i in [0, N) { t[i] = where(b[i], x[i, 0 | $eps], f32(ids[i | index($k)])) }",
      "for i in [0, N) { for j in [i, i) { t[j] = 1.0 }  for k in [i, N) { t[k] = 2.0 } }",
      "for i in [0, N) parallel { for c in [0, C) vector unroll { y[i, c] = x[i, c] } }",
      "for i in [0, N) parallel { for c in [0, C) vector(8) interleave(4) tail prefetch x[i + 1, c] prefetch t[i] { stream y[i, c] = x[i, c] } }",
      "proven for i in [0, N) { t[i] = x[ids[i] checked, 2 checked] + x[i checked, 0 checked | 0.0] }",
      "for i in [0, N) step 8 parallel { for j in [i, min(i + 8, N)) { t[j] += 1.0 } }",
      "for i in [0, N) { temp d: f64 acc w: i32 = prod acc e: bool = any  d = f64(1.0)  w *= i32(2)  e any= b[i] }",
  };
  for (const char* items : kItems) {
    const Program program = ParseOrDie(Around(items));
    EXPECT_TRUE(Verify(program).ok()) << Verify(program) << "\n" << items;
    const Program again = ParseOrDie(ToText(program));
    EXPECT_TRUE(Verify(again).ok()) << Verify(again);
    EXPECT_EQ(ToText(again), ToText(program));
  }
}

TEST(Verify, RefusesText) {
  const struct {
    int invariant;
    const char* items;
    const char* error;
  } kCases[] = {
      {7, "for i in [0, N) { temp l: f32[ids[i]] }",
       "in `temp l: f32[ids[i]]`: an extent holds a load"},
      {7, "for i in [0, N) { temp l: f32[i < 3] }", "an extent is a condition: i < 3"},
      {7, "temp l: f32[N] register", "has the extent N, which is no positive constant"},
      {7, "acc l: f32[0] = sum register", "has the extent 0, which is no positive constant"},
      {8, "require N == ids[0] \"m\"", "an equality holds a load: ids[0]"},
      {8, "version ids[0] == 1", "the flag of a version holds a load: ids[0]"},
      {8, "domain d < ids[0]", "an extent of a domain holds a load: ids[0]"},
      {8, "domain d < N, e < d", "an extent of a domain holds a loop index: d"},
      {8, "domain d < N: d + ids[d]", "a domain holds a load"},
      {8, "require 0 <= min(N, ids[0]) <= 3 \"m\"", "a range check holds a load"},
      {9, "for i in [0, N) step 0 {}", "in `for i in [0, N) step 0`: the step 0 is not positive"},
      {9, "for i in [0, N) step -2 {}", "the step -2 is not positive"},
      {9, "for i in [0, ids[0]) {}", "a bound holds a load: ids[0]"},
      {9, "for i in [N < 3, N) {}", "a bound is a condition: N < 3"},
      {10, "for i in [0, N) { t[i] = x[i, 0 | 0.0 if i && 1 < i] }",
       "expected a condition, found i"},
      {10, "for i in [0, N) { t[i + (i < 3)] = 0.0 }", "expected a number, found i < 3"},
      {10, "for i in [0, N) { t[t[i]] = 0.0 }", "t is used as an index but reads as f32"},
      {10, "for i in [0, N) { t[b[i]] = 0.0 }", "b is used as an index but reads as bool"},
      {10, "for i in [0, N) { t[ids[i, i]] = 0.0 }", "ids has 1 axes, is accessed with 2 indices"},
      {11, "t[0, 0] = 0.0", "in `t[0, 0] = 0.0`: t has 1 axes, is accessed with 2 indices"},
      {11, "t = 0.0", "t has 1 axes, is accessed with 0 indices"},
      {11, "t[0] = x[0]", "x has 2 axes, is accessed with 1 indices"},
      {11, "t[N < 3] = 0.0", "an index is a condition: N < 3"},
      {11, "drop t[0] if N = 0.0", "expected a condition, found N"},
      {11, "t[0] = x[0, 0 | u8(3)]", "the fill of x is u8, the tensor f32"},
      {11, "t[0] = x[0, 0 | sqrt($eps)]",
       "the fill of x is no constant, $param or index of symbols"},
      {11, "t[0] = x[0, 0 | t[0]]", "the fill of x is no constant, $param or index of symbols"},
      {11, "for i in [0, N) { t[i] = f32(ids[i | index(i)]) }", "the fill of ids is no constant"},
      {12, "t[0] = h[0]", "h is read, but only its shape is given"},
      {12, "t[h[0]] = 0.0", "h is read, but only its shape is given"},
      {12, "x[0, 0] = 0.0", "in `x[0, 0] = 0.0`: the input x is written"},
      {12, "ids[0] max= 3", "the input ids is written"},
      {13, "t[0] = f32(index(N < 3))", "an index value is a condition"},
      {14, "t[0] = 3", "in `t[0] = 3`: t is f32, the value i64"},
      {14, "t[0] any= 1.0", "any does not take f32"},
      {14, "temp c: bool c += b[0]", "sum does not take bool"},
      {14, "acc a: bool = max", "a: max does not take bool"},
      {14, "acc a: f32 = all", "a: all does not take f32"},
      {14, "t[0] argmax= (1.0, 3)", "argmax into t, which is no accumulator"},
      {14, "best argmin= (1.0, 3)", "the accumulator best is of argmax, not argmin"},
      {14, "best argmax= (1.0, 3.0)", "the position is f32, not i64"},
      {14, "best = 1.0", "the accumulator best is assigned to"},
      {14, "for i in [0, N) { t[i] = 1.0 needed if i }", "expected a condition, found i"},
      {14, "for i in [0, N) { t[i] = 1.0 needed if ids[i] < 3 }",
       "whether a statement is needed follows from ids[i] < 3"},
      {15, "for i in [0, N) parallel { r += t[i] }",
       "in `for i in [0, N) parallel`: iterations may depend"},
      {15, "for i in [0, N) vector { t[i] = t[i + 1] }", "depend on each other through t"},
      {15, "for i in [0, N) vector(6) { t[i] = 1.0 }",
       "in `for i in [0, N) vector(6)`: the loop cannot run in so many lanes"},
      {15, "for i in [0, N) vector(8) { t[N - i] = 1.0 }", "cannot run in so many lanes"},
      {15, "for i in [0, N) step 2 vector(8) { t[i] = 1.0 }", "cannot run in so many lanes"},
      {15, "for i in [0, N) vector(8) { for j in [0, C) vector(8) { y[i, j] = 1.0 } }",
       "in `for j in [0, C) vector(8)`: a loop around it has lanes"},
      {15, "for i in [0, N) tail { t[i] = 1.0 }", "it says how vectors of no lanes run"},
      {15, "for i in [0, N) vector interleave(2) { t[i] = 1.0 }",
       "it says how vectors of no lanes run"},
      {15, "for i in [0, N) vector(8) unroll tail { t[i] = 1.0 }",
       "the number of its vectors is not known"},
      {15, "for i in [0, N) vector(8) interleave(2) { t[i] = 1.0 }",
       "in `for i in [0, N) vector(8) interleave(2)`: its last vector may not be whole"},
      {16, "proven t[0] = 1.0", "in `t[0]`: neither proven to be in range nor checked"},
      {16, "proven for i in [0, N) { t[i] = x[ids[i], 2 checked] }",
       "in `x[ids[i], 2 checked]`: neither proven"},
      {16, "proven for i in [0, N) { t[i] = x[ids[ids[i]] checked, 2 checked] }", "neither proven"},
      {16, "proven for i in [0, N) { t[i] = x[i checked, 2 | 0.0] }", "neither proven"},
      {17, "temp e: f32[4] register for i in [0, N) prefetch e[0] { t[i] = 1.0 }",
       "e is prefetched, which may lie in a register"},
      {17, "for i in [0, N) prefetch r[] { t[i] = 1.0 }",
       "r is prefetched, which may lie in a register"},
      {17, "for i in [0, N) prefetch x[i, 0 | 0.0] { t[i] = 1.0 }",
       "what is prefetched has no mask"},
      {17, "for i in [0, N) prefetch x[i] { t[i] = 1.0 }", "x has 2 axes"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = Verify(ParseOrDie(Around(c.items)));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.items;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error)) << c.items;
    EXPECT_THAT(std::string(status.message()), HasSubstr("program p: ")) << c.items;
  }
}

// Violations that text cannot express, made by hand.
TEST(Verify, RefusesBrokenPrograms) {
  const std::string text = Around(
      "for i in [0, N) { temp l: f32  l = t[i] + 1.0  drop t[i] if i < 3 = l  best argmax= (l, index(i)) }");
  const auto loop = [](Program& p) -> Loop& { return *p.body[4].As<Loop>(); };
  const auto store = [&](Program& p, int n) -> Statement& {
    return *loop(p).body[n].As<Statement>();
  };
  const auto load = [&](Program& p) -> Access& {
    const ValueId sum = store(p, 1).value;
    return absl::get<LoadValue>(p.values[absl::get<ApplyValue>(p[sum].node).args[0].value].node)
        .access;
  };
  const auto find = [](Program& p, absl::string_view name) -> TensorInfo& {
    return *std::find_if(p.tensors.begin(), p.tensors.end(),
                         [&](const TensorInfo& t) { return t.name == name; });
  };
  const struct {
    int invariant;
    std::function<void(Program&)> damage;
    const char* error;
  } kCases[] = {
      {1, [](Program& p) { p.body.push_back(DeclarationOf(TensorId{99})); },
       "tensor number 99 does not exist"},
      {1, [](Program& p) { p.inputs.push_back(TensorId{}); }, "tensor number -1 does not exist"},
      {1, [](Program& p) { p.tensors[0].shape[0] = IndexId{999}; },
       "index expression number 999 does not exist"},
      {1, [&](Program& p) { loop(p).var = 7; }, "loop index number 7 does not exist"},
      {1, [&](Program& p) { loop(p).end = IndexId(); },
       "index expression number -1 does not exist"},
      {1, [&](Program& p) { loop(p).end = p.pool.Var(7); }, "loop index number 7 does not exist"},
      {1, [&](Program& p) { loop(p).end = p.pool.Load(99, {}); },
       "tensor number 99 does not exist"},
      {1, [&](Program& p) { store(p, 1).value = ValueId(); }, "value number -1 does not exist"},
      {1,
       [&](Program& p) {
         load(p).masked = true;
         load(p).fill = ValueId{99};
       },
       "value number 99 does not exist"},
      {1,
       [&](Program& p) {
         const ValueId sum = store(p, 1).value;
         absl::get<ApplyValue>(p.values[sum.value].node).args[1] = sum;
       },
       "which does not come before it"},
      {1,
       [&](Program& p) {
         absl::get<ApplyValue>(p.values[store(p, 1).value.value].node).args.clear();
       },
       "an application has no operands"},
      {2, [](Program& p) { p.name = "a b"; }, "'a b' is no name of a program"},
      {2, [](Program& p) { p.tensors[1].name = "x"; },
       "the name x is given to more than one tensor"},
      {2, [](Program& p) { p.tensors[1].name = "sum"; }, "'sum' is no name of a tensor"},
      {2, [](Program& p) { p.vars[1] = p.vars[0]; },
       "the name o is given to more than one loop index"},
      {2, [](Program& p) { p.params[0].name = "k"; }, "the $param 'k' does not begin with '$'"},
      {2, [](Program& p) { p.params[0].name = "$eps"; }, "two $params are named $eps"},
      {3, [&](Program& p) { find(p, "t").storage = Storage::kOutput; },
       "t is declared in a scope but is no temp and no accumulator"},
      {3, [&](Program& p) { find(p, "x").storage = Storage::kTemp; }, "x has another storage"},
      {3, [](Program& p) { p.body.push_back(p.body[0]); }, "t is declared twice"},
      {3, [&](Program& p) { loop(p).body.push_back(loop(p).body[0]); }, "l is declared twice"},
      {3, [&](Program& p) { find(p, "l").storage = Storage::kOutput; },
       "no temp and no accumulator"},
      {3, [&](Program& p) { find(p, "t").shape_only = true; }, "t is shape-only and no input"},
      {4, [&](Program& p) { loop(p).body.erase(loop(p).body.begin()); },
       "in `l = t[i] + 1.0`: l is used outside the scope of its declaration"},
      {4, [&](Program& p) { std::swap(loop(p).body[0], loop(p).body[1]); },
       "l is used outside the scope"},
      {4, [&](Program& p) { p.body.push_back(loop(p).body[1]); }, "l is used outside the scope"},
      {4, [](Program& p) { p.body.erase(p.body.begin()); },
       "t is used outside the scope of its declaration"},
      {5, [](Program& p) { p.body.push_back(p.body[3]); },
       "in `for o in [0, N)`: the loop index is that of another loop, too"},
      {5, [&](Program& p) { loop(p).end = p.pool.Var(loop(p).var); },
       "the loop index i is used outside its loop"},
      {5,
       [&](Program& p) {
         store(p, 1).target.place = {p.pool.Var(0)};
         find(p, "l").shape = {p.pool.Const(9)};
       },
       "the loop index o is used outside its loop"},
      {6, [&](Program& p) { loop(p).end = p.pool.Symbol("Q"); }, "Q is no dimension of the inputs"},
      {6, [&](Program& p) { loop(p).end = p.pool.Symbol("$q"); }, "$q is no integer $param"},
      {6, [&](Program& p) { loop(p).end = p.pool.Symbol("$eps"); }, "$eps is no integer $param"},
      {6, [](Program& p) { p.tensors[0].shape[0] = p.pool.Symbol("$q"); },
       "$q is no integer $param"},
      {7, [&](Program& p) { find(p, "t").shape = {p.pool.Var(0)}; },
       "in `temp t: f32[o]`: the loop index o is used outside its loop"},
      {7, [&](Program& p) { find(p, "y").shape[0] = p.pool.Var(0); },
       "an extent holds a loop index: o"},
      {8,
       [](Program& p) {
         p.equalities.push_back({p.pool.Var(0), p.pool.Const(0), ""});
       },
       "an equality holds a loop index: o"},
      {11, [&](Program& p) { store(p, 2).target.masked = false; },
       "an unmasked access of t has conditions"},
      {11, [&](Program& p) { load(p).fill = p.AddConstant(Scalar::Zero(DType::kF32)); },
       "does not come before it"},
      {11, [&](Program& p) { load(p).fill = ValueId{0}; }, "an unmasked access of t has a fill"},
      {11, [&](Program& p) { load(p).masked = true; }, "a masked load of t has no fill"},
      {11, [&](Program& p) { store(p, 2).target.fill = ValueId{0}; }, "a store to t has a fill"},
      {12,
       [&](Program& p) {
         find(p, "r").storage = Storage::kTemp;
         p.outputs.pop_back();
         p.body.clear();
       },
       "y is an output that no statement writes"},
      {13, [&](Program& p) { p.values[store(p, 1).value.value].type = DType::kF64; },
       "t[i] + 1.0 has type f64, expected f32"},
      {13, [&](Program& p) { p.values[store(p, 3).position.value].type = DType::kI32; },
       "index(i) has type i32, expected i64"},
      {13,
       [&](Program& p) {
         absl::get<ApplyValue>(p.values[store(p, 1).value.value].node).op = ScalarOp::kExp;
       },
       "'exp' takes 1 operands, is given 2"},
      {13,
       [&](Program& p) {
         absl::get<ApplyValue>(p.values[store(p, 1).value.value].node).op = ScalarOp::kShl;
       },
       "'shl' takes an integer, is given f32"},
      {13,
       [&](Program& p) {
         absl::get<ApplyValue>(p.values[store(p, 1).value.value].node).args.resize(1);
       },
       "'add' takes 2 operands, is given 1"},
      {13, [&](Program& p) { store(p, 1).value = p.AddParam("$q", DType::kF32); },
       "$q is no $param of the program"},
      {13, [&](Program& p) { store(p, 1).value = p.AddParam("$eps", DType::kF64); },
       "$eps has type f64, expected f32"},
      {13, [&](Program& p) { store(p, 1).value = p.AddParam("$k", DType::kI64); },
       "the integer $param $k stands outside an index expression"},
      {14, [&](Program& p) { store(p, 3).position = ValueId(); },
       "the position of the value is missing"},
      {14, [&](Program& p) { store(p, 1).position = store(p, 3).position; },
       "only argmax and argmin have a position"},
  };
  ASSERT_TRUE(Verify(ParseOrDie(text)).ok()) << Verify(ParseOrDie(text));
  for (const auto& c : kCases) {
    Program program = ParseOrDie(text);
    c.damage(program);
    const absl::Status status = Verify(program);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.error;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error)) << c.invariant;
  }
}

}  // namespace
}  // namespace nestor::loop
