// Whatever ends a child is told.
#include "check/child.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
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
  const ChildEnd end =
      RunInChild([](Say say) { say("one"), say("two\nlines\n"), say(""), say(std::string(300'000, '\x1f')); }, hear,
                 absl::Seconds(20));
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
  const ChildEnd end = RunInChild([](Say) { absl::SleepFor(absl::Seconds(60)); }, kHearAll, absl::Milliseconds(100));
  EXPECT_TRUE(absl::StrContains(end.death, "no word")) << end.death;
}

TEST(Child, EndsWhereNobodyListens) {
  int heard = 0;
  const auto hear = [&](absl::string_view) { return ++heard < 3; };
  const ChildEnd end = RunInChild([](Say say) { for (;;) say("again"); }, hear, absl::Seconds(20));
  EXPECT_EQ(end.death, "");
  EXPECT_EQ(heard, 3);
}

}  // namespace
}  // namespace nestor
