// Functions that break one rule of the ABI each, which the harness must name, and ones that keep
// all.
#include "jit/runtime/abi_harness.h"

#include <cpuid.h>
#include <xbyak/xbyak.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/runtime/code_memory.h"
#include "jit/runtime/cpu_features.h"

namespace nestor::jit {
namespace {

using namespace Xbyak::util;  // NOLINT: names of registers
using ::testing::HasSubstr;
using ::testing::Not;
using Assembler = Xbyak::CodeGenerator;
using Write = void (*)(Assembler&);  // writes a function without its last `ret`

// Memory that the functions under test get as their table: zeros at first.
constexpr int kTableWords = 16;

struct Outcome {
  absl::StatusOr<int64_t> result;
  std::vector<int64_t> table;
};

Outcome AssembleAndCall(Write write, int64_t p0 = 0, int64_t p1 = 0, int64_t p2 = 0) {
  Assembler assembler(4096, Xbyak::DontSetProtectRWE);
  write(assembler);
  assembler.ret();
  const CodeMemory memory =
      CodeMemory::Seal(absl::MakeConstSpan(assembler.getCode(), assembler.getSize())).value();
  std::vector<int64_t> table(kTableWords, 0);
  const auto function =
      reinterpret_cast<KernelFunction>(reinterpret_cast<uintptr_t>(memory.data()));
  absl::StatusOr<int64_t> result = CallCheckingAbi(function, table.data(), p0, p1, p2);
  return {std::move(result), std::move(table)};
}

class AbiHarness : public testing::Test {
 protected:
  void SetUp() override {
    if (!CheckIsa(Isa::kAvx2).ok()) GTEST_SKIP() << CheckIsa(Isa::kAvx2);
  }
};

struct Case {
  std::string name;  // for a bad function: the finding of the harness
  Write write;
};

void SetMxcsr(Assembler& a, uint32_t value) {
  a.mov(dword[rsp - 8], value);
  a.ldmxcsr(ptr[rsp - 8]);
}

const Case kGood[] = {
    {"does nothing", [](Assembler&) {}},
    {"uses what needs no saving",
     [](Assembler& a) {
       for (const Xbyak::Reg64& r : {rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11}) a.mov(r, -1);
       for (int i = 0; i < 16; ++i) a.vpcmpeqd(Xbyak::Ymm(i), ymm0, ymm0);
       a.vzeroupper();
     }},
    {"saves what it uses",
     [](Assembler& a) {
       const Xbyak::Reg64 preserved[] = {rbx, rbp, r12, r13, r14, r15};
       for (int i = 0; i < 6; ++i) a.push(preserved[i]);
       for (int i = 0; i < 6; ++i) a.xor_(preserved[i], preserved[i]);
       for (int i = 5; i >= 0; --i) a.pop(preserved[i]);
     }},
    {"aligns its own frame",
     [](Assembler& a) {
       a.push(rbp);
       a.mov(rbp, rsp);
       a.and_(rsp, -64);
       a.sub(rsp, 128);
       a.vpcmpeqd(ymm1, ymm1, ymm1);
       a.vmovaps(ptr[rsp + 64], ymm1);
       a.vzeroupper();
       a.leave();
     }},
    {"writes its red zone", [](Assembler& a) { a.mov(qword[rsp - 128], 1); }},
    {"sets sticky flags",
     [](Assembler& a) {
       a.vxorps(xmm0, xmm0, xmm0);
       a.vdivps(xmm0, xmm0, xmm0);
     }},
    {"puts its caller's settings back",
     [](Assembler& a) {
       a.stmxcsr(ptr[rsp - 16]);
       SetMxcsr(a, 0x1f80);
       a.ldmxcsr(ptr[rsp - 16]);
       a.fnstcw(ptr[rsp - 16]);
       a.fninit();
       a.fldcw(ptr[rsp - 16]);
     }},
    {"empties the x87 registers",
     [](Assembler& a) {
       a.fld1();
       a.fstp(st0);
     }},
    {"copies backwards and clears the flag",
     [](Assembler& a) {
       a.std();
       a.cld();
     }},
};

TEST_F(AbiHarness, AcceptsWhatKeepsTheRules) {
  for (const Case& c : kGood)
    EXPECT_EQ(AssembleAndCall(c.write).result.status(), absl::OkStatus()) << c.name;
}

const Case kBad[] = {
    {"rbx is not preserved", [](Assembler& a) { a.mov(ebx, ebx); }},
    {"rbp is not preserved", [](Assembler& a) { a.xor_(ebp, ebp); }},
    {"r12 is not preserved", [](Assembler& a) { a.inc(r12); }},
    {"r13 is not preserved", [](Assembler& a) { a.inc(r13); }},
    {"r14 is not preserved", [](Assembler& a) { a.inc(r14); }},
    {"r15 is not preserved", [](Assembler& a) { a.inc(r15); }},
    {"rsp is 24 bytes too high", [](Assembler& a) { a.ret(24); }},
    {"rsp is 8 bytes too low",
     [](Assembler& a) {
       a.pop(rcx);
       a.sub(rsp, 8);
       a.jmp(rcx);
     }},
    {"the caller's frame is overwritten 0 bytes above",
     [](Assembler& a) { a.mov(qword[rsp + 8], 0); }},
    {"the caller's frame is overwritten 56 bytes above",
     [](Assembler& a) { a.mov(byte[rsp + 64], 0); }},
    {"the direction flag is set", [](Assembler& a) { a.std(); }},
    {"MXCSR is 0x7f80", [](Assembler& a) { SetMxcsr(a, 0x7f80); }},
    {"MXCSR is 0x1f80 and was 0xffc0", [](Assembler& a) { SetMxcsr(a, 0x1f80); }},
    {"the x87 control word is 0x37f and was 0xf7f", [](Assembler& a) { a.fninit(); }},
    {"the x87 registers are not empty", [](Assembler& a) { a.fld1(); }},
    {"the x87 registers are not empty", [](Assembler& a) { a.movq(mm0, rax); }},
    {"vector register 0 is not zero above", [](Assembler& a) { a.vpcmpeqd(ymm0, ymm0, ymm0); }},
    {"vector register 15 is not zero above", [](Assembler& a) { a.vpcmpeqd(ymm15, ymm0, ymm0); }},
};

TEST_F(AbiHarness, NamesWhatIsBroken) {
  for (const Case& c : kBad) {
    const absl::Status status = AssembleAndCall(c.write).result.status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << c.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.name));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(";"))) << "broke but one rule";
  }
}

