// Footprints and carried tensors of items, in tables; what proofs tell apart, and what they do not.
#include "loop_ir/dependence.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/text_testing.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {
namespace {

Program Around(absl::string_view items) {
  const std::string text = absl::StrCat(
      "program p(x: f32[N, C], w: f32[C], ids: i64[N]; $k: i64) -> (y: f32[N, C], z: f32[N*C], r: f32) {\n"
      "  temp t: f32[N]\n  temp u: f32\n  acc m: f32[N] = max\n  acc a: f32 = argmax\n",
      items, "\n}\n");
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  return program.value_or(Program());
}

std::string Names(const Program& program, const Footprint::Set& set) {
  std::vector<std::string> names;
  for (TensorId id : set) names.push_back(program[id].name);
  std::sort(names.begin(), names.end());
  return absl::StrJoin(names, " ");
}

TEST(Dependence, Footprint) {
  const struct {
    const char* nest;
    const char *reads, *writes, *accumulates;
  } kCases[] = {
      {"for i in [0, N) { temp e: f32 }", "", "", ""},
      {"r = 1.0", "", "r", ""},
      {"for i in [0, N) { t[i] = x[i, 0] + w[0] }", "w x", "t", ""},
      {"for i in [0, N) { for c in [0, C) { m[i] max= x[i, c] } }", "x", "", "m"},
      {"for i in [0, N) { drop t[ids[i]] if ids[i + 1] < 3 += u }", "ids u", "", "t"},
      {"for i in [0, N) { t[i] = f32(index(ids[i])) }", "ids", "t", ""},
      {"for i in [0, N) { t[i] = x[i, i | 0.0 if ids[i] == 2] }", "ids x", "t", ""},
      {"for i in [0, N) { a argmax= (w[i], ids[i]) }", "ids w", "", "a"},
      {"for i in [0, N) { temp l: f32  acc s: f32 = sum  s += l  l = w[i]  r = s }", "w", "r", ""},
  };
  for (const auto& c : kCases) {
    const Program program = Around(c.nest);
    const Footprint footprint = FootprintOf(program, NestAt(program, 0));
    EXPECT_EQ(Names(program, footprint.reads), c.reads) << c.nest;
    EXPECT_EQ(Names(program, footprint.writes), c.writes) << c.nest;
    EXPECT_EQ(Names(program, footprint.accumulates), c.accumulates) << c.nest;
  }
}

// How many rows each of an even number of strips has.
#define STRIP "min((N + 2*max((N + 15)/16, 1) - 1)/(2*max((N + 15)/16, 1)), 8)"
#define IN_STRIPS(body) \
  "for v in [0, N) { for k in [v*" STRIP ", min(N, v*" STRIP " + " STRIP ")) { " body " } }"

// How many rows a strip of 24 has.
#define LEFT "min(N - 24*v, 24)"

// The carried tensor of the outermost loop; "": none.
TEST(Dependence, CarriedTensor) {
  const struct {
    const char* loop;
    const char* carried;
  } kCases[] = {
      // A single iteration has no other to depend on.
      {"for i in [0, 1) { t[0] = t[1] }", ""},
      {"for i in [3, 5) step 2 { r += w[i] }", ""},
      {"for i in [3, 6) step 2 { r += w[i] }", "r"},
      // Nothing is changed, or only what the body declares.
      {"for v in [0, N) {}", ""},
      {"for v in [0, N) { temp l: f32  l = x[v, 0] }", ""},
      // One axis is the index.
      {"for v in [0, N) { t[v] = w[0] }", ""},
      {"for v in [0, N) { t[v] = t[v] + t[v] }", ""},
      {"for v in [0, N) { m[v] max= w[0] }", ""},
      {"for v in [0, N) { drop t[2*v + $k] = w[0] }", ""},
      {"for v in [0, N) { t[-v] = w[0] }", ""},
      {"for v in [0, N) { for c in [0, C) { y[v, c] = x[v, c] } }", ""},
      {"for v in [0, N) { for c in [0, C) { y[c, v] = y[c + 1, v] } }", ""},
      // No axis, or one that does not move.
      {"for v in [0, N) { r = w[0] }", "r"},
      {"for v in [0, N) { r += w[v] }", "r"},
      {"for v in [0, N) { a argmax= (w[v], index(v)) }", "a"},
      {"for v in [0, N) { t[0] = w[v] }", "t"},
      {"for v in [0, N) { for c in [0, C) { y[0, c] += x[v, c] } }", "y"},
      {"for v in [0, N) { for c in [0, C) { t[c] += x[v, c] } }", "t"},
      // Neighbours, and places that data decides.
      {"for v in [0, N) { t[v] = t[v + 1] }", "t"},
      {"for v in [0, N) { t[2*v] = t[2*v + 1] }", ""},
      {"for v in [0, N) { t[2*v] = t[2*v + 2] }", "t"},
      {"for v in [0, N) { t[v] = t[ids[v]] }", "t"},
      {"for v in [0, N) { t[ids[v]] += w[0] }", "t"},
      {"for v in [0, N) { t[v/2] = w[0] }", "t"},
      {"for v in [0, N) { t[v + v/2] = w[0] }", "t"},
      {"for v in [0, N) { t[v%4] = w[0] }", "t"},
      {"for v in [0, N) { t[$k*v] = w[0] }", "t"},
      {"for v in [0, N) { z[C*v] = w[0] }", "z"},  // C may be 0
      {"for v in [0, N) { u = w[v]  t[v] = u }", "u"},
      // Reads in an index: of this tensor, in another one's place.
      {"for v in [0, N) { drop y[v, 0] if ids[v] < 3 = y[ids[v], 0] }", "y"},
      // Strips: each iteration within its own window.
      {"for v in [0, N) step 8 { for j in [v, v + 8) { t[j] = w[0] } }", ""},
      {"for v in [0, N) step 8 { for j in [v, min(N, v + 8)) { t[j] = w[0] } }", ""},
      {"for v in [0, N) step 8 { for j in [v, min(v + 9, N)) { t[j] = w[0] } }", "t"},
      {"for v in [0, N) step 8 { for j in [0, 8) { t[v + j] = w[0] } }", ""},
      {"for v in [0, N) step 8 { for j in [0, 8) step 2 { t[v + j] = t[v + j + 1] } }", "t"},
      {"for v in [0, N) step 8 { for j in [0, 8) { t[min(v + j, N - 1)] = w[0] } }", "t"},
      {"for v in [0, N) step 8 { for j in [max(v, 3), v + 8) { t[j] = w[0] } }", ""},
      {"for v in [0, N) { for j in [0, 4) { for k in [0, 3) { t[12*v + 3*j + k] = w[0] } } }", ""},
      {"for v in [0, N) { for j in [0, 4) { for k in [0, 4) { t[12*v + 3*j + k] = w[0] } } }", "t"},
      {"for v in [0, N) { for j in [0, 4) { t[8*v - j] = t[8*v + 3] } }", ""},
      {"for v in [0, N) { for j in [0, 4) { t[8*v - 2*j] = t[8*v + 2] } }", "t"},
      {IN_STRIPS("t[k] = w[0]"), ""},
      {IN_STRIPS("drop t[k + 1] = t[k]"), "t"},
      {IN_STRIPS("for c in [0, C) { z[C*k + c] = w[c] }"), ""},
      {IN_STRIPS("for c in [0, C + 1) { drop z[C*k + c] = w[c] }"), "z"},
      {IN_STRIPS(
           "for f in [0, min(C/16, 1)) { for q in [0, ((C + 15)/16 + 15)/16) { for j in [16*q, min(16*q + 16, (C + 15)/16)) {"
           " for l in [0, 16) { z[C*k + min(C - 16, 16*j) + l] = w[l] } } } }"),
       ""},
      {IN_STRIPS("for c in [0, min(-15*min(C/16, 1) + 15, min(C, 15))) { z[C*k + c] = w[c] }"), ""},
      // Tiles of a strip, the last of which has fewer rows; the rows that are left are in one
      // more tile.
      {"for v in [0, (N + 23)/24) { for k in [0, " LEFT
       "/8) { for j in [0, 8) { t[24*v + 8*k + j] = w[0] } } }",
       ""},
      {"for v in [0, (N + 23)/24) { for k in [0, (" LEFT
       " + 7)/8) { for j in [0, 8) { t[24*v + 8*k + j] = w[0] } } }",
       "t"},
      {"for v in [0, (N + 23)/24) { for j in [0, 8) { for f in [0, min(max(" LEFT " - 8*(" LEFT
       "/8) - j, 0), 1)) {"
       " t[24*v + 8*(" LEFT "/8) + j] = w[0] } } }",
       ""},
      {"for v in [0, (N + 23)/24) { for j in [0, 8) { for f in [0, min(max(" LEFT " + 1 - 8*(" LEFT
       "/8) - j, 0), 1)) {"
       " t[24*v + 8*(" LEFT "/8) + j] = w[0] } } }",
       "t"},
      {"for v in [0, (N + 23)/24) { for j in [0, 8) { t[24*v + 8*(" LEFT "/8) + j] = w[0] } }",
       "t"},
      // Where there may be more strips than rows, the last ones lie before the first.
      {"for v in [0, N) { for j in [0, 8) { for f in [0, min(max(" LEFT " - 8*(" LEFT
       "/8) - j, 0), 1)) {"
       " t[24*v + 8*(" LEFT "/8) + j] = w[0] } } }",
       "t"},
      // A flat place: rows of C.
      {"for v in [0, N) { for c in [0, C) { z[C*v + c] = w[c] } }", ""},
      {"for v in [0, N) { for c in [0, C) { z[C*v + c + 1] = z[C*v + c] } }", "z"},
      {"for v in [0, N) { for c in [0, C + 1) { z[C*v + c] = w[c] } }", "z"},
      {"for v in [0, N) { for c in [0, (C + 1)/2) { z[((C + 1)/2)*v + c] = w[c] } }", ""},
      {"for v in [0, N) { for c in [0, (C + 1)/2) { z[2*C*v + 2*c] = w[c] } }", ""},
      {"for v in [0, N) { for c in [0, (C + 1)/2 + 1) { z[2*C*v + 2*c] = w[c] } }", "z"},
      {"for v in [0, N) { for c in [0, (C - 1)/2 + 1) { z[((C - 1)/2 + 1)*v + c] = w[c] } }", ""},
      {"for v in [0, N) { for c in [0, ($k + 1)/2) { z[(($k + 1)/2)*v + c] = w[c] } }", "z"},
      // The last tile ends where the row does, which is as long as a tile where there is one.
      {"for v in [0, N) { for f in [0, min(C/8, 1)) { for q in [0, (C + 7)/8) { for l in [0, 8) "
       "{ z[C*v + min(C - 8, 8*q) + l] = w[l] } } } }",
       ""},
      {"for v in [0, N) { for f in [1, C/4) { for q in [0, 2) { for l in [0, 8) "
       "{ z[C*v + min(C - 8, 8*q) + l] = w[l] } } } }",
       ""},
      {"for v in [0, N) { for f in [0, min(C/7, 1)) { for q in [0, (C + 7)/8) { for l in [0, 8) "
       "{ z[C*v + min(C - 8, 8*q) + l] = w[l] } } } }",
       "z"},
      {"for v in [0, N) { for q in [0, (C + 7)/8) { for l in [0, 8) { z[C*v + min(C - 8, 8*q) + l] = w[l] } } }",
       "z"},
      // Nothing is known about an expression that rises with one index and falls with another; a
      // quotient rises with its dividend.
      {"for v in [0, N) { for c in [0, 4) { t[4*v + min(c, 3)] = w[0] } }", ""},
      {"for v in [0, N) { for c in [0, 4) { t[4*v + max(c, 3 - c)] = w[0] } }", "t"},
      {"for v in [0, N) { for c in [0, 8) { t[4*v + c/2] = w[0] } }", ""},
      {"for v in [0, N) { for c in [0, 10) { t[4*v + c/2] = w[0] } }", "t"},
      {"for v in [0, N) { for c in [0, 8) { t[4*v + c%4] = w[0] } }", "t"},
      // A factor that moves with the index is no step of it.
      {"for v in [0, N) { for c in [0, max(v, 1)) { t[max(v, 1) + c] = w[0] } }", "t"},
      {"for v in [0, N) { for c in [0, max(v, 1)) { t[min(max(v, 1), C) + c] = w[0] } }", "t"},
      // Triangles and bounds of unknown length are not proven apart.
      {"for v in [0, N) { for c in [v, N) { t[c] = w[0] } }", "t"},
      // An outer index is fixed.
      {"for v in [0, N) { t[v] = w[0]  for j in [0, C) { y[v, j] = t[v] } }", ""},
  };
  for (const auto& c : kCases) {
    const Program program = Around(c.loop);
    const auto carried = CarriedTensor(program, *NestAt(program, 0).As<Loop>());
    EXPECT_EQ(carried ? program[*carried].name : "", c.carried) << c.loop;
  }
}

TEST(Dependence, CarriedTensors) {
  const Program program =
      Around("for v in [0, N) { z[v] = 1.0  t[0] = 2.0  y[v, 0] = 1.0  z[0] += t[0]  t[1] = 1.0 }");
  std::vector<std::string> names;
  for (TensorId tensor : CarriedTensors(program, *NestAt(program, 0).As<Loop>()))
    names.push_back(program[tensor].name);
  EXPECT_EQ(names, (std::vector<std::string>{"z", "t"}));
}

// ---- Proofs, compared with enumeration

class RandomLoops {
 public:
  explicit RandomLoops(uint64_t seed) : random_(seed) {}

