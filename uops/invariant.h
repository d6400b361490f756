// NESTOR_CHECK(condition, text): for our own invariants only, in every build. A
// failure is a bug in Nestor, never the caller's mistake (those are Statuses):
// it prints the place, the condition and `text`, which is evaluated only then
// and should show the program, and aborts.
#ifndef NESTOR_UOPS_INVARIANT_H_
#define NESTOR_UOPS_INVARIANT_H_

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"

namespace nestor::internal {

[[noreturn]] inline void InvariantFailed(const char* file, int line, const char* condition,
                                         const std::string& text) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n%s\n", file, line, condition, text.c_str());
  std::abort();
}

}  // namespace nestor::internal

#define NESTOR_CHECK(condition, text)                                                            \
  do {                                                                                           \
    if (!(condition)) ::nestor::internal::InvariantFailed(__FILE__, __LINE__, #condition, text); \
  } while (false)

// Early returns of a Status, in the manner of Abseil's users.
#define NESTOR_RETURN_IF_ERROR(expression)           \
  do {                                               \
    const absl::Status nestor_status = (expression); \
    if (!nestor_status.ok()) return nestor_status;   \
  } while (false)

#define NESTOR_CONCAT_INNER(a, b) a##b
#define NESTOR_CONCAT(a, b) NESTOR_CONCAT_INNER(a, b)
#define NESTOR_ASSIGN_OR_RETURN(target, expression) \
  NESTOR_ASSIGN_OR_RETURN_INNER(NESTOR_CONCAT(nestor_or_, __LINE__), target, expression)
#define NESTOR_ASSIGN_OR_RETURN_INNER(temporary, target, expression) \
  auto temporary = (expression);                                     \
  if (!temporary.ok()) return temporary.status();                    \
  target = *std::move(temporary)

#endif  // NESTOR_UOPS_INVARIANT_H_
