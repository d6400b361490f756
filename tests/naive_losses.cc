// loss.nestor. A mean over nothing is 0 / 0.
#include <algorithm>
#include <cmath>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

NaiveTensors Loss(double loss) { return {{"loss", Scalar(loss)}}; }

// The element at the label of row n; NaN for a label that is no class.
double AtLabel(const NaiveTensor& x, const NaiveTensor& labels, int64_t n) {
  return At(x, {n, static_cast<int64_t>(labels.data[n])}, kNan);
}

NaiveTensors CrossEntropy(const NaiveCall& call) {
  const NaiveTensor log_p = MapRows(call["logits"], LogSoftmax);
  const int64_t batch = log_p.shape[0];
  double total = 0;
  for (int64_t n = 0; n < batch; ++n) total -= AtLabel(log_p, call["labels"], n);
  return Loss(total / static_cast<double>(batch));
}

// The weighted mean of -log_p at the labels, and that over all classes of the rows that are not
// left out, both divided by the weights of the labels.
struct Likelihoods {
  double hard = 0, smooth = 0, weights = 0;
};
Likelihoods Weighted(const NaiveTensor& log_p, const NaiveCall& call) {
  const NaiveTensor &labels = call["labels"], &weight = call["weight"];
  Likelihoods sums;
  for (int64_t n = 0; n < log_p.shape[0]; ++n) {
    const int64_t label = static_cast<int64_t>(labels.data[n]);
    if (label == call.Integer("ignore_index")) continue;
    const double w = At(weight, {label}, kNan);
    sums.weights += w;
    sums.hard -= w * AtLabel(log_p, labels, n);
    for (int64_t c = 0; c < log_p.shape[1]; ++c) sums.smooth -= weight.data[c] * At(log_p, {n, c});
  }
  return sums;
}

NaiveTensors CrossEntropyWeighted(const NaiveCall& call) {
  const NaiveTensor log_p = MapRows(call["logits"], LogSoftmax);
  const Likelihoods sums = Weighted(log_p, call);
  const double smoothing = call.Number("label_smoothing"),
               classes = static_cast<double>(log_p.shape[1]);
  return Loss((1 - smoothing) * sums.hard / sums.weights +
              smoothing / classes * sums.smooth / sums.weights);
}

NaiveTensors NllLoss(const NaiveCall& call) {
  const Likelihoods sums = Weighted(call["log_p"], call);
  return Loss(sums.hard / sums.weights);
}

NaiveTensors CrossEntropySoft(const NaiveCall& call) {
  const NaiveTensor log_p = MapRows(call["logits"], LogSoftmax);
  const double smoothing = call.Number("label_smoothing"),
               classes = static_cast<double>(log_p.shape[1]);
  double total = 0;
  for (size_t i = 0; i < log_p.data.size(); ++i) {
    total -= log_p.data[i] * (call["target"].data[i] * (1 - smoothing) + smoothing / classes);
  }
  return Loss(total / static_cast<double>(log_p.shape[0]));
}

// The mean of f(a[i], b[i]).
NaiveOp MeanOf(const std::string& a, const std::string& b,
               const std::function<double(const NaiveCall&, double, double)>& f) {
  return [=](const NaiveCall& call) {
    Row terms;
    for (size_t i = 0; i < call[a].data.size(); ++i)
      terms.push_back(f(call, call[a].data[i], call[b].data[i]));
    return Loss(Mean(terms));
  };
}

double Huber(const NaiveCall& call, double x, double t) {
  const double d = std::fabs(x - t), delta = call.Number("delta");
  return d <= delta ? d * d / 2 : delta * (d - delta / 2);
}

double SmoothL1(const NaiveCall& call, double x, double t) {
  const double d = std::fabs(x - t), beta = call.Number("beta");
  return d < beta ? d * d / (2 * beta) : d - beta / 2;
}

double Bce(const NaiveCall&, double p, double t) {
  return -(t * std::max(std::log(p), -100.0) + (1 - t) * std::max(std::log1p(-p), -100.0));
}

NaiveTensors BceWithLogits(const NaiveCall& call) {
  const NaiveTensor &x = call["x"], &target = call["target"], &weight = call["pos_weight"];
  Row terms;
  ForEach(x.shape, [&](const Place& p) {
    const double probability = 1 / (1 + std::exp(-At(x, p)));
    terms.push_back(-(weight.data[p.back()] * At(target, p) * std::log(probability) +
                      (1 - At(target, p)) * std::log(1 - probability)));
  });
  return Loss(Mean(terms));
}

NaiveTensors KlDiv(const NaiveCall& call) {
  const NaiveTensor &log_p = call["log_p"], &target = call["target"];
  double total = 0;
  for (size_t i = 0; i < target.data.size(); ++i) {
    if (target.data[i] > 0) total += target.data[i] * (std::log(target.data[i]) - log_p.data[i]);
  }
  return Loss(total / static_cast<double>(target.shape[0]));
}