  // Two loops in the one over v, with a store, and often a load, in the innermost one.
  std::string Text() { return Pick(8) == 0 ? Strip() : Nest(); }

 private:
  // Tiles of 2 in strips of 4, or nearly so: the rest of the last strip runs where a guard says so.
  std::string Strip() {
    const std::string left =
        absl::StrCat("min(C - ", PickOf({"4*v", "4*v", "3*v"}), ", ", PickOf({"4", "4", "5"}), ")");
    const std::string whole = absl::StrCat(PickOf({"2*", "2*", "3*", ""}), "(", left, "/2)");
    const std::string guard =
        absl::StrCat("min(max(", left, " - ", whole, " - ", PickOf({"i", "i", "2*i"}), ", 0), ",
                     PickOf({"1", "1", "2"}), ")");
    return absl::StrCat("for v in [0, ",
                        PickOf({"(C + 3)/4", "(C + 3)/4", "(C + 2)/3", "C/4", "N"}),
                        ") { for i in [0, ", PickOf({"2", "2", "3"}), ") { for j in [0, ", guard,
                        ") { z[", PickOf({"4*v", "4*v", "3*v"}), " + ", whole, " + i + ",
                        PickOf({"j", "j", "0", "1"}), "] = w[0] } } }");
  }

  std::string Nest() {
    const std::string first = Loop("i", {"v"}), second = Loop("j", {"v", "i"});
    const std::string place = Place();
    std::string value = "w[0]";
    if (Pick(3) == 0) value = absl::StrCat("z[", Pick(2) == 0 ? place : Place(), "]");
    return absl::StrCat("for v in [0, N) { ", first, " { ", second, " { z[", place, "] = ", value,
                        " } } }");
  }

