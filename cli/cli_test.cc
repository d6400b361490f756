// Runs the command as its users do, through a shell, and checks the exit code, stdout and stderr.
// Each case is one line.
//
// Each table runs in an empty directory of its own with the files that
// MakeFiles() puts there; `nestor` is on the PATH. A case that takes 60 seconds
// has failed.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autodiff/gradient.h"
#include "gtest/gtest.h"

#include "macro_ops/library.h"
#include "tensor/npy.h"
#include "tensor/tensor.h"

namespace nestor {
namespace {

struct Outcome {
  int exit_code;  // for a signal: 128 plus its number
  std::string out, err;
};

// The pieces that the output must have; "" alone: there is no output.
struct Pieces : std::vector<const char*> {
  using std::vector<const char*>::vector;
  Pieces(const char* piece) : vector{piece} {}
};

struct Case {
  const char* command;
  int exit_code;
  Pieces out = {}, err = {};
};

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteText(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

class CliTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/nestor_cli_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    work_ = root_ + "/work";
    ASSERT_EQ(mkdir(work_.c_str(), 0777), 0);
    char here[4096];
    ASSERT_NE(getcwd(here, sizeof(here)), nullptr);
    binaries_ = absl::StrCat(here, "/cli");
    MakeFiles();
  }
  void TearDown() override { EXPECT_EQ(std::system(absl::StrCat("rm -rf ", root_).c_str()), 0); }

  void MakeFiles() {
    const Tensor x = Tensor::Of<float>({2, 3}, {1, 2, 3, -1, 0.5, 0});
    const Tensor half = Tensor::Of(DType::kBF16, {3}, {1, 2, 3});
    ASSERT_TRUE(WriteNpy(work_ + "/x.npy", x).ok());
    ASSERT_TRUE(WriteNpy(work_ + "/half.npy", half).ok());
    WriteText(work_ + "/text.npy", "not a tensor\n");
    WriteText(work_ + "/libsoftmax.so", ReadText("examples/check_a_kernel/libsoftmax.so"));
    WriteText(work_ + "/two.nestor", "op twice(x: T[..N]) -> (y) {\n  y[..n] = x[..n] + x[..n]\n}\n"
                                     "op copy_it(x: T[..N]) -> (y) {\n  y[..n] = x[..n]\n}\n");
    WriteText(work_ + "/half.nestor", "op f(x: bf16[N]) -> (y) { y[i] = x[i] }\n");
    WriteText(work_ + "/bad.nestor", "# é\nop f(x: f32[N]) -> (y) {\n  y[i] = q[i]\n}\n");
    WriteText(work_ + "/call.nestor", "op f(x: f32[N]) -> (y) {\n  y = softmax(x)\n}\n");
    WriteText(work_ + "/empty.nestor", "");
    WriteText(work_ + "/garbage.nestor",
              std::string("\x93\x00\x01\x1b[31m\xff\xfe", 9) + std::string(5000, '\x7f'));
    WriteText(work_ + "/mark.nestor",
              "\xef\xbb\xbf# caf\xe9\nop f(x: f32[N]) -> (y) { y[i] = x[i] }\n");
    WriteText(work_ + "/bytes.nestor", "\xef\xbb\xbfop \xff # \xff\u00e9\n");
    ASSERT_EQ(mkdir((work_ + "/dir").c_str(), 0777), 0);
  }

  Outcome Run(const std::string& command) {
    WriteText(root_ + "/script",
              absl::StrCat("cd ", work_, "\nexport PATH=", binaries_, ":$PATH\n", command, "\n"));
    const int status = std::system(absl::StrCat("timeout 60 bash -o pipefail ", root_, "/script >",
                                                root_, "/out 2>", root_, "/err </dev/null")
                                       .c_str());
    return {WEXITSTATUS(status), ReadText(root_ + "/out"), ReadText(root_ + "/err")};
  }

  void Check(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      const Outcome outcome = Run(c.command);
      SCOPED_TRACE(absl::StrCat(c.command, "\nstdout:\n", outcome.out, "\nstderr:\n", outcome.err));
      EXPECT_EQ(outcome.exit_code, c.exit_code);
      ExpectPieces(outcome.out, c.out);
      ExpectPieces(outcome.err, c.err);
    }
  }

  static void ExpectPieces(const std::string& text, const std::vector<const char*>& pieces) {
    for (const char* piece : pieces) {
      if (*piece == '\0') EXPECT_EQ(text, "");
      else EXPECT_TRUE(absl::StrContains(text, piece)) << "lacks: " << piece;
    }
  }

  std::string root_, work_, binaries_;
};

TEST_F(CliTest, ExamplesOfHelpWorkAsTyped) {
  for (const char* page : {"nestor help", "nestor help run", "nestor help grad",
                           "nestor help print", "nestor help stats", "nestor help bench",
                           "nestor help check", "nestor help header", "nestor help ops"}) {
    const Outcome help = Run(page);
    EXPECT_EQ(help.exit_code, 0) << page;
    int examples = 0;
    for (absl::string_view line : absl::StrSplit(help.out, '\n')) {
      if (!absl::ConsumePrefix(&line, "  $ ")) continue;
      ++examples;
      const Outcome outcome = Run(absl::StrCat("mkdir -p ../fresh; cd ../fresh; ", line));
      EXPECT_EQ(outcome.exit_code, 0) << line << "\n" << outcome.err;
      EXPECT_NE(outcome.out, "") << line;
    }
    EXPECT_GE(examples, 2) << page;
  }
}

TEST_F(CliTest, Help) {
  Check({
      {"nestor", 2, "", {"no subcommand", "nestor help run"}},
      {"nestor --help", 0, {"run ", "grad ", "print ", "bench ", "ops "}, ""},
      {"nestor -h", 0, "run ", ""},
      {"nestor help help", 0, {"run ", "help "}, ""},
      {"nestor --version", 0, "nestor 0.", ""},
      {"nestor run --help",
       0,
       {"nestor run PROGRAM", "--seed=S", "  --isa=avx2        of machine code; avx512, avx2: by "},
       ""},
      {"nestor run softmax --bogus -h", 0, "nestor run PROGRAM", ""},
      {"nestor grad --help", 0, "--wrt=x,w", ""},
      {"nestor print --help",
       0,
       {"--stage=loops", "--stage=fused", "--stage=asm", "asm: avx2 or avx512, which "},
       ""},
      {"nestor bench --help", 0, {"peak_gflops", "  --isa=avx2        avx512, avx2: by "}, ""},
      {"nestor stats --help", 0, "--l2=1MiB", ""},
      {"nestor header --help", 0, "--strided", ""},
      {"nestor ops --help", 0, "--json", ""},
      {"nestor help rn", 2, "", "unknown subcommand 'rn', did you mean 'run'?"},
      {"nestor rum softmax", 2, "", "did you mean 'run'?"},
  });
}

TEST_F(CliTest, BadUsage) {
  Check({
      {"nestor run", 2, "", {"PROGRAM is missing", "nestor run --help"}},
      {"nestor run ''", 2, "", "empty word"},
      {"nestor run softmax layer_norm", 2, "", "unexpected 'layer_norm': PROGRAM is 'softmax'"},
      {"nestor run softmax --sed=3", 2, "", "unknown flag '--sed', did you mean '--seed'?"},
      {"nestor run softmax -x", 2, "", "unknown flag '-x'"},
      {"nestor run softmax --seed", 2, "", "--seed needs a value"},
      {"nestor run softmax --seed=abc", 2, "", "--seed=abc"},
      {"nestor run softmax --seed=-1", 2, "", "--seed=-1"},
      {"nestor run softmax --seed=1 --seed=1", 2, "", "--seed is given twice"},
      {"nestor run softmax --json=1", 2, "", "--json takes no value"},
      {"nestor run softmax C=3 C=3", 2, "", "'C' is given twice"},
      {"nestor run softmax --backend=gpu", 2, "", "unknown backend (there are jit, interp)"},
      {"nestor run softmax --backend=inter", 2, "", "did you mean 'interp'?"},
      {"nestor run softmax --op=matmul", 2, "", "PROGRAM is the macro op softmax"},
      {"nestor run two.nestor --op=twise", 2, "",
       "two.nestor has no op named 'twise', did you mean 'twice'?"},
      {"nestor print softmax --stage=loop", 2, "", "did you mean 'loops'?"},
      {"nestor print softmax --stage=gpu", 2, "", "there are uops, loops, fused, scheduled, asm"},
      {"nestor print softmax C=3", 2, "", "dimensions and $params stay symbols"},
      {"nestor print softmax -o y=y.npy", 2, "", "unknown flag '-o'"},
      {"nestor ops softmax", 2, "", "unexpected 'softmax'"},
  });
}

