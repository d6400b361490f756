// Draws the types and literals of random programs and says which scalar ops they may use. The
// options restrict all three, for gradients and difference quotients; this is the one place
// that knows how.
#ifndef NESTOR_CHECK_ENGINES_SCALAR_GENERATOR_H_
#define NESTOR_CHECK_ENGINES_SCALAR_GENERATOR_H_

#include "check/engines/program_generator.h"
#include "check/random.h"
#include "uops/dtype.h"
#include "uops/scalar_op.h"

namespace nestor {

class ScalarGenerator {
 public:
  // The arguments outlive this.
  ScalarGenerator(const GeneratorOptions& options, Random& random)
      : options_(options), random_(random) {}

  DType FloatType();
  // Any integer type; most often i64.
  DType IndexType();
  // Any type; with floats_only a float type.
  DType ValueType();
  // A constant that a literal can denote.
  Scalar Literal(DType type);

  bool Allowed(ScalarOp op) const;

 private:
  const GeneratorOptions& options_;
  Random& random_;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_SCALAR_GENERATOR_H_
