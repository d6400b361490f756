// The graph by itself: what is one node and what is two, the operands of each kind, what depends on
// what, and nodes made anew in another graph.
#include "uops/graph.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "uops/recurrence.h"

namespace nestor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr DType kF32 = DType::kF32;
constexpr DType kF64 = DType::kF64;
constexpr DType kI64 = DType::kI64;

// A graph with tensors to build on: x and w are f32[N, M], v is f32[N], ids is i64[N], b is
// bool[N], s is f32[].
struct Tensors {
  Graph g;
  IndexPool& pool = g.pool();
  IndexId N = pool.Symbol("N"), M = pool.Symbol("M"), K = pool.Symbol("K");
  IndexId i = pool.Var(0), j = pool.Var(1), k = pool.Var(2), one = pool.Const(1);
  NodeId x = g.AddInput("x", kF32, {N, M}), w = g.AddInput("w", kF32, {N, M});
  NodeId v = g.AddInput("v", kF32, {N}), ids = g.AddInput("ids", kI64, {N});
  NodeId b = g.AddInput("b", DType::kBool, {N}), s = g.AddInput("s", kF32, {});

  NodeId Number(float value) { return g.AddConstant(Scalar::Float(kF32, value)); }
  NodeId Exp(NodeId a) { return g.AddMap(ScalarOp::kExp, {a}); }
  NodeId Times(NodeId a, NodeId c) { return g.AddMap(ScalarOp::kMul, {a, c}); }
  NodeId Transposed(NodeId a) { return g.AddReindex(a, {g.shape(a)[1], g.shape(a)[0]}, {j, i}); }
  NodeId Sum(NodeId a, std::vector<int> axes) { return g.AddReduce(ReduceOp::kSum, a, axes); }
  // v, one step back, with that fill.
  NodeId Shifted(NodeId fill = NodeId()) { return g.AddReindex(v, {N}, {pool.Sub(i, one)}, fill); }
  // y[t] = y[t - 1] * v[t]
  NodeId Product() {
    const NodeId carry = g.AddCarry(kF32, {N}, 0, false);
    const NodeId body = Times(g.AddReindex(carry, {N}, {pool.Sub(i, one)}), v);
    return Settler(g, {{carry, body}}).Settle(body);
  }
};

std::vector<NodeId> OperandsOf(const Graph& graph, NodeId id) {
  std::vector<NodeId> operands;
  VisitOperands(graph, id, [&](NodeId x) { operands.push_back(x); });
  return operands;
}

// Ids are in topological order.
void ExpectOperandsBefore(const Graph& graph) {
  for (int id = 0; id < graph.size(); ++id) {
    for (NodeId operand : OperandsOf(graph, NodeId{id})) EXPECT_LT(operand, NodeId{id});
  }
}

struct Pair {
  const char* what;
  NodeId (*left)(Tensors& t);
  NodeId (*right)(Tensors& t);
};

