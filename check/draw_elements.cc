// Each element is made from one random word of its size, and a second one where few elements
// are of another kind. Loops over a block have a length that the compiler knows: it turns them
// into vector instructions.
#include "check/draw_elements.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "absl/base/casts.h"
#include "check/elements.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

constexpr size_t kBlock = 64;

template <class T>
using WordOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Fills `values` block by block: make(words, block) gives a block of values. Not all of the last
// block may be needed.
template <class T, class Make>
void FillBlocks(RandomWords& random, absl::Span<T> values, const Make& make) {
  alignas(64) WordOf<T> words[kBlock];
  size_t begin = 0;
  for (; begin + kBlock <= values.size(); begin += kBlock) {
    random.Fill(words);
    make(words, *reinterpret_cast<T(*)[kBlock]>(values.data() + begin));
  }
  if (begin == values.size()) return;
  T block[kBlock];
  random.Fill(words);
  make(words, block);
  std::copy_n(block, values.size() - begin, values.data() + begin);
}

// Whether a random word says "yes", which it does in `percent` of 100 cases.
// Decides by the low 16 bits alone; callers that need more randomness take it from the upper ones.
bool Chance(int percent, uint64_t word) {
  return (word & 0xffff) * 100 < static_cast<uint64_t>(percent) << 16;
}

// ---- Floats

// The bits of the fraction; the exponents of values that differ widely: the least one, and how
// many.
template <class T>
struct Format {
  static constexpr int kFraction = FactsOf(DTypeOf<T>()).significand - 1;
  static constexpr int kLeastExponent = FactsOf(DTypeOf<T>()).least_exponent;
  static constexpr int kLeastWide = std::max(-30, kLeastExponent - 1);
  static constexpr int kWides = std::min(60, 1 - 2 * kLeastExponent);
};

template <class T>
class FloatDrawer {
 public:
  FloatDrawer(const FloatDraw& draw, RandomWords& random) : draw_(draw), random_(random) {
    const double largest = AsDouble(WithBits(kExponent - 1));
    // The bits below those of infinity are the largest finite number.
    is_limited_ = draw.low > -largest || draw.high < largest;
  }

  void Fill(absl::Span<T> values) {
    switch (draw_.character) {
      case Character::kModerate:
        return Each(values, [](Word word) { return Rounded(2 * SignedUnit(word)); });
      case Character::kIntegers:
        return Each(values, [](Word word) { return Rounded(SmallInteger(word)); });
      case Character::kCancelling: return FillCancelling(values);
      case Character::kWide: return Each(values, [](Word word) { return Rounded(Wide(word)); });
      case Character::kLarge:
        return Each(values, [](Word word) { return Rounded(SignedIn(60, 1000, word)); });
      case Character::kSubnormal: return Each(values, [](Word word) { return Subnormal(word); });
      case Character::kEqual:
        return Each(values, [v = FromDouble(draw_.common)](Word) { return v; });
      case Character::kSpikes: return Each(values, [](Word word) { return Rounded(Spike(word)); });
      case Character::kPositive: return Each(values, [](Word word) { return Rounded(Unit(word)); });
      case Character::kAnyBits: return Each(values, [](Word word) { return AnyFinite(word); });
    }
  }

 private:
  using Word = WordOf<T>;
  using SignedWord = std::make_signed_t<Word>;
  // The type in which values are computed before they are rounded, and its bits.
  using Number = std::conditional_t<sizeof(T) == 8, double, float>;
  static constexpr int kWordBits = 8 * sizeof(Word), kBits = 8 * sizeof(T);
  static constexpr int kFraction = Format<T>::kFraction, kNumberFraction = sizeof(T) == 8 ? 52 : 23;
  static constexpr Word kSign = Word{1} << (kWordBits - 1);
  // Masks for the bits of T: the fraction, its first bit, the exponent, the sign.
  static constexpr Word kFractionMask = (Word{1} << kFraction) - 1,
                        kQuiet = Word{1} << (kFraction - 1);
  static constexpr Word kTop = Word{1} << (kBits - 1), kExponent = kTop - 1 - kFractionMask;

