// The common part of the interpreter and its reference mode: the walk over a program, and
// everything that is checked on it. The interpreter computes bits, the reference mode enclosures.
//
// `Interpreter` derives from this and has, as members that are found at compile time:
//
//   absl::Status Allocate(TensorId);               // unwritten; sets its view
//   absl::Status Declare(TensorId);                // Allocate; an accumulator starts at its identity
//   absl::Status Begin(TensorId, TensorId donor);  // Declare, or take the donor's memory if valid
//   void Release(TensorId);
//   bool IsWritten(TensorId, int64_t offset);      // inputs are
//   Value Element(TensorId, int64_t offset);       // of one that is written
//   absl::optional<int64_t> Gather(const Access&); // an index's load
//   void Assign(TensorId, int64_t offset, const Value&);
//   void Accumulate(TensorId, int64_t offset, ReduceOp, const Value&);
//   void AccumulateArg(TensorId, int64_t offset, ReduceOp, const Value&, const Value& position);
//   Value Constant(const Scalar&);
//   Value EvalApply(ValueId, const ApplyValue&);
//
// Where it has another member with the name of one below, that one is called instead.
#ifndef NESTOR_INTERP_VALUE_WALK_H_
#define NESTOR_INTERP_VALUE_WALK_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/variant.h"
#include "interp/interpreter.h"
#include "loop_ir/intervals.h"
#include "loop_ir/loop_walk.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/program.h"
#include "loop_ir/signature.h"
#include "loop_ir/text.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/invariant.h"

namespace nestor {

template <class Interpreter, class Value>
class ValueWalk : protected loop::LoopWalk<Interpreter> {
 protected:
  using Walk = loop::LoopWalk<Interpreter>;
  using Walk::program_;
  friend Walk;

  ValueWalk(const loop::Program& program, const InterpreterOptions& options)
      : Walk(program), options_(options), views_(program.tensors.size()) {}

  // Afterwards the outputs hold the results. Where they have no elements, nothing runs.
  absl::Status RunProgram(const RunInputs& inputs) {
    NESTOR_ASSIGN_OR_RETURN(binding_, Bind(SignatureOf(program_), inputs));
    const auto symbol = [&](const std::string& name) { return binding_.Find(name); };
    NESTOR_RETURN_IF_ERROR(loop::CheckDomains(program_, symbol));
    this->BindSymbols([&](IndexId id) { return binding_.Symbol(program_.pool, id); });
    for (loop::TensorId id : program_.inputs)
      views_[id.value] = inputs.tensors.at(program_[id].name);
    for (loop::TensorId id : program_.outputs) NESTOR_RETURN_IF_ERROR(self().Allocate(id));
    if (AllOutputsAreEmpty()) return absl::OkStatus();
    NESTOR_RETURN_IF_ERROR(loop::ProveNoOverflow(program_, symbol));
    for (loop::TensorId id : DeclaredIn(program_.body))
      NESTOR_RETURN_IF_ERROR(ShapeOf(id).status());
    return RunItems();
  }

  // ---- Errors

  absl::Status Error(absl::StatusCode code, absl::string_view what) const {
    const std::string where =
        this->item_ == nullptr ? ""
                               : absl::StrCat("in `", loop::ToText(program_, *this->item_), "`: ");
    return absl::Status(code, absl::StrCat("program ", program_.name, ": ", where, what));
  }

  // Remembers what went wrong inside a value.
  void Fail(absl::StatusCode code, absl::string_view what) {
    if (status_.ok()) status_ = Error(code, what);
  }

  // Out of line, as the errors below: they are rare, and their texts would slow each access down.
  ABSL_ATTRIBUTE_NOINLINE void OutOfRange(const loop::Access& access) {
    if (self().IsUndecided()) return;
    Fail(absl::StatusCode::kOutOfRange,
         absl::StrCat("access out of range: ", this->AccessText(access)));
  }

  ABSL_ATTRIBUTE_NOINLINE absl::Status UndefinedBound(const loop::Loop& loop) const {
    return Error(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("a bound of loop ", program_.vars[loop.var], " divides by zero or overflows"));
  }