  size_t Pick(size_t count) { return random_() % count; }
  std::string PickOf(const std::vector<std::string>& texts) { return texts[Pick(texts.size())]; }
  std::string Number(size_t most) { return absl::StrCat(1 + Pick(most)); }

  std::string Loop(absl::string_view index, std::vector<std::string> around) {
    std::string begin = PickOf({"0", "0", "0", "1"}),
                end = PickOf({Number(4), Number(4), "C", "C/2", "(C + 2)/3", "min(C/4, 1)",
                              "min(C/3, 2)", "max(v, 1)", "max(v, 2)/2"});
    if (Pick(6) == 0) begin = PickOf(around);
    if (begin != "0" && begin != "1") end = absl::StrCat(begin, " + ", Number(4));
    if (Pick(6) == 0) end = absl::StrCat("min(", end, ", ", PickOf({"C", "v + 2", Number(4)}), ")");
    return absl::StrCat("for ", index, " in [", begin, ", ", end, ")");
  }

  std::string Place() {
    std::string place = PickOf({"v", "2*v", "4*v", "8*v", "C*v", "C*v", "2*C*v", "(C + 1)*v",
                                "((C + 1)/2)*v", "v/2", "min(v, 2)", "max(v, 1)", "max(v, 2)/2"});
    for (size_t terms = Pick(3) + 1; terms > 0; --terms) absl::StrAppend(&place, " + ", Term());
    return place;
  }

