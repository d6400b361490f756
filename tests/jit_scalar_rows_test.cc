// Every scalar op on every type, in vectors: all lengths up to two vectors and one more,
// as one row and as rows of a matrix, on values of every kind; and with each operand a
// tensor, a constant or a scalar. A new row of the table is tested automatically.
#include <algorithm>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "loop_ir/program.h"
#include "nestor.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "tests/jit_runs.h"
#include "uops/scalar_op.h"

namespace nestor {
namespace {

constexpr int64_t kRows = 3;

// One row of the table for one type of operands, and for a cast its target.
struct Use {
  ScalarOp op;
  DType type, target;

  std::string Text() const {
    return absl::StrCat(Row(op).name, "(", Name(type), ") -> ", Name(target));
  }
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
    return absl::StrCat("op f(", absl::StrJoin(arguments, ", "), ") -> (y) { y", place, " = ",
                        function, "(", absl::StrJoin(operands, ", "), ") }");
  }
};

std::vector<Use> AllUses() {
  std::vector<Use> uses;
  for (const ScalarOpRow& row : AllScalarOps()) {
    for (DType type : AllTypes()) {
      for (DType target : AllTypes()) {
        const auto result =
            Accepts(row.operands, type) ? ResultTypeOf(row.op, type, target) : absl::nullopt;
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
Finding CheckLengths(const jit::Executable& executable, const std::vector<Tensor>& inputs,
                     const Tensor& want) {
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
    const Finding finding =
        CheckUse(use, "[M, N]", "[i, j]", {kRows, std::min<int64_t>(LongestOf(use), 34)});
    EXPECT_FALSE(finding.has_value()) << *finding;
  }
}

// ---- Operands of every kind

enum class OperandKind { kTensor, kConstant, kScalar };
constexpr int kOperandKinds = 3;
constexpr int64_t kLongest = 100;

// One row of elements between pages that fault; parts of it lie at its guarded side.
class GuardedRow {
 public:
  GuardedRow(DType type, GuardedMemory::Side side)
      : type_(type), side_(side), memory_(static_cast<size_t>(kLongest * ByteSize(type)), side) {
    std::memset(memory_.data(), kPoison, Bytes(kLongest));
  }
  TensorView Part(int64_t length) const {
    return ViewOf(type_, memory_.data() + Begin(length), {length});
  }
  // Copies the elements of `tensor` that a part of `length` has (see PartOf).
  void Fill(const Tensor& tensor) { std::memcpy(memory_.data(), tensor.data(), Bytes(kLongest)); }
  // Poisons the part; returns whether all other bytes were still poison.
  bool Restore(int64_t length) {
    std::memset(memory_.data() + Begin(length), kPoison, Bytes(length));
    const absl::string_view all(memory_.data(), Bytes(kLongest));
    return all.find_first_not_of(static_cast<char>(kPoison)) == absl::string_view::npos;
  }

 private:
  static constexpr int kPoison = 0xff;
  size_t Bytes(int64_t length) const { return static_cast<size_t>(length * ByteSize(type_)); }
  size_t Begin(int64_t length) const {
    return side_ == GuardedMemory::Side::kEnd ? Bytes(kLongest - length) : 0;
  }

  DType type_;
  GuardedMemory::Side side_;
  GuardedMemory memory_;
};

// The elements of a whole row that GuardedRow::Part gives.
TensorView PartOf(const Tensor& row, int64_t length, GuardedMemory::Side side) {
  const char* first = static_cast<const char*>(row.data());
  if (side == GuardedMemory::Side::kEnd) first += (kLongest - length) * ByteSize(row.type());
  return ViewOf(row.type(), first, {length});
}

// An ordinary constant, or one that rows may treat specially.
std::string ConstantText(DType type, std::mt19937_64& random, bool special) {
  if (type == DType::kBool) return random() % 2 == 0 ? "true" : "false";
  const Scalar one = IsFloat(type) ? Scalar::Float(type, 1) : Scalar::Integer(type, 1);
  std::vector<std::string> texts = {"2", "3", "7"};
  if (special)
    texts = {"0", LiteralText(one), LiteralText(Lowest(type)), LiteralText(Highest(type))};
  if (special && !IsUnsigned(type)) texts.push_back("-1");
  if (special && IsFloat(type)) texts.insert(texts.end(), {"-0.0", "nan", "0.5", "-2.5"});
  return absl::StrCat(Name(type), "(", texts[random() % texts.size()], ")");
}

// A use of a row with operands of given kinds, and values for them. The lowest bit of the seed
// makes scalars $params, not tensors of rank 0, and the next one makes constants special.
constexpr uint64_t kSeedsOfACase = 4;
class OperandCase {
 public:
  OperandCase(const Use& use, int code, uint64_t seed)
      : use_(use), random_(seed), has_params_((seed & 1) != 0), is_special_((seed & 2) != 0) {
    for (int i = 0; i < Row(use.op).arity; ++i, code /= kOperandKinds) {
      const DType type = use.OperandTypes()[i];
      const auto kind = static_cast<OperandKind>(code % kOperandKinds);
      types_.push_back(type);
      kinds_.push_back(kind);
      drawn_.push_back(
          DrawTensor(type, kind == OperandKind::kTensor ? Dims{kLongest} : Dims{}, random_));
      is_row_ |= kind == OperandKind::kTensor;
      is_constant_ &= kind == OperandKind::kConstant;
      operands_.push_back(DeclareOperand(i));
    }
  }

  // Whether it is a row, and not one number.
  bool is_row() const { return is_row_; }
  // Whether all operands are constants, which are folded away.
  bool is_constant() const { return is_constant_; }

  std::string Notation() const {
    const std::string function(use_.op == ScalarOp::kCast ? Name(use_.target) : Row(use_.op).name);
    const std::string params =
        params_.empty() ? "" : absl::StrCat("; ", absl::StrJoin(params_, ", "));
    return absl::StrCat("op f(", absl::StrJoin(arguments_, ", "), params, ") -> (y) { y",
                        is_row_ ? "[i]" : "", " = ", function, "(", absl::StrJoin(operands_, ", "),
                        ") }");
  }

  // The inputs of the whole row.
  RunInputs Inputs() const {
    RunInputs inputs;
    for (size_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i] == OperandKind::kConstant) continue;
      const std::string name(1, static_cast<char>('a' + i));
      if (IsParam(i)) {
        inputs.params["$" + name] = ParamValue(i);
      } else {
        inputs.tensors[name] = drawn_[i];
      }
    }
    return inputs;
  }

 private:
  bool IsParam(size_t i) const {
    return kinds_[i] == OperandKind::kScalar && has_params_ && types_[i] != DType::kBool;
  }

  // A $param of an integer type would be an index, of i64.
  Scalar ParamValue(size_t i) const {
    const Scalar drawn = At(drawn_[i], {});
    return IsFloat(types_[i]) ? drawn : Scalar::I64(drawn.ToInt());
  }

  // Declares the operand and returns its text in the formula.
  std::string DeclareOperand(size_t i) {
    const std::string name(1, static_cast<char>('a' + i));
    if (kinds_[i] == OperandKind::kConstant) return ConstantText(types_[i], random_, is_special_);
    if (IsParam(i)) {
      params_.push_back(IsFloat(types_[i]) ? absl::StrCat("$", name, ": ", Name(types_[i]))
                                           : absl::StrCat("$", name));
      return absl::StrCat(Name(types_[i]), "($", name, ")");
    }
    const bool is_row = kinds_[i] == OperandKind::kTensor;
    arguments_.push_back(absl::StrCat(name, ": ", Name(types_[i]), is_row ? "[N]" : "[]"));
    return is_row ? name + "[i]" : name;
  }

  const Use use_;
  std::mt19937_64 random_;
  const bool has_params_, is_special_;
  bool is_row_ = false, is_constant_ = true;
  std::vector<DType> types_;
  std::vector<OperandKind> kinds_;
  std::vector<Tensor> drawn_;
  std::vector<std::string> arguments_, params_, operands_;
};

// Runs on parts of the row of every length at one side of a page, in place: nothing is
// copied, so that all lengths take little more than one.
Finding CheckParts(const jit::Executable& executable, const RunInputs& inputs, const Tensor& want,
                   GuardedMemory::Side side) {
  const loop::Program& program = executable.program();
  std::vector<GuardedRow> rows;
  std::vector<Scalar> params;
  for (const ParamInfo& param : program.params) params.push_back(inputs.params.at(param.name));
  for (loop::TensorId id : program.inputs) {
    const TensorView& given = inputs.tensors.at(program[id].name);
    rows.emplace_back(given.type, side);
    if (given.rank() == 1) rows.back().Fill(Tensor::FromView(given).value());
  }
  GuardedRow output(want.type(), side);
  jit::Workspace workspace;
  for (int64_t length = 1; length <= kLongest; ++length) {
    std::vector<TensorView> arguments;
    for (size_t i = 0; i < rows.size(); ++i) {
      const TensorView& given = inputs.tensors.at(program[program.inputs[i]].name);
      arguments.push_back(given.rank() == 1 ? rows[i].Part(length) : given);
    }
    const TensorView part = output.Part(length);
    const absl::Status status = executable.Run({arguments, {&part, 1}, params}, &workspace);
    if (!status.ok()) return status.ToString();
    const auto difference = FirstDifference(part, PartOf(want, length, side));
    if (difference) return absl::StrCat("length ", length, ": ", *difference);
    if (!output.Restore(length))
      return absl::StrCat("length ", length, ": writes beside its elements");
  }
  return absl::nullopt;
}

Finding CheckOperands(const OperandCase& c) {
  const auto op = Parse(c.Notation());
  if (!op.ok()) return op.status().ToString();
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  const auto compiled = CompiledVariants::Compile(Lower(*op), options, {jit::Mode::kStrict});
  if (!compiled.ok()) return compiled.status().ToString();
  const RunInputs inputs = c.Inputs();
  const Results want = Run(compiled->unfused(), inputs);
  if (!want.ok()) return want.status().ToString();
  Counts counts;
  for (const CompiledVariants::Variant& variant : compiled->variants()) {
    if (!c.is_row()) {
      Finding finding = Compare(want, RunJit(*variant.executable, inputs), "one number", counts);
      if (finding) return absl::StrCat(jit::Name(*variant.options.isa), ": ", *finding);
      continue;
    }
    for (GuardedMemory::Side side : {GuardedMemory::Side::kEnd, GuardedMemory::Side::kBegin}) {
      Finding finding = CheckParts(*variant.executable, inputs, (*want)[0], side);
      if (finding) return absl::StrCat(Describe(variant.options, {side}), ": ", *finding);
    }
  }
  return absl::nullopt;
}

void ExpectOperands(const OperandCase& c) {
  if (c.is_constant()) return;
  const Finding finding = CheckOperands(c);
  EXPECT_FALSE(finding.has_value()) << c.Notation() << ": " << *finding;
}

TEST(JitScalarRows, EveryKindOfOperand) {
  uint64_t cases = 0;
  for (const Use& use : AllUses()) {
    int combinations = 1;
    for (int i = 0; i < Row(use.op).arity; ++i) combinations *= kOperandKinds;
    for (int code = 0; code < combinations; ++code, ++cases) {
      for (uint64_t i = 0; i < kSeedsOfACase; ++i)
        ExpectOperands(OperandCase(use, code, cases * kSeedsOfACase + i));
    }
  }
  std::cerr << cases << " combinations\n";
  EXPECT_GT(cases, 1000u);
}

}  // namespace
}  // namespace nestor
