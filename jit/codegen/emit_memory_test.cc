// Loads and stores of every type, number of lanes and count, element by element against plain
// C++, with inaccessible pages right before and right after the elements: any access one byte too
// far faults.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "jit/codegen/emit_testing.h"
#include "uops/dtype.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

constexpr int64_t kPage = 4096;
constexpr uint8_t kUntouched = 0xa5;
constexpr int kMaskTable = 1, kValueTable = 2, kElementsTable = 0, kCountTable = 3,
              kStrideTable = 4, kIndexTable = 5;

// One page between two inaccessible ones.
class GuardedPage {
 public:
  GuardedPage() {
    void* const pages = mmap(nullptr, 3 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NESTOR_CHECK(pages != MAP_FAILED, "mmap");
    begin_ = static_cast<uint8_t*>(pages) + kPage;
    NESTOR_CHECK(mprotect(begin_, kPage, PROT_READ | PROT_WRITE) == 0, "mprotect");
  }
  ~GuardedPage() { munmap(begin_ - kPage, 3 * kPage); }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  uint8_t* begin() const { return begin_; }
  uint8_t* end() const { return begin_ + kPage; }

 private:
  uint8_t* begin_;
};

struct Case {
  Opcode opcode;
  DType type;
  Lane lane;
  int lanes;
  int count;       // for partial accesses
  int64_t stride;  // in bytes; for plain accesses the size
  bool at_end;     // of the page, else at its beginning
  Stand value = Stand::kRegister, count_place = Stand::kRegister, stride_place = Stand::kRegister;
  int memory = 0;  // form of the address
};

bool IsPartial(Opcode o) {
  return o == Opcode::kLoadMasked || o == Opcode::kLoadPartial ||
         o == Opcode::kLoadStridedPartial || o == Opcode::kStorePartial ||
         o == Opcode::kStoreStridedPartial;
}
bool IsStrided(Opcode o) {
  return o == Opcode::kLoadMasked || o == Opcode::kLoadStrided ||
         o == Opcode::kLoadStridedPartial || o == Opcode::kStoreStrided ||
         o == Opcode::kStoreStridedPartial;
}
bool HasMask(Opcode o) {
  return o == Opcode::kLoadPartial || o == Opcode::kStorePartial || o == Opcode::kLoadMasked;
}
bool HasCount(Opcode o) { return IsPartial(o) && o != Opcode::kLoadMasked; }
bool IsStore(Opcode o) { return o >= Opcode::kStore && o <= Opcode::kStoreStridedPartial; }

// The lane of an element with these bits.
uint64_t Widened(DType type, uint64_t bits) {
  return VisitType(type, [&](auto zero) -> uint64_t {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool>) return bits;
    if constexpr (Half<T>) return ToBits<float>(FromBits<T>(bits).Widen());
    constexpr bool sign_extended =
        std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) < sizeof(uint32_t);
    if constexpr (sign_extended) return static_cast<uint32_t>(static_cast<T>(bits));
    return bits;
  });
}

// The element as which a lane is stored.
uint64_t Narrowed(DType type, uint64_t lane) {
  if (type == DType::kBF16) return SameLane(Lane::kF32, lane, 0x7fc00000) ? 0x7fc0 : lane >> 16;
  if (type == DType::kF16) return F16::Round(FromBits<float>(lane)).bits;
  return lane & (~uint64_t{0} >> (64 - 8 * ByteSize(type)));
}

bool SameElement(DType type, uint64_t x, uint64_t y) {
  if (type != DType::kF16) return x == y;
  return x == y || (Scalar{type, x}.IsNaN() && Scalar{type, y}.IsNaN());
}

std::string Describe(const Case& c) {
  return absl::StrCat(Info(c.opcode).name, " of ", Name(c.type), " in lanes of ", LaneBytes(c.lane),
                      " x", c.lanes, " count ", c.count, " stride ", c.stride,
                      c.at_end ? " at the end" : " at the beginning", " value in ", Name(c.value),
                      " count in ", Name(c.count_place), " stride in ", Name(c.stride_place),
                      " address form ", c.memory);
}

