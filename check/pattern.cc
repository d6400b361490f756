// Conditions that do not hold for every wrong sample are dropped at once. Each of the others keeps,
// as bits, which right samples it holds for, so that a conjunction is tried by an AND of these.
#include "check/pattern.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "check/elements.h"

namespace nestor {
namespace {

constexpr int64_t kMostWrong = 48, kMostRight = 48;  // of a case
constexpr int64_t kModuli[] = {64, 32, 16, 8, 4, 2};

double LargestMagnitude(const Tensor& tensor) {
  double largest = 0;
  VisitNumbers(tensor, [&](double x) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  });
  return largest;
}

bool HasSpecial(const Tensor& tensor) {
  bool has = false;
  VisitNumbers(tensor, [&](double x) { has = has || !std::isfinite(x); });
  return has;
}

int64_t Whole(double value) { return static_cast<int64_t>(value); }

std::string NumberText(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? absl::StrCat(Whole(value))
                                                              : absl::StrCat(value);
}

}  // namespace

// The names of a sample's values, in their order: the place, the extents, and what belongs to the
// case as a whole.
// For c: f32[M, N] of a matmul: i, j, M, N, M, K, N, the largest |a|, a holds inf or nan, ..
PatternFinder::PatternFinder(const CaseSource& source, int result)
    : source_(source), result_(result) {
  static constexpr const char* kIndexNames[] = {"i", "j", "k", "l", "m", "n"};
  const Op& op = source.op;
  const Shape& shape = op.graph.shape(op.results[static_cast<size_t>(result)].node);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    index_names_.push_back(axis < 6 ? kIndexNames[axis] : absl::StrCat("i", axis));
    const std::string extent = SymbolicText(op.graph.pool(), shape[axis]);
    extent_names_.push_back(extent.find_first_of(" */%") == std::string::npos
                                ? extent
                                : absl::StrCat("(", extent, ")"));
  }
  case_names_ = source.solver.names();
  for (const Argument& arg : op.args) {
    if (!IsFloat(arg.type)) continue;
    case_names_.push_back(absl::StrCat("the largest |", arg.name, "|"));
    case_names_.push_back(absl::StrCat(arg.name, " holds inf or nan"));
  }
  case_names_.push_back("inf or nan among what they read");
}

std::vector<double> PatternFinder::CaseValues(const Case& examined) const {
  std::vector<double> values;
  for (const std::string& name : source_.solver.names()) {
    values.push_back(static_cast<double>(examined.binding.symbols.at(name)));
  }
  for (size_t i = 0; i < examined.inputs.size(); ++i) {
    if (!IsFloat(source_.op.args[i].type)) continue;
    values.push_back(LargestMagnitude(examined.inputs[i]));
    values.push_back(HasSpecial(examined.inputs[i]) ? 1 : 0);
  }
  return values;
}

// A sample is one element as a row of numbers, over which conditions are asked.
PatternFinder::Sample PatternFinder::SampleOf(const Dims& index, const Dims& shape,
                                              const std::vector<double>& of_case,
                                              bool reads_special) const {
  Sample sample;
  sample.values.assign(index.begin(), index.end());
  sample.values.insert(sample.values.end(), shape.begin(), shape.end());
  sample.values.insert(sample.values.end(), of_case.begin(), of_case.end());
  sample.values.push_back(reads_special ? 1 : 0);
  return sample;
}

// A few wrong and a few right elements of each case are enough: more of one case teach little.
void PatternFinder::Add(const Case& examined, const std::vector<WrongElement>& wrong,
                        const std::vector<bool>& reads_special) {
  const Dims shape = ResultShape(source_.op, examined.binding, static_cast<size_t>(result_));
  const int64_t count = NumElements(shape).value();
  const std::vector<double> of_case = CaseValues(examined);
  absl::flat_hash_set<int64_t> is_wrong;
  for (const WrongElement& element : wrong) {
    if (element.result == result_) is_wrong.insert(element.element);
  }
  // Samples are taken evenly, with both ends.
  const auto add = [&](const std::vector<int64_t>& elements, int64_t most,
                       std::vector<Sample>& samples) {
    const int64_t size = static_cast<int64_t>(elements.size()), taken = std::min(size, most);
    for (int64_t i = 0; i < taken; ++i) {
      const int64_t chosen = taken == 1 ? 0 : i * (size - 1) / (taken - 1);
      const int64_t element = elements[static_cast<size_t>(chosen)];
      const bool special = !reads_special.empty() && reads_special[static_cast<size_t>(element)];
      samples.push_back(SampleOf(IndexOf(element, shape), shape, of_case, special));
    }
  };
  std::vector<int64_t> bad(is_wrong.begin(), is_wrong.end()), good;
  std::sort(bad.begin(), bad.end());
  for (int64_t i = 0; i < count; ++i) {
    if (!is_wrong.contains(i)) good.push_back(i);
  }
  // Where not all wrong elements are known, the others are not known to be right.
  if (wrong.size() < Verdict::kMostKept) add(good, kMostRight, right_);
  add(bad, kMostWrong, wrong_);
  wrong_cases_ += bad.empty() ? 0 : 1;
}

