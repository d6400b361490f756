// The nests of one scope while they are merged: their order, and which are near which.
#ifndef NESTOR_FUSION_NEST_LIST_H_
#define NESTOR_FUSION_NEST_LIST_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "fusion/nest.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Items are named by serial numbers: those of the scope are 0, 1, .. in order; one that takes the
// place of two gets the next number. Not thread-safe.
class NestList {
 public:
  // Where partners of a nest are looked for.
  enum class Side : uint8_t { kBefore, kBoth };
  // How many partners are looked at on a side, for each tensor and for equal loops: the nearest
  // ones. So a tensor that all nests read does not make all pairs of nests partners.
  static constexpr int kMostPartners = 32;
  // The most items between two partners.
  static constexpr int kMostBetween = 1024;
  // The largest size (scopes.h) of an item that a join makes: about as many operations as an
  // instruction cache of 32 KiB holds. A larger loop gains next to nothing: one more join keeps one
  // element for each thousand operations out of memory. But passes and code generation hold a loop
  // and its code at once, and those would have no bound.
  static constexpr int64_t kMostSize = 2048;

  // REQUIRES: the scope declares nothing; `program` and `scratch` outlive this. `scratch` is empty
  // except within calls, and so serves the lists of all scopes.
  NestList(const Program& program, Scope items, TouchSet& scratch);

  int size() const { return static_cast<int>(entries_.size()); }  // of all serial numbers
  bool Holds(int serial) const { return entries_[serial].slot >= 0; }
  bool IsBefore(int a, int b) const { return entries_[a].slot < entries_[b].slot; }
  const Nest& nest(int serial) const { return entries_[serial].nest; }
  const Item& item(int serial) const { return entries_[serial].item; }
  // Its nest stays known. REQUIRES: it is joined next.
  Item TakeItem(int serial) { return std::move(entries_[serial].item); }

  // The loops near the loop `serial`, in order, that it can meet and be joined with now and that
  // touch a tensor that it touches; a scalar, which no loop walks, does not count.
  std::vector<int> Sharing(int serial, Side side) const;
  // Those that it can meet and be joined with and whose bands have the same ranges, in any order.
  std::vector<int> OfEqualLoops(int serial, Side side) const;

  // For each item between the two, in order, whether it must move after the later one so that they
  // meet (see nest.h); nullopt where they cannot, or are too far from each other.
  absl::optional<std::vector<bool>> MovedBehind(int earlier, int later) const;

  // Puts the item `joined`, whose facts are `nest`, in the place of the two; returns its number.
  // `is_behind`: what MovedBehind said.
  int Join(int earlier, int later, const std::vector<bool>& is_behind, Item joined, Nest nest);

  // The items in order; leaves the list empty.
  Scope TakeItems();

 private:
  using Slots = absl::btree_set<int>;
  using Ranges = std::vector<std::tuple<int32_t, int32_t, int64_t>>;
  struct Entry {
    Item item;
    Nest nest;
    int64_t size;
    int slot;  // -1: joined with another
  };

  int Add(Item item, Nest nest, int64_t size, int slot);
  void Place(int serial, int slot);
  // Enters the loop at its slot into the index, or takes it out.
  void Index(int serial, bool enter);
  std::vector<int> Between(int earlier, int later) const;
  void Near(const Slots& slots, int slot, Side side, std::vector<int>& near) const;
  std::vector<int> MayMeet(int serial, std::vector<int> slots) const;
  template <class Iterator>
  void AddMeeting(const Entry& entry, Iterator begin, Iterator end, int step,
                  std::vector<int>& serials) const;
  static Ranges RangesOf(const Nest& nest);

  const Program& program_;
  std::vector<Entry> entries_;  // by serial number
  std::vector<int> at_;         // by slot: the number of the item; -1: free
  absl::flat_hash_map<TensorId, Slots> users_;
  absl::flat_hash_map<Ranges, Slots> of_ranges_;
  TouchSet& chain_;  // what is touched by items between two nests that depend on one of them
};

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_NEST_LIST_H_
