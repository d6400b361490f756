// How much memory a subcommand may take, and whether a run keeps to it.
#ifndef NESTOR_CLI_MEMORY_H_
#define NESTOR_CLI_MEMORY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "cli/dimensions.h"
#include "jit/executable.h"

namespace nestor::cli {

// Half of the memory that this process may use: the interpreter keeps a byte beside
// each element that says whether it was written.
int64_t MaxBytes();

// ResourceExhausted, naming what does not fit, if outputs and temporaries of a run at these sizes
// take more than `max_bytes`.
absl::Status CheckMemory(const jit::Executable& executable, const SymbolValues& sizes,
                         int64_t max_bytes);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_MEMORY_H_
