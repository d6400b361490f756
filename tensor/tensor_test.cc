// Shapes, views and tensors: sizes and errors in tables, elements of every type, and printing.
#include "tensor/tensor.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "uops/dtype.h"

namespace nestor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kBig = int64_t{1} << 40;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Shape, NumElements) {
  const struct {
    Dims shape;
    int64_t elements;  // -1: an error that contains `error`
    const char* error;
  } kCases[] = {
      {{}, 1, ""},
      {{3}, 3, ""},
      {{2, 3, 4}, 24, ""},
      {{0}, 0, ""},
      {{kBig, 0, 5}, 0, ""},
      {{int64_t{1} << 62}, int64_t{1} << 62, ""},
      {{-1}, -1, "axis 0 of shape [-1] has the negative extent -1"},
      {{0, -2}, -1, "axis 1 of shape [0, -2] has the negative extent -2"},
      {{kBig, kBig}, -1, "overflows"},
      {{kBig, 0, kBig}, -1, "overflows"},
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<int64_t> elements = NumElements(c.shape);
    if (c.elements >= 0) {
      ASSERT_TRUE(elements.ok()) << ShapeText(c.shape);
      EXPECT_EQ(*elements, c.elements);
    } else {
      EXPECT_EQ(elements.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(elements.status().message()), HasSubstr(c.error));
    }
  }
  EXPECT_FALSE(NumBytes(DType::kF64, {int64_t{1} << 61}).ok());
  EXPECT_EQ(*NumBytes(DType::kF16, {3, 5}), 30);
}

TEST(Shape, IndexWalkVisitsInRowMajorOrder) {
  const Dims shape = {2, 1, 3};
  const TensorView compact = ViewOf<float>(nullptr, shape);
  Dims index(3, 0);
  int64_t count = 0;
  do {
    EXPECT_TRUE(InBounds(shape, index));
    EXPECT_EQ(ElementOffset(compact, index), count++);
  } while (NextIndex(shape, absl::MakeSpan(index)));
  EXPECT_EQ(count, 6);
  EXPECT_THAT(index, ElementsAre(0, 0, 0));
  EXPECT_FALSE(NextIndex({}, {}));
}

TEST(Shape, InBounds) {
  EXPECT_TRUE(InBounds({}, {}));
  EXPECT_TRUE(InBounds({2, 3}, {1, 2}));
  EXPECT_FALSE(InBounds({2, 3}, {1, 3}));
  EXPECT_FALSE(InBounds({2, 3}, {-1, 0}));
  EXPECT_FALSE(InBounds({2, 3}, {1}));
  EXPECT_FALSE(InBounds({0}, {0}));
}

TEST(View, FootprintAndErrors) {
  float memory[16];
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  const struct {
    Dims shape, strides;
    void* data;
    int64_t begin, end;
    const char* error;
  } kCases[] = {
      {{}, {}, memory, 0, 4, ""},
      {{2, 3}, {3, 1}, memory, 0, 24, ""},
      {{2, 3}, {-3, 1}, memory, -12, 12, ""},
      {{4, 4}, {0, -1}, memory, -12, 4, ""},
      {{1}, {kMax}, memory, 0, 4, ""},
      {{0, 3}, {kMax, 1}, nullptr, 0, 0, ""},
      {{2}, {}, memory, 0, 0, "has 0 strides"},
      {{-2}, {1}, memory, 0, 0, "negative extent"},
      {{2}, {1}, nullptr, 0, 0, "no memory"},
      {{2}, {kMax}, memory, 0, 0, "overflow"},
      {{2}, {kMin}, memory, 0, 0, "overflow"},
      {{2, 2}, {kMax / 5, kMax / 5}, memory, 0, 0, "overflow"},
  };
  for (const auto& c : kCases) {
    const TensorView view = {DType::kF32, c.shape, c.strides, c.data};
    const absl::StatusOr<ByteRange> range = Footprint(view);
    ASSERT_EQ(range.ok(), *c.error == '\0') << ShapeText(c.strides) << range.status();
    EXPECT_EQ(CheckView(view), range.status());
    if (range.ok()) {
      EXPECT_EQ(range->begin, c.begin) << ShapeText(c.strides);
      EXPECT_EQ(range->end, c.end) << ShapeText(c.strides);
    } else {
      EXPECT_THAT(std::string(range.status().message()), HasSubstr(c.error));
    }
  }
}

TEST(View, IsContiguous) {
  const struct {
    Dims shape, strides;
    bool contiguous;
  } kCases[] = {
      {{}, {}, true},
      {{3}, {1}, true},
      {{3}, {2}, false},
      {{3}, {-1}, false},
      {{2, 3}, {3, 1}, true},
      {{2, 3}, {1, 2}, false},
      {{1, 3}, {77, 1}, true},
      {{2, 1}, {1, 0}, true},
      {{2, 3}, {0, 1}, false},
      {{0, 3}, {9, 9}, true},
      {{2, 3, 4}, {12, 4, 1}, true},
      {{2, 3, 4}, {24, 4, 1}, false},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(IsContiguous({DType::kF32, c.shape, c.strides, nullptr}), c.contiguous)
        << ShapeText(c.shape) << ShapeText(c.strides);
  }
}

