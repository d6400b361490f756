// The text of the macro library: every .nestor file of this folder, compiled in, so that no file is
// read at run time.

#ifndef NESTOR_MACRO_OPS_LIBRARY_TEXT_H_
#define NESTOR_MACRO_OPS_LIBRARY_TEXT_H_

#include "absl/types/span.h"

namespace nestor {

struct LibraryFile {
  const char* name;  // the file's name without its folder, e.g. "conv.nestor"
  const char* text;  // its notation, comments included
};

// In the order of their names. The data is constant and lives as long as the program; safe from any
// thread, also during static initialization.
absl::Span<const LibraryFile> LibraryFiles();

}  // namespace nestor

#endif  // NESTOR_MACRO_OPS_LIBRARY_TEXT_H_
