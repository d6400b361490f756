// The names of C functions and of their parameters: no word that C or its headers reserve, and no
// name twice.
#include "check/c_prototype.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

TEST(CPrototype, NamesAreFree) {
  for (const char* name : {"int", "xor", "register", "int8_t", "int16_t", "int32_t", "int64_t",
                           "uint8_t", "uint16_t", "uint32_t", "uint64_t", "_Bool"}) {
    EXPECT_TRUE(IsTakenInC(name)) << name;
    const auto op =
        ParseOp(absl::StrCat("op f(", name, ": f32[N]) -> (y) { y[i] = ", name, "[i] }"));
    ASSERT_TRUE(op.ok()) << op.status();
    for (const CParameter& parameter : CPrototypeOf(*op).parameters)
      EXPECT_FALSE(IsTakenInC(parameter.name)) << parameter.name;
  }
  // The types that parameters have are words that the header uses.
  for (DType type : {DType::kBool, DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8,
                     DType::kU16, DType::kU32, DType::kU64, DType::kBF16, DType::kF32, DType::kF64})
    EXPECT_TRUE(IsTakenInC(CType(type))) << CType(type);
}

TEST(CPrototype, NamesAreDistinct) {
  // An argument has the name that the first stride of x would have.
  const auto op = ParseOp("op f(x: f32[N], x_stride0: f32[N]; $N2: f32 = 1.0) -> (y) { y[i] = "
                          "x[i] * x_stride0[i] * $N2 }");
  ASSERT_TRUE(op.ok()) << op.status();
  std::set<std::string> names;
  CPrototypeOptions options;
  options.strided = true;
  for (const CParameter& parameter : CPrototypeOf(*op, options).parameters)
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
  EXPECT_TRUE(names.contains("x_stride0"));
}

}  // namespace
}  // namespace nestor
