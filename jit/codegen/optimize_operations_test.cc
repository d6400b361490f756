// Lists before and after; and random lists, which must store the same values as before.
#include "jit/codegen/optimize_operations.h"

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "jit/codegen/allocate_registers.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/operations_testing.h"
#include "jit/codegen/registers.h"
#include "jit/target/isa.h"

namespace nestor::jit {
namespace {

struct Case {
  const char* what;
  const char* before;
  const char* after = "";  // "": as before
};

std::string Normal(const std::string& text) { return ToString(ParseOperations(text, Isa::kAvx2)); }

// `inputs`: the lines before those of each case, which stay.
void ExpectOptimized(absl::Span<const Case> cases, const std::string& inputs,
                     const RegisterFile& file) {
  for (const Case& c : cases) {
    OperationList list = ParseOperations(inputs + c.before, Isa::kAvx2);
    OptimizeOperations(list, file);
    EXPECT_EQ(ToString(list), Normal(inputs + (*c.after == '\0' ? c.before : c.after))) << c.what;
  }
}

const RegisterFile kFourVectors = {{0, 1, 2, 3}, {}, {1, 3, 5}};

TEST(OptimizeOperations, RemovesDeadWrites) {
  const Case kCases[] = {
      {"a start value that is not used",
       "c0 = f32 0x0\nv0 = move.f32x8 c0\nv0 = load.f32x8 f32 [g1+64]\nstore.f32x8 f32 [g1], v0",
       "c0 = f32 0x0\nv0 = load.f32x8 f32 [g1+64]\nstore.f32x8 f32 [g1], v0"},
      {"with what only that needs",
       "v0 = add.f32x8 v2, v2\nv1 = mul.f32x8 v0, v0\nv0 = move.f32x8 v3\nv1 = move.f32x8 v3\nreturn 0",
       "v0 = move.f32x8 v3\nv1 = move.f32x8 v3\nreturn 0"},
      {"not what the next write reads", "v0 = add.f32x8 v2, v2\nv0 = add.f32x8 v0, v2\nreturn 0"},
      {"not what an address is",
       "g0 = move_g 1\nv1 = load.f32x8 f32 [g0]\ng0 = move_g 2\nreturn g0"},
      {"not across a branch",
       "g0 = move_g 1\nbranch less g1, 0, L0\ng0 = move_g 2\nlabel L0\nreturn g0"},
      {"not around a loop",
       "g0 = move_g 0\nloop_begin L0\ng1 = add_g g0, 1\ng0 = move_g 9\nloop_end less g1, 5, L0\nreturn 0"},
  };
  ExpectOptimized(kCases,
                  "g1 = parameter_g 0\nv2 = load.f32x8 f32 [g1]\nv3 = load.f32x8 f32 [g1+32]\n",
                  RegistersOf(Isa::kAvx2));
}

TEST(OptimizeOperations, ReusesComputations) {
  const Case kCases[] = {
      {"a load that unrolled copies share",
       "v0 = load.f32x8 f32 [g8]\nv1 = load.f32x8 f32 [g8]\nv2 = add.f32x8 v0, v1\nstore.f32x8 f32 [g9], v2",
       "v0 = load.f32x8 f32 [g8]\nv2 = add.f32x8 v0, v0\nstore.f32x8 f32 [g9], v2"},
      {"and what is computed from it",
       "v0 = load.f32x8 f32 [g8]\nv1 = mul.f32x8 v0, v0\nv2 = load.f32x8 f32 [g8]\nv3 = mul.f32x8 v2, v2\n"
       "v4 = add.f32x8 v1, v3\nstore.f32x8 f32 [g9], v4",
       "v0 = load.f32x8 f32 [g8]\nv1 = mul.f32x8 v0, v0\nv4 = add.f32x8 v1, v1\nstore.f32x8 f32 [g9], v4"},
      {"not another place, type, width or opcode",
       "v0 = load.f32x8 f32 [g8]\nv1 = load.f32x8 f32 [g8+4]\nv2 = load.f32x8 f16 [g8]\nv3 = load.f32x4 f32 [g8]\n"
       "v4 = load_broadcast.f32x8 f32 [g8]\nreturn 0",
       "v0 = load.f32x8 f32 [g8]\nv1 = load.f32x8 f32 [g8+4]\nv2 = load.f32x8 f16 [g8]\nv3 = load.f32x4 f32 [g8]\n"
       "v4 = load_broadcast.f32x8 f32 [g8]\nreturn 0"},
      {"not behind a store, which may have written there",
       "v0 = load.f32x8 f32 [g8]\nstore.f32x8 f32 [g9], v0\nv1 = load.f32x8 f32 [g8]\nstore.f32x8 f32 [g9], v1"},
      {"but of what nothing changes",
       "v0 = load.f32x8 f32 invariant [g8]\nstore.f32x8 f32 [g9], v0\nv1 = load.f32x8 f32 invariant [g8]\nstore.f32x8 f32 [g9], v1",
       "v0 = load.f32x8 f32 invariant [g8]\nstore.f32x8 f32 [g9], v0\nstore.f32x8 f32 [g9], v0"},
      {"not where a pointer has moved on",
       "g7 = move_g 64\nv0 = load.f32x8 f32 [g7]\ng7 = add_g g7, 4\nv1 = load.f32x8 f32 [g7]\n"
       "v2 = add.f32x8 v0, v1\nstore.f32x8 f32 [g9], v2",
       "g7 = move_g 64\nv0 = load.f32x8 f32 [g7]\ng7 = add_g g7, 4\nv1 = load.f32x8 f32 [g7]\n"
       "v2 = add.f32x8 v0, v1\nstore.f32x8 f32 [g9], v2"},
      {"not into a register that is written again",
       "v0 = load.f32x8 f32 [g9]\nstore.f32x8 f32 [g9+32], v0\nv0 = load.f32x8 f32 [g8]\nv1 = load.f32x8 f32 [g8]\nstore.f32x8 f32 [g9], v1"},
      {"behind a branch, what was known before it alone",
       "v0 = load.f32x8 f32 [g8]\nbranch less g8, 0, L0\nv1 = load.f32x8 f32 [g8+4]\nv2 = load.f32x8 f32 [g8]\n"
       "label L0\nv3 = load.f32x8 f32 [g8]\nv4 = load.f32x8 f32 [g8+4]\nv5 = add.f32x8 v3, v4\n"
       "store.f32x8 f32 [g9], v5",
       "v0 = load.f32x8 f32 [g8]\nbranch less g8, 0, L0\nv1 = load.f32x8 f32 [g8+4]\n"
       "label L0\nv4 = load.f32x8 f32 [g8+4]\nv5 = add.f32x8 v0, v4\n"
       "store.f32x8 f32 [g9], v5"},
      {"not around a loop, nor across one that a branch passes over",
       "g7 = move_g 0\nv0 = load.f32x8 f32 [g8]\nbranch less g8, 0, L1\nloop_begin L0\n"
       "v1 = load.f32x8 f32 [g8]\nv6 = load.f32x8 f32 [g8]\nstore.f32x8 f32 [g9], v6\n"
       "g7 = add_g g7, 1\nloop_end less g7, 5, L0\nv2 = load.f32x8 f32 [g8+4]\nlabel L1\n"
       "v3 = load.f32x8 f32 [g8+4]\nstore.f32x8 f32 [g9], v3",
       "g7 = move_g 0\nv0 = load.f32x8 f32 [g8]\nbranch less g8, 0, L1\nloop_begin L0\n"
       "v1 = load.f32x8 f32 [g8]\nstore.f32x8 f32 [g9], v1\n"
       "g7 = add_g g7, 1\nloop_end less g7, 5, L0\nv2 = load.f32x8 f32 [g8+4]\nlabel L1\n"
       "v3 = load.f32x8 f32 [g8+4]\nstore.f32x8 f32 [g9], v3"},
      {"as far as registers are free: else it is loaded again",
       "v0 = load.f32x8 f32 [g8]\nv1 = load.f32x8 f32 [g8+32]\nv2 = mul.f32x8 v1, v1\nv3 = load.f32x8 f32 [g8+64]\n"
       "v4 = load.f32x8 f32 [g8+96]\nv5 = load.f32x8 f32 [g8+32]\nv6 = add.f32x8 v0, v3\nv6 = add.f32x8 v6, v4\n"
       "v6 = add.f32x8 v6, v5\nstore.f32x8 f32 [g9], v6\nstore.f32x8 f32 [g9], v2\nv7 = mul.f32x8 v5, v5\n"
       "store.f32x8 f32 [g9], v7",
       "v0 = load.f32x8 f32 [g8]\nv1 = load.f32x8 f32 [g8+32]\nv2 = mul.f32x8 v1, v1\nv3 = load.f32x8 f32 [g8+64]\n"
       "v4 = load.f32x8 f32 [g8+96]\nv5 = load.f32x8 f32 [g8+32]\nv6 = add.f32x8 v0, v3\nv6 = add.f32x8 v6, v4\n"
       "v6 = add.f32x8 v6, v5\nstore.f32x8 f32 [g9], v6\nstore.f32x8 f32 [g9], v2\nv7 = mul.f32x8 v5, v5\n"
       "store.f32x8 f32 [g9], v7"},
      {"not a constant that would be spilled until then: it would be loaded, too",
       R"(c0 = f32 0x3f800000
v1 = load.f32x8 f32 [g8]
v2 = load.f32x8 f32 [g8+32]
v3 = load.f32x8 f32 [g8+64]
v4 = move.f32x8 c0
v5 = sub.f32x8 v4, v1
v6 = move.f32x8 c0
v7 = sub.f32x8 v6, v5
store.f32x8 f32 [g8], v1
store.f32x8 f32 [g8], v2
store.f32x8 f32 [g9], v3
store.f32x8 f32 [g9], v5
store.f32x8 f32 [g9], v7)"},
      {"a line is prefetched once", "prefetch.f32x8 f32 [g8]\nprefetch.f32x8 f32 [g8]\nreturn 0",
       "prefetch.f32x8 f32 [g8]\nreturn 0"},
  };
  ExpectOptimized(kCases, "g8 = parameter_g 0\ng9 = parameter_g 1\n", kFourVectors);
}

TEST(OptimizeOperations, HoistsInvariants) {
  const Case kCases[] = {
      {"constants: those first that take an instruction",
       R"(c0 = f32 0x3f800000
c1 = f32 0x40000000
g0 = parameter_g 0
loop_begin L0
  v1 = load.f32x8 f32 [g0]
  v2 = fma.f32x8 c0, v1, c1
  v3 = add.f32x8 v2, c1
  store.f32x8 f32 [g0], v3
  g0 = add_g g0, 32
loop_end less g0, 99, L0)",
       R"(c0 = f32 0x3f800000
c1 = f32 0x40000000
g0 = parameter_g 0
v4 = move.i32x8 c0
v5 = move.i32x8 c1
loop_begin L0
  v1 = load.f32x8 f32 [g0]
  v2 = fma.f32x8 v4, v1, v5
  v3 = add.f32x8 v2, v5
  store.f32x8 f32 [g0], v3
  g0 = add_g g0, 32
loop_end less g0, 99, L0)"},
      {"a scalar in all lanes, once for all that want it; not one that the loop writes",
       R"(g0 = parameter_g 0
v1 = load.f32x1 f32 [g0]
v2 = load.f32x1 f32 [g0]
loop_begin L0
  v3 = broadcast.f32x8 v1
  v4 = broadcast.f32x8 v1
  v5 = broadcast.f32x8 v2
  v2 = add.f32x1 v2, v2
  v6 = fma.f32x8 v3, v4, v5
  store.f32x8 f32 [g0], v6
  g0 = add_g g0, 32
loop_end less g0, 99, L0)",
       R"(g0 = parameter_g 0
v1 = load.f32x1 f32 [g0]
v2 = load.f32x1 f32 [g0]
v3 = broadcast.f32x8 v1
loop_begin L0
  v5 = broadcast.f32x8 v2
  v2 = add.f32x1 v2, v2
  v6 = fma.f32x8 v3, v3, v5
  store.f32x8 f32 [g0], v6
  g0 = add_g g0, 32
loop_end less g0, 99, L0)"},
      {"an invariant load of one place into all lanes; not another, nor one that a jump may pass",
       R"(g0 = parameter_g 0
g9 = parameter_g 1
loop_begin L0
  v1 = load_broadcast.f32x8 f32 invariant [g9 + 4]
  v2 = load_broadcast.f32x8 f32 [g9]
  v3 = load_broadcast.f32x8 f32 invariant [g0]
  v4 = fma.f32x8 v1, v2, v3
  branch equal g0, 0, L1
  v5 = load_broadcast.f32x8 f32 invariant [g9 + 8]
  store.f32x8 f32 [g0], v5
  label L1
  store.f32x8 f32 [g0], v4
  g0 = add_g g0, 32
loop_end less g0, 99, L0)",
       R"(g0 = parameter_g 0
g9 = parameter_g 1
v1 = load_broadcast.f32x8 f32 invariant [g9 + 4]
loop_begin L0
  v2 = load_broadcast.f32x8 f32 [g9]
  v3 = load_broadcast.f32x8 f32 invariant [g0]
  v4 = fma.f32x8 v1, v2, v3
  branch equal g0, 0, L1
  v5 = load_broadcast.f32x8 f32 invariant [g9 + 8]
  store.f32x8 f32 [g0], v5
  label L1
  store.f32x8 f32 [g0], v4
  g0 = add_g g0, 32
loop_end less g0, 99, L0)"},
      {"copies of constants are the constants, unless they change",
       R"(c0 = f32 0x3f800000
g0 = parameter_g 0
loop_begin L0
  v1 = load.f32x8 f32 [g0]
  v2 = move.f32x8 c0
  v3 = max_x86.f32x8 v2, v1
  v4 = move.f32x8 c0
  v4 = add.f32x8 v4, v3
  store.f32x8 f32 [g0], v4
  g0 = add_g g0, 32
loop_end less g0, 99, L0)",
       R"(c0 = f32 0x3f800000
g0 = parameter_g 0
v5 = move.i32x8 c0
loop_begin L0
  v1 = load.f32x8 f32 [g0]
  v3 = max_x86.f32x8 v5, v1
  v4 = move.f32x8 v5
  v4 = add.f32x8 v4, v3
  store.f32x8 f32 [g0], v4
  g0 = add_g g0, 32
loop_end less g0, 99, L0)"},
      {"of a constant that is converted, what the conversion reads",
       R"(c0 = i32 0x2
c1 = i32 0x3
c2 = f64 0x4
g0 = parameter_g 0
loop_begin L0
  v1 = convert.f32x8 from i32 c0
  v2 = convert.f64x4 from i32 c1
  v3 = convert.i32x4 from f64 c2
  store.f32x8 f32 [g0], v1
  g0 = add_g g0, 32
loop_end less g0, 99, L0)",
       R"(c0 = i32 0x2
