// One short function per macro op: the definition as nested loops over flat row-major arrays,
// nothing shared between ops but the handling of shapes. Speed is no concern, being obviously right
// is. The one entry point is NaiveOps().

#include "tests/naive_ops.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace nestor {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t Elements(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
}

NaiveTensor Zeros(std::vector<int64_t> shape) {
  const int64_t elements = Elements(shape);
  return {std::move(shape), std::vector<double>(elements, 0.0)};
}

// The element of a rank-4 tensor, or `outside` where an index is out of bounds.
double At4(const NaiveTensor& x, int64_t i, int64_t j, int64_t k, int64_t l, double outside) {
  const std::vector<int64_t>& d = x.shape;
  if (i < 0 || i >= d[0] || j < 0 || j >= d[1] || k < 0 || k >= d[2] || l < 0 || l >= d[3])
    return outside;
  return x.data[((i * d[1] + j) * d[2] + k) * d[3] + l];
}

// How many elements stand before the last `axes` axes: the product of the pack's dimensions.
int64_t LeadingElements(const NaiveTensor& x, int axes) {
  return Elements({x.shape.begin(), x.shape.end() - axes});
}

std::vector<int64_t> WithLast(std::vector<int64_t> shape, int64_t last) {
  shape.back() = last;
  return shape;
}

double Param(const NaiveParams& params, const std::string& name, double otherwise) {
  const auto found = params.find(name);
  return found == params.end() ? otherwise : found->second;
}

int64_t IntParam(const NaiveParams& params, const std::string& name, int64_t otherwise) {
  return static_cast<int64_t>(Param(params, name, static_cast<double>(otherwise)));
}

// How many places a window that covers `reach` elements finds along an axis.
int64_t WindowPlaces(int64_t extent, int64_t pad, int64_t reach, int64_t stride) {
  const int64_t padded = extent + 2 * pad;
  int64_t places = 0;
  for (int64_t begin = 0; begin + reach <= padded; begin += stride) ++places;
  return places;
}

// softmax of one row, shifted by its largest element so that exp does not overflow.
std::vector<double> Softmax(const std::vector<double>& row) {
  double largest = -kInfinity;
  for (double x : row) largest = std::max(largest, x);
  double total = 0;
  for (double x : row) total += std::exp(x - largest);
  std::vector<double> result;
  for (double x : row) result.push_back(std::exp(x - largest) / total);
  return result;
}

std::vector<double> LogSoftmax(const std::vector<double>& row) {
  double largest = -kInfinity;
  for (double x : row) largest = std::max(largest, x);
  double total = 0;
  for (double x : row) total += std::exp(x - largest);
  std::vector<double> result;
  for (double x : row) result.push_back(x - (largest + std::log(total)));
  return result;
}

// Applies `row_op` to each row along the last axis.
NaiveTensor MapRows(const NaiveTensor& x,
                    const std::function<std::vector<double>(const std::vector<double>&)>& row_op) {
  NaiveTensor y = Zeros(x.shape);
  const int64_t length = x.shape.back();
  for (int64_t row = 0; row < LeadingElements(x, 1); ++row) {
    const auto begin = x.data.begin() + row * length;
    const std::vector<double> result = row_op(std::vector<double>(begin, begin + length));
    std::copy(result.begin(), result.end(), y.data.begin() + row * length);
  }
  return y;
}

NaiveTensors MatmulOp(const NaiveTensors& inputs, const NaiveParams&) {
  const NaiveTensor& a = inputs.at("a");
  const NaiveTensor& b = inputs.at("b");
  const int64_t rows = a.shape[0], inner = a.shape[1], columns = b.shape[1];
  NaiveTensor c = Zeros({rows, columns});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t i = 0; i < inner; ++i) {
        c.data[row * columns + column] += a.data[row * inner + i] * b.data[i * columns + column];
      }
    }
  }
  return {{"c", c}};
}

