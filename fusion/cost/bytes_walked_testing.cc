// Runs the program's accesses through an LRU cache of single elements: a list of elements in order
// of last use, from whose end elements leave. An element that leaves the cache changed is marked,
// and counted when it is touched again or at the end: only then is it known whether its value is
// needed. The oracle that the estimate is tested against (bytes_walked.cc), so it has no short
// cuts.
#include "fusion/cost/bytes_walked_testing.h"

#include <list>
#include <vector>

#include "uops/invariant.h"

namespace nestor::loop {
namespace {

struct Element {
  int64_t bytes;
  bool fresh = false;  // its value need not be loaded
  bool dirty = false;  // memory does not hold its value
  bool cached = false;
  std::list<Element*>::iterator place;  // where cached
};

// ---- The cache

class Cache {
 public:
  explicit Cache(int64_t capacity) : free_(capacity) {}

  // A cache of least recently used elements that fetches on a read and writes back when it must.
  void Touch(Element& element, bool reads, bool writes) {
    if (element.cached) {
      used_.splice(used_.begin(), used_, element.place);
    } else {
      if (element.dirty) WriteBack(element);
      if (reads && !element.fresh) walked_.loads += static_cast<double>(element.bytes);
      Admit(element);
    }
    element.fresh = false;
    element.dirty |= writes;
  }

  void WriteBack(Element& element) {
    walked_.stores += static_cast<double>(element.bytes);
    element.dirty = false;
  }

  const BytesWalked& walked() const { return walked_; }

 private:
  // Least recently used goes first, element by element: a fully associative cache without lines.
  void Admit(Element& element) {
    used_.push_front(&element);
    element.place = used_.begin();
    element.cached = true;
    free_ -= element.bytes;
    while (free_ < 0) {
      Element& last = *used_.back();
      used_.pop_back();
      last.cached = false;
      free_ += last.bytes;
    }
  }

  int64_t free_;
  std::list<Element*> used_;  // most recently first
  BytesWalked walked_;
};

// ---- The program's elements

// By tensor; empty for those that do not live in memory.
using Elements = std::vector<std::vector<Element>>;

absl::StatusOr<Elements> ElementsOf(const SizedProgram& sized) {
  const Program& program = sized.program();
  Elements elements(program.tensors.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    const TensorId tensor{static_cast<int32_t>(i)};
    if (!LivesInMemory(program[tensor])) continue;
    NESTOR_ASSIGN_OR_RETURN(const std::vector<int64_t> extents, sized.Extents(tensor));
    int64_t count = 1;
    for (int64_t extent : extents) count *= extent;
    const bool is_fresh = program[tensor].storage != Storage::kInput;
    if (count > 0)
      elements[i].assign(count, Element{ElementBytes(program[tensor]), is_fresh, false, false, {}});
  }
  return elements;
}

}  // namespace

// A tensor is fresh again wherever it is declared: its old elements are dropped, not written back.
absl::StatusOr<BytesWalked> SimulateBytesWalked(const SizedProgram& program, int64_t cache_bytes,
                                                GatheredValue gathered) {
  NESTOR_ASSIGN_OR_RETURN(Elements elements, ElementsOf(program));
  Cache cache(cache_bytes);
  const auto access = [&](const WalkedAccess& a) {
    std::vector<Element>& tensor = elements[a.tensor.value];
    if (!tensor.empty()) cache.Touch(tensor[a.element], a.reads, a.writes);
  };
  const auto declare = [&](TensorId tensor) {
    for (Element& element : elements[tensor.value]) element.fresh = true, element.dirty = false;
  };
  NESTOR_RETURN_IF_ERROR(WalkAccesses(program, gathered, access, declare));
  for (TensorId output : program.program().outputs) {
    for (Element& element : elements[output.value]) {
      if (element.dirty) cache.WriteBack(element);
    }
  }
  return cache.walked();
}

}  // namespace nestor::loop
