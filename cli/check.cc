// nestor check: is a kernel right?
#include "cli/arguments.h"
#include "cli/check_library.h"
#include "cli/command.h"

namespace nestor::cli {
namespace {

constexpr absl::string_view kHelp = R"(nestor check PROGRAM --library=FILE [N=64 ...] [flags]

Says whether a kernel of an op is right: runs it on drawn sizes and values, in a
process of its own, and holds each element of its results against the op's proven
bounds. A finding is reported with the smallest case that shows it.

PROGRAM is a file in the notation, - for stdin, the text of ops ('op f(..) ..'), or
a macro op's name. N=64 and k=3 fix a dimension and an integer $param; NAME=f32[2,3]
says an argument's type and number of axes.

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
  --special         infinities and NaN among the values
  --trials=N        at most so many cases; by default 1000, or as 10 seconds allow
  --time=60s        ends after that time; 90s, 5m, 1h
  --seed=S          of the first case; the next has S + 1; 1 by default
  --patience=10s    a case that takes longer hangs
  --json            prints one object
  --op=NAME         which op of several; by default the last

Examples:
  $ echo 'op twice(x: f32[N]) -> (y) { y[i] = 2.0 * x[i] }' | tee twice.nestor
  $ nestor header twice.nestor
  $ echo 'int twice(const float* x, float* y, long N) { while (N--) y[N] = x[N] * 2; return 0; }' | tee twice.c
  $ cc -shared -fPIC -o libtwice.so twice.c && nestor check twice.nestor --library=libtwice.so

Exit codes: 0 right, 1 wrong, 2 bad usage or input, 3 the kernel crashed or hung.
)";

constexpr Flag kFlags[] = {{"--library"},   {"--symbol"},      {"--strided", false},
                           {"--type"},      {"--where", true, /*repeats=*/true},
                           {"--alignment"}, {"--in-place", true, /*repeats=*/true},
                           {"--special", false}, {"--trials"}, {"--time"},
                           {"--seed"},      {"--patience"},    {"--json", false},
                           {"--op"}};

absl::Status Run(const Arguments& arguments) {
  if (arguments.Has("--library")) return CheckLibrary(arguments);
  return absl::InvalidArgumentError("--library=FILE is missing: the shared object with the kernel");
}

}  // namespace

const Command kCheckCommand = {"check", "says whether a kernel is right", kHelp, kFlags, true, false, Run};

}  // namespace nestor::cli