TEST_F(CliTest, Backends) {
  Check({
      {"nestor run softmax --backend=interp --seed 3", 0, "y: f32[3, 5] =", "seed 3"},
      {"nestor run softmax --backend=jit", 0, "y: f32[3, 5] =", "drawn"},
      {"cmp <(nestor run softmax --mode=strict 2>&1) <(nestor run softmax --backend=interp 2>&1)",
       0, "", ""},
      {"cmp <(nestor run softmax N0=2000 C=300 --threads=1 2>&1) <(nestor run softmax N0=2000 C=300 --threads=3 2>&1)",
       0, "", ""},
      {"cmp <(nestor run softmax --isa=avx2 2>&1) <(NESTOR_ISA=avx2 nestor run softmax 2>&1)", 0,
       "", ""},
      // On any machine one or the other.
      {"nestor run softmax --isa=avx512 2>&1 | grep -cE '^y: |--isa=avx512: .*; --backend=interp runs the interpreter'; true",
       0, "1\n", ""},
      {"nestor run softmax --isa=sse", 2, "", {"--isa=sse: ", "avx2"}},
      {"NESTOR_ISA=sse nestor run softmax", 2, "", "NESTOR_ISA"},
      {"NESTOR_ISA=sse nestor run softmax --backend=interp", 0, "y: f32[3, 5] ="},
      {"nestor run softmax --mode=strit", 2, "",
       "unknown mode, did you mean 'strict'? (there are fast, strict)"},
      {"nestor run softmax --threads=0", 2, "", "--threads=0: a number from 1 to 1024"},
      {"nestor run softmax --threads=2000000000", 2, "", "a number from 1 to 1024"},
      {"nestor run softmax --threads=two", 2, "", "--threads=two"},
      {"nestor run softmax --backend=interp --threads=2", 2, "",
       "--threads: only of --backend=jit"},
      {"nestor run softmax --backend=interp --mode=strict", 2, "", "--mode: only of --backend=jit"},
      {"echo 'op f(a: f32[N]) -> (y) { y[i, j] = a[i] + a[j] }' | nestor run - N=2000000", 2, "",
       "tensor y of 16000000000000 bytes exceeds the limit of"},
      // Each worker has one row of its own.
      {"nestor run softmax N0=3000 C=500 --threads=1024", 0, "y: f32[3000, 500] ="},
      {"echo 'op f(a: f32[N], i: i64[M]) -> (y) { y[j] = a[i[j]] }' | nestor run - N=2 M=3 --seed=1",
       0, "y: f32[3] ="},
  });
}

// A program whose passes were cut short also runs, and gives the same result.
TEST_F(CliTest, RunsUntilAPass) {
  Check({
      {"for n in 0 merge contract parallel 99; do cmp <(nestor run softmax --until=$n --mode=strict 2>&1) "
       "<(nestor run softmax --backend=interp 2>&1) || echo $n; done",
       0, "", ""},
      {"for n in 0 merge vector; do nestor run softmax --backend=interp --until=$n 2>/dev/null | head -1; done",
       0, "y: f32[3, 5] =\ny: f32[3, 5] =\ny: f32[3, 5] =\n", ""},
      {"nestor run softmax --until=merg", 2, "",
       "--until: unknown pass 'merg', did you mean 'merge'?"},
      {"nestor run softmax --until=-1 2>&1 | head -1; true", 0,
       "nestor: --until=-1: a number of passes", ""},
      {"nestor stats softmax N0=4 C=8 --until=merge", 0, "blocks: "},
  });
}

TEST_F(CliTest, Warnings) {
  const std::string program = "'op f(x: f32[3, N]) -> (y) { y[i] = x[3, i] }'";
  const std::string warning =
      "<PROGRAM>:1:38: warning: the index 3 is always out of bounds on axis 0 of x (3)\n";
  for (const char* command : {"run", "grad", "print", "stats"}) {
    const Outcome outcome = Run(absl::StrCat(
        "nestor ", command, " ", program, absl::StrContains("run stats", command) ? " N=2" : ""));
    EXPECT_EQ(outcome.exit_code, 0) << command << outcome.err;
    const size_t at = outcome.err.find(warning);
    EXPECT_NE(at, std::string::npos) << command << outcome.err;
    EXPECT_EQ(outcome.err.find("warning", at + warning.size()), std::string::npos)
        << command << outcome.err;
  }
  for (const MacroOp& op : MacroOps()) {
    EXPECT_FALSE(absl::StrContains(Run(absl::StrCat("nestor print ", op.name)).err, "warning"))
        << op.name;
  }
}

TEST_F(CliTest, Programs) {
  Check({
      {"nestor run two.nestor x=x.npy", 0, "y: f32[2, 3] =\n[[ 1.0,", ""},
      {"nestor run two.nestor --op twice x=x.npy", 0, "[[ 2.0,", ""},
      {"cd dir; nestor run ../two.nestor x=../x.npy", 0, "y: f32[2, 3] =", ""},
      {"nestor run - x=x.npy <two.nestor", 0, "y: f32[2, 3] =", ""},
      {"nestor run call.nestor N=2", 0, "y: f32[2] =", "x: f32[2] drawn from seed 0"},
      {"cp two.nestor softmax; nestor run softmax x=x.npy; rm softmax", 0, "[[ 1.0,", ""},
      {"mkdir softmax; nestor run softmax; rmdir softmax", 0, "y: f32[3, 5]", "drawn"},
      {"nestor run bad.nestor",
       2,
       "",
       {"bad.nestor:3:10: unknown tensor 'q'", "\n      y[i] = q[i]\n             ^\n"}},
      {"nestor run - <bad.nestor", 2, "", "<stdin>:3:10: "},
      {"nestor grad bad.nestor", 2, "", "bad.nestor:3:10: "},
      {"nestor print bad.nestor", 2, "", "bad.nestor:3:10: "},
      {"printf 'op f(x: f32[N]) -> (y) {\\n\\ty[i] = q[i] }' | nestor run -",
       2,
       "",
       {":2:9: ", "\n            ^\n"}},
      {"nestor run empty.nestor", 2, "", {"empty.nestor:1:1: ", "expected an op"}},
      {"nestor run - </dev/null", 2, "", "<stdin>:1:1: "},
      {"nestor run - <&-", 2, "", "cannot read <stdin>"},
      {"nestor run garbage.nestor", 2, "", "garbage.nestor:1:1: "},
      {"nestor run x.npy", 2, "", "x.npy:1:1: "},
      {"nestor run dir", 2, "", "dir: Is a directory"},
      {"nestor run /dev/zero", 2, "", "longer than 16 MiB"},
      {"nestor run mark.nestor N=2", 0, "y: f32[2]", "x: f32[2] drawn"},
      {"nestor print mark.nestor | grep -c mark; nestor run mark.nestor --op=q", 2, "0\n",
       "has no op named 'q'"},
      {"nestor run bytes.nestor",
       2,
       "",
       {"bytes.nestor:1:4: the byte 0xff is not UTF-8", "\n    op ? # ?\u00e9\n       ^\n"}},
      {"nestor run 'op f(x: f32[N]) -> (y) { y[i] = x[i] }' x=[2] --seed=1", 0, "y: f32[2]",
       "x: f32[2] drawn"},
      {"nestor run 'f(x: f32[N]) -> (y) { y[i] = x[i] / 2.0 }'", 2, "",
       "<PROGRAM>:1:1: expected 'op', found 'f'"},
      {"nestor run '# first\n op f() -> (y) { y = 3 }' --json", 0, R"("data": [3])", ""},
      {"nestor run $'\\n op\\tf() -> (y) { y = 3 }' --json", 0, R"("data": [3])", ""},
      {"nestor run 'op f() -> (y) { y = 3 } op g() -> (z) { z = 4 }' --op=f", 0, "y: i64[] =\n3",
       ""},
      {"nestor print 'op f(x: f32[N]) -> (y) { y[i] = x[i] }'", 0, "op f(x: f32[N]) -> (y) {", ""},
      {"nestor grad 'op f(x: f32[N]) -> (y) { y[i] = x[i] }'", 0,
       "op f_grad(g_y: f32[N]) -> (g_x) {", "mask: nothing"},
      {"nestor stats 'op f(x: f32[N]) -> (y) { y[i] = x[i] }' N=3", 0, "input_bytes: 12\n", ""},
      {"nestor bench 'op f(x: f32[N]) -> (y) { y[i] = x[i] }' N=3", 0, "bytes: 24\n", "drawn"},
      {"nestor run 'op f(x: f32[N]) -> (y) { y[i] = q[i] }'",
       2,
       "",
       {"<PROGRAM>:1:33: unknown tensor 'q'", "\n                                    ^\n"}},
      {"nestor run 'op f'", 2, "", "'op f' is neither a file, nor an op's text, nor a macro op"},
      {"nestor run \"op f(x: f32[N]) -> (y) { y[i] = $(printf %0100000d 7)q[i] }\" | wc -c", 2,
       "0\n", "<PROGRAM>:1:"},
      {"nestor run \"$(printf %0100000d 7)\" 2>&1 | wc -c | grep -xcE '[0-9]{1,3}'; true", 0, "1\n",
       ""},
      {"nestor run softmax \"$(printf 'a%.0s' {1..9000})=3\" 2>&1 | wc -c | grep -xcE '[0-9]{1,3}'; true",
       0, "1\n", ""},
      {"nestor run $'so\\xff\\x1b[31m'", 2, "", "'so\\xff\\x1b[31m' is neither"},
      {"nestor run nofile.nestor", 2, "", "nofile.nestor: No such file"},
      {"nestor run sofmax", 2, "",
       "neither a file, nor an op's text, nor a macro op, did you mean 'softmax'?"},
  });
}

