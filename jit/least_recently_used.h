// Values by key, in the order in which they were used, for bounded caches.
#ifndef NESTOR_JIT_LEAST_RECENTLY_USED_H_
#define NESTOR_JIT_LEAST_RECENTLY_USED_H_

#include <cstddef>
#include <list>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"

namespace nestor::jit {

// Not thread-safe.
template <class Key, class Value>
class LeastRecentlyUsed {
 public:
  // A kept value with its key, for whoever decides what to drop.
  struct Entry {
    Key key;
    Value value;
  };

  // The key's value, which becomes the most recently used; null: none is kept.
  const Value* Find(const Key& key) {
    const auto it = by_key_.find(&key);
    if (it == by_key_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, it->second);
    return &entries_.front().value;
  }

  // Keeps the value, unless the key has one. Returns the value that is kept, which becomes the most
  // recently used.
  const Value& Keep(Key key, Value value) {
    if (const Value* kept = Find(key)) return *kept;
    entries_.push_front({std::move(key), std::move(value)});
    by_key_.emplace(&entries_.front().key, entries_.begin());
    return entries_.front().value;
  }

  // REQUIRES: at least one value is kept.
  void ForgetLast() {
    by_key_.erase(&entries_.back().key);
    entries_.pop_back();
  }

  void Clear() {
    by_key_.clear();
    entries_.clear();
  }

  // The most recently used comes first.
  const std::list<Entry>& entries() const { return entries_; }

 private:
  struct Hash {
    size_t operator()(const Key* key) const { return absl::Hash<Key>()(*key); }
  };
  struct Equal {
    bool operator()(const Key* a, const Key* b) const { return *a == *b; }
  };

  std::list<Entry> entries_;
  // Keys of entries_.
  absl::flat_hash_map<const Key*, typename std::list<Entry>::iterator, Hash, Equal> by_key_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_LEAST_RECENTLY_USED_H_
