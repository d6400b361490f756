// Which loops two nests of one scope can share.
#ifndef NESTOR_FUSION_MATCH_NESTS_H_
#define NESTOR_FUSION_MATCH_NESTS_H_

#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "fusion/nest.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// How the two nests are related, the strongest kind that holds.
enum class Relation : uint8_t {
  kValues,  // one changes what the other touches
  kReads,   // both read one tensor, at places that the shared loops move alike
  kNone,
};

// Two nests as one: the loops `shared` (positions in the bands of the earlier and the later nest)
// are outermost, in this order; inside is what is left of each.
struct NestMatch {
  Relation relation = Relation::kNone;
  std::vector<std::pair<int, int>> shared;
  // The gain: how many dimensions the highest-rank tensor has that both nests walk alike, so that
  // it is walked once. Every dimension counts as large.
  int gain = 0;
};

// The loops that `earlier` and `later` (items of one scope, neither moved past
// anything that it depends on) can share, the most that are legal and pay; nullopt
// where there are none.
//
// Legal: every value passed between them is passed within one iteration of each
// shared loop (both index some axis of its tensor with that loop's index); and each
// band is permuted, if at all, above its pivot only, so that loops that carry a
// dependence, or a sum whose order shows in its rounding, keep their order.
//
// Profitable: loops over different tensors merge only as a whole, and not where both sum products,
// which may be contractions with the loops around; a contraction keeps its loops for
// tiles, unless what it passes on shrinks to a row of the shared loops; the loop along which memory
// is contiguous stays innermost, except where the nests share all their loops and pass values.
absl::optional<NestMatch> MatchNests(const Program& program, const Item& earlier_item,
                                     const Nest& earlier, const Item& later_item,
                                     const Nest& later);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_MATCH_NESTS_H_
