// Kernels with a statement that faults, in processes that die of it: what they say before, and that
// they die as they would have without the handler.
#include "jit/runtime/crash_report.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xbyak/xbyak.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/runtime/code_memory.h"

namespace nestor::jit {
namespace {

using namespace Xbyak::util;  // NOLINT: names of registers

using ::testing::HasSubstr;
using ::testing::KilledBySignal;
using ::testing::Not;
using ::testing::Truly;
using Assembler = Xbyak::CodeGenerator;
using Write = void (*)(Assembler&);

// A kernel of three statements, the second of which is given.
struct Kernel {
  explicit Kernel(Write second, const std::string& name = "scale") {
    Assembler a(4096, Xbyak::DontSetProtectRWE);
    a.xor_(eax, eax);
    a.cdq();
    const size_t begin = a.getSize();
    second(a);
    const size_t end = a.getSize();
    a.ret();
    memory = CodeMemory::Seal(absl::MakeConstSpan(a.getCode(), a.getSize())).value();
    parts = {{0, absl::StrCat("kernel ", name, ", entry")},
             {begin, absl::StrCat("kernel ", name, ", block 2, statement 5: y[i] = 2*x[i]")},
             {end, absl::StrCat("kernel ", name, ", exit")}};
    registration = CodeRegistration(memory.data(), memory.size(), parts);
  }

  // `argument` is in rdi.
  void Call(const void* argument = nullptr) const {
    reinterpret_cast<void (*)(const void*)>(reinterpret_cast<uintptr_t>(memory.data()))(argument);
  }