c1 = i32 0x3
c2 = f64 0x4
g0 = parameter_g 0
v4 = move.i32x4 c1
v5 = move.i32x8 c2
v6 = move.i32x8 c0
loop_begin L0
  v1 = convert.f32x8 from i32 v6
  v2 = convert.f64x4 from i32 v4
  v3 = convert.i32x4 from f64 v5
  store.f32x8 f32 [g0], v1
  g0 = add_g g0, 32
loop_end less g0, 99, L0)"},
      {"before the outermost loop that does not change it; a load, only from the loop that always makes it",
       R"(g0 = parameter_g 0
g9 = parameter_g 1
v1 = load.f32x1 f32 [g0]
loop_begin L0
  v2 = load.f32x1 f32 [g0]
  loop_begin L1
    v3 = broadcast.f32x8 v1
    v4 = broadcast.f32x8 v2
    v5 = load_broadcast.f32x8 f32 invariant [g9]
    v6 = fma.f32x8 v3, v4, v5
    store.f32x8 f32 [g0], v6
    g0 = add_g g0, 32
  loop_end less g0, 99, L1
  g0 = add_g g0, 32
loop_end less g0, 99, L0)",
       R"(g0 = parameter_g 0
g9 = parameter_g 1
v1 = load.f32x1 f32 [g0]
v3 = broadcast.f32x8 v1
loop_begin L0
  v2 = load.f32x1 f32 [g0]
  v4 = broadcast.f32x8 v2
  v5 = load_broadcast.f32x8 f32 invariant [g9]
  loop_begin L1
    v6 = fma.f32x8 v3, v4, v5
    store.f32x8 f32 [g0], v6
    g0 = add_g g0, 32
  loop_end less g0, 99, L1
  g0 = add_g g0, 32
