// There are no integer multiplies or divides in innermost loops: addresses are incremented, and
// divisions are computed outside. Checked in the machine code itself, for every instruction set and
// for arguments at any strides: an innermost loop is the code between a jump backwards and its
// target, without another such jump inside. Those of contractions hold multiply-adds, loads of
// their operands, and counters; nothing is spilled there.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <Zydis/Zydis.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "jit/codegen/table.h"
#include "jit/codegen/translate.h"
#include "jit/compile.h"
#include "jit/disassemble.h"
#include "jit/kernel.h"
#include "jit/runtime/cpu_features.h"
#include "loop_ir/lower.h"
#include "loop_ir/program.h"
#include "loop_ir/text.h"
#include "nestor.h"
#include "uops/invariant.h"
#include "uops/op.h"

namespace nestor {
namespace {

using jit::Isa;

struct Instruction {
  int64_t offset, target = -1;  // of a jump
  std::string name;
  bool is_on_stack = false;  // has an operand in the function's frame
};

bool Multiplies(const Instruction& instruction) {
  static const auto* const names = new std::set<std::string>{"imul", "mul", "mulx", "idiv", "div"};
  return names->count(instruction.name) > 0;
}

std::vector<Instruction> Decode(absl::Span<const uint8_t> code) {
  std::vector<Instruction> instructions;
  for (size_t offset = 0; offset < code.size();) {
    ZydisDisassembledInstruction decoded;
    const bool good = ZYAN_SUCCESS(ZydisDisassembleIntel(
        ZYDIS_MACHINE_MODE_LONG_64, offset, code.data() + offset, code.size() - offset, &decoded));
    NESTOR_CHECK(good, absl::StrCat("no instruction at ", offset));
    Instruction instruction{static_cast<int64_t>(offset), -1,
                            ZydisMnemonicGetString(decoded.info.mnemonic)};
    const bool jumps = decoded.operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
                       decoded.operands[0].imm.is_relative;
    if (jumps)
      instruction.target =
          instruction.offset + decoded.info.length + decoded.operands[0].imm.value.s;
    instruction.is_on_stack = absl::c_any_of(decoded.operands, [](const auto& operand) {
      return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.base == ZYDIS_REGISTER_RSP;
    });
    instructions.push_back(std::move(instruction));
    offset += decoded.info.length;
  }
  return instructions;
}

// The innermost loops, without the jump back.
std::vector<std::vector<Instruction>> LoopsOf(absl::Span<const uint8_t> code) {
  std::vector<std::vector<Instruction>> loops;
  const std::vector<Instruction> instructions = Decode(code);
  const auto jumps_back = [](const Instruction& i) {
    return i.target >= 0 && i.target <= i.offset;
  };
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (!jumps_back(instructions[i])) continue;
    size_t first = i;
    while (first > 0 && instructions[first - 1].offset >= instructions[i].target) --first;
    std::vector<Instruction> body(instructions.begin() + first, instructions.begin() + i);
    if (absl::c_none_of(body, jumps_back)) loops.push_back(std::move(body));
  }
  return loops;
}

struct LoopCounts {
  int innermost = 0;  // loops
  int multiplying = 0;
};

void CountLoops(absl::Span<const uint8_t> code, LoopCounts& counts) {
  for (const std::vector<Instruction>& loop : LoopsOf(code)) {
    ++counts.innermost;
    counts.multiplying += absl::c_any_of(loop, Multiplies);
  }
}

loop::Program Scheduled(const Op& op, Isa isa) {
  loop::Program program = Lower(op);
  NESTOR_CHECK(fusion::Pipeline::Default().Run(program).ok(), "fusion");
  NESTOR_CHECK(jit::SchedulePipeline({}, isa).Run(program).ok(), "schedule");
  return program;
}

std::unique_ptr<const jit::Kernel> KernelOf(const Op& op, Isa isa, bool strided) {
  loop::Program program = Scheduled(op, isa);
  jit::TranslateOptions options;
  options.isa = isa;
  for (const std::vector<loop::TensorId>& arguments : {program.inputs, program.outputs}) {
    for (const loop::TensorId id : arguments) {
      const size_t rank = program[id].shape.size();
      options.layouts.push_back(strided ? jit::Layout(rank, jit::AxisLayout::kAny)
                                        : jit::CompactLayout(rank));
    }
  }
  auto kernel = jit::Kernel::Compile(std::move(program), options);
  NESTOR_CHECK(kernel.ok(), kernel.status().ToString());
  return std::move(*kernel);
}

struct Case {
  const char* name;
  std::string op;           // of the library, or in the notation
  const char* reason = "";  // why an innermost loop multiplies or divides; "": none does
};

std::vector<Case> Cases() {
  return {
      {"chain",
       "op f(x: f32[N], z: f32[N]) -> (y) { a[i] = sigmoid(x[i] * z[i] + x[i]); y[i] = a[i] * z[i] }"},
      {"chain of halves", "op f(x: f16[N], z: f16[N]) -> (y) { y[i] = x[i] * z[i] + x[i] }"},
      {"softmax", "softmax"},
      {"log_softmax", "log_softmax"},
      {"layer_norm", "layer_norm"},
      {"broadcast of rows",
       "op f(x: f32[A, B, C], s: f32[C]) -> (y) { y[i, j, k] = x[i, j, k] * s[k] }"},
      {"broadcast of columns",
       "op f(x: f32[A, B, C], s: f32[B]) -> (y) { y[i, j, k] = x[i, j, k] * s[j] }"},
      {"broadcast of planes",
       "op f(x: f32[A, B, C], s: f32[A]) -> (y) { y[i, j, k] = x[i, j, k] * s[i] }"},
      {"sum of first", "op f(x: f32[A, B, C]) -> (y) { y[j, k] = sum[i](x[i, j, k]) }"},
      {"sum of middle", "op f(x: f32[A, B, C]) -> (y) { y[i, k] = sum[j](x[i, j, k]) }"},
      {"sum of last", "op f(x: f32[A, B, C]) -> (y) { y[i, j] = sum[k](x[i, j, k]) }"},
      {"sum of all", "op f(x: f32[A, B, C]) -> (y) { y = sum[i, j, k](x[i, j, k]) }"},
      {"sum of integers", "op f(x: i64[A, B]) -> (y) { y[i] = sum[j](x[i, j]) }"},
      {"argmax", "op f(x: f32[N, C]) -> (y) { y[n] = argmax[k](x[n, k]) }"},
      {"matmul", "matmul"},
      {"matmul of columns",
       "op f(a: f32[K, M], b: f32[N, K]) -> (c) { c[i, j] = sum[k](a[k, i] * b[j, k]) }"},
      {"linear", "linear"},
      {"conv2d", "op f(x: f32[N, C, H, W], w: f32[O, C, R, S]) -> (y) "
                 "{ y = conv2d(x, w; stride=2, pad=1, dilation=1, groups=1) }"},
      {"conv2d of any stride", "conv2d", "the mask's place p * $dilation, which is no address"},
      {"max_pool2d", "max_pool2d"},
      {"avg_pool2d", "avg_pool2d"},
      {"every third", "op f(x: f32[N]) -> (y) { y[i] = x[3 * i + 1] where i < N / 3 }"},
      {"every $k-th",
       "op f(x: f32[N]; $k in [1, inf]) -> (y) { y[i] = x[$k * i] * 2 where i < N / $k }"},
      {"reversed", "op f(x: f32[N]) -> (y) { y[i] = x[N - 1 - i] * 2 where i < N }"},
      {"transpose", "op f(x: f32[N, M]) -> (y) { y[j, i] = x[i, j] }"},
      {"transpose of bytes", "op f(x: u8[N, M]) -> (y) { y[j, i] = x[i, j] }"},
      {"transpose of planes", "op f(x: f64[A, B, C]) -> (y) { y[k, j, i] = x[i, j, k] }"},
      {"embedding", "embedding"},
      {"cross_entropy", "cross_entropy"},
      {"attention", "attention"},
      {"causal_attention", "causal_attention"},
      {"sgd", "sgd"},
      {"adam", "adam"},
      {"reshape", "op f(x: f32[N, M]) -> (y) { y[i] = x[i / M, i % M] where i < N * M }",
       "the row and the column of a flat index"},
      {"upsample", "op f(x: f32[N]; $k in [1, inf]) -> (y) { y[i] = x[i / $k] where i < N * $k }",
       "an element is repeated $k times"},
  };
}

Op OpOf(const std::string& text) {
  absl::StatusOr<Op> op = text.find(' ') == std::string::npos ? LibraryOp(text) : Parse(text);
  NESTOR_CHECK(op.ok(), absl::StrCat(text, ": ", op.status().ToString()));
  return std::move(*op);
}

Op GradientOf(const std::string& text) {
  absl::StatusOr<GradientResult> gradient = Gradient(OpOf(text));
  NESTOR_CHECK(gradient.ok(), absl::StrCat(text, ": ", gradient.status().ToString()));
  return std::move(gradient->op);
}

void ExpectLoops(const Case& c, Isa isa, bool strided) {
  const testing::ScopedTrace trace(
      __FILE__, __LINE__,
      absl::StrCat(c.name, isa == Isa::kAvx2 ? ", avx2" : ", avx512", strided ? ", strided" : ""));
  const auto kernel = KernelOf(OpOf(c.op), isa, strided);
  LoopCounts counts;
  for (const jit::Kernel::FunctionView& function : kernel->Functions())
    CountLoops(function.code, counts);
  EXPECT_GT(counts.innermost, 0);
  EXPECT_EQ(counts.multiplying > 0, *c.reason != '\0')
      << counts.multiplying << " of " << counts.innermost << " innermost loops\n"
      << loop::ToText(kernel->program()) << jit::Disassemble(*kernel);
}

TEST(JitInnerLoops, NeitherMultiplyNorDivide) {
  for (const Case& c : Cases()) {
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
      for (const bool strided : {false, true}) ExpectLoops(c, isa, strided);
    }
  }
}

