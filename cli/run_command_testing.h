// Runs the command `nestor` for tests, as its users do: a process with files for stdin, stdout
// and stderr, in a directory of its own, and within limits of time and memory.
#ifndef NESTOR_CLI_RUN_COMMAND_TESTING_H_
#define NESTOR_CLI_RUN_COMMAND_TESTING_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"

namespace nestor::cli {

// Under a sanitizer a program is slow, and the sanitizer's own mappings exceed every memory limit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

struct CommandLimits {
  int cpu_seconds = kIsSanitized ? 200 : 10;
  int seconds = kIsSanitized ? 1000 : 120;  // wall time: the machine may do other things
  int64_t memory_bytes = int64_t{4} << 30;
  int64_t file_bytes = int64_t{1} << 30;
};

// Where stdout goes, if not to a file that the test reads.
enum class Stdout { kFile, kFullDevice, kClosedPipe };

struct CommandCall {
  std::vector<std::string> words;  // after `nestor`
  std::string in;                  // stdin
  std::string directory;           // in which it runs, below the test's
  Stdout out = Stdout::kFile;
  CommandLimits limits;
};

struct CommandOutcome {
  int exit_code = -1;  // if it exited
  int signal = 0;      // else: which signal ended it
  std::string out, err;
};

// A new directory, which is deleted with its files.
class CommandDirectory {
 public:
  CommandDirectory();
  ~CommandDirectory();
  CommandDirectory(const CommandDirectory&) = delete;
  CommandDirectory& operator=(const CommandDirectory&) = delete;

  // Files and directories, relative to it.
  void Put(const std::string& name, absl::string_view contents) const;
  void MakeDirectory(const std::string& name) const;

  // For each file: properties that a write, or another file in its place, would change.
  using Snapshot = std::map<std::string, std::tuple<uint64_t, int64_t, uint64_t>>;
  Snapshot TakeSnapshot() const;

  CommandOutcome Run(const CommandCall& call) const;

 private:
  std::string root_, work_, command_;
};

}  // namespace nestor::cli

#endif  // NESTOR_CLI_RUN_COMMAND_TESTING_H_