TEST_F(CliTest, Inputs) {
  Check({
      {"nestor run softmax N0=2 C=3", 0, "y: f32[2, 3]", "x: f32[2, 3] drawn"},
      {"nestor run softmax C=3",
       0,
       "y: f32[4, 3]",
       {"nestor: N0: 4 chosen\n", "x: f32[4, 3] drawn from seed 0"}},
      {"nestor run softmax 'x=f64[2,0,3]'", 0, "y: f64[2, 0, 3]", "x: f64[2, 0, 3] drawn"},
      {"nestor run embedding", 0, "y: f32[4, 3]", "ids: i64[4] of 0..4 drawn"},
      {"nestor run adam 'p=[3]'",
       0,
       "v_new: f32[3]",
       {"$step: 1 from the sample of adam", "v: f32[3] in [0, 1) drawn"}},
      {"nestor run conv2d 'x=[1,6,5,5]' groups=2 '$pad=1'", 0, "y: f32[1, ",
       "nestor: C: 3 chosen\n"},
      {"echo 'op f(a: f32[M, K], b: f32[P, N]) -> (c) { c[i, j] = sum[k](a[i, k] * b[k, j]) }' | nestor run - K=3",
       0, "c: f32[",
       "nestor: P: 3 chosen, equal to K by this: index k runs over axis 1 of a (K) and over axis 0 of b (P)\n"},
      {"nestor run 'op f(a: f32[M], b: f32[2*N]) -> (c) { c[i] = a[i] * b[i] }' M=6", 0,
       "c: f32[6]",
       "nestor: N: 3 chosen, so that M == 2*N by this: index i runs over axis 0 of a (M) and over axis 0 of b (2*N)\n"},
      {"echo 'op f(x: i64[N]) -> (y) { y[i] = x[i] }' | nestor run -", 0, "y: i64[4]",
       "x: i64[4] of 0..3 drawn"},
      {"echo 'op f(;$b: bool) -> (y) { y = where($b, 1.5, 2.5) }' | nestor run - b=true", 0, "1.5",
       ""},
      {"echo 'op f(;$k: f32) -> (y) { y = $k }' | nestor run - k=-1e3", 0, "-1000.0", ""},
      {"echo 'op f(x: f32[]; $k: f32) -> (y) { y = x[] * $k }' | nestor run -", 2, "",
       "$k has no default: give k=.."},
      {"nestor run matmul 'a=[2,3]' 'b=[4,4]'", 2, "",
       "axis 0 of b (K) is 4, but axis 1 of a (K) is 3"},
      {"nestor run matmul 'a=[2,3,4]'", 2, "",
       "op matmul: argument a has 2 dimensions, is given 3"},
      {"nestor run softmax 'x=i32[3]'", 2, "", {"op softmax: ", "takes a float"}},
      {"nestor run softmax 'x=f31[3]'", 2, "", "unknown type 'f31'"},
      {"nestor run softmax 'x=f32[2,-3]'", 2, "", "'-3' is no extent"},
      {"nestor run softmax 'x=f32[99999999999,99999999999]'", 2, "", "overflows"},
      {"nestor run softmax N0=1 C=99999999999999", 2, "", "exceeds the limit of"},
      {"nestor run softmax C=99999999999999999999999", 2, "", "integer of 64 bits"},
      {"nestor run softmax C=-3", 2, "", "dimension C = -3 is negative"},
      {"nestor run softmax C=2.5", 2, "", "C=2.5"},
      {"nestor run softmax D=3", 2, "", "named 'D', did you mean 'C'?"},
      {"nestor run softmax x=3", 2, "", "x is a tensor: give x=FILE.npy"},
      {"nestor run softmax y=x.npy", 2, "", "no argument 'y'"},
      {"nestor run softmax x=none.npy", 2, "", {"none.npy", "No such file"}},
      {"nestor run softmax x=text.npy", 2, "", "text.npy"},
      {"nestor run half.nestor x=x.npy", 2, "", "argument x: x.npy"},
      {"nestor run max_pool2d k=0", 2, "", "$k = 0 is outside [1, inf]"},
      {"nestor run max_pool2d k=1.5", 2, "", "$k is i64, '1.5' does not fit"},
      {"nestor run 'op f(;$k: f32) -> (y) { y = $k }' k=x", 2, "", "$k is f32, 'x' does not fit"},
      {"nestor run 'op f(;$k: f64) -> (y) { y = $k }' k=0.5x", 2, "",
       "$k is f64, '0.5x' does not fit"},
      {"nestor run max_pool2d k=x.npy", 2, "", "$k takes a number"},
  });
}

