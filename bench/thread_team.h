// A few threads that run one function together, again and again.
#ifndef NESTOR_BENCH_THREAD_TEAM_H_
#define NESTOR_BENCH_THREAD_TEAM_H_

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace nestor::bench {

// The caller is member 0; the others sleep between two calls, so that they take no
// time from another engine. Not thread-safe.
class ThreadTeam {
 public:
  // REQUIRES: size > 0.
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(members_.size()) + 1; }

  // Calls work(0) .. work(size() - 1) at the same time; returns when all are done.
  void Run(const std::function<void(int)>& work);

 private:
  void Serve(int member);

  const std::function<void(int)>* work_ = nullptr;  // null: the members leave
  std::atomic<int> generation_{0};
  std::atomic<int> busy_{0};
  std::vector<std::thread> members_;
};

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_THREAD_TEAM_H_