// Each in one graph, both ways.
TEST(Graph, OneNode) {
  using T = Tensors&;
  // clang-format off
  constexpr Pair kPairs[] = {
      {"the same input", [](T t) { return t.x; }, [](T t) { return t.g.AddInput("x", kF32, {t.N, t.M}); }},
      {"the same $param", [](T t) { return t.g.AddParam("$p", kF32); }, [](T t) { return t.g.AddParam("$p", kF32); }},
      {"every NaN", [](T t) { return t.g.AddConstant(Scalar{kF32, 0x7fc00000}); }, [](T t) { return t.g.AddConstant(Scalar{kF32, 0xffc01234}); }},
      {"the same reduction", [](T t) { return t.Sum(t.x, {1}); }, [](T t) { return t.Sum(t.x, {1}); }},
      // A reindex that moves nothing.
      {"x[i, j]", [](T t) { return t.g.AddReindex(t.x, {t.N, t.M}, {t.i, t.j}); }, [](T t) { return t.x; }},
      {"a fill that is not used", [](T t) { return t.g.AddReindex(t.x, {t.N, t.M}, {t.i, t.j}, t.Number(5)); }, [](T t) { return t.x; }},
      {"a condition that is true", [](T t) { return t.g.AddReindex(t.x, {t.N, t.M}, {t.i, t.j}, {}, {t.one}); }, [](T t) { return t.x; }},
      {"x[j, i], with or without a fill", [](T t) { return t.g.AddReindex(t.x, {t.M, t.N}, {t.j, t.i}, t.Number(5)); }, [](T t) { return t.Transposed(t.x); }},
      {"no fill is a zero", [](T t) { return t.Shifted(); }, [](T t) { return t.Shifted(t.Number(0)); }},
      // One that never leaves its bounds composes with the one below it.
      {"transposed twice", [](T t) { return t.Transposed(t.Transposed(t.x)); }, [](T t) { return t.x; }},
      {"repeated twice", [](T t) { return t.g.AddBroadcast(t.g.AddBroadcast(t.v, {t.N, t.M}, {0}), {t.K, t.N, t.M}, {1, 2}); },
       [](T t) { return t.g.AddBroadcast(t.v, {t.K, t.N, t.M}, {1}); }},
      {"repeated after a shift", [](T t) { return t.g.AddBroadcast(t.Shifted(t.Number(5)), {t.M, t.N}, {1}); },
       [](T t) { return t.g.AddReindex(t.v, {t.M, t.N}, {t.pool.Sub(t.j, t.one)}, t.Number(5)); }},
      {"repeated after a condition",
       [](T t) { return t.g.AddBroadcast(t.g.AddReindex(t.v, {t.N}, {t.i}, {}, {t.pool.Condition(IndexKind::kLt, t.i, t.K)}), {t.M, t.N}, {1}); },
       [](T t) { return t.g.AddReindex(t.v, {t.M, t.N}, {t.j}, {}, {t.pool.Condition(IndexKind::kLt, t.j, t.K)}); }},
      // Nothing is computed once per point of an axis that it does not depend on.
      {"exp of what is repeated", [](T t) { return t.Exp(t.g.AddBroadcast(t.v, {t.N, t.M}, {0})); }, [](T t) { return t.g.AddBroadcast(t.Exp(t.v), {t.N, t.M}, {0}); }},
      {"a product of what is repeated along one axis", [](T t) { return t.Times(t.g.AddBroadcast(t.v, {t.M, t.N}, {1}), t.g.AddSplat(t.s, {t.M, t.N})); },
       [](T t) { return t.g.AddBroadcast(t.Times(t.v, t.g.AddSplat(t.s, {t.N})), {t.M, t.N}, {1}); }},
      {"a number at every point", [](T t) { return t.Exp(t.g.AddSplat(t.Number(2), {t.N, t.M})); }, [](T t) { return t.g.AddSplat(t.Exp(t.Number(2)), {t.N, t.M}); }},
      {"a sum of what is repeated", [](T t) { return t.Sum(t.g.AddBroadcast(t.x, {t.N, t.K, t.M}, {0, 2}), {2}); },
       [](T t) { return t.g.AddBroadcast(t.Sum(t.x, {1}), {t.N, t.K}, {0}); }},
      {"2*j over [i, j]", [](T t) { return t.g.AddIndex(t.pool.Mul(t.pool.Const(2), t.j), {t.N, t.M}); },
       [](T t) { return t.g.AddBroadcast(t.g.AddIndex(t.pool.Mul(t.pool.Const(2), t.i), {t.M}), {t.N, t.M}, {1}); }},
      {"an index that is a number", [](T t) { return t.g.AddIndex(t.pool.Const(7), {t.N}); }, [](T t) { return t.g.AddSplat(t.g.AddConstant(Scalar::I64(7)), {t.N}); }},
      // Reductions and scatters.
      {"a sum over the first axis", [](T t) { return t.Sum(t.x, {0}); }, [](T t) { return t.Sum(t.Transposed(t.x), {1}); }},
      {"a sum over both axes, the last one first", [](T t) { return t.Sum(t.x, {1, 0}); }, [](T t) { return t.Sum(t.Transposed(t.x), {0, 1}); }},
      {"a transposed product that is summed", [](T t) { return t.Sum(t.Transposed(t.Times(t.x, t.w)), {1}); },
       [](T t) { return t.Sum(t.Times(t.Transposed(t.x), t.Transposed(t.w)), {1}); }},
      {"the greatest over no axis", [](T t) { return t.g.AddReduce(ReduceOp::kMax, t.x, {}); }, [](T t) { return t.x; }},
      {"a sum of integers over no axis", [](T t) { return t.Sum(t.ids, {}); }, [](T t) { return t.ids; }},
      {"a sum of floats over no axis", [](T t) { return t.Sum(t.s, {}); }, [](T t) { return t.g.AddMap(ScalarOp::kAdd, {t.Number(0), t.s}); }},
      {"the first place over no axis", [](T t) { return t.g.AddReduce(ReduceOp::kArgmax, t.v, {}); }, [](T t) { return t.g.AddSplat(t.g.AddConstant(Scalar::I64(0)), {t.N}); }},
      {"a scatter from either order of axes", [](T t) { return t.g.AddScatter(ReduceOp::kSum, t.x, {t.M}, {t.j}); },
       [](T t) { return t.g.AddScatter(ReduceOp::kSum, t.Transposed(t.x), {t.M}, {t.i}); }},
      // Constants and casts.
      {"minus a number", [](T t) { return t.g.AddMap(ScalarOp::kNeg, {t.Number(2)}); }, [](T t) { return t.Number(-2); }},
      {"a cast of a number", [](T t) { return t.g.AddCast(t.Number(2.75), kI64); }, [](T t) { return t.g.AddConstant(Scalar::I64(2)); }},
      {"a cast to the type it has", [](T t) { return t.g.AddCast(t.x, kF32); }, [](T t) { return t.x; }},
      // Recurrences.
      {"the same equations", [](T t) { return t.Product(); }, [](T t) { return t.Product(); }},
  };
  // clang-format on
  for (const Pair& pair : kPairs) {
    for (const bool left_first : {true, false}) {
      Tensors t;
      const NodeId first = (left_first ? pair.left : pair.right)(t);
      EXPECT_EQ((left_first ? pair.right : pair.left)(t), first) << pair.what;
      ExpectOperandsBefore(t.g);
    }
  }
}