// The kernel runs in its own process: whatever it does, there is a report.
TEST_F(CliTest, CheckLibrary) {
  WriteText(work_ + "/twice.nestor", "op twice(x: f32[N]) -> (y) { y[i] = 2.0 * x[i] }\n");
  WriteText(
      work_ + "/bad.c",
      "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
      "static int Do(const float* x, float* y, int64_t N) { while (N--) y[N] = x[N] * 2; return 0; }\n"
      "int hangs(const float* x, float* y, int64_t N) { while (N > 5) {} return Do(x, y, N); }\n"
      "int prints(const float* x, float* y, int64_t N) { puts(\"hello\"); fflush(stdout); return Do(x, y, N); }\n"
      "int exits(const float* x, float* y, int64_t N) { if (N > 5) exit(0); return Do(x, y, N); }\n"
      "int declines(const float* x, float* y, int64_t N) { (void)x, (void)y, (void)N; return 1; }\n"
      "int by_8(const float* x, float* y, int64_t N) { if (N % 8 || (uintptr_t)x % 32) abort(); return Do(x, y, N); }\n"
      "int adds(const float* x, float* y, int64_t N, float eps) {\n"
      "  (void)eps;\n  while (N--) y[N] = x[N] + 0.25f;\n  return 0;\n}\n"
      "int about_twice(const float* x, float* y, int64_t N) { while (N--) y[N] = x[N] * 2.000001f; return 0; }\n"
      "int returns_7(const float* x, float* y, int64_t N) { Do(x, y, N); return 7; }\n"
      "int strided(const double* x, int64_t dx, double* y, int64_t dy, int64_t N) {\n"
      "  while (N--) y[N * dy] = x[N * dx] * 2;\n  return 0;\n}\n");
  WriteText(
      work_ + "/loads.c",
      "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
      "__attribute__((constructor)) static void Begin(void) { BEGIN; }\n"
      "int twice(const float* x, float* y, int64_t N) { while (N--) y[N] = x[N] * 2; return 0; }\n");
  WriteText(work_ + "/adds.nestor",
            "op adds(x: f32[N]; $eps: f32 = 1.0 in [0, 2]) -> (y) { y[i] = x[i] + $eps }\n");
  Check({
      {"gcc -O1 -shared -fPIC -Wall -Wextra -Werror -o libbad.so bad.c", 0},
      {"for begin in 'abort()' 'exit(0)' 'for (;;) {}' 'puts(\"begin\")'; do n=$((n+1)); "
       "gcc -O1 -shared -fPIC \"-DBEGIN=$begin\" -o libloads$n.so loads.c; done",
       0},
      {"nestor check twice.nestor --library=libloads1.so", 3, "",
       "while libloads1.so is loaded, its initialisers end the process: killed by signal 6 (Aborted)"},
      {"nestor bench twice.nestor --library=libloads1.so", 3, "",
       "while libloads1.so is loaded, its initialisers end the process"},
      {"nestor bench twice.nestor --library=libbad.so --symbol=exits N=6", 3, "",
       "while the kernel is measured, its process exits with 0"},
      {"nestor bench twice.nestor --library=libbad.so --symbol=by_8 N=6", 3, "",
       "its process is killed by signal 6 (Aborted)"},
      {"nestor bench twice.nestor --library=libbad.so --symbol=declines N=6", 2, "",
       "does not do these sizes"},
      {"nestor check twice.nestor --library=libloads2.so", 3, "", "end the process: exited with 0"},
      {"nestor check twice.nestor --library=libloads3.so --patience=200ms", 3, "",
       "while libloads3.so is loaded, its initialisers do not end: the process gave no word for 200ms"},
      {"nestor check twice.nestor --library=libloads4.so --trials=5 | grep -v begin", 0,
       "right in 5 trials", "begin"},
      {"nestor check adds.nestor --library=libbad.so eps=0.25 --trials=50", 0, "right in 50 trials",
       ""},
      {"nestor check adds.nestor --library=libbad.so '$eps=0.25' --trials=50", 0,
       "right in 50 trials", ""},
      {"nestor check adds.nestor --library=libbad.so eps=0.5",
       1,
       {"$eps=0.5", "nestor check adds.nestor eps=0.5 --library=libbad.so --seed="},
       "the kernel is wrong"},
      {"nestor check adds.nestor --library=libbad.so eps=x", 2, "",
       "$eps is f32, 'x' does not fit"},
      {"nestor check adds.nestor --library=libbad.so eps=3", 2, "",
       "3.0 is outside of its range [0.0, 2.0]"},
      {"nestor check softmax --library=libsoftmax.so --trials=200", 0,
       "softmax: right in 200 trials", ""},
      {"nestor check softmax --library=libsoftmax.so N0=300 C=5000 --trials=2",
       0,
       {": right in 2 trials", "elements judged"},
       ""},
      {"nestor check softmax --library=libsoftmax.so --trials=50 --special x=f32[2,3]", 0,
       ": right in 50 trials", ""},
      {"nestor check softmax --library=libsoftmax.so --symbol=softmax_by_16",
       1,
       {"softmax: WRONG (element not written)", "C % 16 == 1",
        "nestor check softmax --library=libsoftmax.so --symbol=softmax_by_16 --seed="},
       "the kernel is wrong"},
      {"nestor check softmax --library=libsoftmax.so --symbol=softmax_by_16 --json C=17 | python3 -c 'import json, sys; "
       "d = json.load(sys.stdin); print(d[\"right\"], d[\"smallest_case\"])'",
       1, "False N0=1, C=17\n"},
      {"nestor check softmax --library=libsoftmax.so --symbol=softmax_by_16 --where='C % 16 != 1' --where='C > 0' --trials=100",
       0, ": right in 100 trials", ""},
      {"nestor check softmax --library=libsoftmax.so --symbol=softmax_ahead", 3,
       "reads the byte 1 after the last of x", "the kernel crashed"},
      {"nestor check twice.nestor --library=libbad.so --symbol=hangs --patience=200ms", 3,
       "does not end within 200ms", "the kernel hung"},
      {"nestor check twice.nestor --library=libbad.so --symbol=exits",
       3,
       {"exited with 0", "N=6"},
       "the kernel crashed"},
      {"nestor check twice.nestor --library=libbad.so --symbol=prints --trials=3 --json | grep -c hello",
       1, "0\n", "hello"},
      {"nestor check twice.nestor --library=libbad.so --symbol=declines --trials=9",
       1,
       {"NOT CHECKED", "9 that the kernel"},
       "nothing of the kernel was judged"},
      {"nestor check twice.nestor --library=libbad.so --symbol=returns_7", 1,
       "the kernel returned 7, which", "is wrong"},
      {"nestor check twice.nestor --library=libbad.so --symbol=by_8 --where='N % 8 == 0' --alignment=32 --in-place=x=y --time=300ms",
       0, "twice: right", ""},
      {"nestor check 'op twice(x: T[N]) -> (y) { y[i] = x[i] + x[i] }' --type=f64 --strided --library=libbad.so --symbol=strided "
       "--trials=100",
       0, "right in 100", ""},
      {"nestor check twice.nestor --library=libbad.so N=1 --symbol=exits --trials=9", 0,
       "right in 9 trials", ""},
      {"nestor check twice.nestor --library=libbad.so --symbol=about_twice --range=-9,9 --ulps=1",
       1, " --ulps=1 --range=-9,9 --seed=", "the kernel is wrong"},
      {"nestor check twice.nestor --library=libbad.so --symbol=about_twice --range=1,9 --ulps=9 --trials=50",
       0, "right in 50 trials", ""},
      // The command that it prints does reproduce the finding.
      {"nestor check twice.nestor --library=libbad.so --symbol=returns_7 --where='N > 2' | sed -n 's/.*see it again: //p' | bash -s",
       1,
       "see it again: nestor check twice.nestor --library=libbad.so --symbol=returns_7 '--where=N > 2' --seed=1 --trials=1"},
      {"nestor check - --library=libbad.so --symbol=returns_7 < twice.nestor | sed -n 's/.*see it again: //p' | bash -s",
       1,
       "see it again: nestor check 'op twice(x: f32[N]) -> (y) { y[i] = 2.0 * x[i] }' --library=libbad.so "},
  });
}

TEST_F(CliTest, CheckLibraryRefuses) {
  Check({
      {"nestor check softmax --where='C > 1'", 2, "", "--where: only with --library"},
      {"nestor check softmax --library=libsoftmax.so --random", 2, "",
       "--random: only without --library"},
      {"nestor check --library=libsoftmax.so", 2, "", "PROGRAM is missing"},
      {"nestor check softmax --library=libnone.so", 2, "", "cannot load libnone.so: "},
      {"nestor check softmax --library=libsoftmax.so --symbol=softmx", 2, "",
       "no function 'softmx', did you mean 'softmax'?"},
      {"nestor check softmax --library=libsoftmax.so --where='K == 1'",
       2,
       "",
       {"\"K == 1\"", "unknown dimension 'K'"}},
      {"nestor check softmax --library=libsoftmax.so --where='C %'", 2, "", "\"C %\""},
      {"nestor check softmax --library=libsoftmax.so --where='C > 1' --where='C < 1'", 2, "",
       "no sizes"},
      {"nestor check softmax --library=libsoftmax.so D=3", 2, "", "'D'"},
      {"nestor check softmax --library=libsoftmax.so C=x", 2, "", "C=x: a number"},
      {"nestor check softmax --library=libsoftmax.so x=x.npy", 2, "", "tensors are drawn"},
      {"nestor check layer_norm --library=libsoftmax.so eps=many --symbol=softmax", 2, "",
       "$eps is f32, 'many' does"},
      {"nestor check softmax --library=libsoftmax.so --time=60", 2, "",
       "--time=60: a time is expected"},
      {"nestor check softmax --library=libsoftmax.so --trials=0", 2, "", "--trials=0"},
      {"nestor check softmax --library=libsoftmax.so --sample=x", 2, "", "--sample=x"},
      {"nestor check softmax --library=libsoftmax.so --alignment=24",
       2,
       "",
       {"24", "power of two"}},
      {"nestor check softmax --library=libsoftmax.so --ulps=few", 2, "",
       "--ulps: 'few' is not a number"},
      {"nestor check softmax --library=libsoftmax.so --ulps=-1", 2, "", "Ulps(-1): not at least 0"},
      {"nestor check softmax --library=libsoftmax.so --bound=0", 2, "", "Bound(0): not above 0"},
      {"nestor check softmax --library=libsoftmax.so --range=3", 2, "",
       "--range=3: LOW,HIGH is expected"},
      {"nestor check softmax --library=libsoftmax.so --range=3,2", 2, "", "low 3 is above high 2"},
      {"nestor check softmax --ulps=1", 2, "", "--ulps: only with --library"},
      {"nestor check softmax --library=libsoftmax.so --in-place=x", 2, "", "ARGUMENT=RESULT"},
      {"nestor check softmax --library=libsoftmax.so --in-place=x=z", 2, "", "no result z"},
      {"nestor check softmax --library=libsoftmax.so --seed=1 --seed=2", 2, "",
       "--seed is given twice"},
  });
}

