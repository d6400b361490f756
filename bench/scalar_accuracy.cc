// The errors of the transcendental scalar ops: //bench:scalar_accuracy [OP ..]
// [--stride=N] [--f64=N]
//
// Prints the table of docs/scalar_accuracy.md: for each row the worst error found and its place, in
// f32 on every one of the 2^32 arguments (every N-th with --stride; for two operands on as many
// structured random pairs as in f64), in f64 on ten million structured random arguments (--f64).
// The row runs as machine code, which gives the bits of its body.
//
// Judging each result by MPFR would take weeks. So each is screened by the C library, f32 by its
// functions of double, f64 by those of long double, both accurate to a thousandth of an ulp; MPFR
// judges the worst few of each block, and all results whose screened error is near or above the
// row's stated one. If a result is above it, the exit code is 1.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nestor.h"
#include "tests/scalar_screen.h"
#include "tests/transcendental_reference.h"
#include "uops/scalar_op.h"

namespace nestor {
namespace {

constexpr int64_t kBlock = 1 << 16;

struct Worst {
  double error = 0;
  std::vector<double> at;
};

// One row on one type, as machine code.
class CompiledRow {
 public:
  CompiledRow(const ScalarOpRow& row, DType type) : row_(row), type_(type) {
    const std::string t(Name(type)), second = row.arity == 2 ? absl::StrCat(", b: ", t, "[N]") : "";
    const auto op = Parse(absl::StrCat("op f(a: ", t, "[N]", second, ") -> (y) { y[i] = ", row.name,
                                       row.arity == 2 ? "(a[i], b[i])" : "(a[i])", " }"));
    code_ = Compile(*op).value();
  }

  // Screens the results at `args` (by operand) and lets MPFR settle the worst.
  void Judge(const std::vector<Tensor>& args, Worst& worst) const {
    RunInputs inputs;
    const char* const names[] = {"a", "b"};
    for (size_t i = 0; i < args.size(); ++i) inputs.tensors[names[i]] = args[i].view();
    const Tensor y = std::move(Run(*code_, inputs).value()[0]);
    const int64_t n = y.num_elements();
    double screened = 0;
    int64_t suspect = -1;
    for (int64_t i = 0; i < n; ++i) {
      const double error = ScreenedError(screen_, type_, Element(args[0], i),
                                         args.size() == 2 ? Element(args[1], i) : 0, Element(y, i));
      if (error > 0.99 * Stated()) Settle(args, y, i, worst);
      else if (error > screened) screened = error, suspect = i;
    }
    if (suspect >= 0 && screened > worst.error - 0.01) Settle(args, y, suspect, worst);
  }

  int Stated() const { return type_ == DType::kF32 ? row_.ulp32 : row_.ulp64; }

 private:
  static double Element(const Tensor& tensor, int64_t i) {
    return tensor.type() == DType::kF32 ? static_cast<double>(tensor.values<float>()[i])
                                        : tensor.values<double>()[i];
  }

  void Settle(const std::vector<Tensor>& args, const Tensor& y, int64_t i, Worst& worst) const {
    std::vector<double> at;
    for (const Tensor& arg : args) at.push_back(Element(arg, i));
    const double error = UlpError(row_.name, Name(type_), at, Element(y, i));
    if (error > worst.error || worst.at.empty()) worst = {error, std::move(at)};
  }

  const ScalarOpRow& row_;
  DType type_;
  Screen screen_ = ScreenOf(row_.name);
  std::unique_ptr<const jit::Executable> code_;
};

Worst OnEveryF32(const ScalarOpRow& row, int64_t stride) {
  const CompiledRow compiled(row, DType::kF32);
  Worst worst;
  for (int64_t first = 0; first < int64_t{1} << 32; first += kBlock * stride) {
    const int64_t n = std::min(kBlock, ((int64_t{1} << 32) - first + stride - 1) / stride);
    std::vector<Tensor> args{Tensor::Create(DType::kF32, {n}).value()};
    for (int64_t i = 0; i < n; ++i) {
      args[0].values<float>()[i] = FromBits<float>(static_cast<Bits>(first + i * stride));
    }
    compiled.Judge(args, worst);
  }
  return worst;
}

Worst OnStructured(const ScalarOpRow& row, DType type, int64_t count) {
  const CompiledRow compiled(row, type);
  StructuredArguments draw(type);
  Worst worst;
  for (int64_t done = 0; done < count; done += kBlock) {
    std::vector<Tensor> args;
    for (int i = 0; i < row.arity; ++i) args.push_back(Tensor::Create(type, {kBlock}).value());
    for (int64_t i = 0; i < kBlock; ++i) {
      const std::pair<double, double> pair = draw.Next();
      const double values[] = {pair.first, pair.second};
      for (size_t j = 0; j < args.size(); ++j) {
        Store(Scalar::Float(type, values[j]),
              static_cast<char*>(args[j].data()) + i * ByteSize(type));
      }
    }
    compiled.Judge(args, worst);
  }
  return worst;
}

std::string PlaceText(const Worst& worst, DType type) {
  if (worst.at.empty()) return "-";
  std::string text;
  for (double x : worst.at)
    absl::StrAppend(&text, text.empty() ? "" : ", ", LiteralText(Scalar::Float(type, x)));
  return text;
}

// Prints a line of the table; returns whether both errors are as stated.
bool Report(const ScalarOpRow& row, int64_t stride, int64_t count) {
  const Worst narrow =
      row.arity == 1 ? OnEveryF32(row, stride) : OnStructured(row, DType::kF32, count);
  const Worst wide = OnStructured(row, DType::kF64, count);
  std::printf("| %s | %d | %.3f | %s | %d | %.3f | %s |\n", row.name, row.ulp32, narrow.error,
              PlaceText(narrow, DType::kF32).c_str(), row.ulp64, wide.error,
              PlaceText(wide, DType::kF64).c_str());
  std::fflush(stdout);
  return narrow.error <= row.ulp32 && wide.error <= row.ulp64;
}

int Main(int argc, char** argv) {
  int64_t stride = 1, count = 10'000'000;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    if (absl::ConsumePrefix(&arg, "--stride=")) stride = std::atoll(arg.data());
    else if (absl::ConsumePrefix(&arg, "--f64=")) count = std::atoll(arg.data());
    else names.emplace_back(arg);
  }
  std::printf(
      "| op | f32 stated | worst | at | f64 stated | worst | at |\n|---|---|---|---|---|---|---|\n");
  bool good = true;
  for (const ScalarOpRow& row : AllScalarOps()) {
    const bool asked = names.empty() || std::count(names.begin(), names.end(), row.name) != 0;
    if (row.transcendental && asked) good &= Report(row, stride, count);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace nestor

int main(int argc, char** argv) { return nestor::Main(argc, argv); }