// A gather tests whether each element that it loads for a subscript is in range, but not whether the
// place of that element is.
TEST(JitInnerLoops, GathersTestOnlyWhatTheyLoad) {
  const struct {
    const char* statement;
    int64_t tests;
  } kCases[] = {
      {"y[n, i] = x[p[n, i], q[n, i]]", 2},
      {"y[n, p[n, i]]: f32[N, N] += x[n, i]", 1},
  };
  for (const auto& c : kCases) {
    const Op op = OpOf(absl::StrCat("op f(x: f32[N, M], p: i64[N, M], q: i64[N, M]) -> (y) { ",
                                    c.statement, " }"));
    const auto kernel = KernelOf(op, Isa::kAvx2, /*strided=*/false);
    int64_t tests = 0;
    for (const jit::Kernel::FunctionView& function : kernel->Functions()) {
      for (const std::vector<Instruction>& loop : LoopsOf(function.code))
        tests += absl::c_count_if(loop, [](const Instruction& i) { return i.name == "setb"; });
    }
    EXPECT_EQ(tests, c.tests) << c.statement << "\n" << jit::Disassemble(*kernel);
  }
}

// The instructions of a loop.
struct TileLoop {
  int64_t multiply_adds = 0, broadcasts = 0, loads = 0, counts = 0, on_stack = 0;
  std::string others;  // names
};