NaiveTensors KlDivLogTarget(const NaiveCall& call) {
  const NaiveTensor &log_p = call["log_p"], &target = call["log_target"];
  double total = 0;
  for (size_t i = 0; i < target.data.size(); ++i)
    total += std::exp(target.data[i]) * (target.data[i] - log_p.data[i]);
  return Loss(total / static_cast<double>(target.shape[0]));
}

double Cosine(const Row& a, const Row& b, double eps) {
  double product = 0;
  for (size_t i = 0; i < a.size(); ++i) product += a[i] * b[i];
  return product / (std::max(NormOf(a, 2), eps) * std::max(NormOf(b, 2), eps));
}

NaiveTensors CosineSimilarity(const NaiveCall& call) {
  const NaiveTensor &a = call["a"], &b = call["b"];
  return Y(Generate(First(a.shape, a.shape.size() - 1), [&](const Place& p) {
    return Cosine(RowAt(a, p), RowAt(b, p), call.Number("eps"));
  }));
}

NaiveTensors CosineEmbedding(const NaiveCall& call) {
  Row terms;
  for (int64_t n = 0; n < call["a"].shape[0]; ++n) {
    const double cosine = Cosine(RowAt(call["a"], {n}), RowAt(call["b"], {n}), 1e-8);
    const bool alike = call["label"].data[n] == 1;
    terms.push_back(alike ? 1 - cosine : std::max(0.0, cosine - call.Number("margin")));
  }
  return Loss(Mean(terms));
}

double Distance(const Row& a, const Row& b, const NaiveCall& call) {
  Row difference;
  for (size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b[i] + call.Number("eps"));
  return NormOf(difference, call.Number("p"));
}

NaiveTensors PairwiseDistance(const NaiveCall& call) {
  const NaiveTensor &a = call["a"], &b = call["b"];
  return Y(Generate(First(a.shape, a.shape.size() - 1),
                    [&](const Place& p) { return Distance(RowAt(a, p), RowAt(b, p), call); }));
}

NaiveTensors TripletMargin(const NaiveCall& call) {
  Row terms;
  for (int64_t n = 0; n < call["anchor"].shape[0]; ++n) {
    const Row anchor = RowAt(call["anchor"], {n});
    const double near = Distance(anchor, RowAt(call["positive"], {n}), call);
    const double far = Distance(anchor, RowAt(call["negative"], {n}), call);
    terms.push_back(std::max(0.0, near - far + call.Number("margin")));
  }
  return Loss(Mean(terms));
}

NaiveTensors MarginRanking(const NaiveCall& call) {
  Row terms;
  for (size_t i = 0; i < call["a"].data.size(); ++i) {
    const double difference = call["a"].data[i] - call["b"].data[i];
    terms.push_back(std::max(0.0, call.Number("margin") - call["y"].data[i] * difference));
  }
  return Loss(Mean(terms));
}

NaiveTensors GaussianNll(const NaiveCall& call) {
  Row terms;
  for (size_t i = 0; i < call["x"].data.size(); ++i) {
    const double variance = std::max(call["variance"].data[i], call.Number("eps"));
    const double d = call["x"].data[i] - call["target"].data[i];
    terms.push_back((std::log(variance) + d * d / variance) / 2);
  }
  return Loss(Mean(terms));
}

}  // namespace

NaiveTable NaiveLosses() {
  return {
      {"cross_entropy", CrossEntropy},
      {"cross_entropy_weighted", CrossEntropyWeighted},
      {"cross_entropy_soft", CrossEntropySoft},
      {"nll_loss", NllLoss},
      {"mse_loss", MeanOf("x", "target",
                          [](const NaiveCall&, double x, double t) { return (x - t) * (x - t); })},
      {"l1_loss", MeanOf("x", "target",
                         [](const NaiveCall&, double x, double t) { return std::fabs(x - t); })},
      {"huber_loss", MeanOf("x", "target", Huber)},
      {"smooth_l1_loss", MeanOf("x", "target", SmoothL1)},
      {"bce_loss", MeanOf("p", "target", Bce)},
      {"bce_with_logits", BceWithLogits},
      {"kl_div", KlDiv},
      {"kl_div_log_target", KlDivLogTarget},
      {"cosine_similarity", CosineSimilarity},
      {"cosine_embedding_loss", CosineEmbedding},
      {"pairwise_distance", PairwiseDistance},
      {"triplet_margin_loss", TripletMargin},
      {"margin_ranking_loss", MarginRanking},
      {"soft_margin_loss",
       MeanOf("x", "y",
              [](const NaiveCall&, double x, double y) { return std::log1p(std::exp(-y * x)); })},
      {"poisson_nll_loss",
       MeanOf("x", "target",
              [](const NaiveCall&, double x, double t) { return std::exp(x) - t * x; })},
      {"gaussian_nll_loss", GaussianNll},
  };
}

}  // namespace nestor
