// Kernels of the ops of kernels.nestor, each with the prototype that `nestor header` prints
// for it: the compiler holds them against kernels.h.
#include "check/testdata/kernels.h"

#include <string.h>

int every_type(const bool* b, const uint8_t* u, const int8_t* c, const int32_t* i, const int64_t* l, const uint16_t* g,
               const uint16_t* h, const float* f, const double* d, bool* yb, uint8_t* yu, int8_t* yc, int32_t* yi,
               int64_t* yl, uint16_t* yg, uint16_t* yh, float* yf, double* yd, int64_t N) {
  for (int64_t n = 0; n < N; ++n) {
    yb[n] = b[n];
    yu[n] = u[n];
    yc[n] = c[n];
    yi[n] = i[n];
    yl[n] = l[n];
    yg[n] = g[n];
    yh[n] = h[n];
    yf[n] = f[n];
    yd[n] = d[n];
  }
  return 0;
}

int every_param(bool* yb, uint8_t* yu, int8_t* yc, int32_t* yi, int64_t* yl, uint16_t* yg, uint16_t* yh, float* yf,
                double* yd, bool b, uint8_t u, int8_t c, int32_t i, int64_t l, uint16_t g, uint16_t h, float f,
                double d) {
  *yb = b;
  *yu = u;
  *yc = c;
  *yi = i;
  *yl = l;
  *yg = g;
  *yh = h;
  *yf = f;
  *yd = d;
  return 0;
}

int many_floats(double* y, float p0, double p1, float p2, double p3, float p4, double p5, float p6, double p7, float p8,
                double p9) {
  y[0] = p1;
  y[1] = p3;
  y[2] = p5;
  y[3] = p7;
  y[4] = p9;
  y[5] = p0 + p2 + p4 + p6 + p8;
  return 0;
}

int strided(const float* a, int64_t a_stride0, int64_t a_stride1, const double* b, int64_t b_stride0, float* c,
            int64_t c_stride0, int64_t c_stride1, double* d, int64_t d_stride0, int64_t d_stride1, int64_t M, int64_t N,
            int64_t K) {
  for (int64_t i = 0; i < M; ++i) {
    for (int64_t j = 0; j < N; ++j) c[i * c_stride0 + j * c_stride1] = a[i * a_stride0 + j * a_stride1];
  }
  for (int64_t j = 0; j < N; ++j) {
    for (int64_t k = 0; k < K; ++k) d[j * d_stride0 + k * d_stride1] = b[j * b_stride0];
  }
  return 0;
}

int scalar(const float* x, float* y) {
  *y = *x + 1.0f;
  return 0;
}

int keywords(const float* int_2, const float* x_stride0, const float* N, float* double_2, float* float_2,
             int64_t while_2, int64_t M, int64_t M_2, int64_t N_2, float for_2) {
  (void)N_2;
  for (int64_t i = 0; i < while_2; ++i) double_2[i] = int_2[i] * x_stride0[i] * for_2;
  for (int64_t i = 0; i < M_2; ++i) float_2[i] = i < M ? N[i] : 0.0f;
  return 0;
}

int compound(const float* x, float* y, int64_t C, int64_t K, int64_t r) {
  for (int64_t i = 0; i < 2 * C; ++i) {
    float sum = 0.0f;
    for (int64_t j = 0; j < K + r; ++j) sum += x[i * (K + r) + j];
    y[i] = sum;
  }
  return 0;
}

// The number of elements says what is returned; one more than there are: -1.
int codes(const int32_t* x, int32_t* y, int64_t N) {
  for (int64_t i = 0; i < N; ++i) y[i] = x[i] + 1;
  return N < 4 ? (int)N : -1;
}