NaiveTensors LinearOp(const NaiveTensors& inputs, const NaiveParams&) {
  const NaiveTensor& x = inputs.at("x");
  const NaiveTensor& w = inputs.at("w");
  const NaiveTensor& b = inputs.at("b");
  const int64_t features_out = w.shape[0], features_in = w.shape[1];
  NaiveTensor y = Zeros(WithLast(x.shape, features_out));
  for (int64_t row = 0; row < LeadingElements(x, 1); ++row) {
    for (int64_t out = 0; out < features_out; ++out) {
      double total = b.data[out];
      for (int64_t in = 0; in < features_in; ++in) {
        total += x.data[row * features_in + in] * w.data[out * features_in + in];
      }
      y.data[row * features_out + out] = total;
    }
  }
  return {{"y", y}};
}

// As in Caffe: each group of filters sees its own consecutive group of channels.
NaiveTensors Conv2dOp(const NaiveTensors& inputs, const NaiveParams& params) {
  const NaiveTensor& x = inputs.at("x");
  const NaiveTensor& w = inputs.at("w");
  const int64_t stride = IntParam(params, "stride", 1), pad = IntParam(params, "pad", 0);
  const int64_t dilation = IntParam(params, "dilation", 1), groups = IntParam(params, "groups", 1);
  const int64_t batch = x.shape[0], filters = w.shape[0], channels_per_group = w.shape[1];
  const int64_t filters_per_group = filters / groups;
  const int64_t height = WindowPlaces(x.shape[2], pad, dilation * (w.shape[2] - 1) + 1, stride);
  const int64_t width = WindowPlaces(x.shape[3], pad, dilation * (w.shape[3] - 1) + 1, stride);
  NaiveTensor y = Zeros({batch, filters, height, width});
  const auto at_point = [&](int64_t image, int64_t group, int64_t filter, int64_t top,
                            int64_t left) {
    double total = 0;
    for (int64_t c = 0; c < channels_per_group; ++c) {
      for (int64_t r = 0; r < w.shape[2]; ++r) {
        for (int64_t s = 0; s < w.shape[3]; ++s) {
          total += At4(w, filter, c, r, s, 0) * At4(x, image, group * channels_per_group + c,
                                                    top + r * dilation, left + s * dilation, 0);
        }
      }
    }
    return total;
  };
  size_t next = 0;  // y is filled in row-major order
  for (int64_t image = 0; image < batch; ++image) {
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t member = 0; member < filters_per_group; ++member) {
        for (int64_t i = 0; i < height; ++i) {
          for (int64_t j = 0; j < width; ++j) {
            y.data[next++] = at_point(image, group, group * filters_per_group + member,
                                      i * stride - pad, j * stride - pad);
          }
        }
      }
    }
  }
  return {{"y", y}};
}

// Calls `window_op` with the elements of each $k x $k window, `outside` standing for the padding.
NaiveTensor MapWindows(const NaiveTensor& x, const NaiveParams& params, double outside,
                       const std::function<double(const std::vector<double>&)>& window_op) {
  const int64_t k = IntParam(params, "k", 0), stride = IntParam(params, "stride", 0),
                pad = IntParam(params, "pad", 0);
  const int64_t height = WindowPlaces(x.shape[2], pad, k, stride),
                width = WindowPlaces(x.shape[3], pad, k, stride);
  NaiveTensor y = Zeros({x.shape[0], x.shape[1], height, width});
  size_t next = 0;  // y is filled in row-major order
  for (int64_t image = 0; image < x.shape[0]; ++image) {
    for (int64_t channel = 0; channel < x.shape[1]; ++channel) {
      for (int64_t i = 0; i < height; ++i) {
        for (int64_t j = 0; j < width; ++j) {
          std::vector<double> window;
          for (int64_t r = 0; r < k; ++r) {
            for (int64_t s = 0; s < k; ++s) {
              window.push_back(
                  At4(x, image, channel, i * stride - pad + r, j * stride - pad + s, outside));
            }
          }
          y.data[next++] = window_op(window);
        }
      }
    }
  }
  return y;
}

NaiveTensors MaxPool2dOp(const NaiveTensors& inputs, const NaiveParams& params) {
  return {
      {"y", MapWindows(inputs.at("x"), params, -kInfinity, [](const std::vector<double>& window) {
         double largest = -kInfinity;
         for (double x : window) largest = std::isnan(largest) || largest > x ? largest : x;
         return largest;
       })}};
}

