// A run takes the planned memory: tested for a network of the shape of ResNet-50, forward and
// gradient, compiled; and for a chain, interpreted.
//
// A child process, started before this one has any thread, measures itself: the resident memory
// that the kernel reports, and its maximum during the run.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "fusion/cost/statistics.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/sized_program.h"
#include "nestor.h"
#include "tests/resnet.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

constexpr double kMiB = 1 << 20;

// A figure of /proc/self/status, in bytes.
int64_t StatusBytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  int64_t kilobytes = 0;
  while (status >> word) {
    if (word == name && status >> kilobytes) return kilobytes << 10;
  }
  return -1;
}

// The most memory that is resident while `run` runs, beyond that before.
int64_t ResidentBytes(absl::FunctionRef<void()> run) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;  // VmHWM begins anew
  const int64_t before = StatusBytes("VmRSS:");
  run();
  return StatusBytes("VmHWM:") - before;
}

struct Measured {
  int64_t resident = -1;
  int64_t planned = 0;      // by the plan of the program that runs
  int64_t lower_bound = 0;  // of the planned
  int64_t code = 0;
};

// The result of `measure` in a process of its own.
Measured InChild(absl::FunctionRef<Measured()> measure) {
  int ends[2];
  NESTOR_CHECK(pipe(ends) == 0, "no pipe");
  const pid_t child = fork();
  NESTOR_CHECK(child >= 0, "no process");
  if (child == 0) {
    const Measured measured = measure();
    _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? 0 : 1);
  }
  close(ends[1]);
  Measured measured;
  const bool whole = read(ends[0], &measured, sizeof measured) == sizeof measured;
  close(ends[0]);
  int state = 0;
  NESTOR_CHECK(waitpid(child, &state, 0) == child, "the child is lost");
  EXPECT_TRUE(whole && state == 0) << "the child failed";
  return whole ? measured : Measured();
}

// Every input of a program, written once so that it is resident.
std::vector<Tensor> MakeTensors(const loop::SizedProgram& sized,
                                const std::vector<loop::TensorId>& ids) {
  std::vector<Tensor> tensors;
  for (loop::TensorId id : ids) {
    const std::vector<int64_t> extents = sized.Extents(id).value();
    tensors.push_back(
        Tensor::Create(sized.program()[id].type, Dims(extents.begin(), extents.end())).value());
    const int byte = IsFloat(sized.program()[id].type) ? 0x3c : 0;  // of floats, about 0.01
    if (tensors.back().num_bytes() > 0) {
      std::memset(tensors.back().data(), byte, static_cast<size_t>(tensors.back().num_bytes()));
    }
  }
  return tensors;
}

// A call's arguments at given sizes.
struct Call {
  Call(const loop::Program& program, const loop::Sizes& at)
      : sizes(at), sized(loop::SizedProgram::Create(program, sizes).value()),
        inputs(MakeTensors(sized, program.inputs)), outputs(MakeTensors(sized, program.outputs)) {}

  void Run(const jit::Executable& executable, jit::Workspace& workspace) const {
    const std::vector<TensorView> given(inputs.begin(), inputs.end()),
        results(outputs.begin(), outputs.end());
    const absl::Status status = executable.Run({given, results, {}, &sizes}, &workspace);
    NESTOR_CHECK(status.ok(), status.ToString());
  }

  const loop::Sizes sizes;
  const loop::SizedProgram sized;
  const std::vector<Tensor> inputs, outputs;
};

// `small`: sizes at which the program runs first, to compile the code for these layouts.
Measured MeasureCompiled(const Op& op, const loop::Sizes& small, const loop::Sizes& sizes) {
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  // Otherwise large arguments have separate code.
  options.prefetching_bytes = options.streaming_bytes = 0;
  options.size_classes.variants = 0;  // and so may other sizes than `small`
  const auto executable = jit::Compile(Lower(op), options).value();
  {
    jit::Workspace workspace;
    Call(executable->program(), small).Run(*executable, workspace);
  }
  const Call call(executable->program(), sizes);
  loop::Statistics statistics;
  const absl::Status sound =
      loop::MeasureMemory(call.sized, executable->kernel().plan(), statistics);
  NESTOR_CHECK(sound.ok(), sound.ToString());
  Measured measured;
  measured.planned = statistics.arena_bytes + statistics.private_bytes;
  measured.lower_bound = statistics.arena_lower_bound;
  measured.code = executable->code_bytes();
  jit::Workspace workspace;
  measured.resident = ResidentBytes([&] { call.Run(*executable, workspace); });
  return measured;
}

