// The instruction sets that code is generated for, one row each: all that schedule passes and
// register allocation know of them. Which instructions a set has for an operation stands in the
// rows of operations (jit/codegen/operations.inc), how they are spelled in the emitters, and which
// sets a machine has in jit/runtime/cpu_features.
#ifndef NESTOR_JIT_TARGET_ISA_H_
#define NESTOR_JIT_TARGET_ISA_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace nestor::jit {

// In ascending order. kAvx2: AVX2, FMA, F16C, BMI1 and BMI2. kAvx512: these and AVX-512 F, VL, BW
// and DQ.
enum class Isa : uint8_t { kAvx2, kAvx512 };

struct IsaFacts {
  Isa isa;
  absl::string_view name;
  int vector_bytes;
  int vectors;  // vector registers
  // Registers that can mask the lanes of an operation. 0: masks are vectors, with lanes of all ones
  // or zeros.
  int masks;
  // Whether instructions have the EVEX encoding. Only this one reaches vector registers from 16 on,
  // where operations on bits, rounding and moves of 128 bits have mnemonics of their own (vpandd,
  // vrndscale, vinserti32x4). With it come instructions that no VEX set has: any function of three
  // operands' bits (vpternlog), shifts across 128 bits (valign), moves that narrow lanes (vpmovdb),
  // broadcasts from general registers, and arithmetic and conversions of 64-bit integers.
  bool evex;
  // The narrowest elements, in bytes, that loads and stores by a mask take; 0: there are no such
  // stores, or they are slow.
  int masked_load_bytes, masked_store_bytes;
  // The results of a product of matrices that registers hold at once, where nothing else decides:
  // rows, and vectors of columns. The other registers hold operands.
  int tile_rows, tile_vectors;
  // The rows of the higher of two kinds of tiles among which rows are shared out evenly where
  // windows of known size slide along memory, the others being one row lower. These still have
  // results enough that no product waits for the one before.
  int shared_tile_rows;
};

inline constexpr IsaFacts kIsas[] = {
    // On some processors (AMD's Zen 2 and 3) a masked store of AVX2 takes 15 cycles.
    {Isa::kAvx2, "avx2", 32, 16, 0, false, 4, 0, 6, 2, 5},
    {Isa::kAvx512, "avx512", 64, 32, 7, true, 1, 1, 8, 3, 8},
};

// The set that every machine has on which code runs.
constexpr Isa kLeastIsa = kIsas[0].isa;

constexpr const IsaFacts& FactsOf(Isa isa) { return kIsas[static_cast<int>(isa)]; }
constexpr absl::string_view Name(Isa isa) { return FactsOf(isa).name; }
// Bytes of a vector register.
constexpr int VectorBytes(Isa isa) { return FactsOf(isa).vector_bytes; }

// The same for all sets.
constexpr int64_t kCacheLineBytes = 64;

}  // namespace nestor::jit

#endif  // NESTOR_JIT_TARGET_ISA_H_
