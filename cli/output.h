// What the command says: results on stdout, remarks and errors on stderr.
#ifndef NESTOR_CLI_OUTPUT_H_
#define NESTOR_CLI_OUTPUT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace nestor::cli {

// Opens the standard descriptors that the caller closed on something that fails
// every read and write, so that no file of ours gets their numbers; makes a
// reader that goes away, and a file that may not grow, an error to see and not a
// signal. First thing in main.
void PrepareStandardStreams();

// Writes all of `text`. Cancelled where the reader has gone (`| head -1`), which
// is nobody's mistake; else the system's error.
absl::Status WriteStdout(absl::string_view text);

// Writes what it can: nobody looks whether it arrives.
void WriteStderr(absl::string_view text);

// "nestor: message" on stderr. Control characters, and bytes that are not UTF-8, are
// shown as \xNN, so that what a file or the command line holds does not reach the
// terminal; words longer than the name of a file can be are clipped, and so are long lines.
void Remark(absl::string_view message);

// Reports an error: as Remark, but without the prefix where the message begins
// with a place in a file (MarkLocated).
void ReportError(const absl::Status& error);
absl::Status MarkLocated(absl::Status error);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_OUTPUT_H_
