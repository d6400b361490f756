// Extents of results are written out, so that windows lie within the padded image, and a size that
// is too small for one is refused.
#include "check/engines/window_statements.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace nestor {
namespace {

// How a window slides along one axis of an image.
struct Slide {
  int64_t size, stride, padding, dilation;
};

Slide DrawSlide(Random& random) {
  Slide slide;
  slide.size = random.Pick({1, 2, 3, 3, 3, 4, 5});
  slide.stride = random.Pick({1, 1, 1, 2, 3});
  slide.padding = random.Pick({0, 1, 1, 2});
  slide.dilation = random.Pick({1, 1, 1, 1, 2});
  return slide;
}

// "2*i + r - 1"
std::string PlaceOf(const Slide& slide, absl::string_view index, absl::string_view step) {
  const auto times = [](int64_t factor, absl::string_view name) {
    return factor == 1 ? std::string(name) : absl::StrCat(factor, "*", name);
  };
  return absl::StrCat(times(slide.stride, index), " + ", times(slide.dilation, step),
                      slide.padding > 0 ? absl::StrCat(" - ", slide.padding) : "");
}

// "(M - 1) / 2 + 1"; `extent` is one of these itself where layers follow each other.
std::string ExtentOf(const Slide& slide, absl::string_view extent) {
  const int64_t rest = slide.dilation * (slide.size - 1) - 2 * slide.padding;
  return absl::StrCat("(", extent, rest < 0 ? " + " : " - ", rest < 0 ? -rest : rest, ") / ",
                      slide.stride, " + 1");
}

// The window's weights, one for each channel of a depthwise convolution, or none.
enum class Kind { kConvolution, kDepthwise, kPool };

class Layer {
 public:
  Layer(Random& random, DType type, ExpressionGenerator& expressions, Images& images)
      : random_(random), type_(type), expressions_(expressions), images_(images) {
    const int kind = static_cast<int>(random.Below(100));
    kind_ = kind < 76 ? Kind::kConvolution : kind < 88 ? Kind::kDepthwise : Kind::kPool;
    rows_ = DrawSlide(random);
    columns_ = random.Chance(70) ? rows_ : DrawSlide(random);
    channels_ = kind_ != Kind::kConvolution ? images.channels : images.channels == "O" ? "P" : "O";
  }

  WindowStatement Run(const std::string& name) {
    const std::string x = Elements();
    const bool sums = kind_ != Kind::kPool || random_.Chance(50);
    const std::string body = kind_ == Kind::kPool ? x : absl::StrCat(x, " * ", Weights());
    const std::string steps = kind_ == Kind::kConvolution ? "k, r, s" : "r, s";
    const std::string channel = kind_ == Kind::kConvolution ? "o" : "k";
    const std::string rows = ExtentOf(rows_, images_.rows),
                      columns = ExtentOf(columns_, images_.columns);
    WindowStatement made;
    made.value = {name, Laid({channel, "i", "j"}, "l"), Laid({channels_, rows, columns}, "L")};
    made.text = absl::StrCat(Access(name, made.value.indices), " = ", sums ? "sum" : "max", "[",
                             steps, "](", body, ") where i < ", rows, ", j < ", columns, ", r < ",
                             rows_.size, ", s < ", columns_.size);
    images_ = {name, channels_, rows, columns, images_.has_batch, images_.channels_last};
    return made;
  }

 private:
  // In the images' order, with the batch first, if there is one.
  std::vector<std::string> Laid(std::vector<std::string> axes, const std::string& batch) const {
    if (images_.channels_last) absl::c_rotate(axes, axes.begin() + 1);
    if (images_.has_batch) axes.insert(axes.begin(), batch);
    return axes;
  }

  static std::string Access(const std::string& name, const std::vector<std::string>& place) {
    return absl::StrCat(name, "[", absl::StrJoin(place, ", "), "]");
  }

  std::string NewArgument(const std::vector<std::string>& shape) {
    return expressions_.NewArgument(Name(type_), absl::StrJoin(shape, ", "));
  }

  std::string Elements() {
    if (images_.name.empty())
      images_.name = NewArgument(Laid({images_.channels, images_.rows, images_.columns}, "L"));
    return Access(images_.name,
                  Laid({"k", PlaceOf(rows_, "i", "r"), PlaceOf(columns_, "j", "s")}, "l"));
  }

  std::string Weights() {
    const std::string r = absl::StrCat(rows_.size), s = absl::StrCat(columns_.size);
    const std::string& k = images_.channels;
    if (kind_ == Kind::kDepthwise) return Access(NewArgument({k, r, s}), {"k", "r", "s"});
    if (random_.Chance(30)) return Access(NewArgument({r, s, k, channels_}), {"r", "s", "k", "o"});
    return Access(NewArgument({channels_, k, r, s}), {"o", "k", "r", "s"});
  }

  Random& random_;
  const DType type_;
  ExpressionGenerator& expressions_;
  Images& images_;
  Kind kind_;
  Slide rows_, columns_;
  std::string channels_;  // the extent of those of the results
};

}  // namespace

WindowStatement DrawLine(Random& random, DType type, ExpressionGenerator& expressions,
                         const std::string& name) {
  const bool pools = random.Chance(25), strided = random.Chance(60), padded = random.Chance(60);
  const std::string stride = strided ? "$s" : "1", pad = padded ? "$p" : "0";
  const std::string place = absl::StrCat(strided ? "$s*i" : "i", " + r", padded ? " - $p" : "");
  const std::string x = expressions.NewArgument(Name(type), "K, M");
  const std::string w = pools ? "" : expressions.NewArgument(Name(type), "N, K, R");
  const std::string extent =
      absl::StrCat("(M + 2*", pad, " - ", pools ? "2" : "R", ") / ", stride, " + 1");
  if (pools) {
    const std::string text = absl::StrCat(
        name, "[k, i] = ", random.Chance(50) ? "max" : "sum", "[r](", x, "[k, ", place,
        IsFloat(type) && random.Chance(50) ? " | -inf" : "", "]) where i < ", extent, ", r < 2");
    return {text, {name, {"k", "i"}, {"K", extent}}};
  }
  const std::string text = absl::StrCat(name, "[j, i] = sum[k, r](", x, "[k, ", place, "] * ", w,
                                        "[j, k, r]) where i < ", extent);
  return {text, {name, {"j", "i"}, {"N", extent}}};
}

std::vector<std::string> LineParams() { return {"$s = 1 in [1, 3]", "$p = 1 in [0, 2]"}; }

WindowStatement DrawLayer(Random& random, DType type, ExpressionGenerator& expressions,
                          const std::string& name, Images& images) {
  return Layer(random, type, expressions, images).Run(name);
}

Images DrawImages(Random& random) {
  Images images = {"", "K", "M", "N", false, false};
  images.has_batch = random.Chance(40);
  images.channels_last = random.Chance(30);
  return images;
}

}  // namespace nestor
