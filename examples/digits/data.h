// The handwritten digits of digits.csv.gz (see DATA.md), in memory.
#ifndef NESTOR_EXAMPLES_DIGITS_DATA_H_
#define NESTOR_EXAMPLES_DIGITS_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace nestor::digits {

constexpr int kSide = 8;
constexpr int kPixels = kSide * kSide;
constexpr int kClasses = 10;

struct Examples {
  std::vector<float> pixels;    // kPixels an image, row-major, 0 (paper) to 1 (ink)
  std::vector<int64_t> labels;  // one an image, 0..9

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  // Valid as long as the examples exist.
  const float* Image(int64_t i) const { return pixels.data() + i * kPixels; }
};

struct Digits {
  Examples train;  // rows 0..1436
  Examples test;   // rows 1437..1796
};

// Where Bazel put digits.csv.gz for this program, whatever the current directory
// is. NotFound where it was started without its runfiles beside it.
absl::StatusOr<std::string> FindDigits();

// NotFound where the file cannot be opened; InvalidArgument, with the row, where
// it is not what DATA.md describes.
absl::StatusOr<Digits> LoadDigits(const std::string& path);

}  // namespace nestor::digits

#endif  // NESTOR_EXAMPLES_DIGITS_DATA_H_