TEST_F(CliTest, Header) {
  Check({
      {"nestor header softmax",
       0,
       {"int softmax(const float* x,", "// f32[N0, C]\n", "int64_t C);\n", "//     y[i, j] = "},
       ""},
      {"nestor header softmax x=[2,3,4] --symbol=my_softmax",
       0,
       {"#ifndef MY_SOFTMAX_H_", "int my_softmax(", "f32[N0, N1, C]"},
       ""},
      {"nestor header softmax --type=bf16 --strided",
       0,
       {"const uint16_t* x,", "// bf16[N0, C]", "int64_t x_stride1,"},
       ""},
      {"nestor header pixel_unshuffle", 0, "// Sizes meet H % $block == 0, W % $block == 0.\n", ""},
      {"nestor header max_pool2d", 0, {"int64_t pad);", "// $pad: i64 in [0, inf]"}, ""},
      {"nestor header softmax T=bf16", 0, {"const uint16_t* x,", "// bf16[N0, C]"}, ""},
      {"nestor header 'op f(a: u16[N], b: i16[N], c: u32[N], d: u64[N]; $k: u64, $j: i16) -> (y) { y[i] = a[i] + u16($k) + u16($j) }'",
       0,
       {"const uint16_t* a,", "const int16_t* b,", "const uint32_t* c,", "const uint64_t* d,",
        "uint16_t* y,", "uint64_t k,", "int16_t j);"},
       ""},
      {"nestor header embedding --type=f64",
       0,
       {"const double* table,", "const int64_t* ids,"},
       ""},
      {"nestor header embedding table=f16[2,3] --type=f64 | grep -c f64", 1, "0\n", ""},
      {"nestor header 'op f(int: f32[N]; $N: f32) -> (while) { while[i] = int[i] * $N }'",
       0,
       {"const float* int_2,", "float* while_2,", "float N_2);"},
       ""},
      {"nestor header 'op f(x: shape f32[N]) -> (y) { y[i] = 1.0 where i < N }' --strided",
       0,
       {"int f(float* y,", "int64_t y_stride0,", "int64_t N);"},
       ""},
      {"nestor grad layer_norm 2>/dev/null | nestor header -", 0,
       "int layer_norm_grad(const float* ", ""},
      {"nestor header softmax --symbol=2x", 2, "", "--symbol=2x: no name in C"},
      {"nestor header softmax --symbol=", 2, "", "--symbol"},
      {"nestor header softmax --type=f31",
       2,
       "",
       {"--type=f31: unknown type 'f31', did you mean", "(there are bool, u8,"}},
      {"nestor header half.nestor --type=f32", 2, "",
       "--type=f32: op f names the type of each argument"},
      {"nestor header softmax --type=i32", 2, "", {"op softmax: ", "takes a float"}},
      {"nestor header softmax C=3", 2, "", "dimensions and $params stay symbols"},
  });
}

// Each compiles by itself, and twice, in C and in C++, without a warning.
TEST_F(CliTest, HeadersCompile) {
  ASSERT_EQ(Run("mkdir headers").exit_code, 0);
  for (const MacroOp& op : MacroOps()) {
    // If each argument names its type, there is none to choose.
    const bool is_template = absl::StrContains(op.definition, ": T[");
    const char* strided = is_template ? "--strided --type=bf16" : "--strided";
    for (const auto& [flags, name] : {std::pair("", "plain"), std::pair(strided, "strided")}) {
      const std::string print = absl::StrCat("nestor header ", op.name, " ", flags),
                        file = absl::StrCat(op.name, "_", name);
      const Outcome outcome = Run(absl::StrCat(
          print, " >headers/", file, ".h && cd headers && printf '#include \"", file,
          ".h\"\n#include \"", file, ".h\"\n' >", file, ".c && cp ", file, ".c ", file, ".cc"));
      EXPECT_EQ(outcome.exit_code, 0) << print << "\n" << outcome.err;
    }
  }
  for (const char* compile : {"gcc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only *.c",
                              "g++ -pedantic -Wall -Wextra -Werror -fsyntax-only *.cc"}) {
    const Outcome outcome = Run(absl::StrCat("cd headers && ", compile));
    EXPECT_EQ(outcome.exit_code, 0) << compile << "\n" << outcome.err;
  }
}

TEST_F(CliTest, Results) {
  Check({
      {"nestor run two.nestor x=x.npy -o y=y.npy && cmp x.npy y.npy", 0, "", ""},
      {"nestor run half.nestor x=half.npy -o y=z.npy && cmp half.npy z.npy", 0, "", ""},
      {"nestor run 'op f(x: T[N]) -> (y) { y[i] = x[i] }' x=half.npy T=bf16 -o y=z.npy && cmp half.npy z.npy",
       0, "", ""},
      {"nestor run 'op f(x: T[N]) -> (y) { y[i] = x[i] }' x=half.npy | head -1", 0, "y: u16[", ""},
      {"nestor run 'op f(;$n = 2) -> (y) { y[i] = not(u64(i)) where i < $n }' -o y=z.npy && nestor run 'op f(x: T[N]) -> (y) { y[i] = x[i] }' x=z.npy",
       0, "[18446744073709551615, 18446744073709551614]", ""},
      {"nestor run two.nestor x=x.npy -o y=x.npy && cmp x.npy y.npy", 0, "", ""},
      {"nestor run two.nestor x=x.npy -o y=/dev/stdout | cmp - x.npy", 0, "", ""},
      {"nestor run two.nestor x=x.npy --json", 0,
       R"({"y": {"type": "f32", "shape": [2, 3], "data": [1.0, 2.0, 3.0, -1.0, 0.5, 0.0]}})", ""},
      {"nestor run two.nestor x=x.npy --json -o y=y.npy", 0, "{}\n", ""},
      {"echo 'op f(x: f32[N]) -> (y, z) { y[i] = where(x[i] < 2.0, -inf, inf); z = sum[j](j) + N where j < N }' | nestor run - N=1 --json",
       0, R"("data": ["-inf"]}, "z": {"type": "i64", "shape": [], "data": [1]}})", "drawn"},
      {"echo 'op f() -> (y) { y[i] = where(i < 1, inf, nan) where i < 2 }' | nestor run - --json",
       0, R"("data": ["inf", "nan"])", ""},
      {"nestor run softmax -o z=z.npy", 2, "", "op softmax has no result 'z', did you mean 'y'?"},
      {"nestor run softmax -o y=nodir/y.npy", 2, "", "nodir/: No such file"},
      {"nestor run softmax -o y=/proc/y.npy", 2, "", "/proc/y.npy"},
      {"nestor run softmax -o y=dir", 2, "", "is a directory"},
      {"nestor run softmax -o y=/dev/full", 2, "", "/dev/full"},
      {"nestor run softmax -o", 2, "", "-o needs NAME=FILE"},
      {"nestor run softmax -o y", 2, "", "NAME=FILE is expected"},
      {"nestor run softmax -o y=a.npy -o y=b.npy", 2, "", "-o y is given twice"},
      {"nestor run adam -o p_new=a.npy -o v_new=a.npy", 2, "", "would both be written to a.npy"},
      {"nestor run softmax >&-", 2, "", "cannot write to stdout"},
      {"nestor run softmax >&- -o y=y.npy; nestor run two.nestor x=y.npy", 0, "y: f32[3, 5]"},
      {"nestor run softmax 2>&-", 0, "y: f32[3, 5]", ""},
      {"nestor ops >/dev/full", 2, "", "cannot write to stdout: No space"},
      {"nestor ops | head -1", 0, "# Macro ops", ""},
      {"nestor ops | true", 0, "", ""},
      {"nestor run softmax C=200000 --json | head -c 9", 0, R"({"y": {"t)"},
      {"ls -A | tr '\\n' ' '",
       0,
       {"bad.nestor bytes.nestor call.nestor dir empty.nestor garbage.nestor half.nestor "
        "half.npy libsoftmax.so mark.nestor text.npy two.nestor x.npy y.npy z.npy "},
       ""},
  });
}

