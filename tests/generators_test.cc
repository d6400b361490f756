// Generators against plain loops (tests/naive_loops.h), in f64 on small integers, which sums and
// products keep exact; resized and divided values within a few roundings.
#include "macro_ops/generators.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gtest/gtest.h"
#include "nestor.h"
#include "tensor/binding.h"
#include "tests/naive_loops.h"
#include "tests/naive_resizes.h"

namespace nestor {
namespace {

using naive::At;
using naive::Place;

constexpr double kRoundings = 64 * 0x1p-52;

using Shapes = std::vector<Place>;
using Numbers = std::vector<std::pair<std::string, int64_t>>;

struct Outcome {
  std::vector<NaiveTensor> args, results;
};

NaiveTensor Draw(const Place& shape, DType type, std::mt19937_64& random) {
  return naive::Generate(shape, [&](const Place&) {
    return static_cast<double>(random() % 5) - (IsFloat(type) ? 2 : 0);
  });
}

// The op of a call, on drawn arguments of these shapes, type variables being f64.
Outcome RunCall(const std::string& call, const Shapes& shapes, const Numbers& params = {}) {
  SCOPED_TRACE(call);
  Outcome run;
  EXPECT_TRUE(IsGeneratorCall(call));
  const absl::StatusOr<std::string> text = Generate(call);
  EXPECT_TRUE(text.ok()) << text.status();
  if (!text.ok()) return run;
  const absl::StatusOr<Module> module = Module::Parse(*text, &MacroLibrary());
  EXPECT_TRUE(module.ok()) << module.status() << *text;
  if (!module.ok()) return run;
  const std::string name = module->OpNames().back();
  ArgumentSpecs specs;
  const ast::Op& syntax = module->Syntax(name);
  EXPECT_EQ(syntax.args.size(), shapes.size()) << *text;
  for (size_t i = 0; i < shapes.size(); ++i) {
    specs[syntax.args[i].name] = {TypeByName(syntax.args[i].type.text).value_or(DType::kF64),
                                  static_cast<int>(shapes[i].size())};
  }
  const absl::StatusOr<Op> op = module->Instantiate(name, specs);
  EXPECT_TRUE(op.ok()) << op.status() << *text;
  if (!op.ok()) return run;
  std::mt19937_64 random(7);
  std::vector<Tensor> tensors;
  RunInputs inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    run.args.push_back(Draw(shapes[i], op->args[i].type, random));
    tensors.push_back(Tensor::Of(op->args[i].type, shapes[i], run.args[i].data));
  }
  for (size_t i = 0; i < shapes.size(); ++i) inputs.tensors[op->args[i].name] = tensors[i].view();
  for (const auto& [param, value] : params)
    inputs.params[param] = Scalar::Integer(DType::kI64, value);
  const auto results = nestor::Run(*op, inputs);
  EXPECT_TRUE(results.ok()) << results.status() << *text;
  if (!results.ok()) return run;
  for (const Tensor& result : *results) {
    NaiveTensor values{{result.shape().begin(), result.shape().end()}, {}};
    for (int64_t i = 0; i < result.num_elements(); ++i) {
      values.data.push_back(
          Load(result.type(), static_cast<const char*>(result.data()) + i * ByteSize(result.type()))
              .ToDouble());
    }
    run.results.push_back(values);
  }
  EXPECT_TRUE(!IsFloat(op->graph.type(op->results[0].node)) || Gradient(*op).ok()) << *text;
  return run;
}

void ExpectSame(const NaiveTensor& got, const NaiveTensor& want, const std::string& call,
                double tolerance = 0) {
  ASSERT_EQ(got.shape, want.shape) << call;
  for (size_t i = 0; i < want.data.size(); ++i) {
    EXPECT_LE(std::fabs(got.data[i] - want.data[i]), tolerance)
        << call << " at " << i << ": " << got.data[i] << ", want " << want.data[i];
  }
}

TEST(Generators, ExamplesParse) {
  for (const Generator& generator : Generators()) {
    const absl::StatusOr<std::string> text = Generate(generator.example);
    ASSERT_TRUE(text.ok()) << generator.name << text.status();
    EXPECT_TRUE(Parse(*text).ok()) << *text << Parse(*text).status();
    EXPECT_TRUE(absl::StartsWith(generator.usage, absl::StrCat(generator.name, "(")))
        << generator.usage;
  }
}

// Numbered indices must not be read as types, as i8 would be.
TEST(Generators, EveryRankParses) {
  constexpr const char* kCalls[] = {"concat(2, $0, -1)",
                                    "split(2, $0, 0)",
                                    "stack(2, $0, -1)",
                                    "permute($1)",
                                    "along(softmax, $0, 0)",
                                    "reshape(1, $0)",
                                    "reshape($0, 1)",
                                    "resize(nearest, half_pixel, $0)",
                                    "resize(linear, half_pixel, $0)"};
  std::string axes;
  for (int rank = 1; rank <= 64; ++rank) {
    absl::StrAppend(&axes, rank == 1 ? "" : ", ", rank - 1);
    for (const char* call : kCalls) {
      const absl::StatusOr<std::string> text = Generate(absl::Substitute(call, rank, axes));
      ASSERT_TRUE(text.ok()) << call << " of " << rank << text.status();
      EXPECT_TRUE(Parse(*text).ok()) << *text << Parse(*text).status();
    }
  }
}

TEST(Generators, Einsum) {
  const struct {
    const char* call;
    const char* meant;  // one letter for each axis, the result said
    Shapes shapes;
  } kCases[] = {
      {"bij,bjk->bik", "bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}},
      {"ij,jk", "ij,jk->ik", {{3, 4}, {4, 2}}},
      {"ji", "ji->ij", {{3, 4}}},
      {"ii", "ii->", {{3, 3}}},
      {"ii->i", "ii->i", {{3, 3}}},
      {"iij->j", "iij->j", {{3, 3, 2}}},
      {"i,i->", "i,i->", {{5}, {5}}},
      {"i,j->ji", "i,j->ji", {{2}, {3}}},
      {"ij->", "ij->", {{2, 3}}},
      {"ij->j", "ij->j", {{2, 3}}},
      {"ik,jkl,il->ij", "ik,jkl,il->ij", {{2, 3}, {4, 3, 2}, {2, 2}}},
      {"xyT,Ty->xT", "xyT,Ty->xT", {{2, 3, 4}, {4, 3}}},
      {"...ij,...jk->...ik", "uij,ujk->uik", {{2, 3, 4}, {2, 4, 2}}},
      {"...ij,...jk", "uvij,uvjk->uvik", {{2, 1, 3, 4}, {2, 1, 4, 2}}},
      {"...ij->...", "uij->u", {{2, 3, 4}}},
      {"...i,i->i", "ui,i->i", {{2, 3}, {3}}},
      {" b i , b -> i ", "bi,b->i", {{2, 3}, {2}}},
      {",i->i", ",i->i", {{}, {3}}},
      {"ij,ij->ij", "ij,ij->ij", {{0, 3}, {0, 3}}},
      {"ij,jk->ik", "ij,jk->ik", {{2, 0}, {0, 3}}},
  };
  for (const auto& c : kCases) {
    const std::string call = absl::StrCat("einsum(", c.call, ")");
    const Outcome run = RunCall(call, c.shapes);
    ASSERT_EQ(run.results.size(), 1u) << call;
    ExpectSame(run.results[0], naive::Einsum(c.meant, run.args), call);
  }
}

// Each permutation of up to four axes.
TEST(Generators, Permute) {
  const Place extents = {2, 3, 4, 5};
  for (size_t rank = 1; rank <= 4; ++rank) {
    Place axes;
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
    do {
      std::string words;
      for (int64_t axis : axes) absl::StrAppend(&words, words.empty() ? "" : ", ", axis);
      const std::string call = absl::StrCat("permute(", words, ")");
      const Outcome run = RunCall(call, {naive::First(extents, rank)});
      Place shape;
      for (int64_t axis : axes) shape.push_back(extents[axis]);
      ExpectSame(run.results[0],
                 naive::Generate(shape,
                                 [&](const Place& p) {
                                   Place source(rank);
                                   for (size_t k = 0; k < rank; ++k) source[axes[k]] = p[k];
                                   return At(run.args[0], source);
                                 }),
                 call);
    } while (std::next_permutation(axes.begin(), axes.end()));
  }
}

TEST(Generators, Reshape) {
  const std::vector<Place> kShapes = {{24}, {4, 6}, {2, 3, 4}, {1, 24, 1}, {2, 2, 3, 2}};
  for (const Place& from : kShapes) {
    for (const Place& to : kShapes) {
      Numbers params;
      for (size_t i = 0; i < to.size(); ++i) params.push_back({absl::StrCat("$n", i), to[i]});
      const std::string call = absl::StrCat("reshape(", from.size(), ", ", to.size(), ")");
      const Outcome run = RunCall(call, {from}, params);
      ExpectSame(run.results[0], {to, run.args[0].data}, call);
    }
  }
}

// Tests them on tensors with lengths 1, 2, .. along the axis.
TEST(Generators, ConcatStackAndSplit) {
  for (int count : {1, 2, 3, 7}) {
    for (int rank : {1, 2, 3}) {
      for (int axis = -rank; axis < rank; ++axis) {
        const size_t at = axis < 0 ? axis + rank : axis;
        const std::string words = absl::StrCat("(", count, ", ", rank, ", ", axis, ")");
        Shapes shapes(count, naive::First({2, 3, 2}, rank));
        const Outcome stacked = RunCall("stack" + words, shapes);
        Place shape = shapes[0];
        shape.insert(shape.begin() + at + (axis < 0), count);
        ExpectSame(stacked.results[0],
                   naive::Generate(shape,
                                   [&](const Place& p) {
                                     Place inner = p;
                                     inner.erase(inner.begin() + at + (axis < 0));
                                     return At(stacked.args[p[at + (axis < 0)]], inner);
                                   }),
                   "stack" + words);
        for (int k = 0; k < count; ++k) shapes[k][at] = k + 1;
        const Outcome joined = RunCall("concat" + words, shapes);
        shape = shapes[0];
        shape[at] = count * (count + 1) / 2;
        ExpectSame(joined.results[0],
                   naive::Generate(shape,
                                   [&](Place p) {
                                     int k = 0;
                                     for (; p[at] >= k + 1; ++k) p[at] -= k + 1;
                                     return At(joined.args[k], p);
                                   }),
                   "concat" + words);
        shape[at] = 2 * count + 1;  // one is left over
        const Outcome parts = RunCall("split" + words, {shape});
        shape[at] = shape[at] / count;
        for (int k = 0; k < count; ++k) {
          ExpectSame(parts.results[k],
                     naive::Generate(shape,
                                     [&](Place p) {
                                       p[at] += k * shape[at];
                                       return At(parts.args[0], p);
                                     }),
                     "split" + words);
        }
      }
    }
  }
}

// x with axis `axis` at the end.
NaiveTensor ToEnd(const NaiveTensor& x, size_t axis, bool back = false) {
  const size_t rank = x.shape.size();
  const auto moved = [&](Place p, size_t from, size_t to) {
    const int64_t e = p[from];
    p.erase(p.begin() + from);
    p.insert(p.begin() + to, e);
    return p;
  };
  const size_t from = back ? rank - 1 : axis, to = back ? axis : rank - 1;
  return naive::Generate(moved(x.shape, from, to),
                         [&](const Place& p) { return At(x, moved(p, to, from)); });
}

// The op's own reference, with the axis moved to the end.
TEST(Generators, Along) {
  const struct {
    const char* op;
    Numbers params;
    size_t moved;  // how many of the arguments
  } kCases[] = {{"softmax", {}, 1},
                {"reduce_sum", {}, 1},
                {"sort", {}, 1},
                {"topk", {{"$k", 2}}, 1},
                {"variance", {{"$correction", 0}}, 1},
                {"flip", {}, 1},
                {"pad", {{"$before", 1}, {"$after", 2}}, 1},
                {"dot", {}, 2},
                {"gather", {}, 2},
                {"diff", {}, 1},
                {"masked_softmax", {}, 2}};
  for (const auto& c : kCases) {
    for (int axis : {0, 1, 2, -1}) {
      const size_t at = axis < 0 ? axis + 3 : axis;
      const std::string call = absl::StrCat("along(", c.op, ", 3, ", axis, ")");
      const Outcome run = RunCall(call, Shapes(c.moved, {3, 4, 5}), c.params);
      NaiveTensors inputs;
      NaiveParams params = {{"value", 0}};
      const ast::Op& syntax = MacroLibrary().Syntax(c.op);
      for (size_t i = 0; i < run.args.size(); ++i)
        inputs[syntax.args[i].name] = ToEnd(run.args[i], at);
      for (const auto& [name, value] : c.params)
        params[name.substr(1)] = static_cast<double>(value);
      const NaiveTensors want = NaiveOps().at(c.op)({inputs, params});
      ASSERT_EQ(run.results.size(), want.size()) << call;
      for (size_t i = 0; i < want.size(); ++i) {
        const NaiveTensor& result = want.at(syntax.results[i].name);
        ExpectSame(run.results[i], result.shape.size() == 3 ? ToEnd(result, at, true) : result,
                   call, kRoundings);
      }
    }
  }
}

// Every mode, coordinates and rounding; to more elements, to fewer, to one and from one.
TEST(Generators, Resize) {
  for (const std::string coordinates : {"half_pixel", "pytorch_half_pixel", "align_corners",
                                        "asymmetric", "tf_half_pixel_for_nn"}) {
    for (const std::string mode : {"linear", "cubic", "nearest, floor", "nearest, ceil",
                                   "nearest, round_prefer_floor", "nearest, round_prefer_ceil"}) {
      const std::string kind = mode.substr(0, mode.find(',')),
                        rounding = kind == "nearest" ? mode.substr(9) : "";
      for (const auto& [from, to] : std::vector<std::pair<Place, Place>>{
               {{3, 5}, {7, 2}}, {{4, 1}, {1, 3}}, {{2, 2}, {4, 6}}}) {
        const std::string call = absl::StrCat("resize(", kind, ", ", coordinates, ", 2",
                                              rounding.empty() ? "" : ", ", rounding, ")");
        const Outcome run =
            RunCall(call, {{2, from[0], from[1]}}, {{"$n0", to[0]}, {"$n1", to[1]}});
        const NaiveTensor tall = naive::Resized(run.args[0], 1, to[0], kind, coordinates, rounding);
        ExpectSame(run.results[0], naive::Resized(tall, 2, to[1], kind, coordinates, rounding),
                   call, kRoundings);
      }
    }
  }
}

TEST(Generators, Errors) {
  const std::pair<const char*, const char*> kCases[] = {
      {"einsum(ij->ijj)", "the result has 'j' twice"},
      {"einsum(ij->ik)", "no operand has the result's 'k'"},
      {"einsum(i1)", "'1' in 'i1' is no letter"},
      {"einsum(i->j->k)", "more than one '->'"},
      {"einsum(...i...)", "more than one '...'"},
      {"permute(0, 0)", "axis 0 stands there twice"},
      {"permute(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, "
       "30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, "
       "59, 60, 61, 62, 63, 64)",
       "too many axes"},
      {"einsum(iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii)",
       "too many axes"},
      {"permute(0, 2)", "'2' is not a number of -2..1"},
      {"permute()", "'' is not a number"},
      {"concat(0, 1, 0)", "'0' is not a number of 1.."},
      {"concat(2, 1)", "is given 2 words"},
      {"stack(2, 1, 2)", "'2' is not a number of -2..1"},
      {"reshape(1)", "two ranks"},
      {"along(sofmax, 2, 0)", "did you mean 'softmax'?"},
      {"along(matmul, 2, 0)", "matmul has no argument [..N, C]"},
      {"resize(cubist, half_pixel, 1)", "'cubist' is none of nearest, linear, cubic"},
      {"resize(linear, half, 1)", "'half' is none of half_pixel, "},
      {"resize(linear, half_pixel, 1, floor)", "linear rounds nothing"},
      {"resize(nearest, half_pixel, 1, up)", "'up' is none of round_prefer_floor, "},
  };
  for (const auto& [call, message] : kCases) {
    const absl::StatusOr<std::string> text = Generate(call);
    ASSERT_FALSE(text.ok()) << call << *text;
    EXPECT_TRUE(absl::StrContains(text.status().message(), message))
        << call << ": " << text.status();
  }
  for (const char* no_call : {"einsum", "softmax(2)", "op einsum(x: f32[N]) -> (y) {}", "(3)", ""})
    EXPECT_FALSE(IsGeneratorCall(no_call)) << no_call;
}

}  // namespace
}  // namespace nestor