  std::string Term() {
    const std::string simple = PickOf({"i", "j", "2*i", "2*j", "3*j", "C", "1", "C*i"});
    switch (Pick(6)) {
      case 0:
        return absl::StrCat("min(", simple, ", ", PickOf({"C - 4", "C - 1", "C - 3", "2", "j"}),
                            ")");
      case 1: return absl::StrCat("max(", simple, ", ", PickOf({"0", "2 - j", "C - 3", "i"}), ")");
      case 2:
        return absl::StrCat("(", simple, " + ", PickOf({"i", "j", "1"}), ")",
                            PickOf({"/2", "/3", "%3"}));
      default: return simple;
    }
  }

  std::mt19937_64 random_;
};

// The elements of z that each iteration of a loop touches, at given sizes.
class Touched {
 public:
  Touched(const Program& program, int64_t n, int64_t c) : program_(program), n_(n), c_(c) {}

  // Whether an iteration of the loop writes an element that another one touches.
  bool Collides(const Loop& loop) {
    std::vector<std::set<int64_t>> writes, touches;
    ForEach(loop, [&] {
      writes.emplace_back();
      touches.emplace_back();
      Walk(loop.body, writes.back(), touches.back());
    });
    for (size_t i = 0; i < writes.size(); ++i) {
      for (size_t j = 0; j < touches.size(); ++j) {
        const auto is_touched = [&](int64_t place) { return touches[j].count(place) > 0; };
        if (i != j && std::any_of(writes[i].begin(), writes[i].end(), is_touched)) return true;
      }
    }
    return false;
  }