// Views of the twelve values 0..11, and the results of FromView.
TEST(View, CompactCopies) {
  const struct {
    Dims shape, strides;
    int64_t start;
    std::vector<double> values;
  } kCases[] = {
      {{}, {}, 7, {7}},
      {{3, 4}, {4, 1}, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
      {{4, 3}, {1, 4}, 0, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},  // transposed
      {{4}, {-1}, 3, {3, 2, 1, 0}},
      {{2, 3}, {0, 2}, 1, {1, 3, 5, 1, 3, 5}},  // broadcast
      {{2, 2, 2}, {-6, 3, -1}, 7, {7, 6, 10, 9, 1, 0, 4, 3}},
      {{2, 0}, {1, 1}, 0, {}},
  };
  for (const DType type : AllTypes()) {
    std::vector<double> all(12);
    for (int i = 0; i < 12; ++i) all[i] = i;
    Tensor memory = Tensor::Of(type, {12}, all);
    for (const auto& c : kCases) {
      const TensorView view = {type, c.shape, c.strides,
                               static_cast<char*>(memory.data()) + c.start * ByteSize(type)};
      const absl::StatusOr<Tensor> copy = Tensor::FromView(view);
      ASSERT_TRUE(copy.ok()) << copy.status();
      const Tensor expected = Tensor::Of(type, c.shape, c.values);
      EXPECT_EQ(FirstDifference(*copy, expected), absl::nullopt) << Name(type);
      EXPECT_EQ(FirstDifference(view, expected), absl::nullopt) << Name(type);
    }
  }
  EXPECT_FALSE(Tensor::FromView({DType::kF32, {2}, {1}, nullptr}).ok());
}

TEST(View, SetThenAtForEveryTypeUnaligned) {
  for (const DType type : AllTypes()) {
    char memory[64] = {};
    TensorView view = {type, {2, 2}, {-1, 2}, memory + 1 + ByteSize(type)};
    Dims index = {0, 0};
    do {
      for (const Scalar value : {Lowest(type), Highest(type), Scalar::Zero(type)}) {
        Set(view, index, value);
        EXPECT_EQ(At(view, index), value);
      }
      Set(view, index, Scalar::Integer(type, index[0] + index[1] == 1));
    } while (NextIndex(view.shape, absl::MakeSpan(index)));
    EXPECT_TRUE(BitEqual(view, Tensor::Of(type, {2, 2}, {0, 1, 1, 0}))) << ToString(view);
    EXPECT_EQ(memory[0], 0);
  }
}

TEST(View, LoadCanonicalises) {
  const uint32_t signalling = 0xffa00001;
  EXPECT_EQ(Load(DType::kF32, &signalling), Scalar::Of(DType::kF32, kNaN));
  const uint8_t two = 2;
  EXPECT_EQ(Load(DType::kBool, &two), Scalar::Of(DType::kBool, true));
}

TEST(Difference, Cases) {
  const Tensor base = Tensor::Of<float>({2, 2}, {1, kNaN, 0.5f, -0.0f});
  EXPECT_TRUE(BitEqual(base, Tensor::Of<float>({2, 2}, {1, -kNaN, 0.5f, -0.0f})));
  EXPECT_EQ(*FirstDifference(base, Tensor::Of<float>({2, 2}, {1, kNaN, 0.25f, 0})),
            "at [1, 0]: 0.5 (0x3f000000) against 0.25 (0x3e800000)");
  EXPECT_EQ(*FirstDifference(base, Tensor::Of<float>({2, 2}, {1, kNaN, 0.5f, 0})),
            "at [1, 1]: -0.0 (0x80000000) against 0.0 (0x00000000)");
  EXPECT_EQ(*FirstDifference(base, Tensor::Of<float>({4}, {1, kNaN, 0.5f, 0})),
            "shape [2, 2] against [4]");
  EXPECT_EQ(*FirstDifference(base, Tensor::Of<int32_t>({2, 2}, {1, 2, 3, 4})),
            "type f32 against i32");
  EXPECT_EQ(*FirstDifference(Tensor::Of<int8_t>({}, {-1}), Tensor::Of<int8_t>({}, {1})),
            "at []: -1 (0xff) against 1 (0x01)");
  EXPECT_TRUE(BitEqual(Tensor::Of<float>({0, 3}, {}), Tensor::Of<float>({0, 3}, {})));
  EXPECT_FALSE(BitEqual(Tensor::Of<float>({0, 3}, {}), Tensor::Of<float>({3, 0}, {})));
}

TEST(Tensor, CreateZeroesAndAligns) {
  for (const Dims& shape : {Dims{}, Dims{0}, Dims{1}, Dims{3, 5, 7}, Dims{1 << 20}}) {
    for (const DType type : AllTypes()) {
      const absl::StatusOr<Tensor> tensor = Tensor::Create(type, shape);
      ASSERT_TRUE(tensor.ok());
      EXPECT_EQ(tensor->type(), type);
      EXPECT_EQ(tensor->shape(), shape);
      EXPECT_EQ(tensor->num_bytes(), *NumBytes(type, shape));
      EXPECT_NE(tensor->data(), nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->data()) % 64, 0u);
      EXPECT_TRUE(CheckView(*tensor).ok());
      const char* bytes = static_cast<const char*>(tensor->data());
      EXPECT_EQ(std::count(bytes, bytes + tensor->num_bytes(), 0), tensor->num_bytes());
    }
  }
}

