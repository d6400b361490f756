// resize.nestor.
#include "tests/naive_resizes.h"

#include <algorithm>
#include <cmath>

namespace nestor {
namespace naive {
namespace {

double CubicWeight(double d) {
  const double a = -0.75;
  d = std::fabs(d);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

double LinearWeight(double d) { return std::max(0.0, 1 - std::fabs(d)); }

// Fractions that are whole or halves in exact arithmetic are treated as such here, too.
constexpr double kTiny = 1e-9;

int64_t Nearest(const std::string& rounding, double at) {
  if (rounding == "floor") return static_cast<int64_t>(std::floor(at + kTiny));
  if (rounding == "ceil") return static_cast<int64_t>(std::ceil(at - kTiny));
  if (rounding == "round_prefer_floor") return static_cast<int64_t>(std::ceil(at - 0.5 - kTiny));
  return static_cast<int64_t>(std::floor(at + 0.5 + kTiny));
}

}  // namespace

double Coordinate(const std::string& coordinates, double i, double from, double to) {
  if (coordinates == "align_corners") return to == 1 ? 0 : i * (from - 1) / (to - 1);
  if (coordinates == "asymmetric") return i * from / to;
  if (coordinates == "tf_half_pixel_for_nn") return (i + 0.5) * from / to;
  if (coordinates == "pytorch_half_pixel" && to == 1) return 0;
  return (i + 0.5) * from / to - 0.5;
}

NaiveTensor Resized(const NaiveTensor& x, size_t axis, int64_t to, const std::string& mode,
                    const std::string& coordinates, const std::string& rounding) {
  const int64_t from = x.shape[axis];
  Place shape = x.shape;
  shape[axis] = to;
  return Generate(shape, [&](const Place& p) {
    const auto element = [&](int64_t i) {
      Place source = p;
      source[axis] = std::clamp<int64_t>(i, 0, from - 1);
      return At(x, source);
    };
    const double at = Coordinate(coordinates, static_cast<double>(p[axis]),
                                 static_cast<double>(from), static_cast<double>(to));
    if (mode == "nearest") return element(Nearest(rounding, at));
    double total = 0;
    const int64_t low = static_cast<int64_t>(std::floor(at)) - 2;
    for (int64_t i = low; i < low + 6; ++i) {
      const double d = at - static_cast<double>(i);
      total += element(i) * (mode == "cubic" ? CubicWeight(d) : LinearWeight(d));
    }
    return total;
  });
}

}  // namespace naive

namespace {

using namespace naive;

NaiveOp OfOneAxis(const std::string& mode, const std::string& coordinates) {
  return [=](const NaiveCall& call) {
    return Y(Resized(call["x"], call["x"].shape.size() - 1, call.Integer("out"), mode, coordinates,
                     "floor"));
  };
}

NaiveOp OfTwoAxes(const std::string& mode, const std::string& coordinates) {
  return [=](const NaiveCall& call) {
    const size_t rank = call["x"].shape.size();
    const NaiveTensor tall =
        Resized(call["x"], rank - 2, call.Integer("height"), mode, coordinates, "floor");
    return Y(Resized(tall, rank - 1, call.Integer("width"), mode, coordinates, "floor"));
  };
}

}  // namespace

NaiveTable NaiveResizes() {
  return {
      {"resize_nearest1d", OfOneAxis("nearest", "asymmetric")},
      {"resize_nearest2d", OfTwoAxes("nearest", "asymmetric")},
      {"resize_nearest2d_exact", OfTwoAxes("nearest", "tf_half_pixel_for_nn")},
      {"resize_linear1d", OfOneAxis("linear", "half_pixel")},
      {"resize_linear1d_aligned", OfOneAxis("linear", "align_corners")},
      {"resize_bilinear2d", OfTwoAxes("linear", "half_pixel")},
      {"resize_bilinear2d_aligned", OfTwoAxes("linear", "align_corners")},
      {"resize_cubic1d", OfOneAxis("cubic", "half_pixel")},
      {"resize_cubic1d_aligned", OfOneAxis("cubic", "align_corners")},
      {"resize_bicubic2d", OfTwoAxes("cubic", "half_pixel")},
  };
}

}  // namespace nestor
