// Nestor's public face: one line of notation describes a tensor operation; from it
// come the reference result, the gradient program, the loops that compute it, and
// their machine code.
//
//   absl::StatusOr<nestor::Op> op = nestor::Parse("op f(x: f32[N]) -> (y) { y[i] = x[i] * x[i] }");
//   absl::StatusOr<nestor::GradientResult> gradient = nestor::Gradient(*op);
//   nestor::loop::Program program = nestor::Lower(*op);
//   absl::Status fused = nestor::fusion::Pipeline::Default().Run(program);
//   absl::StatusOr<std::vector<nestor::Tensor>> results = nestor::Run(*op, inputs);
//   absl::StatusOr<std::unique_ptr<const nestor::jit::Executable>> compiled = nestor::Compile(*op);
//   absl::StatusOr<std::vector<nestor::Tensor>> same = nestor::Run(**compiled, inputs);
//   absl::StatusOr<nestor::CheckReport> report = nestor::Check("softmax", my_kernel);
//
// An error of the caller is an absl::Status that names op, argument, axis and sizes.
// Everything const may be used from many threads. The process has three kinds of globals: the
// macro library, which never changes, caches that follow from the tables of ops, and the
// thread pool of jit::DefaultExecutor().
//
// In comments, SEMANTICS n is section n of docs/semantics.md.
#ifndef NESTOR_NESTOR_H_
#define NESTOR_NESTOR_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autodiff/gradient.h"
#include "check/check.h"
#include "check/inside_bounds.h"
#include "fusion/pipeline.h"
#include "interp/interpreter.h"
#include "interp/reference.h"
#include "jit/compile.h"
#include "jit/executable.h"
#include "jit/schedules.h"
#include "loop_ir/lower.h"
#include "loop_ir/text.h"
#include "macro_ops/library.h"
#include "tensor/npy.h"
#include "tensor/tensor.h"
#include "uops/builder.h"
#include "uops/call.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {

// The last op of a text in the notation, which may call ops of the macro library.
// `specs`: types and ranks of the arguments, for templates; without them a type
// variable is f32 and a pack one dimension. Errors read "LINE:COLUMN: ...".
// All errors are InvalidArgument.
absl::StatusOr<Op> Parse(absl::string_view text, const ArgumentSpecs& specs = {});

// An op of the macro library by name.
// NotFound, with the nearest name, where there is none of that name.
absl::StatusOr<Op> LibraryOp(absl::string_view name, const ArgumentSpecs& specs = {});

// The reference result of `op`, in the order of its results: lowered, stripped of
// dead code and interpreted. To interpret an op many times, keep its Program and
// call Interpret.
// Statuses are those of Interpret (interp/interpreter.h).
absl::StatusOr<std::vector<Tensor>> Run(const Op& op, const RunInputs& inputs,
                                        const InterpreterOptions& options = {});

// Machine code for `op`: one executable serves all sizes and $params, and any number of
// threads. A call that computes much compiles code of its own for small windows, strides and the
// like, when they first occur; Executable::Specialize makes code for given sizes. Unimplemented
// where something cannot be compiled, with its name; FailedPrecondition where the CPU lacks the
// instruction set (see jit/compile.h).
absl::StatusOr<std::unique_ptr<const jit::Executable>> Compile(
    const Op& op, const jit::CompileOptions& options = {});

// Loads a file of schedules that `nestor bench --tune` has written, for CompileOptions::schedules.
// NotFound and the like where the system refuses the file; InvalidArgument, naming the line, where
// it is malformed.
absl::StatusOr<std::shared_ptr<const jit::Schedules>> LoadSchedules(const std::string& path);

// The results of Run on the op, computed by its machine code: the same bits in Mode::kStrict,
// within the proven bound in Mode::kFast. This function binds arguments by name and allocates the
// results; a caller that has memory for the results, or cannot spare the microseconds, calls
// Executable::Run. Inputs to which the executable is bound are not given. `workspace` may be kept
// from call to call.
absl::StatusOr<std::vector<Tensor>> Run(const jit::Executable& executable, const RunInputs& inputs,
                                        jit::Workspace* workspace = nullptr);

}  // namespace nestor

#endif  // NESTOR_NESTOR_H_