loop_end less g0, 99, L0)"},
      {"the same from two loops, once before the one around them",
       R"(g0 = parameter_g 0
v1 = load.f32x1 f32 [g0]
loop_begin L0
  loop_begin L1
    v2 = broadcast.f32x8 v1
    store.f32x8 f32 [g0], v2
    g0 = add_g g0, 32
  loop_end less g0, 99, L1
  loop_begin L2
    v3 = broadcast.f32x8 v1
    store.f32x8 f32 [g0], v3
    g0 = add_g g0, 32
  loop_end less g0, 99, L2
loop_end less g0, 99, L0)",
       R"(g0 = parameter_g 0
v1 = load.f32x1 f32 [g0]
v3 = broadcast.f32x8 v1
loop_begin L0
  loop_begin L1
    store.f32x8 f32 [g0], v3
    g0 = add_g g0, 32
  loop_end less g0, 99, L1
  loop_begin L2
    store.f32x8 f32 [g0], v3
    g0 = add_g g0, 32
  loop_end less g0, 99, L2
loop_end less g0, 99, L0)"},
      {"what is computed from a value that moves",
       R"(g0 = parameter_g 0
g9 = parameter_g 1
loop_begin L0
  v1 = mask_of_count.i32x8 g9
  v2 = lanes_of_mask.i32x8 v1
  store.i32x8 i32 [g0], v2
  g0 = add_g g0, 32
loop_end less g0, 99, L0)",
       R"(g0 = parameter_g 0