NaiveTensors AvgPool2dOp(const NaiveTensors& inputs, const NaiveParams& params) {
  return {{"y", MapWindows(inputs.at("x"), params, 0, [](const std::vector<double>& window) {
             return std::accumulate(window.begin(), window.end(), 0.0) /
                    static_cast<double>(window.size());
           })}};
}

NaiveTensors SoftmaxOp(const NaiveTensors& inputs, const NaiveParams&) {
  return {{"y", MapRows(inputs.at("x"), Softmax)}};
}

NaiveTensors LogSoftmaxOp(const NaiveTensors& inputs, const NaiveParams&) {
  return {{"y", MapRows(inputs.at("x"), LogSoftmax)}};
}

// The mean negative log likelihood of the labels; NaN over an empty batch (0 / 0) or for a label
// that is no class.
NaiveTensors CrossEntropyOp(const NaiveTensors& inputs, const NaiveParams&) {
  const NaiveTensor log_likelihood = MapRows(inputs.at("logits"), LogSoftmax);
  const NaiveTensor& labels = inputs.at("labels");
  const int64_t batch = log_likelihood.shape[0], classes = log_likelihood.shape[1];
  double total = 0;
  for (int64_t n = 0; n < batch; ++n) {
    const int64_t label = static_cast<int64_t>(labels.data[n]);
    const bool is_class = label >= 0 && label < classes;
    total -= is_class ? log_likelihood.data[n * classes + label]
                      : std::numeric_limits<double>::quiet_NaN();
  }
  return {{"loss", {{}, {total / static_cast<double>(batch)}}}};
}

NaiveTensors LayerNormOp(const NaiveTensors& inputs, const NaiveParams& params) {
  const std::vector<double>& scale = inputs.at("scale").data;
  const std::vector<double>& bias = inputs.at("bias").data;
  const double epsilon = Param(params, "eps", 1e-5);
  return {{"y", MapRows(inputs.at("x"), [&](const std::vector<double>& row) {
             const double length = static_cast<double>(row.size());
             double mean = 0;
             for (double x : row) mean += x / length;
             double variance = 0;  // the biased one: divided by the length, not by one less
             for (double x : row) variance += (x - mean) * (x - mean) / length;
             std::vector<double> result;
             for (size_t i = 0; i < row.size(); ++i) {
               result.push_back((row[i] - mean) / std::sqrt(variance + epsilon) * scale[i] +
                                bias[i]);
             }
             return result;
           })}};
}

// softmax(q k^T / sqrt(D)) v for each matrix of the batch; `seen(l, s)` says which places s the
// place l attends to. The others are left out of the softmax altogether.
template <typename Seen>
NaiveTensors Attention(const NaiveTensors& inputs, const Seen& seen) {
  const NaiveTensor& q = inputs.at("q");
  const NaiveTensor& k = inputs.at("k");
  const NaiveTensor& v = inputs.at("v");
  const int64_t queries = q.shape[q.shape.size() - 2], depth = q.shape.back();
  const int64_t keys = k.shape[k.shape.size() - 2], width = v.shape.back();
  NaiveTensor y = Zeros(WithLast(q.shape, width));
  for (int64_t b = 0; b < LeadingElements(q, 2); ++b) {
    for (int64_t l = 0; l < queries; ++l) {
      std::vector<double> scores;
      std::vector<int64_t> places;
      for (int64_t s = 0; s < keys; ++s) {
        if (!seen(l, s)) continue;
        double dot = 0;
        for (int64_t d = 0; d < depth; ++d) {
          dot += q.data[(b * queries + l) * depth + d] * k.data[(b * keys + s) * depth + d];
        }
        scores.push_back(dot / std::sqrt(static_cast<double>(depth)));
        places.push_back(s);
      }
      const std::vector<double> weights = Softmax(scores);
      for (size_t i = 0; i < places.size(); ++i) {
        for (int64_t e = 0; e < width; ++e) {
          y.data[(b * queries + l) * width + e] +=
              weights[i] * v.data[(b * keys + places[i]) * width + e];
        }
      }
    }
  }
  return {{"y", y}};
}

