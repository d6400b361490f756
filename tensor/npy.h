// Tensors in .npy files, the format of numpy.save: a short text header, then the
// elements. Specification: numpy/lib/format.py, "Format Version 1.0" to "3.0".
//
//   read     versions 1.0, 2.0, 3.0; C and Fortran order; both byte orders
//   written  version 1.0, C order, little endian
//
// with up to 64 axes, as in numpy, and these types:
//
//   file    |b1  |u1 |i1 <u2 <i2 <u4 <i4 <u8 <i8 <f2 <f4 <f8
//   tensor  bool u8  i8  u16 i16 u32 i32 u64 i64 f16 f32 f64
//
// A float that numpy lacks travels as the unsigned integer of its bits. So `<u2` (and
// the `<V2` that numpy makes of ml_dtypes.bfloat16) is read as bf16 where the caller
// expects that, `<u2` as u16 elsewhere, and bf16 is written as `<u2`. All other types
// (complex, objects, structures) are refused: nothing is converted silently.
//
// Files are not trusted. Whatever is in them, reading ends in a Tensor or in a
// Status that names the file and what is wrong with it, and takes memory in
// proportion to the bytes that are there, not to those that the header claims.
//
// Thread-safety: all are safe to call at once; if several writers write one path, the last to
// finish wins.
#ifndef NESTOR_TENSOR_NPY_H_
#define NESTOR_TENSOR_NPY_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tensor/tensor.h"
#include "uops/dtype.h"

namespace nestor {

// Reads the one array of a file or pipe, in whatever order it is stored, as a
// compact tensor. With `expected`, a file of another type is an error.
//   NotFound, PermissionDenied, ...  the system refuses the file
//   InvalidArgument    not a .npy file, malformed, truncated, too long, or not
//                      of the expected type
//   Unimplemented      well-formed, but a version or type that is not listed above
//   ResourceExhausted  no memory
absl::StatusOr<Tensor> ReadNpy(const std::string& path,
                               absl::optional<DType> expected = absl::nullopt);

// The same for a file's bytes; errors start with ".npy data".
absl::StatusOr<Tensor> ReadNpyFromString(absl::string_view bytes,
                                         absl::optional<DType> expected = absl::nullopt);

// Writes a view of any strides. The file appears whole or not at all: it is written beside its
// target and then renamed over it; on failure, the target is as it was and nothing else is left. An
// existing file's permissions, and a symbolic link, are kept. A target that exists and is no
// regular file (a pipe, /dev/stdout) is written directly. Errors: those of the system, of
// CheckView, InvalidArgument above 64 axes.
absl::Status WriteNpy(const std::string& path, const TensorView& view);

// The bytes that WriteNpy would write.
absl::StatusOr<std::string> WriteNpyToString(const TensorView& view);

}  // namespace nestor

#endif  // NESTOR_TENSOR_NPY_H_
