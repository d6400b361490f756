// Sizes are drawn until the op allows them and the work is small: larger ones first, then
// ever smaller ones, and towards the end all equal, for ops that need equal sizes.
#include "check/engines/trial_inputs.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "check/arrangement.h"
#include "check/engines/large_inputs.h"
#include "check/random.h"
#include "jit/size_classes.h"
#include "uops/index/index_expr.h"
#include "uops/stable_hash.h"

namespace nestor {
namespace {

constexpr int64_t kMostElements = 20'000;
constexpr int kAttempts = 24;

// The seed decides the style and the largest extent; each name then draws for itself.
class Drawer {
 public:
  Drawer(const Op& op, const loop::Program& unfused, uint64_t seed,
         const TrialInputOptions& options)
      : op_(op), unfused_(unfused), options_(options), seed_(seed) {
    Random random(seed);
    style_ = static_cast<int>(random.Below(100));
    largest_ = random.Pick({int64_t{5}, int64_t{18}, int64_t{35}, int64_t{70}});
    DrawLong();
  }

  absl::optional<TrialInputs> Run() {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const int64_t largest = std::max<int64_t>(1, largest_ - attempt * largest_ / 16);
      DrawSymbols(largest, attempt);
      // The last attempt takes sizes that the op refuses, too: the engines must then refuse them
      // alike.
      if (IsSmall() && (IsLegal() || attempt + 1 >= kAttempts)) return Make();
    }
    return absl::nullopt;
  }

 private:
  // ---- Sizes

  // A generator for each name, so that a program without some argument draws the same for all
  // others: the shrinker removes arguments, and the finding must stay.
  Random For(absl::string_view name, absl::string_view what) const {
    return Random(StableHash(name, StableHash(what, seed_)));
  }

  int64_t Extent(const std::string& name, int64_t largest, int attempt) const {
    // All dimensions then draw from the generator of one name, "all".
    const bool equal = style_ < 15 || attempt >= kAttempts / 2;
    if (name == long_ && attempt < kAttempts / 2) return 1000 + For(name, "long").Below(80);
    Random random =
        For(equal ? "all" : name, attempt < 4 ? "extent" : absl::StrCat("extent", attempt));
    // Some sizes are 0 and some not: a fault that one empty loop would hide shows with
    // another one empty.
    if (style_ >= 90) return std::min(largest, random.Pick({0, 1, 0, 1, 2}) + int64_t{0});
    if (style_ < 35 || random.Chance(25)) {
      return std::min(largest, random.Pick({0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5}) + int64_t{0});
    }
    return std::min(largest, random.Pick({6,  7,  8,  9,  11, 13, 15, 16, 17, 23,
                                          24, 25, 31, 32, 33, 34, 47, 48, 49, 65}) +
                                 int64_t{0});
  }

  // Draws, now and then, one dimension longer than a page, and small ones beside it.
  void DrawLong() {
    std::vector<std::string> names;
    const auto add = [&](IndexId, const IndexNode& node) {
      if (node.kind == IndexKind::kSymbol)
        names.push_back(op_.graph.pool().SymbolNameAt(node.value));
    };
    for (const Argument& arg : op_.args) {
      if (!arg.shape.empty()) VisitIndex(op_.graph.pool(), arg.shape.back(), add);
    }
    Random random = For("", "long");
    if (names.empty() || !random.Chance(6)) return;
    long_ = random.Pick(names);
    // Small extents for all others (below 35), not all equal (from 15 on).
    style_ = 20;
  }

  void DrawSymbols(int64_t largest, int attempt) {
    binding_ = Binding();
    params_.clear();
    const auto bind = [&](IndexId, const IndexNode& node) {
      if (node.kind != IndexKind::kSymbol) return;
      const std::string& name = op_.graph.pool().SymbolNameAt(node.value);
      if (name[0] != '$')
        binding_.symbols.emplace(name, Given(name, Extent(name, largest, attempt)));
    };
    for (const Argument& arg : op_.args) {
      for (IndexId extent : arg.shape) VisitIndex(op_.graph.pool(), extent, bind);
    }
    for (const ParamInfo& param : op_.params) DrawParam(param, attempt);
  }

  // Drawn all the same, so that a given size does not change what others draw.
  int64_t Given(const std::string& name, int64_t drawn) const {
    const auto given = options_.sizes.find(name);
    return given == options_.sizes.end() ? drawn : given->second;
  }