TEST(Graph, TwoNodes) {
  using T = Tensors&;
  // clang-format off
  constexpr Pair kPairs[] = {
      {"inputs of two types", [](T t) { return t.x; }, [](T t) { return t.g.AddInput("x", kF64, {t.N, t.M}); }},
      {"inputs of two shapes", [](T t) { return t.x; }, [](T t) { return t.g.AddInput("x", kF32, {t.M, t.N}); }},
      {"an input and a $param", [](T t) { return t.g.AddInput("$p", kF32, {}); }, [](T t) { return t.g.AddParam("$p", kF32); }},
      {"0 and -0", [](T t) { return t.Number(0.0f); }, [](T t) { return t.Number(-0.0f); }},
      {"0 of two types", [](T t) { return t.Number(0); }, [](T t) { return t.g.AddConstant(Scalar::Zero(kF64)); }},
      {"two fills", [](T t) { return t.Shifted(t.Number(1)); }, [](T t) { return t.Shifted(t.Number(2)); }},
      {"x[i, j] over fewer points", [](T t) { return t.g.AddReindex(t.x, {t.K, t.M}, {t.i, t.j}); }, [](T t) { return t.x; }},
      {"x[i, j] nowhere", [](T t) { return t.g.AddReindex(t.x, {t.N, t.M}, {t.i, t.j}, {}, {t.pool.Const(0)}); }, [](T t) { return t.x; }},
      {"a shift of a shift", [](T t) { return t.g.AddReindex(t.Shifted(), {t.N}, {t.pool.Add(t.i, t.one)}); }, [](T t) { return t.v; }},
      {"sums in two orders", [](T t) { return t.Sum(t.x, {0, 1}); }, [](T t) { return t.Sum(t.x, {1, 0}); }},
      {"sums and products", [](T t) { return t.Sum(t.x, {0}); }, [](T t) { return t.g.AddReduce(ReduceOp::kProd, t.x, {0}); }},
      {"a sum over two axes and over one", [](T t) { return t.Sum(t.x, {0, 1}); }, [](T t) { return t.Sum(t.x, {1}); }},
      {"a sum of n equal terms", [](T t) { return t.Sum(t.g.AddSplat(t.s, {t.N}), {0}); }, [](T t) { return t.Sum(t.s, {}); }},
      {"a sum over no axis turns -0 into 0", [](T t) { return t.Sum(t.v, {}); }, [](T t) { return t.v; }},
      {"scatters to two shapes", [](T t) { return t.g.AddScatter(ReduceOp::kSum, t.v, {t.M}, {t.i}); }, [](T t) { return t.g.AddScatter(ReduceOp::kSum, t.v, {t.K}, {t.i}); }},
      {"a copy with a tag", [](T t) { return t.g.AddTaggedCopy(t.x, 1); }, [](T t) { return t.x; }},
      {"two tags", [](T t) { return t.g.AddTaggedCopy(t.x, 1); }, [](T t) { return t.g.AddTaggedCopy(t.x, 2); }},
      {"two carries", [](T t) { return t.g.AddCarry(kF32, {t.N}, 0, false); }, [](T t) { return t.g.AddCarry(kF32, {t.N}, 0, false); }},
  };
  // clang-format on
  for (const Pair& pair : kPairs) {
    Tensors t;
    const NodeId first = pair.left(t);
    EXPECT_NE(pair.right(t), first) << pair.what;
  }
}

