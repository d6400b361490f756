// The network is written as text in the notation, as a user would write it: macro ops called by
// name, one set of arguments for each convolution.
#include "tests/resnet.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nestor.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

constexpr char kParts[] = R"(
op normalised(t: f32[N, O, H, W], scale: f32[O], shift: f32[O]) -> (y) {
  y[n, o, h, v] = t[n, o, h, v] * scale[o] + shift[o]
}
op rectified(t: f32[N, O, H, W]) -> (y) {
  y[n, o, h, v] = relu(t[n, o, h, v])
}
op added(t: f32[N, O, H, W], skip: f32[N, O, H, W]) -> (y) {
  y[n, o, h, v] = relu(t[n, o, h, v] + skip[n, o, h, v])
}
op global_mean(x: f32[N, C, H, W]) -> (y) {
  y[n, c] = sum[h, v](x[n, c, h, v]) / f32(H * W)
}
)";

class Writer {
 public:
  std::string Run(const std::vector<int>& blocks, bool loss) {
    std::string x = Relu(Convolution("x", "C0", "C1", 7, 2));
    x = Call("max_pool2d", x, "k=3, stride=2, pad=1");
    std::string channels = "C1";
    for (size_t stage = 0; stage < blocks.size(); ++stage) {
      const std::string wide = absl::StrCat("D", stage), narrow = absl::StrCat("B", stage);
      for (int i = 0; i < blocks[stage]; ++i) {
        const int stride = i == 0 && stage > 0 ? 2 : 1;
        x = Bottleneck(x, channels, narrow, wide, stride, i == 0);
        channels = wide;
      }
    }
    x = Call("global_mean", x, "");
    args_.push_back(absl::StrCat("w_out: f32[K, ", channels, "], b_out: f32[K]"));
    const std::string y = loss ? "logits" : "y";
    absl::StrAppend(&body_, "  ", y, " = linear(", x, ", w_out, b_out)\n");
    if (loss) absl::StrAppend(&body_, "  loss = cross_entropy(logits, labels)\n");
    return absl::StrCat(kParts, "op resnet(x: f32[N, C0, H, W], ", absl::StrJoin(args_, ", "),
                        loss ? ", labels: i64[N]" : "", ") -> (", loss ? "loss" : "y", ") {\n",
                        body_, "}\n");
  }

 private:
  std::string Bottleneck(const std::string& x, const std::string& in, const std::string& narrow,
                         const std::string& wide, int stride, bool project) {
    std::string t = Relu(Convolution(x, in, narrow, 1, 1));
    t = Relu(Convolution(t, narrow, narrow, 3, stride));
    t = Convolution(t, narrow, wide, 1, 1);
    const std::string skip = project ? Convolution(x, in, wide, 1, stride) : x;
    const std::string y = absl::StrCat("t", next_++);
    absl::StrAppend(&body_, "  ", y, " = added(", t, ", ", skip, ")\n");
    return y;
  }

  std::string Convolution(const std::string& x, const std::string& in, const std::string& out,
                          int window, int stride) {
    const int n = weights_++;
    args_.push_back(absl::StrCat("w", n, ": f32[", out, ", ", in, ", ", window, ", ", window,
                                 "], s", n, ": f32[", out, "], b", n, ": f32[", out, "]"));
    const std::string t = absl::StrCat("t", next_++), y = absl::StrCat("t", next_++);
    absl::StrAppend(&body_, "  ", t, " = conv2d(", x, ", w", n, "; stride=", stride,
                    ", pad=", window / 2, ")\n");
    absl::StrAppend(&body_, "  ", y, " = normalised(", t, ", s", n, ", b", n, ")\n");
    return y;
  }

  std::string Relu(const std::string& x) { return Call("rectified", x, ""); }

  std::string Call(const std::string& op, const std::string& x, const std::string& params) {
    const std::string y = absl::StrCat("t", next_++);
    absl::StrAppend(&body_, "  ", y, " = ", op, "(", x, params.empty() ? "" : "; ", params, ")\n");
    return y;
  }

  std::vector<std::string> args_;
  std::string body_;
  int next_ = 0, weights_ = 0;
};

}  // namespace

Op ResNet(const std::vector<int>& blocks, bool loss) {
  const std::string text = Writer().Run(blocks, loss);
  absl::StatusOr<Op> op = Parse(text);
  NESTOR_CHECK(op.ok(), op.status().ToString());
  return *std::move(op);
}

Op ResNetGradient(const std::vector<int>& blocks) {
  const Op op = ResNet(blocks, true);
  GradientRequest request;
  for (const Argument& arg : op.args) {
    if (arg.name != "x" && IsFloat(arg.type)) request.wrt.push_back(arg.name);
  }
  absl::StatusOr<GradientResult> gradient = Gradient(op, request);
  NESTOR_CHECK(gradient.ok(), gradient.status().ToString());
  return std::move(gradient->op);
}

}  // namespace nestor