TileLoop TileLoopOf(const std::vector<Instruction>& loop) {
  static const auto* const counting = new std::set<std::string>{"add", "cmp", "nop"};
  TileLoop made_of;
  for (const Instruction& instruction : loop) {
    const std::string& name = instruction.name;
    made_of.on_stack += instruction.is_on_stack;
    if (absl::StartsWith(name, "vfmadd")) ++made_of.multiply_adds;
    else if (absl::StartsWith(name, "vbroadcast")) ++made_of.broadcasts;
    else if (absl::StartsWith(name, "vmov") || name == "mov" || absl::StartsWith(name, "prefetch"))
      ++made_of.loads;
    else if (counting->count(name) > 0) ++made_of.counts;
    else absl::StrAppend(&made_of.others, name, " ");
  }
  return made_of;
}

TEST(JitInnerLoops, TilesMultiplyAddLoadAndCount) {
  const Case kCases[] = {
      {"matmul", "matmul"},
      {"convolution",
       "op f(x: f32[N, C, H, W], w: f32[O, C, 3, 3]) -> (y) { y = conv2d(x, w; pad=1) }"},
      {"attention",
       "op f(q: f32[B, L, D], k: f32[B, S, D], v: f32[B, S, E]) -> (y) { y = attention(q, k, v) }"},
      {"lstm", "lstm"},
      {"gemm", "gemm"},
      // What follows the sums needs registers of its own.
      {"linear and gelu", "op f(x: f32[L, D], w: f32[F, D], b: f32[F]) -> (y) "
                          "{ u = linear(x, w, b); y[l, f] = gelu(u[l, f]) }"},
      {"two layers of normalized rows",
       "op f(x: f32[L, D], s: f32[D], c: f32[D], v: f32[F, D], w: f32[F, D]) -> (y, z) "
       "{ n = layer_norm(x, s, c); y[l, f] = sum[d](n[l, d] * v[f, d]); "
       "z[l, f] = sum[d](n[l, d] * w[f, d]) }"},
      {"two layers",
       "op f(x: f32[L, D], w: f32[F, D], b: f32[F], v: f32[D, F]) -> (y) "
       "{ u = linear(x, w, b); h[l, f] = tanh(u[l, f]); y[l, d] = sum[f](h[l, f] * v[d, f]) }"},
  };
  for (const Case& c : kCases) {
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
      const testing::ScopedTrace trace(
          __FILE__, __LINE__, absl::StrCat(c.name, isa == Isa::kAvx2 ? ", avx2" : ", avx512"));
      const auto kernel = KernelOf(OpOf(c.op), isa, /*strided=*/false);
      std::vector<TileLoop> tiles;
      for (const jit::Kernel::FunctionView& function : kernel->Functions()) {
        for (const std::vector<Instruction>& loop : LoopsOf(function.code)) {
          // An exponential has multiply-adds of one row, too.
          if (const TileLoop made_of = TileLoopOf(loop); made_of.broadcasts > 3)
            tiles.push_back(made_of);
        }
      }
      const auto less = [](const TileLoop& a, const TileLoop& b) {
        return a.multiply_adds < b.multiply_adds;
      };
      ASSERT_FALSE(tiles.empty());
      const int64_t most = absl::c_max_element(tiles, less)->multiply_adds;
      EXPECT_GE(most, isa == Isa::kAvx2 ? 12 : 24);
      int64_t least_counts = most;
      for (const TileLoop& tile : tiles) {
        EXPECT_EQ(tile.on_stack, 0);
        if (tile.multiply_adds < most) continue;
        EXPECT_LE(tile.broadcasts + tile.loads, most * 3 / 2);
        // The topmost tile, which copies columns, has one pointer more.
        EXPECT_LE(tile.counts, most / 3 + 1);
        EXPECT_EQ(tile.others, "");
        least_counts = std::min(least_counts, tile.counts);
      }
      EXPECT_LE(least_counts, most / 3);  // pointers, and the counter
    }
  }
}