  static T Rounded(Number x) {
    if constexpr (std::is_same_v<T, Number>) return x;
    else return T::Round(x);
  }
  static T FromDouble(double x) { return Rounded(static_cast<Number>(x)); }
  static T WithBits(Word bits) { return FromBits<T>(bits); }
  static Number NumberWithBits(Word bits) { return absl::bit_cast<Number>(bits); }

  // Numbers in [-1, 1] and in [0, 1], as fine as the type allows.
  static Number SignedUnit(Word word) {
    return static_cast<Number>(static_cast<SignedWord>(word)) *
           (Number{1} / static_cast<Number>(kSign));
  }
  static Number Unit(Word word) { return SignedUnit(word >> 1); }
  // A number with a magnitude in [low, high], by the bits below the sign.
  static Number SignedIn(Number low, Number high, Word word) {
    const Number magnitude = low + (high - low) * SignedUnit(word & ~kSign);
    return NumberWithBits((word & kSign) | absl::bit_cast<Word>(magnitude));
  }
  // -3 .. 3, by a multiplication instead of a remainder: word * 7 >> bits is in 0 .. 6.
  static Number SmallInteger(Word word) {
    constexpr int kHalf = kWordBits / 2;  // of the word are enough
    return static_cast<Number>(static_cast<SignedWord>((word >> kHalf) * 7 >> kHalf) - 3);
  }
  // 38 of 256 (15 %) are in [-200, 200], the others 0. A mask instead of a branch: vector code.
  static Number Spike(Word word) {
    const Word is_spike = Word{0} - ((word & 0xff) < 38);
    return NumberWithBits(absl::bit_cast<Word>(200 * SignedUnit(word & ~Word{0xff})) & is_spike);
  }

  // Any sign and fraction, and each exponent of a range with the same frequency.
  static Number Wide(Word word) {
    constexpr int kRest = kWordBits - 1 - kNumberFraction;
    constexpr Word kKept = kSign | ((Word{1} << kNumberFraction) - 1);
    constexpr Word kLeast =
        static_cast<Word>(std::numeric_limits<Number>::max_exponent - 1 + Format<T>::kLeastWide);
    const Word exponent =
        kLeast +
        ((word >> kNumberFraction & ((Word{1} << kRest) - 1)) * Format<T>::kWides >> kRest);
    return NumberWithBits((word & kKept) | exponent << kNumberFraction);
  }

  // Bits below twice the least normal number are as far apart as its own.
  static T Subnormal(Word word) {
    constexpr Word kMagnitude = (Word{1} << (kFraction + 1)) - 1;
    return WithBits((word & kMagnitude) | (word & kSign) >> (kWordBits - kBits));
  }

  static T AnyFinite(Word word) {
    // Bits of an infinity or a NaN would not be finite; 1.5 takes their place.
    constexpr Word kOneAndAHalf = (kExponent >> 1 & kExponent) | kQuiet;
    const Word bits = word >> (kWordBits - kBits);
    return WithBits((bits & kExponent) == kExponent ? kOneAndAHalf : bits);
  }

  // Half of the values are fresh, the others nearly negate the one before.
  void FillCancelling(absl::Span<T> values) {
    constexpr Word kFresh = kSign >> 1;
    Word last = absl::bit_cast<Word>(Number{1000});
    FillBlocks(random_, values, [&](const Word(&words)[kBlock], T(&block)[kBlock]) {
      alignas(64) Word numbers[kBlock], noise[kBlock];
      for (size_t i = 0; i < kBlock; ++i) {
        const Word is_old = Word{0} - ((words[i] & kFresh) == 0);
        // 0 marks a place that repeats the one before with the other sign; no fresh number is 0, as
        // its magnitude is at least 100. Only the short loop after this one depends on its own last
        // step.
        numbers[i] = absl::bit_cast<Word>(SignedIn(100, 10000, words[i] & ~kFresh)) & ~is_old;
        noise[i] = absl::bit_cast<Word>(Number{0.01f} * SignedUnit(words[i] << 2)) & is_old;
      }
      for (Word& number : numbers) number = last = number != 0 ? number : last ^ kSign;
      for (size_t i = 0; i < kBlock; ++i)
        block[i] = Rounded(NumberWithBits(numbers[i]) + NumberWithBits(noise[i]));
      Finish(block);
    });
  }

