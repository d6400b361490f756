// Generators: ops that no single text defines, because the rank, or the number of arguments, is
// part of them. Each is a short function from words to notation:
//
//   Generate("einsum(bij,bjk->bik)")
//     ->
//   op einsum(x0: T[Nb, Ni, Nj], x1: T[Nb, Nj, Nk]) -> (out) {
//     out[b, i, k] = sum[j](x0[b, i, j] * x1[b, j, k])
//   }
//
// The text may call ops of the macro library. On the command line such a call may be given wherever
// a macro op's name may: `nestor run 'concat(3, 2, 0)'`.
#ifndef NESTOR_MACRO_OPS_GENERATORS_H_
#define NESTOR_MACRO_OPS_GENERATORS_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace nestor {

struct Generator {
  const char* name;
  const char* usage;    // the words: "permute(AXIS, ..)"
  const char* summary;  // what the op computes, and the PyTorch or ONNX function that it equals
  const char* example;  // a call
  // Gives the text of an op for the words between the parentheses, which are stripped of blanks.
  // Errors name the word and say what is wrong with it.
  absl::StatusOr<std::string> (*generate)(absl::Span<const std::string> words);
};

// In the order of their names. Constant; safe from any thread.
absl::Span<const Generator> Generators();

// Whether `text` is of the form NAME(..), and NAME a generator. The words may still be wrong.
bool IsGeneratorCall(absl::string_view text);

// The text that a call stands for. InvalidArgument, with the usage, where a word is wrong or there
// are too many or too few. REQUIRES: IsGeneratorCall(call).
absl::StatusOr<std::string> Generate(absl::string_view call);

}  // namespace nestor

#endif  // NESTOR_MACRO_OPS_GENERATORS_H_
