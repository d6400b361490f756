// A machine that has less than this one.
#ifndef NESTOR_JIT_RUNTIME_CPU_FEATURES_TESTING_H_
#define NESTOR_JIT_RUNTIME_CPU_FEATURES_TESTING_H_

#include "absl/strings/string_view.h"

namespace nestor::jit {

// While it lives, CheckIsa answers as on a machine that lacks this requirement of a set, named as
// in refusals ("AVX512F"); with "AVX512_VNNI", HasDotProducts does. One at a time.
class LackForTesting {
 public:
  explicit LackForTesting(absl::string_view requirement);
  ~LackForTesting();
  LackForTesting(const LackForTesting&) = delete;
  LackForTesting& operator=(const LackForTesting&) = delete;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_RUNTIME_CPU_FEATURES_TESTING_H_
