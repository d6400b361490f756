// digits: trains a classifier of handwritten digits and reports how well it reads digits that it
// has not seen. This file has the flags and the order of the steps; the work is in model.cc (the
// programs), training.cc (an epoch) and report.cc (what is shown).
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "examples/digits/data.h"
#include "examples/digits/model.h"
#include "examples/digits/report.h"
#include "examples/digits/runner.h"
#include "examples/digits/training.h"
#include "uops/invariant.h"

namespace nestor::digits {
namespace {

constexpr absl::string_view kHelp = R"(digits [flags]

Trains a classifier of handwritten digits, all in Nestor's notation and compiled by
it to machine code, and tells how many digits that it has not seen it reads.

  --model=cnn|mlp   two convolutions and one linear layer (by default), or two linear
                    layers, quicker and not as good
  --epochs=N        passes over the 1437 training digits; 12 by default
  --seed=N          of the first weights and of the order of the digits; 0 by default
  --engine=jit      machine code (by default), or
  --engine=interp   Nestor's interpreter, on any CPU: take --model=mlp, or time
  --help            prints this

The last line is the share of the 360 test digits that was read rightly:
accuracy: 0.953

Exit codes: 0 done, 1 failed, 2 bad usage.
)";

struct Flags {
  std::string model = "cnn";
  int epochs = kEpochs;
  uint64_t seed = 0;
  Engine engine = Engine::kJit;
  bool help = false;
};

absl::Status SetFlag(absl::string_view text, Flags& flags) {
  absl::string_view value = text;
  bool good = false;
  if (text == "--help") {
    good = flags.help = true;
  } else if (absl::ConsumePrefix(&value, "--engine=")) {
    flags.engine = value == "interp" ? Engine::kInterp : Engine::kJit;
    good = value == "interp" || value == "jit";
  } else if (absl::ConsumePrefix(&value, "--model=")) {
    flags.model = std::string(value);
    good = value == "mlp" || value == "cnn";
  } else if (absl::ConsumePrefix(&value, "--epochs=")) {
    good = absl::SimpleAtoi(value, &flags.epochs) && flags.epochs >= 0;
  } else if (absl::ConsumePrefix(&value, "--seed=")) {
    good = absl::SimpleAtoi(value, &flags.seed);
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("bad argument '", text, "' (see --help)"));
}

absl::StatusOr<Flags> ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) NESTOR_RETURN_IF_ERROR(SetFlag(argv[i], flags));
  return flags;
}

// Prints `text` over the current line, on a terminal.
void PrintOver(const std::string& text) {
  if (isatty(STDOUT_FILENO)) absl::PrintF("\r%s", text);
  std::fflush(stdout);
}

absl::Status Train(const Flags& flags, const Examples& examples, Classifier& classifier) {
  Random order(~flags.seed);  // not the stream of the weights
  for (int epoch = 1; epoch <= flags.epochs; ++epoch) {
    const auto progress = [&](double done, double loss) {
      PrintOver(ProgressLine(epoch, flags.epochs, done, loss));
    };
    NESTOR_ASSIGN_OR_RETURN(const double loss,
                            TrainEpoch(examples, kBatchSize, StepSizeOf(epoch, flags.epochs), order,
                                       classifier, progress));
    if (isatty(STDOUT_FILENO)) absl::PrintF("\n");
    else absl::PrintF("epoch %d/%d loss %.4f\n", epoch, flags.epochs, loss);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags) {
  NESTOR_ASSIGN_OR_RETURN(const std::string path, FindDigits());
  NESTOR_ASSIGN_OR_RETURN(const Digits digits, LoadDigits(path));
  NESTOR_ASSIGN_OR_RETURN(Classifier classifier,
                          Classifier::Create(flags.model, flags.seed, flags.engine));
  NESTOR_RETURN_IF_ERROR(Train(flags, digits.train, classifier));
  NESTOR_ASSIGN_OR_RETURN(const std::vector<int64_t> guesses,
                          classifier.Predict(digits.test.pixels));
  absl::PrintF("\n%s\n%s\naccuracy: %.3f\n", ConfusionMatrix(digits.test, guesses),
               Misread(digits.test, guesses), Accuracy(digits.test, guesses));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const absl::StatusOr<Flags> flags = ParseFlags(argc, argv);
  if (!flags.ok()) return absl::FPrintF(stderr, "digits: %s\n", flags.status().message()), 2;
  if (flags->help) return absl::PrintF("%s", kHelp), 0;
  const absl::Status status = Run(*flags);
  if (!status.ok()) return absl::FPrintF(stderr, "digits: %s\n", status.message()), 1;
  return 0;
}

}  // namespace
}  // namespace nestor::digits

int main(int argc, char** argv) { return nestor::digits::Main(argc, argv); }
