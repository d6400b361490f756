// The user's view: progress, the confusion matrix, misread digits.
#ifndef NESTOR_EXAMPLES_DIGITS_REPORT_H_
#define NESTOR_EXAMPLES_DIGITS_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "examples/digits/data.h"

namespace nestor::digits {

// "epoch  3/10 [#######-------] loss 0.1234", without a newline.
std::string ProgressLine(int epoch, int epochs, double done, double loss);

// Each row is a true digit, each column a digit read; zeros are dots.
// REQUIRES: one guess an example.
std::string ConfusionMatrix(const Examples& examples, absl::Span<const int64_t> guesses);

// The first few examples that were misread, side by side; "" if there are none.
std::string Misread(const Examples& examples, absl::Span<const int64_t> guesses);

// The share of the guesses that are right.
double Accuracy(const Examples& examples, absl::Span<const int64_t> guesses);

}  // namespace nestor::digits

#endif  // NESTOR_EXAMPLES_DIGITS_REPORT_H_
