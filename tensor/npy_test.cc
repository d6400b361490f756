// Files as NumPy writes and reads them, files with wrong headers, and mutated ones, which must be
// refused without a crash.
#include "tensor/npy.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/tensor.h"
#include "uops/dtype.h"

namespace nestor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A file of the given version around any header text, sensible or not.
std::string Npy(int version, absl::string_view header, absl::string_view data) {
  std::string bytes = absl::StrCat("\x93NUMPY", std::string{static_cast<char>(version), '\0'});
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return absl::StrCat(bytes, header, data);
}

std::string Header(absl::string_view descr, absl::string_view shape, bool fortran = false) {
  return absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", fortran ? "True" : "False",
                      ", 'shape': ", shape, ", }   \n");
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// A new directory that is deleted with its files at the end of the test.
class Directory {
 public:
  Directory() {
    const char* base = std::getenv("TEST_TMPDIR");
    path_ = absl::StrCat(base ? base : "/tmp", "/npy_test_XXXXXX");
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  ~Directory() {
    for (const std::string& name : List()) ::unlink(Path(name).c_str());
    ::rmdir(path_.c_str());
  }
  std::string Path(absl::string_view name) const { return absl::StrCat(path_, "/", name); }
  std::vector<std::string> List() const {
    std::vector<std::string> names;
    DIR* directory = ::opendir(path_.c_str());
    while (const dirent* entry = ::readdir(directory)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    ::closedir(directory);
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
};

std::string Contents(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

void PutContents(const std::string& path, absl::string_view bytes) {
  std::ofstream(path, std::ios::binary) << std::string(bytes);
}

// A header filled up with blanks to a size of 118 bytes, as numpy does.
std::string Padded(const std::string& header) {
  return header + std::string(117 - header.size(), ' ') + "\n";
}

// The bytes that numpy.save writes for arange(6, dtype=float32).reshape(2, 3), and for its
// transpose, which it stores in Fortran order.
const std::string kArange("\0\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40\0\0\xa0\x40", 24);

TEST(Read, WhatNumpyWrites) {
  const std::string c_order =
      Npy(1, Padded("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"), kArange);
  const absl::StatusOr<Tensor> c = ReadNpyFromString(c_order);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(FirstDifference(*c, Tensor::Of<float>({2, 3}, {0, 1, 2, 3, 4, 5})), absl::nullopt);

  const std::string f_order =
      Npy(1, Padded("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }"), kArange);
  const absl::StatusOr<Tensor> f = ReadNpyFromString(f_order);
  ASSERT_TRUE(f.ok()) << f.status();
  EXPECT_EQ(FirstDifference(*f, Tensor::Of<float>({3, 2}, {0, 3, 1, 4, 2, 5})), absl::nullopt);
}

TEST(Write, WhatNumpyReads) {
  const std::string bytes = *WriteNpyToString(Tensor::Of<float>({2, 3}, {0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(bytes.size(), 128u + 24);
  EXPECT_THAT(bytes, StartsWith(std::string("\x93NUMPY\1\0\x76\0{'descr': '<f4', "
                                            "'fortran_order': False, 'shape': (2, 3), }",
                                            10 + 59)));
  EXPECT_EQ(bytes.substr(127), "\n" + kArange);
  const struct {
    Dims shape;
    const char* text;
  } kShapes[] = {{{}, "'shape': (), }"}, {{3}, "'shape': (3,), }"}, {{0, 2}, "'shape': (0, 2), }"}};
  for (const auto& c : kShapes) {
    EXPECT_THAT(*WriteNpyToString(*Tensor::Create(DType::kI8, c.shape)), HasSubstr(c.text));
  }
}

TEST(RoundTrip, EveryTypeShapeAndVersion) {
  for (const DType type : AllTypes()) {
    for (const Dims& shape :
         {Dims{}, Dims{0}, Dims{5}, Dims{2, 3}, Dims{2, 0, 3}, Dims{2, 1, 4}, Dims(64, 1)}) {
      std::vector<double> values(*NumElements(shape));
      for (size_t i = 0; i < values.size(); ++i) values[i] = i % 3;
      const Tensor tensor = Tensor::Of(type, shape, values);
      const std::string bytes = *WriteNpyToString(tensor);
      EXPECT_EQ((bytes.size() - tensor.num_bytes()) % 64, 0u);
      const absl::string_view header =
          absl::string_view(bytes).substr(10, bytes.size() - tensor.num_bytes() - 10);
      const absl::string_view data = absl::string_view(bytes).substr(10 + header.size());
      for (const std::string& file : {bytes, Npy(2, header, data), Npy(3, header, data)}) {
        const absl::StatusOr<Tensor> back = ReadNpyFromString(file, type);
        ASSERT_TRUE(back.ok()) << back.status();
        EXPECT_EQ(FirstDifference(*back, tensor), absl::nullopt);
      }
    }
  }
  EXPECT_FALSE(WriteNpyToString(*Tensor::Create(DType::kI8, Dims(65, 1))).ok());
}

TEST(RoundTrip, StridedViews) {
  const Tensor tensor = Tensor::Of<int32_t>({6}, {1, 2, 3, 4, 5, 6});
  TensorView view = tensor;
  view.shape = {3, 2};
  view.strides = {1, 3};
  EXPECT_TRUE(BitEqual(*ReadNpyFromString(*WriteNpyToString(view)), view));
  view.data = nullptr;
  EXPECT_EQ(WriteNpyToString(view).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Read, HeadersThatAreFine) {
  const std::string two("\1\0\2\0", 4);
  const char* kHeaders[] = {
      "{'descr':'<i4','fortran_order':False,'shape':(1,)}",
      "{\"shape\": (1L,), \"fortran_order\": False, \"descr\": \"<i4\"}\n",
      " {\n'fortran_order' : False , 'shape' : ( 1 , 1 ) , 'descr' : 'i4' , } \n",
      "{'descr': '=i4', 'fortran_order': True, 'shape': (1, 1, 1,), }",
      "{'descr': '<i4', 'fortran_order': False, 'shape': ()}",
  };
  for (const char* header : kHeaders) {
    const absl::StatusOr<Tensor> tensor = ReadNpyFromString(Npy(1, header, two));
    ASSERT_TRUE(tensor.ok()) << header << tensor.status();
    EXPECT_THAT(tensor->values<int32_t>(), ElementsAre(0x20001));
  }
}

TEST(Read, ElementTypes) {
  const struct {
    const char* descr;
    std::string data;
    absl::optional<DType> expected;
    Scalar value;
  } kCases[] = {
      {"|b1", {"\1", 1}, {}, Scalar::Of(DType::kBool, true)},
      {"|b1", {"\7", 1}, {}, Scalar::Of(DType::kBool, true)},
      {">u1", {"\xff", 1}, {}, Scalar::Integer(DType::kU8, 255)},
      {"|i1", {"\xff", 1}, {}, Scalar::Integer(DType::kI8, -1)},
      {">i4", {"\0\0\1\2", 4}, {}, Scalar::Integer(DType::kI32, 258)},
      {">i8", {"\xff\xff\xff\xff\xff\xff\xff\xfe", 8}, {}, Scalar::I64(-2)},
      {"<f2", {"\0\x3c", 2}, {}, Scalar::Float(DType::kF16, 1)},
      {">f2", {"\x3c\0", 2}, DType::kF16, Scalar::Float(DType::kF16, 1)},
      {">f4", {"\x3f\x80\0\0", 4}, {}, Scalar::Float(DType::kF32, 1)},
      {">f8", {"\x3f\xf0\0\0\0\0\0\0", 8}, {}, Scalar::Float(DType::kF64, 1)},
      {"<u2", {"\x80\x3f", 2}, DType::kBF16, Scalar::Float(DType::kBF16, 1)},
      {">u2", {"\x3f\x80", 2}, DType::kBF16, Scalar::Float(DType::kBF16, 1)},
      {"<V2", {"\x80\x3f", 2}, DType::kBF16, Scalar::Float(DType::kBF16, 1)},
      {"<u2", {"\x80\xbf", 2}, {}, Scalar::Integer(DType::kU16, 0xbf80)},
      {">u2", {"\xbf\x80", 2}, DType::kU16, Scalar::Integer(DType::kU16, 0xbf80)},
      {">i2", {"\xbf\x80", 2}, {}, Scalar::Integer(DType::kI16, 0xbf80 - 0x10000)},
      {">u4", {"\xff\0\1\2", 4}, {}, Scalar::Integer(DType::kU32, 0xff000102)},
      {"<u8", {"\xfe\xff\xff\xff\xff\xff\xff\xff", 8}, {}, Scalar::Of(DType::kU64, ~uint64_t{1})},
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<Tensor> tensor =
        ReadNpyFromString(Npy(1, Header(c.descr, "()"), c.data), c.expected);
    ASSERT_TRUE(tensor.ok()) << c.descr << tensor.status();
    EXPECT_EQ(At(*tensor, {}), c.value) << c.descr;
  }
  const absl::StatusOr<Tensor> bools = ReadNpyFromString(Npy(1, Header("|b1", "(1,)"), "\7"));
  EXPECT_EQ(*static_cast<const uint8_t*>(bools->data()), 1);
}

TEST(Read, Refusals) {
  const std::string four(4, '\0');
  const auto i4 = [&](absl::string_view shape) { return Npy(1, Header("<i4", shape), four); };
  const auto field = [&](absl::string_view fields) { return Npy(1, fields, four); };
  const struct {
    std::string bytes;
    const char* error;
    absl::optional<DType> expected = absl::nullopt;
  } kCases[] = {
      {"", "truncated: the magic and version needs 8 bytes, there are 0"},
      {"\x93NUM", "truncated: the magic and version needs 8 bytes, there are 4"},
      {"1 2\n", "not a .npy file"},
      {"PK\3\4 a zip file", "not a .npy file"},
      {std::string("\x93NUMPY\1\0\x76", 9), "truncated: the header's length needs 2"},
      {std::string("\x93NUMPY\1\0\x76\0{", 11), "truncated: the header needs 118 bytes"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff{", 13), "a header of 4294967295 bytes"},
      {std::string("\x93NUMPY\4\0\0\0", 10), "version 4.0 of the format is not supported"},
      {std::string("\x93NUMPY\1\1\0\0", 10), "version 1.1 of the format is not supported"},
      {std::string("\x93NUMPY\0\0\0\0", 10), "version 0.0 of the format is not supported"},
      {field(""), "has its end at byte 0 where '{' is expected"},
      {field("{"), "has its end at byte 1 where a key is expected"},
      {field("{}"), "lacks one of"},
      {field("{'descr': '<i4', 'shape': (1,)}"), "lacks one of"},
      {field("{'descr' '<i4'}"), "where ':' is expected"},
      {field("{'descr': '<i4"), "has '<i4 at byte 10 where a type in quotes"},
      {field("{'descr': 3}"), "where a type in quotes is expected"},
      {field("{'descr': [('a', '<i4')]}"), "structured elements are not supported"},
      {field("{'descr': '<i4' 'shape': (1,)}"), "where ',' or '}' is expected"},
      {field("{'descr': '<i4', 'descr': '<i4'}"), "gives 'descr' twice"},
      {field("{'shape': (1,), 'shape': (1,)}"), "gives 'shape' twice"},
      {field("{'order': 1}"), "the unknown key 'order'"},
      {field("{'fortran_order': 1}"), "where True or False is expected"},
      {field(Header("<i4", "(1,)") + "x"), "where the end is expected"},
      {field(Header("<i4", "(1,)") + std::string(1, '\0')), "where the end is expected"},
      {i4("1"), "where a shape in parentheses is expected"},
      {i4("(1)"), "the shape is a number, not a tuple"},
      {i4("(,)"), "where an extent is expected"},
      {i4("(1,,)"), "where an extent is expected"},
      {i4("(-1,)"), "where an extent is expected"},
      {i4("(1 1)"), "where ',' or ')' is expected"},
      {i4("(1.0,)"), "where ',' or ')' is expected"},
      {i4("(9223372036854775808,)"), "where an extent is expected"},
      {i4("(9223372036854775807,)"), "overflows 64 bits"},
      {i4("(4294967296, 4294967296)"), "overflows 64 bits"},
      {i4("(0, 4294967296, 4294967296)"), "overflows 64 bits"},
      {i4("(1000000000000,)"), "truncated: the data of i32[1000000000000] needs 4000000000000"},
      {i4("(2,)"), "truncated: the data of i32[2] needs 8 bytes, there are 4"},
      {i4("(0,)"), "the data of i32[0] is 0 bytes, but more follow"},
      {i4(absl::StrCat("(", std::string(130, '1'), ")")), "where an extent is expected"},
      {Npy(1, Header("<c8", "(1,)"), four), "elements of type '<c8' are not supported"},
      {Npy(1, Header("|O", "(1,)"), four), "elements of type '|O' are not supported"},
      {Npy(1, Header("", "(1,)"), four), "elements of type '' are not supported"},
      {Npy(1, Header("<V2", "(2,)"), four), "'<V2' are read only where bf16 is expected"},
      {Npy(1, Header("<V2", "(2,)"), four), "bf16 is expected, here u16 is", DType::kU16},
      {Npy(1, Header("<u2", "(2,)"), four), "holds u16 where f16 is expected", DType::kF16},
      {Npy(1, Header("<i2", "(2,)"), four), "holds i16 where bf16 is expected", DType::kBF16},
      {i4("(1,)"), "holds i32 where f32 is expected", DType::kF32},
      {i4("(1,)"), "holds i32 where bf16 is expected", DType::kBF16},
  };
  for (const auto& c : kCases) {
    const absl::Status status = ReadNpyFromString(c.bytes, c.expected).status();
    EXPECT_THAT(Message(status), HasSubstr(c.error));
    EXPECT_THAT(Message(status), StartsWith(".npy data: "));
  }
  std::string ones = "(";
  for (int i = 0; i < 65; ++i) ones += "1,";
  EXPECT_THAT(Message(ReadNpyFromString(i4(ones + ")")).status()), HasSubstr("more than 64 axes"));
}

// Damages valid files in many ways; a tensor that is read nevertheless must be no larger than the
// file and survive a round trip.
TEST(Read, MutatedFiles) {
  std::mt19937 random(20240607);
  const auto below = [&](size_t n) { return random() % n; };
  const std::string tokens[] = {"(",
                                ")",
                                ",",
                                "'",
                                "L",
                                "-1",
                                "0",
                                "{",
                                "}",
                                "True",
                                "2147483648",
                                "<f8",
                                ">i8",
                                "'shape'",
                                "|O",
                                "<u2",
                                "False",
                                "4294967296",
                                "\0",
                                "\xff",
                                "'descr': ",
                                "[",
                                ":",
                                "99999999999999999999999",
                                "9223372036854775807"};
  const std::string seeds[] = {
      Npy(1, Header("<f4", "(2, 3)"), std::string(24, '\1')),
      Npy(2, Header(">i8", "(3, 1)", true), std::string(24, '\2')),
      Npy(3, Header("|b1", "(0, 7)"), ""),
      Npy(1, Header("<u2", "(12,)"), std::string(24, '\3')),
  };
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = seeds[below(4)];
    for (size_t mutations = 1 + below(3); mutations > 0; --mutations) {
      const size_t at = below(bytes.size() + 1);
      const std::string& token = tokens[below(std::size(tokens))];
      switch (below(6)) {
        case 0: bytes.resize(at); break;
        case 1: bytes.insert(at, token); break;
        case 2: bytes.replace(at, token.size(), token); break;
        case 3: bytes.erase(at, 1 + below(8)); break;
        case 4: bytes.insert(at, bytes.substr(below(bytes.size() + 1), below(16))); break;
        case 5:
          if (at < bytes.size()) bytes[at] = static_cast<char>(random());
          break;
      }
    }
    const absl::optional<DType> expected =
        below(4) == 0 ? absl::optional<DType>(DType::kBF16) : absl::nullopt;
    const absl::StatusOr<Tensor> tensor = ReadNpyFromString(bytes, expected);
    if (!tensor.ok()) {
      ASSERT_FALSE(tensor.status().message().empty());
      continue;
    }
    ++accepted;
    ASSERT_LE(tensor->num_bytes(), static_cast<int64_t>(bytes.size()));
    ASSERT_TRUE(BitEqual(*ReadNpyFromString(*WriteNpyToString(*tensor), tensor->type()), *tensor));
  }
  EXPECT_GT(accepted, 200);  // most damage is fatal, some must reach the data
}

TEST(File, RoundTripsAndReplaces) {
  const Directory directory;
  const std::string path = directory.Path("x.npy");
  const Tensor first = Tensor::Of<float>({3}, {1, 2, 3});
  const Tensor second = Tensor::Of<int64_t>({1, 2}, {4, 5});
  ASSERT_TRUE(WriteNpy(path, first).ok());
  EXPECT_TRUE(BitEqual(*ReadNpy(path), first));
  EXPECT_EQ(Contents(path), *WriteNpyToString(first));

  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  ASSERT_EQ(::symlink("x.npy", directory.Path("link.npy").c_str()), 0);
  ASSERT_TRUE(WriteNpy(directory.Path("link.npy"), second).ok());
  EXPECT_TRUE(BitEqual(*ReadNpy(path), second));
  struct stat info;
  ASSERT_EQ(::lstat(directory.Path("link.npy").c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  EXPECT_THAT(directory.List(), ElementsAre("link.npy", "x.npy"));
}

TEST(File, ErrorsNameThePathAndLeaveNothing) {
  const Directory directory;
  const std::string missing = directory.Path("none.npy");
  EXPECT_EQ(ReadNpy(missing).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(ReadNpy(missing).status()), StartsWith(missing + ": cannot open"));
  EXPECT_THAT(Message(ReadNpy(directory.Path("")).status()), HasSubstr("neither a file nor"));

  const std::string damaged = directory.Path("damaged.npy");
  PutContents(damaged, Npy(1, Header("<f8", "(1000000, 1000000)"), "short"));
  EXPECT_THAT(Message(ReadNpy(damaged).status()),
              StartsWith(damaged + ": truncated: the data of f64[1000000, 1000000] needs"));

  const Tensor tensor = Tensor::Of<float>({1}, {1});
  const std::string nowhere = directory.Path("no/such/x.npy");
  EXPECT_THAT(Message(WriteNpy(nowhere, tensor)), StartsWith(nowhere + ": cannot create"));
  EXPECT_THAT(Message(WriteNpy(directory.Path(""), tensor)), HasSubstr("cannot open for writing"));
  EXPECT_FALSE(WriteNpy("", tensor).ok());
  const std::string before = Contents(damaged);
  EXPECT_FALSE(WriteNpy(damaged, {DType::kF32, {2}, {1}, nullptr}).ok());
  EXPECT_EQ(Contents(damaged), before);
  EXPECT_THAT(directory.List(), ElementsAre("damaged.npy"));
}

TEST(File, FullDeviceIsAnError) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  EXPECT_THAT(Message(WriteNpy("/dev/full", Tensor::Of<float>({1}, {1}))),
              StartsWith("/dev/full: cannot write"));
  struct stat info;
  ASSERT_EQ(::stat("/dev/full", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));  // written to, not replaced
}

// Reads bytes that come through a pipe.
absl::StatusOr<Tensor> ThroughPipe(const std::string& pipe, const std::string& bytes) {
  std::thread writer([&] { PutContents(pipe, bytes); });
  absl::StatusOr<Tensor> tensor = ReadNpy(pipe);
  writer.join();
  return tensor;
}

TEST(File, Pipes) {
  const Directory directory;
  const std::string pipe = directory.Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Tensor large = *Tensor::Create(DType::kF64, {1000, 300});  // more than one chunk
  for (int i = 0; i < 300000; ++i) large.values<double>()[i] = i;
  std::thread writer([&] { EXPECT_TRUE(WriteNpy(pipe, large).ok()); });
  const absl::StatusOr<Tensor> back = ReadNpy(pipe);
  writer.join();
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(BitEqual(*back, large));

  // The length is not known beforehand: a lie costs no memory.
  const std::string lie = Npy(1, Header("<f8", "(10000000000000,)"), "abc");
  EXPECT_THAT(Message(ThroughPipe(pipe, lie).status()),
              HasSubstr("needs 80000000000000 bytes, there are 3"));
  EXPECT_THAT(Message(ThroughPipe(pipe, Npy(1, Header("|i1", "(2,)"), "abc")).status()),
              HasSubstr("but more follow"));
  EXPECT_TRUE(ThroughPipe(pipe, Npy(1, Header("|i1", "(0,)"), "")).ok());
}

}  // namespace
}  // namespace nestor