void ExpectAsPlanned(const std::string& name, const Measured& measured, double code) {
  const auto mebibytes = [](int64_t bytes) { return static_cast<double>(bytes) / kMiB; };
  std::cout << name << ": " << mebibytes(measured.resident) << " MiB resident, "
            << mebibytes(measured.planned) << " MiB planned, " << mebibytes(measured.code)
            << " MiB of code\n";
  EXPECT_LE(static_cast<double>(measured.resident),
            1.05 * static_cast<double>(measured.planned) + code)
      << name;
  // Otherwise the measurement is not that of the run.
  EXPECT_GE(static_cast<double>(measured.resident),
            0.95 * static_cast<double>(measured.lower_bound))
      << name;
}

// A quarter of ResNet-50's channels: a sixteenth of the time.
loop::Sizes SizesOfResNet(int64_t n, int64_t extent) {
  loop::Sizes sizes = {{"N", n}, {"H", extent}, {"W", extent}, {"C0", 3}, {"C1", 16}, {"K", 1000}};
  for (int stage = 0; stage < 4; ++stage) {
    sizes[absl::StrCat("B", stage)] = 16 << stage;
    sizes[absl::StrCat("D", stage)] = 64 << stage;
  }
  return sizes;
}

TEST(ResidentMemory, OfResNetForward) {
  const Measured measured = InChild(
      [] { return MeasureCompiled(ResNet50(), SizesOfResNet(1, 64), SizesOfResNet(4, 224)); });
  ExpectAsPlanned("forward", measured, static_cast<double>(measured.code));
}

// Four images are used: fewer rows run without tiles, and then the memory for operands packed for
// tiles of the last layer is planned, but not touched.
TEST(ResidentMemory, OfResNetGradient) {
  const Measured measured = InChild([] {
    return MeasureCompiled(ResNetGradient({3, 4, 6, 3}), SizesOfResNet(4, 64),
                           SizesOfResNet(4, 160));
  });
  ExpectAsPlanned("gradient", measured, static_cast<double>(measured.code));
}

// Marks, one byte for each element, say which elements were written.
Measured MeasureInterpreted(const loop::Program& program, int64_t n) {
  const Tensor x = Tensor::Of(DType::kF32, {n}, std::vector<double>(static_cast<size_t>(n), 1.0));
  const auto sized = loop::SizedProgram::Create(program, {{"N", n}}).value();
  loop::Statistics statistics;
  const absl::Status sound = loop::MeasureMemory(sized, loop::PlanMemory(program), statistics);
  NESTOR_CHECK(sound.ok(), sound.ToString());
  Measured measured;
  measured.planned = (statistics.arena_bytes + x.num_bytes()) / 4 * 5;  // with the output
  measured.lower_bound = measured.planned;
  RunInputs inputs;
  inputs.tensors["x"] = x.view();
  measured.resident = ResidentBytes([&] {
    const auto result = Interpret(program, inputs);
    NESTOR_CHECK(result.ok(), result.status().ToString());
  });
  return measured;
}

TEST(ResidentMemory, OfTheInterpreter) {
  // Two temporaries are needed at once, of six.
  const auto op =
      Parse("op chain(x: f32[N]) -> (y) { a[i] = x[N - 1 - i] + x[i]; b[i] = a[N - 1 - i] + x[i];"
            " c[i] = b[N - 1 - i] + x[i]; d[i] = c[N - 1 - i] + x[i]; e[i] = d[N - 1 - i] + x[i];"
            " f[i] = e[N - 1 - i] + x[i]; y[i] = f[N - 1 - i] + x[i] }");
  ASSERT_TRUE(op.ok()) << op.status();
  const Measured measured = InChild([&] { return MeasureInterpreted(Lower(*op), 1 << 20); });
  ExpectAsPlanned("interpreter", measured, 0);
}

}  // namespace
}  // namespace nestor
