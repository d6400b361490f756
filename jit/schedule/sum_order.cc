#include "jit/schedule/sum_order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "jit/schedule/attributes.h"
#include "jit/schedule/contraction.h"
#include "loop_ir/ranges.h"

namespace nestor::jit {
namespace {

using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;

// A loop without its body.
struct Head {
  int32_t var;
  IndexId begin, end;
};

class Orderer {
 public:
  explicit Orderer(Program& program) : program_(program), ranges_(program) {}

  bool Run() {
    bool changed = false;
    for (loop::Block& block : program_.blocks) changed |= Visit(block.body);
    return changed;
  }

 private:
  bool Visit(Scope& scope) {
    bool changed = false;
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr || ScheduledOf(*loop) != Scheduled::kNothing) continue;
      if (const auto nest = ContractionOf(program_, ranges_, *loop)) {
        changed |= Order(*loop, *nest);
        continue;
      }
      ranges_.Enter(*loop);
      changed |= Visit(loop->body);
      ranges_.Leave();
    }
    return changed;
  }

  bool Order(Loop& outermost, const Contraction& nest) {
    std::vector<const Loop*> all = nest.batch;
    all.insert(all.end(), {nest.row, nest.column});
    all.insert(all.end(), nest.sums.begin(), nest.sums.end());
    const std::vector<const Loop*> windows = WindowsOf(program_, all);
    std::vector<const Loop*> ordered = nest.sums;
    std::stable_partition(ordered.begin(), ordered.end(),
                          [&](const Loop* loop) { return absl::c_linear_search(windows, loop); });
    if (ordered == nest.sums) return false;
    std::vector<Head> heads;
    for (const Loop* loop : ordered) heads.push_back({loop->var, loop->begin, loop->end});
    // All of them are plain loops by one: their heads change places.
    Loop* loop = &outermost;
    while (loop->var != nest.sums[0]->var) loop = Inside(*loop);
    for (size_t i = 0; i < heads.size(); ++i) {
      loop->var = heads[i].var;
      loop->begin = heads[i].begin;
      loop->end = heads[i].end;
      if (i + 1 < heads.size()) loop = Inside(*loop);
    }
    return true;
  }

  // The only loop in the body.
  static Loop* Inside(Loop& loop) {
    return absl::c_find_if(loop.body, [](const Item& item) { return item.As<Loop>() != nullptr; })->As<Loop>();
  }

  Program& program_;
  loop::Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> SumWindowsFirst(Program& program) { return Orderer(program).Run(); }

}  // namespace nestor::jit
