// Plain text, with nothing that a terminal of 1980 would not show: a pixel is two
// characters, as these are twice as high as wide, in five shades.
#include "examples/digits/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace nestor::digits {
namespace {

constexpr int kBarWidth = 30;
constexpr size_t kShown = 4;
constexpr absl::string_view kGap = "    ";

void AppendShade(float ink, std::string& text) {
  constexpr absl::string_view kShades = " .:*#";
  const int shade =
      std::min(static_cast<int>(ink * kShades.size()), static_cast<int>(kShades.size()) - 1);
  text.append(2, kShades[shade]);
}

std::vector<int64_t> FirstMisread(const Examples& examples, absl::Span<const int64_t> guesses) {
  std::vector<int64_t> wrong;
  for (int64_t i = 0; i < examples.size() && wrong.size() < kShown; ++i) {
    if (guesses[i] != examples.labels[i]) wrong.push_back(i);
  }
  return wrong;
}

}  // namespace

std::string ProgressLine(int epoch, int epochs, double done, double loss) {
  const int filled = static_cast<int>(done * kBarWidth);
  return absl::StrFormat("epoch %2d/%d [%s%s] loss %.4f", epoch, epochs, std::string(filled, '#'),
                         std::string(kBarWidth - filled, '-'), loss);
}

std::string ConfusionMatrix(const Examples& examples, absl::Span<const int64_t> guesses) {
  int count[kClasses][kClasses] = {};
  for (int64_t i = 0; i < examples.size(); ++i) ++count[examples.labels[i]][guesses[i]];
  std::string text = "true \\ read";
  for (int guess = 0; guess < kClasses; ++guess) absl::StrAppendFormat(&text, "%4d", guess);
  for (int truth = 0; truth < kClasses; ++truth) {
    absl::StrAppendFormat(&text, "\n%11d", truth);
    for (int n : count[truth]) absl::StrAppendFormat(&text, "%4s", n == 0 ? "." : absl::StrCat(n));
  }
  return text + "\n";
}

std::string Misread(const Examples& examples, absl::Span<const int64_t> guesses) {
  const std::vector<int64_t> wrong = FirstMisread(examples, guesses);
  std::string text;
  for (int64_t i : wrong) {
    absl::StrAppendFormat(&text, "%-*s", 2 * kSide + static_cast<int>(kGap.size()),
                          absl::StrCat("a ", examples.labels[i], " read as ", guesses[i]));
  }
  for (int row = 0; row < kSide && !wrong.empty(); ++row) {
    text += '\n';
    for (int64_t i : wrong) {
      for (int column = 0; column < kSide; ++column)
        AppendShade(examples.Image(i)[row * kSide + column], text);
      absl::StrAppend(&text, kGap);
    }
  }
  return wrong.empty() ? text : text + "\n";
}

double Accuracy(const Examples& examples, absl::Span<const int64_t> guesses) {
  int64_t right = 0;
  for (int64_t i = 0; i < examples.size(); ++i) right += guesses[i] == examples.labels[i];
  return static_cast<double>(right) / std::max<int64_t>(1, examples.size());
}

}  // namespace nestor::digits