g9 = parameter_g 1
v1 = mask_of_count.i32x8 g9
v2 = lanes_of_mask.i32x8 v1
loop_begin L0
  store.i32x8 i32 [g0], v2
  g0 = add_g g0, 32
loop_end less g0, 99, L0)"},
      {"constants of innermost loops, and no value that one carries",
       R"(c0 = f32 0x3f800000
g0 = parameter_g 0
v1 = load.f32x8 f32 [g0]
loop_begin L0
  loop_begin L1
    v1 = add.f32x8 v1, c0
    g0 = add_g g0, 32
  loop_end less g0, 99, L1
  v1 = mul.f32x8 v1, c0
loop_end less g0, 99, L0
store.f32x8 f32 [g0], v1)",
       R"(c0 = f32 0x3f800000
g0 = parameter_g 0
v1 = load.f32x8 f32 [g0]
v2 = move.i32x8 c0
loop_begin L0
  loop_begin L1
    v1 = add.f32x8 v1, v2
    g0 = add_g g0, 32
  loop_end less g0, 99, L1
  v1 = mul.f32x8 v1, c0
loop_end less g0, 99, L0
store.f32x8 f32 [g0], v1)"},
  };
  ExpectOptimized(kCases, "", RegistersOf(Isa::kAvx2));
}

