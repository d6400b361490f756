// Zydis names the extension of each instruction, and its registers. The allowed extensions are a
// list, so that an instruction of an extension that nobody thought of is foreign, too.
#include "jit/codegen/foreign_instructions.h"

#include <Zydis/Zydis.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

struct Decoded {
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

const ZydisDecoder& Decoder() {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder made;
    NESTOR_CHECK(
        ZYAN_SUCCESS(ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)),
        "Zydis refuses 64-bit code");
    return made;
  }();
  return decoder;
}

// In Intel's syntax, with the function's begin as address 0.
std::string TextOf(const Decoded& decoded, size_t offset) {
  ZydisFormatter formatter;
  char line[256] = "?";
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  ZydisFormatterFormatInstruction(&formatter, &decoded.instruction, decoded.operands,
                                  decoded.instruction.operand_count_visible, line, sizeof(line),
                                  offset, nullptr);
  return line;
}

bool IsAvx512(ZydisISAExt extension) {
  return extension == ZYDIS_ISA_EXT_AVX512EVEX || extension == ZYDIS_ISA_EXT_AVX512VEX;
}

// The F, BW, DQ and VNNI parts of AVX-512, at any width.
bool IsPartOfAvx512(ZydisISASet set) {
  return (set >= ZYDIS_ISA_SET_AVX512BW_128 && set <= ZYDIS_ISA_SET_AVX512BW_KOP) ||
         (set >= ZYDIS_ISA_SET_AVX512DQ_128 && set <= ZYDIS_ISA_SET_AVX512DQ_SCALAR) ||
         (set >= ZYDIS_ISA_SET_AVX512F_128 && set <= ZYDIS_ISA_SET_AVX512F_SCALAR) ||
         (set >= ZYDIS_ISA_SET_AVX512_VNNI_128 && set <= ZYDIS_ISA_SET_AVX512_VNNI_512);
}

// No MMX and no SSE: without VEX, these would wait for the upper halves of the registers.
bool HasExtension(const ZydisDecodedInstruction& instruction, Isa isa) {
  switch (instruction.meta.isa_ext) {
    case ZYDIS_ISA_EXT_BASE:
    case ZYDIS_ISA_EXT_LONGMODE:
    case ZYDIS_ISA_EXT_AVX:
    case ZYDIS_ISA_EXT_AVX2:
    case ZYDIS_ISA_EXT_FMA:
    case ZYDIS_ISA_EXT_F16C:
    case ZYDIS_ISA_EXT_BMI1:
    case ZYDIS_ISA_EXT_BMI2: return true;
    case ZYDIS_ISA_EXT_SSE:
      return instruction.meta.isa_set == ZYDIS_ISA_SET_SSE_PREFETCH ||
             instruction.mnemonic == ZYDIS_MNEMONIC_SFENCE;
    default: break;
  }
  return isa == Isa::kAvx512 && IsAvx512(instruction.meta.isa_ext) &&
         IsPartOfAvx512(instruction.meta.isa_set);
}

// An instruction of an allowed extension may still use a register that only AVX-512 has.
bool HasRegister(ZydisRegister reg, Isa isa) {
  switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM: return isa == Isa::kAvx512 || ZydisRegisterGetId(reg) < 16;
    // For Zydis, every unmasked instruction of the EVEX form has k0.
    case ZYDIS_REGCLASS_MASK: return isa == Isa::kAvx512 || reg == ZYDIS_REGISTER_K0;
    case ZYDIS_REGCLASS_ZMM: return isa == Isa::kAvx512;
    default: return true;
  }
}

// Checks hidden operands and those of addresses, too.
ZydisRegister ForeignRegister(const Decoded& decoded, Isa isa) {
  for (int i = 0; i < decoded.instruction.operand_count; ++i) {
    const ZydisDecodedOperand& operand = decoded.operands[i];
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && !HasRegister(operand.reg.value, isa))
      return operand.reg.value;
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && !HasRegister(operand.mem.index, isa))
      return operand.mem.index;
  }
  return ZYDIS_REGISTER_NONE;
}

// The error in an instruction; empty: none.
std::string WhyForeign(const Decoded& decoded, Isa isa) {
  const ZydisDecodedInstruction& instruction = decoded.instruction;
  const ZydisRegister foreign = ForeignRegister(decoded, isa);
  if (foreign != ZYDIS_REGISTER_NONE) {
    return absl::StrCat(ZydisRegisterGetString(foreign), " is no register of ", Name(isa));
  }
  if (isa == Isa::kAvx2 && instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) {
    return absl::StrCat("the EVEX form is none of ", Name(isa));
  }
  if (HasExtension(instruction, isa)) return "";
  return absl::StrCat(ZydisISASetGetString(instruction.meta.isa_set), " is no part of ", Name(isa));
}

bool IsStreamingStore(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOVNTI:
    case ZYDIS_MNEMONIC_VMOVNTDQ:
    case ZYDIS_MNEMONIC_VMOVNTPD:
    case ZYDIS_MNEMONIC_VMOVNTPS: return true;
    default: return false;
  }
}

}  // namespace

// In the order of the bytes: code has no data in between.
absl::optional<std::string> FirstForeignInstruction(absl::Span<const uint8_t> code, Isa isa) {
  Decoded decoded;
  for (size_t offset = 0; offset < code.size(); offset += decoded.instruction.length) {
    const ZyanStatus status =
        ZydisDecoderDecodeFull(&Decoder(), code.data() + offset, code.size() - offset,
                               &decoded.instruction, decoded.operands);
    if (!ZYAN_SUCCESS(status)) return absl::StrFormat("%04x: no instruction", offset);
    const std::string why = WhyForeign(decoded, isa);
    if (!why.empty()) return absl::StrFormat("%04x: %s: %s", offset, TextOf(decoded, offset), why);
  }
  return absl::nullopt;
}

// In the order of the code, whatever the jumps: a function has one epilogue, at the end of its main
// code.
absl::optional<std::string> FirstUnfencedReturn(absl::Span<const uint8_t> code) {
  ZydisDecodedInstruction instruction;
  bool unfenced = false;
  for (size_t offset = 0; offset < code.size(); offset += instruction.length) {
    const ZyanStatus status = ZydisDecoderDecodeInstruction(
        &Decoder(), nullptr, code.data() + offset, code.size() - offset, &instruction);
    NESTOR_CHECK(ZYAN_SUCCESS(status), absl::StrCat("no instruction at ", offset));
    if (instruction.mnemonic == ZYDIS_MNEMONIC_RET && unfenced) {
      return absl::StrFormat("%04x: ret: no fence orders the streaming stores before it", offset);
    }
    unfenced = IsStreamingStore(instruction.mnemonic) ||
               (unfenced && instruction.mnemonic != ZYDIS_MNEMONIC_SFENCE);
  }
  return absl::nullopt;
}

}  // namespace nestor::jit
