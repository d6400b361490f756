// Each line has one instruction, and which set has it.
#include "jit/codegen/foreign_instructions.h"

#include <cstdint>
#include <string>

#include <xbyak/xbyak.h>

#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "jit/target/isa.h"

namespace nestor::jit {
namespace {

using Code = Xbyak::CodeGenerator;

struct Case {
  const char* what;
  void (*emit)(Code& c);
  const char *avx2, *avx512;  // the finding; "": none
};

const Case kCases[] = {
    {"general", [](Code& c) { c.add(c.rax, c.r15); }, "", ""},
    {"cmov", [](Code& c) { c.cmovl(c.rax, c.r15); }, "", ""},
    {"xmm", [](Code& c) { c.vaddps(c.xmm0, c.xmm1, c.xmm15); }, "", ""},
    {"ymm", [](Code& c) { c.vpaddd(c.ymm0, c.ymm1, c.ymm15); }, "", ""},
    {"fma", [](Code& c) { c.vfmadd231ps(c.ymm0, c.ymm1, c.ymm15); }, "", ""},
    {"f16c", [](Code& c) { c.vcvtph2ps(c.ymm0, c.ptr[c.rax]); }, "", ""},
    {"bmi2", [](Code& c) { c.bzhi(c.eax, c.eax, c.edx); }, "", ""},
    {"prefetch", [](Code& c) { c.prefetcht0(c.ptr[c.rax]); }, "", ""},
    {"zmm", [](Code& c) { c.vaddps(c.zmm0, c.zmm1, c.zmm2); }, "zmm0 is no register of avx2", ""},
    {"load of zmm", [](Code& c) { c.vmovups(c.zmm3, c.ptr[c.rax]); }, "zmm3 is no register of avx2",
     ""},
    {"ymm16", [](Code& c) { c.vaddps(c.ymm0, c.ymm16, c.ymm2); }, "ymm16 is no register of avx2",
     ""},
    {"xmm31", [](Code& c) { c.vmovups(c.ptr[c.rax], c.xmm31); }, "xmm31 is no register of avx2",
     ""},
    {"compare to a mask", [](Code& c) { c.vcmpps(c.k1, c.ymm0, c.ymm1, 0); },
     "k1 is no register of avx2", ""},
    {"mask move", [](Code& c) { c.kmovw(c.k2, c.eax); }, "k2 is no register of avx2", ""},
    {"move of k0", [](Code& c) { c.kmovw(c.k0, c.eax); }, "AVX512F_KOP is no part of avx2", ""},
    {"masked", [](Code& c) { c.vaddps(c.ymm0 | c.k3, c.ymm1, c.ymm2); },
     "k3 is no register of avx2", ""},
    {"EVEX on low registers", [](Code& c) { c.vpandd(c.ymm0, c.ymm1, c.ymm2); },
     "the EVEX form is none of avx2", ""},
    {"quadwords", [](Code& c) { c.vpmullq(c.xmm0, c.xmm1, c.xmm2); },
     "the EVEX form is none of avx2", ""},
    {"bytes and words", [](Code& c) { c.vpaddb(c.zmm0, c.zmm1, c.zmm2); },
     "zmm0 is no register of avx2", ""},
    {"SSE", [](Code& c) { c.addps(c.xmm0, c.xmm1); }, "SSE is no part of avx2",
     "SSE is no part of avx512"},
    {"bit manipulation of bytes", [](Code& c) { c.vpermb(c.zmm0, c.zmm1, c.zmm2); },
     "zmm0 is no register of avx2", "AVX512_VBMI_512 is no part of avx512"},
    {"conflicts", [](Code& c) { c.vpconflictd(c.ymm0, c.ymm1); }, "the EVEX form is none of avx2",
     "AVX512CD_256 is no part of avx512"},
    {"dot products", [](Code& c) { c.vpdpbusd(c.ymm0, c.ymm1, c.ymm2, Xbyak::VexEncoding); },
     "AVX_VNNI is no part of avx2", "AVX_VNNI is no part of avx512"},
    {"no instruction", [](Code& c) { c.db(0x06); }, "no instruction", "no instruction"},
};

std::string Said(const Case& c, Isa isa) {
  Code code;
  code.mov(code.rax, code.rdx);
  c.emit(code);
  return FirstForeignInstruction({code.getCode(), code.getSize()}, isa).value_or("");
}

TEST(ForeignInstructions, AreThoseThatASetLacks) {
  for (const Case& c : kCases) {
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
      const std::string want = isa == Isa::kAvx2 ? c.avx2 : c.avx512, said = Said(c, isa);
      EXPECT_EQ(said.empty(), want.empty()) << c.what << ": " << said;
      EXPECT_NE(said.find(want), std::string::npos) << c.what << ": " << said << ", not " << want;
      EXPECT_TRUE(said.empty() || said.rfind("0003: ", 0) == 0) << c.what << ": " << said;
    }
  }
}

struct StreamingCase {
  const char* what;
  void (*emit)(Code& c);
  const char* said;
};

constexpr char kUnfenced[] = ": ret: no fence orders the streaming stores before it";

const StreamingCase kStreamingCases[] = {
    // clang-format off
    {"no stream", [](Code& c) { c.vmovups(c.ptr[c.rax], c.xmm1); c.ret(); }, ""},
    {"fenced",
     [](Code& c) { c.vmovntps(c.ptr[c.rax], c.ymm1); c.sfence(); c.pop(c.rbx); c.ret(); }, ""},
    {"no fence", [](Code& c) { c.vmovntps(c.ptr[c.rax], c.ymm1); c.ret(); }, kUnfenced},
    {"of bytes", [](Code& c) { c.vmovntdq(c.ptr[c.rax], c.xmm1); c.ret(); }, kUnfenced},
    {"of a general register", [](Code& c) { c.movnti(c.ptr[c.rax], c.rdx); c.ret(); }, kUnfenced},
    {"fenced too early",
     [](Code& c) { c.sfence(); c.vmovntps(c.ptr[c.rax], c.ymm1); c.ret(); }, kUnfenced},
    {"between",
     [](Code& c) {
       c.vmovntps(c.ptr[c.rax], c.xmm1); c.sfence(); c.vmovntps(c.ptr[c.rax], c.xmm1); c.ret();
     }, kUnfenced},
    {"another fence",
     [](Code& c) { c.vmovntps(c.ptr[c.rax], c.xmm1); c.lfence(); c.ret(); }, kUnfenced},
    {"the second return",
     [](Code& c) { c.ret(); c.vmovntps(c.ptr[c.rax], c.xmm1); c.ret(); }, kUnfenced},
    // clang-format on
};

TEST(ForeignInstructions, StreamingStoresNeedAFence) {
  for (const StreamingCase& c : kStreamingCases) {
    Code code;
    c.emit(code);
    const std::string said = FirstUnfencedReturn({code.getCode(), code.getSize()}).value_or("");
    EXPECT_EQ(said.empty(), *c.said == '\0') << c.what << ": " << said;
    EXPECT_NE(said.find(c.said), std::string::npos) << c.what << ": " << said;
  }
}

}  // namespace
}  // namespace nestor::jit
