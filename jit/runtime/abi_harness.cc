// No compiler lets a caller see whether the registers that it relies on were kept, so the call is
// made by a trampoline assembled for it. It saves the registers that its own caller relies on,
// brings the machine into a known state, calls, records the state, and restores.
//
// After the call, nothing is relied on that the function may break: all that must survive lies in
// one CallState, whose address is written into the trampoline as a number, and the stack pointer
// and the preserved registers come back from there.
#include "jit/runtime/abi_harness.h"

#include <cpuid.h>
#include <xbyak/xbyak.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "jit/runtime/code_memory.h"
#include "jit/runtime/cpu_features.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

using namespace Xbyak::util;  // NOLINT: names of registers

const Xbyak::Reg64 kPreserved[] = {rbx, rbp, r12, r13, r14, r15};
constexpr int kNumPreserved = 6;
constexpr int kFrameWords = 8;
constexpr int kVectors = 16;      // those that vzeroupper clears
constexpr int kVectorBytes = 64;  // those of the widest register
constexpr int kLowBytes = 16;     // xmm
// Garbage: the i-th word of it is this plus i. As a double and as two floats it is NaN.
// A function that computes with a register that it was not given gets NaN or a wild address.
constexpr uint64_t kPattern = 0xfff8'1234'7fc5'6780;
constexpr uint32_t kStickyFlags = 0x3f;            // of MXCSR
constexpr uint64_t kDirectionFlag = 1 << 10;       // of rflags
constexpr uint32_t kUpperState = 1 << 2 | 1 << 6;  // of XINUSE: upper halves of ymm and of zmm

// The processor's x87 environment in memory.
struct X87Environment {
  uint16_t control, unused0, status, unused1, tags, unused2;
  uint32_t instruction_and_data[4];
};
constexpr uint16_t kAllEmpty = 0xffff;  // tags

// Plain data at fixed offsets: the trampoline is machine code, and finds fields by offsetof.
struct CallState {
  // The call's function and arguments.
  KernelFunction function;
  int64_t arguments[4];
  uint64_t stack_offset;  // bytes of rsp below a multiple of 64
  uint32_t mxcsr;
  uint16_t x87_control;

  // The registers of the trampoline's caller.
  uint64_t host_preserved[kNumPreserved];
  uint64_t host_rsp;
  uint32_t host_mxcsr;
  uint16_t host_x87_control;

  // State right before the call.
  uint64_t rsp_before;
  uint32_t in_use_before;

  // State right after the call.
  int64_t result;
  uint64_t rsp;
  uint64_t preserved[kNumPreserved];
  uint64_t frame[kFrameWords];  // the words above the return address
  uint64_t flags;
  uint32_t mxcsr_after;
  uint32_t in_use;
  X87Environment x87;
  uint8_t vectors[kVectors][kVectorBytes];
};

struct Features {
  bool has_zmm = HasVectorsOf(kVectorBytes);
  bool has_in_use = HasInUse();  // XINUSE can be read

  // Code can change such vectors only where a set that has them runs.
  static bool HasVectorsOf(int bytes) {
    return std::any_of(std::begin(kIsas), std::end(kIsas), [&](const IsaFacts& set) {
      return set.vector_bytes == bytes && CheckIsa(set.isa).ok();
    });
  }
  static bool HasInUse() {
    uint32_t eax, ebx, ecx, edx;
    return __get_cpuid_count(0xd, 1, &eax, &ebx, &ecx, &edx) && (eax >> 2 & 1) != 0;
  }
};

class Trampoline : public Xbyak::CodeGenerator {
 public:
  Trampoline(CallState* state, const Features& features)
      : Xbyak::CodeGenerator(4096, Xbyak::DontSetProtectRWE), state_(state), features_(features) {
    mov(r11, reinterpret_cast<uintptr_t>(state_));
    SaveHost();
    PrepareStackAndSettings();
    PrepareRegisters();
    call(ptr[r11 + offsetof(CallState, function)]);
    mov(r11, reinterpret_cast<uintptr_t>(state_));
    RecordRegisters();
    RecordStackAndSettings();
    RestoreHost();
    ret();
  }

  absl::Span<const uint8_t> code() const { return absl::MakeConstSpan(getCode(), getSize()); }

 private:
  // r11 holds the state's address wherever these are used.
  Xbyak::Address Field(size_t offset) const { return ptr[r11 + offset]; }
  Xbyak::Address Word(size_t offset, int i) const { return ptr[r11 + offset + 8 * i]; }