// ---- Conditions

// Collects the conditions that hold for every wrong sample and not for every right one.
class PatternFinder::Candidates {
 public:
  explicit Candidates(const PatternFinder& finder) : finder_(finder) {
    const size_t rank = finder.index_names_.size();
    for (size_t axis = 0; axis < rank; ++axis) AddPlace(axis, rank + axis);
    for (size_t k = 0; k < finder.case_names_.size(); ++k)
      AddOfCase(2 * rank + k, finder.case_names_[k]);
  }

  std::vector<Predicate>& list() { return list_; }

 private:
  using Test = std::function<bool(const Sample&)>;

  // Keeps a condition that holds for every wrong sample, and not for every right one.
  // O(wrong) for most conditions, which fail there; the few that pass are asked about each right
  // sample.
  void Consider(std::string text, double cost, const Test& test) {
    if (!std::all_of(finder_.wrong_.begin(), finder_.wrong_.end(), test)) return;
    Predicate predicate{std::move(text), cost,
                        std::vector<uint64_t>((finder_.right_.size() + 63) / 64)};
    size_t held = 0;
    for (size_t i = 0; i < finder_.right_.size(); ++i) {
      if (!test(finder_.right_[i])) continue;
      // Bit i is right sample i; bits beyond the last stay 0, so that Held counts none of them.
      predicate.holds[i / 64] |= uint64_t{1} << (i % 64);
      ++held;
    }
    if (held < finder_.right_.size()) list_.push_back(std::move(predicate));
  }

  double AtFirst(size_t at) const { return finder_.wrong_.front().values[at]; }
  std::pair<double, double> Range(size_t at) const {
    double low = AtFirst(at), high = low;
    for (const Sample& sample : finder_.wrong_) {
      low = std::min(low, sample.values[at]);
      high = std::max(high, sample.values[at]);
    }
    return {low, high};
  }

  // Smaller moduli cost less: "N % 2 == 1" is simpler than "N % 8 == 1".
  void AddResidues(size_t at, const std::string& name, double cost) {
    for (int64_t modulus : kModuli) {
      const int64_t residue = Whole(AtFirst(at)) % modulus;
      Consider(absl::StrCat(name, " % ", modulus, " == ", residue),
               cost + 0.001 * static_cast<double>(modulus),
               [=](const Sample& s) { return Whole(s.values[at]) % modulus == residue; });
    }
  }

  // The borders of an axis, and what is left after whole vectors or tiles: where code differs.
  void AddPlace(size_t at, size_t extent_at) {
    const std::string& name = finder_.index_names_[at];
    const std::string& extent = finder_.extent_names_[at];
    Consider(absl::StrCat(name, " = 0"), 1, [=](const Sample& s) { return s.values[at] == 0; });
    Consider(absl::StrCat(name, " = ", extent, "-1"), 1,
             [=](const Sample& s) { return s.values[at] == s.values[extent_at] - 1; });
    for (int64_t modulus : kModuli) {
      Consider(absl::StrCat(name, " is after the last whole ", modulus, " of ", extent), 2,
               [=](const Sample& s) {
                 return Whole(s.values[at]) >= Whole(s.values[extent_at]) / modulus * modulus;
               });
    }
    for (int64_t modulus : kModuli) {
      Consider(absl::StrCat(name, " is in the last ", modulus, " of ", extent), 2.2,
               [=](const Sample& s) {
                 return s.values[at] >= s.values[extent_at] - static_cast<double>(modulus);
               });
    }
    AddResidues(at, name, 1.3);
    AddLimits(at, name, 1.5);
    if (extent.find_first_of(" */%(") != std::string::npos) {
      AddResidues(extent_at, extent, 1);
      AddLimits(extent_at, extent, 1.5);
    }
  }

