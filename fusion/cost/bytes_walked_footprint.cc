// The elements that an access reaches are approximated by a box of arithmetic progressions, one for
// each axis, as an affine subscript runs through one when its indices do. Boxes are quick to unite
// and to intersect, whatever the sizes; what they lose is shapes such as diagonals and triangles.
//
// A place's axes are taken one by one; a connection between them (x[i, i], or x[k / 4, k % 4] with
// few k) only has the effect that no more elements are reached than there are values of the
// indices.
#include "fusion/cost/bytes_walked_footprint.h"

#include <algorithm>

#include "loop_ir/dependence.h"

namespace nestor::loop {
namespace {

double Count(const Progression& p) { return static_cast<double>(p.count); }

double Places(const Box& box) {
  double places = 1;
  for (const Progression& axis : box.axes) places *= Count(axis);
  return places;
}

bool SamePlaces(const Progression& a, const Progression& b) {
  return a.low == b.low && a.high == b.high && a.step == b.step;
}

bool SameAxes(const Box& a, const Box& b) {
  return std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), SamePlaces);
}

// Keeps the step if both progressions have it and are in phase, else counts every element between.
Progression Hull(const Progression& a, const Progression& b) {
  Progression hull{std::min(a.low, b.low), std::max(a.high, b.high), std::min(a.step, b.step),
                   std::max(a.count, b.count)};
  if (SamePlaces(a, b)) return hull;
  const bool in_step = a.step == b.step && (a.low - b.low) % a.step == 0;
  const int64_t places = (hull.high - hull.low) / (in_step ? hull.step : 1) + 1;
  hull.count = std::max(hull.count, std::min(places, a.count + b.count));
  if (!in_step) hull.step = 1;
  return hull;
}

// The part of `axis` within [low, high], as if it were filled evenly.
double ShareWithin(const Progression& axis, int64_t low, int64_t high) {
  const double step = static_cast<double>(axis.step);
  const double length = static_cast<double>(axis.high - axis.low) + step;
  const double common =
      static_cast<double>(std::min(axis.high, high) - std::max(axis.low, low)) + step;
  return std::clamp(common / length, 0.0, 1.0);
}

// nullopt where nothing is left.
absl::optional<Progression> Clipped(Progression p, int64_t extent) {
  if (p.low >= 0 && p.high < extent) return p;
  p.high = std::min(p.high, extent - 1);
  // The first of its steps that is not negative.
  if (p.low < 0) p.low = (p.low % p.step + p.step) % p.step;
  if (p.high < p.low) return absl::nullopt;
  p.high = p.low + (p.high - p.low) / p.step * p.step;
  p.count = std::min(p.count, (p.high - p.low) / p.step + 1);
  return p;
}

Box Nothing(size_t rank) {
  return Box{std::vector<Progression>(rank, Progression::Single(0)), 0, false};
}

}  // namespace

// The hull has as many elements as the two together, at most those places that it has.
Box BoundingBox(const Box& a, const Box& b) {
  if (a.elements == 0) return b;
  if (b.elements == 0) return a;
  Box hull;
  hull.is_scattered = a.is_scattered || b.is_scattered;
  for (size_t axis = 0; axis < a.axes.size(); ++axis)
    hull.axes.push_back(Hull(a.axes[axis], b.axes[axis]));
  // Two boxes that look alike are taken to reach the same elements.
  hull.elements = SameAxes(a, b) ? std::max(a.elements, b.elements)
                                 : std::min(Places(hull), a.elements + b.elements);
  return hull;
}

// As if the elements of each box were spread evenly over it.
double CommonElements(const Box& a, const Box& b) {
  double of_a = a.elements, of_b = b.elements;
  if (of_a == 0 || of_b == 0) return 0;
  for (size_t axis = 0; axis < a.axes.size(); ++axis) {
    const Progression &p = a.axes[axis], &q = b.axes[axis];
    if (p.high < q.low || q.high < p.low) return 0;
    of_a *= ShareWithin(p, q.low, q.high);
    of_b *= ShareWithin(q, p.low, p.high);
  }
  return std::min(of_a, of_b);
}

namespace {

Progression Middle(const Progression& index) {
  return Progression::Single(index.low + (index.count - 1) / 2 * index.step);
}

}  // namespace

