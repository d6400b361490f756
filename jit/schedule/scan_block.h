// Blocks of the steps of a scan, in lanes.
#ifndef NESTOR_JIT_SCHEDULE_SCAN_BLOCK_H_
#define NESTOR_JIT_SCHEDULE_SCAN_BLOCK_H_

#include <cstdint>
#include <memory>

#include "jit/schedule/scan_finder.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// A block is width * width steps: as many rows as there are lanes, each of as many adjacent
// elements, whichever way time goes.
class ScanBlocks {
 public:
  virtual ~ScanBlocks() = default;
  // The code that all blocks share.
  virtual Scope Before() = 0;
  // The block that begins where the loop's index is `first`. It leaves in the carried scalar the
  // value of its last step.
  virtual Scope At(IndexId first) = 0;
};

// `backward`: time goes down along memory. All arguments must outlive the result.
std::unique_ptr<ScanBlocks> BlocksOf(Program& program, const Loop& loop, const Scan& scan,
                                     int64_t width, bool backward);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SCAN_BLOCK_H_