TEST(Tensor, CreateRefuses) {
  EXPECT_EQ(Tensor::Create(DType::kF32, {-1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Tensor::Create(DType::kF32, {kBig, kBig}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const absl::Status status = Tensor::Create(DType::kF64, {int64_t{1} << 55}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("f64[36028797018963968]"));
}

TEST(Tensor, CopyAndMove) {
  Tensor a = Tensor::Of<float>({2}, {1, 2});
  Tensor b = a;
  b.values<float>()[0] = 5;
  EXPECT_THAT(a.values<float>(), ElementsAre(1, 2));
  EXPECT_THAT(b.values<float>(), ElementsAre(5, 2));

  const void* memory = b.data();
  Tensor c = std::move(b);
  EXPECT_EQ(c.data(), memory);
  EXPECT_TRUE(BitEqual(b, Tensor()));  // NOLINT: a moved-from tensor is empty
  a = c;
  c = std::move(a);
  EXPECT_THAT(c.values<float>(), ElementsAre(5, 2));
  Tensor& same = c;
  c = same;
  c = std::move(same);
  EXPECT_THAT(c.values<float>(), ElementsAre(5, 2));
  c = Tensor();
  EXPECT_EQ(c.num_elements(), 0);
  EXPECT_TRUE(BitEqual(Tensor(c), Tensor::Of<float>({0}, {})));
}

TEST(Tensor, OfConvertsOnce) {
  EXPECT_EQ(At(Tensor::Of(DType::kBF16, {1}, {1.00390625}), {0}).ToDouble(), 1.0);
  EXPECT_EQ(At(Tensor::Of(DType::kI8, {1}, {-3.9}), {0}).ToInt(), -3);
  EXPECT_EQ(At(Tensor::Of(DType::kBool, {1}, {0.5}), {0}).ToInt(), 1);
  EXPECT_DEATH(Tensor::Of<float>({2}, {1, 2, 3}), "3 values for shape \\[2\\]");
}

TEST(ToString, Small) {
  EXPECT_EQ(ToString(Tensor::Of<float>({}, {1.5f})), "1.5");
  EXPECT_EQ(ToString(Tensor::Of<float>({0}, {})), "[]");
  EXPECT_EQ(ToString(Tensor::Of<float>({2, 0}, {})), "[]");
  EXPECT_EQ(ToString(Tensor::Of<int32_t>({3}, {1, -20, 3})), "[  1, -20,   3]");
  EXPECT_EQ(ToString(Tensor::Of<bool>({2}, {true, false})), "[ true, false]");
  EXPECT_EQ(ToString(Tensor::Of<float>({2, 2}, {1, 2.5f, kNaN, -kInf})), "[[ 1.0,  2.5],\n"
                                                                         " [ nan, -inf]]");
  EXPECT_EQ(ToString(Tensor::Of(DType::kF16, {2, 1, 2}, {1, 2, 3, 4})), "[[[1.0, 2.0]],\n"
                                                                        "\n"
                                                                        " [[3.0, 4.0]]]");
}

TEST(ToString, WrapsAndSummarises) {
  Tensor row = *Tensor::Create(DType::kU8, {10});
  for (int i = 0; i < 10; ++i) row.values<uint8_t>()[i] = i;
  EXPECT_EQ(ToString(row, {.threshold = 10, .line_width = 16}), "[0, 1, 2, 3, 4,\n"
                                                                " 5, 6, 7, 8, 9]");
  EXPECT_EQ(ToString(row, {.threshold = 9}), "[0, 1, 2, ..., 7, 8, 9]");
  EXPECT_EQ(ToString(row, {.threshold = 3}), "[0, ..., 9]");
  EXPECT_EQ(ToString(row, {.threshold = 1}), "[0, ...]");

  // A broadcast view of 10^12 elements prints at once.
  const TensorView huge = {DType::kU8, {1000000, 1000000}, {0, 0}, row.data()};
  EXPECT_EQ(ToString(huge, {.threshold = 20}), "[[0, 0, ..., 0, 0],\n"
                                               " [0, 0, ..., 0, 0],\n"
                                               " ...,\n"
                                               " [0, 0, ..., 0, 0],\n"
                                               " [0, 0, ..., 0, 0]]");
  // So does one with many axes too short to cut in the middle.
  const TensorView deep = {DType::kU8, Dims(40, 2), Dims(40, 0), row.data()};
  EXPECT_THAT(ToString(deep), HasSubstr("[0, ...]"));
  EXPECT_LT(ToString(deep).size(), 10000u);
}

}  // namespace
}  // namespace nestor
