// optimizer.nestor: one step for each parameter.
#include <algorithm>
#include <cmath>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

// A parameter, its gradient and the states, which a step changes.
using States = std::map<std::string, double>;
using Step = void (*)(const NaiveCall& call, double g, States& states);

// step() for each element of g; the result of state s is s_new.
NaiveOp Optimizer(const std::vector<std::string>& states, Step step) {
  return [=](const NaiveCall& call) {
    NaiveTensors results;
    for (const std::string& name : states) results[name + "_new"] = call[name];
    for (size_t i = 0; i < call["g"].data.size(); ++i) {
      States now;
      for (const std::string& name : states) now[name] = call[name].data[i];
      step(call, call["g"].data[i], now);
      for (const std::string& name : states) results[name + "_new"].data[i] = now[name];
    }
    return results;
  };
}

double Decayed(const NaiveCall& call, double g, const States& s) {
  return g + call.Number("weight_decay") * s.at("p");
}

// torch.optim.SGD with dampening 0. Its first step sets the buffer to the gradient, which is
// what m = 0 gives.
void Sgd(const NaiveCall& call, double g, States& s) {
  s["m"] = call.Number("momentum") * s["m"] + Decayed(call, g, s);
  s["p"] -= call.Number("lr") * s["m"];
}

void Nesterov(const NaiveCall& call, double g, States& s) {
  const double d = Decayed(call, g, s);
  s["m"] = call.Number("momentum") * s["m"] + d;
  s["p"] -= call.Number("lr") * (d + call.Number("momentum") * s["m"]);
}

// Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 1.
void Adam(const NaiveCall& call, double g, States& s) {
  const double beta1 = call.Number("beta1"), beta2 = call.Number("beta2"),
               step = call.Number("step");
  s["m"] = beta1 * s["m"] + (1 - beta1) * g;
  s["v"] = beta2 * s["v"] + (1 - beta2) * g * g;
  const double m_hat = s["m"] / (1 - std::pow(beta1, step)),
               v_hat = s["v"] / (1 - std::pow(beta2, step));
  s["p"] -= call.Number("lr") * m_hat / (std::sqrt(v_hat) + call.Number("eps"));
}

// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019.
void AdamW(const NaiveCall& call, double g, States& s) {
  s["p"] -= call.Number("lr") * call.Number("weight_decay") * s["p"];
  Adam(call, g, s);
}

void RmsProp(const NaiveCall& call, double g, States& s) {
  const double d = Decayed(call, g, s), alpha = call.Number("alpha");
  s["v"] = alpha * s["v"] + (1 - alpha) * d * d;
  s["b"] = call.Number("momentum") * s["b"] + d / (std::sqrt(s["v"]) + call.Number("eps"));
  s["p"] -= call.Number("lr") * s["b"];
}

void Lion(const NaiveCall& call, double g, States& s) {
  const double beta1 = call.Number("beta1"), beta2 = call.Number("beta2"), lr = call.Number("lr");
  const double direction = beta1 * s["m"] + (1 - beta1) * g;
  s["p"] -= lr * ((direction > 0) - (direction < 0) + call.Number("weight_decay") * s["p"]);
  s["m"] = beta2 * s["m"] + (1 - beta2) * g;
}

void Adagrad(const NaiveCall& call, double g, States& s) {
  const double d = Decayed(call, g, s);
  s["s"] += d * d;
  const double rate = call.Number("lr") / (1 + (call.Number("step") - 1) * call.Number("lr_decay"));
  s["p"] -= rate * d / (std::sqrt(s["s"]) + call.Number("eps"));
}

void Adadelta(const NaiveCall& call, double g, States& s) {
  const double d = Decayed(call, g, s), rho = call.Number("rho"), eps = call.Number("eps");
  s["v"] = rho * s["v"] + (1 - rho) * d * d;
  const double step = std::sqrt((s["u"] + eps) / (s["v"] + eps)) * d;
  s["u"] = rho * s["u"] + (1 - rho) * step * step;
  s["p"] -= call.Number("lr") * step;
}

NaiveTensors ClipByNorm(const NaiveCall& call) {
  const double factor = call.Number("max_norm") / (NormOf(call["g"].data, 2) + 1e-6);
  return Y(Mapped(call["g"], [&](double x) { return x * std::min(1.0, factor); }));
}

NaiveTensors ClipByValue(const NaiveCall& call) {
  const double limit = call.Number("limit");
  return Y(Mapped(call["g"], [&](double x) { return std::clamp(x, -limit, limit); }));
}

}  // namespace

NaiveTable NaiveOptimizers() {
  return {
      {"sgd", Optimizer({"p", "m"}, Sgd)},
      {"adam", Optimizer({"p", "m", "v"}, Adam)},
      {"sgd_nesterov", Optimizer({"p", "m"}, Nesterov)},
      {"adamw", Optimizer({"p", "m", "v"}, AdamW)},
      {"rmsprop", Optimizer({"p", "v", "b"}, RmsProp)},
      {"lion", Optimizer({"p", "m"}, Lion)},
      {"adagrad", Optimizer({"p", "s"}, Adagrad)},
      {"adadelta", Optimizer({"p", "v", "u"}, Adadelta)},
      {"clip_by_norm", ClipByNorm},
      {"clip_by_value", ClipByValue},
  };
}

}  // namespace nestor
