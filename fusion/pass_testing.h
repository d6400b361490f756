// The harness of the passes' table tests: text in, text out.
#ifndef NESTOR_FUSION_PASS_TESTING_H_
#define NESTOR_FUSION_PASS_TESTING_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// What stands around the items of a table's rows, so that they are a program: the
// signature up to its brace, with what all rows begin with; and what ends it, with
// a store to every output that not each row writes. Does not own the text.
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

// Of each row, expects that the pass makes `after` of `before` and says truly
// whether that is a change; that Verify accepts what it leaves; that a second run
// changes nothing; and that a run without a change adds no value, either.
void ExpectPass(absl::FunctionRef<absl::StatusOr<bool>(Program&)> pass, const Frame& frame,
                absl::Span<const PassCase> cases);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_PASS_TESTING_H_