// Of four vectors, what stands in the loop needs three: one value can move.
TEST(OptimizeOperations, HoistsWhileRegistersAreFree) {
  const Case kCases[] = {
      {"two broadcasts beside two loads",
       R"(g0 = parameter_g 0
g9 = parameter_g 1
loop_begin L0
  v1 = load.f32x8 f32 [g0]
  v2 = load.f32x8 f32 [g0+32]
  v3 = broadcast_g.f32x8 g9
  v1 = fma.f32x8 v1, v2, v3
  v4 = broadcast_g.f32x8 g8
  v1 = fma.f32x8 v1, v2, v4
  store.f32x8 f32 [g0], v1
  g0 = add_g g0, 32
loop_end less g0, 99, L0)",
       R"(g0 = parameter_g 0
g9 = parameter_g 1
v3 = broadcast_g.f32x8 g9
loop_begin L0
  v1 = load.f32x8 f32 [g0]
  v2 = load.f32x8 f32 [g0+32]
  v1 = fma.f32x8 v1, v2, v3
  v4 = broadcast_g.f32x8 g8
  v1 = fma.f32x8 v1, v2, v4
  store.f32x8 f32 [g0], v1
  g0 = add_g g0, 32
loop_end less g0, 99, L0)"},
      {"none beside three values, one of which is kept for its second use",
       R"(g0 = parameter_g 0
loop_begin L0
  v1 = load.f32x8 f32 [g0]
  v2 = mul.f32x8 v1, v1
  store.f32x8 f32 [g0], v2
  v3 = load.f32x8 f32 [g0+64]
  v4 = load.f32x8 f32 [g0+96]
  v5 = broadcast_g.f32x8 g8
  v3 = fma.f32x8 v3, v4, v5
  store.f32x8 f32 [g0], v3
  v6 = mul.f32x8 v1, v1
  store.f32x8 f32 [g0], v6
  g0 = add_g g0, 32
loop_end less g0, 99, L0)",
       R"(g0 = parameter_g 0
loop_begin L0
  v1 = load.f32x8 f32 [g0]
  v2 = mul.f32x8 v1, v1
  store.f32x8 f32 [g0], v2
  v3 = load.f32x8 f32 [g0+64]
  v4 = load.f32x8 f32 [g0+96]
  v5 = broadcast_g.f32x8 g8
  v3 = fma.f32x8 v3, v4, v5
  store.f32x8 f32 [g0], v3
  store.f32x8 f32 [g0], v2
  g0 = add_g g0, 32
loop_end less g0, 99, L0)"},
      {"from an outer loop none, if what moved out of the inner one has taken the last register",
       R"(g0 = parameter_g 0
loop_begin L0
  loop_begin L1
    v1 = load.f32x8 f32 [g0]
    v2 = load.f32x8 f32 [g0+32]
    v3 = broadcast_g.f32x8 g0
    v1 = fma.f32x8 v1, v2, v3
    v4 = broadcast_g.f32x8 g8
    v1 = fma.f32x8 v1, v2, v4
    store.f32x8 f32 [g0], v1
  loop_end less g0, 99, L1
  v5 = broadcast_g.f32x8 g8
  store.f32x8 f32 [g0], v5
loop_end less g0, 99, L0)",
       R"(g0 = parameter_g 0