class MemoryCase {
 public:
  MemoryCase(const Case& c, Isa isa, std::mt19937_64& random)
      : case_(c), isa_(isa), random_(random), lane_(c.lane), size_(ByteSize(c.type)), f_(isa) {
    Operation op{c.opcode, lane_, static_cast<uint8_t>(c.lanes), c.type};
    const bool store = IsStore(c.opcode);
    if (store) op.operands[0] = PlaceValue();
    if (IsStrided(c.opcode))
      op.operands[store ? 1 : 0] = PlaceGeneral(c.stride_place, kStrideTable, 10, c.stride);
    if (HasCount(c.opcode)) op.operands[2] = PlaceGeneral(c.count_place, kCountTable, 11, c.count);
    if (HasMask(c.opcode)) op.operands[1] = PlaceMask();
    PlaceMemory(op.memory);
    if (!store) op.result = Operand::Register(kVector);
    f_.Add(op);
    if (!store) f_.StoreWhole(kVector, kValueTable);
    f_.Return(Operand::Immediate(0));
    code_ = f_.Encode();
  }

  const MachineCode& code() const { return code_; }

  void Run(Function function, const GuardedPage& page) {
    SCOPED_TRACE(Describe(case_));
    std::fill(page.begin(), page.end(), kUntouched);
    FillElements(page);
    std::vector<uint8_t> before(page.begin(), page.end());
    FillMask();
    const int64_t table[] = {
        At(First(page)) - Displacement(), At(mask_), At(value_), case_.count, case_.stride, kIndex};
    function(table, 0, 0, 0);
    IsStore(case_.opcode) ? ExpectStored(page, before) : ExpectLoaded(page);
  }

 private:
  static constexpr int kVector = 5, kValueVector = 3, kMaskVector = 7;
  static constexpr int64_t kIndex = 24;
  static int64_t At(const void* p) { return reinterpret_cast<int64_t>(p); }

  int Count() const { return IsPartial(case_.opcode) ? case_.count : case_.lanes; }
  int Touched() const { return case_.opcode == Opcode::kLoadBroadcast ? 1 : Count(); }

  // Whether the element is touched. Masks do not just have the first elements: the very first one
  // is missing, and others inside.
  bool Touches(int i) const {
    return i < Touched() && (case_.opcode != Opcode::kLoadMasked || (i > 0 && i % 4 != 2));
  }

  // The address of the first element, so that all touched ones lie in the page, as near to one end
  // of it as possible. If none is touched, the address is in the inaccessible page.
  uint8_t* First(const GuardedPage& page) const {
    std::vector<int64_t> places;
    for (int i = 0; i < Touched(); ++i) {
      if (Touches(i)) places.push_back(i * case_.stride);
    }
    if (places.empty()) return case_.at_end ? page.end() : page.begin() - size_;
    const auto [low, high] = std::minmax_element(places.begin(), places.end());
    return case_.at_end ? page.end() - size_ - *high : page.begin() - *low;
  }

  void PlaceMemory(Memory& memory) {
    const Operand base = Operand::Register(case_.memory % 2 == 0 ? 13 : 5),
                  index = Operand::Register(12);
    f_.MoveG(base, Operand::Table(kElementsTable));
    f_.MoveG(index, Operand::Table(kIndexTable));
    memory = {base, {}, 1, case_.memory == 0 ? 0 : -40};
    if (case_.memory < 2) return;
    memory.index = index;
    memory.scale = static_cast<int8_t>(1 << (case_.memory - 2));
    memory.displacement = 1000;
  }
  int64_t Displacement() const {
    if (case_.memory < 2) return case_.memory == 0 ? 0 : -40;
    return 1000 + kIndex * (1 << (case_.memory - 2));
  }

  Operand PlaceGeneral(Stand stand, int table, int reg, int64_t value) {
    switch (stand) {
      case Stand::kConstant: return Operand::Immediate(value);
      case Stand::kTable: return Operand::Table(table);
      case Stand::kStack: {
        const Operand slot = f_.NewSlot(8);
        f_.MoveG(slot, Operand::Table(table));
        return slot;
      }
      default:
        f_.MoveG(Operand::Register(reg), Operand::Table(table));
        return Operand::Register(reg);
    }
  }

  // The value of a lane that will be stored. For bf16 it is rounded already, or a NaN.
  uint64_t RandomValue() {
    uint64_t bits = RandomLane(random_, lane_);
    if (case_.type == DType::kBF16)
      bits = SameLane(lane_, bits, 0x7fc00000) ? bits : bits & 0xffff0000;
    return bits;
  }

