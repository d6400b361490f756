// The problem: each micro-op has loops of its own, so every value goes to memory and back. The
// method is greedy and local: of all pairs of loops of a scope that match, the one that gains most
// is merged first (the largest tensor that is then walked once), so that a merge that saves little
// never prevents one that saves much; pairs that merely have the same loops come last.
//
// A (earlier) and B (later) can be brought together if no chain of dependences leads from A to B
// through the items between. Items between that depend on A then move after the merged loop, all
// others before it:
//
//   A                 c2                                 c1
//   c1 (needs A)      AB    (c1 needs A: merge left,     A+B
//   B          ==>    c1     B goes up past c1)    or    ...
//
// Why not an optimal partition of the dependence graph: it is NP-hard (Kennedy and
// McKinley, "Maximizing Loop Parallelism and Improving Data Locality via Loop Fusion
// and Distribution", 1993), and a reader can follow this one.
#include "fusion/merge_loops.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "fusion/match_nests.h"
#include "fusion/nest.h"
#include "fusion/nest_list.h"
#include "fusion/scopes.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

// The two nests as one loop, both taken apart.
class NestJoiner {
 public:
  NestJoiner(Program& program, const NestMatch& match, const Nest& earlier, const Nest& later)
      : program_(program), match_(match), earlier_(earlier), later_(later), rename_(program) {
    for (const auto& [i, j] : match_.shared) {
      rename_.Set(later_.band[j].var, program_.pool.Var(earlier_.band[i].var));
    }
  }

  // The shared loops around both bodies, the earlier one first; the later nest's indices get the
  // earlier one's names.
  Item Join(Item earlier, Item later) {
    std::vector<int> first, second;
    for (const auto& [i, j] : match_.shared) {
      first.push_back(i);
      second.push_back(j);
    }
    Scope body = WithoutLoops(std::move(*earlier.As<Loop>()), earlier_.band, first);
    Scope other = WithoutLoops(std::move(*later.As<Loop>()), later_.band, second);
    RewriteIndices(program_, other, [&](IndexId e) { return rename_(e); });
    Append(body, std::move(other));
    std::vector<LoopHead> shared;
    for (int i : first) shared.push_back(earlier_.band[i]);
    return std::move(Around(shared, std::move(body))[0]);
  }

  Nest NestOfJoined(const Item& joined) {
    return JoinedNest(*joined.As<Loop>(), earlier_, later_, [&](IndexId e) { return rename_(e); });
  }

 private:
  // The nest's core within the loops that are not shared.
  static Scope WithoutLoops(Loop nest, const std::vector<LoopHead>& band,
                            const std::vector<int>& shared) {
    std::vector<LoopHead> own;
    for (size_t i = 0; i < band.size(); ++i) {
      if (std::find(shared.begin(), shared.end(), static_cast<int>(i)) == shared.end())
        own.push_back(band[i]);
    }
    return Around(own, std::move(CoreOf(nest)));
  }

  Program& program_;
  const NestMatch& match_;
  const Nest& earlier_;
  const Nest& later_;
  VarReplacement rename_;
};

// Merges among the items of one scope; declarations are taken out beforehand.
class ScopeMerger {
 public:
  ScopeMerger(Program& program, Scope items, TouchSet& scratch)
      : program_(program), nests_(program, std::move(items), scratch) {}

  // Whether anything was merged.
  bool Run() {
    bool changed = false;
    do {
      changed_ = false;
      for (Relation weakest : {Relation::kReads, Relation::kNone}) {
        OfferAll(weakest);
        MergeOffered(weakest);
      }
      changed |= changed_;
    } while (changed_);
    return changed;
  }

  Scope Take() { return nests_.TakeItems(); }

 private:
  // Two nests that match, in the order in which they are merged.
  struct Offer {
    int gain, shared;
    Relation relation;
    int earlier, later;  // serial numbers

    friend bool operator<(const Offer& a, const Offer& b) {
      return std::make_tuple(-a.gain, -a.shared, a.relation, a.earlier, a.later) <
             std::make_tuple(-b.gain, -b.shared, b.relation, b.earlier, b.later);
    }
  };

  // ---- Offers

  void OfferAll(Relation weakest) {
    for (int nest = 0; nest < nests_.size(); ++nest) {
      if (nests_.Holds(nest)) OfferPartners(nest, weakest, NestList::Side::kBefore);
    }
  }

