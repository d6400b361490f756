// Lists of axes are kept in the order of a tensor's own axes, not sorted: two values over the same
// axes in another order are what schedules must cope with. So these keep the order of what they are
// given.
#include "check/engines/nest_axes.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace nestor {

Axes Union(Axes a, const Axes& b) {
  for (int axis : b) {
    if (std::find(a.begin(), a.end(), axis) == a.end()) a.push_back(axis);
  }
  return a;
}

Axes Subset(Random& random, const Axes& axes, int percent) {
  Axes subset;
  for (int axis : axes) {
    if (random.Chance(percent)) subset.push_back(axis);
  }
  return subset;
}

std::vector<std::string> Indices(const Axes& axes) {
  std::vector<std::string> names;
  for (int axis : axes) names.emplace_back(kAxes[axis].index);
  return names;
}

std::string Dimensions(const Axes& axes) {
  std::vector<std::string> names;
  for (int axis : axes) names.emplace_back(kAxes[axis].dimension);
  return absl::StrJoin(names, ", ");
}

}  // namespace nestor
