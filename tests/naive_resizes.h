// One axis of ONNX Resize, in floating point: where an output element lies in the input, and how
// the elements around it are combined.

#ifndef NESTOR_TESTS_NAIVE_RESIZES_H_
#define NESTOR_TESTS_NAIVE_RESIZES_H_

#include <string>

#include "tests/naive_loops.h"

namespace nestor::naive {

// `coordinates` is ONNX's coordinate_transformation_mode; the place of output i of `to` among
// `from` elements.
double Coordinate(const std::string& coordinates, double i, double from, double to);

// x with axis `axis` resized to `to` elements. `mode`: "nearest" with ONNX's nearest_mode as
// `rounding`, "linear" or "cubic" (a = -0.75).
NaiveTensor Resized(const NaiveTensor& x, size_t axis, int64_t to, const std::string& mode,
                    const std::string& coordinates, const std::string& rounding = "");

}  // namespace nestor::naive

#endif  // NESTOR_TESTS_NAIVE_RESIZES_H_
