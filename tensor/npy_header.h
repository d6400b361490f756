// The header of a .npy file, and the type of its elements. Internal to npy.cc.
#ifndef NESTOR_TENSOR_NPY_HEADER_H_
#define NESTOR_TENSOR_NPY_HEADER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tensor/tensor.h"

namespace nestor {

constexpr absl::string_view kNpyMagic("\x93NUMPY", 6);
constexpr int kMaxNpyRank = 64;  // numpy's own limit

template <class... Pieces>
absl::Status Malformed(const Pieces&... pieces) {
  return absl::InvalidArgumentError(absl::StrCat(pieces...));
}

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  Dims shape;
};

// Parses the dictionary. InvalidArgument or Unimplemented, with the place, if it does not have
// the format.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text);

// Everything before the elements, which start at a multiple of 64 bytes.
std::string NpyHeaderBytes(const TensorView& view);

// How the elements of a file are stored.
struct NpyElement {
  DType type;
  bool swapped;  // big endian
};

// `expected`: the type that the elements must be of, if it is known.
absl::StatusOr<NpyElement> NpyElementOf(absl::string_view descr, absl::optional<DType> expected);

}  // namespace nestor

#endif  // NESTOR_TENSOR_NPY_HEADER_H_
