// An arrangement changes the strides of compact memory. A view then gets as many guarded bytes as
// its elements span. Copies go row by row, so that a row of any stride is one loop.
#include "check/arrangement.h"

#include <algorithm>
#include <cstring>

namespace nestor {
namespace {

bool IsBroadcast(Arrangement arrangement) {
  return arrangement == Arrangement::kBroadcast || arrangement == Arrangement::kBroadcastRow;
}

// Calls visit(first element, the bytes from one to the next) for each row of the last axis.
// REQUIRES: a view that has elements.
template <class Visit>
void VisitRows(const TensorView& view, const Visit& visit) {
  const int64_t size = ByteSize(view.type),
                step = view.shape.empty() ? 0 : view.strides.back() * size;
  Dims outer = view.shape;
  if (!outer.empty()) outer.back() = 1;
  Dims index(outer.size(), 0);
  do visit(static_cast<char*>(view.data) + ElementOffset(view, index) * size, step);
  while (NextIndex(outer, absl::MakeSpan(index)));
}

// Copies `row` elements of kBytes each from `from + i * from_step` to `to + i * to_step`.
template <int kBytes>
void CopyRow(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t row) {
  for (int64_t i = 0; i < row; ++i) std::memcpy(to + i * to_step, from + i * from_step, kBytes);
}

// The size of an element is a template argument, so that memcpy becomes one load and one store.
using RowCopier = void (*)(const char*, int64_t, char*, int64_t, int64_t);
RowCopier RowCopierOf(DType type) {
  switch (ByteSize(type)) {
    case 1: return &CopyRow<1>;
    case 2: return &CopyRow<2>;
    case 4: return &CopyRow<4>;
    default: return &CopyRow<8>;
  }
}

int64_t RowLength(const TensorView& view) { return view.shape.empty() ? 1 : view.shape.back(); }
bool IsEmpty(const TensorView& view) { return *NumElements(view.shape) == 0; }

}  // namespace

absl::string_view Name(Arrangement arrangement) {
  constexpr absl::string_view kNames[] = {"compact",  "transposed", "every second",  "every third",
                                          "reversed", "rows apart", "broadcast row", "broadcast"};
  return kNames[static_cast<int>(arrangement)];
}

// In elements; where they are negative or 0, the caller moves the first element or shares it.
// Of a [2, 3]:
//   compact [3, 1]   transposed [1, 2]   every second [6, 2]
//   reversed [-3, -1]   rows apart [5, 1]   broadcast row [3, 0]
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

GuardedMemory MemoryUnder(TensorView& view, GuardedMemory::Side side, size_t alignment,
                          GuardedPool* pool) {
  // Footprint refuses a view without memory, so it gets some that is not used.
  static char nothing[1];
  view.data = nothing;
  const ByteRange range = Footprint(view).value();
  GuardedMemory memory(static_cast<size_t>(range.end - range.begin), side, alignment, pool);
  // Where strides are negative, elements lie below the one with index 0, by up to -range.begin
  // bytes.
  view.data = memory.data() - range.begin;
  return memory;
}

void PlaceGuarded(TensorView& view, GuardedMemory::Side side, std::vector<GuardedMemory>& memory,
                  GuardedPool* pool) {
  memory.push_back(MemoryUnder(view, side, 1, pool));
  FillBytes(view, kPoison);
}

void FillBytes(const TensorView& view, int byte) {
  const absl::string_view bytes = BytesUnder(view);
  if (!bytes.empty()) std::memset(const_cast<char*>(bytes.data()), byte, bytes.size());
}

void PutElements(const void* elements, const TensorView& view) {
  if (IsEmpty(view)) return;
  const char* from = static_cast<const char*>(elements);
  if (IsContiguous(view)) {
    std::memcpy(view.data, from, BytesUnder(view).size());
    return;
  }
  const int64_t size = ByteSize(view.type), row = RowLength(view);
  const RowCopier copy = RowCopierOf(view.type);
  VisitRows(view, [&](char* to, int64_t step) {
    copy(from, size, to, step, row);
    from += row * size;
  });
}

// A copy whose elements lie as `arrangement` says, at the end of guarded pages. A broadcast one has
// one element in the place of many, so it takes the first of them.
TensorView Arranged(const TensorView& view, Arrangement arrangement,
                    std::vector<GuardedMemory>& memory) {
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

absl::string_view BytesUnder(const TensorView& view) {
  const ByteRange range = Footprint(view).value();
  return {static_cast<const char*>(view.data) + range.begin,
          static_cast<size_t>(range.end - range.begin)};
}

std::string BytesOf(const TensorView& view) { return std::string(BytesUnder(view)); }

bool GapsAreUntouched(const TensorView& view, int poison) {
  std::string bytes = BytesOf(view);
  if (bytes.empty()) return true;
  TensorView copy = view;
  copy.data = &bytes[0] - Footprint(view)->begin;
  // Overwrites the elements of a copy with poison: if the gaps are whole, all bytes are equal then.
  // A step of 0 puts the same poisoned element everywhere.
  const std::string poisoned(sizeof(Bits), static_cast<char>(poison));
  const RowCopier put = RowCopierOf(view.type);
  VisitRows(copy,
            [&](char* to, int64_t step) { put(poisoned.data(), 0, to, step, RowLength(view)); });
  return AllAre(poison, bytes.data(), bytes.size());
}

}  // namespace nestor