Footprints::Footprints(const SizedProgram& sized)
    : sized_(sized), values_(sized.program().vars.size()), middles_(values_),
      trips_(values_.size(), 1) {
  for (size_t i = 0; i < sized.program().tensors.size(); ++i) {
    const TensorId tensor{static_cast<int32_t>(i)};
    const TensorInfo& info = sized.program()[tensor];
    const absl::StatusOr<std::vector<int64_t>> extents = sized.Extents(tensor);
    const bool is_walked = LivesInMemory(info) && !info.shape_only && extents.ok();
    extents_.push_back(extents.ok() ? *extents : std::vector<int64_t>());
    element_bytes_.push_back(is_walked ? static_cast<double>(loop::ElementBytes(info)) : 0);
  }
}

// Values that the indices in `place` run through together.
double Footprints::Touches(absl::Span<const IndexId> place) const {
  std::vector<int64_t> indices;
  for (IndexId e : place) CollectVars(sized_.program().pool, e, indices);
  double touches = 1;
  for (int64_t v : indices) touches *= trips_[v];
  return touches;
}

// An index that gathers, or that wraps around, walks no box.
bool Footprints::JumpsAbout(IndexId e) const {
  const IndexPool& pool = sized_.program().pool;
  bool jumps = pool.HasLoad(e);
  VisitIndex(pool, e, [&](IndexId id, const IndexNode& node) {
    jumps |= node.kind == IndexKind::kMod && pool.HasVar(id);
  });
  return jumps;
}

// A subscript that is not affine may be anywhere along its axis; a gather touches as many elements
// as it draws.
Box Footprints::Of(TensorId tensor, absl::Span<const IndexId> place) const {
  Box box;
  for (size_t axis = 0; axis < place.size(); ++axis) {
    const int64_t extent = extents_[tensor.value][axis];
    box.is_scattered |= JumpsAbout(place[axis]);
    absl::optional<Progression> values = sized_.Over(place[axis], values_);
    if (!values) {  // anywhere
      const double drawn = Touches({place[axis]});
      const bool reaches_all = drawn >= static_cast<double>(extent);
      values = Progression{0, std::max<int64_t>(extent - 1, 0), 1,
                           reaches_all ? extent : static_cast<int64_t>(drawn)};
    }
    values = Clipped(*values, extent);
    if (!values || values->count == 0) return Nothing(place.size());
    box.axes.push_back(*values);
  }
  box.elements = std::min(Places(box), Touches(place));
  return box;
}

double Footprints::Enter(const Loop& loop) {
  const absl::optional<Progression> index = sized_.IndexOf(loop, middles_);
  if (!index) return 0;
  values_[loop.var] = middles_[loop.var] = Middle(*index);
  return Count(*index);
}

void Footprints::Leave(const Loop& loop) {
  values_[loop.var].reset();
  middles_[loop.var].reset();
  trips_[loop.var] = 1;
}

Boxes Footprints::Of(const Loop& loop) {
  Boxes boxes;
  Collect(loop, boxes);
  return boxes;
}

// Walks the nest with `values_` for how far each index runs and `middles_` for one value of it.
void Footprints::Collect(const Loop& loop, Boxes& boxes) {
  const absl::optional<Progression> values = sized_.IndexOf(loop, values_);
  if (!values) return;
  // The row in the middle of a triangle has the average length.
  const absl::optional<Progression> in_middle = sized_.IndexOf(loop, middles_);
  values_[loop.var] = values;
  middles_[loop.var] = Middle(in_middle.value_or(*values));
  // A loop with one iteration in each iteration of the loops around is at a different value
  // each time.
  const bool moves = in_middle && in_middle->count == 1;
  trips_[loop.var] = Count(moves ? *values : in_middle.value_or(*values));
  for (const Item& item : loop.body) {
    CollectAccesses(item, boxes);
    if (const Loop* inner = item.As<Loop>()) Collect(*inner, boxes);
  }
  Leave(loop);
}

// All accesses of a tensor in one box: an overestimate where they are far apart.
void Footprints::CollectAccesses(const Item& item, Boxes& boxes) const {
  VisitAccesses(sized_.program(), item,
                [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind) {
                  if (!IsWalked(tensor)) return;
                  const auto [it, is_new] = boxes.try_emplace(tensor, Of(tensor, place));
                  if (!is_new) it->second = BoundingBox(it->second, Of(tensor, place));
                });
}

}  // namespace nestor::loop