  ABSL_ATTRIBUTE_NOINLINE void Unwritten(const loop::Access& access) {
    Fail(absl::StatusCode::kInternal,
         absl::StrCat("read of what was not written: ", this->AccessText(access)));
  }

  absl::Status UnwrittenResult(loop::TensorId id, int64_t element) const {
    return absl::InternalError(absl::StrCat("program ", program_.name, ": element ", element,
                                            " of ", program_[id].name, " was not written"));
  }

  // Whether the current index or condition has no single value so far.
  bool IsUndecided() const { return false; }

  // ---- Tensors

  const TensorView& ViewOf(loop::TensorId id) const { return views_[id.value]; }
  TensorView& ViewOf(loop::TensorId id) { return views_[id.value]; }

  // The tensor's extents at this iteration; a negative or undefined one is an InvalidArgument.
  absl::StatusOr<Dims> ShapeOf(loop::TensorId id) {
    const loop::TensorInfo& info = program_[id];
    Dims shape;
    for (IndexId extent : info.shape) {
      const auto value = this->EvalIndex(extent);
      if (!value || *value < 0) {
        return Error(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("tensor ", info.name, ": an extent ",
                                  value ? absl::StrCat("is negative: ", *value)
                                        : "divides by zero or overflows"));
      }
      shape.push_back(*value);
    }
    return shape;
  }

  // Counts the memory of `count` elements of `element_bytes` bytes.
  absl::Status Charge(loop::TensorId id, const Dims& shape, int64_t count, int64_t element_bytes) {
    const int64_t limit =
        options_.max_bytes > 0 ? options_.max_bytes : std::numeric_limits<int64_t>::max();
    if (count > (limit - bytes_) / element_bytes) {
      return Error(absl::StatusCode::kResourceExhausted,
                   absl::StrCat("tensor ", program_[id].name, " ", ShapeText(shape),
                                " exceeds the limit of ", limit, " bytes"));
    }
    bytes_ += count * element_bytes;
    return absl::OkStatus();
  }

  // Then there is nothing to compute, and nothing that could go wrong.
  bool AllOutputsAreEmpty() const {
    return std::all_of(program_.outputs.begin(), program_.outputs.end(), [&](loop::TensorId id) {
      const Dims& shape = ViewOf(id).shape;
      return std::find(shape.begin(), shape.end(), 0) != shape.end();
    });
  }

  // ---- Scopes

  absl::Status StartIteration() { return CountStep(); }

  // Iterations and statements count against the limit alike.
  absl::Status CountStep() {
    return options_.max_steps <= 0 || ++steps_ <= options_.max_steps ? absl::OkStatus()
                                                                     : TooManySteps();
  }

  ABSL_ATTRIBUTE_NOINLINE absl::Status TooManySteps() const {
    return absl::ResourceExhaustedError(absl::StrCat(
        "program ", program_.name, " exceeds the limit of ", options_.max_steps, " steps"));
  }

  // Temporaries of the program have memory while its plan says that they are needed.
  absl::Status RunItems() {
    const loop::MemoryPlan plan = loop::PlanMemory(program_);
    const std::vector<loop::ItemLives> lives = loop::LivesOfItems(program_, plan);
    std::vector<loop::TensorId> donors(program_.tensors.size());
    for (const loop::PlannedBuffer& buffer : plan.buffers) {
      for (size_t i = 1; i < buffer.tensors.size(); ++i)
        donors[buffer.tensors[i].value] = buffer.tensors[i - 1];
    }
    auto life = lives.begin();
    for (const loop::Item& item : program_.body) {
      for (loop::TensorId id : life->born)
        NESTOR_RETURN_IF_ERROR(self().Begin(id, donors[id.value]));
      if (item.As<loop::Declaration>() == nullptr) NESTOR_RETURN_IF_ERROR(this->RunItem(item));
      for (loop::TensorId id : life->dying) self().Release(id);
      ++life;
    }
    this->item_ = nullptr;
    return absl::OkStatus();
  }

  // ---- Statements

