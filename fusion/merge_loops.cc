// The problem: each micro-op has loops of its own, so every value goes to memory
// and back. The method is greedy and local: of all pairs of loops of a scope that
// match, the one that gains most is merged first (the largest tensor that is then
// walked once), so that a merge that saves little never stands in the way of one
// that saves much; last those that merely have the same loops.
//
// A (earlier) and B (later) can be brought together if no chain of dependences
// leads from A to B through what lies between. What lies between and depends on A
// then moves behind the merged loop, all else before it:
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

#include "absl/container/flat_hash_map.h"
#include "fusion/match_nests.h"
#include "fusion/nest.h"
#include "fusion/scopes.h"
#include "loop_ir/rewrite.h"
#include "uops/invariant.h"

namespace nestor::fusion {
namespace {

using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;

// The two nests as one loop, both taken apart.
class NestJoiner {
 public:
  NestJoiner(Program& program, const NestMatch& match, const Nest& earlier, const Nest& later)
      : program_(program), match_(match), earlier_(earlier), later_(later) {}

  Item Join(Item earlier, Item later) {
    std::vector<int> first, second;
    for (const auto& [i, j] : match_.shared) {
      first.push_back(i);
      second.push_back(j);
    }
    Scope body = WithoutLoops(std::move(*earlier.As<Loop>()), earlier_.band, first);
    Scope other = WithoutLoops(std::move(*later.As<Loop>()), later_.band, second);
    loop::VarReplacement rename(program_);
    for (const auto& [i, j] : match_.shared) {
      rename.Set(later_.band[j].var, program_.pool.Var(earlier_.band[i].var));
    }
    loop::RewriteIndices(program_, other, [&](IndexId e) { return rename(e); });
    for (Item& item : other) body.push_back(std::move(item));
    std::vector<LoopHead> shared;
    for (int i : first) shared.push_back(earlier_.band[i]);
    return std::move(Around(shared, std::move(body))[0]);
  }

 private:
  // The nest's core within the loops that are not shared.
  static Scope WithoutLoops(Loop nest, const std::vector<LoopHead>& band, const std::vector<int>& shared) {
    std::vector<LoopHead> own;
    for (size_t i = 0; i < band.size(); ++i) {
      if (std::find(shared.begin(), shared.end(), static_cast<int>(i)) == shared.end()) own.push_back(band[i]);
    }
    return Around(own, std::move(CoreOf(nest)));
  }

  Program& program_;
  const NestMatch& match_;
  const Nest& earlier_;
  const Nest& later_;
};

// Merges among the items of one scope; declarations are taken out beforehand.
class ScopeMerger {
 public:
  ScopeMerger(Program& program, Scope items) : program_(program) {
    for (Item& item : items) {
      nests_.push_back(NestOf(program_, item));
      entries_.push_back({std::move(item), next_serial_++});
    }
  }

  // Whether anything was merged.
  bool Run() {
    bool changed = false;
    do {
      changed_ = false;
      OfferRelated();
      MergeOffered(Relation::kReads);
      OfferAll();
      MergeOffered(Relation::kNone);
      changed |= changed_;
    } while (changed_);
    return changed;
  }

  Scope Take() {
    Scope items;
    for (Entry& entry : entries_) items.push_back(std::move(entry.item));
    return items;
  }

 private:
  struct Entry {
    Item item;
    int64_t serial;
  };
  // Two entries that match, in the order in which they are merged.
  struct Offer {
    int gain, shared;
    Relation relation;
    int64_t earlier, later;  // serials

    friend bool operator<(const Offer& a, const Offer& b) {
      return std::make_tuple(-a.gain, -a.shared, a.relation, a.earlier, a.later) <
             std::make_tuple(-b.gain, -b.shared, b.relation, b.earlier, b.later);
    }
  };

  // ---- Offers

  void OfferRelated() {
    absl::flat_hash_map<loop::TensorId, std::vector<size_t>> users;
    for (size_t later = 0; later < entries_.size(); ++later) {
      std::vector<size_t> related;
      for (const Touch& touch : nests_[later].touches) {
        std::vector<size_t>& others = users[touch.tensor];
        related.insert(related.end(), others.begin(), others.end());
        others.push_back(later);
      }
      std::sort(related.begin(), related.end());
      related.erase(std::unique(related.begin(), related.end()), related.end());
      for (size_t earlier : related) Consider(earlier, later, Relation::kReads);
    }
  }

  void OfferAll() {
    for (size_t later = 1; later < entries_.size(); ++later) {
      for (size_t earlier = 0; earlier < later; ++earlier) Consider(earlier, later, Relation::kNone);
    }
  }

  // Offers the two if they match and are related as closely as `weakest`.
  void Consider(size_t earlier, size_t later, Relation weakest) {
    const Nest& a = nests_[earlier];
    const Nest& b = nests_[later];
    if (a.band.empty() || b.band.empty()) return;
    if (weakest == Relation::kNone ? !HaveEqualLoops(a, b) : !HaveCommon(a, b)) return;
    const absl::optional<NestMatch> match = Match(earlier, later);
    if (!match || match->relation > weakest) return;
    offers_.insert({match->gain, static_cast<int>(match->shared.size()), match->relation, entries_[earlier].serial,
                    entries_[later].serial});
  }