  Operand PlaceValue() {
    const PoolConstant constant{lane_, ConstantBits(), IsFloat(lane_) ? 0 : random_() % 5};
    for (int i = 0; i < 64 / LaneBytes(lane_); ++i) {
      const uint64_t of_constant = constant.bits + static_cast<uint64_t>(i) * constant.step;
      SetLane(value_, LaneBytes(lane_), i,
              case_.value == Stand::kConstant ? of_constant : RandomValue());
    }
    if (case_.value == Stand::kConstant) {
      f_.list().constants = {constant};
      return Operand::Constant(0);
    }
    f_.LoadWhole(kValueVector, kValueTable);
    if (case_.value == Stand::kRegister) return Operand::Register(kValueVector);
    // Only the one NaN, since other NaNs of a spilled value keep their sign.
    for (int i = 0; i < 64 / LaneBytes(lane_); ++i) {
      const uint64_t bits = LaneAt(value_, LaneBytes(lane_), i);
      if (case_.type == DType::kBF16 && SameLane(lane_, bits, 0x7fc00000))
        SetLane(value_, 4, i, 0x7fc00000);
    }
    Operation move{Opcode::kMove, Lane::kI32, static_cast<uint8_t>(VectorBytes(isa_) / 4)};
    move.operands[0] = Operand::Register(kValueVector);
    move.result = f_.NewSlot(VectorBytes(isa_));
    f_.Add(move);
    return move.result;
  }

  uint64_t ConstantBits() {
    const uint64_t bits = RandomValue();
    return IsFloat(lane_) && SameLane(lane_, bits, 0x7fc00000) && case_.type == DType::kBF16
               ? 0x7fc00000
               : bits;
  }

  Operand PlaceMask() {
    f_.LoadWhole(kMaskVector, kMaskTable);
    if (isa_ == Isa::kAvx2) return Operand::Register(kMaskVector);
    Operation op{Opcode::kMaskOfLanes, IntegerLane(LaneBytes(lane_)),
                 static_cast<uint8_t>(case_.lanes)};
    op.operands[0] = Operand::Register(kMaskVector);
    op.result = Operand::Register(3);
    f_.Add(op);
    return op.result;
  }

  // Beyond the lanes a mask may hold anything.
  void FillMask() {
    for (int i = 0; i < 64 / LaneBytes(lane_); ++i) {
      SetLane(mask_, LaneBytes(lane_), i,
              i < case_.lanes ? -uint64_t{i < case_.count && Touches(i)} : ~uint64_t{0});
    }
  }

  void FillElements(const GuardedPage& page) {
    if (IsStore(case_.opcode)) return;
    for (int i = 0; i < Touched(); ++i) {
      if (!Touches(i)) continue;
      uint64_t bits = random_();
      if (random_() % 2 == 0) bits = Narrowed(case_.type, RandomLane(random_, lane_));
      std::memcpy(First(page) + i * case_.stride, &bits, static_cast<size_t>(size_));
    }
  }

  void ExpectLoaded(const GuardedPage& page) const {
    for (int i = 0; i < case_.lanes; ++i) {
      uint64_t want = 0;
      if (case_.opcode == Opcode::kLoadBroadcast || Touches(i)) {
        const int64_t at = case_.opcode == Opcode::kLoadBroadcast ? 0 : i * case_.stride;
        std::memcpy(&want, First(page) + at, static_cast<size_t>(size_));
        if (LaneBytes(lane_) > size_) want = Widened(case_.type, want);
      }
      const uint64_t got = LaneAt(value_, LaneBytes(lane_), i);
      EXPECT_TRUE(SameLane(lane_, want, got)) << "lane " << i << ": " << Difference(got, want);
    }
  }

  void ExpectStored(const GuardedPage& page, std::vector<uint8_t>& want) const {
    const int64_t first = First(page) - page.begin();
    for (int i = 0; i < Count(); ++i) {
      const int64_t at = first + i * case_.stride;
      const uint64_t element = Narrowed(case_.type, LaneAt(value_, LaneBytes(lane_), i));
      uint64_t got = 0;
      std::memcpy(&got, page.begin() + at, static_cast<size_t>(size_));
      EXPECT_TRUE(SameElement(case_.type, element, got))
          << "element " << i << ": " << Difference(got, element);
      std::memcpy(want.data() + at, &got, static_cast<size_t>(size_));
    }
    EXPECT_EQ(std::memcmp(want.data(), page.begin(), kPage), 0) << "other bytes were written";
  }

  const Case case_;
  const Isa isa_;
  std::mt19937_64& random_;
  const Lane lane_;
  const int size_;
  TestFunction f_;
  MachineCode code_;
  alignas(64) uint8_t mask_[64], value_[64];
};

constexpr Opcode kOpcodes[] = {
    Opcode::kLoad,         Opcode::kLoadPartial,        Opcode::kLoadBroadcast,
    Opcode::kLoadStrided,  Opcode::kLoadStridedPartial, Opcode::kLoadMasked,
    Opcode::kStore,        Opcode::kStorePartial,       Opcode::kStoreStream,
    Opcode::kStoreStrided, Opcode::kStoreStridedPartial};