TEST_F(AbiHarness, NamesAllThatIsBroken) {
  const absl::Status status = AssembleAndCall([](Assembler& a) {
                                a.inc(r12);
                                a.inc(r14);
                                a.std();
                                a.ret(8);
                              }).result.status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("r12 is not preserved; r14 is not preserved; "
                        "rsp is 8 bytes too high; the direction flag is set"));
}

// Zeros in a ymm register that stays in use slow down the caller's SSE code.
TEST_F(AbiHarness, ZerosDoNotHideAMissingVzeroupper) {
  uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid_count(0xd, 1, &eax, &ebx, &ecx, &edx) || (eax >> 2 & 1) == 0) {
    GTEST_SKIP() << "this CPU does not tell which registers are in use";
  }
  const absl::Status status =
      AssembleAndCall([](Assembler& a) { a.vmovups(ymm3, ptr[rdi]); }).result.status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("zero but in use"));
}

TEST_F(AbiHarness, SeesTheUpperHalfOfZmm) {
  if (!CheckIsa(Isa::kAvx512).ok()) GTEST_SKIP() << CheckIsa(Isa::kAvx512);
  const absl::Status status = AssembleAndCall([](Assembler& a) {
                                a.vpternlogd(zmm5, zmm5, zmm5, 0xff);
                                a.vxorps(ymm6, ymm6, ymm6);
                                a.vinserti64x4(zmm5, zmm5, ymm6, 0);
                              }).result.status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("vector register 5 is not zero"));
}

TEST_F(AbiHarness, PassesTheArgumentsAndTheResult) {
  const Outcome outcome = AssembleAndCall(
      [](Assembler& a) {
        a.mov(ptr[rdi + 8], rsi);
        a.mov(ptr[rdi + 16], rdx);
        a.mov(ptr[rdi + 24], rcx);
        a.mov(rax, 0x123456789abcdef0);
      },
      -1, 1LL << 40, 3);
  EXPECT_EQ(outcome.result.value(), 0x123456789abcdef0);
  EXPECT_EQ(outcome.table[1], -1);
  EXPECT_EQ(outcome.table[2], 1LL << 40);
  EXPECT_EQ(outcome.table[3], 3);
}

TEST_F(AbiHarness, CallsAtEachPhaseOfTheStackAndLastWithUsualSettings) {
  const Outcome outcome = AssembleAndCall([](Assembler& a) {
    a.inc(qword[rdi]);
    a.mov(rax, ptr[rdi]);
    a.mov(ptr[rdi + rax * 8], rsp);
    a.stmxcsr(ptr[rdi + 64]);
  });
  ASSERT_EQ(outcome.result.value(), 4);
  std::set<int64_t> phases;
  for (int i = 1; i <= 4; ++i) phases.insert((outcome.table[i] + 8) % 64);
  EXPECT_EQ(phases, (std::set<int64_t>{0, 16, 32, 48}));
  EXPECT_EQ(outcome.table[8], 0x1f80);
}

TEST_F(AbiHarness, FindsWhatBreaksAtOnePhaseOnly) {
  for (const int phase : {0, 16, 32, 48}) {
    static int bad_phase;
    bad_phase = phase;
    const absl::Status status = AssembleAndCall([](Assembler& a) {
                                  Xbyak::Label fine;
                                  a.lea(rax, ptr[rsp + 8]);
                                  a.and_(eax, 63);
                                  a.cmp(eax, bad_phase);
                                  a.jne(fine);
                                  a.inc(r13);
                                  a.L(fine);
                                }).result.status();
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rsp at " + std::to_string(phase) + " modulo 64"));
  }
}

}  // namespace
}  // namespace nestor::jit