loop_begin L0
  v3 = broadcast_g.f32x8 g0
  loop_begin L1
    v1 = load.f32x8 f32 [g0]
    v2 = load.f32x8 f32 [g0+32]
    v1 = fma.f32x8 v1, v2, v3
    v4 = broadcast_g.f32x8 g8
    v1 = fma.f32x8 v1, v2, v4
    store.f32x8 f32 [g0], v1
  loop_end less g0, 99, L1
  v5 = broadcast_g.f32x8 g8
  store.f32x8 f32 [g0], v5
loop_end less g0, 99, L0)"},
  };
  ExpectOptimized(kCases, "g8 = parameter_g 0\n", kFourVectors);
}

// Of four values, three have general registers.
TEST(OptimizeOperations, CopiesGeneralRegistersBeforeInnermostLoops) {
  const Case kCases[] = {
      {"what the loop reads, but not what it writes",
       R"(g0 = parameter_g 0
loop_begin L0
  g1 = move_g 0
  loop_begin L1
    v1 = load.f32x8 f32 [g0 + g8 * 4]
    store.f32x8 f32 [g0 + g1 * 4], v1
    g1 = add_g g1, g8
  loop_end less g1, g9, L1
  g0 = add_g g0, g8
loop_end less g0, g9, L0)",
       R"(g0 = parameter_g 0
loop_begin L0
  g1 = move_g 0
  g10 = move_g g0
  g11 = move_g g8
  g12 = move_g g9
  loop_begin L1
    v1 = load.f32x8 f32 [g10 + g11 * 4]
    store.f32x8 f32 [g10 + g1 * 4], v1
    g1 = add_g g1, g11
  loop_end less g1, g12, L1
  g0 = add_g g0, g8
loop_end less g0, g9, L0)"},
      {"for each loop of its own",
       R"(g0 = parameter_g 0
g1 = parameter_g 0
loop_begin L0
  g0 = add_g g0, g8
loop_end less g0, 99, L0
loop_begin L1
  g1 = add_g g1, g8
loop_end less g1, g9, L1
return g0)",
       R"(g0 = parameter_g 0
g1 = parameter_g 0
g10 = move_g g8
loop_begin L0
  g0 = add_g g0, g10
loop_end less g0, 99, L0
g11 = move_g g8
g12 = move_g g9
loop_begin L1
  g1 = add_g g1, g11
loop_end less g1, g12, L1
return g0)"},
      {"not where registers suffice",
       R"(g0 = parameter_g 0
loop_begin L0
  g0 = add_g g0, g8
loop_end less g0, g9, L0)"},
  };
  ExpectOptimized(kCases, "g8 = parameter_g 0\ng9 = parameter_g 1\n", kFourVectors);
}

