#include "check/arrangement.h"

#include <algorithm>
#include <cstring>

namespace nestor {
namespace {

bool IsBroadcast(Arrangement arrangement) {
  return arrangement == Arrangement::kBroadcast || arrangement == Arrangement::kBroadcastRow;
}

}  // namespace

absl::string_view Name(Arrangement arrangement) {
  constexpr absl::string_view kNames[] = {"compact",  "transposed", "every second",  "every third",
                                          "reversed", "rows apart", "broadcast row", "broadcast"};
  return kNames[static_cast<int>(arrangement)];
}

Dims StridesOf(const Dims& shape, Arrangement arrangement) {
  Dims extents = shape;
  if (arrangement == Arrangement::kTransposed) std::reverse(extents.begin(), extents.end());
  if (arrangement == Arrangement::kRowsApart && !shape.empty()) extents.back() += 2;
  Dims strides = CompactStrides(extents);
  if (shape.empty()) return strides;
  switch (arrangement) {
    case Arrangement::kTransposed: std::reverse(strides.begin(), strides.end()); break;
    case Arrangement::kEverySecond:
    case Arrangement::kEveryThird:
      for (int64_t& stride : strides) stride *= arrangement == Arrangement::kEverySecond ? 2 : 3;
      break;
    case Arrangement::kReversed:
      for (int64_t& stride : strides) stride = -stride;
      break;
    case Arrangement::kBroadcastRow: strides.back() = 0; break;
    case Arrangement::kBroadcast: strides.front() = 0; break;
    case Arrangement::kCompact:
    case Arrangement::kRowsApart: break;
  }
  return strides;
}

void PlaceGuarded(TensorView& view, GuardedMemory::Side side, std::vector<GuardedMemory>& memory, size_t alignment) {
  static char nothing[1];
  view.data = nothing;
  const ByteRange range = Footprint(view).value();
  const size_t bytes = static_cast<size_t>(range.end - range.begin);
  memory.emplace_back(bytes, side, alignment);
  if (bytes > 0) std::memset(memory.back().data(), kPoison, bytes);
  view.data = memory.back().data() - range.begin;
}

TensorView Arranged(const TensorView& view, Arrangement arrangement, std::vector<GuardedMemory>& memory) {
  TensorView arranged{view.type, view.shape, StridesOf(view.shape, arrangement), nullptr};
  PlaceGuarded(arranged, GuardedMemory::Side::kEnd, memory);
  if (*NumElements(view.shape) == 0) return arranged;
  Dims index(view.shape.size(), 0);
  do {
    Dims from = index;
    if (IsBroadcast(arrangement) && !from.empty()) {
      (arrangement == Arrangement::kBroadcast ? from.front() : from.back()) = 0;
    }
    Set(arranged, index, At(view, from));
  } while (NextIndex(view.shape, absl::MakeSpan(index)));
  return arranged;
}

std::string BytesOf(const TensorView& view) {
  const ByteRange range = Footprint(view).value();
  return std::string(static_cast<const char*>(view.data) + range.begin, static_cast<size_t>(range.end - range.begin));
}

bool GapsAreUntouched(const TensorView& view, int poison) {
  std::string bytes = BytesOf(view);
  if (bytes.empty()) return true;
  const int64_t begin = Footprint(view)->begin;
  Dims index(view.shape.size(), 0);
  const size_t element = static_cast<size_t>(ByteSize(view.type));
  do {
    std::memset(&bytes[ElementOffset(view, index) * element - begin], poison, element);
  } while (NextIndex(view.shape, absl::MakeSpan(index)));
  return bytes.find_first_not_of(static_cast<char>(poison)) == std::string::npos;
}

}  // namespace nestor
