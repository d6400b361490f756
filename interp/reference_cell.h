// What the reference mode knows about the elements of a tensor.
#ifndef NESTOR_INTERP_REFERENCE_CELL_H_
#define NESTOR_INTERP_REFERENCE_CELL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interp/enclosure.h"
#include "interp/reference_arg.h"
#include "interp/reference_recurrence.h"
#include "interp/reference_sum.h"

namespace nestor {

// What a sum, a product or a recurrence has taken so far.
struct Terms {
  std::vector<Accumulation> sums = {};       // one for each type in which they may be computed
  bool is_step = false;                      // a recurrence has summed it
  std::vector<LinearRecurrence> steps = {};  // likewise, of a linear recurrence

  bool empty() const { return sums.empty() && steps.empty(); }
};

// The elements of a tensor that the program writes: many have values alone, so terms lie apart.
struct Cell {
  std::vector<Enclosure> values;
  std::vector<bool> written;
  std::vector<Terms> terms;         // in place of the value; none until there are some
  std::vector<ArgCandidates> args;  // of an arg accumulator

  bool HasTerms(int64_t offset) const { return !terms.empty() && !terms[offset].empty(); }
  Enclosure ValueAt(int64_t offset) const {
    if (!HasTerms(offset)) return values[offset];
    return terms[offset].steps.empty() ? JoinOf(terms[offset].sums) : JoinOf(terms[offset].steps);
  }
  void Set(int64_t offset, const Enclosure& value) {
    if (!terms.empty()) terms[offset] = {};
    values[offset] = value;
    written[offset] = true;
  }
  // The element's terms, for the caller to change.
  Terms& TermsAt(int64_t offset) {
    if (terms.empty()) terms.resize(values.size());
    written[offset] = true;
    return terms[offset];
  }

 private:
  template <class Held>
  static Enclosure JoinOf(const std::vector<Held>& held) {
    Enclosure value = held[0].Value();
    for (size_t i = 1; i < held.size(); ++i) value = Join(value, held[i].Value());
    return value;
  }
};

}  // namespace nestor

#endif  // NESTOR_INTERP_REFERENCE_CELL_H_