TEST_F(CliTest, SeedsDecide) {
  Check({
      {"cmp <(nestor run softmax 2>&1) <(nestor run softmax --seed=0 2>&1)", 0, "", ""},
      {"cmp -s <(nestor run softmax 2>/dev/null) <(nestor run softmax --seed=1 2>/dev/null)", 1, "",
       ""},
      // Values are drawn by name: those of a do not depend on b.
      {"echo 'op f(a: f32[N]) -> (y) { y[i] = a[i] }' | nestor run - N=9 --json >1 2>/dev/null;"
       "echo 'op f(b: f32[N], a: f32[N]) -> (y) { y[i] = a[i] }' | nestor run - N=9 --json 2>/dev/null | cmp - 1",
       0, "", ""},
  });
}

TEST_F(CliTest, Print) {
  Check({
      {"nestor print softmax", 0, "op softmax(x: f32[N0, C]) -> (y) {", ""},
      {"nestor print softmax 'x=f64[2,3,4]'", 0, "x: f64[N0, N1, C]", ""},
      {"nestor print two.nestor --op=twice --stage=uops", 0, "op twice(", ""},
      {"nestor print softmax --stage=loops",
       0,
       {"program softmax(x: f32[N0, C]) -> (y: f32[N0, C]) {", "for "},
       ""},
      {"cmp <(nestor print softmax | nestor print -) <(nestor print softmax)", 0, "", ""},
      {"nestor print 'op f(a: f32[M, K], b: f32[N, K]) -> (c, d) { c[i, j] = sum[k](a[i, k] * b[k, j]); d[i] = a[i, i] + b[i, i] }' | "
       "tee 1 | grep '#' && cmp 1 <(nestor print - <1)",
       0, "  # K == N\n  # K == M\n", ""},
      {"nestor print matmul | grep -c '#'; true", 0, "0\n", ""},
      {"cmp <(nestor print softmax | nestor run - N0=3 C=5 2>&1) <(nestor run softmax N0=3 C=5 2>&1)",
       0, "", ""},
  });
}

TEST_F(CliTest, PrintFused) {
  Check({
      {"nestor print softmax --stage=fused",
       0,
       {"program softmax(x: f32[N0, C]) -> (y: f32[N0, C]) {", "for "},
       ""},
      {"cmp <(nestor print softmax --stage=fused --until=0) <(nestor print softmax --stage=loops)",
       0, "", ""},
      {"cmp <(nestor print softmax --stage=fused --passes=) <(nestor print softmax --stage=loops)",
       0, "", ""},
      {"cmp <(nestor print softmax --stage=fused --passes=dead_code,substitute --until=99) "
       "<(nestor print softmax --stage=loops)",
       1, "differ", ""},
      {"nestor print softmax --stage=fused --passes=dead_cod", 2, "",
       "unknown pass 'dead_cod', did you mean 'dead_code'?"},
      {"nestor print softmax --stage=fused --passes=dead_code,", 2, "", "'' is no name"},
      {"nestor print softmax --stage=fused --until=-1", 2, "", "--until=-1"},
      {"nestor print softmax --stage=fused --strict", 0, " / acc_2", ""},
      {"nestor print softmax --stage=fused --trace --until=4",
       0,
       "program softmax",
       {"# 0 assume_products", "unchanged", "# 2 substitute", "program softmax"}},
      {"nestor print softmax --stage=loops --trace", 2, "",
       "--trace: no passes run before the stage loops"},
      {"nestor print softmax --stage=fused --until=two", 2, "",
       "--until: unknown pass 'two' (there are assume_products,"},
      {"nestor print softmax --stage=fused --until=merg", 2, "",
       "--until: unknown pass 'merg', did you mean 'merge'?"},
      {"nestor print softmax --stage=fused --until=1.5", 2, "",
       "--until=1.5: a number of passes is expected, 0 or more, or the name of a pass"},
      {"nestor print softmax --stage=fused --until=", 2, "",
       "--until=: a number of passes is expected"},
      {"cmp <(nestor print softmax --stage=fused --until=assume_products) <(nestor print softmax --stage=fused --until=1)",
       0, "", ""},
      {"nestor print softmax --stage=fused --until=merge --trace 2>&1 | grep '^# ' | tail -1", 0,
       " merge, ", ""},
      {"nestor print softmax --stage=asm --isa=avx2 --until=merge", 0, "  ret\n", ""},
      {"nestor print softmax --stage=loops --until=1", 2, "",
       "--until: no passes run before the stage loops"},
      {"nestor print softmax --passes=dead_code", 2, "",
       "--passes: no passes run before the stage uops"},
  });
}

TEST_F(CliTest, PrintScheduled) {
  Check({
      {"nestor print softmax --stage=scheduled",
       0,
       {"program softmax(x: f32[N0, C])", "parallel {", " vector(", ") unroll {",
        ") interleave(2) tail {"},
       ""},
      {"cmp <(nestor print softmax --stage=scheduled --until=3) <(nestor print softmax --stage=fused --until=3)",
       0, "", ""},
      {"cmp -s <(nestor print softmax --stage=scheduled --strict) <(nestor print softmax --stage=scheduled)",
       1, "", ""},
      {"nestor print softmax --stage=scheduled --passes=parallel,parallle", 2, "",
       "did you mean 'parallel'?"},
      {"nestor print softmax --stage=scheduled --trace",
       0,
       "program softmax",
       {"# 0 assume_products,", " merge_batches,", " parallel,"}},
      {"nestor print softmax --stage=scheduled --large",
       0,
       {" prefetch x[i + 1, ", "stream y[i, "},
       ""},
      {"nestor print softmax --stage=scheduled --large --until=0", 0, "stream y[", ""},
      {"nestor print softmax --stage=fused --large", 2, "",
       "--large: the stage fused is the same on all machines"},
      // With AVX-512 a convolution of bound weights tests these, and leaves the padding out.
      {"nestor print conv2d --stage=scheduled --isa=avx512 --bind=w", 0, "not_finite", ""},
      {"! nestor print conv2d --stage=scheduled --isa=avx512 | grep -q not_finite", 0, "", ""},
      {"cmp <(nestor print softmax --stage=scheduled --bind=x) <(nestor print softmax --stage=scheduled)",
       0, "", ""},
      {"nestor print conv2d --stage=scheduled --bind=w,v", 2, "",
       "--bind: op conv2d has no input 'v'"},
      {"nestor print conv2d --stage=fused --bind=w", 2, "",
       "--bind: the stage fused is the same whatever is bound"},
      {"nestor print softmax --stage=scheduled --isa=sse", 2, "", "--isa=sse: "},
      {"nestor print softmax --stage=asm --isa=avx2",
       0,
       {"softmax.0:  # ", "\n  0000  ", "\n  # y[i, ", "exp(", " ymm", "  ret\n"},
       ""},
      {"nestor print softmax --stage=asm --isa=avx512", 0, {" zmm", "  ret\n"}, ""},
      {"nestor print softmax --stage=asm --isa=avx2 --until=0", 0, "  ret\n", ""},
      {"nestor print softmax --stage=asm | head -1", 0, "softmax.0:", ""},
      // What runs at the sizes: small ones are constants.
      {"nestor print conv2d --stage=scheduled R=3 S=3 N=40 H=30",
       0,
       {"program conv2d(x: f32[N, ", "w: f32[6, 4, 3, 3]", "fma("},
       "C: 4 chosen"},
      {"nestor print conv2d --stage=scheduled N=2 --strict 2>&1 | grep -c fma", 1, "0", ""},
      {"nestor print conv2d --stage=asm N=2 --bind=w", 0, {"conv2d.0:", "  ret\n"}, "drawn"},
      {"nestor print softmax --stage=scheduled C=3 --until=2", 2, "",
       "--until: only where dimensions and $params stay symbols"},
      {"nestor print softmax --stage=fused --isa=avx2", 2, "",
       "--isa: the stage fused is the same on all machines"},
  });
}

// The machine may be busy with other work, but not at every attempt.
TEST_F(CliTest, BenchSaysWhatBoundsACall) {
  Outcome outcome;
  const auto is_bound_by_compute = [&] {
    outcome = Run("nestor bench matmul 'a=[256,256]' N=256 --threads=1 --blocks");
    return absl::StrContains(outcome.out, "\nbound_by: compute\nbound_share: ") &&
           absl::StrContains(outcome.out, "_bound_by: compute\n");
  };
  int attempts = 5;
  while (attempts > 0 && !is_bound_by_compute()) --attempts;
  EXPECT_GT(attempts, 0) << outcome.out << outcome.err;
}

