// One place serves all reads of a constant: it is as wide as the widest. The widest constants come
// first, so that each is aligned to its width without gaps.
#include "jit/codegen/constant_pool.h"

#include <algorithm>

namespace nestor::jit {
namespace {

constexpr int kWidest = 64;

}  // namespace

ConstantPool::ConstantPool(const std::vector<PoolConstant>& given)
    : num_given_(static_cast<int64_t>(given.size())) {
  for (const PoolConstant& constant : given) entries_.push_back({constant, {}, 0});
}

int64_t ConstantPool::NumberOf(const PoolConstant& constant) {
  size_t number = static_cast<size_t>(num_given_);
  while (number < entries_.size() && !(entries_[number].constant == constant)) ++number;
  if (number == entries_.size()) entries_.push_back({constant, {}, 0});
  return static_cast<int64_t>(number);
}

const Xbyak::Label& ConstantPool::Use(int64_t number, int bytes) {
  Entry& entry = entries_[static_cast<size_t>(number)];
  entry.bytes = std::max(entry.bytes, bytes);
  return entry.label;
}

void ConstantPool::Write(Xbyak::CodeGenerator& g) {
  bool any = false;
  for (const Entry& entry : entries_) any |= entry.bytes > 0;
  if (!any) return;
  // A jump that runs past the code stops here.
  while (g.getSize() % kWidest != 0) g.int3();
  for (int bytes = kWidest; bytes >= 16; bytes /= 2) {
    for (Entry& entry : entries_) {
      if (entry.bytes != bytes) continue;
      g.L(entry.label);
      const int lane_bytes = LaneBytes(entry.constant.lane);
      for (int i = 0; i < bytes / lane_bytes; ++i) {
        g.db(entry.constant.bits + static_cast<uint64_t>(i) * entry.constant.step,
             static_cast<size_t>(lane_bytes));
      }
    }
  }
}

}  // namespace nestor::jit
