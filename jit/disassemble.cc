// Zydis decodes; each function is taken to lie at address 0, so that the targets of jumps are the
// offsets before the lines. A byte that begins no instruction would be a fault of the emitters: it
// is shown as data, and the listing goes on after it.
#include "jit/disassemble.h"

#include <Zydis/Zydis.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

constexpr int kOffsetDigits = 4;

class Disassembler {
 public:
  Disassembler() {
    const bool ready = ZYAN_SUCCESS(ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64,
                                                     ZYDIS_STACK_WIDTH_64)) &&
                       ZYAN_SUCCESS(ZydisFormatterInit(&formatter_, ZYDIS_FORMATTER_STYLE_INTEL)) &&
                       Set(ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE) &&
                       Set(ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, kOffsetDigits);
    NESTOR_CHECK(ready, "Zydis refuses 64-bit code");
  }

  // Appends the line of the instruction at code[offset]; returns the bytes that it takes.
  size_t AppendLine(absl::Span<const uint8_t> code, size_t offset, std::string& text) const {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, code.data() + offset, code.size() - offset,
                                             &instruction, operands))) {
      absl::StrAppendFormat(&text, "  %0*x  db 0x%02x\n", kOffsetDigits, offset, code[offset]);
      return 1;
    }
    char line[256];
    ZydisFormatterFormatInstruction(&formatter_, &instruction, operands,
                                    instruction.operand_count_visible, line, sizeof(line), offset,
                                    nullptr);
    absl::StrAppendFormat(&text, "  %0*x  %s\n", kOffsetDigits, offset, line);
    return instruction.length;
  }

 private:
  bool Set(ZydisFormatterProperty property, ZyanUPointer value) {
    return ZYAN_SUCCESS(ZydisFormatterSetProperty(&formatter_, property, value));
  }

  ZydisDecoder decoder_;
  ZydisFormatter formatter_;
};

// A statement's line stands before the first instruction that comes from it, again for each
// stretch.
void AppendFunction(const Kernel::FunctionView& function,
                    const std::vector<std::string>& statements, const Disassembler& disassembler,
                    std::string& text) {
  absl::StrAppend(&text, function.name, ":  # ", function.code.size(), " bytes\n");
  auto next = function.statements.begin();
  for (size_t offset = 0; offset < function.code.size();) {
    // If several are at one place, all but the last have no code.
    for (; next != function.statements.end() && next->first <= static_cast<int32_t>(offset);
         ++next) {
      if (next + 1 != function.statements.end() && next[1].first <= static_cast<int32_t>(offset))
        continue;
      absl::StrAppend(&text, "  # ", next->second < 0 ? "..." : statements[next->second], "\n");
    }
    offset += disassembler.AppendLine(function.code, offset, text);
  }
}

}  // namespace

std::string Disassemble(const Kernel& kernel) {
  const Disassembler disassembler;
  const std::vector<std::string> statements = kernel.StatementTexts();
  std::string text;
  for (const Kernel::FunctionView& function : kernel.Functions()) {
    AppendFunction(function, statements, disassembler, text);
  }
  return text;
}

}  // namespace nestor::jit
