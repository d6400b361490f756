// Merging would look at all pairs of nests, and redo the facts of the scope after each merge:
// quadratic at best. This list keeps both cheap. Items are kept in slots, in order; a join leaves
// one slot free. Items between the two move to other slots only where the joined nest must come
// between them.
//
// For each tensor, and for each list of ranges, the slots of the loops that have it are kept in
// order: the nearest partners are found without a look at the others, and a join costs what the two
// nests touch. Partners that a chain of dependences keeps apart are left out at once, by one walk
// away from the nest: joins only add chains, so these partners will never meet.
#include "fusion/nest_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fusion/scopes.h"

namespace nestor::loop {

namespace {
constexpr int kNowhere = -1;
}  // namespace

NestList::NestList(const Program& program, Scope items, TouchSet& scratch)
    : program_(program), at_(items.size(), kNowhere), chain_(scratch) {
  entries_.reserve(2 * items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t size = SizeOf(program, items[i]);
    Nest nest = NestOf(program, items[i]);
    Add(std::move(items[i]), std::move(nest), size, static_cast<int>(i));
  }
}

int NestList::Add(Item item, Nest nest, int64_t size, int slot) {
  const int serial = this->size();
  entries_.push_back({std::move(item), std::move(nest), size, slot});
  at_[slot] = serial;
  Index(serial, true);
  return serial;
}

void NestList::Place(int serial, int slot) {
  if (entries_[serial].slot != slot) {
    Index(serial, false);
    entries_[serial].slot = slot;
    Index(serial, true);
  }
  at_[slot] = serial;
}

// Enters the nest in the indices by which Sharing finds it, or takes it out.
void NestList::Index(int serial, bool enter) {
  const auto& [item, nest, size, slot] = entries_[serial];
  if (nest.band.empty()) return;
  const auto change = [slot = slot, enter](Slots& slots) {
    if (enter) slots.insert(slot);
    else slots.erase(slot);
  };
  change(of_ranges_[RangesOf(nest)]);
  for (const Touch& touch : nest.touches) {
    if (!program_[touch.tensor].shape.empty()) change(users_[touch.tensor]);
  }
}

NestList::Ranges NestList::RangesOf(const Nest& nest) {
  Ranges ranges;
  for (const LoopHead& head : nest.band)
    ranges.emplace_back(head.begin.value, head.end.value, head.step);
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

// ---- Partners

// Adds the nearest slots before this one, and after it if `side` says so.
void NestList::Near(const Slots& slots, int slot, Side side, std::vector<int>& near) const {
  const auto at = slots.find(slot);
  auto before = at;
  for (int i = 0; i < kMostPartners && before != slots.begin(); ++i) near.push_back(*--before);
  if (side == Side::kBefore) return;
  auto behind = std::next(at);
  for (int i = 0; i < kMostPartners && behind != slots.end(); ++i) near.push_back(*behind++);
}

// The items at these slots that are small enough to be joined with it and not kept apart from it.
std::vector<int> NestList::MayMeet(int serial, std::vector<int> slots) const {
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  const Entry& entry = entries_[serial];
  slots.erase(
      std::remove_if(slots.begin(), slots.end(),
                     [&](int slot) { return entry.size + entries_[at_[slot]].size > kMostSize; }),
      slots.end());
  const auto behind = std::lower_bound(slots.begin(), slots.end(), entry.slot);
  std::vector<int> serials;
  AddMeeting(entry, std::make_reverse_iterator(behind), slots.rend(), -1, serials);
  std::reverse(serials.begin(), serials.end());
  AddMeeting(entry, behind, slots.end(), 1, serials);
  return serials;
}

// Adds those of the items at the slots [begin, end), which lead away from the entry, that depend on
// nothing in between that depends on the entry (or the other way round).
template <class Iterator>
void NestList::AddMeeting(const Entry& entry, Iterator begin, Iterator end, int step,
                          std::vector<int>& serials) const {
  int between = 0;
  for (int slot = entry.slot + step; begin != end && between <= kMostBetween; slot += step) {
    if (at_[slot] == kNowhere) continue;
    const Nest& nest = entries_[at_[slot]].nest;
    const bool is_barred = chain_.ConflictsWith(nest.touches);
    if (slot == *begin) {
      if (!is_barred) serials.push_back(at_[slot]);
      if (++begin == end) break;
    }
    if (is_barred || Conflict(entry.nest, nest)) chain_.Add(nest.touches);
    ++between;
  }
  chain_.Clear();
}

// The nests on that side that touch a tensor of this one; all others have nothing to gain.
std::vector<int> NestList::Sharing(int serial, Side side) const {
  const Entry& entry = entries_[serial];
  std::vector<int> near;
  if (entry.nest.band.empty()) return near;
  for (const Touch& touch : entry.nest.touches) {
    const auto users = users_.find(touch.tensor);
    if (users != users_.end()) Near(users->second, entry.slot, side, near);
  }
  return MayMeet(serial, std::move(near));
}

std::vector<int> NestList::OfEqualLoops(int serial, Side side) const {
  const Entry& entry = entries_[serial];
  std::vector<int> near;
  if (!entry.nest.band.empty()) Near(of_ranges_.at(RangesOf(entry.nest)), entry.slot, side, near);
  return MayMeet(serial, std::move(near));
}

// ---- Joining

// One more than kMostBetween says that there are too many.
std::vector<int> NestList::Between(int earlier, int later) const {
  std::vector<int> between;
  for (int slot = entries_[earlier].slot + 1; slot < entries_[later].slot; ++slot) {
    if (at_[slot] != kNowhere) between.push_back(at_[slot]);
    if (between.size() > kMostBetween) break;
  }
  return between;
}

absl::optional<std::vector<bool>> NestList::MovedBehind(int earlier, int later) const {
  const std::vector<int> between = Between(earlier, later);
  if (between.size() > kMostBetween) return absl::nullopt;
  std::vector<const Nest*> nests = {&nest(earlier)};
  for (int serial : between) nests.push_back(&nest(serial));
  nests.push_back(&nest(later));
  return loop::MovedBehind(nests, chain_);
}

// Items before the joined nest keep their slots or move down, those after it up: one side at most
// has to make room.
int NestList::Join(int earlier, int later, const std::vector<bool>& is_behind, Item joined,
                   Nest nest) {
  const std::vector<int> between = Between(earlier, later);
  const int first = entries_[earlier].slot, last = entries_[later].slot;
  const int64_t size = entries_[earlier].size + entries_[later].size;
  for (int serial : {earlier, later}) {
    Index(serial, false);
    entries_[serial] = {{}, {}, 0, kNowhere};
  }
  std::fill(at_.begin() + first, at_.begin() + last + 1, kNowhere);
  // The smaller side makes room.
  const int behind = static_cast<int>(std::count(is_behind.begin(), is_behind.end(), true));
  const int before = static_cast<int>(between.size()) - behind;
  const int slot = behind < before ? last - behind : first + before;
  int limit = slot;
  for (size_t i = between.size(); i-- > 0;) {
    if (!is_behind[i]) Place(between[i], limit = std::min(entries_[between[i]].slot, limit - 1));
  }
  limit = slot;
  for (size_t i = 0; i < between.size(); ++i) {
    if (is_behind[i]) Place(between[i], limit = std::max(entries_[between[i]].slot, limit + 1));
  }
  return Add(std::move(joined), std::move(nest), size, slot);
}

Scope NestList::TakeItems() {
  Scope items;
  for (int serial : at_) {
    if (serial != kNowhere) items.push_back(std::move(entries_[serial].item));
  }
  return items;
}

}  // namespace nestor::loop
