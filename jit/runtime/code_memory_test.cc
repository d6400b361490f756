// The pages of sealed code, as the kernel of the operating system lists them, and what happens
// without memory or rights.
#include "jit/runtime/code_memory.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nestor::jit {
namespace {

using ::testing::ElementsAre;

constexpr uint8_t kReturns42[] = {0xb8, 42, 0, 0, 0, 0xc3};  // mov eax, 42; ret

int Call(const CodeMemory& memory) {
  return reinterpret_cast<int (*)()>(const_cast<uint8_t*>(memory.data()))();
}

struct Mapping {
  uintptr_t begin, end;
  std::string permissions;
};

std::vector<Mapping> Mappings() {
  std::ifstream file("/proc/self/maps");
  std::vector<Mapping> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Mapping mapping;
    char dash;
    words >> std::hex >> mapping.begin >> dash >> mapping.end >> mapping.permissions;
    all.push_back(mapping);
  }
  return all;
}

// "" if nothing is mapped.
std::string PermissionsAt(const void* at) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(at);
  for (const Mapping& mapping : Mappings()) {
    if (mapping.begin <= address && address < mapping.end) return mapping.permissions;
  }
  return "";
}

TEST(CodeMemory, RunsWhatWasSealed) {
  const CodeMemory memory = CodeMemory::Seal(kReturns42).value();
  EXPECT_EQ(memory.size(), sizeof(kReturns42));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 64, 0u);
  EXPECT_EQ(Call(memory), 42);
}

// Pages of a file in memory, and pages of no file, which perf's map asks for.
class EachWay : public testing::TestWithParam<const char*> {
 public:
  EachWay() { setenv("NESTOR_PERF_MAP", GetParam(), 1); }
  ~EachWay() override { unsetenv("NESTOR_PERF_MAP"); }
};
INSTANTIATE_TEST_SUITE_P(CodeMemory, EachWay, testing::Values("0", "1"));

TEST_P(EachWay, EveryPageIsExecutableAndNoneIsWritable) {
  for (const size_t size : {1, 63, 4095, 4096, 4097, 100000}) {
    const CodeMemory memory = CodeMemory::Seal(std::vector<uint8_t>(size, 0x90)).value();
    ASSERT_EQ(memory.size(), size);
    for (size_t i = 0; i < size; i += 4096)
      EXPECT_EQ(PermissionsAt(memory.data() + i), "r-xp") << size << " " << i;
    EXPECT_EQ(PermissionsAt(memory.data() + size - 1), "r-xp") << size;
  }
  for (const Mapping& mapping : Mappings()) EXPECT_NE(mapping.permissions.substr(1, 2), "wx");
}

TEST_P(EachWay, BreakpointsStandBehindTheCode) {
  const CodeMemory memory = CodeMemory::Seal(kReturns42).value();
  EXPECT_EQ(Call(memory), 42);
  for (size_t i = memory.size(); i < 4096; ++i) ASSERT_EQ(memory.data()[i], 0xcc) << i;
}

TEST(CodeMemoryDeathTest, WritingToSealedCodeFaults) {
  const CodeMemory memory = CodeMemory::Seal(kReturns42).value();
  volatile uint8_t* const first = const_cast<uint8_t*>(memory.data());
  EXPECT_EXIT(*first = 0, testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EQ(Call(memory), 42);
}

TEST(CodeMemory, AnEmptyOneHasNoPages) {
  const CodeMemory memory = CodeMemory::Seal({}).value();
  EXPECT_EQ(memory.data(), nullptr);
  EXPECT_EQ(memory.size(), 0u);
}

TEST(CodeMemory, MovesAndUnmaps) {
  const uint8_t *first_pages, *second_pages;
  {
    CodeMemory first = CodeMemory::Seal(kReturns42).value();
    CodeMemory second = CodeMemory::Seal(kReturns42).value();
    first_pages = first.data();
    second_pages = second.data();
    CodeMemory moved(std::move(first));
    EXPECT_EQ(first.data(), nullptr);
    EXPECT_EQ(moved.data(), first_pages);
    moved = std::move(second);
    EXPECT_EQ(moved.data(), second_pages);
    EXPECT_EQ(PermissionsAt(first_pages), "");
    EXPECT_EQ(Call(moved), 42);
  }
  EXPECT_EQ(PermissionsAt(second_pages), "");
}

// Shows how Seal fails in a process that `take_away` has deprived of something.
template <typename TakeAway>
[[noreturn]] void ShowFailure(TakeAway take_away) {
  take_away();
  const absl::StatusOr<CodeMemory> memory = CodeMemory::Seal(kReturns42);
  std::fprintf(stderr, "%s\n", memory.status().ToString().c_str());
  std::_Exit(0);
}

TEST(CodeMemoryDeathTest, NoMemoryIsResourceExhausted) {
  const auto no_memory = [] {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_AS, &none);
  };
  EXPECT_EXIT(ShowFailure(no_memory), testing::ExitedWithCode(0),
              "RESOURCE_EXHAUSTED: allocation of 4096 bytes");
}

