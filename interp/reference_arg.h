// argmax and argmin over enclosures.
#ifndef NESTOR_INTERP_REFERENCE_ARG_H_
#define NESTOR_INTERP_REFERENCE_ARG_H_

#include <vector>

#include "interp/enclosure.h"
#include "uops/graph.h"

namespace nestor {

// The candidates for the first greatest (least) of the values taken so far, or the first NaN: all
// values that no other one certainly beats.
class ArgCandidates {
 public:
  // REQUIRES: IsArg(op).
  explicit ArgCandidates(ReduceOp op) : op_(op) {}

  // Takes `value` at `position`, an i64 that is later than all positions so far.
  void Take(const Enclosure& value, const Enclosure& position);
  // The hull of the candidates' positions; -1 where nothing was taken.
  Enclosure Position() const;

 private:
  struct Candidate {
    Enclosure value;  // of an argmin negated
    Enclosure position;
  };

  ReduceOp op_;
  std::vector<Candidate> candidates_;  // in order
};

}  // namespace nestor

#endif  // NESTOR_INTERP_REFERENCE_ARG_H_
