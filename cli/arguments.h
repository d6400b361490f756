// A subcommand's words: PROGRAM, NAME=value, flags, -o NAME=FILE, in any order.
// Their form is checked here, their meaning where they are used.
#ifndef NESTOR_CLI_ARGUMENTS_H_
#define NESTOR_CLI_ARGUMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "cli/command.h"

namespace nestor::cli {

// Letters, digits and _, the first being no digit.
bool IsName(absl::string_view text);

struct NameValue {
  std::string name;  // without a "$"
  std::string value;
};

struct Arguments {
  bool help = false;  // --help or -h is among the words; nothing else is read
  std::string program;
  std::vector<NameValue> words;                         // names distinct
  std::vector<NameValue> outputs;                       // of -o; names distinct
  absl::flat_hash_map<std::string, std::string> flags;  // a switch has the value ""
  std::vector<NameValue> repeated;                      // of flags that may be; not in `flags`

  bool Has(absl::string_view flag) const { return flags.contains(flag); }
  absl::optional<std::string> Find(absl::string_view flag) const;
  // The values of a flag that may be repeated, in order.
  std::vector<std::string> All(absl::string_view flag) const;
  // "--wrt=x,w" as names; an empty list where the flag is absent. It is an error if a name in the
  // list is empty or repeated; `--given=` alone is the empty list.
  absl::StatusOr<std::vector<std::string>> List(absl::string_view flag) const;
  // --seed, 0 where it is absent.
  absl::StatusOr<uint64_t> Seed() const;
};

// Parses the words after the subcommand's name. InvalidArgument names the word: an unknown or
// repeated flag, a name given twice, a missing PROGRAM.
absl::StatusOr<Arguments> ParseArguments(const Command& command,
                                         absl::Span<const std::string> words);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_ARGUMENTS_H_