  template <class ValueOf>
  void Each(absl::Span<T> values, const ValueOf& value_of) {
    FillBlocks(random_, values, [&](const Word(&words)[kBlock], T(&block)[kBlock]) {
      for (size_t i = 0; i < kBlock; ++i) block[i] = value_of(words[i]);
      Finish(block);
    });
  }

  void Finish(T (&block)[kBlock]) {
    if (is_limited_) Limit(block);
    if (draw_.special) AddSpecial(block);
  }

  bool IsInside(T value) const {
    return AsDouble(value) >= draw_.low && AsDouble(value) <= draw_.high;
  }

  // Moves values outside of the range into it: to its nearer end, or anywhere if the range is one
  // of moderate numbers.
  void Limit(T (&block)[kBlock]) {
    if (std::all_of(block, block + kBlock, [&](T value) { return IsInside(value); })) return;
    const double width = draw_.high - draw_.low;
    Word words[kBlock];
    random_.Fill(words);
    for (size_t i = 0; i < kBlock; ++i) {
      if (IsInside(block[i])) continue;
      const bool is_moderate = std::abs(AsDouble(block[i])) <= 16 && width < 1e6;
      const double end = AsDouble(block[i]) < draw_.low ? draw_.low : draw_.high;
      block[i] = FromDouble(is_moderate ? draw_.low + width * Unit(words[i]) : end);
    }
  }

  void AddSpecial(T (&block)[kBlock]) {
    // inf, -inf, NaN, -0
    const T specials[] = {WithBits(kExponent), WithBits(kExponent | kTop),
                          WithBits(kExponent | kQuiet), WithBits(kTop)};
    Word words[kBlock];
    random_.Fill(words);
    for (size_t i = 0; i < kBlock; ++i) {
      if (Chance(4, words[i])) block[i] = specials[words[i] >> (kWordBits - 2)];
    }
  }

  const FloatDraw& draw_;
  RandomWords& random_;
  bool is_limited_;  // to less than the finite numbers of the type
};

// ---- Integers

template <class T>
class IntegerDrawer {
 public:
  IntegerDrawer(const IntegerDraw& draw, RandomWords& random) : draw_(draw), random_(random) {}

  void Fill(absl::Span<T> values) {
    const uint64_t span = Span(draw_.low, draw_.high);
    FillBlocks(random_, values,
               [&, low = draw_.low](const Word(&words)[kBlock], T(&block)[kBlock]) {
                 for (size_t i = 0; i < kBlock; ++i) block[i] = Between(low, span, words[i]);
                 if (draw_.few_percent > 0) AddFew(block);
               });
  }

 private:
  using Word = WordOf<T>;

  // 0 stands for 2^64.
  static uint64_t Span(int64_t low, int64_t high) {
    return static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  }

  // The word as a fraction of the span.
  // low + floor(word * span / 2^bits): Lemire's multiplication, without the rejection that would
  // make it exactly uniform.
  static T Between(int64_t low, uint64_t span, Word word) {
    uint64_t above = word;
    if constexpr (sizeof(Word) == 4) above = above * span >> 32;
    else if (span != 0)
      above = static_cast<uint64_t>(static_cast<unsigned __int128>(word) * span >> 64);
    return static_cast<T>(static_cast<uint64_t>(low) + above);
  }

  void AddFew(T (&block)[kBlock]) {
    const uint64_t span = Span(draw_.few_low, draw_.few_high);
    Word which[kBlock], words[kBlock];
    random_.Fill(which);
    random_.Fill(words);
    for (size_t i = 0; i < kBlock; ++i) {
      if (Chance(draw_.few_percent, which[i])) block[i] = Between(draw_.few_low, span, words[i]);
    }
  }

  const IntegerDraw& draw_;
  RandomWords& random_;
};

}  // namespace

void DrawFloats(const FloatDraw& draw, RandomWords& words, Tensor& tensor) {
  VisitType(tensor.type(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>)
      NESTOR_CHECK(false, "floats are drawn for a tensor of another type");
    else FloatDrawer<T>(draw, words).Fill(tensor.values<T>());
  });
}

void DrawIntegers(const IntegerDraw& draw, RandomWords& words, Tensor& tensor) {
  VisitType(tensor.type(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) IntegerDrawer<T>(draw, words).Fill(tensor.values<T>());
    else NESTOR_CHECK(false, "integers are drawn for a tensor of another type");
  });
}

}  // namespace nestor