// Ids are 0, 1, 2, ..; what is found is not added; a copy goes its own way.
TEST(Graph, HandsOutIdsInOrder) {
  Graph g;
  const NodeId a = g.AddParam("$a", kF32), b = g.AddParam("$b", kF32);
  EXPECT_EQ(a, NodeId{0});
  EXPECT_EQ(b, NodeId{1});
  EXPECT_FALSE(g.Find(Node{Param{"$c"}, kF32, {}}).valid());
  EXPECT_FALSE(g.Find(Node{Param{"$b"}, kF64, {}}).valid());
  EXPECT_EQ(g.Find(Node{Param{"$b"}, kF32, {}}), b);
  EXPECT_EQ(g.size(), 2);
  Graph copy = g;
  const NodeId sum = copy.AddMap(ScalarOp::kAdd, {a, b});
  EXPECT_EQ(copy.As<Param>(a)->name, "$a");
  EXPECT_EQ(copy.AddParam("$b", kF32), b);
  EXPECT_EQ(sum, NodeId{2});
  EXPECT_EQ(copy.size(), 3);
  EXPECT_EQ(g.size(), 2);
}

// Type and shape of a node follow from its op.
TEST(Graph, TypesAndShapes) {
  Tensors t;
  const NodeId is_less = t.g.AddMap(ScalarOp::kLt, {t.x, t.w});
  EXPECT_EQ(t.g.type(is_less), DType::kBool);
  const NodeId choice = t.g.AddMap(ScalarOp::kSelect, {is_less, t.x, t.w});
  EXPECT_EQ(t.g.type(choice), kF32);
  EXPECT_EQ(t.g.shape(choice), (Shape{t.N, t.M}));
  const NodeId place = t.g.AddReduce(ReduceOp::kArgmin, t.x, {0});
  EXPECT_EQ(t.g.type(place), kI64);
  EXPECT_EQ(t.g.shape(place), Shape{t.M});
  EXPECT_EQ(t.g.type(t.g.AddIndex(t.i, {t.N})), kI64);
  const NodeId scatter = t.g.AddScatter(ReduceOp::kMin, t.ids, {t.K, t.M}, {t.i, t.i});
  EXPECT_EQ(t.g.type(scatter), kI64);
  EXPECT_EQ(t.g.shape(scatter), (Shape{t.K, t.M}));
  EXPECT_EQ(t.g.rank(t.Product()), 1);
}

