// Every way in which a child ends is reported.
#include "check/child.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nestor {
namespace {

const auto kHearAll = [](absl::string_view) { return true; };

TEST(Child, Says) {
  std::vector<std::string> heard;
  const auto hear = [&](absl::string_view message) {
    heard.emplace_back(message);
    return true;
  };
  const ChildEnd end = RunInChild(
      [](Say say) { say("one"), say("two\nlines\n"), say(""), say(std::string(300'000, '\x1f')); },
      hear, absl::Seconds(20));
  EXPECT_EQ(end.death, "");
  ASSERT_EQ(heard.size(), 4u);
  EXPECT_EQ(heard[1], "two\nlines\n");
  EXPECT_EQ(heard[3].size(), 300'000u);
}

TEST(Child, Dies) {
  const ChildEnd fault = RunInChild([](Say) { std::raise(SIGSEGV); }, kHearAll, absl::Seconds(20));
  EXPECT_TRUE(absl::StrContains(fault.death, "signal 11")) << fault.death;
  const ChildEnd abort = RunInChild(
      [](Say) {
        std::fputs("the last word\n", stderr);
        std::abort();
      },
      kHearAll, absl::Seconds(20));
  EXPECT_TRUE(absl::StrContains(abort.death, "signal 6")) << abort.death;
  EXPECT_TRUE(absl::StrContains(abort.words, "the last word"));
  const ChildEnd exit = RunInChild([](Say) { std::_Exit(3); }, kHearAll, absl::Seconds(20));
  EXPECT_EQ(exit.death, "exited with 3");
}

TEST(Child, IsSilent) {
  const ChildEnd end =
      RunInChild([](Say) { absl::SleepFor(absl::Seconds(60)); }, kHearAll, absl::Milliseconds(100));
  EXPECT_TRUE(absl::StrContains(end.death, "no word")) << end.death;
}

TEST(Child, EndsWhereNobodyListens) {
  int heard = 0;
  const auto hear = [&](absl::string_view) { return ++heard < 3; };
  const ChildEnd end = RunInChild(
      [](Say say) {
        for (;;) say("again");
      },
      hear, absl::Seconds(20));
  EXPECT_EQ(end.death, "");
  EXPECT_EQ(heard, 3);
}

// A process that a child forks has the pipes as well, and may live longer.
TEST(Child, IsNotWaitedForBeyondItsEnd) {
  int held[2];  // by the process that the child leaves
  ASSERT_EQ(pipe(held), 0);
  const auto fork_and_leave = [&](Say say) {
    say("before");
    while (fork() == 0) absl::SleepFor(absl::Seconds(60));
    say("behind");
  };
  std::vector<std::string> heard;
  const auto hear = [&](absl::string_view message) {
    heard.emplace_back(message);
    return true;
  };
  const absl::Time start = absl::Now();
  EXPECT_EQ(RunInChild(fork_and_leave, hear, absl::Seconds(20)).death, "");
  EXPECT_THAT(heard, testing::ElementsAre("before", "behind"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(15));
  close(held[1]);
  pollfd end = {held[0], POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 10'000), 1) << "what it left lives on";
  close(held[0]);
}

// Words on stderr are no sign of life, and neither is a pipe that the child has closed.
TEST(Child, IsSilentThoughItWrites) {
  const auto write_always = [](Say) {
    for (;;) {
      std::fputs("again\n", stderr);
      absl::SleepFor(absl::Milliseconds(1));
    }
  };
  EXPECT_TRUE(RunInChild(write_always, kHearAll, absl::Milliseconds(100)).is_hung);
  const auto close_all = [](Say) {
    for (int fd = 3; fd < 256; ++fd) close(fd);
    absl::SleepFor(absl::Seconds(60));
  };
  EXPECT_TRUE(RunInChild(close_all, kHearAll, absl::Milliseconds(100)).is_hung);
}

}  // namespace
}  // namespace nestor
