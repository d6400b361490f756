// Conditions that hold for the wrong elements and for no right one: "j = C-1 and C % 16 = 1".
#ifndef NESTOR_CHECK_PATTERN_H_
#define NESTOR_CHECK_PATTERN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "check/case.h"
#include "check/judge.h"

namespace nestor {

// Learns one conjunction of up to three conditions on places, sizes, $params and the values
// read, from cases where elements of a result are wrong and cases where they are right. Among the
// conditions that hold for each wrong element, it takes the one or two that exclude the most right
// elements (the simplest, if there are several), and a third where that still helps.
class PatternFinder {
 public:
  // Finds the pattern of the result number `result`.
  PatternFinder(const CaseSource& source, int result);

  // Looks at some of the elements of the case; `wrong` are those of any result that are wrong,
  // `reads_special` says for each of the result's elements whether it reads inf or nan;
  // empty: none does.
  void Add(const Case& examined, const std::vector<WrongElement>& wrong,
           const std::vector<bool>& reads_special = {});

  // "All 31 wrong elements looked at, of 12 cases, have j = C-1 and C % 16 == 1; none of 2300 right
  // ones has." Empty where nothing is wrong, or where the conditions that hold for the wrong ones
  // hold for most others, too.
  std::string Describe() const;

 private:
  // One element: its index and the extents of its result, then sizes, then what is known about the
  // inputs, then whether it reads inf or nan.
  struct Sample {
    std::vector<double> values;
  };
  struct Predicate {
    std::string text;
    double cost = 0;              // the simpler, the less
    std::vector<uint64_t> holds;  // a bit for each right sample
  };
  using Choice = std::vector<const Predicate*>;
  class Candidates;

  static int64_t Held(const Choice& choice);
  static Choice Choose(const std::vector<Predicate>& predicates, int64_t right);
  Sample SampleOf(const Dims& index, const Dims& shape, const std::vector<double>& of_case,
                  bool reads_special) const;
  std::vector<double> CaseValues(const Case& examined) const;

  const CaseSource& source_;
  const int result_;
  std::vector<std::string> index_names_, extent_names_, case_names_;
  std::vector<Sample> wrong_, right_;
  int64_t wrong_cases_ = 0;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_PATTERN_H_