  // The place is evaluated first: the value of a store that is dropped is not evaluated, so that
  // its loads may rely on the store's conditions.
  absl::Status RunStatement(const loop::Statement& statement) {
    NESTOR_RETURN_IF_ERROR(CountStep());
    if (!IsNeeded(statement)) return absl::OkStatus();
    const absl::optional<int64_t> offset = this->LocateTarget(statement);
    if (!self().IsDecided()) return status_;
    return offset ? self().Store(statement, *offset) : absl::OkStatus();
  }

  // Whether all conditions under which the statement may be left out hold, or are not decided.
  bool IsNeeded(const loop::Statement& statement) {
    return absl::c_all_of(statement.needed_if,
                          [&](IndexId c) { return this->EvalIndex(c).value_or(1) != 0; });
  }

  // False where locating the statement's target has failed, for the reason in status_.
  bool IsDecided() const { return status_.ok(); }

  // Evaluates the value and puts it at `offset`; an accumulation also reads what is there.
  absl::Status Store(const loop::Statement& statement, int64_t offset) {
    const loop::TensorId target = statement.target.tensor;
    const bool compares = statement.op && IsArg(*statement.op);
    const Value value = compares ? self().EvalCompared(statement.value) : Eval(statement.value);
    const Value position = statement.position.valid() ? Eval(statement.position) : Value();
    if (statement.op && status_.ok() && !self().IsWritten(target, offset))
      Unwritten(statement.target);
    if (!status_.ok()) return status_;
    if (!statement.op) self().Assign(target, offset, value);
    else if (compares) self().AccumulateArg(target, offset, *statement.op, value, position);
    else self().Accumulate(target, offset, *statement.op, value);
    return absl::OkStatus();
  }

  // ---- Values

  // Errors inside of a value are kept in status_, as a Status for each value would cost too much.
  Value Eval(loop::ValueId id) {
    struct Visitor {
      Interpreter& self;
      loop::ValueId id;
      Value operator()(const loop::ConstantValue& v) const { return self.EvalConstant(v.value); }
      Value operator()(const loop::ParamValue& v) const {
        return self.Constant(self.binding_.params.at(v.name));
      }
      Value operator()(const loop::IndexValue& v) const { return self.EvalIndexValue(v.index); }
      Value operator()(const loop::LoadValue& v) const { return self.EvalLoad(id, v.access); }
      Value operator()(const loop::ApplyValue& v) const { return self.EvalApply(id, v); }
    };
    return absl::visit(Visitor{self(), id}, program_[id].node);
  }

  // A literal.
  Value EvalConstant(const Scalar& value) { return self().Constant(value); }

  // The value that an argmax compares.
  Value EvalCompared(loop::ValueId id) { return Eval(id); }

  Value EvalIndexValue(IndexId index) {
    const auto value = this->EvalIndex(index);
    if (value) return self().Constant(Scalar::I64(*value));
    constexpr absl::string_view kUndefined =
        "the value of an index expression overflows or divides by zero";
    if (!self().IsUndecided()) Fail(absl::StatusCode::kInvalidArgument, kUndefined);
    return Value();
  }

  // The element, or the fill of a masked load that is out of bounds.
  Value EvalLoad(loop::ValueId id, const loop::Access& access) {
    const auto offset = this->LocateLoad(id, access);
    if (offset) return LoadElement(access, *offset);
    return access.masked && !self().IsUndecided() ? Eval(access.fill) : Value();
  }

  Value LoadElement(const loop::Access& access, int64_t offset) {
    if (self().IsWritten(access.tensor, offset)) return self().Element(access.tensor, offset);
    Unwritten(access);
    return Value();
  }

  const InterpreterOptions& options_;
  Binding binding_;
  absl::Status status_;  // what went wrong inside a value
  int64_t bytes_ = 0;

 private:
  Interpreter& self() { return static_cast<Interpreter&>(*this); }

  std::vector<TensorView> views_;
  int64_t steps_ = 0;
};

}  // namespace nestor

#endif  // NESTOR_INTERP_VALUE_WALK_H_