TEST(CodeMemoryDeathTest, NoRightToExecuteIsPermissionDenied) {
  // PR_*_MDWE, since Linux 6.3.
  constexpr int kGetMemoryDenyWriteExecute = 66, kSetMemoryDenyWriteExecute = 65;
  if (prctl(kGetMemoryDenyWriteExecute, 0, 0, 0, 0) < 0)
    GTEST_SKIP() << "this kernel cannot refuse executable memory";
  const auto no_right = [] {
    setenv("NESTOR_PERF_MAP", "1", 1);
    prctl(kSetMemoryDenyWriteExecute, 1, 0, 0, 0);
  };
  EXPECT_EXIT(ShowFailure(no_right), testing::ExitedWithCode(0),
              "PERMISSION_DENIED: sealing of 4096 bytes");
}

// A process is killed if it writes a larger file.
TEST(CodeMemoryDeathTest, NoFilesAreNeeded) {
  const auto run_without_files = [] {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
    std::_Exit(Call(CodeMemory::Seal(kReturns42).value()));
  };
  EXPECT_EXIT(run_without_files(), testing::ExitedWithCode(42), "");
}

// The lines that `report` appends to this process's map.
template <typename Report>
std::vector<std::string> PerfLines(Report report) {
  const std::string path = absl::StrCat("/tmp/perf-", getpid(), ".map");
  unlink(path.c_str());
  report();
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  unlink(path.c_str());
  return lines;
}

TEST(ReportToPerf, AppendsALineEach) {
  setenv("NESTOR_PERF_MAP", "1", 1);
  EXPECT_THAT(PerfLines([] {
                ReportToPerf(reinterpret_cast<void*>(0x7f00001000), 0x1c0,
                             "nestor softmax block 2");
                ReportToPerf(reinterpret_cast<void*>(0x40), 10, "two\nlines");
              }),
              ElementsAre("7f00001000 1c0 nestor softmax block 2", "40 a two lines"));
}

TEST(ReportToPerf, IsSilentUnlessAsked) {
  const auto report = [] { ReportToPerf(nullptr, 1, "name"); };
  unsetenv("NESTOR_PERF_MAP");
  EXPECT_THAT(PerfLines(report), ElementsAre());
  setenv("NESTOR_PERF_MAP", "0", 1);
  EXPECT_THAT(PerfLines(report), ElementsAre());
}

TEST(ReportToPerf, LinesOfTwoThreadsDoNotMix) {
  setenv("NESTOR_PERF_MAP", "1", 1);
  constexpr int kLines = 500;
  const std::string name(200, 'k');
  const auto report_many = [&] {
    for (int i = 0; i < kLines; ++i) ReportToPerf(nullptr, 1, name);
  };
  const std::vector<std::string> lines = PerfLines([&] {
    std::thread other(report_many);
    report_many();
    other.join();
  });
  EXPECT_EQ(lines.size(), 2u * kLines);
  for (const std::string& line : lines) ASSERT_EQ(line, absl::StrCat("0 1 ", name));
}

}  // namespace
}  // namespace nestor::jit
