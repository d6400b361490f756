// Values to check a kernel on: of many characters, since each finds other faults.
#ifndef NESTOR_CHECK_VALUES_H_
#define NESTOR_CHECK_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "check/draw_elements.h"
#include "check/random.h"
#include "check/sizes.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

struct ValueOptions {
  // Infinities and NaN among the floats. A read out of range is 0 in the notation, and 0 * NaN is
  // NaN: a kernel that skips a padded tap is right only where its weight is finite.
  bool special = false;
  // Indices into an axis may lie outside of it, which reads as a fill. Without this only those do
  // with which the op deals itself: x[k[i] % N], x[min(max(k[i], 0), N - 1)], x[k[i] | 5.0].
  bool indices_outside = false;
  // Floats, and integers that index nothing, lie in [low, high].
  double low = -1e300, high = 1e300;
};

// Floats of a tensor have one character (check/draw_elements.h), drawn for each tensor.
// Immutable, so thread-safe.
class ValueDrawer {
 public:
  // `bounds`: for an argument, the bound that its values are below; its floats are then at least 0.
  ValueDrawer(const Op& op, const ValueOptions& options,
              absl::flat_hash_map<std::string, int64_t> bounds = {});

  // Draws the values of op.args[number]. `sizes` bind the axes that integers index.
  // `overflows`: floats may be so large that most results overflow. False where indices have
  // nothing to point at.
  bool Draw(int number, const SymbolValues& sizes, bool overflows, Random& random,
            Tensor& tensor) const;
  // Whether a value of op.args[number] lies in its range: an index in its axis, a float between
  // low and high.
  bool Allows(int number, const SymbolValues& sizes, const Scalar& value) const;
  // Brings indices that an argument holds into the axes that they index; false where these
  // are empty.
  bool FitIndices(int number, const SymbolValues& sizes, Tensor& tensor) const;
  // Draws the value of a $param that is no integer.
  Scalar DrawParam(const ParamInfo& param, Random& random) const;

 private:
  struct Indexed {  // by an integer argument: an axis
    int argument;
    IndexId extent;
    bool may_be_outside;  // a remainder, a minimum and a maximum, or a fill takes care of it
  };
  void FindIndexed();
  // Whether the axis that the tensor's elements index has elements.
  bool HasPlaces(int number, const SymbolValues& sizes, const Tensor& tensor) const;
  int64_t IndexBound(int number, const SymbolValues& sizes) const;
  int64_t BoundOf(int number, const SymbolValues& sizes) const;
  ValueOptions OptionsOf(int number, const SymbolValues& sizes) const;
  bool MayBeOutside(int number) const;
  IntegerDraw IntegersOf(DType type, Random& random) const;

  Op op_;
  ValueOptions options_;
  absl::flat_hash_map<std::string, int64_t> bounds_;
  std::vector<Indexed> indexed_;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_VALUES_H_
