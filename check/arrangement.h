// How the elements of a tensor lie in memory, and views of them between guard pages.
#ifndef NESTOR_CHECK_ARRANGEMENT_H_
#define NESTOR_CHECK_ARRANGEMENT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "check/guarded_memory.h"
#include "tensor/tensor.h"

namespace nestor {

enum class Arrangement {
  kCompact,
  kTransposed,   // the first axis runs fastest
  kEverySecond,  // of the last axis
  kEveryThird,
  kReversed,      // all axes run backwards
  kRowsApart,     // two elements lie between rows
  kBroadcastRow,  // the last axis has stride 0; its elements become those of index 0
  kBroadcast,     // the first axis has
};
constexpr Arrangement kArrangements[] = {
    Arrangement::kCompact,      Arrangement::kTransposed, Arrangement::kEverySecond,
    Arrangement::kEveryThird,   Arrangement::kReversed,   Arrangement::kRowsApart,
    Arrangement::kBroadcastRow, Arrangement::kBroadcast,
};
absl::string_view Name(Arrangement arrangement);

// In elements.
Dims StridesOf(const Dims& shape, Arrangement arrangement);

// The byte that poisons memory: as a float of any type, a NaN.
constexpr int kPoison = 0xff;

// Gives a view without memory new memory of just the right size.
GuardedMemory MemoryUnder(TensorView& view, GuardedMemory::Side side, size_t alignment = 1,
                          GuardedPool* pool = nullptr);

// Gives a view without memory poisoned memory, which is added to `memory`.
void PlaceGuarded(TensorView& view, GuardedMemory::Side side, std::vector<GuardedMemory>& memory,
                  GuardedPool* pool = nullptr);

// Sets all bytes from the view's first element in memory to its last.
void FillBytes(const TensorView& view, int byte);

// Puts elements, which lie compactly in row-major order, where those of the view lie.
void PutElements(const void* elements, const TensorView& view);

// The same elements in another arrangement (but for a broadcast one). The view points into memory
// that is added to `memory`.
TensorView Arranged(const TensorView& view, Arrangement arrangement,
                    std::vector<GuardedMemory>& memory);

// The bytes from the view's first element in memory to its last. The second form copies them.
absl::string_view BytesUnder(const TensorView& view);
std::string BytesOf(const TensorView& view);

// Whether the bytes between the elements are still `poison`.
bool GapsAreUntouched(const TensorView& view, int poison = kPoison);

}  // namespace nestor

#endif  // NESTOR_CHECK_ARRANGEMENT_H_