  void SaveHost() {
    for (int i = 0; i < kNumPreserved; ++i)
      mov(Word(offsetof(CallState, host_preserved), i), kPreserved[i]);
    mov(Field(offsetof(CallState, host_rsp)), rsp);
    stmxcsr(Field(offsetof(CallState, host_mxcsr)));
    fnstcw(Field(offsetof(CallState, host_x87_control)));
  }

  // A frame of known words above the stack pointer shows whether the callee writes into its
  // caller's. `stack_offset` varies the alignment, of which the ABI promises 16 bytes.
  void PrepareStackAndSettings() {
    // Aligned to 64 bytes first, so that stack_offset alone says where rsp stands modulo 64.
    and_(rsp, -64);
    sub(rsp, 8 * kFrameWords);
    sub(rsp, Field(offsetof(CallState, stack_offset)));
    mov(Field(offsetof(CallState, rsp_before)), rsp);
    for (int i = 0; i < kFrameWords; ++i) {
      mov(rax, kPattern + i);
      mov(ptr[rsp + 8 * i], rax);
    }
    ldmxcsr(Field(offsetof(CallState, mxcsr)));
    fninit();
    fldcw(Field(offsetof(CallState, x87_control)));
    cld();
  }

  // The upper vectors are zero and not in use, which the callee must leave so.
  void PrepareRegisters() {
    vzeroupper();
    // Garbage in the low halves, and zeros above.
    for (int i = 0; i < kVectors; ++i) vmovups(Xbyak::Xmm(i), ptr[rsp]);
    ReadInUse(offsetof(CallState, in_use_before));
    for (int i = 0; i < kNumPreserved; ++i) mov(kPreserved[i], kPattern + i);
    for (const Xbyak::Reg64& other : {rax, r8, r9, r10}) mov(other, kPattern);
    const Xbyak::Reg64 arguments[] = {rdi, rsi, rdx, rcx};
    for (int i = 0; i < 4; ++i) mov(arguments[i], Word(offsetof(CallState, arguments), i));
  }

  // The function's rsp is recorded and replaced before anything is pushed, the flags before cld
  // changes them.
  void RecordRegisters() {
    mov(Field(offsetof(CallState, result)), rax);
    mov(Field(offsetof(CallState, rsp)), rsp);
    mov(rsp, Field(offsetof(CallState, rsp_before)));
    for (int i = 0; i < kNumPreserved; ++i)
      mov(Word(offsetof(CallState, preserved), i), kPreserved[i]);
    pushfq();
    pop(rax);
    mov(Field(offsetof(CallState, flags)), rax);
    cld();
    ReadInUse(offsetof(CallState, in_use));
    for (int i = 0; i < kVectors; ++i) {
      const Xbyak::Address place = Field(offsetof(CallState, vectors) + kVectorBytes * i);
      if (features_.has_zmm) {
        vmovups(place, Xbyak::Zmm(i));
      } else {
        vmovups(place, Xbyak::Ymm(i));
      }
    }
  }

  void RecordStackAndSettings() {
    for (int i = 0; i < kFrameWords; ++i) {
      mov(rax, ptr[rsp + 8 * i]);
      mov(Word(offsetof(CallState, frame), i), rax);
    }
    stmxcsr(Field(offsetof(CallState, mxcsr_after)));
    fnstenv(Field(offsetof(CallState, x87)));
  }

  void RestoreHost() {
    vzeroupper();
    fninit();
    fldcw(Field(offsetof(CallState, host_x87_control)));
    ldmxcsr(Field(offsetof(CallState, host_mxcsr)));
    for (int i = 0; i < kNumPreserved; ++i)
      mov(kPreserved[i], Word(offsetof(CallState, host_preserved), i));
    mov(rsp, Field(offsetof(CallState, host_rsp)));
  }

  void ReadInUse(size_t offset) {
    if (!features_.has_in_use) return;
    mov(ecx, 1);
    xgetbv();
    mov(Field(offset), eax);
  }

  CallState* const state_;
  const Features features_;
};

std::string Hex(uint64_t value) { return absl::StrCat("0x", absl::Hex(value)); }