TEST_F(CliTest, Bench) {
  Check({
      {"nestor bench softmax N0=64 C=32 --threads=1 --mode=strict --isa=avx2",
       0,
       {"time_ms: ", "\ngflops: ", "\npeak_gflops: ", "\ngbytes_per_s: ", "\npeak_gbytes_per_s: ",
        "\nflops: ", "\nbytes: 16384\n", "\nthreads: 1\n", "\nisa: avx2\n", "\nmode: strict\n"},
       "x: f32[64, 32] drawn from seed 0"},
      {"nestor bench softmax N0=4 C=8 --json --compile | python3 -c 'import json, sys; d = json.load(sys.stdin); "
       "print(d[\"mode\"], d[\"time_ms\"] > 0, d[\"compile_ms\"] > 0, d[\"code_bytes\"] > 0)'",
       0, "fast True True True\n"},
      // Nothing to compute, though loops over it would not end.
      {"nestor run 'op f(x: f32[N, C]) -> (y) { y[i, j] = x[i, j] * 2.0 }' N=70368744177664 C=0", 0,
       "y: f32[70368744177664, 0] =\n[]\n"},
      {"nestor run matmul M=0 N=0 K=17592186044416", 0, "c: f32[0, 0] =\n[]\n"},
      // A dimension that is no axis alone; nothing to compute.
      {"echo 'op f(x: f32[2*N]; $k: f32) -> (y) { y[i] = x[i] * $k where i < N }' | nestor bench - N=0 k=3",
       0,
       {"\ngflops: 0\n", "\nflops: 0\n"}},
      {"nestor bench matmul 'a=[64,256]' N=64 --threads=1 --blocks",
       0,
       {"mode: fast\n", "_us: ", "c: ", " parallel iterations\n", "\nother_blocks_us: "}},
      {"nestor bench 'op f(x: f32[N]) -> (y) { y[i] = x[i] }' N=0 --blocks", 0,
       "mode: fast\nother_blocks_us: 0\n"},
      {"nestor bench cumsum 'x=[64]' --threads=1", 0, "\nbound_by: latency\n"},
      // Its code prefetches.
      {"nestor bench softmax N0=4096 C=1024 --threads=1", 0, "\nbound_by: "},
      {"nestor bench softmax N0=4 C=8 --library=libsoftmax.so",
       0,
       {"library_time_ms: ", "\nlibrary_gflops: ", "\nlibrary_gbytes_per_s: ", "\nspeed_up: "}},
      {"cd dir; nestor bench softmax N0=4 C=8 --library=../libsoftmax.so --symbol=softmax_by_16 --json",
       0, "\"speed_up\": "},
      {"nestor bench softmax --library=libsoftmax.so --symbol=softmax_by16", 2, "",
       "libsoftmax.so has no function 'softmax_by16', did you mean 'softmax_by_16'?"},
      {"nestor bench softmax --library=libnone.so", 2, "",
       "cannot load libnone.so: cannot open shared object file"},
      {"nestor bench softmax --library=x.npy", 2, "", "cannot load x.npy: "},
      {"nestor bench softmax --library=dir", 2, "", "cannot load dir: "},
      {"nestor bench softmax --library=", 2, "", "cannot load a library without a name"},
      {"nestor bench softmax --symbol=softmax", 2, "", "--symbol: only with --library"},
      {"nestor bench softmax --strided", 2, "", "--strided: only with --library"},
      {"nestor bench softmax C=-3", 2, "", "dimension C = -3 is negative"},
      {"nestor bench softmax D=3", 2, "", "named 'D', did you mean 'C'?"},
      {"nestor bench softmax N0=1 C=99999999999999", 2, "", "exceeds the limit of"},
      {"nestor bench softmax --backend=interp", 2, "", "unknown flag '--backend'"},
      {"nestor bench softmax -o y=y.npy", 2, "", "unknown flag '-o'"},
      {"nestor bench softmax --threads=0", 2, "", "--threads=0"},
      {"nestor bench bad.nestor", 2, "", "bad.nestor:3:10: "},
      {"nestor bench", 2, "", "PROGRAM is missing"},
      {"nestor check", 2, "", "one of PROGRAM, --all and --random"},
      {"nestor check softmax --all", 2, "", "one of PROGRAM"},
      {"nestor check --random N=3", 2, "", "sizes are those of a PROGRAM"},
      {"nestor check softmax C=x", 2, "", "C=x: a dimension is an integer"},
      {"nestor check softmax --time=abc", 2, "", "--time=abc"},
      {"nestor check softmax --derivative=3", 2, "", "from 0 to 2"},
      {"nestor check --all --trials=30 --seed=3",
       0,
       {"trials: 30\n", "next_seed: 33\n", "findings: 0\n"},
       ""},
      {"nestor check conv2d stride=2 R=3 --trials=5 --json | python3 -c 'import json, sys; print(json.load(sys.stdin))'",
       0,
       {"'trials': 5", "'findings': []"},
       ""},
  });
}

TEST_F(CliTest, Tune) {
  Check({
      {"nestor bench matmul 'a=[40,40]' N=40 --threads=1 --tune=new.schedules --time=1s && head -1 new.schedules",
       0,
       {"mode: fast\ntuned_time_ms: ", "\ntuned_speed_up: ", "\nschedule: ",
        "\n# nestor schedules\n"}},
      {"nestor bench matmul 'a=[40,40]' N=40 --threads=1 --schedules=new.schedules", 0,
       "time_ms: "},
      {"cmp <(nestor run matmul 'a=[40,40]' N=40 --mode=strict --schedules=new.schedules) "
       "<(nestor run matmul 'a=[40,40]' N=40 --backend=interp)",
       0, ""},
      {"echo 'op=f program=1 cpu=c isa=avx2 mode=fast sizes=- tile_row=3' > bad.schedules; "
       "nestor bench softmax --tune=bad.schedules; cat bad.schedules",
       0, "op=f program=1 cpu=c isa=avx2 mode=fast sizes=- tile_row=3\n",
       "bad.schedules: line 1: a schedule has no choice 'tile_row', did you mean 'tile_rows'?"},
      {"nestor run softmax --schedules=bad.schedules", 2, "", "bad.schedules: line 1: "},
      {"nestor bench softmax --schedules=none.schedules", 2, "", "cannot open none.schedules"},
      {"nestor bench softmax --tune=none/new.schedules", 2, "",
       "none/new.schedules: cannot create a file beside it"},
      {"nestor bench softmax --tune=", 2, "", "--tune=: a file is expected"},
      {"nestor bench softmax --time=3s", 2, "", "--time: only of --tune"},
      {"nestor bench softmax --tune=new.schedules --time=long", 2, "", "--time=long"},
      {"nestor run softmax --schedules=new.schedules --backend=interp", 2, "",
       "--schedules: only of --backend=jit"},
  });
}