// Names, and the value that a reduction starts from: one step from it gives the element.
TEST(Graph, Reductions) {
  const char* const kSigns[] = {"+", "*", "max", "min", "argmax", "argmin", "any", "all"};
  for (int number = 0; number <= static_cast<int>(ReduceOp::kAll); ++number) {
    const ReduceOp op{static_cast<uint8_t>(number)};
    EXPECT_EQ(ReduceOpByName(Name(op)), op);
    EXPECT_EQ(AccumulationSign(op), kSigns[number]);
    const bool logical = op == ReduceOp::kAny || op == ReduceOp::kAll;
    for (DType type : AllTypes()) {
      const absl::optional<DType> result = ReduceResultType(op, type);
      ASSERT_EQ(result.has_value(), logical == (type == DType::kBool)) << Name(op) << Name(type);
      if (!result) continue;
      EXPECT_EQ(*result, IsArg(op) ? kI64 : type) << Name(op) << Name(type);
      if (IsArg(op)) continue;
      for (const Scalar& element : {Lowest(type), Scalar::Zero(type), Highest(type)}) {
        const Bits operands[] = {Identity(op, type).bits, element.bits};
        EXPECT_EQ((Scalar{type, Primitive(StepOp(op), type, type)(operands)}), element)
            << Name(op) << " " << LiteralText(element);
      }
    }
  }
  EXPECT_FALSE(ReduceOpByName("+").has_value());
}

// ---- Operands

TEST(Graph, VisitsOperands) {
  Tensors t;
  const NodeId one = t.Number(1);
  const auto load = [&](NodeId tensor, IndexId at) { return t.pool.Load(tensor.value, {at}); };
  const NodeId others = t.g.AddInput("others", kI64, {t.N});
  EXPECT_THAT(OperandsOf(t.g, t.x), IsEmpty());
  EXPECT_THAT(OperandsOf(t.g, one), IsEmpty());
  EXPECT_THAT(OperandsOf(t.g, t.g.AddParam("$p", kF32)), IsEmpty());
  EXPECT_THAT(OperandsOf(t.g, t.g.AddCarry(kF32, {t.N}, 0, false)), IsEmpty());
  EXPECT_THAT(OperandsOf(t.g, t.g.AddIndex(t.i, {t.N})), IsEmpty());
  EXPECT_THAT(OperandsOf(t.g, t.g.AddIndex(load(t.ids, t.i), {t.N})), ElementsAre(t.ids));
  const IndexId small = t.pool.Condition(IndexKind::kLt, load(others, t.i), t.K);
  EXPECT_THAT(OperandsOf(t.g, t.g.AddReindex(t.v, {t.N}, {load(t.ids, t.i)}, one, {small})),
              ElementsAre(t.v, one, t.ids, others));
  EXPECT_THAT(OperandsOf(t.g, t.Times(t.x, t.w)), ElementsAre(t.x, t.w));
  EXPECT_THAT(OperandsOf(t.g, t.Sum(t.x, {1})), ElementsAre(t.x));
  EXPECT_THAT(
      OperandsOf(t.g, t.g.AddScatter(ReduceOp::kSum, t.v, {t.K}, {load(t.ids, load(others, t.i))})),
      ElementsAre(t.v, others, t.ids));
  const NodeId product = t.Product();
  const Recurrence& recurrence = *t.g.As<Recurrence>(product);
  EXPECT_THAT(OperandsOf(t.g, product), ElementsAre(recurrence.x, recurrence.bodies[0]));
}

TEST(Graph, FindsWhatNodesDependOn) {
  Tensors t;
  const NodeId e = t.Exp(t.v), y = t.Times(e, t.v), unused = t.Exp(y);
  const NodeId gathered = t.g.AddIndex(t.pool.Load(t.ids.value, {t.i}), {t.N});
  const auto depends = [&](const std::vector<NodeId>& from, const std::vector<NodeId>& cut,
                           NodeId on) -> bool { return Reachable(t.g, from, cut).at(on.value); };
  EXPECT_TRUE(depends({y}, {}, y));
  EXPECT_TRUE(depends({y}, {}, e));
  EXPECT_TRUE(depends({y}, {}, t.v));
  EXPECT_FALSE(depends({y}, {}, unused));
  EXPECT_FALSE(depends({y}, {}, t.x));
  EXPECT_TRUE(depends({t.x, gathered}, {}, t.ids));
  // A node where it is cut is reached; its operands are if another path leads there.
  EXPECT_TRUE(depends({e}, {e}, e));
  EXPECT_FALSE(depends({e}, {e}, t.v));
  EXPECT_TRUE(depends({y}, {e}, t.v));
  EXPECT_FALSE(depends({y}, {y}, e));
}