// The gradient by an image that an activation made is summed in one nest with the code that
// computes the image again. It has columns of the image only where its sums are padded, and then it
// looks for NaN.
TEST(JitInnerLoops, GradientsBehindActivationsHaveColumns) {
  const struct {
    const char* name;
    const char* text;
    int padded;  // sums
  } kCases[] = {
      {"an activation of a product",
       "op f(x: f32[N, C, H, W], v: f32[O, C], w: f32[O, O, 3, 3]) -> (y) { "
       "a[n, o, h, l] = relu(sum[c](v[o, c] * x[n, c, h, l])); y = conv2d(a, w; pad=1) }",
       1},
      // The gradient by the weights reads the activation, too.
      {"an activation",
       "op f(x: f32[N, C, H, W], w: f32[O, C, 3, 3]) -> (y) { "
       "a[n, c, h, l] = relu(x[n, c, h, l]); y = conv2d(a, w; pad=1) }",
       1},
      {"a normalization",
       "op f(x: f32[N, C, H, W], w: f32[O, C, 3, 3], s: f32[C], b: f32[C]) -> (y) { "
       "a[n, c, h, l] = relu(x[n, c, h, l] * s[c] + b[c]); y = conv2d(a, w; pad=1) }",
       1},
      {"two layers",
       "op f(x: f32[N, C, H, W], v: f32[O, C, 3, 3], w: f32[O, O, 3, 3]) -> (y) { "
       "t = conv2d(x, v; pad=1); a[n, o, h, l] = relu(t[n, o, h, l]); y = conv2d(a, w; pad=1) }",
       2},
      {"a residual block",
       "op f(x: f32[N, C, H, W], v: f32[C, C, 3, 3], w: f32[C, C, 3, 3]) -> (y) { "
       "t = conv2d(x, v; pad=1); a[n, c, h, l] = relu(t[n, c, h, l]); u = conv2d(a, w; pad=1); "
       "y[n, c, h, l] = relu(u[n, c, h, l] + x[n, c, h, l]) }",
       2},
      // One sum of two products.
      {"a gate",
       "op f(x: f32[N, C, H, W], v: f32[O, C, 3, 3], w: f32[O, C, 3, 3]) -> (y) { "
       "t = conv2d(x, v; pad=1); u = conv2d(x, w; pad=1); "
       "y[n, o, h, l] = t[n, o, h, l] * sigmoid(u[n, o, h, l]) }",
       1},
  };
  for (const auto& c : kCases) {
    const std::string text = loop::ToText(Scheduled(GradientOf(c.text), Isa::kAvx2));
    // Each has a flag for NaN and one for what is not finite; threads may have some of their own.
    const std::vector<std::string> parts = absl::StrSplit(text, ": i64 = max\n");
    EXPECT_GE(parts.size() - 1, 2 * static_cast<size_t>(c.padded)) << c.name << "\n" << text;
  }
}

