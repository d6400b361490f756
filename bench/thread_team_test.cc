// Every member runs once in each call, on a thread of its own.
#include "bench/thread_team.h"

#include <mutex>

#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

TEST(ThreadTeamTest, EveryMemberWorksOnceACall) {
  for (const int size : {1, 2, 5}) {
    ThreadTeam team(size);
    ASSERT_EQ(team.size(), size);
    std::vector<int> calls(size, 0);  // each member's own element
    for (int call = 1; call <= 300; ++call) {
      team.Run([&](int member) { ++calls[member]; });
      ASSERT_EQ(calls, std::vector<int>(size, call)) << size << " members";
    }
  }
}

TEST(ThreadTeamTest, MembersAreThreadsOfTheirOwn) {
  ThreadTeam team(3);
  std::mutex mutex;
  std::vector<std::thread::id> ids;
  team.Run([&](int) {
    const std::lock_guard<std::mutex> lock(mutex);
    ids.push_back(std::this_thread::get_id());
  });
  ASSERT_EQ(ids.size(), 3);
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_NE(ids[0], ids[2]);
  EXPECT_NE(ids[1], ids[2]);
}

}  // namespace
}  // namespace nestor::bench
