// Which rows to fetch before their turn.
#ifndef NESTOR_JIT_CODEGEN_PREFETCH_H_
#define NESTOR_JIT_CODEGEN_PREFETCH_H_

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "jit/codegen/lanes.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// A loop whose next iteration reads from the next row.
struct RowLoop {
  int32_t var;
  int64_t step;
  IndexId end;
};

// (index of a vector loop, input that it reads) -> the loop around. It is so
// - where rows are gathered by indices that lie in inputs: hardware cannot guess them;
// - where the body of the loop around walks the row more than once: memory is idle from
//   the second time on, and hardware looks ahead along a row, but not to the next. The
//   vector loop is the last that walks the row from its beginning.
using Prefetches = absl::flat_hash_map<std::pair<int32_t, loop::TensorId>, RowLoop>;
Prefetches PrefetchesOf(const loop::Program& program, const Proofs& proofs);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_PREFETCH_H_
