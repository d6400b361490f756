// The input and output of generators: words, and lists of names.
#ifndef NESTOR_MACRO_OPS_GENERATOR_WORDS_H_
#define NESTOR_MACRO_OPS_GENERATOR_WORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace nestor {

using Words = absl::Span<const std::string>;

// Ranks and numbers of tensors that a generator takes: 1 to this.
constexpr int kMostGenerated = 64;

// It is an error if there are not `count` words.
absl::Status ExpectWords(Words words, size_t count, absl::string_view usage);
// `words[number]` as a number in low..high.
absl::StatusOr<int> IntegerWord(Words words, size_t number, int low, int high);
// `words[number]` as an axis of `rank` axes, those below 0 counted from the end.
absl::StatusOr<int> AxisWord(Words words, size_t number, int rank);

// "i3"; "i8_" where the name is a reserved word of the notation.
std::string Numbered(absl::string_view prefix, int number);
// {"i0", "i1", ..}
std::vector<std::string> Names(absl::string_view prefix, int count);
// "i0, i1, .."
std::string List(const std::vector<std::string>& names);

// The functions of the table in generators.cc, one file for each family.
absl::StatusOr<std::string> GenerateAlong(Words words);
absl::StatusOr<std::string> GenerateConcat(Words words);
absl::StatusOr<std::string> GenerateEinsum(Words words);
absl::StatusOr<std::string> GeneratePermute(Words words);
absl::StatusOr<std::string> GenerateReshape(Words words);
absl::StatusOr<std::string> GenerateResize(Words words);
absl::StatusOr<std::string> GenerateSplit(Words words);
absl::StatusOr<std::string> GenerateStack(Words words);

}  // namespace nestor

#endif  // NESTOR_MACRO_OPS_GENERATOR_WORDS_H_
