// The elements of a tensor in row-major order: lists of them, and walks over them.
#ifndef NESTOR_CHECK_ELEMENTS_H_
#define NESTOR_CHECK_ELEMENTS_H_

#include <cstdint>
#include <type_traits>
#include <vector>

#include "tensor/tensor.h"

namespace nestor {

// Elements of a result by their row-major numbers; one list for each result.
using ElementLists = std::vector<std::vector<int64_t>>;

// A value of an element type as a double; exact but for large int64.
template <class T>
double AsDouble(T value) {
  return static_cast<double>(Widened(value));
}

// An element of an array in memory; a bool is any byte but 0.
template <class T>
double NumberAt(const void* elements, int64_t i) {
  if constexpr (std::is_same_v<T, bool>) return static_cast<const uint8_t*>(elements)[i] != 0;
  else return AsDouble(static_cast<const T*>(elements)[i]);
}

// Calls `visit(double)` for each element.
template <class Visit>
void VisitNumbers(const Tensor& tensor, const Visit& visit) {
  VisitType(tensor.type(), [&](auto zero) {
    for (int64_t i = 0; i < tensor.num_elements(); ++i)
      visit(NumberAt<decltype(zero)>(tensor.data(), i));
  });
}

// Replaces each element of [begin, end) by `replaced(Scalar)`; returns whether that changes one.
template <class Replaced>
bool ReplaceElements(Tensor& tensor, int64_t begin, int64_t end, const Replaced& replaced) {
  const int64_t size = ByteSize(tensor.type());
  const ElementLoader load = LoaderOf(tensor.type());
  char* element = static_cast<char*>(tensor.data()) + begin * size;
  bool is_changed = false;
  for (int64_t i = begin; i < end; ++i, element += size) {
    const Scalar before{tensor.type(), load(element)}, after = replaced(before);
    if (before == after) continue;
    Store(after, element);
    is_changed = true;
  }
  return is_changed;
}

}  // namespace nestor

#endif  // NESTOR_CHECK_ELEMENTS_H_