TEST(Graph, ListsEachSystemOnce) {
  Tensors t;
  EXPECT_THAT(t.g.recurrences(), IsEmpty());
  // Two views of a system, then another system.
  const NodeId first = t.g.AddCarry(kF32, {t.N}, 0, false);
  const NodeId doubled = t.Times(t.g.AddReindex(first, {t.N}, {t.pool.Sub(t.i, t.one)}), t.v);
  const NodeId body = t.g.AddMap(ScalarOp::kAdd, {doubled, t.v});
  const NodeId view = t.g.AddRecurrence(body, {first}, {body});
  t.g.AddRecurrence(doubled, {first}, {body});
  const NodeId product = t.Product();
  EXPECT_THAT(t.g.recurrences(), ElementsAre(view, product));
}

// ---- Imports

// The images of `roots` in `to`, tags shifted by 10; inputs and the nodes in `cut` by `leaf`, the
// symbol N by `n`.
std::vector<NodeId> Imported(const Graph& from, const std::vector<NodeId>& roots, Graph& to,
                             absl::FunctionRef<NodeId(NodeId)> leaf, absl::optional<IndexId> n,
                             const std::vector<NodeId>& cut = {}) {
  const auto symbol = [&](int64_t number) -> absl::optional<IndexId> {
    return from.pool().SymbolNameAt(number) == "N" ? n : absl::nullopt;
  };
  const auto tag = [](int64_t number) { return number + 10; };
  return ImportNodes(from, roots, to, {leaf, symbol, tag, cut});
}

TEST(Graph, ImportsWhatRootsDependOn) {
  Tensors t;
  const NodeId unused = t.Exp(t.x);
  const NodeId y = t.g.AddTaggedCopy(t.Times(t.v, t.Exp(t.v)), 3);
  Graph to;
  const IndexId four = to.pool().Const(4);
  const NodeId image_of_v = to.AddInput("u", kF32, {four});
  std::vector<NodeId> leaves;
  const auto leaf = [&](NodeId id) {
    leaves.push_back(id);
    return image_of_v;
  };
  const std::vector<NodeId> images = Imported(t.g, {y, t.v, y}, to, leaf, four);
  EXPECT_THAT(leaves, ElementsAre(t.v));  // once, and not x
  EXPECT_TRUE(unused.valid());
  ASSERT_EQ(images.size(), 3u);
  EXPECT_EQ(images[0], images[2]);
  EXPECT_EQ(images[1], image_of_v);
  EXPECT_EQ(to.shape(images[0]), Shape{four});
  EXPECT_EQ(to.As<Map>(images[0])->tag, 13);
  EXPECT_EQ(to.size(), 4);  // u, exp, mul, copy
}

// What is cut comes from `leaf`, and nothing below it is made.
TEST(Graph, ImportsNothingBelowACut) {
  Tensors t;
  const NodeId e = t.Exp(t.v), y = t.Exp(e);
  Graph to;
  const NodeId made = to.AddInput("made", kF32, {to.pool().Symbol("N")});
  const auto leaf = [&](NodeId id) {
    EXPECT_EQ(id, e);
    return made;
  };
  const NodeId image = Imported(t.g, {y}, to, leaf, absl::nullopt, {e})[0];
  EXPECT_EQ(to.As<Map>(image)->args[0], made);
  EXPECT_EQ(to.size(), 2);
}

// The constructors simplify what the images are simpler for.
TEST(Graph, ImportsInCanonicalForm) {
  Tensors t;
  const NodeId y = t.Times(t.g.AddMap(ScalarOp::kNeg, {t.s}), t.g.AddReindex(t.v, {}, {t.N}));
  const NodeId z = t.g.AddReindex(t.v, {t.N}, {t.pool.Mul(t.i, t.K)});
  Graph to;
  const IndexId n = to.pool().Symbol("P");
  const NodeId two = to.AddConstant(Scalar::Float(kF32, 2)), u = to.AddInput("u", kF32, {n});
  const auto leaf = [&](NodeId id) { return id == t.s ? two : u; };
  const auto symbol = [&](int64_t number) -> absl::optional<IndexId> {
    return t.pool.SymbolNameAt(number) == "K" ? to.pool().Const(1) : n;
  };
  const auto tag = [](int64_t number) { return number; };
  const std::vector<NodeId> images = ImportNodes(t.g, {y, z}, to, {leaf, symbol, tag});
  EXPECT_EQ(to.As<Constant>(to.As<Map>(images[0])->args[0])->value, Scalar::Float(kF32, -2));
  EXPECT_EQ(to.As<Reindex>(to.As<Map>(images[0])->args[1])->place[0], n);
  EXPECT_EQ(images[1], u);  // v[i * K] is u[i] where K is 1
}

