// Where the tensors of a program live while its code runs.
#ifndef NESTOR_JIT_CODEGEN_HOMES_H_
#define NESTOR_JIT_CODEGEN_HOMES_H_

#include <cstdint>
#include <vector>

#include "jit/codegen/operations.h"
#include "loop_ir/program.h"

namespace nestor::jit {

enum class HomeKind : uint8_t {
  kArgument,  // the caller's memory
  kMemory,    // memory for the whole run
  kPrivate,   // memory of a worker
  kScalar,    // a register
  kTile,      // registers: vectors along the last axis
};

struct Home {
  HomeKind kind = HomeKind::kMemory;
  int step = -1;  // of kPrivate and registers: the step that uses it
  // For a scalar: it is written only once, where it is declared, so that it may be the very
  // register in which its value was computed.
  bool is_single = false;
  int tile_lanes = 0;  // of a tile: lanes of each register
};

// The homes by tensor. `step_of_item`: the step that each item at the top belongs to; what it is for
// declarations does not matter. Scalars live in registers, unless several steps see them; so do
// tensors marked `register` whose accesses, once loops are unrolled, are whole vectors of the lanes
// of the loops around them.
std::vector<Home> FindHomes(const loop::Program& program, const std::vector<int>& step_of_item,
                            Isa isa);

// Whether the code has a copy of the loop's body for each iteration.
bool IsUnrolled(const loop::Program& program, const loop::Loop& loop);

// The value of an extent of a register tile, or of a bound of an unrolled loop: a number.
int64_t ConstantOf(const loop::Program& program, IndexId e);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_HOMES_H_