 private:
  void ForEach(const Loop& loop, const std::function<void()>& body) {
    const int64_t end = ValueOf(loop.end);
    for (int64_t i = ValueOf(loop.begin); i < end; i += loop.step) {
      indices_[loop.var] = i;
      body();
    }
  }

  void Walk(const Scope& scope, std::set<int64_t>& writes, std::set<int64_t>& touches) {
    for (const Item& item : scope) {
      if (const Loop* loop = item.As<Loop>())
        ForEach(*loop, [&] { Walk(loop->body, writes, touches); });
      VisitAccesses(program_, item,
                    [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
                      if (program_[tensor].name != "z") return;
                      touches.insert(ValueOf(place[0]));
                      if (kind != AccessKind::kRead) writes.insert(ValueOf(place[0]));
                    });
    }
  }

  int64_t ValueOf(IndexId e) {
    return *EvaluateIndex(
        program_.pool, e,
        [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
          if (node.kind == IndexKind::kVar) return indices_.at(static_cast<int32_t>(node.value));
          return program_.pool.SymbolNameAt(node.value) == "N" ? n_ : c_;
        });
  }

  const Program& program_;
  const int64_t n_, c_;
  std::map<int32_t, int64_t> indices_;
};

TEST(Dependence, WhatIsProvenApartIsApart) {
  RandomLoops loops(1);
  int proven = 0, apart = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = loops.Text();
    const Program program = Around(text);
    const Loop& loop = *NestAt(program, 0).As<Loop>();
    const bool is_proven = !CarriedTensor(program, loop).has_value();
    bool collides = false;
    for (int64_t c = 0; c <= 9 && !collides; ++c) collides = Touched(program, 4, c).Collides(loop);
    proven += is_proven;
    apart += !collides;
    EXPECT_FALSE(is_proven && collides) << text;
  }
  EXPECT_GT(proven, 500);
  RecordProperty("proven", proven);
  RecordProperty("apart", apart);
}

TEST(Dependence, IndicesOfLoopsAroundAreFixed) {
  const Program program =
      Around("for o in [0, N) { for v in [0, N) { z[o + v] = 1.0  t[o] = 1.0 } }");
  const Loop* inner = NestAt(program, 0).As<Loop>()->body[0].As<Loop>();
  EXPECT_EQ(program[*CarriedTensor(program, *inner)].name, "t");
}

}  // namespace
}  // namespace nestor::loop