// Loads are from the images of their tensors, and equations are those that are there.
TEST(Graph, ImportsLoadsAndRecurrences) {
  Tensors t;
  const NodeId gathered = t.g.AddReindex(t.v, {t.N}, {t.pool.Load(t.ids.value, {t.i})});
  const NodeId product = t.Product();
  const auto same = [](NodeId id) { return id; };
  EXPECT_THAT(Imported(t.g, {gathered, product}, t.g, same, absl::nullopt),
              ElementsAre(gathered, product));
  Graph to;
  to.AddParam("$other", kF32);  // so that numbers differ
  const IndexId n = to.pool().Symbol("N");
  const NodeId ids = to.AddInput("ids", kI64, {n}), v = to.AddInput("v", kF32, {n});
  const auto leaf = [&](NodeId id) { return id == t.ids ? ids : v; };
  const std::vector<NodeId> images =
      Imported(t.g, {gathered, product, product}, to, leaf, absl::nullopt);
  EXPECT_THAT(OperandsOf(to, images[0]), ElementsAre(v, testing::_, ids));
  ASSERT_NE(to.As<Recurrence>(images[1]), nullptr);
  EXPECT_THAT(to.recurrences(), ElementsAre(images[1]));
  ExpectOperandsBefore(to);
}

TEST(Graph, ComparesProgramsByName) {
  using Make = NodeId (*)(Tensors & t);
  const Make kPrograms[] = {
      [](Tensors& t) { return t.Exp(t.v); },
      [](Tensors& t) { return t.Exp(t.g.AddInput("v2", kF32, {t.N})); },
      [](Tensors& t) { return t.Exp(t.g.AddInput("v", kF32, {t.M})); },
      [](Tensors& t) { return t.Exp(t.g.AddInput("v", kF64, {t.N})); },
      [](Tensors& t) { return t.Exp(t.g.AddSplat(t.g.AddParam("$p", kF32), {t.N})); },
      [](Tensors& t) { return t.Exp(t.g.AddSplat(t.g.AddParam("$q", kF32), {t.N})); },
      [](Tensors& t) { return t.Shifted(); },
      [](Tensors& t) { return t.Product(); },
      [](Tensors& t) { return t.Sum(t.x, {0}); },
      [](Tensors& t) { return t.Sum(t.x, {1}); },
  };
  for (const Make a : kPrograms) {
    for (const Make b : kPrograms) {
      Tensors left, right;
      right.Exp(right.w);  // so that numbers differ
      const NodeId x = a(left), y = b(right);
      EXPECT_EQ(SameStructure(left.g, {x}, right.g, {y}), a == b) << x.value << " " << y.value;
    }
  }
  // Tags say nothing; order and number of the roots do.
  Tensors t;
  const NodeId first = t.g.AddTaggedCopy(t.v, 1), second = t.g.AddTaggedCopy(t.v, 2);
  EXPECT_TRUE(SameStructure(t.g, {first}, t.g, {second}));
  EXPECT_FALSE(SameStructure(t.g, {t.x, t.w}, t.g, {t.w, t.x}));
  EXPECT_FALSE(SameStructure(t.g, {t.x}, t.g, {t.x, t.x}));
}

TEST(Graph, ComparesProgramsOfAnyDepth) {
  Tensors a, b;
  NodeId x = a.v, y = b.v;
  for (int depth = 0; depth < 20000; ++depth) {
    x = a.Exp(x);
    y = b.Exp(y);
  }
  EXPECT_TRUE(SameStructure(a.g, {x}, b.g, {y}));
  EXPECT_FALSE(SameStructure(a.g, {x}, b.g, {b.Exp(y)}));
}

