// nestor check: compares a kernel with the bounds of its op, or Nestor's engines with each other.
#include "absl/strings/str_cat.h"
#include "cli/arguments.h"
#include "cli/check_engines.h"
#include "cli/check_library.h"
#include "cli/command.h"

namespace nestor::cli {
namespace {

constexpr absl::string_view kHelp = R"(nestor check PROGRAM --library=FILE [N=64 ...] [flags]
nestor check PROGRAM|--all|--random [N=64 ...] [flags]

With --library, says whether a kernel of an op is right: runs it on drawn sizes and
values, in a process of its own, and holds each element of its results against the
op's proven bounds. A finding is reported with the smallest case that shows it.

Without, holds Nestor's engines against each other: the interpreter and machine code,
after any number of passes, strict and fast, for each instruction set that this CPU
has, on one thread and on two, forward and gradient. Each trial draws types, sizes,
values and layouts, two engines whose bits must be equal, and one whose results must
lie within the proven bounds. A finding is printed with its program, made small;
--seed=S with the `next_seed` that is printed goes on.

PROGRAM is a file in the notation, - for stdin, the text of ops ('op f(..) ..'), or
a macro op's name. N=64 and k=3 fix a dimension and an integer $param; with --library,
eps=1e-5 fixes one of any type, and NAME=f32[2,3] says an argument's type and number of axes.

  --trials=N        at most so many trials; by default 1000 of a kernel, or as 10
                    seconds allow, 200 of engines, or with --time no limit
  --time=60s        ends after that time; 90s, 5m, 1h
  --seed=S          of the first trial; the next has S + 1
  --json            prints one object
  --op=NAME         which op of several; by default the last

With --library:
  --library=FILE    a shared object with the kernel: the C function that `nestor
                    header PROGRAM` prints, written in any language
  --symbol=NAME     the function's name; by default the op's
  --strided         the function takes strides, and tensors lie in memory in any way
  --type=f64        what type variables are; by default f32
  --where=CONDITION sizes that the kernel asks for, as 'C % 8 == 0 && $stride <= 2';
                    may be repeated. It may as well return 1 for sizes that it does
                    not do
  --alignment=64    bytes that each tensor is aligned to; by default its elements'
  --in-place=x=y    the result y may take the memory of the argument x; may be repeated
  --sample=N        judges at most N elements of each result; by default all, or 4096
                    where a dimension is given; 0: all
  --special         infinities and NaN among the values
  --outside         indices outside of their axes, which read 0 and store nothing, though
                    the op says nothing of them
  --signed-zeros    0 is wrong where -0 is right; by default both are right
  --ulps=N          the kernel promises so many units in the last place more than the
                    bound
  --bound=TIMES     the kernel promises so many times the bound
  --range=LOW,HIGH  numbers lie in there, but for indices; by default all finite ones
  --patience=10s    a kernel that takes longer for a case hangs

Without:
  --all             all macro ops, instead of PROGRAM
  --random          random programs, instead of PROGRAM
  --derivative=D    0: the op alone, 1: its gradient, 2: the gradient of that; by default
                    one of them, by the seed
  --findings=N      goes on until so many engines are found wrong; 1 by default
  --shrink=20s      the time for making the program and sizes of a finding small; 0s: none

Examples:
  $ echo 'op twice(x: f32[N]) -> (y) { y[i] = 2.0 * x[i] }' | tee twice.nestor
  $ nestor header twice.nestor
  $ echo 'int twice(const float* x, float* y, long N) { while (N--) y[N] = x[N] * 2; return 0; }' | tee twice.c
  $ cc -shared -fPIC -o libtwice.so twice.c && nestor check twice.nestor --library=libtwice.so
  $ nestor check softmax --trials=20
  $ nestor check --random --trials=50 --seed=7
  $ nestor check 'op f(x: f32[N]) -> (y) { y[i] = x[i] * x[i] }' N=17 --trials=10 --json

Exit codes: 0 right, 1 wrong or not checked, 2 bad usage or input, 3 the kernel crashed or hung.
)";

constexpr Flag kFlags[] = {
    {"--library"},
    {"--symbol"},
    {"--strided", false},
    {"--type"},
    {"--where", true, /*repeats=*/true},
    {"--alignment"},
    {"--sample"},
    {"--in-place", true, /*repeats=*/true},
    {"--special", false},
    {"--outside", false},
    {"--signed-zeros", false},
    {"--patience"},
    {"--trials"},
    {"--ulps"},
    {"--bound"},
    {"--range"},
    {"--time"},
    {"--seed"},
    {"--json", false},
    {"--op"},
    {"--all", false},
    {"--random", false},
    {"--derivative"},
    {"--findings"},
    {"--shrink"},
};
constexpr const char* kLibraryFlags[] = {"--symbol",    "--strided",      "--type",     "--where",
                                         "--alignment", "--in-place",     "--sample",   "--special",
                                         "--outside",   "--signed-zeros", "--patience", "--ulps",
                                         "--bound",     "--range"};
constexpr const char* kEngineFlags[] = {"--all", "--random", "--derivative", "--findings",
                                        "--shrink"};

absl::Status Refuse(const Arguments& arguments, absl::Span<const char* const> flags,
                    absl::string_view mode) {
  for (const char* flag : flags) {
    if (arguments.Has(flag) || !arguments.All(flag).empty()) {
      return absl::InvalidArgumentError(absl::StrCat(flag, ": only ", mode, " --library"));
    }
  }
  return absl::OkStatus();
}

// Two commands in one: --library chooses which, and flags of the other are refused.
absl::Status Run(const Arguments& arguments) {
  if (!arguments.Has("--library")) {
    const absl::Status status = Refuse(arguments, kLibraryFlags, "with");
    return status.ok() ? CheckEngines(arguments) : status;
  }
  const absl::Status status = Refuse(arguments, kEngineFlags, "without");
  if (!status.ok()) return status;
  if (arguments.program.empty())
    return absl::InvalidArgumentError("PROGRAM is missing: the op that the kernel is of");
  return CheckLibrary(arguments);
}

}  // namespace

const Command kCheckCommand = {"check", "says whether a kernel is right, or Nestor's engines are",
                               kHelp,   kFlags,
                               true,    false,
                               Run,     /*needs_program=*/false};

}  // namespace nestor::cli
