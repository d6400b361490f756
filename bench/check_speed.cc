// How fast Check is: trials per second on small sizes, and on large ones the time of a trial next
// to the kernel's. The kernels are our own compiled code, on one thread.
//
//   bazel run //bench:check_speed [NUMBER OF A ROW]
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "jit/runtime/executor.h"
#include "nestor.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// Machine code of the op as a kernel; adds the time that it takes to `spent`.
class CompiledKernel {
 public:
  explicit CompiledKernel(const Op& op) {
    jit::CompileOptions options;
    options.executor = &jit::InlineExecutor();
    executable_ = Compile(op, options).value();
  }

  absl::Status operator()(const KernelCall& call) {
    std::vector<Scalar> params;
    for (const ParamInfo& param : call.op().params) params.push_back(call.scalar(param.name));
    const absl::Time start = absl::Now();
    const absl::Status status =
        executable_->Run({call.inputs(), call.outputs(), params, nullptr}, &workspace_);
    calls_.push_back(absl::ToDoubleMicroseconds(absl::Now() - start));
    return status;
  }

  double MedianMicroseconds() {
    std::sort(calls_.begin(), calls_.end());
    return calls_.empty() ? 0 : calls_[calls_.size() / 2];
  }

 private:
  std::unique_ptr<const jit::Executable> executable_;
  jit::Workspace workspace_;
  std::vector<double> calls_;
};

struct Row {
  const char* op;
  std::vector<std::string> sizes;
  SizeLimits limits;
  int64_t sample = 0;
  int64_t trials = 0;
};

// The kernel must pass: a failing one would be looked into instead of timed.
void Measure(const Row& row) {
  const Op op = LibraryOp(row.op).value();
  CompiledKernel kernel(op);
  CheckOptions options;
  options.conditions = row.sizes;
  options.Sizes(row.limits).Sample(row.sample).Trials(row.trials);
  const auto report = Check(
      op, [&](const KernelCall& call) { return kernel(call); }, options);
  NESTOR_CHECK(report.ok(), report.status().ToString());
  NESTOR_CHECK(report->IsRight(), report->ToString());
  const double seconds = absl::ToDoubleSeconds(report->time) / static_cast<double>(report->trials);
  std::string sizes;
  for (const std::string& size : row.sizes)
    absl::StrAppendFormat(&sizes, "%s%s", sizes.empty() ? "" : ", ", size);
  const double by_bounds =
      static_cast<double>(report->by_bounds) / static_cast<double>(report->histogram.Total());
  absl::PrintF("%-10s %-34s %9s %12.0f %14.1f %14.1f %11.2f%%\n", row.op, sizes,
               row.sample > 0 ? absl::StrCat(row.sample) : "all", 1 / seconds, 1e6 * seconds,
               kernel.MedianMicroseconds(), 100 * by_bounds);
}

int Main(int argc, char** argv) {
  const SizeLimits large = {int64_t{1} << 26, int64_t{1} << 16, int64_t{1} << 40};
  const Row rows[] = {
      {"softmax", {"N0 == 10", "C == 100"}, {}, 0, 5000},
      {"softmax", {"N0 == 1", "C == 1000"}, {}, 0, 5000},
      {"matmul", {"M == 18", "K == 18", "N == 18"}, {}, 0, 5000},
      {"matmul", {"M == 10", "K == 45", "N == 10"}, {}, 0, 5000},
      {"softmax", {"N0 == 1000", "C == 1000"}, large, 0, 10},
      {"softmax", {"N0 == 1000", "C == 1000"}, large, 4096, 100},
      {"matmul", {"M == 577", "K == 577", "N == 577"}, large, 0, 4},
      {"matmul", {"M == 577", "K == 577", "N == 577"}, large, 4096, 100},
      {"matmul", {"M == 2000", "K == 2000", "N == 2000"}, large, 4096, 4},
  };
  absl::PrintF("%-10s %-34s %9s %12s %14s %14s %12s\n", "op", "sizes", "judged", "trials/s",
               "us a trial", "us the kernel", "by bounds");
  for (size_t i = 0; i < std::size(rows); ++i) {
    if (argc < 2 || absl::StrCat(i) == argv[1]) Measure(rows[i]);
  }
  return 0;
}

}  // namespace
}  // namespace nestor

int main(int argc, char** argv) { return nestor::Main(argc, argv); }