  // Nests without a relation merge only if they have the same loops.
  void OfferPartners(int nest, Relation weakest, NestList::Side side) {
    const bool related = weakest != Relation::kNone;
    for (int other : related ? nests_.Sharing(nest, side) : nests_.OfEqualLoops(nest, side)) {
      if (nests_.IsBefore(other, nest)) Consider(other, nest, weakest);
      else Consider(nest, other, weakest);
    }
  }

  // Offers the two if they match and are related as closely as `weakest`.
  void Consider(int earlier, int later, Relation weakest) {
    const absl::optional<NestMatch> match = Match(earlier, later);
    if (!match || match->relation > weakest) return;
    offers_.insert(
        {match->gain, static_cast<int>(match->shared.size()), match->relation, earlier, later});
  }

  absl::optional<NestMatch> Match(int earlier, int later) const {
    return MatchNests(program_, nests_.item(earlier), nests_.nest(earlier), nests_.item(later),
                      nests_.nest(later));
  }

  // Takes offers, the best first. An offer that other merges have made illegal stays illegal:
  // dependences never change.
  void MergeOffered(Relation weakest) {
    while (!offers_.empty()) {
      const Offer offer = *offers_.begin();
      offers_.erase(offers_.begin());
      if (!nests_.Holds(offer.earlier) || !nests_.Holds(offer.later)) continue;
      if (!nests_.IsBefore(offer.earlier, offer.later)) continue;
      const auto behind = nests_.MovedBehind(offer.earlier, offer.later);
      if (!behind) continue;
      changed_ = true;
      OfferPartners(Merge(offer.earlier, offer.later, *behind), weakest, NestList::Side::kBoth);
    }
  }

  // ---- Merging

  // Returns the number of the merged nest.
  int Merge(int earlier, int later, const std::vector<bool>& is_behind) {
    const absl::optional<NestMatch> match = Match(earlier, later);
    NESTOR_CHECK(match.has_value(), program_.name);
    NestJoiner joiner(program_, *match, nests_.nest(earlier), nests_.nest(later));
    Item joined = joiner.Join(nests_.TakeItem(earlier), nests_.TakeItem(later));
    Nest nest = joiner.NestOfJoined(joined);
    return nests_.Join(earlier, later, is_behind, std::move(joined), std::move(nest));
  }

  Program& program_;
  NestList nests_;
  std::set<Offer> offers_;
  bool changed_ = false;
};

class Merger {
 public:
  explicit Merger(Program& program) : program_(program) {}

  // Merges the items of the scope, then those within each loop; again if a loop became mergeable.
  bool MergeScope(Scope& scope) {
    bool changed = false, is_longer = true;
    while (is_longer) {
      if (CountLoops(scope) >= 2) changed |= MergeItems(scope);
      is_longer = false;
      for (Item& item : scope) {
        Loop* const loop = item.As<Loop>();
        if (loop == nullptr || !MergeScope(loop->body)) continue;
        changed = true;
        // Several loops in this one have become one: others may share more with it.
        is_longer = is_longer || loop->body.size() == 1;
      }
    }
    return changed;
  }

 private:
  static int64_t CountLoops(const Scope& scope) {
    return std::count_if(scope.begin(), scope.end(),
                         [](const Item& item) { return item.As<Loop>() != nullptr; });
  }

  // Declarations are taken out and put back, each before its first use; untouched if nothing
  // merged.
  bool MergeItems(Scope& scope) {
    const std::vector<TensorId> declared = DeclaredIn(scope);
    Scope items;
    VisitItemsOf(scope, [&](Item& item) { items.push_back(std::move(item)); });
    ScopeMerger merger(program_, std::move(items), scratch_);
    const bool changed = merger.Run();
    items = merger.Take();
    auto item = items.begin();
    if (changed) scope = WithDeclarations(program_, std::move(items), declared);
    else VisitItemsOf(scope, [&](Item& place) { place = std::move(*item++); });
    return changed;
  }

  // All but declarations.
  static void VisitItemsOf(Scope& scope, absl::FunctionRef<void(Item&)> visit) {
    for (Item& item : scope) {
      if (item.As<Declaration>() == nullptr) visit(item);
    }
  }

  Program& program_;
  TouchSet scratch_;  // see NestList
};

}  // namespace

absl::StatusOr<bool> MergeLoops(Program& program) {
  return Merger(program).MergeScope(program.body);
}

}  // namespace nestor::loop
