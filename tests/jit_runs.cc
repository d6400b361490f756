#include "tests/jit_runs.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "uops/invariant.h"

namespace nestor {
namespace {

size_t PageSize() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

GuardedMemory::GuardedMemory(size_t bytes, Side side) {
  const size_t page = PageSize();
  const size_t inner = RoundUp(bytes, page);
  mapped_ = inner + 2 * page;
  pages_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  NESTOR_CHECK(pages_ != MAP_FAILED, "no memory");
  if (inner > 0) NESTOR_CHECK(mprotect(pages_ + page, inner, PROT_READ | PROT_WRITE) == 0, "no pages");
  data_ = pages_ + page + (side == Side::kEnd ? inner - bytes : 0);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)), mapped_(other.mapped_), data_(other.data_) {}

GuardedMemory::~GuardedMemory() {
  if (pages_ != nullptr) munmap(pages_, mapped_);
}

Results RunJit(const jit::Executable& executable, const RunInputs& inputs, GuardedMemory::Side side) {
  const loop::Program& program = executable.program();
  std::vector<GuardedMemory> memory;
  std::vector<TensorView> views;
  for (loop::TensorId id : program.inputs) {
    TensorView view = inputs.tensors.at(program[id].name);
    const int64_t bytes = IsContiguous(view) ? *NumBytes(view.type, view.shape) : -1;
    if (bytes >= 0) {
      memory.emplace_back(static_cast<size_t>(bytes), side);
      if (bytes > 0) std::memcpy(memory.back().data(), view.data, static_cast<size_t>(bytes));
      view = ViewOf(view.type, memory.back().data(), view.shape);
    }
    views.push_back(view);
  }
  std::vector<Scalar> params;
  for (const ParamInfo& param : program.params) {
    const auto it = inputs.params.find(param.name);
    if (it == inputs.params.end() && !param.value) return absl::InvalidArgumentError("a $param is missing");
    params.push_back(it != inputs.params.end() ? it->second : *param.value);
  }
  const auto shapes = executable.OutputShapes(views, params, &inputs.dims);
  if (!shapes.ok()) return shapes.status();
  std::vector<TensorView> outputs;
  for (size_t i = 0; i < shapes->size(); ++i) {
    const DType type = program[program.outputs[i]].type;
    const size_t bytes = static_cast<size_t>(*NumBytes(type, (*shapes)[i]));
    memory.emplace_back(bytes, side);
    std::memset(memory.back().data(), 0xff, bytes);
    outputs.push_back(ViewOf(type, memory.back().data(), (*shapes)[i]));
  }
  jit::Workspace workspace;
  const absl::Status status = executable.Run({views, outputs, params, &inputs.dims}, &workspace);
  if (!status.ok()) return status;
  std::vector<Tensor> results;
  for (const TensorView& view : outputs) results.push_back(*Tensor::FromView(view));
  return results;
}

}  // namespace nestor
