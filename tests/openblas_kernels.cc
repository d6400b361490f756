// BLAS describes a matrix by its address, whether it is transposed, and the distance between its
// rows (or, transposed, columns), as does a view with one stride of 1.
#include <cblas.h>

#include <algorithm>

#include "tests/peer_kernels.h"

namespace nestor {
namespace {

struct Matrix {
  bool transposed = false;  // the first axis runs fastest
  int ld = 0;               // between rows, or else columns
  void* data = nullptr;
};

// nullopt where the view is no matrix of BLAS. The stride of an axis of one element
// does not matter.
absl::optional<Matrix> MatrixOf(const TensorView& view) {
  const int64_t rows = view.shape[0], columns = view.shape[1];
  const int64_t across = rows > 1 ? view.strides[0] : std::max<int64_t>(columns, 1);
  const int64_t along = columns > 1 ? view.strides[1] : std::max<int64_t>(rows, 1);
  if ((columns <= 1 || along == 1) && across >= std::max<int64_t>(columns, 1)) {
    return Matrix{false, static_cast<int>(across), view.data};
  }
  if ((rows <= 1 || across == 1) && along >= std::max<int64_t>(rows, 1)) {
    return Matrix{true, static_cast<int>(along), view.data};
  }
  return absl::nullopt;
}

CBLAS_TRANSPOSE Transposed(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

void Gemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
          float alpha, const Matrix& a, const Matrix& b, float beta, const Matrix& c) {
  cblas_sgemm(order, ta, tb, m, n, k, alpha, static_cast<float*>(a.data), a.ld,
              static_cast<float*>(b.data), b.ld, beta, static_cast<float*>(c.data), c.ld);
}
void Gemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
          double alpha, const Matrix& a, const Matrix& b, double beta, const Matrix& c) {
  cblas_dgemm(order, ta, tb, m, n, k, alpha, static_cast<double*>(a.data), a.ld,
              static_cast<double*>(b.data), b.ld, beta, static_cast<double*>(c.data), c.ld);
}

// c = alpha a b + beta c. The order is that of c; operands of the other order count as transposed.
template <class T>
absl::Status Product(const TensorView& a, const TensorView& b, const TensorView& c, T alpha = 1,
                     T beta = 0) {
  const auto left = MatrixOf(a), right = MatrixOf(b), result = MatrixOf(c);
  if (!left || !right || !result) return absl::UnimplementedError("not a matrix of BLAS");
  Gemm(result->transposed ? CblasColMajor : CblasRowMajor,
       Transposed(left->transposed != result->transposed),
       Transposed(right->transposed != result->transposed), static_cast<int>(c.shape[0]),
       static_cast<int>(c.shape[1]), static_cast<int>(a.shape[1]), alpha, *left, *right, beta,
       *result);
  return absl::OkStatus();
}

// ---- Kernels

template <class T>
absl::Status Matmul(const KernelCall& k) {
  return Product<T>(k.view("a"), k.view("b"), k.view("c"));
}

template <class T>
absl::Status MatmulGradient(const KernelCall& k) {
  const absl::Status status = Product<T>(k.view("g_c"), Transpose(k.view("b")), k.view("g_a"));
  if (!status.ok()) return status;
  return Product<T>(Transpose(k.view("a")), k.view("g_c"), k.view("g_b"));
}

template <class T>
absl::Status ScaledProduct(const KernelCall& k) {
  Copy(k.view("c"), k.view("y"));
  return Product<T>(k.view("a"), k.view("b"), k.view("y"), k.param<T>("alpha"), k.param<T>("beta"));
}

void Gemv(CBLAS_TRANSPOSE t, int m, int n, const Matrix& a, const float* x, int dx, float* y,
          int dy) {
  cblas_sgemv(CblasRowMajor, t, m, n, 1, static_cast<float*>(a.data), a.ld, x, dx, 0, y, dy);
}
void Gemv(CBLAS_TRANSPOSE t, int m, int n, const Matrix& a, const double* x, int dx, double* y,
          int dy) {
  cblas_dgemv(CblasRowMajor, t, m, n, 1, static_cast<double*>(a.data), a.ld, x, dx, 0, y, dy);
}

// A transposed matrix is one with rows and columns exchanged.
template <class T>
absl::Status MatrixVector(const KernelCall& k) {
  const auto a = MatrixOf(k.view("a"));
  const int dx = static_cast<int>(k.stride("x", 0)), dy = static_cast<int>(k.stride("y", 0));
  if (!a || dx <= 0 || dy <= 0) return absl::UnimplementedError("not a matrix or vector of BLAS");
  const int m = static_cast<int>(k.dim("M")), n = static_cast<int>(k.dim("N"));
  Gemv(Transposed(a->transposed), a->transposed ? n : m, a->transposed ? m : n, *a, k.input<T>("x"),
       dx, k.output<T>("y"), dy);
  return absl::OkStatus();
}

float Dot(int n, const float* x, const float* y) { return cblas_sdot(n, x, 1, y, 1); }
double Dot(int n, const double* x, const double* y) { return cblas_ddot(n, x, 1, y, 1); }
float Norm(int n, const float* x) { return cblas_snrm2(n, x, 1); }
double Norm(int n, const double* x) { return cblas_dnrm2(n, x, 1); }

template <class T>
absl::Status DotProduct(const KernelCall& k) {
  *k.output<T>("z") = Dot(static_cast<int>(k.dim("N")), k.input<T>("x"), k.input<T>("y"));
  return absl::OkStatus();
}

template <class T>
absl::Status EuclideanNorm(const KernelCall& k) {
  *k.output<T>("y") = Norm(static_cast<int>(k.dim("N")), k.input<T>("x"));
  return absl::OkStatus();
}

constexpr char kGemm[] =
    "op gemm(a: T[M, K], b: T[K, N], c: T[M, N]; $alpha: T, $beta: T) -> (y) {\n"
    "  y[i, j] = $alpha * sum[k](a[i, k] * b[k, j]) + $beta * c[i, j]\n}";
// As in BLAS, the operand of a factor of 0 is not read.
constexpr char kBlasGemm[] =
    "op blas_gemm(a: T[M, K], b: T[K, N], c: T[M, N]; $alpha: T, $beta: T) -> (y) {\n"
    "  p[i, j] = where($alpha == 0.0, 0.0, $alpha * sum[k](a[i, k] * b[k, j]))\n"
    "  y[i, j] = where($beta == 0.0, p[i, j], p[i, j] + $beta * c[i, j])\n}";
constexpr char kGemv[] = "op gemv(a: T[M, N], x: T[N]) -> (y) { y[i] = sum[j](a[i, j] * x[j]) }";
constexpr char kDot[] = "op dot(x: T[N], y: T[N]) -> (z) { z = sum[i](x[i] * y[i]) }";
constexpr char kNorm[] = "op nrm2(x: T[N]) -> (y) { y = sqrt(sum[i](square(x[i]))) }";

template <class T>
void AddKernels(char letter, std::vector<PeerKernel>& kernels) {
  const DType type = DTypeOf<T>();
  const auto options = [&](Layouts layouts) {
    return CheckOptions().Types({type}).Layouts(layouts);
  };
  const auto name = [&](const char* rest) { return std::string(1, letter) + rest; };
  kernels.push_back({name("gemm"), "matmul", Matmul<T>, options(Layouts::kTransposed)});
  kernels.push_back({name("gemm, gradients of matmul"),
                     GradientOf("matmul", {"a", "b"}, {"g_c", "a", "b"}, type), MatmulGradient<T>,
                     options(Layouts::kTransposed)});
  kernels.push_back({name("gemm with alpha and beta"), kGemm, ScaledProduct<T>,
                     options(Layouts::kTransposed),
                     "where alpha is 0 nothing is multiplied: a sum that overflows"});
  kernels.push_back({name("gemm, alpha and beta of BLAS"), kBlasGemm, ScaledProduct<T>,
                     options(Layouts::kTransposed).Values({true}),
                     "small matrices are read where alpha is 0: NaN of an infinity"});
  kernels.push_back({name("gemm, infinities and NaN"), "matmul", Matmul<T>,
                     options(Layouts::kTransposed).Values({true})});
  kernels.push_back({name("gemv"), kGemv, MatrixVector<T>, options(Layouts::kTransposed),
                     "where N is 0 the result is not written"});
  kernels.push_back(
      {name("gemv, N > 0"), kGemv, MatrixVector<T>, options(Layouts::kTransposed).Where("N > 0")});
  kernels.push_back({name("dot"), kDot, DotProduct<T>, options(Layouts::kContiguous)});
  kernels.push_back({name("nrm2"), kNorm, EuclideanNorm<T>, options(Layouts::kContiguous),
                     "squares do not underflow or overflow, as they do in the op"});
}

}  // namespace

std::vector<PeerKernel> OpenBlasKernels() {
  std::vector<PeerKernel> kernels;
  AddKernels<float>('s', kernels);
  AddKernels<double>('d', kernels);
  return kernels;
}

}  // namespace nestor