TEST_F(CliTest, Stats) {
  Check({
      {"nestor stats softmax N0=1024 C=512 --passes=",
       0,
       {"blocks_unfused: 7\nloops_unfused: 14\n", "\nblocks: 7\n", "\nbytes: 25182208\n",
        "\ninput_bytes: 2097152\n", "\noutput_bytes: 2097152\n", "\nflops: 2621440\n",
        "\nfuse_ms: 0."},
       ""},
      // If all fits in the cache: inputs and outputs once; if not: again for every block.
      {"nestor stats softmax N0=4 C=8 --passes=", 0, "bytes: 256\n", ""},
      {"nestor stats softmax N0=4 C=8 --passes= --l2=16", 0, "bytes_unfused: 1600\n", ""},
      {"nestor stats softmax N0=1024 C=512", 0, {"\nblocks: 1\n", "\nbytes: 4194304\n"}, ""},
      {"nestor stats softmax N0=4 C=8", 0, {"\nfuse_ms: ", "\ncompile_ms: ", "\ncode_bytes: "}, ""},
      {"NESTOR_ISA=sse nestor stats softmax N0=4 C=8", 0,
       "\nfuse_ms: ", "no compile_ms and code_bytes, and memory as of the fused program: "},
      {"cmp <(nestor stats softmax 'x=[4,8]' | grep -v _ms) <(nestor stats softmax N0=4 C=8 | grep -v _ms)",
       0, "", ""},
      {"nestor stats two.nestor --op=twice x=x.npy", 0, {"flops: 6\n", "input_bytes: 24\n"}, ""},
      {"nestor stats softmax 'x=f64[4,8]'", 0, "input_bytes: 256\n", ""},
      {"nestor stats conv2d 'x=[1,6,5,5]' 'w=[4,3,3,3]' groups=2", 0, "flops", ""},
      {"nestor stats softmax N0=4 C=8 --json", 0, {"{\"blocks_unfused\": 7, ", "}\n"}, ""},
      {"nestor stats softmax N0=4 C=8 --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[\"output_bytes\"])'",
       0, "128\n", ""},
      {"nestor stats softmax N0=4 C=8 --l2=64KiB | head -1", 0, "blocks_unfused: 7\n", ""},
      {"nestor stats softmax N0=4 C=8 | true", 0, "", ""},
      {"nestor stats softmax N0=4 C=8 >/dev/full", 2, "", "cannot write to stdout: No space"},
      {"nestor stats softmax N0=0 C=0", 0, {"bytes: 0\n", "arena_bytes: 0\n"}, ""},
      {"nestor stats softmax N0=1000000 C=1000000", 0, "input_bytes: 4000000000000\n", ""},
      {"nestor stats softmax", 2, "", "op softmax: no size is given for N0, C: give N0=.. C=.."},
      {"nestor stats softmax C=8", 2, "", "no size is given for N0: give N0=.."},
      {"nestor stats softmax N0=4 C=8 D=3", 2, "", "named 'D', did you mean 'C'?"},
      {"nestor stats softmax N0=4 C=-8", 2, "", "dimension C = -8 is negative"},
      {"nestor stats softmax N0=9999999999 C=9999999999", 2, "", "overflows"},
      {"nestor stats matmul 'a=[2,3]' 'b=[4,4]'", 2, "",
       "axis 0 of b (K) is 4, but axis 1 of a (K) is 3"},
      {"nestor stats max_pool2d 'x=[1,1,4,4]' k=0 stride=1", 2, "", "$k = 0 is outside [1, inf]"},
      {"nestor stats max_pool2d 'x=[1,1,4,4]'", 2, "", "$k has no default: give k=.."},
      {"nestor stats softmax N0=4 C=8 --l2=1MB", 2, "", "--l2=1MB: a size is expected"},
      {"nestor stats softmax N0=4 C=8 --l2=-1", 2, "", "--l2=-1"},
      {"nestor stats softmax N0=4 C=8 --l2=", 2, "", "--l2="},
      {"nestor stats softmax N0=4 C=8 --l2=99999999999GiB", 2, "", "--l2=99999999999GiB"},
      {"nestor stats softmax N0=4 C=8 --passes=fuse", 2, "", "unknown pass 'fuse'"},
      {"nestor stats softmax N0=4 C=8 --seed=1", 2, "", "unknown flag '--seed'"},
      {"nestor stats softmax -o y=y.npy", 2, "", "unknown flag '-o'"},
      {"nestor stats bad.nestor", 2, "", "bad.nestor:3:10: "},
      {"nestor stats", 2, "", "PROGRAM is missing"},
  });
}

TEST_F(CliTest, Grad) {
  Check({
      {"nestor grad softmax --wrt=x", 0,
       "op softmax_grad(g_y: f32[N0, C], y: f32[N0, C]) -> (g_x) {", "nestor: mask: y\n"},
      {"nestor grad matmul --wrt=b", 0, "-> (g_b)", "mask: a\n"},
      {"nestor grad matmul --wrt a,b --of=c --given=g_c,a,b", 0, "-> (g_a, g_b)", "mask: a, b\n"},
      {"nestor grad softmax 'x=f64[2,3,4]'", 0, "g_y: f64[N0, N1, C]", "mask: y"},
      {"nestor grad 'op f(x: f32[N], g_y: f32[N]) -> (y) { y[i] = x[i] * g_y[i] }' --wrt=x", 0,
       "g_y_2: f32[N]", "the adjoint of y is g_y_2\n"},
      {"nestor grad softmax --wrt=x | nestor run -",
       0,
       "g_x: f32[4, 5] =",
       {"mask", "g_y: f32[4, 5] drawn", "y: f32[4, 5] drawn"}},
      {"nestor grad conv2d --wrt=x | nestor run -", 0, "g_x: f32[", "x: shape f32["},
      {"nestor grad cross_entropy | nestor run - --json", 0, "g_logits", "labels: i64["},
      {"nestor grad softmax --wrt=z", 2, "", "'z'"},
      {"nestor grad softmax --of=z", 2, "", "'z'"},
      {"nestor grad embedding --wrt=ids", 2, "", "ids is i64"},
      {"nestor grad softmax --given=", 2, "", "gradient of op softmax"},
      {"nestor grad softmax --wrt=x,", 2, "", "'' is no name"},
      {"nestor grad softmax --wrt=x,x", 2, "", "'x' is named twice"},
      {"nestor grad softmax | head -c 2", 0, "op"},
  });
}

TEST_F(CliTest, EveryMacroOpRunsPrintsAndHasAGradient) {
  EXPECT_GE(MacroOps().size(), 10u);
  for (const MacroOp& op : MacroOps()) {
    // $params without a default, as in the first sample.
    std::string params;
    for (const auto& [name, value] : op.samples[0].params)
      absl::StrAppend(&params, " ", name.substr(1), "=", value);
    const Outcome same =
        Run(absl::StrCat("nestor run ", op.name, " --mode=strict >jit 2>&1 && nestor run ", op.name,
                         " --backend=interp >interpreter 2>&1 && cmp jit interpreter"));
    EXPECT_EQ(same.exit_code, 0) << op.name << same.out << same.err;
    EXPECT_EQ(
        Run(absl::StrCat("nestor print ", op.name, " | nestor print - --stage=loops")).exit_code, 0)
        << op.name;
    EXPECT_EQ(Run(absl::StrCat("nestor print ", op.name, " --stage=asm --isa=avx512")).exit_code, 0)
        << op.name;
    std::string shapes;
    for (const SampleArgument& arg : op.samples[0].args)
      absl::StrAppend(&shapes, " ", arg.name, "=[", absl::StrJoin(arg.shape, ","), "]");
    const Outcome stats = Run(absl::StrCat("nestor stats ", op.name, shapes, params));
    EXPECT_EQ(stats.exit_code, 0) << op.name << stats.err;
    if (!Gradient(*MacroLibrary().Instantiate(op.name, {})).ok()) continue;
    const Outcome gradient = Run(absl::StrCat("nestor grad ", op.name, " | nestor run -", params));
    EXPECT_EQ(gradient.exit_code, 0) << op.name << gradient.err;
    EXPECT_TRUE(absl::StrContains(gradient.out, "g_")) << op.name;
  }
}

TEST_F(CliTest, Generators) {
  Check({
      {"nestor print 'einsum(ij,jk->ik)'", 0, "out[i, j] = sum[k](x0[i, k] * x1[k, j])", ""},
      {"nestor run 'concat(2, 1, 0)' C0=1 C1=2", 0, "y: f32[3] =", "x0: f32[1] drawn"},
      {"nestor grad 'along(softmax, 3, 1)' | nestor run -", 0, "g_x: f32["},
      {"nestor stats 'permute(1, 0)' N0=3 N1=4", 0, "blocks: 1\n", ""},
      {"nestor print 'einsum(ij->ijj)'", 2, "", "einsum(EQUATION): the result has 'j' twice"},
      {"nestor print 'along(sofmax, 2, 0)'", 2, "", "did you mean 'softmax'?"},
      {"nestor print 'einsum(ij->ji)' --op=f", 2, "", "einsum(ij->ji) has no op named 'f'"},
      {"nestor print 'einsun(ij->ji)'", 2, "", "neither a file, nor an op's text, nor a macro op"},
      {"nestor ops | grep -A1 '^# Generators'", 0, "# Generators", ""},
      {"nestor ops --table | head -3", 0, "## adaptive_pool\n\n| op | what it is |", ""},
  });
}

TEST_F(CliTest, Ops) {
  Check({
      {"nestor ops",
       0,
       {"op softmax(x: T[..N, C]) -> (y) {", "gelu(a): composed", "exp(a): transcendental",
        "fma(a, b, c): primitive"},
       ""},
      {"nestor ops --json",
       0,
       {R"({"scalar": [)", R"("macro": [)",
        R"({"name": "fma", "arity": 3, "kind": "primitive", "definition": ""})",
        R"x({"usage": "permute(AXIS, ..)", "summary": "Axis k)x",
        R"({"name": "softmax", "family": "softmax", "summary": "y = exp(x))"},
       ""},
  });
}

}  // namespace
}  // namespace nestor
