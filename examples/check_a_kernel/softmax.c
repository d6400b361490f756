// Three kernels of softmax over rows. The first is right.
#include <math.h>
#include <stdint.h>

static float Greatest(const float* x, int64_t C) {
  float greatest = -INFINITY;
  for (int64_t c = 0; c < C; ++c) {
    if (!(x[c] <= greatest)) greatest = x[c];
  }
  return greatest;
}

int softmax(const float* x, float* y, int64_t N, int64_t C) {
  for (int64_t n = 0; n < N; ++n, x += C, y += C) {
    const float greatest = Greatest(x, C);
    float sum = 0;
    for (int64_t c = 0; c < C; ++c) sum += y[c] = expf(x[c] - greatest);
    for (int64_t c = 0; c < C; ++c) y[c] /= sum;
  }
  return 0;
}

// Wrong: the division is done for 16 elements at a time, and for what remains, unless that
// is a single one.
int softmax_by_16(const float* x, float* y, int64_t N, int64_t C) {
  for (int64_t n = 0; n < N; ++n, x += C, y += C) {
    const float greatest = Greatest(x, C);
    float sum = 0;
    for (int64_t c = 0; c < C; ++c) sum += expf(x[c] - greatest);
    int64_t c = 0;
    for (; c + 16 <= C; c += 16) {
      for (int i = 0; i < 16; ++i) y[c + i] = expf(x[c + i] - greatest) / sum;
    }
    if (C - c > 1) {
      for (; c < C; ++c) y[c] = expf(x[c] - greatest) / sum;
    }
  }
  return 0;
}

// Wrong: each element is loaded while the one before it is at work, which behind the last
// row reads what is not there.
int softmax_ahead(const float* x, float* y, int64_t N, int64_t C) {
  for (int64_t n = 0; n < N; ++n, x += C, y += C) {
    const float greatest = Greatest(x, C);
    float sum = 0;
    float next = x[0];
    for (int64_t c = 0; c < C; ++c) {
      const float now = next;
      next = x[c + 1];
      sum += y[c] = expf(now - greatest);
    }
    for (int64_t c = 0; c < C; ++c) y[c] /= sum;
  }
  return 0;
}
