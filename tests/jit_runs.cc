// All that a kernel may read or write lies in pages of its own, between pages that
// fault, at the exact number of bytes that its view covers; what lies between the
// elements of an output keeps its poison, or the run says so.
#include "tests/jit_runs.h"

#include <algorithm>
#include <cstring>
#include <iostream>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "interp/reference.h"
#include "jit/codegen/foreign_instructions.h"
#include "jit/codegen/translate.h"
#include "jit/disassemble.h"
#include "loop_ir/text.h"
#include "uops/index_expr.h"
#include "uops/invariant.h"

namespace nestor {

// ---- One run

namespace {

// The arguments of a call, and the memory that they lie in.
struct PlacedCall {
  std::vector<GuardedMemory> memory;
  std::vector<TensorView> inputs, outputs;
  std::vector<Scalar> params;
  std::vector<std::string> before;   // bytes of the inputs
  std::vector<bool> is_overwritten;  // by input
};

absl::Status PlaceInputs(const loop::Program& program, const RunInputs& given, GuardedMemory::Side side,
                         PlacedCall& call) {
  for (loop::TensorId id : program.inputs) {
    const TensorView& from = given.tensors.at(program[id].name);
    TensorView view = from;
    PlaceGuarded(view, side, call.memory);
    call.before.push_back(BytesOf(from));
    if (!call.before.back().empty()) {
      std::memcpy(call.memory.back().data(), call.before.back().data(), call.before.back().size());
    }
    call.inputs.push_back(view);
  }
  call.is_overwritten.resize(call.inputs.size());
  for (const ParamInfo& param : program.params) {
    const auto it = given.params.find(param.name);
    if (it == given.params.end() && !param.value) return absl::InvalidArgumentError("a $param is missing");
    call.params.push_back(it != given.params.end() ? it->second : *param.value);
  }
  return absl::OkStatus();
}

// The input whose memory output `number` takes, of those that no other output took.
int InputInPlace(const jit::Executable& executable, int number, const TensorView& view, const PlacedCall& call) {
  for (const auto& [output, input] : executable.aliases()) {
    const TensorView& given = call.inputs[static_cast<size_t>(input)];
    const bool fits = given.type == view.type && given.shape == view.shape && IsContiguous(given);
    if (output == number && fits && !call.is_overwritten[static_cast<size_t>(input)]) return input;
  }
  return -1;
}

void PlaceOutputs(const jit::Executable& executable, const std::vector<Dims>& shapes, const JitRunOptions& options,
                  PlacedCall& call) {
  const loop::Program& program = executable.program();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const DType type = program[program.outputs[i]].type;
    TensorView view{type, shapes[i], StridesOf(shapes[i], options.outputs), nullptr};
    const int input = options.in_place ? InputInPlace(executable, static_cast<int>(i), view, call) : -1;
    if (input >= 0) {
      view.data = call.inputs[static_cast<size_t>(input)].data;
      call.is_overwritten[static_cast<size_t>(input)] = true;
    } else {
      PlaceGuarded(view, options.side, call.memory);
    }
    call.outputs.push_back(view);
  }
}

}  // namespace

Results RunJit(const jit::Executable& executable, const RunInputs& inputs, const JitRunOptions& options) {
  PlacedCall call;
  NESTOR_RETURN_IF_ERROR(PlaceInputs(executable.program(), inputs, options.side, call));
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Dims> shapes,
                          executable.OutputShapes(call.inputs, call.params, &inputs.dims));
  PlaceOutputs(executable, shapes, options, call);
  jit::Workspace own;
  jit::Workspace* const workspace = options.workspace != nullptr ? options.workspace : &own;
  const jit::Arguments arguments{call.inputs, call.outputs, call.params, &inputs.dims};
  NESTOR_RETURN_IF_ERROR(executable.RunForTesting(arguments, workspace, {options.caller, options.poison_dead}));
  std::vector<Tensor> results;
  for (const TensorView& view : call.outputs) {
    results.push_back(Tensor::FromView(view).value());
    if (!IsContiguous(view) && !GapsAreUntouched(view)) {
      return absl::InternalError(absl::StrCat("writes beside the elements of output ", results.size() - 1));
    }
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.is_overwritten[i] && BytesOf(call.inputs[i]) != call.before[i]) {
      return absl::InternalError(absl::StrCat("writes input ", i));
    }
  }
  return results;
}

// ---- Checking