// Callee-saved registers, the stack pointer and the frame hold what they held before the call.
void CheckGeneralRegisters(const CallState& state, std::vector<std::string>* broken) {
  for (int i = 0; i < kNumPreserved; ++i) {
    if (state.preserved[i] == kPattern + i) continue;
    broken->push_back(absl::StrCat(kPreserved[i].toString(), " is not preserved"));
  }
  if (state.rsp != state.rsp_before) {
    const int64_t off = static_cast<int64_t>(state.rsp - state.rsp_before);
    broken->push_back(
        absl::StrCat("rsp is ", std::abs(off), " bytes too ", off < 0 ? "low" : "high"));
  }
  for (int i = 0; i < kFrameWords; ++i) {
    if (state.frame[i] == kPattern + i) continue;
    broken->push_back(absl::StrCat("the caller's frame is overwritten ", 8 * i,
                                   " bytes above the return address"));
  }
}

// Flags of exceptions may be set by arithmetic; masks and rounding modes must not change.
void CheckSettings(const CallState& state, std::vector<std::string>* broken) {
  if ((state.flags & kDirectionFlag) != 0) broken->push_back("the direction flag is set");
  const uint32_t mxcsr = state.mxcsr_after & ~kStickyFlags;
  if (mxcsr != state.mxcsr)
    broken->push_back(absl::StrCat("MXCSR is ", Hex(mxcsr), " and was ", Hex(state.mxcsr)));
  if (state.x87.control != state.x87_control) {
    broken->push_back(absl::StrCat("the x87 control word is ", Hex(state.x87.control), " and was ",
                                   Hex(state.x87_control)));
  }
  if (state.x87.tags != kAllEmpty) broken->push_back("the x87 registers are not empty");
}

// Vector code ends with vzeroupper, or SSE code after it pays for each transition. Zeros alone do
// not prove it: XGETBV tells whether the CPU takes the upper halves for used.
void CheckUpperVectors(const CallState& state, std::vector<std::string>* broken) {
  for (int i = 0; i < kVectors; ++i) {
    const absl::Span<const uint8_t> upper =
        absl::MakeConstSpan(state.vectors[i]).subspan(kLowBytes);
    if (std::all_of(upper.begin(), upper.end(), [](uint8_t byte) { return byte == 0; })) continue;
    broken->push_back(
        absl::StrCat("vector register ", i, " is not zero above its low 128 bits (no vzeroupper)"));
    return;
  }
  // A CPU that always reports the state as in use also did so before the call.
  if ((state.in_use & ~state.in_use_before & kUpperState) != 0) {
    broken->push_back(
        "the upper parts of the vector registers are zero but in use (no vzeroupper)");
  }
}

absl::Status Check(const CallState& state) {
  std::vector<std::string> broken;
  CheckGeneralRegisters(state, &broken);
  CheckSettings(state, &broken);
  CheckUpperVectors(state, &broken);
  if (broken.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("called with rsp at ", state.rsp_before % 64,
                                          " modulo 64 and MXCSR ", Hex(state.mxcsr), ": ",
                                          absl::StrJoin(broken, "; ")));
}

struct Surroundings {
  uint64_t stack_offset;
  uint32_t mxcsr;
  uint16_t x87_control;
};
// MXCSR 0xffc0: truncate, flush results and operands to zero. x87 0xf7f: truncate. Only such
// settings expose a function that restores the usual ones instead of the caller's.
constexpr Surroundings kSurroundings[] = {
    {48, 0xffc0, 0x0f7f},
    {32, 0x1f80, 0x037f},
    {16, 0xffc0, 0x0f7f},
    {0, 0x1f80, 0x037f},
};

}  // namespace

// One call per alignment of the stack.
absl::StatusOr<int64_t> CallCheckingAbi(KernelFunction function, const int64_t* table, int64_t p0,
                                        int64_t p1, int64_t p2) {
  NESTOR_RETURN_IF_ERROR(CheckIsa(kLeastIsa));
  CallState state = {};
  state.function = function;
  const int64_t arguments[] = {static_cast<int64_t>(reinterpret_cast<intptr_t>(table)), p0, p1, p2};
  std::copy(std::begin(arguments), std::end(arguments), state.arguments);
  NESTOR_ASSIGN_OR_RETURN(const CodeMemory memory,
                          CodeMemory::Seal(Trampoline(&state, Features()).code()));
  const auto trampoline = reinterpret_cast<void (*)()>(reinterpret_cast<uintptr_t>(memory.data()));
  for (const Surroundings& surroundings : kSurroundings) {
    state.stack_offset = surroundings.stack_offset;
    state.mxcsr = surroundings.mxcsr;
    state.x87_control = surroundings.x87_control;
    trampoline();
    NESTOR_RETURN_IF_ERROR(Check(state));
  }
  return state.result;
}

}  // namespace nestor::jit
