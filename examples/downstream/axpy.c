// A kernel of axpy.nestor, as `nestor header axpy.nestor` declares it.
#include <stdint.h>

int axpy(const float* x, const float* y, float* z, int64_t N, float a) {
  for (int64_t i = 0; i < N; ++i) z[i] = a * x[i] + y[i];
  return 0;
}
