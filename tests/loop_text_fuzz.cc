// Any bytes as a loop program: read and verified; the text of the program read must read as
// the same program.
#include <cstddef>
#include <cstdint>
#include <string>

#include "loop_ir/text.h"
#include "uops/invariant.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<nestor::loop::Program> program =
      nestor::loop::ParseProgram(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!program.ok()) return 0;
  const std::string text = nestor::loop::ToText(*program);
  const absl::StatusOr<nestor::loop::Program> again = nestor::loop::ParseProgram(text);
  NESTOR_CHECK(again.ok() && nestor::loop::ToText(*again) == text, text);
  return 0;
}
