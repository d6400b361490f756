// argmax on sets: which positions may win. A candidate is removed when another one wins over it for
// every choice of members of the two. In each evaluation some candidate wins, and it cannot be a
// removed one: the candidate that beat it also beats it there, even if it was itself removed later.
// So the join over those that stay is sound, and where all values are single, one stays.
//
//   [1, 3] at 0, [2, 5] at 1, [0, 0.5] at 2    the last one never wins: the position is 0 or 1
#include "interp/reference_arg.h"

#include <algorithm>

namespace nestor {
namespace {

// Whether a member of `a`, which comes first, wins over any of `b`.
bool FirstBeats(const Enclosure& a, const Enclosure& b) {
  if (!a.HasNumber()) return true;  // the first NaN
  return !b.nan && a.Least() >= b.Greatest();
}

bool SecondBeats(const Enclosure& a, const Enclosure& b) {
  if (a.nan) return false;
  return !b.HasNumber() || b.Least() > a.Greatest();
}

}  // namespace

// Keeps those that may be the extremum: a new element is left out if an earlier one beats it for
// certain, and removes those that it beats for certain. Ties go to the first, so an earlier element
// also wins when the two may only be equal.
void ArgCandidates::Take(const Enclosure& value, const Enclosure& position) {
  const Enclosure v = op_ == ReduceOp::kArgmin ? Negated(value) : value;
  for (const Candidate& c : candidates_) {
    if (FirstBeats(c.value, v)) return;
  }
  candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(),
                                   [&](const Candidate& c) { return SecondBeats(c.value, v); }),
                    candidates_.end());
  candidates_.push_back({v, position});
}

Enclosure ArgCandidates::Position() const {
  if (candidates_.empty()) return Point(Scalar::I64(-1));
  Enclosure position;
  for (const Candidate& c : candidates_) position = Join(position, c.position);
  return position;
}

}  // namespace nestor
