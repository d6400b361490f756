// The mistakes that a user may make, one row each: the words after `nestor`, and the beginning of
// the one message on stderr, its place first. The test requires the same of each row: exit code 2
// (or that of the row), one message, nothing on stdout, no file made or changed, an end within
// limits of time and memory, and no signal.
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/run_command_testing.h"
#include "gtest/gtest.h"
#include "re2/re2.h"

namespace nestor::cli {
namespace {

struct Row {
  std::vector<std::string> words;
  std::string message;
  int exit_code = 2;
  std::string in = "";
  std::string directory = "";
};

// ---- Files

std::string Bytes(absl::string_view text, size_t count) {
  return std::string(text) + std::string(count, '\0');
}

// A file of version 1 around a header, sensible or not.
std::string NpyAround(absl::string_view header, absl::string_view data) {
  std::string bytes = Bytes("\x93NUMPY\1", 1);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return absl::StrCat(bytes, header, data);
}

std::string Npy(absl::string_view type, absl::string_view shape, size_t data_bytes,
                absl::string_view fortran = "False") {
  return NpyAround(absl::StrCat("{'descr': '", type, "', 'fortran_order': ", fortran,
                                ", 'shape': ", shape, ", }"),
                   std::string(data_bytes, '\1'));
}

std::string ReadText(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string Repeated(absl::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) absl::StrAppend(&result, text);
  return result;
}

// `pattern` for each number below `count`, which stands for each "#".
std::string Numbered(absl::string_view pattern, int count) {
  std::string result;
  for (int i = 0; i < count; ++i)
    absl::StrAppend(&result, absl::StrReplaceAll(pattern, {{"#", absl::StrCat(i)}}));
  return result;
}

constexpr char kVector[] = "op f(x: f32[N]) -> (y) { y[i] = x[i] }";
constexpr char kProduct[] =
    "op f(a: f32[M, K], b: f32[K, N]) -> (c) { c[i, j] = sum[k](a[i, k] * b[k, j]) }";

// ---- Messages

// "nestor: x: f32[3] drawn from seed 0" is not an error, nor is the mask of a gradient.
bool IsRemark(absl::string_view line) {
  static const auto* const remark = new RE2(
      R"(nestor: (mask: .*|[$\w]+: (.* drawn from seed \d+|.* made up|\d+ chosen.*|.* from the sample of \w+)))");
  return RE2::FullMatch(re2::StringPiece(line.data(), line.size()), *remark);
}

// The line of the program that a message shows, and where to read more.
bool Continues(absl::string_view line) {
  return absl::StartsWith(line, "    ") || absl::StartsWith(line, "(`nestor ");
}

std::vector<std::string> Messages(absl::string_view err) {
  std::vector<std::string> messages;
  for (absl::string_view line : absl::StrSplit(err, '\n', absl::SkipEmpty())) {
    if (!IsRemark(line) && !Continues(line)) messages.emplace_back(line);
  }
  return messages;
}

std::string Shown(const Row& row) {
  const std::string words = absl::StrJoin(row.words, " ");
  return absl::StrCat("nestor ", words.substr(0, 300), words.size() > 300 ? " ..." : "");
}

class BadInput : public testing::Test {
 protected:
  BadInput() {
    PutPrograms();
    PutTensors();
    const std::string library = ReadText("examples/check_a_kernel/libsoftmax.so");
    files_.Put("libsoftmax.so", library);
    files_.Put("cut.so", library.substr(0, 3000));
    files_.Put("text.so", "no library\n");
    files_.Put("empty.so", "");
    files_.MakeDirectory("dir");
  }

  void PutPrograms() {
    files_.Put("f.nestor", "op f(x: f32[M, N]) -> (y) {\n  y[i, j] = x[i, j]\n}\n");
    files_.Put("half.nestor", "op f(x: bf16[N]) -> (y) { y[i] = x[i] }\n");
    files_.Put("bad.nestor", "op f(x: f32[N]) -> (y) {\n  y[i] = q[i]\n}\n");
    files_.Put("blank.nestor", " \n# nothing\n");
    files_.Put("empty.nestor", "");
    files_.Put("bytes.nestor", Bytes("\x7f"
                                     "ELF",
                                     500));
  }

  void PutTensors() {
    files_.Put("x.npy", Npy("<f4", "(2, 3)", 24));
    files_.Put("cut.npy", Npy("<f4", "(2, 3)", 23));
    files_.Put("cut_fortran.npy", Npy("<f4", "(2, 3)", 20, "True"));
    files_.Put("cut_swapped.npy", Npy(">f4", "(2, 3)", 20));
    files_.Put("long.npy", Npy("<f4", "(2, 3)", 25));
    files_.Put("cut_header.npy", Npy("<f4", "(2, 3)", 0).substr(0, 20));
    files_.Put("cut_magic.npy", "\x93NUM");
    files_.Put("empty.npy", "");
    files_.Put("text.npy", "1 2 3\n");
    files_.Put("swapped.npy", Npy(">f4", "(4, 2)", 32));
    files_.Put("fortran.npy", Npy("<f4", "(4, 2)", 32, "True"));
    files_.Put("f8.npy", Npy("<f8", "(3,)", 24));
    files_.Put("u2.npy", Npy("<u2", "(3,)", 6));
    files_.Put("i2.npy", Npy("<i2", "(3,)", 6));
    files_.Put("complex.npy", Npy("<c8", "(3,)", 24));
    files_.Put("object.npy", Npy("|O", "(3,)", 24));
    files_.Put("record.npy",
               NpyAround("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", ""));
    files_.Put("no_type.npy", NpyAround("{'fortran_order': False, 'shape': (3,)}", ""));
    files_.Put("negative.npy", Npy("<f4", "(-3,)", 12));
    files_.Put("huge.npy", Npy("<f4", "(1099511627776,)", 0));
    files_.Put("overflows.npy", Npy("<f4", "(9223372036854775807, 9)", 0));
    files_.Put("version.npy", Bytes("\x93NUMPY\x09", 60));
    files_.Put("endless_header.npy", Bytes("\x93NUMPY\x02", 1) + "\xff\xff\xff\xff{");
  }

  void Check(const std::vector<Row>& rows) const {
    const CommandDirectory::Snapshot before = files_.TakeSnapshot();
    for (const Row& row : rows) {
      const CommandOutcome outcome =
          files_.Run({row.words, row.in, row.directory, Stdout::kFile, {}});
      SCOPED_TRACE(absl::StrCat(Shown(row), "\nstderr:\n", outcome.err));
      EXPECT_EQ(outcome.signal, 0);
      EXPECT_EQ(outcome.exit_code, row.exit_code);
      EXPECT_EQ(outcome.out, "");
      ExpectOne(Messages(outcome.err), row.message);
      EXPECT_TRUE(files_.TakeSnapshot() == before) << "a file was made or changed";
    }
  }

