// Figures of a program at given sizes, without running it. Counts the text by walking it, and
// operations by multiplying trip counts. Where inner bounds depend on a loop's index (tiles,
// triangles), its iterations are run through, up to a few thousand; longer loops are represented by
// evenly spaced samples, which gives the same sum for linear bounds (the midpoint rule is exact for
// them). Bytes walked and memory come from their own analyses.
#include "fusion/cost/statistics.h"

#include <algorithm>

#include "fusion/cost/work.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

// ---- Operations

// The flops of applying a row of the op table once.
int FlopsOf(const ScalarOpRow& row, DType result) {
  const bool is_arithmetic =
      row.operands == OperandTypes::kNumber || row.operands == OperandTypes::kFloat;
  if (!is_arithmetic || row.result != ResultType::kSame || !IsFloat(result)) return 0;
  return std::max(1, row.arity - 1);
}

// The amount that one run of a statement adds to a sum over all runs.
using CountOfStatement = double (*)(const Program& program, const Statement& statement);

// An accumulation is an operation, too.
double FlopsOf(const Program& program, const Statement& statement) {
  double flops = statement.op && IsFloat(program[statement.target.tensor].type) ? 1 : 0;
  const auto add = [&](ValueId, const Value& value) {
    const auto* apply = absl::get_if<ApplyValue>(&value.node);
    if (apply != nullptr) flops += FlopsOf(Row(apply->op), value.type);
  };
  VisitValues(program, statement.value, add);
  if (statement.position.valid()) VisitValues(program, statement.position, add);
  return flops;
}

double ResultBytesOf(const Program& program, const Statement& statement) {
  const int operations = OperationsOf(program, statement.value) + (statement.op ? 1 : 0);
  return operations * ByteSize(program[statement.target.tensor].type);
}

double ProductBytesOf(const Program& program, const Statement& statement) {
  return ProductsOf(program, statement.value) * ByteSize(program[statement.target.tensor].type);
}

double QuotientBytesOf(const Program& program, const Statement& statement) {
  return QuotientsOf(program, statement.value) * ByteSize(program[statement.target.tensor].type);
}

class Counter {
 public:
  Counter(const SizedProgram& sized, CountOfStatement count)
      : sized_(sized), program_(sized.program()), count_(count), vars_(program_.vars.size()) {}

  double Count(const Scope& scope, int64_t samples = kMaxSamples) {
    double sum = 0;
    for (const Item& item : scope) {
      if (const auto* loop = item.As<Loop>()) sum += CountLoop(*loop, samples);
      else if (const auto* statement = item.As<Statement>()) sum += count_(program_, *statement);
    }
    return sum;
  }

 private:
  static constexpr int64_t kMaxSamples = 4096;

  // Iterations are alike unless bounds inside depend on the index; then evenly spaced ones are
  // counted and taken for all.
  double CountLoop(const Loop& loop, int64_t samples) {
    const absl::optional<Progression> index = sized_.IndexOf(loop, vars_);
    if (!index) return 0;
    const int64_t taken = DecidesBounds(loop) ? std::min(index->count, samples) : 1;
    double sum = 0;
    for (int64_t i = 0; i < taken; ++i) {
      const int64_t iteration = Sample(i, taken, index->count);
      vars_[loop.var] = Progression::Single(index->low + iteration * index->step);
      sum += Count(loop.body, std::max<int64_t>(samples / taken, 16));
    }
    vars_[loop.var].reset();
    return sum * static_cast<double>(index->count) / static_cast<double>(taken);
  }

  // The middle of the i-th of `taken` equal parts of `count` iterations.
  static int64_t Sample(int64_t i, int64_t taken, int64_t count) {
    if (taken == count) return i;
    const double middle = (static_cast<double>(i) + 0.5) / static_cast<double>(taken);
    return std::min(static_cast<int64_t>(middle * static_cast<double>(count)), count - 1);
  }

  // Then its iterations are not alike, and are counted one by one.
  bool DecidesBounds(const Loop& loop) const {
    std::vector<int64_t> vars;
    VisitItems(loop.body, [&](const Item& item) {
      const Loop* inner = item.As<Loop>();
      if (inner == nullptr) return;
      CollectVars(program_.pool, inner->begin, vars);
      CollectVars(program_.pool, inner->end, vars);
    });
    return std::find(vars.begin(), vars.end(), loop.var) != vars.end();
  }

  const SizedProgram& sized_;
  const Program& program_;
  const CountOfStatement count_;
  VarValues vars_;
};

// ---- The text

void CountText(const Program& program, Statistics& statistics) {
  VisitItems(program, [&](const Item& item) {
    statistics.loops += item.As<Loop>() != nullptr;
    statistics.statements += item.As<Statement>() != nullptr;
  });
  for (const Item& item : program.body) statistics.blocks += item.As<Loop>() != nullptr;
}

// ---- Bytes

absl::Status Add(int64_t bytes, int64_t& sum) {
  if (!__builtin_add_overflow(bytes, sum, &sum)) return absl::OkStatus();
  return absl::InvalidArgumentError("the sum of the tensors' sizes overflows");
}

absl::Status AddBytes(const SizedProgram& sized, absl::Span<const TensorId> tensors, int64_t& sum) {
  for (TensorId tensor : tensors) {
    if (sized.program()[tensor].shape_only) continue;
    NESTOR_ASSIGN_OR_RETURN(const int64_t bytes, sized.Bytes(tensor));
    NESTOR_RETURN_IF_ERROR(Add(bytes, sum));
  }
  return absl::OkStatus();
}

}  // namespace

// Nothing runs: counts follow from the bounds of loops at these sizes.
absl::StatusOr<Statistics> StatisticsOf(const Program& program, const Sizes& sizes,
                                        const StatisticsOptions& options) {
  NESTOR_ASSIGN_OR_RETURN(const SizedProgram sized, SizedProgram::Create(program, sizes));
  Statistics statistics;
  Counter flops(sized, FlopsOf);
  Counter result_bytes(sized, ResultBytesOf), product_bytes(sized, ProductBytesOf);
  Counter quotient_bytes(sized, QuotientBytesOf);
  CountText(program, statistics);
  statistics.flops = flops.Count(program.body);
  statistics.result_bytes = result_bytes.Count(program.body);
  statistics.product_bytes = product_bytes.Count(program.body);
  statistics.quotient_bytes = quotient_bytes.Count(program.body);
  NESTOR_RETURN_IF_ERROR(AddBytes(sized, program.inputs, statistics.input_bytes));
  NESTOR_RETURN_IF_ERROR(AddBytes(sized, program.outputs, statistics.output_bytes));
  NESTOR_RETURN_IF_ERROR(MeasureMemory(sized, PlanMemory(program), statistics));
  statistics.walked = EstimateBytesWalked(sized, options.cache_bytes);
  return statistics;
}

absl::Status MeasureMemory(const SizedProgram& program, const MemoryPlan& plan,
                           Statistics& statistics) {
  statistics.temp_bytes = 0;
  for (const PlannedBuffer& buffer : plan.buffers) {
    NESTOR_RETURN_IF_ERROR(AddBytes(program, buffer.tensors, statistics.temp_bytes));
  }
  NESTOR_ASSIGN_OR_RETURN(const Arena arena, EvaluatePlan(program, plan));
  statistics.arena_bytes = arena.total;
  statistics.private_bytes = arena.private_total;
  statistics.arena_lower_bound = arena.lower_bound;
  return absl::OkStatus();
}

}  // namespace nestor::loop