template <class Do>
void ForEachStride(const Case& c, Do doit) {
  if (!IsStrided(c.opcode)) return doit(c);
  const int64_t size = c.stride;
  for (const int64_t stride :
       {size, 2 * size, 3 * size, -size, -5 * size + 1, size + 1, int64_t{0}}) {
    if (IsStore(c.opcode) && std::abs(stride) < size) continue;
    Case with = c;
    with.stride = stride;
    doit(with);
  }
}

// Uses the places in turn, so that each occurs with each type: all places for each case would be
// too many.
void PlaceInTurn(Case& c, unsigned turn) {
  constexpr Stand kGeneralStands[] = {Stand::kRegister, Stand::kConstant, Stand::kStack,
                                      Stand::kTable};
  constexpr Stand kValueStands[] = {Stand::kRegister, Stand::kConstant, Stand::kStack};
  c.value = kValueStands[turn % 3];
  c.count_place = kGeneralStands[turn % 4];
  c.stride_place = kGeneralStands[turn / 4 % 4];
  c.memory = static_cast<int>(turn % 6);
}

template <class Do>
void ForEachCaseIn(Lane lane, DType type, Isa isa, int variants, unsigned& turn, Do doit) {
  for (const Opcode opcode : kOpcodes) {
    for (int lanes = 1; lanes * LaneBytes(lane) <= VectorBytes(isa); lanes *= 2) {
      for (int count = IsPartial(opcode) ? 0 : lanes; count <= lanes; ++count) {
        for (int variant = 0; variant < variants; ++variant) {
          Case c{opcode, type, lane, lanes, count, ByteSize(type), variant % 2 == 0};
          PlaceInTurn(c, variants == 24 ? variant / 2 : turn / 2);
          ForEachStride(c, [&](Case with) {
            if (IsStrided(opcode)) PlaceInTurn(with, turn++);
            doit(with);
          });
          ++turn;  // so that each stride occurs with all places: a store has six
        }
      }
    }
  }
}

// Lanes of the elements' own width have more counts, so each gets fewer places of operands.
template <class Do>
void ForEachCase(Isa isa, Do doit) {
  unsigned turn = 0;
  for (const DType type : AllTypes()) {
    ForEachCaseIn(LaneOf(type), type, isa, 24, turn, doit);
    const bool has_own = ByteSize(type) < kLeastLaneBytes && !IsFloat(type);
    if (has_own) ForEachCaseIn(IntegerLane(ByteSize(type)), type, isa, 4, turn, doit);
  }
}

void RunAll(absl::Span<const std::unique_ptr<MemoryCase>> cases, const GuardedPage& page) {
  std::vector<MachineCode> codes;
  for (const std::unique_ptr<MemoryCase>& one : cases) codes.push_back(one->code());
  const Sealed functions(codes);
  for (size_t i = 0; i < cases.size() && !::testing::Test::HasFailure(); ++i)
    cases[i]->Run(functions.function(i), page);
}

// Encodes all cases, and runs them where `run`. Many share one executable mapping: to make one
// takes longer than to run a case.
void TestAll(Isa isa, bool run) {
  constexpr size_t kCasesInAMapping = 1000;
  std::mt19937_64 random(1);
  const GuardedPage page;
  std::vector<std::unique_ptr<MemoryCase>> cases;
  int count = 0;
  ForEachCase(isa, [&](const Case& c) {
    if (::testing::Test::HasFailure()) return;
    SCOPED_TRACE(Describe(c));
    ++count;
    cases.push_back(std::make_unique<MemoryCase>(c, isa, random));
    if (cases.size() < kCasesInAMapping) return;
    if (run) RunAll(cases, page);
    cases.clear();
  });
  if (run) RunAll(cases, page);
  EXPECT_GT(count, 10000);
}

TEST(EmitMemoryTest, RunsOnAvx2) {
  if (!Runs(Isa::kAvx2)) GTEST_SKIP() << "this CPU lacks AVX2, FMA, F16C or BMI2";
  TestAll(Isa::kAvx2, true);
}

TEST(EmitMemoryTest, EncodesForAvx512) {
  if (Runs(Isa::kAvx512)) GTEST_SKIP() << "RunsOnAvx512 encodes the same";
  TestAll(Isa::kAvx512, false);
}

TEST(EmitMemoryTest, RunsOnAvx512) {
  if (!Runs(Isa::kAvx512)) GTEST_SKIP() << "this CPU lacks AVX-512 F, VL, BW or DQ";
  TestAll(Isa::kAvx512, true);
}

}  // namespace
}  // namespace nestor::jit
