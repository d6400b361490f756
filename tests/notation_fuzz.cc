// Any bytes as notation: read, checked, made an op and printed; the printed text must
// mean the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "macro_ops/library.h"
#include "uops/invariant.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<nestor::Module> module =
      nestor::Module::Parse(text, &nestor::MacroLibrary());
  if (!module.ok()) return 0;
  const absl::StatusOr<nestor::Op> op = module->Instantiate("", {});
  if (!op.ok()) return 0;
  const std::string printed = nestor::PrintOp(*op);
  const absl::StatusOr<nestor::Op> again = nestor::ParseOp(printed);
  NESTOR_CHECK(again.ok() && nestor::SameOp(*op, *again), printed);
  return 0;
}
