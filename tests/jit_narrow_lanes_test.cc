// Integers of 8 and 16 bits, and booleans, in lanes of their own width: contiguous
// elements, elements that all lanes share, or that are loaded before the loop, masked and
// reduced ones, at lengths around one vector, two vectors, and the register tiles of sums.
// Bits are the interpreter's.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "loop_ir/lower.h"
#include "loop_ir/text.h"
#include "nestor.h"
#include "tests/jit_runs.h"
#include "tests/random_programs.h"
#include "uops/dtype.h"
#include "uops/index/index_expr.h"

namespace nestor {
namespace {

struct Case {
  const char* name;
  const char* text;       // T: the type
  bool is_narrow = true;  // whether its loops have lanes of the type's width
  bool of_bytes = false;  // of types of 8 bits alone
};

constexpr Case kCases[] = {
    {"arithmetic", "op f(x: T[N], y: T[N]) -> (z) { z[i] = x[i] * y[i] + x[i] - T(3) }"},
    {"order",
     "op f(x: T[N], y: T[N]) -> (z) { z[i] = where(x[i] < y[i], max(x[i], T(7)), min(x[i], y[i])) }"},
    {"signs", "op f(x: T[N], y: T[N]) -> (z) { z[i] = sign(x[i]) * abs(y[i]) - x[i] }"},
    {"bits",
     "op f(x: T[N], y: T[N]) -> (z) { z[i] = xor(and(x[i], y[i]), or(shl(x[i], T(3)), shr(y[i], T(2)))) }"},
    {"equality",
     "op f(x: T[N], y: T[N]) -> (z) { z[i] = where(x[i] == y[i] || x[i] >= T(9), x[i], not(y[i])) }"},
    {"shared", "op f(x: T[M, N], y: T[M]) -> (z) { z[i, j] = x[i, j] * y[i] }"},
    {"results", "op f(x: T[N], y: T[N]) -> (z, w) { z[i] = x[i] + y[i]\n w[i] = x[i] - y[i] }"},
    {"masked", "op f(x: T[M, N]) -> (z) { z[i, j] = max(x[i - 1, j | 3], x[i, j]) where i < M }"},
    {"window", "op f(x: T[N]) -> (z) { z[i] = max[k](x[i + k]) where i < N - 2, k < 3 }"},
    {"sum", "op f(x: T[M, N]) -> (z) { z[i] = sum[j](x[i, j]) }"},
    {"product", "op f(x: T[M, N]) -> (z) { z[i] = prod[j](x[i, j]) }"},
    {"extremes", "op f(x: T[M, N]) -> (y, z) { y[i] = max[j](x[i, j])\n z[i] = min[j](x[i, j]) }"},
    {"columns", "op f(x: T[N, M]) -> (z) { z[j] = sum[i](x[j, i]) }"},
    {"comparison", "op f(x: T[N], y: T[N]) -> (z) { z[i] = x[i] < y[i] }", true, true},
    {"booleans", "op f(x: bool[N], y: T[N]) -> (z) { z[i] = where(x[i], y[i], T(1)) }", true, true},
    {"shared boolean",
     "op f(x: bool[M], y: T[M, N]) -> (z) { z[i, j] = where(x[i], y[i, j], T(1)) }"},
    {"of booleans", "op f(x: bool[N], y: bool[N]) -> (z) { z[i] = x[i] && !y[i] || x[i] == y[i] }",
     true, true},
    // Other widths on the way, rows that x86 does not have in narrow lanes, and strided elements.
    {"widened", "op f(x: T[N]) -> (z) { z[i] = i32(x[i]) * 3 }", false},
    {"quotient", "op f(x: T[N], y: T[N]) -> (z) { z[i] = floordiv(x[i], y[i]) }", false},
    {"shift", "op f(x: T[N], y: T[N]) -> (z) { z[i] = shl(x[i], y[i]) }", false},
    {"every second", "op f(x: T[K]) -> (z) { z[i] = x[2 * i] + T(1) where i < K / 2 }", false},
};

constexpr int64_t kLengths[] = {0,  1,   2,   7,   16,  31,  32,  33,  63,  64, 65,
                                95, 127, 128, 129, 191, 200, 255, 256, 257, 530};
constexpr DType kTypes[] = {DType::kI8, DType::kU8, DType::kI16, DType::kU16};

std::string TextOf(const Case& c, DType type) {
  const std::string name(Name(type));
  return absl::StrReplaceAll(c.text, {{"T[", name + "["}, {"T(", name + "("}});
}

bool Applies(const Case& c, DType type) { return !c.of_bytes || ByteSize(type) == 1; }

// N is the length, and M 3.
RunInputs Draw(const loop::Program& program, int64_t length, std::vector<Tensor>& tensors) {
  std::mt19937_64 random(static_cast<uint64_t>(length));
  RunInputs inputs;
  for (loop::TensorId input : program.inputs) {
    Dims shape;
    for (IndexId extent : program[input].shape) {
      const std::string text = SymbolicText(program.pool, extent);
      shape.push_back(text == "M" ? 3 : text == "N" ? length : 2 * length);
    }
    tensors.push_back(DrawTensor(program[input].type, shape, random));
    inputs.tensors[program[input].name] = tensors.back().view();
  }
  return inputs;
}

Finding Check(const Case& c, DType type, int accumulators) {
  const auto op = Parse(TextOf(c, type));
  if (!op.ok()) return op.status().ToString();
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  options.schedule.accumulators = accumulators;
  const auto compiled = CompiledVariants::Compile(Lower(*op), options);
  if (!compiled.ok()) return compiled.status().ToString();
  Counts counts;
  const JitRunOptions runs[] = {{GuardedMemory::Side::kEnd}, {GuardedMemory::Side::kBegin}};
  for (int64_t length : kLengths) {
    std::vector<Tensor> tensors;
    tensors.reserve(2);
    const RunInputs inputs = Draw(compiled->unfused(), length, tensors);
    if (Finding finding = compiled->Check(inputs, runs, /*bounded=*/false, counts)) {
      return absl::StrCat("length ", length, ": ", *finding);
    }
  }
  return absl::nullopt;
}

void TestAll(int accumulators) {
  for (const Case& c : kCases) {
    for (DType type : kTypes) {
      if (!Applies(c, type)) continue;
      SetCurrentCase(absl::StrCat(c.name, " of ", Name(type)), 1);
      const Finding finding = Check(c, type, accumulators);
      EXPECT_FALSE(finding.has_value()) << c.name << " of " << Name(type) << ": " << *finding;
    }
  }
}

TEST(JitNarrowLanes, OneAccumulator) { TestAll(1); }
TEST(JitNarrowLanes, FourAccumulators) { TestAll(4); }

// Loops with lanes of the elements' width have them, and the others have lanes of 32 bits.
TEST(JitNarrowLanes, AreThere) {
  for (const Case& c : kCases) {
    for (DType type : kTypes) {
      if (!Applies(c, type)) continue;
      for (jit::Isa isa : {jit::Isa::kAvx2, jit::Isa::kAvx512}) {
        jit::CompileOptions options;
        options.isa = isa;
        const auto scheduled = jit::Schedule(Lower(Parse(TextOf(c, type)).value()), options);
        ASSERT_TRUE(scheduled.ok()) << scheduled.status();
        const int width = c.is_narrow ? ByteSize(type) : 4;
        const std::string text = loop::ToText(*scheduled);
        EXPECT_TRUE(
            absl::StrContains(text, absl::StrCat("vector(", jit::VectorBytes(isa) / width, ")")))
            << c.name << " of " << Name(type) << "\n"
            << text;
      }
    }
  }
}

}  // namespace
}  // namespace nestor