  // A single value explains more than a range, and costs less.
  void AddLimits(size_t at, const std::string& name, double cost) {
    const auto [low, high] = Range(at);
    if (low == high) {
      Consider(absl::StrCat(name, " = ", NumberText(low)), 1,
               [=, v = low](const Sample& s) { return s.values[at] == v; });
    }
    Consider(absl::StrCat(name, " >= ", NumberText(low)), cost,
             [=, v = low](const Sample& s) { return s.values[at] >= v; });
    Consider(absl::StrCat(name, " <= ", NumberText(high)), cost,
             [=, v = high](const Sample& s) { return s.values[at] <= v; });
  }

  // A size, a $param, a largest magnitude, or whether a tensor holds inf or nan, as the name tells.
  void AddOfCase(size_t at, const std::string& name) {
    if (name.find("inf or nan") != std::string::npos) {
      Consider(name, 1, [=](const Sample& s) { return s.values[at] == 1; });
      return;
    }
    const bool is_magnitude = name.find('|') != std::string::npos;
    if (!is_magnitude) AddResidues(at, name, 1);
    AddLimits(at, name, is_magnitude ? 4 : 1.5);
  }

  const PatternFinder& finder_;
  std::vector<Predicate> list_;
};

// How many right samples the conjunction holds for as well, 64 at a time.
int64_t PatternFinder::Held(const Choice& choice) {
  int64_t held = 0;
  for (size_t word = 0; word < choice.front()->holds.size(); ++word) {
    uint64_t bits = ~uint64_t{0};
    for (const Predicate* predicate : choice) bits &= predicate->holds[word];
    held += __builtin_popcountll(bits);
  }
  return held;
}

// The best of all conditions and pairs, then a third one added greedily, then each of them
// exchanged: good enough for a hint, in quadratic time.
PatternFinder::Choice PatternFinder::Choose(const std::vector<Predicate>& predicates,
                                            int64_t right) {
  // Excluding a few more right samples is not worth one more condition.
  const double few = std::max(1.0, 0.002 * static_cast<double>(right));
  Choice best;
  double least = static_cast<double>(right);
  const auto consider = [&](Choice choice) {
    // One more condition costs about 1 (its `cost`), and so do `few` right samples that are not
    // excluded.
    double badness = static_cast<double>(Held(choice)) / few;
    for (const Predicate* predicate : choice) badness += predicate->cost;
    if (best.empty() ? badness < least / few : badness < least) {
      best = std::move(choice);
      least = badness;
    }
  };
  for (size_t i = 0; i < predicates.size(); ++i) {
    consider({&predicates[i]});
    for (size_t j = i + 1; j < predicates.size(); ++j) consider({&predicates[i], &predicates[j]});
  }
  if (best.size() == 2) {
    const Choice two = best;
    for (const Predicate& third : predicates) consider({two[0], two[1], &third});
  }
  // A condition that was the best alone or of two need not be the best together with a later one.
  for (size_t i = 0; i < best.size(); ++i) {
    Choice other = best;
    for (const Predicate& predicate : predicates) {
      other[i] = &predicate;
      consider(other);
    }
  }
  return best;
}

std::string PatternFinder::Describe() const {
  if (wrong_.empty() || right_.empty()) return "";
  Candidates candidates(*this);
  const auto right = static_cast<int64_t>(right_.size());
  Choice chosen = Choose(candidates.list(), right);
  if (chosen.empty()) return "";
  std::sort(chosen.begin(), chosen.end());  // in the order of the list: places first
  const int64_t held = Held(chosen);
  // What holds for most right elements as well explains nothing.
  if (2 * held > right) return "";
  const std::string where =
      absl::StrJoin(chosen, " and ", [](std::string* out, const Predicate* p) { *out += p->text; });
  return absl::StrCat("All ", wrong_.size(), " wrong elements looked at, of ", wrong_cases_,
                      wrong_cases_ == 1 ? " case" : " cases", ", have ", where, "; ",
                      held == 0 ? "none" : absl::StrCat(held), " of ", right, " right ones ",
                      held == 1 || held == 0 ? "has." : "have.");
}

}  // namespace nestor
