// The axes over which statements of nest programs (nest_programs.h) are drawn: four dimensions and
// a pack, each with one index.
#ifndef NESTOR_CHECK_ENGINES_NEST_AXES_H_
#define NESTOR_CHECK_ENGINES_NEST_AXES_H_

#include <string>
#include <vector>

#include "check/random.h"

namespace nestor {

// An axis: its dimension, and the index that runs over it.
struct Axis {
  const char* dimension;
  const char* index;
};
constexpr Axis kAxes[] = {{"M", "i"}, {"N", "j"}, {"K", "k"}, {"L", "l"}, {"..B", "..b"}};
constexpr int kPack = 4;

using Axes = std::vector<int>;  // of kAxes

// The axes of both, first those of `a`, then the others of `b`.
Axes Union(Axes a, const Axes& b);
// A subset that holds each axis in `percent` of a hundred draws.
Axes Subset(Random& random, const Axes& axes, int percent);

std::vector<std::string> Indices(const Axes& axes);
// The dimensions of the axes, with commas between them.
std::string Dimensions(const Axes& axes);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_NEST_AXES_H_