NaiveTensors AttentionOp(const NaiveTensors& inputs, const NaiveParams&) {
  return Attention(inputs, [](int64_t, int64_t) { return true; });
}

NaiveTensors CausalAttentionOp(const NaiveTensors& inputs, const NaiveParams&) {
  return Attention(inputs, [](int64_t query, int64_t key) { return key <= query; });
}

// An id that is no row of the table gives zeros.
NaiveTensors EmbeddingOp(const NaiveTensors& inputs, const NaiveParams&) {
  const NaiveTensor& table = inputs.at("table");
  const NaiveTensor& ids = inputs.at("ids");
  const int64_t words = table.shape[0], width = table.shape[1];
  std::vector<int64_t> shape = ids.shape;
  shape.push_back(width);
  NaiveTensor y = Zeros(shape);
  for (size_t place = 0; place < ids.data.size(); ++place) {
    const int64_t id = static_cast<int64_t>(ids.data[place]);
    if (id < 0 || id >= words) continue;
    for (int64_t i = 0; i < width; ++i) y.data[place * width + i] = table.data[id * width + i];
  }
  return {{"y", y}};
}

// torch.optim.SGD with dampening 0, nesterov off. Its first step sets the buffer to the gradient,
// which is what m = 0 gives.
NaiveTensors SgdOp(const NaiveTensors& inputs, const NaiveParams& params) {
  NaiveTensor p = inputs.at("p");
  NaiveTensor m = inputs.at("m");
  const double rate = params.at("lr");
  const double momentum = Param(params, "momentum", 0),
               weight_decay = Param(params, "weight_decay", 0);
  for (size_t i = 0; i < p.data.size(); ++i) {
    const double gradient = inputs.at("g").data[i] + weight_decay * p.data[i];
    m.data[i] = momentum * m.data[i] + gradient;
    p.data[i] -= rate * m.data[i];
  }
  return {{"p_new", p}, {"m_new", m}};
}

// Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 1.
NaiveTensors AdamOp(const NaiveTensors& inputs, const NaiveParams& params) {
  NaiveTensor p = inputs.at("p");
  NaiveTensor m = inputs.at("m");
  NaiveTensor v = inputs.at("v");
  const double alpha = Param(params, "lr", 1e-3), epsilon = Param(params, "eps", 1e-8);
  const double beta1 = Param(params, "beta1", 0.9), beta2 = Param(params, "beta2", 0.999);
  const double step = params.at("step");
  for (size_t i = 0; i < p.data.size(); ++i) {
    const double gradient = inputs.at("g").data[i];
    m.data[i] = beta1 * m.data[i] + (1 - beta1) * gradient;
    v.data[i] = beta2 * v.data[i] + (1 - beta2) * gradient * gradient;
    const double m_hat = m.data[i] / (1 - std::pow(beta1, step));
    const double v_hat = v.data[i] / (1 - std::pow(beta2, step));
    p.data[i] -= alpha * m_hat / (std::sqrt(v_hat) + epsilon);
  }
  return {{"p_new", p}, {"m_new", m}, {"v_new", v}};
}

}  // namespace

const std::map<std::string, NaiveOp>& NaiveOps() {
  static const auto& ops = *new std::map<std::string, NaiveOp>{
      {"adam", AdamOp},
      {"attention", AttentionOp},
      {"avg_pool2d", AvgPool2dOp},
      {"causal_attention", CausalAttentionOp},
      {"conv2d", Conv2dOp},
      {"cross_entropy", CrossEntropyOp},
      {"embedding", EmbeddingOp},
      {"layer_norm", LayerNormOp},
      {"linear", LinearOp},
      {"log_softmax", LogSoftmaxOp},
      {"matmul", MatmulOp},
      {"max_pool2d", MaxPool2dOp},
      {"sgd", SgdOp},
      {"softmax", SoftmaxOp},
  };
  return ops;
}

}  // namespace nestor
