// Kernels in C with each kind of parameter, against the interpreter on drawn inputs: they are given
// the op's arguments.
#include "check/c_kernel.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "check/engines/program_generator.h"
#include "gtest/gtest.h"
#include "nestor.h"
#include "tensor/binding.h"

namespace nestor {
namespace {

constexpr char kLibrary[] = "check/testdata/libkernels.so";

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Op OpNamed(const std::string& name) {
  return *Module::Parse(ReadText("check/testdata/kernels.nestor"))->Instantiate(name, {});
}

struct Outcome {
  absl::Status status;
  std::vector<Tensor> results;
};

// The views of `inputs` in the order of the signature; only a shape for arguments that
// are not read.
std::vector<TensorView> InputViews(const Op& op, const RunInputs& inputs) {
  std::vector<TensorView> views;
  for (const Argument& arg : op.args) {
    views.push_back(inputs.tensors.at(arg.name));
    if (arg.shape_only) views.back().data = nullptr;
  }
  return views;
}

Outcome Call(const Kernel& kernel, const Op& op, const RunInputs& inputs,
             const std::vector<Tensor>& like) {
  const Binding binding = *Bind(SignatureOf(op), inputs);
  Outcome outcome;
  std::vector<TensorView> outputs;
  for (const Tensor& tensor : like) {
    outcome.results.push_back(*Tensor::Create(tensor.type(), tensor.shape()));
    outputs.push_back(outcome.results.back().view());
  }
  outcome.status = kernel(KernelCall(op, binding, InputViews(op, inputs), outputs));
  return outcome;
}

// A compact copy of each input, for a kernel without strides.
RunInputs Compact(const RunInputs& inputs, std::vector<Tensor>& memory) {
  RunInputs compact = inputs;
  memory.reserve(inputs.tensors.size());
  for (auto& [name, view] : compact.tensors) {
    memory.push_back(*Tensor::FromView(view));
    view = memory.back().view();
  }
  return compact;
}

int CompareOnDraws(const Op& op, bool strided) {
  const auto kernel = LoadCKernel(kLibrary, CPrototypeOf(op, {strided, ""}));
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  int compared = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomInputsResult drawn = RandomInputs(op, seed);
    const auto want = Run(op, drawn.inputs);
    if (!want.ok()) continue;
    ++compared;
    std::vector<Tensor> memory;
    const Outcome got =
        Call(*kernel, op, strided ? drawn.inputs : Compact(drawn.inputs, memory), *want);
    EXPECT_TRUE(got.status.ok()) << op.name << " " << got.status;
    for (size_t i = 0; i < want->size(); ++i) {
      EXPECT_EQ(FirstDifference(got.results[i], (*want)[i]).value_or(""), "")
          << op.name << "'s " << op.results[i].name << ", seed " << seed;
    }
  }
  return compared;
}

TEST(CKernel, IsGivenWhatTheOpIsGiven) {
  for (const char* name :
       {"every_type", "every_param", "many_floats", "strided", "scalar", "keywords", "compound"}) {
    EXPECT_GE(CompareOnDraws(OpNamed(name), std::string(name) == "strided"), 50) << name;
  }
}

TEST(CKernel, WithoutStridesTakesCompactTensorsAlone) {
  const Op op = OpNamed("codes");
  const auto kernel = LoadCKernel(kLibrary, CPrototypeOf(op));
  ASSERT_TRUE(kernel.ok());
  Tensor x = Tensor::Of<int32_t>({4}, {1, 2, 3, 4});
  RunInputs inputs;
  inputs.tensors["x"] = {DType::kI32, {2}, {2}, x.data()};
  const Outcome outcome = Call(*kernel, op, inputs, {Tensor::Of<int32_t>({2}, {0, 0})});
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kUnimplemented) << outcome.status;
  EXPECT_TRUE(absl::StrContains(outcome.status.message(), "x is not compact")) << outcome.status;
}

TEST(CKernel, SaysWhatWasReturned) {
  const Op op = OpNamed("codes");
  const auto kernel = LoadCKernel(kLibrary, CPrototypeOf(op));
  ASSERT_TRUE(kernel.ok());
  struct Case {
    int64_t n;
    absl::StatusCode code;
    const char* message;
  };
  for (const Case& c :
       std::vector<Case>{{0, absl::StatusCode::kOk, ""},
                         {1, absl::StatusCode::kUnimplemented, "does not do these sizes"},
                         {2, absl::StatusCode::kUnknown, "returned 2,"},
                         {4, absl::StatusCode::kUnknown, "returned -1,"}}) {
    const Tensor x = *Tensor::Create(DType::kI32, {c.n});
    RunInputs inputs;
    inputs.tensors["x"] = x.view();
    const Outcome outcome = Call(*kernel, op, inputs, {x});
    EXPECT_EQ(outcome.status.code(), c.code) << outcome.status;
    EXPECT_TRUE(absl::StrContains(outcome.status.message(), c.message)) << outcome.status;
  }
}

// Every truncated ELF file is refused, and none ends the process.
TEST(CKernel, RefusesWhatWasCutShort) {
  const std::string whole = ReadText(kLibrary), cut = testing::TempDir() + "/libcut.so";
  const CPrototype prototype{"scalar", false, {}};
  for (size_t bytes = 0; bytes < whole.size(); bytes += 97) {
    std::ofstream(cut, std::ios::binary) << whole.substr(0, bytes);
    const absl::Status status = LoadCKernel(cut, prototype).status();
    if (status.ok()) continue;  // the missing part is in no segment
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("cannot load ", cut, ": ")))
        << status;
  }
}

TEST(CKernel, SaysWhatItCannotLoad) {
  struct Case {
    const char *file, *symbol;
    std::vector<const char*> pieces;
  };
  for (const Case& c : std::vector<Case>{
           {"none.so", "f", {"cannot load none.so", "No such file"}},
           {"check/testdata/kernels.nestor",
            "f",
            {"cannot load check/testdata/kernels.nestor", "invalid ELF header"}},
           {kLibrary, "scaler", {kLibrary, "no function 'scaler'", "did you mean 'scalar'?"}},
           {kLibrary, "zzzzzzzz", {"no function 'zzzzzzzz'"}},
           {"check", "f", {"cannot load check: ", "Is a directory"}},
           {"check/testdata/libmangled.so",
            "softmax",
            {"one of C++, softmax(float const*, float*)", "extern \"C\""}}}) {
    const absl::Status status = LoadCKernel(c.file, {c.symbol, false, {}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    for (const char* piece : c.pieces) {
      EXPECT_TRUE(absl::StrContains(status.message(), piece)) << status << "\nlacks: " << piece;
    }
  }
}

}  // namespace
}  // namespace nestor
