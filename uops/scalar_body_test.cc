// Scalar ops in executable form: which rows have bodies, and that each body is a straight line.
// //tests:scalar_ops_test compares values with references.
#include "uops/scalar_body.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace nestor {
namespace {

bool Same(const ScalarFunction& a, const ScalarFunction& b) {
  return a.primitive == b.primitive && a.body == b.body;
}

// Calls `check(row, operand, target, form)` for all that a row takes; a cast's targets are all
// types.
template <class Check>
void ForEachFunction(Check check) {
  for (const ScalarOpRow& row : AllScalarOps()) {
    for (DType operand : AllTypes()) {
      for (DType target : AllTypes()) {
        const absl::optional<DType> result = ResultTypeOf(row.op, operand, target);
        if (!result || *result != target) continue;
        for (BodyForm form : {BodyForm::kFactors, BodyForm::kLdexp}) {
          SCOPED_TRACE(absl::StrCat(row.name, " of ", Name(operand), " to ", Name(target)));
          check(row, operand, target, form);
        }
      }
    }
  }
}

// A row has a body or is a primitive, and it is the same one each time.
TEST(ScalarBody, IsOneOrAPrimitive) {
  int bodies = 0, primitives = 0;
  ForEachFunction([&](const ScalarOpRow& row, DType operand, DType target, BodyForm form) {
    const ScalarFunction function = FunctionOf(row.op, operand, target, form);
    const bool has_body = HasBody(row.op, operand);
    EXPECT_EQ(function.body != nullptr, has_body);
    EXPECT_EQ(function.primitive, has_body ? nullptr : Primitive(row.op, operand, target));
    EXPECT_TRUE(Same(function, FunctionOf(row.op, operand, target, form)));
    ++(has_body ? bodies : primitives);
  });
  EXPECT_GT(bodies, 0);
  EXPECT_GT(primitives, 0);
}

// Two bodies where the forms differ. A 16-bit float has one, which calls the one of f32.
TEST(ScalarBody, HasFormsWhereTheyDiffer) {
  ForEachFunction([](const ScalarOpRow& row, DType operand, DType target, BodyForm form) {
    if (form == BodyForm::kFactors || !HasBody(row.op, operand)) return;
    const ScalarFunction ldexp = FunctionOf(row.op, operand, target, form);
    const bool wide = AccumulatorType(operand) == operand;
    EXPECT_EQ(Same(ldexp, FunctionOf(row.op, operand, target)),
              !HasForms(row.op, operand) || !wide);
  });
}

// Each step computes a register from earlier ones, by the function that its members name, and a
// register has the type that its readers expect.
TEST(ScalarBody, IsAStraightLine) {
  ForEachFunction([](const ScalarOpRow& row, DType operand, DType target, BodyForm form) {
    const ScalarBody* const body = FunctionOf(row.op, operand, target, form).body;
    if (body == nullptr) return;
    EXPECT_EQ(body->arity, row.arity);
    ASSERT_EQ(body->constants.size(), body->constant_types.size());
    const bool choice = row.result == ResultType::kChoice;
    std::vector<DType> types(static_cast<size_t>(row.arity), operand);
    if (choice) types[0] = DType::kBool;
    types.insert(types.end(), body->constant_types.begin(), body->constant_types.end());
    for (const ScalarBody::Step& step : body->steps) {
      const ScalarOpRow& used = Row(step.op);
      for (int i = 0; i < used.arity; ++i) {
        ASSERT_GE(step.args[i], 0);
        ASSERT_LT(step.args[i], static_cast<int>(types.size()));
        const bool condition = used.result == ResultType::kChoice && i == 0;
        EXPECT_EQ(types[static_cast<size_t>(step.args[i])], condition ? DType::kBool : step.operand)
            << used.name;
      }
      EXPECT_EQ(ResultTypeOf(step.op, step.operand, step.target), step.target) << used.name;
      EXPECT_TRUE(Same(step.function, FunctionOf(step.op, step.operand, step.target))) << used.name;
      types.push_back(step.target);
    }
    ASSERT_GE(body->result, 0);
    ASSERT_LT(body->result, static_cast<int>(types.size()));
    EXPECT_EQ(types[static_cast<size_t>(body->result)], target);
  });
}

// A call is the steps in order, on the operands and the constants.
TEST(ScalarBody, RunsItsSteps) {
  ForEachFunction([](const ScalarOpRow& row, DType operand, DType target, BodyForm form) {
    const ScalarFunction function = FunctionOf(row.op, operand, target, form);
    if (function.body == nullptr) return;
    const ScalarBody& body = *function.body;
    std::vector<Bits> registers;
    for (int i = 0; i < row.arity; ++i) {
      registers.push_back(IsFloat(operand) ? Scalar::Float(operand, 0.375 + i).bits
                                           : Scalar::Integer(operand, 3 + i).bits);
    }
    const std::vector<Bits> operands = registers;
    registers.insert(registers.end(), body.constants.begin(), body.constants.end());
    for (const ScalarBody::Step& step : body.steps) {
      Bits args[3] = {};
      for (int i = 0; i < Row(step.op).arity; ++i)
        args[i] = registers[static_cast<size_t>(step.args[i])];
      registers.push_back(step.function(args));
    }
    EXPECT_EQ(function(operands.data()), registers[static_cast<size_t>(body.result)]);
  });
}

// Threads that ask at once get one body.
TEST(ScalarBody, IsMadeOnce) {
  std::vector<ScalarFunction> found(8);
  std::vector<std::thread> threads;
  for (ScalarFunction& function : found) {
    threads.emplace_back(
        [&function] { function = FunctionOf(ScalarOp::kGelu, DType::kF16, DType::kF16); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ScalarFunction& function : found) EXPECT_TRUE(Same(function, found[0]));
  EXPECT_NE(found[0].body, nullptr);
}

}  // namespace
}  // namespace nestor
