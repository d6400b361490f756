// Deliberate faults, for a test of the tests: does `nestor check` find them (//tests:mutants)?
//
//   if (NESTOR_MUTANT("fan_out_assigned")) sum = adjoint;
//
// It is false, and compiled away, except in a build with --config=mutants: there it is true if the
// environment variable NESTOR_MUTANT holds the name. It is used in .cc files only, and nowhere in
// the oracle that results are compared with.
#ifndef NESTOR_UOPS_MUTANT_H_
#define NESTOR_UOPS_MUTANT_H_

#ifdef NESTOR_MUTANTS

#include <cstdlib>
#include <cstring>

namespace nestor::internal {

inline bool IsMutant(const char* name) {
  static const char* const chosen = std::getenv("NESTOR_MUTANT");
  return chosen != nullptr && std::strcmp(chosen, name) == 0;
}

}  // namespace nestor::internal

#define NESTOR_MUTANT(name) ::nestor::internal::IsMutant(name)

#else

#define NESTOR_MUTANT(name) false

#endif

#endif  // NESTOR_UOPS_MUTANT_H_