namespace {
constexpr jit::Isa kSets[] = {jit::Isa::kAvx2, jit::Isa::kAvx512};
}  // namespace

absl::Span<const jit::Isa> TestedSets() {
  static const auto* const sets = [] {
    auto* available = new std::vector<jit::Isa>;
    for (jit::Isa isa : kSets) {
      const absl::Status status = jit::CheckIsa(isa);
      if (status.ok()) available->push_back(isa);
      else std::cerr << "SKIPPED: " << status.message() << "\n";
    }
    return available;
  }();
  return *sets;
}

std::string Describe(const jit::CompileOptions& options, const JitRunOptions& run) {
  return absl::StrCat(jit::Name(*options.isa), options.mode == jit::Mode::kStrict ? " strict" : " fast", ", outputs ",
                      Name(run.outputs), run.in_place ? ", in place" : "", run.poison_dead ? ", dead bytes poisoned" : "",
                      run.side == GuardedMemory::Side::kEnd ? ", to the end of a page" : ", from the begin of a page");
}

namespace {

absl::Status CheckKernel(const jit::Kernel& kernel, jit::Isa isa) {
  for (const jit::Kernel::FunctionView& function : kernel.Functions()) {
    const absl::optional<std::string> foreign = jit::FirstForeignInstruction(function.code, isa);
    if (!foreign) continue;
    return absl::InternalError(absl::StrCat(jit::Name(isa), ", ", function.name, ": ", *foreign, "\n",
                                            loop::ToText(kernel.program()), jit::Disassemble(kernel)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAssembled(loop::Program unfused, const jit::CompileOptions& options) {
  NESTOR_ASSIGN_OR_RETURN(loop::Program scheduled, jit::Schedule(std::move(unfused), options));
  jit::TranslateOptions translate;
  translate.isa = *options.isa;
  translate.streaming = options.streaming_bytes.has_value();
  NESTOR_ASSIGN_OR_RETURN(const auto kernel, jit::Kernel::Compile(std::move(scheduled), translate));
  return CheckKernel(*kernel, translate.isa);
}

absl::Status CompiledVariants::CheckInstructions(const jit::Executable& executable) const {
  for (const std::shared_ptr<const jit::Kernel>& kernel : executable.kernels()) {
    if (!checked_.insert(kernel).second) continue;
    NESTOR_RETURN_IF_ERROR(CheckKernel(*kernel, executable.options().isa));
  }
  return absl::OkStatus();
}

absl::StatusOr<CompiledVariants> CompiledVariants::Compile(loop::Program unfused, const jit::CompileOptions& options,
                                                           absl::Span<const jit::Mode> modes) {
  CompiledVariants compiled;
  compiled.unfused_ = std::move(unfused);
  for (jit::Isa isa : kSets) {
    for (jit::Mode mode : modes) {
      Variant variant{options, nullptr};
      variant.options.isa = isa;
      variant.options.mode = mode;
      if (!absl::c_linear_search(TestedSets(), isa)) {
        NESTOR_RETURN_IF_ERROR(CheckAssembled(compiled.unfused_, variant.options));
        continue;
      }
      NESTOR_ASSIGN_OR_RETURN(variant.executable, jit::Compile(compiled.unfused_, variant.options));
      NESTOR_RETURN_IF_ERROR(compiled.CheckInstructions(*variant.executable));
      compiled.variants_.push_back(std::move(variant));
    }
  }
  return compiled;
}

namespace {

Finding CheckBounded(const std::vector<ReferenceTensor>& bounds, const Results& got) {
  if (!got.ok()) return absl::nullopt;
  for (size_t i = 0; i < got->size(); ++i) {
    const absl::Status status = CheckEnclosed(bounds[i], (*got)[i].view());
    if (!status.ok()) return absl::StrCat("result ", i, " leaves its bounds: ", status.message());
  }
  return absl::nullopt;
}

using Bounds = absl::optional<std::vector<ReferenceTensor>>;

bool IsLimit(const Results& results) { return results.status().code() == absl::StatusCode::kResourceExhausted; }

// What is refused by law, not by a limit of the interpreter, is refused by compiled code.
Finding CheckRefused(const CompiledVariants::Variant& variant, const RunInputs& inputs, const JitRunOptions& run,
                     const Results& refused) {
  if (IsLimit(refused) || !RunJit(*variant.executable, inputs, run).ok()) return absl::nullopt;
  return absl::StrCat(Describe(variant.options, run), " runs, but: ", refused.status().ToString());
}

// What runs with these inputs; the general code where they are refused.
std::shared_ptr<const jit::Kernel> KernelOf(const jit::Executable& executable, const RunInputs& inputs) {
  const std::shared_ptr<const jit::Kernel> general(std::shared_ptr<void>(), &executable.kernel());
  const absl::StatusOr<Binding> binding = Bind(SignatureOf(executable.program()), inputs);
  if (!binding.ok()) return general;
  return executable.KernelAt([&](const std::string& name) { return binding->Find(name); }).value_or(general);
}

// Those for a program in which numbers may stand for some dimensions.
RunInputs InputsOf(const loop::Program& program, RunInputs inputs) {
  const std::vector<std::string> known = UnboundDimensions(SignatureOf(program), {});
  absl::erase_if(inputs.dims, [&](const auto& dim) { return !absl::c_linear_search(known, dim.first); });
  return inputs;
}

Finding CheckVariant(const CompiledVariants::Variant& variant, const RunInputs& inputs,
                     absl::Span<const JitRunOptions> runs, const Results& unfused, const Bounds& bounds,
                     Counts& counts) {
  const std::shared_ptr<const jit::Kernel> kernel = KernelOf(*variant.executable, inputs);
  const Results want = Run(kernel->program(), InputsOf(kernel->program(), inputs));
  const bool strict = variant.options.mode == jit::Mode::kStrict;
  if (!want.ok() && !IsLimit(want)) return absl::StrCat("what runs is refused: ", want.status().ToString());
  if (strict && want.ok()) {
    const Finding finding = Compare(unfused, want, "strict, interpreted, against the unfused program,", counts);
    if (finding) return finding;
  }
  for (const JitRunOptions& run : runs) {
    const Results got = RunJit(*variant.executable, inputs, run);
    const std::string what = Describe(variant.options, run);
    if (!got.ok()) return absl::StrCat(what, " refuses: ", got.status().ToString());
    const Results& expected = strict && !want.ok() ? unfused : want;
    if (expected.ok()) {
      if (Finding finding = Compare(expected, got, what, counts)) return finding;
    }
    if (strict || !bounds) continue;
    if (Finding finding = CheckBounded(*bounds, got)) return absl::StrCat(what, ": ", *finding);
  }
  return absl::nullopt;
}

}  // namespace

Finding CompiledVariants::Check(const RunInputs& inputs, absl::Span<const JitRunOptions> runs, bool bounded,
                                Counts& counts) const {
  ++counts.programs;
  const Results unfused = Run(unfused_, inputs);
  if (!unfused.ok()) {
    ++counts.refused;
    for (const Variant& variant : variants_) {
      if (Finding finding = CheckRefused(variant, inputs, runs[0], unfused)) return finding;
    }
    return absl::nullopt;
  }
  Bounds bounds;
  if (bounded) {
    auto found = InterpretReference(unfused_, inputs);
    // A place or a condition that the bounds do not decide has no reference.
    if (found.ok()) bounds = *std::move(found);
  }
  for (const Variant& variant : variants_) {
    Finding finding = CheckVariant(variant, inputs, runs, unfused, bounds, counts);
    const absl::Status instructions = CheckInstructions(*variant.executable);
    if (!finding && !instructions.ok()) finding = instructions.ToString();
    if (finding) return absl::StrCat(*finding, "\n", loop::ToText(KernelOf(*variant.executable, inputs)->program()));
  }
  return absl::nullopt;
}

Finding CheckCompiled(const loop::Program& unfused, const RunInputs& inputs, const jit::CompileOptions& options,
                      absl::Span<const JitRunOptions> runs, bool bounded, Counts& counts) {
  const auto compiled = CompiledVariants::Compile(unfused, options);
  if (!compiled.ok()) return absl::StrCat("does not compile: ", compiled.status().ToString());
  return compiled->Check(inputs, runs, bounded, counts);
}

// ---- Inputs

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kSpecials[] = {0.0,      -0.0,      kInf,       -kInf,     kNaN,     1.0,      -1.0,    0x1p-149,
                                -0x1p-140, 0x1p-126, 0x1p-1074, 0x1p-24,   0x1p-14,  65504.0,  3.4e38,  -3.4e38,
                                1.7e308,  0.5,       1.5,        2147483648.0, -88.0, 1e-20,   2.5,     127.0};

Scalar DrawFloat(DType type, std::mt19937_64& random) {
  switch (random() % 4) {
    case 0: return Scalar::Float(type, kSpecials[random() % std::size(kSpecials)]);
    case 1: return Scalar{type, random() & (~Bits{0} >> (64 - 8 * ByteSize(type)))}.Canonical();
    default: return Scalar::Float(type, static_cast<double>(random() % 4096) / 256 - 8);
  }
}

Scalar DrawInteger(DType type, std::mt19937_64& random) {
  const int bits = 8 * ByteSize(type);
  const int64_t highest = type == DType::kU8 ? 255 : static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  const int64_t lowest = type == DType::kU8 ? 0 : -highest - 1;
  const int64_t specials[] = {0, 1, highest, lowest, highest - 1, lowest + 1};
  switch (random() % 4) {
    case 0: return Scalar::Integer(type, specials[random() % std::size(specials)]);
    case 1: return Scalar::Integer(type, static_cast<int64_t>(random() % 4));
    default: {
      const uint64_t drawn = random() >> (64 - bits);  // kept in the type's range
      if (type == DType::kU8) return Scalar::Integer(type, static_cast<int64_t>(drawn));
      return Scalar::Integer(type, static_cast<int64_t>(drawn << (64 - bits)) >> (64 - bits));
    }
  }
}

}  // namespace

Tensor DrawTensor(DType type, const Dims& shape, std::mt19937_64& random) {
  Tensor tensor = Tensor::Create(type, shape).value();
  char* element = static_cast<char*>(tensor.data());
  for (int64_t i = 0; i < tensor.num_elements(); ++i, element += ByteSize(type)) {
    constexpr char kBools[] = {0, 1, 0, 2, 0, -1};
    if (type == DType::kBool) *element = kBools[random() % std::size(kBools)];
    else Store(IsFloat(type) ? DrawFloat(type, random) : DrawInteger(type, random), element);
  }
  return tensor;
}

namespace {

// Extents for the symbols, and tensors of those shapes.
absl::optional<RandomInputsResult> DrawOnce(const Op& op, const RunInputs& small, std::mt19937_64& random,
                                            int64_t max_extent) {
  constexpr int64_t kExtents[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 34, 63, 64, 65, 66, 127, 129};
  const int64_t common = kExtents[random() % std::size(kExtents)];
  const bool equal = random() % 2 == 0;
  // Some are small, as many large ones would take the interpreter long.
  const auto draw = [&] {
    if (random() % 3 == 0) return static_cast<int64_t>(1 + random() % 3);
    return std::min(max_extent, equal ? common : kExtents[random() % std::size(kExtents)]);
  };
  const Signature signature = SignatureOf(op);
  Binding binding;
  const auto bind = [&](IndexId, const IndexNode& node) {
    if (node.kind != IndexKind::kSymbol) return;
    const std::string& name = signature.pool->SymbolNameAt(node.value);
    if (name[0] == '$' || binding.symbols.contains(name)) return;
    binding.symbols[name] = draw();
  };
  for (const ParamInfo& param : *signature.params) {
    const auto given = small.params.find(param.name);
    const absl::optional<Scalar> value = given != small.params.end() ? given->second : param.value;
    if (value && IsInteger(param.type)) binding.symbols[param.name] = value->ToInt();
  }
  RandomInputsResult made;
  made.inputs.params = small.params;
  for (const SignatureArgument& arg : signature.args) {
    for (IndexId extent : *arg.shape) VisitIndex(*signature.pool, extent, bind);
    const auto shape = EvaluateShape(*signature.pool, *arg.shape, binding, arg.name);
    if (!shape.ok() || *NumElements(*shape) > 20000) return absl::nullopt;
    made.tensors.push_back(DrawTensor(arg.type, *shape, random));
  }
  for (size_t i = 0; i < made.tensors.size(); ++i) made.inputs.tensors[signature.args[i].name] = made.tensors[i];
  for (const auto& [name, value] : binding.symbols) {
    if (name[0] != '$') made.inputs.dims[name] = value;
  }
  return made;
}

}  // namespace

absl::optional<RandomInputsResult> DrawLargeInputs(const Op& op, uint64_t seed, int64_t max_extent) {
  std::mt19937_64 random(seed);
  const RandomInputsResult small = RandomInputs(op, seed);
  for (int attempt = 0; attempt < 30; ++attempt) {
    absl::optional<RandomInputsResult> made = DrawOnce(op, small.inputs, random, max_extent);
    if (made && Bind(SignatureOf(op), made->inputs).ok()) return made;
  }
  return absl::nullopt;
}

}  // namespace nestor
