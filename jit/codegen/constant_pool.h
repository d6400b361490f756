// The constants of one function, which follow its code.
#ifndef NESTOR_JIT_CODEGEN_CONSTANT_POOL_H_
#define NESTOR_JIT_CODEGEN_CONSTANT_POOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <xbyak/xbyak.h>

#include "jit/codegen/operations.h"

namespace nestor::jit {

// Not thread-safe. Labels belong to the pool, which must live until the code is written.
class ConstantPool {
 public:
  // `given`: those of the operation list, which have their numbers there.
  explicit ConstantPool(const std::vector<PoolConstant>& given);

  const PoolConstant& operator[](int64_t number) const {
    return entries_[static_cast<size_t>(number)].constant;
  }
  // Whether the operation list has the constant; if not, emitters do.
  bool IsGiven(int64_t number) const { return number < num_given_; }
  // The number of a constant that the emitters need for themselves.
  int64_t NumberOf(const PoolConstant& constant);

  // The place of the constant. Its first `bytes` bytes (16, 32 or 64) will be there, aligned to
  // that.
  const Xbyak::Label& Use(int64_t number, int bytes);
  // Writes the constants that are used behind the code.
  void Write(Xbyak::CodeGenerator& g);

 private:
  struct Entry {
    PoolConstant constant;
    Xbyak::Label label;
    int bytes = 0;  // the widest use; 0: none
  };

  std::deque<Entry> entries_;  // which stay where they are
  const int64_t num_given_;    // these come first
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_CONSTANT_POOL_H_
