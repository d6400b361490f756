// One reader for each flag; each adds to the options of the compiler.
#include "cli/jit_flags.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "nestor.h"
#include "uops/invariant.h"
#include "uops/notation/module.h"

namespace nestor::cli {
namespace {

// More than any machine has, and few enough to start.
constexpr int kMaxThreads = 1024;

absl::Status WithFlag(absl::string_view flag, absl::string_view value, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(flag, "=", value, ": ", status.message()));
}

absl::Status ReadMode(const Arguments& arguments, jit::CompileOptions& options) {
  const std::string mode = arguments.Find("--mode").value_or("fast");
  if (mode != "fast" && mode != "strict") {
    return absl::InvalidArgumentError(absl::StrCat("--mode=", mode, ": unknown mode",
                                                   DidYouMean(mode, {"fast", "strict"}),
                                                   " (there are fast, strict)"));
  }
  options.mode = mode == "strict" ? jit::Mode::kStrict : jit::Mode::kFast;
  return absl::OkStatus();
}

// Fewer threads than asked for would give times that mean something else: an error.
absl::Status ReadThreads(const Arguments& arguments, JitSetup& setup) {
  const auto text = arguments.Find("--threads");
  if (!text) return absl::OkStatus();
  int threads;
  if (!absl::SimpleAtoi(*text, &threads) || threads < 1 || threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads=", *text, ": a number from 1 to ", kMaxThreads, " is expected"));
  }
  setup.pool = threads == 1 ? nullptr : jit::NewThreadPool(threads);
  if (setup.pool != nullptr && setup.pool->NumThreads() < threads) {
    return absl::ResourceExhaustedError(
        absl::StrCat("--threads=", threads, ": the system does not let so many start"));
  }
  setup.options.executor = threads == 1 ? &jit::InlineExecutor() : setup.pool.get();
  return absl::OkStatus();
}

}  // namespace

int JitSetup::threads() const {
  return (options.executor != nullptr ? *options.executor : jit::DefaultExecutor()).NumThreads();
}

absl::StatusOr<jit::Isa> IsaFor(const Arguments& arguments) {
  const auto name = arguments.Find("--isa");
  if (!name) return jit::BestIsa();
  const absl::StatusOr<jit::Isa> isa = jit::IsaByName(*name);
  if (!isa.ok()) return WithFlag("--isa", *name, isa.status());
  return *isa;
}

std::string WithIsaNames(absl::string_view help) {
  const std::vector<absl::string_view> names = jit::IsaNames();
  return absl::StrReplaceAll(help,
                             {{"{isa, isa}", absl::StrJoin(names.rbegin(), names.rend(), ", ")},
                              {"{isa or isa}", absl::StrJoin(names, " or ")}});
}

absl::StatusOr<JitSetup> JitSetupFor(const Arguments& arguments) {
  JitSetup setup;
  NESTOR_RETURN_IF_ERROR(ReadMode(arguments, setup.options));
  NESTOR_ASSIGN_OR_RETURN(setup.options.isa, IsaFor(arguments));
  const absl::Status runs = jit::CheckIsa(*setup.options.isa);
  if (!runs.ok()) return WithFlag("--isa", jit::Name(*setup.options.isa), runs);
  NESTOR_RETURN_IF_ERROR(ReadThreads(arguments, setup));
  if (const auto file = arguments.Find("--schedules")) {
    NESTOR_ASSIGN_OR_RETURN(setup.options.schedules, LoadSchedules(*file));
  }
  return setup;
}

}  // namespace nestor::cli