  static void ExpectOne(const std::vector<std::string>& messages, const std::string& wanted) {
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_LT(messages[0].size(), 2500u);
    EXPECT_TRUE(absl::StartsWith(messages[0], wanted)) << "does not begin with: " << wanted;
  }

  CommandDirectory files_;
};

// ---- Words

TEST_F(BadInput, Subcommands) {
  Check({
      {{"rum", "softmax"},
       "nestor: unknown subcommand 'rum', did you mean 'run'? (there are help, run,"},
      {{"RUN", "softmax"}, "nestor: unknown subcommand 'RUN', did you mean 'run'?"},
      {{""}, "nestor: unknown subcommand ''"},
      {{"softmax"}, "nestor: unknown subcommand 'softmax' (there are"},
      {{"--verbose"}, "nestor: unknown subcommand '--verbose'"},
      {{"help", "stat"}, "nestor: unknown subcommand 'stat', did you mean 'stats'?"},
  });
}

TEST_F(BadInput, Flags) {
  Check({
      {{"run"},
       "nestor: PROGRAM is missing: a file in the notation, - for stdin, an op's text, or a macro op's name"},
      {{"run", ""}, "nestor: PROGRAM is an empty word"},
      {{"run", "softmax", "layer_norm"},
       "nestor: unexpected 'layer_norm': PROGRAM is 'softmax' already"},
      {{"run", "softmax", "N0", "3"},
       "nestor: unexpected 'N0': PROGRAM is 'softmax' already, and other words are NAME=value"},
      {{"run", "softmax", "=3"}, "nestor: unexpected '=3'"},
      {{"run", "softmax", "--mode=a\nb"}, "nestor: --mode=a\\x0ab: unknown mode"},
      {{"run", "softmax", "--mode=\x1b[31m\xff"}, "nestor: --mode=\\x1b[31m\\xff: unknown mode"},
      {{"run", "softmax", "\xe2\x80\x94seed=1"}, "nestor: unexpected '\xe2\x80\x94seed=1'"},
      {{"run", "softmax", "--sed=3"}, "nestor: unknown flag '--sed', did you mean '--seed'?"},
      {{"run", "softmax", "--Seed=3"}, "nestor: unknown flag '--Seed', did you mean '--seed'?"},
      {{"run", "softmax", "-seed=3"}, "nestor: unknown flag '-seed', did you mean '--seed'?"},
      {{"run", "softmax", "--passes=merge"}, "nestor: unknown flag '--passes'"},
      {{"run", "softmax", "--seed"}, "nestor: --seed needs a value"},
      {{"run", "softmax", "--seed="}, "nestor: --seed=: an integer from 0 to 2^64-1 is expected"},
      {{"run", "softmax", "--seed=1e3"}, "nestor: --seed=1e3: an integer from 0"},
      {{"run", "softmax", "--seed=-1"}, "nestor: --seed=-1: an integer from 0"},
      {{"run", "softmax", "--seed=18446744073709551616"},
       "nestor: --seed=18446744073709551616: an integer from 0"},
      {{"run", "softmax", "--seed=1", "--seed=2"}, "nestor: --seed is given twice"},
      {{"run", "softmax", "--json=true"}, "nestor: --json takes no value"},
      {{"run", "softmax", "--backend=gpu"},
       "nestor: --backend=gpu: unknown backend (there are jit, interp)"},
      {{"run", "softmax", "--mode=precise"},
       "nestor: --mode=precise: unknown mode (there are fast, strict)"},
      {{"run", "softmax", "--isa=foo"},
       "nestor: --isa=foo: there is no instruction set 'foo', only avx2, avx512"},
      {{"run", "softmax", "--isa="}, "nestor: --isa=: there is no instruction set ''"},
      {{"run", "softmax", "--threads=0"},
       "nestor: --threads=0: a number from 1 to 1024 is expected"},
      {{"run", "softmax", "--threads=all"}, "nestor: --threads=all: a number from 1 to 1024"},
      {{"run", "softmax", "--threads=99999999999"},
       "nestor: --threads=99999999999: a number from 1 to 1024"},
      {{"run", "softmax", "--until=unknown"},
       "nestor: --until: unknown pass 'unknown' (there are assume_products,"},
      {{"run", "softmax", "--until=-1"},
       "nestor: --until=-1: a number of passes is expected, 0 or more, or the name of a pass"},
      {{"run", "softmax", "--until=99999999999"},
       "nestor: --until=99999999999: a number of passes"},
      {{"run", "softmax", "--backend=interp", "--threads=2"},
       "nestor: --threads: only of --backend=jit"},
  });
}

// A pool that could not start its threads would end the process.
TEST_F(BadInput, MoreThreadsThanTheSystemStarts) {
  if (kIsSanitized) GTEST_SKIP() << "threads are limited by their stacks";
  Check({{{"run", "softmax", "N0=3000", "C=500", "--threads=1024"},
          "nestor: --threads=1024: the system does not let so many start"}});
}

// ---- Sizes and $params

TEST_F(BadInput, Sizes) {
  Check({
      {{"run", "softmax", "N0=3rows"},
       "nestor: op softmax: N0=3rows: a dimension is an integer of 64 bits"},
      {{"run", "softmax", "N0=4KiB"}, "nestor: op softmax: N0=4KiB: a dimension is"},
      {{"run", "softmax", "N0=1e3"}, "nestor: op softmax: N0=1e3: a dimension is"},
      {{"run", "softmax", "N0=2.0"}, "nestor: op softmax: N0=2.0: a dimension is"},
      {{"run", "softmax", "N0=nan"}, "nestor: op softmax: N0=nan: a dimension is"},
      {{"run", "softmax", "N0="}, "nestor: op softmax: N0=: a dimension is"},
      {{"run", "softmax", "N0=-1"}, "nestor: op softmax: dimension N0 = -1 is negative"},
      {{"run", "softmax", "N0=9223372036854775808"},
       "nestor: op softmax: N0=9223372036854775808: a dimension is"},
      {{"run", "softmax", "N0=9223372036854775807"},
       "nestor: op softmax: dimension N0 = 9223372036854775807 exceeds 2^48"},
      {{"run", "softmax", "N0=281474976710657"},
       "nestor: op softmax: dimension N0 = 281474976710657 exceeds 2^48"},
      {{"run", "softmax", "N0=4294967296", "C=4294967296"},
       "nestor: op softmax: argument x: the size of shape [4294967296, 4294967296] overflows 64 bits"},
      {{"run", "softmax", "N=3"},
       "nestor: op softmax: no $param and no dimension is named 'N' (there are N0, C)"},
      {{"run", "softmax", "n0=3"},
       "nestor: op softmax: no $param and no dimension is named 'n0', did you mean 'N0'?"},
      {{"run", "softmax", "C=3", "C=3"}, "nestor: 'C' is given twice"},
      {{"run", kVector, "N=[3]"}, "nestor: N=[3]: N is a dimension, which takes a number"},
      {{"run", kVector, "x=[3]", "N=4"}, "nestor: op f: axis 0 of x (N) is 3, but N=4 as given"},
  });
}

TEST_F(BadInput, Params) {
  Check({
      {{"run", "max_pool2d", "k=0"}, "nestor: op max_pool2d: $k = 0 is outside [1, inf]"},
      {{"run", "max_pool2d", "k=inf"}, "nestor: op max_pool2d: $k is i64, 'inf' does not fit"},
      {{"run", "max_pool2d", "k=3x3"}, "nestor: op max_pool2d: $k is i64, '3x3' does not fit"},
      {{"run", "max_pool2d", "k=9223372036854775808"},
       "nestor: op max_pool2d: $k is i64, '9223372036854775808' does not fit"},
      {{"run", "layer_norm", "eps=1e999"},
       "nestor: op layer_norm: $eps is f32, '1e999' does not fit"},
      {{"run", "layer_norm", "epsilon=1"},
       "nestor: op layer_norm: no $param and no dimension is named 'epsilon' (there are N0, C, eps)"},
      {{"run", "layer_norm", "eps=x.npy"}, "nestor: eps=x.npy: $eps takes a number"},
      {{"run", "op f(;$k) -> (y) { y = $k }"}, "nestor: op f: $k has no default: give k=.."},
  });
}

// Each is tried with the same op, with and without the interpreter.
TEST_F(BadInput, SizesThatTheOpCannotHave) {
  const std::string equal = "op f(a: f32[M], b: f32[N]) -> (y) { y[i] = a[i] + b[i] }";
  const std::string filled = "op f(x: f32[N]; $k) -> (y) { y[i] = 1.0 where i < N*$k }";
  const std::string divided = "op f(x: f32[N]; $k) -> (y) { y[i] = 1.0 where i < N/$k }";
  const std::string scaled = "op f(x: f32[N]; $k) -> (y) { y[i] = x[i*$k] where i < N }";
  const std::string even = "op f(x: f32[2*N]) -> (y) { y[i] = x[i] }";
  for (const std::string backend : {"--backend=jit", "--backend=interp"}) {
    Check({
        {{"run", equal, "M=3", "N=4", backend},
         "nestor: op f: index i runs over axis 0 of a (M) and over axis 0 of b (N): 3 against 4"},
        {{"run", "matmul", "a=[2,3]", "b=[4,5]", backend},
         "nestor: op matmul: axis 0 of b (K) is 4, but axis 1 of a (K) is 3"},
        {{"run", even, "x=[5]", "N=3", backend}, "nestor: op f: axis 0 of x is 5, but 2*N = 6"},
        {{"run", filled, "N=4", "k=-1", backend},
         "nestor: program f: the extent $k*N = -4 is negative"},
        {{"run", filled, "N=4", "k=281474976710656", backend},
         "nestor: program f: the extent $k*N = 1125899906842624 exceeds 2^48"},
        {{"run", filled, "N=4", "k=9223372036854775807", backend},
         "nestor: program f: the index expression $k*N overflows or divides by zero for these sizes ($k = 9223372036854775807, N = 4)"},
        {{"run", divided, "N=4", "k=0", backend},
         "nestor: program f: the index expression N/$k overflows or divides by zero"},
        {{"run", scaled, "N=4", "k=9223372036854775807", backend},
         "nestor: program f: the index expression d*$k overflows or divides by zero for these sizes (d in [0, 3], $k = "},
        {{"run", "conv2d", "x=[1,1,2,2]", "w=[1,1,5,5]", backend},
         "nestor: program conv2d: the extent (-$dilation*R + "},
        {{"run", "op f() -> (y) { y[i] = 1.0 where i < -3 }", backend},
         "nestor: program f: the extent -3 is negative"},
        {{"run", "op f() -> (y) { y[i] = 1.0 where i < 9223372036854775807 }", backend},
         "nestor: program f: the extent 9223372036854775807 exceeds 2^48"},
        {{"run", "op f(x: f32[-3]) -> (y) { y[i] = x[i] }", backend},
         "nestor: op f: argument x: axis 0 (-3) is negative: -3"},
        {{"run", "op f(x: f32[N/0]) -> (y) { y[i] = x[i] }", backend},
         "nestor: op f: argument x: axis 0 (N/0) divides by zero"},
    });
  }
}

TEST_F(BadInput, StepsAndMemory) {
  const std::string sum = "op f() -> (y) { y = sum[i](f32(i)) where i < 281474976710656 }";
  const std::string large = "op f() -> (y) { y[i] = 1.0 where i < 100000000000 }";
  const std::string temporary =
      "op f() -> (y) { t[i] = exp(f32(i)) where i < 100000000000; m = max[i](t[i]); y = sum[i](t[i] - m) }";
  Check({
      {{"run", sum}, "nestor: program f: loop i would have more than 2^45 iterations in all"},
      {{"run", sum, "--backend=interp"},
       "nestor: program f: loop i would have more than 2^45 iterations in all"},
      {{"stats", sum}, "nestor: program f: loop i would have more than 2^45 iterations in all"},
      {{"run", kVector, "N=100000000000"},
       "nestor: op f: argument x [100000000000] exceeds the limit of "},
      {{"run", large}, "nestor: program f: tensor y of 400000000000 bytes exceeds the limit of "},
      {{"run", large, "--backend=interp"},
       "nestor: program f: tensor y [100000000000] exceeds the limit of "},
      {{"run", temporary, "--backend=interp"},
       "nestor: program f: tensor t0 [100000000000] exceeds the limit of "},
      {{"bench", large}, "nestor: program f: tensor y of 400000000000 bytes exceeds the limit of "},
  });
}

// ---- Tensors

TEST_F(BadInput, ShapeWords) {
  Check({
      {{"run", kVector, "x=[2,3]"}, "nestor: op f: argument x has 1 dimensions, is given 2"},
      {{"run", kVector, "x=i32[3]"}, "nestor: op f: argument x is f32, is given i32"},
      {{"run", kVector, "x=float32[3]"},
       "nestor: x=float32[3]: unknown type 'float32' (there are bool, u8,"},
      {{"run", kVector, "x=F32[3]"}, "nestor: x=F32[3]: unknown type 'F32', did you mean 'f32'?"},
      {{"run", kVector, "x=[-3]"}, "nestor: x=[-3]: '-3' is no extent"},
      {{"run", kVector, "x=[N]"}, "nestor: x=[N]: 'N' is no extent"},
      {{"run", kVector, "x=[2,]"}, "nestor: x=[2,]: '' is no extent"},
      {{"run", kVector, "x=[9223372036854775808]"},
       "nestor: x=[9223372036854775808]: '9223372036854775808' is no extent"},
      {{"run", kVector, "x=[4611686018427387904]"},
       "nestor: x=[4611686018427387904]: the size of shape [4611686018427387904] overflows"},
      {{"run", kVector, "x=f32(3)"},
       "nestor: x=f32(3): x is a tensor: give x=FILE.npy, or x=f32[2,3] to have it made up"},
      {{"run", kVector, "X=[3]"}, "nestor: X=[3]: op f has no argument 'X', did you mean 'x'?"},
      {{"run", "softmax", "x=i32[3]"}, "nestor: op softmax: 'exp' takes a float, is given i32"},
  });
}

TEST_F(BadInput, NpyFiles) {
  Check({
      {{"run", "f.nestor", "x=none.npy"},
       "nestor: argument x: none.npy: cannot open: No such file or directory"},
      {{"run", "f.nestor", "x=dir"}, "nestor: x=dir: x is a tensor: give x=FILE.npy"},
      {{"run", "f.nestor", "x=x.npz"}, "nestor: x=x.npz: x is a tensor: give x=FILE.npy"},
      {{"run", "f.nestor", "x=empty.npy"},
       "nestor: argument x: empty.npy: truncated: the magic and version needs 8 bytes, there are 0"},
      {{"run", "f.nestor", "x=text.npy"}, "nestor: argument x: text.npy: not a .npy file"},
      {{"run", "f.nestor", "x=cut_magic.npy"},
       "nestor: argument x: cut_magic.npy: truncated: the magic"},
      {{"run", "f.nestor", "x=cut_header.npy"},
       "nestor: argument x: cut_header.npy: truncated: the header needs"},
      {{"run", "f.nestor", "x=cut.npy"},
       "nestor: argument x: cut.npy: truncated: the data of f32[2, 3] needs 24 bytes, there are 23"},
      {{"run", "f.nestor", "x=cut_fortran.npy"},
       "nestor: argument x: cut_fortran.npy: truncated: the data of f32[3, 2] needs 24"},
      {{"run", "f.nestor", "x=cut_swapped.npy"},
       "nestor: argument x: cut_swapped.npy: truncated: the data of f32[2, 3] needs 24"},
      {{"run", "f.nestor", "x=long.npy"},
       "nestor: argument x: long.npy: the data of f32[2, 3] is 24 bytes, but more follow"},
      {{"run", kProduct, "a=x.npy", "b=swapped.npy"},
       "nestor: op f: axis 0 of b (K) is 4, but axis 1 of a (K) is 3"},
      {{"run", kProduct, "a=x.npy", "b=fortran.npy"},
       "nestor: op f: axis 0 of b (K) is 4, but axis 1 of a (K) is 3"},
      {{"run", kVector, "x=x.npy"}, "nestor: op f: argument x has 1 dimensions, is given 2"},
      {{"run", "f.nestor", "x=x.npy", "M=5"},
       "nestor: op f: axis 0 of x (M) is 2, but M=5 as given"},
      {{"run", kVector, "x=f8.npy"}, "nestor: argument x: f8.npy: holds f64 where f32 is expected"},
      {{"run", kVector, "x=u2.npy"}, "nestor: argument x: u2.npy: holds u16 where f32 is expected"},
      {{"run", "softmax", "x=u2.npy"}, "nestor: op softmax: 'exp' takes a float, is given u16"},
      {{"run", "half.nestor", "x=i2.npy"},
       "nestor: argument x: i2.npy: holds i16 where bf16 is expected"},
      {{"run", "softmax", "x=i2.npy", "T=bf16"},
       "nestor: argument x: i2.npy: holds i16 where bf16 is expected"},
      {{"run", "softmax", "T=f31"}, "nestor: T=f31: unknown type 'f31', did you mean"},
      {{"run", "softmax", "x=f32[2,3]", "T=bf16"},
       "nestor: argument x is f32, but T is given as bf16"},
      {{"run", "half.nestor", "x=f8.npy"},
       "nestor: argument x: f8.npy: holds f64 where bf16 is expected"},
      {{"run", kVector, "x=complex.npy"},
       "nestor: argument x: complex.npy: elements of type '<c8' are not supported, only b1 u1 i1 u2 i2"},
      {{"run", kVector, "x=object.npy"},
       "nestor: argument x: object.npy: elements of type '|O' are not supported"},
      {{"run", kVector, "x=record.npy"},
       "nestor: argument x: record.npy: structured elements are not supported"},
      {{"run", kVector, "x=no_type.npy"},
       "nestor: argument x: no_type.npy: the header lacks one of 'descr'"},
      {{"run", kVector, "x=negative.npy"},
       "nestor: argument x: negative.npy: the header has -3,), } at byte 51 where an extent is expected"},
      {{"run", kVector, "x=huge.npy"},
       "nestor: argument x: huge.npy: truncated: the data of f32[1099511627776] needs 4398046511104 bytes"},
      {{"run", kVector, "x=overflows.npy"},
       "nestor: argument x: overflows.npy: the size of shape [9223372036854775807, 9] overflows 64 bits"},
      {{"run", kVector, "x=version.npy"},
       "nestor: argument x: version.npy: version 9.0 of the format is not supported"},
      {{"run", kVector, "x=endless_header.npy"},
       "nestor: argument x: endless_header.npy: a header of 4294967295 bytes is no header"},
      {{"run", kVector, "y=x.npy"}, "nestor: y=x.npy: op f has no argument 'y'"},
  });
}

// ---- Programs

TEST_F(BadInput, ProgramFiles) {
  Check({
      {{"run", "none.nestor"}, "nestor: cannot open none.nestor: No such file or directory"},
      {{"run", "sofmax"},
       "nestor: 'sofmax' is neither a file, nor an op's text, nor a macro op, did you mean 'softmax'?"},
      {{"run", "dir"}, "nestor: cannot read dir: Is a directory"},
      {{"run", "/dev/zero"}, "nestor: /dev/zero is longer than 16 MiB: it is no program"},
      {{"run", "empty.nestor"},
       "empty.nestor:1:1: expected an op (op NAME(..) -> (..) {..}), found the end of the text"},
      {{"run", "blank.nestor"}, "blank.nestor:3:1: expected an op"},
      {{"run", "-"}, "<stdin>:1:1: expected an op"},
      {{"run", "-"}, "<stdin>:2:4: expected the op's name, found '('", 2, "\nop (x"},
      {{"run", "x.npy"}, "x.npy:1:1: the byte 0x93 is not UTF-8: only comments may hold such"},
      {{"run", "bytes.nestor"}, "bytes.nestor:1:1: unexpected character '\\x7f'"},
      {{"run", "bad.nestor"}, "bad.nestor:2:10: unknown tensor 'q'"},
      {{"grad", "bad.nestor"}, "bad.nestor:2:10: unknown tensor 'q'"},
      {{"print", "bad.nestor"}, "bad.nestor:2:10: unknown tensor 'q'"},
      {{"stats", "bad.nestor"}, "bad.nestor:2:10: unknown tensor 'q'"},
      {{"bench", "bad.nestor"}, "bad.nestor:2:10: unknown tensor 'q'"},
      {{"check", "bad.nestor"}, "bad.nestor:2:10: unknown tensor 'q'"},
      {{"header", "bad.nestor"}, "bad.nestor:2:10: unknown tensor 'q'"},
      {{"run", "../bad.nestor"}, "../bad.nestor:2:10: unknown tensor 'q'", 2, "", "dir"},
      {{"run", "f.nestor", "--op=g"}, "nestor: f.nestor has no op named 'g'"},
      {{"run", "softmax", "--op=f"},
       "nestor: --op=f chooses an op of a file, but PROGRAM is the macro op softmax"},
      {{"run", "y[i] = x[i]\nz[i] = x[i]"}, "<PROGRAM>:1:1: expected 'op', found 'y'"},
  });
}

// Names that are unknown, not bound, or defined twice; ranks; types; notation of other languages.
TEST_F(BadInput, ProgramTexts) {
  Check({
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = q[i] }"}, "<PROGRAM>:1:33: unknown tensor 'q'"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = x[j] }"}, "<PROGRAM>:1:35: unknown name 'j'"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = $k }"}, "<PROGRAM>:1:33: unknown parameter '$k'"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = 1.0 where i < M }"},
       "<PROGRAM>:1:47: unknown dimension 'M'"},
      {{"run", "op f(x: f32[N]) -> (y) { y = softmx(x) }"},
       "<PROGRAM>:1:30: unknown op 'softmx', did you mean 'softmax'?"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = sine(x[i]) }"},
       "<PROGRAM>:1:33: unknown scalar op 'sine'"},
      {{"run", "op f(x: f31[N]) -> (y) { y[i] = x[i] }"},
       "<PROGRAM>:1:9: expected a type (bool u8"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = i }"},
       "<PROGRAM>:1:28: the index 'i' has no range: add 'where i < ..'"},
      {{"run", "op f(x: f32[N]) -> (y) { z[i] = x[i] }"},
       "<PROGRAM>:1:21: the result 'y' is not defined"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = x[i]; y[i] = x[i] }"},
       "<PROGRAM>:1:39: 'y' is already defined"},
      {{"run", "op f(x: f32[N], x: f32[N]) -> (y) { y[i] = x[i] }"},
       "<PROGRAM>:1:17: 'x' is already defined"},
      {{"run", "op f(x: f32[N]; $k, $k) -> (y) { y[i] = x[i] }"},
       "<PROGRAM>:1:21: '$k' is already defined"},
      {{"run", "op f(x: f32[N]) -> (y, y) { y[i] = x[i] }"},
       "<PROGRAM>:1:24: the result 'y' is named twice"},
      {{"run", absl::StrCat(kVector, " ", kVector)},
       "<PROGRAM>:1:43: the op 'f' is already defined"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = sum[i](x[i]) }"},
       "<PROGRAM>:1:37: the index 'i' is already in use here"},
      {{"run", "op f(x: f32[N]) -> (y) { y = f(x) }"},
       "<PROGRAM>:1:30: the op 'f' calls itself; ops are not recursive"},
      {{"run", "op exp(x: f32[N]) -> (y) { y[i] = x[i] }"},
       "<PROGRAM>:1:4: an op may not be named like the scalar op 'exp'"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = x[] }"},
       "<PROGRAM>:1:33: 'x' has 1 dimensions and is given 0 indices"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = x }"},
       "<PROGRAM>:1:33: 'x' has 1 dimension and is read without indices"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = exp(x[i], x[i]) }"},
       "<PROGRAM>:1:33: 'exp' takes 1 operand, is given 2"},
      {{"run", "op f(x: f32[N], z: i32[N]) -> (y) { y[i] = x[i] + z[i] }"},
       "<PROGRAM>:1:51: types f32 and i32 do not mix"},
      {{"run", "op f(x: u8[N]) -> (y) { y[i] = x[i] + 300 }"},
       "<PROGRAM>:1:39: the literal '300' does not fit u8"},
      {{"run", "op f(x: f32[99999999999999999999]) -> (y) { y[i] = x[i] }"},
       "<PROGRAM>:1:13: '99999999999999999999' does not fit i64"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = x[i]"},
       "<PROGRAM>:1:37: expected an operator, 'where' or the end of the statement"},
      {{"run", "op f(x: f32[N]) -> (y) { y = sum[i](x[i] }"},
       "<PROGRAM>:1:42: expected an operator or ')', found '}'"},
      {{"run", "op f(x: f32[N]) (y) { y[i] = x[i] }"}, "<PROGRAM>:1:17: expected '->', found '('"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = x[i] // 2\n}"},
       "<PROGRAM>:1:38: unexpected '//': floor division is floordiv(a, b)"},
      {{"run", "op f(x: f32[N]) -> (y) { y[i] = x[i] > 0 ? 1 : 2 }"},
       "<PROGRAM>:1:42: unexpected '?': a choice is where(c, a, b)"},
  });
}