// Computes values twice where possible, and reads the second result.
OperationList WithCopies(const OperationList& list) {
  OperationList out = list;
  out.operations.clear();
  std::vector<int> writes(list.classes.size(), 0);
  for (const Operation& op : list.operations) {
    if (op.result.is_register()) ++writes[op.result.value];
  }
  std::vector<Operand> copies(list.classes.size());
  for (Operation op : list.operations) {
    for (Operand& operand : op.operands) {
      if (operand.is_register() && copies[operand.value].is_register())
        operand = copies[operand.value];
    }
    out.operations.push_back(op);
    const bool is_copied = op.result.is_register() && writes[op.result.value] == 1 &&
                           list.classes[op.result.value] == RegisterClass::kVector;
    if (!is_copied) continue;
    const Operand copy = out.NewVector();
    copies[op.result.value] = copy;
    op.result = copy;
    out.operations.push_back(op);
  }
  return out;
}

int InsideLoops(const OperationList& list) {
  int inside = 0, depth = 0;
  for (const Operation& op : list.operations) {
    depth -= op.opcode == Opcode::kLoopEnd;
    inside += depth > 0;
    depth += op.opcode == Opcode::kLoopBegin;
  }
  return inside;
}

TEST(OptimizeOperations, RandomListsStoreTheSame) {
  int hoisted = 0, removed = 0, roomy = 0;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      RandomListOptions options{isa, seed, 1, 1, 1, 120};
      if (seed % 3 == 0) options.live_vectors = 9;
      if (seed % 3 == 1) options.live_generals = 20;
      const OperationList before = RandomOperations(options);
      OperationList list = WithCopies(before);
      const size_t all = list.operations.size();
      OperationList unmoved = list;
      OptimizeOperations(unmoved, RegistersOf(isa), /*hoists=*/false);
      OptimizeOperations(list, RegistersOf(isa));
      removed += unmoved.operations.size() < all;
      hoisted += InsideLoops(list) < InsideLoops(unmoved);
      const MixedRun wanted = RunMixing(before), got = RunMixing(list);
      ASSERT_EQ(got.error, "") << ToString(before) << "became\n" << ToString(list);
      ASSERT_EQ(got.trace, wanted.trace) << ToString(before) << "became\n" << ToString(list);
      const auto spilled = [&](OperationList copy) {
        return AllocateRegisters(copy, RegistersOf(isa)).spilled;
      };
      if (spilled(unmoved) > 0) continue;
      ++roomy;
      EXPECT_EQ(spilled(list), 0) << ToString(unmoved) << "became\n" << ToString(list);
    }
  }
  EXPECT_GT(hoisted, 50);
  EXPECT_GT(removed, 50);
  EXPECT_GT(roomy, 50);
}

}  // namespace
}  // namespace nestor::jit
