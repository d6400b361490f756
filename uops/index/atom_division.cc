// Long division: the first term goes to the quotient if the divisor's first term divides it, else
// to the remainder. This ends, as multiplication preserves the order of terms (Cox, Little and
// O'Shea, "Ideals, Varieties, and Algorithms", sec. 2.3).
#include "uops/index/atom_division.h"

#include <algorithm>
#include <limits>

#include "absl/types/span.h"

namespace nestor {
namespace {

using Factors = absl::Span<const IndexId>;

// a / b as products; nullopt where b does not divide a.
absl::optional<AtomProduct> Without(Factors a, Factors b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end())) return absl::nullopt;
  AtomProduct rest(a.size() - b.size());
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), rest.begin());
  return rest;
}

std::pair<AtomSum, AtomSum> Unknown() { return {AtomSum::Inexact(), AtomSum::Inexact()}; }

}  // namespace

std::pair<AtomSum, AtomSum> DividedBy(const AtomSum& sum, const AtomSum& divisor) {
  if (!sum.exact() || !divisor.exact()) return Unknown();
  AtomSum quotient, remainder, rest = sum;
  const AtomSum::Term lead = divisor.terms().front();
  for (size_t steps = 0; rest.exact() && rest.size() > 0; ++steps) {
    const AtomSum::Term first = rest.terms().front();
    const auto atoms = Without(first.atoms, lead.atoms);
    // -2^63 / -1 has no quotient.
    const bool divides = atoms && lead.coefficient != std::numeric_limits<int64_t>::min() &&
                         first.coefficient != std::numeric_limits<int64_t>::min() &&
                         first.coefficient % lead.coefficient == 0;
    const AtomSum part = AtomSum::OfTerm(
        divides ? AtomSum::Term{*atoms, first.coefficient / lead.coefficient} : first);
    rest = rest - (divides ? part * divisor : part);
    (divides ? quotient : remainder) = (divides ? quotient : remainder) + part;
    if (steps == AtomSum::kMaxSize) return Unknown();
  }
  if (!rest.exact()) return Unknown();
  return {std::move(quotient), std::move(remainder)};
}

// Division by 1 is the frequent case.
absl::optional<AtomSum> ExactQuotient(const AtomSum& sum, const AtomSum& divisor) {
  if (divisor == AtomSum(1)) return sum;
  auto [quotient, remainder] = DividedBy(sum, divisor);
  if (!remainder.IsZero() || !quotient.exact()) return absl::nullopt;
  return std::move(quotient);
}

}  // namespace nestor
