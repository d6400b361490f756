// Elements that share indices along the axes share computations for these: sums along rows,
// products of packed rows and columns. So a sample is drawn by axis, not by element.
#include "check/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace nestor {
namespace {

std::vector<std::vector<int64_t>> AllIndices(const Dims& shape) {
  std::vector<std::vector<int64_t>> indices;
  for (int64_t extent : shape) {
    indices.emplace_back(static_cast<size_t>(extent));
    std::iota(indices.back().begin(), indices.back().end(), int64_t{0});
  }
  return indices;
}

// More groups see more combinations of indices, and share less within each.
constexpr int64_t kGroups = 16;

// How many indices a group of `elements` elements has along each axis: about the same number along
// each, and all where there are fewer.
// Short axes first, since they leave more to the long ones: 256 elements of a [2, 1000, 1000] are 2
// x 11 x 11.
Dims AlongAxes(const Dims& shape, int64_t elements) {
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return shape[a] < shape[b]; });
  Dims along(shape.size(), 1);
  for (size_t i = 0; i < order.size(); ++i) {
    const double share =
        std::pow(static_cast<double>(elements), 1.0 / static_cast<double>(order.size() - i));
    along[order[i]] =
        std::min(shape[order[i]], std::max<int64_t>(1, static_cast<int64_t>(share + 1e-9)));
    elements /= std::max<int64_t>(1, along[order[i]]);
  }
  return along;
}

// One index out of each of `count` equal parts of an axis; the first and the last of the axis are
// among them where `low` and `high`.
void DrawIndices(int64_t extent, int64_t count, bool low, bool high, Random& random,
                 std::vector<int64_t>& indices) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * extent / count, end = (i + 1) * extent / count;
    const bool is_last = high && i + 1 == count, is_first = low && i == 0;
    indices.push_back(is_last ? extent - 1 : is_first ? 0 : random.Between(begin, end - 1));
  }
}

}  // namespace

// The first group has both ends of each axis, and so all corners, where it has two indices along
// each.
PointGroups DrawGroups(const Dims& shape, int64_t most, Random& random) {
  if (NumElements(shape).value() <= most) return {1, shape, AllIndices(shape)};
  const int64_t count = std::min(most, kGroups);
  PointGroups groups{count, AlongAxes(shape, most / count), {}};
  groups.indices.resize(shape.size());
  for (int64_t group = 0; group < count; ++group) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const bool low = group == 0 || random.Chance(20), high = group == 0 || random.Chance(50);
      DrawIndices(shape[axis], groups.along[axis], low, high, random, groups.indices[axis]);
    }
  }
  return groups;
}

PointGroups GroupOf(const std::vector<const std::vector<int64_t>*>& axes, const Dims& shape) {
  PointGroups group{1, shape, AllIndices(shape)};
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis] == nullptr) continue;
    group.along[axis] = static_cast<int64_t>(axes[axis]->size());
    group.indices[axis] = *axes[axis];
  }
  return group;
}

void KeepOnly(const std::vector<int64_t>& positions, std::vector<int64_t>& numbers) {
  std::vector<int64_t> kept(numbers.size(), -1);
  for (int64_t p : positions) kept[static_cast<size_t>(p)] = numbers[static_cast<size_t>(p)];
  // Positions stay as they are, because those of the compiled bounds do.
  numbers = std::move(kept);
}

void RemoveRepeated(std::vector<int64_t>& numbers) {
  absl::flat_hash_set<int64_t> seen;
  seen.reserve(numbers.size());
  for (int64_t& number : numbers) {
    if (!seen.insert(number).second) number = -1;
  }
}

Slices DrawSlices(const Op& op, absl::Span<const std::string> separable,
                  absl::Span<const Dims> shapes, int64_t sample, Random& random) {
  // The elements of a slice outside of the sample cost less than separate elements
  // that share nothing.
  constexpr int64_t kWaste = 8;
  // By dimension: the extent, and how many of its indices are drawn.
  absl::flat_hash_map<std::string, std::pair<int64_t, int64_t>> counts;
  for (size_t r = 0; r < shapes.size(); ++r) {
    const Shape& shape = op.graph.shape(op.results[r].node);
    std::vector<size_t> axes;
    Dims extents;
    int64_t whole = 1;  // elements along the other axes
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const bool is_separable =
          absl::c_linear_search(separable, SymbolicText(op.graph.pool(), shape[axis]));
      if (is_separable) axes.push_back(axis), extents.push_back(shapes[r][axis]);
      else whole *= shapes[r][axis];
    }
    // Axes that cannot be cut make the slice too large: single elements are cheaper.
    if (whole > kWaste * sample) return {};
    const Dims along =
        AlongAxes(extents, whole <= 1 ? sample : std::min(sample, kWaste * sample / whole));
    for (size_t i = 0; i < axes.size(); ++i) {
      const std::string name = SymbolicText(op.graph.pool(), shape[axes[i]]);
      const auto [it, is_new] = counts.emplace(name, std::pair(extents[i], along[i]));
      // Two results may have the dimension, or one result twice: the slice is that of the one that
      // needs fewer indices.
      if (!is_new) it->second.second = std::min(it->second.second, along[i]);
    }
  }
  Slices slices;
  for (const std::string& name : separable) {
    const auto it = counts.find(name);
    if (it == counts.end()) continue;
    const auto [extent, count] = it->second;
    const bool are_many = count >= 4;  // few are seldom the ends
    const bool low = are_many || random.Chance(20), high = are_many || random.Chance(30);
    DrawIndices(extent, count, low, high, random, slices[name]);
  }
  return slices;
}

}  // namespace nestor