  CodeMemory memory;
  std::vector<CodeRegistration::Part> parts;
  CodeRegistration registration;
};

const char kReport[] = "nestor: fault in kernel scale, block 2, statement 5: y[i] = 2*x[i]\n";

void LoadNull(Assembler& a) { a.mov(rax, ptr[rax]); }

// Each death is one of a fresh process, where nothing is installed or registered yet.
class CrashReportDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

// A mapped page past the end of its file.
const void* PageBehindTheFile() {
  const int file = memfd_create("empty", 0);
  return mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
}

struct Case {
  int signal;
  Write write;
};
const Case kFaults[] = {
    {SIGSEGV, LoadNull},
    {SIGSEGV, [](Assembler& a) { a.movaps(xmm0, ptr[rsp + 1]); }},  // no address is reported for it
    {SIGILL, [](Assembler& a) { a.ud2(); }},
    {SIGFPE, [](Assembler& a) { a.div(eax); }},
    {SIGBUS, [](Assembler& a) { a.mov(rax, ptr[rdi]); }},
};

TEST_F(CrashReportDeathTest, NamesTheStatementAndDiesAsBefore) {
  for (const Case& c : kFaults) {
    const auto fault = [&c] {
      InstallCrashReport();
      InstallCrashReport();
      const Kernel other([](Assembler& a) { a.nop(); }, "other");
      Kernel(c.write).Call(PageBehindTheFile());
    };
    EXPECT_EXIT(fault(), KilledBySignal(c.signal), HasSubstr(kReport));
  }
}

TEST_F(CrashReportDeathTest, TheFirstAndTheLastInstructionBelongToTheirStatements) {
  const auto fault_at = [](size_t part) {
    InstallCrashReport();
    const Kernel kernel([](Assembler& a) { a.nop(); });
    // A kernel of traps alone, with the parts of the other.
    // Hlt.
    const CodeMemory traps =
        CodeMemory::Seal(std::vector<uint8_t>(kernel.memory.size(), 0xf4)).value();
    const CodeRegistration registration(traps.data(), traps.size(), kernel.parts);
    const uint8_t* const at =
        traps.data() + (part < 3 ? kernel.parts[part].offset : traps.size() - 1);
    reinterpret_cast<void (*)()>(reinterpret_cast<uintptr_t>(at))();
  };
  EXPECT_EXIT(fault_at(0), KilledBySignal(SIGSEGV), "scale, entry\n");
  EXPECT_EXIT(fault_at(1), KilledBySignal(SIGSEGV), "scale, block 2");
  EXPECT_EXIT(fault_at(2), KilledBySignal(SIGSEGV), "scale, exit\n");
  EXPECT_EXIT(fault_at(3), KilledBySignal(SIGSEGV), "scale, exit\n");
}

TEST_F(CrashReportDeathTest, TheVariableInstallsIt) {
  const auto fault = [](const char* value) {
    setenv("NESTOR_CRASH_REPORT", value, 1);
    Kernel(LoadNull).Call();
  };
  EXPECT_EXIT(fault("1"), KilledBySignal(SIGSEGV), HasSubstr(kReport));
  EXPECT_EXIT(fault("0"), KilledBySignal(SIGSEGV), Not(HasSubstr("nestor:")));
}

TEST_F(CrashReportDeathTest, IsSilentUnlessInstalled) {
  EXPECT_EXIT(Kernel(LoadNull).Call(), KilledBySignal(SIGSEGV), Not(HasSubstr("nestor:")));
}

TEST_F(CrashReportDeathTest, IsSilentOutsideOfKernels) {
  const auto fault = [] {
    InstallCrashReport();
    const Kernel kernel(LoadNull);
    __builtin_trap();
  };
  EXPECT_EXIT(fault(), KilledBySignal(SIGILL), Not(HasSubstr("nestor:")));
}

TEST_F(CrashReportDeathTest, IsSilentOfWhatIsNoLongerRegistered) {
  const auto fault = [] {
    InstallCrashReport();
    Kernel kernel(LoadNull);
    kernel.registration = CodeRegistration();
    kernel.Call();
  };
  EXPECT_EXIT(fault(), KilledBySignal(SIGSEGV), Not(HasSubstr("nestor:")));
}

TEST_F(CrashReportDeathTest, ARegistrationMoves) {
  const auto fault = [] {
    InstallCrashReport();
    Kernel kernel(LoadNull);
    CodeRegistration moved(std::move(kernel.registration));
    kernel.registration = CodeRegistration();
    CodeRegistration again;
    again = std::move(moved);
    kernel.Call();
  };
  EXPECT_EXIT(fault(), KilledBySignal(SIGSEGV), HasSubstr(kReport));
}

// A host's handlers. Each shows that it was called, and how.

void ExitWith7(int signal) {
  const std::string text = absl::StrCat("host got ", signal, "\n");
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(7);
}

void ShowAddress(int, siginfo_t* info, void*) {
  const std::string text =
      absl::StrCat("host got address ", reinterpret_cast<uintptr_t>(info->si_addr), "\n");
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  _exit(8);
}

void Return(int) {}

sigjmp_buf recovery;
void Recover(int) { siglongjmp(recovery, 1); }
[[gnu::noinline]] void FaultAndRecover() {
  const Kernel kernel(LoadNull);
  if (sigsetjmp(recovery, 1) == 0) kernel.Call();
}

template <typename Handler>
void SetHandler(Handler handler, int flags) {
  struct sigaction action = {};
  if constexpr (std::is_same_v<Handler, void (*)(int)>) {
    action.sa_handler = handler;
  } else {
    action.sa_sigaction = handler;
  }
  action.sa_flags = flags;
  sigaction(SIGSEGV, &action, nullptr);
}

// Raises a fault in a kernel, with the host's handler installed before the report.
template <typename Handler>
void FaultUnder(Handler handler, int flags) {
  SetHandler(handler, flags);
  InstallCrashReport();
  Kernel(LoadNull).Call();
}

TEST_F(CrashReportDeathTest, TheHandlerBeforeIsCalled) {
  EXPECT_EXIT(FaultUnder(&ExitWith7, 0), testing::ExitedWithCode(7),
              HasSubstr(absl::StrCat(kReport, "host got 11\n")));
  EXPECT_EXIT(FaultUnder(&ShowAddress, SA_SIGINFO), testing::ExitedWithCode(8),
              HasSubstr(absl::StrCat(kReport, "host got address 0\n")));
  // A handler that is to be called once, and returns: the second fault goes to the default.
  EXPECT_EXIT(FaultUnder(&Return, static_cast<int>(SA_RESETHAND)), KilledBySignal(SIGSEGV),
              HasSubstr(kReport));
  // A fault cannot be ignored.
  EXPECT_EXIT(FaultUnder(SIG_IGN, 0), KilledBySignal(SIGSEGV), HasSubstr(kReport));
}

// A signal that another process or thread sends while a kernel runs is not its fault.
void SendWhileAKernelRuns() {
  InstallCrashReport();
  const Kernel endless([](Assembler& a) {
    Xbyak::Label again;
    a.L(again);
    a.cmp(byte[rdi], 0);
    a.je(again);
  });
  std::atomic<bool> stop{false};
  std::atomic<bool> running{false};
  std::thread runner([&] {
    running = true;
    endless.Call(&stop);
  });
  while (!running) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  pthread_kill(runner.native_handle(), SIGSEGV);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stop = true;
  runner.join();
  _exit(3);
}

TEST_F(CrashReportDeathTest, ASentSignalIsNotAFault) {
  EXPECT_EXIT(SendWhileAKernelRuns(), KilledBySignal(SIGSEGV), Not(HasSubstr("nestor:")));
  const auto ignored = [] {
    SetHandler(SIG_IGN, 0);
    SendWhileAKernelRuns();
  };
  EXPECT_EXIT(ignored(), testing::ExitedWithCode(3), Not(HasSubstr("nestor:")));
}

// One thread faults again and again, and recovers, while others come and go in the table.
constexpr int kRounds = 300;
void FaultAmongOthers() {
  SetHandler(&Recover, SA_NODEFER);
  InstallCrashReport();
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&stop] {
      while (!stop) const Kernel other([](Assembler& a) { a.nop(); }, "other");
    });
  }
  for (int round = 0; round < kRounds; ++round) FaultAndRecover();
  stop = true;
  for (std::thread& other : others) other.join();
  _exit(0);
}

