// Each call raises a generation number, on which the members sleep; the last one
// to finish wakes the caller. The release of `generation_` publishes the work, that of `busy_`
// the members' writes.
#include "bench/thread_team.h"

namespace nestor::bench {

ThreadTeam::ThreadTeam(int size) {
  for (int member = 1; member < size; ++member)
    members_.emplace_back([this, member] { Serve(member); });
}

ThreadTeam::~ThreadTeam() {
  work_ = nullptr;
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& member : members_) member.join();
}

void ThreadTeam::Run(const std::function<void(int)>& work) {
  work_ = &work;
  busy_ = static_cast<int>(members_.size());
  generation_.fetch_add(1);
  generation_.notify_all();
  work(0);
  while (const int busy = busy_.load()) busy_.wait(busy);
}

void ThreadTeam::Serve(int member) {
  for (int seen = 0;;) {
    generation_.wait(seen);
    seen = generation_.load();
    if (work_ == nullptr) return;
    (*work_)(member);
    if (busy_.fetch_sub(1) == 1) busy_.notify_one();
  }
}

}  // namespace nestor::bench
