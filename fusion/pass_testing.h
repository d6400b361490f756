// The harness of the passes' table tests: text in, text out.
#ifndef NESTOR_FUSION_PASS_TESTING_H_
#define NESTOR_FUSION_PASS_TESTING_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// The text around the items of a table's rows that makes them a program: the signature up to its
// brace, with what all rows begin with; and the end, with a store to every output that some row
// does not write. Does not own the text.
struct Frame {
  absl::string_view head;
  absl::string_view tail;
};

struct PassCase {
  const char* before;
  const char* after;  // "": unchanged
};

// The program of the text. Fails the test, and is empty, where it does not parse;
// fails it where Verify rejects the program.
Program ParseVerified(absl::string_view text);
Program ParseVerified(const Frame& frame, absl::string_view items);

// Expects for each row that the pass turns `before` into `after` and says truly whether that is a
// change; that Verify accepts what it leaves; that a second run changes nothing; and that a run
// that changes nothing adds no value either.
void ExpectPass(absl::FunctionRef<absl::StatusOr<bool>(Program&)> pass, const Frame& frame,
                absl::Span<const PassCase> cases);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_PASS_TESTING_H_