TEST_F(CrashReportDeathTest, OthersComeAndGoMeanwhile) {
  const auto each_reported = [](const std::string& text) {
    const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    int reports = 0;
    for (const std::string& line : lines) reports += line + "\n" == kReport;
    return reports == kRounds && text.find("kernel other") == std::string::npos;
  };
  EXPECT_EXIT(FaultAmongOthers(), testing::ExitedWithCode(0), Truly(each_reported));
}

TEST_F(CrashReportDeathTest, AFullTableTakesNoMoreAndTakesAgain) {
  const auto fault = [](bool make_room) {
    InstallCrashReport();
    static const uint8_t code[1] = {0};
    std::vector<CodeRegistration> many;
    for (int i = 0; i < 5000; ++i)
      many.emplace_back(code, 1, std::vector<CodeRegistration::Part>{{0, "none"}});
    if (make_room) many.erase(many.begin() + 2000);
    Kernel(LoadNull).Call();
  };
  EXPECT_EXIT(fault(false), KilledBySignal(SIGSEGV), Not(HasSubstr("nestor:")));
  EXPECT_EXIT(fault(true), KilledBySignal(SIGSEGV), HasSubstr(kReport));
}

TEST_F(CrashReportDeathTest, PartsThatDoNotCoverTheCodeAreABug) {
  const auto make = [](std::vector<CodeRegistration::Part> parts) {
    CodeRegistration("code", 4, std::move(parts));
  };
  EXPECT_DEATH(make({}), "the first part begins the code");
  EXPECT_DEATH(make({{1, "a"}}), "the first part begins the code");
  EXPECT_DEATH(make({{0, "a"}, {2, "b"}, {2, "c"}}), "part 2: c");
  EXPECT_DEATH(make({{0, "a"}, {4, "b"}}), "part 1: b");
}

}  // namespace
}  // namespace nestor::jit
