// Every scalar op on every type, in vectors: all lengths up to two vectors and one more,
// as one row and as rows of a matrix, on values of every kind. A row of the table that
// is added is tested by itself.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "nestor.h"
#include "tests/jit_runs.h"
#include "uops/scalar_op.h"

namespace nestor {
namespace {

constexpr int64_t kRows = 3;

// One row of the table for one type of operands, and for a cast its target.
struct Use {
  ScalarOp op;
  DType type, target;

  std::string Text() const { return absl::StrCat(Row(op).name, "(", Name(type), ") -> ", Name(target)); }
  std::vector<DType> OperandTypes() const {
    std::vector<DType> types(Row(op).arity, type);
    if (op == ScalarOp::kSelect) types[0] = DType::kBool;
    return types;
  }
  // y[place] = row(a[place], ...), for the shape and the place given.
  std::string Notation(const char* shape, const char* place) const {
    std::vector<std::string> arguments, operands;
    const char* const names[] = {"a", "b", "c"};
    for (int i = 0; i < Row(op).arity; ++i) {
      arguments.push_back(absl::StrCat(names[i], ": ", Name(OperandTypes()[i]), shape));
      operands.push_back(absl::StrCat(names[i], place));
    }
    const std::string function(op == ScalarOp::kCast ? Name(target) : Row(op).name);
    return absl::StrCat("op f(", absl::StrJoin(arguments, ", "), ") -> (y) { y", place, " = ", function, "(",
                        absl::StrJoin(operands, ", "), ") }");
  }
};

std::vector<Use> AllUses() {
  std::vector<Use> uses;
  for (const ScalarOpRow& row : AllScalarOps()) {
    for (DType type : AllTypes()) {
      for (DType target : AllTypes()) {
        const auto result = Accepts(row.operands, type) ? ResultTypeOf(row.op, type, target) : absl::nullopt;
        const bool once = row.result == ResultType::kTarget || target == DType::kBool;
        if (result && once) uses.push_back({row.op, type, *result});
      }
    }
  }
  return uses;
}

// The first `length` elements along the last axis, compact.
Tensor Prefix(const Tensor& tensor, int64_t length) {
  TensorView view = tensor.view();
  view.shape.back() = length;
  return Tensor::FromView(view).value();
}

// The results on prefixes of the inputs are prefixes of `want`.
Finding CheckLengths(const jit::Executable& executable, const std::vector<Tensor>& inputs, const Tensor& want) {
  const char* const names[] = {"a", "b", "c"};
  const int64_t longest = want.shape().back();
  for (int64_t length = 1; length <= longest; ++length) {
    std::vector<Tensor> prefixes;
    for (const Tensor& input : inputs) prefixes.push_back(Prefix(input, length));
    RunInputs given;
    for (size_t i = 0; i < prefixes.size(); ++i) given.tensors[names[i]] = prefixes[i];
    for (GuardedMemory::Side side : {GuardedMemory::Side::kEnd, GuardedMemory::Side::kBegin}) {
      const Results got = RunJit(executable, given, {side});
      if (!got.ok()) return got.status().ToString();
      const auto difference = FirstDifference((*got)[0], Prefix(want, length));
      if (difference) return absl::StrCat("length ", length, ": ", *difference);
    }
  }
  return absl::nullopt;
}

Finding CheckUse(const Use& use, const char* shape, const char* place, const Dims& extents) {
  const auto op = Parse(use.Notation(shape, place));
  if (!op.ok()) return op.status().ToString();
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  const auto compiled = CompiledVariants::Compile(Lower(*op), options);
  if (!compiled.ok()) return compiled.status().ToString();
  std::mt19937_64 random(static_cast<uint64_t>(use.op) * 100 + static_cast<uint64_t>(use.type));
  std::vector<Tensor> inputs;
  for (DType type : use.OperandTypes()) inputs.push_back(DrawTensor(type, extents, random));
  RunInputs given;
  const char* const names[] = {"a", "b", "c"};
  for (size_t i = 0; i < inputs.size(); ++i) given.tensors[names[i]] = inputs[i];
  Counts counts;
  const JitRunOptions whole[] = {{}};
  // There is no sum here whose order could differ: fast is within bounds, and mostly equal.
  if (Finding finding = compiled->Check(given, whole, /*bounded=*/true, counts)) return finding;
  for (const CompiledVariants::Variant& variant : compiled->variants()) {
    const Results want = Run(variant.executable->program(), given);
    if (!want.ok()) return want.status().ToString();
    Finding finding = CheckLengths(*variant.executable, inputs, (*want)[0]);
    if (finding) return absl::StrCat(Describe(variant.options, whole[0]), ": ", *finding);
  }
  return absl::nullopt;
}

int64_t LongestOf(const Use& use) {
  const int bytes = std::min(ByteSize(use.type), ByteSize(use.target));
  return 2 * jit::VectorBytes(TestedSets().back()) / bytes + 1;
}

TEST(JitScalarRows, EveryLengthOfOneRow) {
  for (const Use& use : AllUses()) {
    SCOPED_TRACE(use.Text());
    const Finding finding = CheckUse(use, "[N]", "[i]", {LongestOf(use)});
    EXPECT_FALSE(finding.has_value()) << *finding;
  }
}

TEST(JitScalarRows, EveryLengthOfRowsOfAMatrix) {
  for (const Use& use : AllUses()) {
    SCOPED_TRACE(use.Text());
    const Finding finding = CheckUse(use, "[M, N]", "[i, j]", {kRows, std::min<int64_t>(LongestOf(use), 34)});
    EXPECT_FALSE(finding.has_value()) << *finding;
  }
}

}  // namespace
}  // namespace nestor