  absl::optional<NestMatch> Match(size_t earlier, size_t later) const {
    return MatchNests(program_, entries_[earlier].item, nests_[earlier], entries_[later].item, nests_[later]);
  }

  static bool HaveCommon(const Nest& a, const Nest& b) {
    return std::any_of(a.touches.begin(), a.touches.end(), [&](const Touch& t) { return b.Find(t.tensor) != nullptr; });
  }

  // A quick look: only nests of the same loops merge without a relation.
  static bool HaveEqualLoops(const Nest& a, const Nest& b) {
    if (a.band.size() != b.band.size()) return false;
    return std::all_of(a.band.begin(), a.band.end(), [&](const LoopHead& x) {
      return std::any_of(b.band.begin(), b.band.end(), [&](const LoopHead& y) { return SameRange(x, y); });
    });
  }

  // Takes offers, the best first. One that is not legal now may become so by
  // another merge: those are offered once more while anything changes.
  void MergeOffered(Relation weakest) {
    std::vector<Offer> refused;
    bool merged = false;
    while (!offers_.empty() || (merged && !refused.empty())) {
      if (offers_.empty()) {
        offers_.insert(refused.begin(), refused.end());
        refused.clear();
        merged = false;
      }
      const Offer offer = *offers_.begin();
      offers_.erase(offers_.begin());
      const auto earlier = Find(offer.earlier), later = Find(offer.later);
      if (!earlier || !later || *earlier > *later) continue;
      const auto behind = MovedBehind(nests_, *earlier, *later);
      if (!behind) {
        refused.push_back(offer);
        continue;
      }
      const size_t at = Merge(*earlier, *later, *behind);
      merged = changed_ = true;
      for (size_t i = 0; i < entries_.size(); ++i) {
        if (i != at) Consider(std::min(i, at), std::max(i, at), weakest);
      }
    }
  }

  absl::optional<size_t> Find(int64_t serial) const {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].serial == serial) return i;
    }
    return absl::nullopt;
  }

  // ---- Merging

  // Returns the position of the merged entry.
  size_t Merge(size_t earlier, size_t later, const std::vector<bool>& is_behind) {
    const absl::optional<NestMatch> match = Match(earlier, later);
    NESTOR_CHECK(match.has_value(), program_.name);
    NestJoiner joiner(program_, *match, nests_[earlier], nests_[later]);
    Item joined = joiner.Join(std::move(entries_[earlier].item), std::move(entries_[later].item));
    Nest nest = NestOf(program_, joined);
    Arrange(entries_, earlier, is_behind, {std::move(joined), next_serial_++});
    return Arrange(nests_, earlier, is_behind, std::move(nest));
  }

  // Of the elements from `earlier` on, as many as is_behind has and one to each
  // side: those that are not behind, `merged`, those that are. Returns its position.
  template <class T>
  static size_t Arrange(std::vector<T>& list, size_t earlier, const std::vector<bool>& is_behind, T merged) {
    std::vector<T> before, behind;
    for (size_t i = 0; i < is_behind.size(); ++i) {
      (is_behind[i] ? behind : before).push_back(std::move(list[earlier + 1 + i]));
    }
    auto at = list.begin() + static_cast<int64_t>(earlier);
    at = std::move(before.begin(), before.end(), at);
    *at++ = std::move(merged);
    at = std::move(behind.begin(), behind.end(), at);
    list.erase(at);
    return earlier + before.size();
  }

  Program& program_;
  std::vector<Entry> entries_;
  std::vector<Nest> nests_;  // of the entries
  int64_t next_serial_ = 0;
  std::set<Offer> offers_;
  bool changed_ = false;
};

class Merger {
 public:
  explicit Merger(Program& program) : program_(program) {}

  bool MergeScope(Scope& scope) {
    bool changed = false;
    if (CountLoops(scope) >= 2) changed = MergeItems(scope);
    for (Item& item : scope) {
      if (Loop* loop = item.As<Loop>()) changed |= MergeScope(loop->body);
    }
    return changed;
  }

 private:
  static int64_t CountLoops(const Scope& scope) {
    return std::count_if(scope.begin(), scope.end(), [](const Item& item) { return item.As<Loop>() != nullptr; });
  }

  bool MergeItems(Scope& scope) {
    const std::vector<loop::TensorId> declared = DeclaredIn(scope);
    Scope items;
    for (const Item& item : scope) {
      if (item.As<loop::Declaration>() == nullptr) items.push_back(item);
    }
    ScopeMerger merger(program_, std::move(items));
    if (!merger.Run()) return false;
    scope = WithDeclarations(program_, merger.Take(), declared);
    return true;
  }

  Program& program_;
};

}  // namespace

absl::StatusOr<bool> MergeLoops(Program& program) {
  Merger merger(program);
  return RewriteTopScopes(program, [&](Scope& scope, bool) { return merger.MergeScope(scope); });
}

}  // namespace nestor::fusion