  void DrawParam(const ParamInfo& param, int attempt) {
    Random random = For(param.name, attempt < 4 ? "param" : absl::StrCat("param", attempt));
    Scalar value = param.value.value_or(Scalar::Zero(param.type));
    if (!param.value || random.Chance(60) || options_.sizes.contains(param.name)) {
      value =
          IsInteger(param.type) ? IntegerWithin(param, random) : DrawParamValue(param.type, random);
      params_[param.name] = value;
    }
    binding_.params[param.name] = value;
    if (IsInteger(param.type)) binding_.symbols[param.name] = value.ToInt();
  }

  Scalar IntegerWithin(const ParamInfo& param, Random& random) const {
    int64_t low = IsUnsigned(param.type) || random.Chance(85) ? 0 : -2, high = 4;
    if (param.low) low = std::max(low, param.low->ToInt());
    if (param.high) high = std::min(high, param.high->ToInt());
    return Scalar::Integer(param.type, Given(param.name, random.Between(low, std::max(low, high))));
  }

  static Scalar DrawParamValue(DType type, Random& random) {
    if (type == DType::kBool) return Scalar::Of(type, random.Chance(50));
    return Scalar::Float(type, static_cast<double>(random.Between(-16, 16)) / 8);
  }

  absl::optional<int64_t> Symbol(const std::string& name) const { return binding_.Find(name); }

  // Work counts what the program computes at these sizes, as a reduction may compute much of few
  // elements.
  bool IsSmall() {
    for (const Argument& arg : op_.args) {
      const auto shape = EvaluateShape(op_.graph.pool(), arg.shape, binding_, arg.name);
      if (!shape.ok()) return false;
      const auto count = NumElements(*shape);
      if (!count.ok() || *count > kMostElements) return false;
    }
    work_ = jit::WorkAt(unfused_, [&](const std::string& name) { return Symbol(name); });
    return work_ <= options_.most_work;
  }

  // Whether the op takes these sizes: its equalities hold, and its results have shapes.
  bool IsLegal() const {
    for (const Equality& equality : op_.equalities) {
      const auto left = Value(equality.left), right = Value(equality.right);
      if (!left || !right || *left != *right) return false;
    }
    for (const Result& result : op_.results) {
      if (!EvaluateShape(op_.graph.pool(), op_.graph.shape(result.node), binding_, "").ok())
        return false;
    }
    return true;
  }

  absl::optional<int64_t> Value(IndexId id) const {
    return EvaluateIndex(
        op_.graph.pool(), id,
        [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
          if (node.kind != IndexKind::kSymbol) return absl::nullopt;
          return Symbol(op_.graph.pool().SymbolNameAt(node.value));
        });
  }

  // ---- Values

  TrialInputs Make() {
    TrialInputs made;
    made.work = work_;
    made.inputs.params = params_;
    made.sizes = binding_.symbols;
    for (const Argument& arg : op_.args) AddTensor(arg, made);
    const std::vector<std::string> unbound = UnboundDimensions(SignatureOf(op_), made.inputs);
    for (const std::string& name : unbound) made.inputs.dims[name] = binding_.symbols[name];
    return made;
  }

  void AddTensor(const Argument& arg, TrialInputs& made) const {
    const Dims shape = EvaluateShape(op_.graph.pool(), arg.shape, binding_, arg.name).value();
    Random random = For(arg.name, "values");
    constexpr ValueKind kKinds[] = {ValueKind::kModerate,      ValueKind::kModerate,
                                    ValueKind::kModerate,      ValueKind::kSmallIntegers,
                                    ValueKind::kSmallIntegers, ValueKind::kFewSpecials,
                                    ValueKind::kEvery};
    const ValueKind kind = kKinds[random.Below(static_cast<int64_t>(std::size(kKinds)))];
    // Its sequence is fixed by the C++ standard, unlike that of the standard's distributions.
    std::mt19937_64 bits(random.Bits());
    made.tensors.push_back(DrawTensor(arg.type, shape, bits, kind));
    TensorView view = made.tensors.back();
    if (random.Chance(30)) {
      const Arrangement arrangement =
          kArrangements[random.Below(static_cast<int64_t>(std::size(kArrangements)))];
      view = Arranged(view, arrangement, made.memory);
    }
    made.inputs.tensors[arg.name] = view;
  }

  const Op& op_;
  const loop::Program& unfused_;
  const TrialInputOptions& options_;
  const uint64_t seed_;
  int style_;  // out of 100
  int64_t largest_;
  std::string long_;  // the name of a long dimension
  Binding binding_;
  absl::flat_hash_map<std::string, Scalar> params_;
  double work_ = 0;
};

}  // namespace

absl::optional<TrialInputs> DrawTrialInputs(const Op& op, const loop::Program& unfused,
                                            uint64_t seed, const TrialInputOptions& options) {
  return Drawer(op, unfused, seed, options).Run();
}

}  // namespace nestor