// ---- Broken invariants

TEST(GraphDeathTest, MismatchesEndTheProcess) {
  struct Misuse {
    const char* message;
    void (*make)(Tensors& t);
  };
  const Misuse kMisuses[] = {
      {"a place has one index per axis", [](Tensors& t) { t.g.AddReindex(t.x, {t.N}, {t.i}); }},
      {"a fill is a scalar", [](Tensors& t) { t.g.AddReindex(t.ids, {t.N}, {t.i}, t.s); }},
      {"a fill is a scalar", [](Tensors& t) { t.g.AddReindex(t.v, {t.N}, {t.i}, t.v); }},
      {"add", [](Tensors& t) { t.g.AddMap(ScalarOp::kAdd, {t.x}); }},
      {"add",
       [](Tensors& t) {
         t.g.AddMap(ScalarOp::kAdd, {t.v, t.ids});
       }},
      {"add of unequal shapes",
       [](Tensors& t) {
         t.g.AddMap(ScalarOp::kAdd, {t.v, t.s});
       }},
      {"exp of i64", [](Tensors& t) { t.Exp(t.ids); }},
      {"where",
       [](Tensors& t) {
         t.g.AddMap(ScalarOp::kSelect, {t.v, t.v, t.v});
       }},
      {"sum of bool", [](Tensors& t) { t.Sum(t.b, {0}); }},
      {"any of f32", [](Tensors& t) { t.g.AddReduce(ReduceOp::kAny, t.v, {0}); }},
      {"the axes of a reduction are distinct axes of its operand",
       [](Tensors& t) {
         t.Sum(t.x, {1, 1});
       }},
      {"the axes of a reduction are distinct axes of its operand",
       [](Tensors& t) { t.Sum(t.x, {2}); }},
      {"the axes of a reduction are distinct axes of its operand",
       [](Tensors& t) { t.Sum(t.x, {-1}); }},
      {"a scatter by sum of bool",
       [](Tensors& t) { t.g.AddScatter(ReduceOp::kSum, t.b, {t.M}, {t.i}); }},
      {"a scatter by max of bool",
       [](Tensors& t) { t.g.AddScatter(ReduceOp::kMax, t.b, {t.M}, {t.i}); }},
      {"an index of a place is an axis of the scatter's operand",
       [](Tensors& t) { t.g.AddScatter(ReduceOp::kSum, t.v, {t.M}, {t.j}); }},
      {"an index of a place is an axis of the result",
       [](Tensors& t) { t.g.AddReindex(t.v, {t.N}, {t.j}); }},
      {"an index of a condition is an axis of the result",
       [](Tensors& t) {
         t.g.AddReindex(t.v, {t.N}, {t.i}, NodeId(),
                        {t.pool.Condition(IndexKind::kLt, t.j, t.one)});
       }},
      {"an index of an expression is an axis of the result",
       [](Tensors& t) { t.g.AddIndex(t.j, {t.N}); }},
      {"a scatter is by sum, prod, max or min",
       [](Tensors& t) { t.g.AddScatter(ReduceOp::kArgmax, t.v, {t.M}, {t.i}); }},
      {"a place has one index per axis",
       [](Tensors& t) {
         t.g.AddScatter(ReduceOp::kSum, t.v, {t.M}, {t.i, t.i});
       }},
      {"an axis of its own", [](Tensors& t) { t.g.AddCarry(kF32, {t.N}, 1, false); }},
      {"an equation for each carry", [](Tensors& t) { t.g.AddRecurrence(t.v, {}, {}); }},
      {"has no identity", [](Tensors&) { Identity(ReduceOp::kArgmax, kF32); }},
      {"a leaf is not rebuilt",
       [](Tensors& t) {
         const auto image = [](NodeId id) { return id; };
         const auto index = [](IndexId e) { return e; };
         const auto tag = [](int64_t number) { return number; };
         Rebuild(t.g, t.v, t.g, {image, index, tag});
       }},
  };
  for (const Misuse& misuse : kMisuses) {
    Tensors t;
    EXPECT_DEATH(misuse.make(t), misuse.message);
  }
}

}  // namespace
}  // namespace nestor
