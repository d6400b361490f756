// A child sets its limits and streams and becomes the command; no shell is involved, so that a word
// may hold anything.
#include "cli/run_command_testing.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace nestor::cli {
namespace {

namespace fs = std::filesystem;

std::string ReadText(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// The exit code of a child that cannot start the command: no case expects it.
constexpr int kCannotStart = 99;

void Need(bool done) {
  if (!done) _exit(kCannotStart);
}

void Limit(decltype(RLIMIT_CPU) resource, rlim_t most) {
  const rlimit limit = {most, most};
  Need(setrlimit(resource, &limit) == 0);
}

void SetLimits(const CommandLimits& limits) {
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, limits.cpu_seconds);
  Limit(RLIMIT_FSIZE, limits.file_bytes);
  if (!kIsSanitized) Limit(RLIMIT_AS, limits.memory_bytes);
  alarm(limits.seconds);
}

void Redirect(int fd, const std::string& path, int flags) {
  const int file = open(path.c_str(), flags, 0666);
  Need(file >= 0 && dup2(file, fd) == fd && close(file) == 0);
}

void RedirectStdout(const std::string& file, Stdout out) {
  if (out == Stdout::kFile) return Redirect(STDOUT_FILENO, file, O_WRONLY | O_CREAT | O_TRUNC);
  if (out == Stdout::kFullDevice) return Redirect(STDOUT_FILENO, "/dev/full", O_WRONLY);
  int ends[2];
  Need(pipe(ends) == 0 && dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO && close(ends[0]) == 0 &&
       close(ends[1]) == 0);
}

[[noreturn]] void BecomeCommand(const std::string& command, const std::vector<std::string>& words) {
  std::vector<char*> argv = {const_cast<char*>("nestor")};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  signal(SIGPIPE, SIG_DFL);
  execv(command.c_str(), argv.data());
  _exit(kCannotStart);
}

}  // namespace

CommandDirectory::CommandDirectory() : root_(testing::TempDir() + "/nestor_XXXXXX") {
  EXPECT_NE(mkdtemp(root_.data()), nullptr);
  work_ = root_ + "/work";
  EXPECT_TRUE(fs::create_directory(work_));
  command_ = fs::absolute("cli/nestor");
}

CommandDirectory::~CommandDirectory() { fs::remove_all(root_); }

void CommandDirectory::Put(const std::string& name, absl::string_view contents) const {
  std::ofstream(work_ + "/" + name, std::ios::binary)
      .write(contents.data(), static_cast<std::streamsize>(contents.size()));
}

void CommandDirectory::MakeDirectory(const std::string& name) const {
  EXPECT_TRUE(fs::create_directory(work_ + "/" + name));
}

CommandDirectory::Snapshot CommandDirectory::TakeSnapshot() const {
  Snapshot snapshot;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(work_)) {
    struct stat info = {};
    EXPECT_EQ(lstat(entry.path().c_str(), &info), 0);
    snapshot[entry.path()] = {info.st_ino, info.st_size,
                              info.st_mtim.tv_sec * 1'000'000'000u + info.st_mtim.tv_nsec};
  }
  return snapshot;
}

CommandOutcome CommandDirectory::Run(const CommandCall& call) const {
  const std::string in = root_ + "/in", out = root_ + "/out", err = root_ + "/err";
  std::ofstream(in, std::ios::binary) << call.in;
  std::ofstream(out, std::ios::trunc).close();
  const pid_t child = fork();
  if (child == 0) {
    Need(chdir(absl::StrCat(work_, "/", call.directory).c_str()) == 0);
    Redirect(STDIN_FILENO, in, O_RDONLY);
    RedirectStdout(out, call.out);
    Redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT | O_TRUNC);
    SetLimits(call.limits);
    BecomeCommand(command_, call.words);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  const bool is_killed = WIFSIGNALED(status);
  return {is_killed ? -1 : WEXITSTATUS(status), is_killed ? WTERMSIG(status) : 0, ReadText(out),
          ReadText(err)};
}

}  // namespace nestor::cli