TEST_F(BadInput, Generators) {
  Check({
      {{"print", "einsum(ij,jk->iq)"}, "nestor: einsum(EQUATION): no operand has the result's 'q'"},
      {{"print", "einsum(ij,jk->ik"}, "nestor: 'einsum(ij,jk->ik' is neither a file, nor"},
      {{"print", "permute(0, 0)"}, "nestor: permute(AXIS, ..): axis 0 stands there twice"},
      {{"print", "concat(0)"},
       "nestor: concat(COUNT, RANK, AXIS): takes a count, a rank and an axis, and is given 1 words"},
      {{"print", "along(softmax, 2000000000, 1)"},
       "nestor: along(OP, RANK, AXIS): '2000000000' is not a number of 1..64"},
      {{"print", absl::StrCat("einsum(", Repeated("i", 100'000), "->i)")},
       "nestor: einsum(EQUATION): too many axes"},
  });
}

// ---- Results

TEST_F(BadInput, Outputs) {
  const std::string long_name(300, 'a');
  Check({
      {{"run", "softmax", "-o"}, "nestor: -o needs NAME=FILE"},
      {{"run", "softmax", "-o", "y"}, "nestor: -o y: NAME=FILE is expected"},
      {{"run", "softmax", "-o", "y="}, "nestor: -o y=: NAME=FILE is expected"},
      {{"run", "softmax", "-o=y.npy"},
       "nestor: -o=y.npy: -o and NAME=FILE are two words, as in -o y=y.npy"},
      {{"run", "softmax", "--output=y.npy"}, "nestor: unknown flag '--output'"},
      {{"run", "softmax", "-o", "z=z.npy"},
       "nestor: -o z: op softmax has no result 'z', did you mean 'y'? (there are y)"},
      {{"run", "softmax", "-o", "y=a.npy", "-o", "y=b.npy"}, "nestor: -o y is given twice"},
      {{"run", "adam", "-o", "p_new=a.npy", "-o", "v_new=a.npy"},
       "nestor: -o: p_new and v_new would both be written to a.npy"},
      {{"run", "adam", "-o", "p_new=a.npy", "-o", "v_new=./a.npy"},
       "nestor: -o: p_new and v_new would both be written to ./a.npy"},
      {{"run", "adam", "-o", "p_new=x.npy", "-o", "v_new=dir/../x.npy"},
       "nestor: -o: p_new and v_new would both be written to dir/../x.npy"},
      {{"run", "softmax", "-o", "y=dir"}, "nestor: -o y=dir is a directory"},
      {{"run", "softmax", "-o", "y=none/y.npy"},
       "nestor: -o y=none/y.npy: cannot write in none/: No such file or directory"},
      {{"run", "softmax", "-o", "y=x.npy/y.npy"}, "nestor: -o y=x.npy/y.npy: Not a directory"},
      {{"run", "softmax", "-o", "y=/proc/y.npy"}, "nestor: "},
      {{"run", "softmax", "-o", "y=/dev/full"},
       "nestor: /dev/full: cannot write: No space left on device"},
      {{"run", "softmax", "-o", absl::StrCat("y=", long_name)},
       absl::StrCat("nestor: -o y=", long_name.substr(0, 255), "...: File name too long")},
      // A run that fails writes onto its own input.
      {{"run", "f.nestor", "x=x.npy", "M=5", "-o", "y=x.npy"},
       "nestor: op f: axis 0 of x (M) is 2, but M=5 as given"},
      {{"print", "softmax", "-o", "y=y.npy"}, "nestor: unknown flag '-o'"},
  });
}

// ---- Other subcommands

TEST_F(BadInput, Grad) {
  Check({
      {{"grad"}, "nestor: PROGRAM is missing"},
      {{"grad", kProduct, "--wrt=d"},
       "nestor: gradient of op f: no argument is named 'd' (there are a, b)"},
      {{"grad", kProduct, "--wrt=a,a"}, "nestor: --wrt=a,a: 'a' is named twice"},
      {{"grad", kProduct, "--wrt=a;b"}, "nestor: --wrt=a;b: 'a;b' is no name"},
      {{"grad", kProduct, "--of=a"},
       "nestor: gradient of op f: no result is named 'a', did you mean 'c'? (there are c)"},
      {{"grad", kProduct, "--given=a"},
       "nestor: gradient of op f: what is given does not suffice: it also needs g_c, b"},
      {{"grad", kProduct, "M=3"},
       "nestor: M=3: only types and shapes are read here, as in M=f32[2,3]"},
      {{"grad", kProduct, "a=[2]"}, "nestor: op f: argument a has 2 dimensions, is given 1"},
      {{"grad", "embedding", "--wrt=ids"}, "nestor: gradient of op embedding: argument ids is i64"},
      {{"grad", "op f(x: i64[N]) -> (y) { y[i] = x[i] }"},
       "nestor: gradient of op f: no result is a float"},
  });
}

TEST_F(BadInput, Print) {
  Check({
      {{"print", "softmax", "--stage=loop"},
       "nestor: --stage=loop: unknown stage, did you mean 'loops'? (there are uops,"},
      {{"print", "softmax", "--stage=ASM"},
       "nestor: --stage=ASM: unknown stage, did you mean 'asm'?"},
      {{"print", "softmax", "--stage=fused", "--passes=unknown"},
       "nestor: --passes: unknown pass 'unknown' (there are assume_products,"},
      {{"print", "softmax", "--stage=fused", "--passes=merge,merge"},
       "nestor: --passes=merge,merge: 'merge' is named twice"},
      {{"print", "softmax", "--passes=merge"},
       "nestor: --passes: no passes run before the stage uops"},
      {{"print", "softmax", "--stage=asm", "--isa=neon"},
       "nestor: --isa=neon: there is no instruction set 'neon'"},
      {{"print", "softmax", "--stage=fused", "--isa=avx2"},
       "nestor: --isa: the stage fused is the same on all machines"},
      {{"print", "softmax", "C=3"}, "nestor: C=3: only types and shapes are read here"},
      {{"print", "softmax", "x=x.npy"}, "nestor: x=x.npy: only types and shapes are read here"},
  });
}

TEST_F(BadInput, Stats) {
  Check({
      {{"stats", "softmax"}, "nestor: op softmax: no size is given for N0, C: give N0=.. C=.."},
      {{"stats", "softmax", "N0=4", "C=-8"}, "nestor: op softmax: dimension C = -8 is negative"},
      {{"stats", "softmax", "N0=4", "C=8", "--l2=1MB"},
       "nestor: --l2=1MB: a size is expected, as in 1MiB, 512KiB or 65536"},
      {{"stats", "softmax", "N0=4", "C=8", "--l2=99999999999GiB"},
       "nestor: --l2=99999999999GiB: a size is expected"},
      {{"stats", "softmax", "N0=4", "C=8", "--threads=2"}, "nestor: unknown flag '--threads'"},
      {{"stats", "softmax", "x=cut.npy"}, "nestor: argument x: cut.npy: truncated"},
      {{"stats", kProduct, "a=[2,3]", "b=[4,5]"},
       "nestor: op f: axis 0 of b (K) is 4, but axis 1 of a (K) is 3"},
      {{"stats", "max_pool2d", "x=[1,1,4,4]", "k=9", "stride=1"},
       "nestor: program max_pool2d: the extent (-$k + 2*$pad + H)/$stride + 1 = -4"},
  });
}

TEST_F(BadInput, HeaderAndOps) {
  Check({
      {{"header", "softmax", "--type=f31"},
       "nestor: --type=f31: unknown type 'f31', did you mean 'f32'?"},
      {{"header", kVector, "--type=f64"},
       "nestor: --type=f64: op f names the type of each argument"},
      {{"header", "softmax", "--type=i32"},
       "nestor: op softmax: 'exp' takes a float, is given i32"},
      {{"header", "softmax", "--symbol=a-b"}, "nestor: --symbol=a-b: no name in C"},
      {{"header", "softmax", "--symbol=int"},
       "nestor: --symbol=int: C or C++ has another meaning for it"},
      {{"header", "softmax", "--strided=1"}, "nestor: --strided takes no value"},
      {{"ops", "softmax"}, "nestor: unexpected 'softmax'"},
      {{"ops", "--jsn"}, "nestor: unknown flag '--jsn', did you mean '--json'?"},
      {{"ops", "--json", "--table"}, "nestor: --table: not with --json"},
  });
}

TEST_F(BadInput, Libraries) {
  std::vector<Row> rows;
  for (const std::string command : {"check", "bench"}) {
    const auto add = [&](std::vector<std::string> flags, const std::string& message) {
      flags.insert(flags.begin(), {command, "softmax"});
      rows.push_back({std::move(flags), message});
    };
    add({"--library"}, "nestor: --library needs a value");
    add({"--library="}, "nestor: cannot load a library without a name");
    add({"--library=none.so"},
        "nestor: cannot load none.so: cannot open shared object file: No such file or directory");
    add({"--library=dir"}, "nestor: cannot load dir: cannot read file data: Is a directory");
    add({"--library=empty.so"}, "nestor: cannot load empty.so: file too short");
    add({"--library=text.so"}, "nestor: cannot load text.so: file too short");
    add({"--library=x.npy"}, "nestor: cannot load x.npy: ");
    add({"--library=cut.so"}, "nestor: cannot load cut.so: truncated: its segments need ");
    add({"--library=libsoftmax.so", "--symbol=softmx"},
        "nestor: libsoftmax.so has no function 'softmx', did you mean 'softmax'?");
    add({"--library=libsoftmax.so", "--symbol=a b"}, "nestor: --symbol=a b: no name in C");
    add({"--symbol=softmax"}, "nestor: --symbol: only with --library");
  }
  Check(rows);
}

TEST_F(BadInput, CheckOfKernels) {
  const std::string library = "--library=libsoftmax.so";
  Check({
      {{"check", library}, "nestor: PROGRAM is missing: the op that the kernel is of"},
      {{"check", "softmax", "--where=C > 1"}, "nestor: --where: only with --library"},
      {{"check", "softmax", library, "--all"}, "nestor: --all: only without --library"},
      {{"check", "softmax", library, "--where=C %"},
       "nestor: softmax: the condition \"C %\": 1:4: expected an expression"},
      {{"check", "softmax", library, "--where=K > 1"},
       "nestor: softmax: the condition \"K > 1\": 1:1: unknown dimension 'K'"},
      {{"check", "softmax", library, absl::StrCat("--where=", Repeated("(", 100'000))},
       "nestor: softmax: the condition \"(((("},
      {{"check", "softmax", library, "--where=C > 1", "--where=C < 1"},
       "nestor: softmax: no sizes within the limits"},
      {{"check", "softmax", library, "C=x"}, "nestor: C=x: a number of 64 bits is expected"},
      {{"check", "softmax", library, "x=x.npy"},
       "nestor: tensors are drawn: only types and sizes can be given"},
      {{"check", "softmax", library, "--trials=0"}, "nestor: --trials=0: a number from 1 to "},
      {{"check", "softmax", library, "--time=60"},
       "nestor: --time=60: a time is expected, as in --time=60s"},
      {{"check", "softmax", library, "--alignment=24"},
       "nestor: Alignment(24): not a power of two up to 4096"},
      {{"check", "softmax", library, "--in-place=x"},
       "nestor: --in-place=x: ARGUMENT=RESULT is expected"},
      {{"check", "softmax", library, "--sample=-1"}, "nestor: --sample=-1: a number from 0 to "},
  });
}

TEST_F(BadInput, CheckOfEngines) {
  Check({
      {{"check"}, "nestor: one of PROGRAM, --all and --random is expected"},
      {{"check", "--all", "--random"}, "nestor: one of PROGRAM, --all and --random is expected"},
      {{"check", "--random", "N=3"}, "nestor: sizes are those of a PROGRAM"},
      {{"check", "softmax", "D=3"},
       "nestor: op softmax: no $param and no dimension is named 'D', did you mean 'C'? (there are N0, C)"},
      {{"check", "softmax", "N=3"},
       "nestor: op softmax: no $param and no dimension is named 'N' (there are N0, C)"},
      {{"check", "softmax", "C=-3"}, "nestor: op softmax: dimension C = -3 is negative"},
      {{"check", "softmax", "N2=-3"}, "nestor: op softmax: dimension N2 = -3 is negative"},
      {{"check", "softmax", "C=281474976710657"},
       "nestor: op softmax: dimension C = 281474976710657 exceeds 2^48"},
      {{"check", "softmax", "C=x"},
       "nestor: op softmax: C=x: a dimension is an integer of 64 bits"},
      {{"check", "max_pool2d", "k=0"}, "nestor: op max_pool2d: $k = 0 is outside [1, inf]"},
      {{"check", "layer_norm", "eps=0.5"},
       "nestor: eps=0.5: $eps is f32; only dimensions and integer $params are fixed here"},
      {{"check", "softmax", "--time=abc"}, "nestor: --time=abc: a time is expected"},
      {{"check", "softmax", "--derivative=3"},
       "nestor: --derivative=3: a number from 0 to 2 is expected"},
  });
}

// ---- Large inputs

TEST_F(BadInput, LongTokens) {
  files_.Put(
      "name.nestor",
      absl::StrCat("op f(x: f32[N]) -> (y) { y[i] = ", std::string(100 << 20, 'q'), "[i] }"));
  const std::string name(15 << 20, 'q'), number(15 << 20, '1');
  files_.Put("short_name.nestor", absl::StrCat("op f(x: f32[N]) -> (y) { y[i] = ", name, "[i] }"));
  files_.Put("number.nestor",
             absl::StrCat("op f(x: f32[N]) -> (y) { y[i] = x[i] + ", number, ".0 }"));
  files_.Put("index.nestor", absl::StrCat("op f(x: f32[N]) -> (y) { y[i] = x[i + ", number, "] }"));
  Check({
      {{"run", "name.nestor"}, "nestor: name.nestor is longer than 16 MiB: it is no program"},
      {{"run", "short_name.nestor"}, "short_name.nestor:1:33: unknown tensor 'qqqq"},
      {{"run", "number.nestor"}, "number.nestor:1:40: the literal '1111"},
      {{"run", "index.nestor"}, "index.nestor:1:39: '1111"},
      {{"run", "-"},
       "<stdin>:1:15728644: expected '(', found the end of the text",
       2,
       absl::StrCat("op ", name)},
  });
}

TEST_F(BadInput, ManyOps) {
  const std::string ops = Numbered("op g#(x: f32[N]) -> (y) { y[i] = x[i] + #.0 }\n", 10'000);
  files_.Put("last.nestor", absl::StrCat(ops, "op h(x: f32[N]) -> (y) { y[i] = z[i] }\n"));
  files_.Put("twice.nestor", absl::StrCat(ops, "op g17(x: f32[N]) -> (y) { y[i] = x[i] }\n"));
  std::string calls =
      "op g(x: f32[N]) -> (y) { y[i] = x[i] }\nop g0(x: f32[N]) -> (y) { y = g(x) }\n";
  std::string doubled = calls;
  for (int i = 1; i < 10'000; ++i)
    absl::StrAppend(&calls, "op g", i, "(x: f32[N]) -> (y) { y = g", i - 1, "(x) }\n");
  for (int i = 1; i < 60; ++i) {
    absl::StrAppend(&doubled, "op g", i, "(x: f32[N]) -> (y) { a = g", i - 1, "(x); b = g", i - 1,
                    "(a); y[i] = exp(a[i]) + b[i] }\n");
  }
  files_.Put("calls.nestor", calls);
  files_.Put("doubled.nestor", doubled);
  Check({
      {{"run", "last.nestor"}, "last.nestor:10001:33: unknown tensor 'z'"},
      {{"run", "last.nestor", "--op=g10000"},
       "nestor: last.nestor has no op named 'g10000', did you mean 'g1000'?"},
      {{"run", "twice.nestor"}, "twice.nestor:10001:4: the op 'g17' is already defined"},
      {{"run", "calls.nestor"}, "calls.nestor:10001:34: in op g9998: 10000:34: in op g9997: "},
      {{"run", "doubled.nestor"}, "doubled.nestor:61:32: in op g58: "},
  });
}

TEST_F(BadInput, DeepAndLongPrograms) {
  files_.Put(
      "brackets.nestor",
      absl::StrCat("op f(x: f32[N]) -> (y) { y[i] = ", std::string(1'000'000, '('), "x[i] }"));
  files_.Put(
      "signs.nestor",
      absl::StrCat("op f(x: f32[N]) -> (y) { y[i] = ", std::string(1'000'000, '-'), "x[i] }"));
  files_.Put("sum.nestor",
             absl::StrCat("op f(x: f32[N]) -> (y) { y[i] = ", Repeated("x[i] + ", 100'000), "q }"));
  files_.Put("arguments.nestor", absl::StrCat("op f(", Numbered("x#: f32[N], ", 50'000),
                                              "x: f32[N]) -> (y) { y[i] = q[i] }"));
  files_.Put("statements.nestor",
             absl::StrCat("op f(x: f32[N]) -> (y) {\n", Numbered("t#[i] = x[i]\n", 50'000), "}\n"));
  files_.Put("lines.nestor", absl::StrCat(std::string(1'000'000, '\n'), "op"));
  Check({
      {{"run", "brackets.nestor"},
       "brackets.nestor:1:233: nested too deeply (more than 200 levels)"},
      {{"run", "signs.nestor"}, "signs.nestor:1:233: nested too deeply (more than 200 levels)"},
      {{"run", "sum.nestor"}, "sum.nestor:1:700033: unknown name 'q'"},
      {{"run", "arguments.nestor"}, "arguments.nestor:1:788923: unknown tensor 'q'"},
      {{"run", "statements.nestor"}, "statements.nestor:1:21: the result 'y' is not defined"},
      {{"run", "lines.nestor"},
       "lines.nestor:1000001:3: expected the op's name, found the end of the text"},
  });
}

TEST_F(BadInput, ManyWords) {
  std::vector<std::string> sizes = {"run", kVector}, outputs = sizes;
  for (int i = 0; i < 110'000; ++i) sizes.push_back(absl::StrCat("a", i, "="));
  for (int i = 0; i < 40'000; ++i)
    outputs.insert(outputs.end(), {"-o", absl::StrCat("a", i, "=f", i)});
  Check({
      {sizes, "nestor: op f: no $param and no dimension is named 'a"},
      {outputs, "nestor: -o a0: op f has no result 'a0' (there are y)"},
      {{"grad", kVector, absl::StrCat("--wrt=", Numbered("a#,", 15'000), "x")},
       "nestor: gradient of op f: no argument is named 'a0'"},
      {{"run", kVector, absl::StrCat("x=[", Repeated("1,", 60'000), "1]")},
       "nestor: op f: argument x has 1 dimensions, is given 60001"},
      {{"run", std::string(130'000, 'x')},
       absl::StrCat("nestor: '", std::string(255, 'x'), "...' is neither a file, nor")},
  });
}

// ---- Streams

const std::vector<std::vector<std::string>> kCommandsOfEachKind = {
    {"help"},
    {"--version"},
    {"run", "--help"},
    {"ops"},
    {"run", "softmax"},
    {"run", "softmax", "--json"},
    {"grad", "softmax"},
    {"print", "softmax"},
    {"print", "softmax", "--stage=asm", "--isa=avx2"},
    {"header", "softmax"},
    {"stats", "softmax", "N0=4", "C=4"},
    {"check", "softmax", "--trials=1"},
};

TEST_F(BadInput, StdoutIsFull) {
  for (const auto& words : kCommandsOfEachKind) {
    const CommandOutcome outcome = files_.Run({words, "", "", Stdout::kFullDevice, {}});
    SCOPED_TRACE(absl::StrCat(absl::StrJoin(words, " "), "\n", outcome.err));
    EXPECT_EQ(outcome.exit_code, 2);
    ExpectOne(Messages(outcome.err), "nestor: cannot write to stdout: No space left on device");
  }
}

// As after `ulimit -f`: the file that was begun is removed.
TEST_F(BadInput, FilesMayNotGrow) {
  const CommandDirectory::Snapshot before = files_.TakeSnapshot();
  CommandCall call;
  call.words = {"run", "softmax", "N0=100", "C=100", "-o", "y=y.npy"};
  call.limits.file_bytes = 10'000;
  const CommandOutcome outcome = files_.Run(call);
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.exit_code, 2);
  ExpectOne(Messages(outcome.err), "nestor: y.npy: cannot write: File too large");
  EXPECT_TRUE(files_.TakeSnapshot() == before);
}

// As in `nestor ops | head -1`, after head has its line.
TEST_F(BadInput, NobodyReadsStdout) {
  for (const auto& words : kCommandsOfEachKind) {
    const CommandOutcome outcome = files_.Run({words, "", "", Stdout::kClosedPipe, {}});
    SCOPED_TRACE(absl::StrCat(absl::StrJoin(words, " "), "\n", outcome.err));
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.signal, 0);
    EXPECT_TRUE(Messages(outcome.err).empty());
  }
}

}  // namespace
}  // namespace nestor::cli
