// sample.nestor.
#include <algorithm>
#include <cmath>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

// Interpolates the plane `at` = (sample, channel) of x between the four elements around a place.
double Bilinear(const NaiveTensor& x, const Place& at, double row, double column) {
  const double top = std::floor(row), left = std::floor(column);
  double total = 0;
  for (double i : {top, top + 1}) {
    for (double j : {left, left + 1}) {
      total += (1 - std::fabs(row - i)) * (1 - std::fabs(column - j)) *
               At(x, Joined(at, {static_cast<int64_t>(i), static_cast<int64_t>(j)}));
    }
  }
  return total;
}

// Maps -1 .. 1 to the place among `length` elements.
double Unnormalized(double coordinate, int64_t length, bool align_corners) {
  const double n = static_cast<double>(length);
  return align_corners ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
}

enum class Sampling { kZeros, kBorder, kNearest };

NaiveOp GridSample(Sampling sampling) {
  return [=](const NaiveCall& call) {
    const NaiveTensor &x = call["x"], &grid = call["grid"];
    const bool align = call.Number("align_corners") != 0;
    return Y(Generate({x.shape[0], x.shape[1], grid.shape[1], grid.shape[2]}, [&](const Place& p) {
      double row = Unnormalized(At(grid, {p[0], p[2], p[3], 1}), x.shape[2], align);
      double column = Unnormalized(At(grid, {p[0], p[2], p[3], 0}), x.shape[3], align);
      if (sampling == Sampling::kBorder) {
        row = std::clamp(row, 0.0, static_cast<double>(x.shape[2] - 1));
        column = std::clamp(column, 0.0, static_cast<double>(x.shape[3] - 1));
      }
      if (sampling == Sampling::kNearest)
        row = std::nearbyint(row), column = std::nearbyint(column);
      return Bilinear(x, First(p, 2), row, column);
    }));
  };
}

// 0 for a place more than one element outside; else the value at the nearest place inside.
double RoiSample(const NaiveTensor& x, const Place& at, double row, double column) {
  const double height = static_cast<double>(x.shape[2]), width = static_cast<double>(x.shape[3]);
  if (row < -1 || row > height || column < -1 || column > width) return 0;
  return Bilinear(x, at, std::clamp(row, 0.0, height - 1), std::clamp(column, 0.0, width - 1));
}

// The first place and the length of a part, for the side of a box from `begin` to `end`.
struct Parts {
  double begin, step;
};
Parts PartsOf(const NaiveCall& call, double begin, double end, int64_t parts) {
  const double offset = call.Number("aligned") != 0 ? 0.5 : 0, scale = call.Number("scale");
  double length = end * scale - begin * scale;
  if (call.Number("aligned") == 0) length = std::max(length, 1.0);
  return {begin * scale - offset, length / static_cast<double>(parts)};
}

NaiveTensors RoiAlign(const NaiveCall& call) {
  const NaiveTensor &x = call["x"], &boxes = call["boxes"];
  const int64_t height = call.Integer("height"), width = call.Integer("width"),
                samples = call.Integer("samples");
  return Y(Generate({boxes.shape[0], x.shape[1], height, width}, [&](const Place& p) {
    const Row box = RowAt(boxes, {p[0]});
    const Parts rows = PartsOf(call, box[1], box[3], height),
                columns = PartsOf(call, box[0], box[2], width);
    const Place at = {static_cast<int64_t>(call["batch"].data[p[0]]), p[1]};
    const auto place = [&](const Parts& parts, int64_t part, int64_t sample) {
      return parts.begin +
             parts.step * (static_cast<double>(part) +
                           (static_cast<double>(sample) + 0.5) / static_cast<double>(samples));
    };
    return Sum({samples, samples},
               [&](const Place& s) {
                 return RoiSample(x, at, place(rows, p[2], s[0]), place(columns, p[3], s[1]));
               }) /
           static_cast<double>(samples * samples);
  }));
}

}  // namespace

NaiveTable NaiveSamples() {
  return {
      {"grid_sample", GridSample(Sampling::kZeros)},
      {"grid_sample_border", GridSample(Sampling::kBorder)},
      {"grid_sample_nearest", GridSample(Sampling::kNearest)},
      {"roi_align", RoiAlign},
  };
}

}  // namespace nestor
