// Each step proposes a case and keeps it if it still fails: layouts; sizes, in rounds until none
// gets smaller; $params; values. See the header for the order and the source.
#include "check/shrink_case.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "check/elements.h"

namespace nestor {
namespace {

class CaseShrinker {
 public:
  CaseShrinker(const CaseSource& source, Case given, absl::FunctionRef<bool(const Case&)> fails,
               const ShrinkLimits& limits)
      : source_(source), fails_(fails), limits_(limits), end_(absl::Now() + limits.max_time),
        best_(std::move(given)) {}

  Case Run() {
    ShrinkLayouts();
    while (ShrinkSizes()) {
    }
    ShrinkParams();
    for (size_t i = 0; i < best_.inputs.size(); ++i) ShrinkValues(i);
    return std::move(best_);
  }

 private:
  // Takes the case if it fails, too.
  bool Try(Case candidate) {
    if (tried_ >= limits_.max_cases || absl::Now() > end_) return false;
    ++tried_;
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  // ---- Layouts

  void ShrinkLayouts() {
    Case plain = best_;
    std::fill(plain.in_place.begin(), plain.in_place.end(), -1);
    const Arrangement simplest = source_.layouts.front();
    std::fill(plain.input_layouts.begin(), plain.input_layouts.end(), simplest);
    std::fill(plain.output_layouts.begin(), plain.output_layouts.end(), simplest);
    if (plain.in_place == best_.in_place && plain.input_layouts == best_.input_layouts &&
        plain.output_layouts == best_.output_layouts) {
      return;
    }
    if (Try(plain)) return;
    for (size_t i = 0; i < best_.input_layouts.size(); ++i) {
      Case candidate = best_;
      if (std::exchange(candidate.input_layouts[i], simplest) != simplest)
        Try(std::move(candidate));
    }
    for (size_t i = 0; i < best_.output_layouts.size(); ++i) {
      Case candidate = best_;
      if (std::exchange(candidate.output_layouts[i], simplest) != simplest)
        Try(std::move(candidate));
    }
  }

  // ---- Sizes

  // Smaller values from the smallest on, and the value less a power of two, as the fault may recur
  // at each such distance.
  static std::vector<int64_t> Smaller(int64_t value) {
    std::vector<int64_t> smaller = {0, 1, 2, value / 2};
    for (int64_t step = 1; step < value; step *= 2) smaller.push_back(value - step);
    std::sort(smaller.begin(), smaller.end());
    smaller.erase(std::unique(smaller.begin(), smaller.end()), smaller.end());
    smaller.erase(std::lower_bound(smaller.begin(), smaller.end(), value), smaller.end());
    return smaller;
  }

  bool TrySizes(const SymbolValues& sizes) {
    for (Kept kept : {Kept::kFirst, Kept::kLast}) {
      // The fault may depend on values at the end of an axis, so both ends are tried.
      absl::optional<Case> candidate = Shrunk(source_, best_, sizes, kept);
      if (candidate && Try(*std::move(candidate))) return true;
    }
    return false;
  }

  // The sizes that have the value of `name`, which an equality may tie to it, change together
  // where it alone cannot.
  bool TrySize(const std::string& name, int64_t value) {
    SymbolValues sizes = SolverSizes();
    const int64_t before = sizes[name];
    sizes[name] = value;
    if (source_.solver.Allows(sizes)) return TrySizes(sizes);
    for (auto& [other, size] : sizes) {
      if (size == before) size = value;
    }
    return TrySizes(sizes);
  }

  SymbolValues SolverSizes() const {
    SymbolValues sizes;
    for (const std::string& name : source_.solver.names())
      sizes[name] = best_.binding.symbols.at(name);
    return sizes;
  }

  bool ShrinkSizes() {
    bool is_smaller = false;
    for (const std::string& name : source_.solver.names()) {
      const int64_t size = best_.binding.symbols.at(name);
      for (int64_t candidate : Smaller(size)) {
        if (!TrySize(name, candidate)) continue;
        is_smaller = true;
        break;
      }
    }
    return is_smaller;
  }

  // ---- Values

  void ShrinkParams() {
    for (const ParamInfo& param : source_.op.params) {
      const bool is_drawn = !IsInteger(param.type) && !source_.fixed.contains(param.name);
      if (is_drawn) ShrinkParam(param);
    }
  }

  // Sets the $param to its default, or else to the plainest value that shows the fault.
  void ShrinkParam(const ParamInfo& param) {
    const Scalar drawn = best_.binding.params.at(param.name);
    // 0.7321 becomes its default, 0, 1, 1.0 (rounded), or 0.75 (to sixteenths): the first that
    // fails.
    std::vector<Scalar> plainer;
    if (param.value) plainer.push_back(*param.value);
    for (double value : {0.0, 1.0}) plainer.push_back(Scalar::Of(param.type, value));
    for (double unit : {1.0, 0x1p-4}) plainer.push_back(Rounded(drawn, unit));
    for (const Scalar& value : plainer) {
      // It is as plain already, and what follows is not plainer.
      if (value == drawn) return;
      const bool is_allowed = (!param.low || value.ToDouble() >= param.low->ToDouble()) &&
                              (!param.high || value.ToDouble() <= param.high->ToDouble());
      if (!is_allowed) continue;
      Case candidate = best_;
      candidate.binding.params[param.name] = value;
      if (Try(std::move(candidate))) return;
    }
  }

  using Plainer = std::function<Scalar(const Scalar&)>;

  // Makes those of the elements [begin, end) of an input plainer that may be; false where
  // that changes nothing.
  bool TryValues(size_t input, int64_t begin, int64_t end, const Plainer& plainer) {
    Case candidate = best_;
    const SymbolValues sizes = candidate.Sizes();
    const bool is_changed =
        ReplaceElements(candidate.inputs[input], begin, end, [&](const Scalar& before) {
          const Scalar after = plainer(before);
          return source_.values.Allows(static_cast<int>(input), sizes, after) ? after : before;
        });
    return is_changed && Try(std::move(candidate));
  }

  static Scalar Rounded(const Scalar& value, double unit) {
    if (!IsFloat(value.type) || !std::isfinite(value.ToDouble())) return value;
    return Scalar::Float(value.type, std::nearbyint(value.ToDouble() / unit) * unit);
  }

  static Scalar Less(const Scalar& value, int64_t divisor) {
    if (!IsFloat(value.type))
      return value.FitsInt64() ? Scalar::Integer(value.type, value.ToInt() / divisor) : value;
    if (!std::isfinite(value.ToDouble()) || std::abs(value.ToDouble()) <= 1) return value;
    return Scalar::Float(value.type, value.ToDouble() / static_cast<double>(divisor));
  }

  // Moves numbers above 1 nearer to 1, by long steps first.
  void ShrinkMagnitudes(size_t input, int64_t begin, int64_t end) {
    for (int64_t divisor : {int64_t{1} << 32, int64_t{1} << 8, int64_t{4}, int64_t{2}}) {
      while (
          TryValues(input, begin, end, [&](const Scalar& value) { return Less(value, divisor); })) {
      }
    }
  }

  // Halves first, single elements last.
  // Delta debugging (Zeller and Hildebrandt, 2002) without the complements: some 2n tries.
  void ShrinkParts(size_t input, const Plainer& plainer) {
    const int64_t count = best_.inputs[input].num_elements();
    for (int64_t part = (count + 1) / 2; part > 0; part = part == 1 ? 0 : (part + 1) / 2) {
      for (int64_t begin = 0; begin < count; begin += part) {
        TryValues(input, begin, std::min(count, begin + part), plainer);
      }
    }
  }

  void ShrinkValues(size_t input) {
    const int64_t count = best_.inputs[input].num_elements();
    const DType type = best_.inputs[input].type();
    const Plainer zero = [&](const Scalar&) { return Scalar::Zero(type); };
    const Plainer one = [&](const Scalar&) { return Scalar::Of(type, 1); };
    const Plainer whole = [](const Scalar& value) { return Rounded(value, 1); };
    const Plainer short_one = [](const Scalar& value) { return Rounded(value, 0x1p-4); };
    if (TryValues(input, 0, count, zero)) return;
    if (TryValues(input, 0, count, one)) return;
    ShrinkParts(input, zero);
    // Zeros stay 0.
    const Plainer one_at_most = [&](const Scalar& value) {
      return value.ToDouble() == 0 ? value : one(value);
    };
    if (TryValues(input, 0, count, one_at_most)) return;
    ShrinkParts(input, one_at_most);
    ShrinkMagnitudes(input, 0, count);
    constexpr int64_t kFew = 8;
    for (int64_t i = 0; count <= kFew && i < count; ++i) ShrinkMagnitudes(input, i, i + 1);
    if (!TryValues(input, 0, count, whole)) TryValues(input, 0, count, short_one);
  }

  const CaseSource& source_;
  const absl::FunctionRef<bool(const Case&)> fails_;
  const ShrinkLimits limits_;
  const absl::Time end_;
  Case best_;
  int tried_ = 0;
};

}  // namespace

Case ShrinkCase(const CaseSource& source, const Case& given,
                absl::FunctionRef<bool(const Case&)> fails, const ShrinkLimits& limits) {
  return CaseShrinker(source, given, fails, limits).Run();
}

}  // namespace nestor
