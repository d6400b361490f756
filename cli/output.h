// The output of the command: results on stdout, remarks and errors on stderr.
#ifndef NESTOR_CLI_OUTPUT_H_
#define NESTOR_CLI_OUTPUT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace nestor::cli {

// Opens the standard descriptors that the caller closed on something that fails
// every read and write, so that no file of ours gets their numbers; makes a reader that goes away,
// and a file that may not grow, an error to handle instead of a signal. To be called first in main.
void PrepareStandardStreams();

// Writes all of `text`. Cancelled if the reader has gone (`| head -1`), which is nobody's mistake;
// else the system's error.
absl::Status WriteStdout(absl::string_view text);

// Writes as much as it can: nobody checks whether it arrives.
void WriteStderr(absl::string_view text);

// "nestor: message" on stderr. Control characters, and bytes that are not UTF-8, are shown as \xNN,
// so that bytes of a file or the command line do not reach the terminal raw; words longer than a
// file name can be are clipped, and so are long lines.
void Remark(absl::string_view message);

// Reports an error: as Remark, but without the prefix if the message begins with a place in a
// file (MarkLocated).
void ReportError(const absl::Status& error);
absl::Status MarkLocated(absl::Status error);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_OUTPUT_H_