// The loops that run at these sizes on AVX2.
std::string SizedText(const Op& op, const SymbolValues& sizes) {
  jit::CompileOptions options;
  options.isa = Isa::kAvx2;
  const auto executable = jit::Compile(Lower(op), options);
  NESTOR_CHECK(executable.ok(), executable.status().ToString());
  const auto kernel =
      (*executable)->KernelAt([&](const std::string& name) -> absl::optional<int64_t> {
        return sizes.at(name);
      });
  NESTOR_CHECK(kernel.ok(), kernel.status().ToString());
  return loop::ToText((*kernel)->program());
}

// Each sum of products is stored from a tile, whose steps test no index.
TEST(JitInnerLoops, GradientsOfCompositionsHaveTiles) {
  if (!jit::CheckIsa(Isa::kAvx2).ok()) GTEST_SKIP() << "this CPU has no AVX2";
  const struct {
    const char* name;
    const char* text;
    SymbolValues sizes;
    std::vector<std::string> results;
  } kCases[] = {
      {"groups",
       "op f(x: f32[N, C, H, W], w: f32[O, K, 3, 3]) -> (y) { y = conv2d(x, w; pad=1, groups=4) }",
       {{"N", 1}, {"C", 64}, {"H", 28}, {"W", 28}, {"O", 64}, {"K", 16}},
       {"g_w", "turned"}},
      {"queries that share keys",
       "op f(q: f32[B, H, L, D], k: f32[B, G, S, D], v: f32[B, G, S, D]) -> (y) { "
       "s[b, h, l, m] = sum[d](q[b, h, l, d] * k[b, h / (H / G), m, d]) where h < H; "
       "p = softmax(s); "
       "y[b, h, l, d] = sum[m](p[b, h, l, m] * v[b, h / (H / G), m, d]) where h < H }",
       {{"B", 2}, {"H", 8}, {"G", 2}, {"L", 128}, {"S", 128}, {"D", 64}},
       {"g_q", "g_k", "g_v"}},
      {"linear attention",
       "op f(q: f32[B, L, D], k: f32[B, L, D], v: f32[B, L, E]) -> (y) { "
       "a[b, l, d] = relu(q[b, l, d]); c[b, l, d] = relu(k[b, l, d]); "
       "t[b, d, e] = sum[l](c[b, l, d] * v[b, l, e]); "
       "y[b, l, e] = sum[d](a[b, l, d] * t[b, d, e]) }",
       {{"B", 8}, {"L", 512}, {"D", 64}, {"E", 64}},
       {"g_q", "g_k", "g_v"}},
      {"a normalization over channels",
       "op f(x: f32[N, C, H, W], w: f32[O, C, 1, 1], s: f32[C], b: f32[C]) -> (y) { "
       "m[n, i, j] = sum[c](x[n, c, i, j]) / f32(C); "
       "v[n, i, j] = sum[c](square(x[n, c, i, j] - m[n, i, j])) / f32(C); "
       "t[n, c, i, j] = (x[n, c, i, j] - m[n, i, j]) * rsqrt(v[n, i, j] + 1e-5) * s[c] + b[c]; "
       "y = conv2d(t, w) }",
       {{"N", 1}, {"C", 128}, {"H", 28}, {"W", 28}, {"O", 128}},
       {"g_w"}},
  };
  for (const auto& c : kCases) {
    const std::string text = SizedText(GradientOf(c.text), c.sizes);
    const std::vector<std::string> lines = absl::StrSplit(text, '\n');
    for (const std::string& result : c.results) {
      const auto stores_tile = [&](const std::string& line) {
        const std::string statement(absl::StripAsciiWhitespace(line));
        return absl::StartsWith(statement, absl::StrCat(result, "[")) &&
               absl::StrContains(statement, "tile");
      };
      EXPECT_TRUE(absl::c_any_of(lines, stores_tile)) << c.name << ": " << result << "\n" << text;
    }
    const auto tests_index = [](const std::string& line) {
      return absl::StrContains(line, "= fma(") && absl::StrContains(line, "tile") &&
             absl::StrContains(line, " checked");
    };
    EXPECT_TRUE(absl::c_none_of(lines, tests_index)) << c.name << "\n" << text;
  }
}

// Fusion sums two products over equal channels in one loop, for example at the end of a block of a
// network whose shortcut has as many channels.
TEST(JitInnerLoops, ProductsThatAreAddedHaveNestsOfTheirOwn) {
  const Op op = OpOf(
      "op f(x: f32[N, C, H, W], a: f32[N, C, H, W], v: f32[O, C, 1, 1], w: f32[O, C, 1, 1]) -> (z) { "
      "c = conv2d(x, v); d = conv2d(a, w); z[n, o, h, l] = relu(c[n, o, h, l] + d[n, o, h, l]) }");
  const std::string text = loop::ToText(Scheduled(op, Isa::kAvx2));
  EXPECT_TRUE(absl::StrContains(text, "temp sums")) << text;
}

}  // namespace
}  // namespace nestor
