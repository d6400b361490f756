// The C function that an op's kernel is: its parameters, and the header that declares it.
//
//   int softmax(const float* x, float* y, int64_t N0, int64_t C);
//
// In this order: a pointer for each argument and each result of the signature; the
// dimensions as they first appear in it; the $params, of their own types. A float narrower than
// f32 is an unsigned integer, its bits. An argument of which only the shape is used has no pointer.
// It returns kKernelDone or kKernelDeclines.
#ifndef NESTOR_CHECK_C_PROTOTYPE_H_
#define NESTOR_CHECK_C_PROTOTYPE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "uops/dtype.h"
#include "uops/op.h"

namespace nestor {

constexpr int kKernelDone = 0;
constexpr int kKernelDeclines = 1;  // it does not do these sizes; the results are not read

// Whether `name` is reserved in C or C++, so that nothing can have this name.
bool IsTakenInC(absl::string_view name);

// The C type that a kernel is passed; 16-bit floats, which C does not have, are passed
// as their bits.
std::string CType(DType type);

struct CParameter {
  enum class Kind { kInput, kOutput, kStride, kDimension, kParam };
  Kind kind;
  DType type;        // of what a pointer points to; of a stride and a dimension i64
  std::string name;  // in C: no keyword, and distinct
  std::string of;    // the argument, result, dimension or $param
  int axis = 0;      // of a stride
};

struct CPrototypeOptions {
  // Each pointer is followed by a stride for each axis, in elements. Otherwise tensors are
  // compact and row-major.
  bool strided = false;
  // The function's name; empty: the op's.
  std::string symbol;
};

struct CPrototype {
  std::string symbol;
  bool strided = false;
  std::vector<CParameter> parameters;
};

CPrototype CPrototypeOf(const Op& op, const CPrototypeOptions& options = {});

// A whole header, for C99 and C++: the op in the notation as a comment, and the function,
// each parameter with its type and shape in the notation. `conditions`: further conditions on the
// sizes, as a macro op states them. REQUIRES: `prototype` is of `op`.
std::string CHeader(const Op& op, const CPrototype& prototype,
                    absl::Span<const std::string> conditions = {});

}  // namespace nestor

#endif  // NESTOR_CHECK_C_PROTOTYPE_H_
