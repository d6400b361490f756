// Windows that slide over axes, for convolutions and pools of any rank.

#ifndef NESTOR_TESTS_NAIVE_WINDOWS_OF_H_
#define NESTOR_TESTS_NAIVE_WINDOWS_OF_H_

#include "tests/naive_loops.h"

namespace nestor::naive {

struct Sliding {
  Place window;  // its extents
  int64_t stride = 1, pad = 0, dilation = 1;

  // How many places the window finds along each of `extents`.
  Place Places(const Place& extents) const {
    Place places;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      const int64_t reach = dilation * (window[axis] - 1) + 1;
      places.push_back(0);
      for (int64_t begin = 0; begin + reach <= extents[axis] + 2 * pad; begin += stride)
        ++places.back();
    }
    return places;
  }

  // Where the element `inner` of the window at `place` lies; perhaps in the padding.
  Place Source(const Place& place, const Place& inner) const {
    Place source;
    for (size_t axis = 0; axis < place.size(); ++axis) {
      source.push_back(place[axis] * stride + inner[axis] * dilation - pad);
    }
    return source;
  }
};

}  // namespace nestor::naive

#endif  // NESTOR_TESTS_NAIVE_WINDOWS_OF_H_
