// The interpreter's walk (interpreter.cc), with sets for values. What is different:
//  - Elements that are summed or multiplied up hold an Accumulation, not a value:
//    the bound for any order needs all terms at once. It turns into a value when
//    it is read, assigned to, or accumulated into by another op.
//  - An argmax keeps every candidate that may still win; they are mostly one.
//  - Indices and conditions are numbers. Where one loads an element that has
//    several members, the load around it is the join over each of them, if they
//    are few: evaluation is repeated with the element fixed to each in turn. For a
//    store there is no such join, so that is an error.
//  - Where a quotient reaches a discrete step, each float on the way to it has two
//    enclosures: one for that step, of quotients as they are written, and one for all
//    other uses, of products with reciprocals, too. The first lies within the second.
//  - Where values may stay in wider types, an operation's enclosure is the join of what it gives
//    in its own type and in each wider one, on the same operands. So overflow half-way may
//    happen or not.
//
// Temporaries of the program have memory while its plan says that they are needed, but
// none in place of another: an element holds more than its bytes.
//
// As the interpreter, it caches nothing between elements; it takes about five times
// as long.
#include "interp/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "interp/reference_arg.h"
#include "interp/reference_rows.h"
#include "interp/reference_sum.h"
#include "loop_ir/discrete_steps.h"
#include "loop_ir/intervals.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"
#include "uops/operand_use.h"

namespace nestor {
namespace {

using loop::Access;
using loop::Item;
using loop::Program;
using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;
using loop::ValueId;

// Combinations of undecided elements in one index that are tried one by one.
constexpr int kMaxCombinations = 64;

struct Element {
  bool written = false;
  Enclosure value;
  std::vector<Accumulation> sums;  // in place of the value; one for each type that they may run in
};

// The type itself, or `least` where that is a wider float.
DType AtLeast(DType type, DType least) {
  return IsFloat(type) && FormatOf(type).precision < FormatOf(least).precision ? least : type;
}

constexpr DType kWiderTypes[] = {DType::kF32, DType::kF64};

// Marks the tensors that statements accumulate into.
void FindAccumulated(const loop::Scope& scope, std::vector<bool>& is_accumulated) {
  for (const Item& item : scope) {
    if (const auto* loop = item.As<loop::Loop>()) FindAccumulated(loop->body, is_accumulated);
    const auto* statement = item.As<loop::Statement>();
    if (statement != nullptr && statement->op) {
      is_accumulated[static_cast<size_t>(statement->target.tensor.value)] = true;
    }
  }
}

std::vector<bool> AccumulatedIn(const Program& program) {
  std::vector<bool> is_accumulated(program.tensors.size(), false);
  for (const loop::Block& block : program.blocks) FindAccumulated(block.body, is_accumulated);
  return is_accumulated;
}

// A tensor while the program runs: an input's view, or elements.
struct Cell {
  TensorView view;  // of what the program writes, without data
  std::vector<Element> elements;
  std::vector<ArgCandidates> args;  // of an arg accumulator
};

// What a program's discrete steps see.
class StepOperands {
 public:
  explicit StepOperands(const Program& program) : program_(program), steps_(program), only_(program.values.size()) {
    for (size_t i = 0; i < program.values.size(); ++i) {
      const auto* apply = absl::get_if<loop::ApplyValue>(&program.values[i].node);
      if (apply == nullptr) continue;
      const bool quotient = apply->op == ScalarOp::kDiv && steps_.Reach(ValueId{static_cast<int32_t>(i)});
      any_quotient_ |= quotient;
      FindOnly(*apply, program.values[i].type, only_[i]);
    }
  }

  // Whether the tensor's elements have an enclosure for steps and another one.
  bool IsSplit(TensorId id) const {
    return any_quotient_ && program_[id].storage != Storage::kInput && steps_.Reach(id);
  }
  // Whether only steps see that operand of the value. One that passes on as well is taken as
  // what passes on.
  bool IsOnlyForSteps(ValueId value, size_t operand) const { return only_[value.value][operand]; }

 private:
  using Operands = std::array<bool, 3>;

  void FindOnly(const loop::ApplyValue& apply, DType target, Operands& only) const {
    const DType operand = program_[apply.args.back()].type;
    for (size_t i = 0; i < apply.args.size(); ++i) {
      const OperandUse use = UseOf(apply.op, operand, target, static_cast<int>(i));
      only[i] = use.steps && !use.passes;
    }
  }

  const Program& program_;
  const loop::DiscreteSteps steps_;
  std::vector<Operands> only_;  // by value
  bool any_quotient_ = false;   // that reaches a step
};

class ReferenceInterpreter {
 public:
  ReferenceInterpreter(const Program& program, const InterpreterOptions& options, Precision precision)
      : program_(program), options_(options), precision_(precision), step_operands_(program),
        is_accumulated_(AccumulatedIn(program)), cells_(program.tensors.size()),
        step_cells_(program.tensors.size()), vars_(program.vars.size()) {}

  absl::StatusOr<std::vector<ReferenceTensor>> Run(const RunInputs& inputs) {
    NESTOR_ASSIGN_OR_RETURN(binding_, Bind(SignatureOf(program_), inputs));
    const auto symbol = [&](const std::string& name) { return binding_.Find(name); };
    NESTOR_RETURN_IF_ERROR(loop::CheckDomains(program_, symbol));
    for (TensorId id : program_.inputs) CellOf(id).view = inputs.tensors.at(program_[id].name);
    for (TensorId id : program_.outputs) {
      NESTOR_RETURN_IF_ERROR(ForEachCell(id, [&] { return Allocate(id); }));
    }
    if (AllOutputsAreEmpty()) return TakeOutputs();
    NESTOR_RETURN_IF_ERROR(loop::ProveNoOverflow(program_, symbol));
    for (TensorId id : program_.temps) NESTOR_RETURN_IF_ERROR(ShapeOf(id).status());
    NESTOR_RETURN_IF_ERROR(RunBlocks());
    return TakeOutputs();
  }

 private:
  Cell& CellOf(TensorId id) { return (for_step_ && step_operands_.IsSplit(id) ? step_cells_ : cells_)[id.value]; }

  // Evaluates what a step sees, if `for_step`, else what is in hand.
  template <class Function>
  auto Within(bool for_step, Function&& function) {
    const bool outer = for_step_;
    for_step_ = outer || for_step;
    auto result = function();
    for_step_ = outer;
    return result;
  }

  // Calls `function` for each enclosure that the tensor's elements have.
  absl::Status ForEachCell(TensorId id, absl::FunctionRef<absl::Status()> function) {
    NESTOR_RETURN_IF_ERROR(function());
    return step_operands_.IsSplit(id) ? Within(true, function) : absl::OkStatus();
  }

  absl::Status Error(absl::StatusCode code, absl::string_view what) const {
    const std::string place = item_ == nullptr ? "" : absl::StrCat("in `", loop::ToText(program_, *item_), "`: ");
    return absl::Status(code, absl::StrCat("program ", program_.name, ": ", place, what));
  }

  // Remembers what went wrong inside a value.
  void Fail(absl::StatusCode code, absl::string_view what) {
    if (status_.ok()) status_ = Error(code, what);
  }

  // ---- Setting up

  absl::StatusOr<Dims> ShapeOf(TensorId id) {
    const TensorInfo& info = program_[id];
    Dims shape;
    for (IndexId extent : info.shape) {
      const auto value = EvalIndex(extent);
      if (!value || *value < 0) {
        return Error(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("tensor ", info.name, " has an extent that is negative or undefined"));
      }
      shape.push_back(*value);
    }
    return shape;
  }

  absl::Status Allocate(TensorId id) {
    const TensorInfo& info = program_[id];
    NESTOR_ASSIGN_OR_RETURN(const Dims shape, ShapeOf(id));
    NESTOR_ASSIGN_OR_RETURN(const int64_t count, NumElements(shape));
    Cell& cell = CellOf(id);
    constexpr int64_t size = sizeof(Element);
    Release(id);
    if (options_.max_bytes > 0 && count > (options_.max_bytes - bytes_) / size) {
      return Error(absl::StatusCode::kResourceExhausted,
                   absl::StrCat("tensor ", info.name, " ", ShapeText(shape), " exceeds the limit of ",
                                options_.max_bytes, " bytes"));
    }
    bytes_ += count * size;
    cell.view = ViewOf(info.type, nullptr, shape);
    cell.elements.resize(count);
    return absl::OkStatus();
  }

  bool AllOutputsAreEmpty() {
    return std::all_of(program_.outputs.begin(), program_.outputs.end(),
                       [&](TensorId id) { return CellOf(id).elements.empty(); });
  }

  void Release(TensorId id) {
    Cell& cell = CellOf(id);
    bytes_ -= static_cast<int64_t>(cell.elements.size() * sizeof(Element));
    std::vector<Element>().swap(cell.elements);
    std::vector<ArgCandidates>().swap(cell.args);
  }

  absl::StatusOr<std::vector<ReferenceTensor>> TakeOutputs() {
    item_ = nullptr;
    std::vector<ReferenceTensor> outputs;
    for (TensorId id : program_.outputs) {
      Cell& cell = CellOf(id);
      ReferenceTensor output{program_[id].type, cell.view.shape, {}};
      for (const Element& element : cell.elements) {
        if (!element.written) {
          return Error(absl::StatusCode::kInternal, absl::StrCat("element ", output.elements.size(), " of ",
                                                                 program_[id].name, " was not written"));
        }
        output.elements.push_back(Rounded(output.type, ValueOf(element)));
      }
      outputs.push_back(std::move(output));
    }
    return outputs;
  }

  // ---- Scopes

  absl::Status CountStep() {
    if (options_.max_steps > 0 && ++steps_ > options_.max_steps) {
      return absl::ResourceExhaustedError(
          absl::StrCat("program ", program_.name, " exceeds the limit of ", options_.max_steps, " steps"));
    }
    return absl::OkStatus();
  }

  absl::Status RunBlocks() {
    const std::vector<loop::ItemLives> lives = loop::LivesOfItems(program_, loop::PlanMemory(program_));
    auto life = lives.begin();
    for (const loop::Block& block : program_.blocks) {
      for (const Item& item : block.body) {
        for (TensorId id : life->born) NESTOR_RETURN_IF_ERROR(ForEachCell(id, [&] { return Declare(id); }));
        NESTOR_RETURN_IF_ERROR(RunItem(item));
        for (TensorId id : life->dying) NESTOR_RETURN_IF_ERROR(ForEachCell(id, [&] { return Release(id), absl::OkStatus(); }));
        ++life;
      }
    }
    return absl::OkStatus();
  }

  absl::Status RunItem(const Item& item) {
    item_ = &item;
    if (const auto* loop = item.As<loop::Loop>()) return RunLoop(*loop);
    if (const auto* statement = item.As<loop::Statement>()) return RunStatement(*statement);
    const TensorId id = item.As<loop::Declaration>()->tensor;
    return ForEachCell(id, [&] { return Declare(id); });
  }

  absl::Status RunLoop(const loop::Loop& loop) {
    const auto begin = EvalIndex(loop.begin), end = EvalIndex(loop.end);
    if (!begin || !end) return Error(absl::StatusCode::kInvalidArgument, "a bound divides by zero or overflows");
    for (int64_t i = *begin; i < *end;) {
      NESTOR_RETURN_IF_ERROR(CountStep());
      vars_[loop.var] = i;
      for (const Item& item : loop.body) NESTOR_RETURN_IF_ERROR(RunItem(item));
      if (__builtin_add_overflow(i, loop.step, &i)) break;
    }
    return absl::OkStatus();
  }

  absl::Status Declare(TensorId id) {
    NESTOR_RETURN_IF_ERROR(Allocate(id));
    const TensorInfo& info = program_[id];
    if (info.storage != Storage::kAccumulator) return absl::OkStatus();
    Cell& cell = CellOf(id);
    if (IsArg(info.op)) cell.args.assign(cell.elements.size(), ArgCandidates(info.op));
    for (Element& element : cell.elements) {
      element.written = true;
      if (!IsArg(info.op)) element.value = Point(Identity(info.op, info.type));
    }
    return absl::OkStatus();
  }

  // ---- Statements

  absl::Status RunStatement(const loop::Statement& statement) {
    NESTOR_RETURN_IF_ERROR(CountStep());
    const absl::optional<int64_t> offset = Locate(statement.target);
    NESTOR_RETURN_IF_ERROR(CheckDecided());
    if (!offset) return absl::OkStatus();  // dropped
    return ForEachCell(statement.target.tensor, [&] { return Store(statement, *offset); });
  }

  absl::Status Store(const loop::Statement& statement, int64_t offset) {
    const bool compared = statement.op && IsArg(*statement.op);
    const Enclosure value = Within(compared, [&] { return Eval(statement.value); });
    const Enclosure position = statement.position.valid() ? Eval(statement.position) : Enclosure();
    NESTOR_RETURN_IF_ERROR(status_);
    Cell& cell = CellOf(statement.target.tensor);
    Element& element = cell.elements[offset];
    if (!statement.op) {
      element = {true, value, {}};
    } else if (!element.written) {
      return Error(absl::StatusCode::kInternal, "read of what was not written");
    } else if (compared) {
      cell.args[offset].Take(InEachType(cell.view.type, [&](DType type) { return Rounded(type, value); }), position);
    } else {
      Accumulate(*statement.op, cell.view.type, value, element);
    }
    return absl::OkStatus();
  }

  void Accumulate(ReduceOp op, DType type, const Enclosure& value, Element& element) const {
    const bool any_order = IsFloat(type) && (op == ReduceOp::kSum || op == ReduceOp::kProd);
    if (!any_order) {
      const Enclosure current = ValueOf(element);
      const auto step = [&](DType in) { return ApplyRow(StepOp(op), in, in, {current, value}); };
      element = {true, InEachType(type, step), {}};
      return;
    }
    if (element.sums.empty() || element.sums[0].op() != op) {
      const Enclosure start = ValueOf(element);
      element.sums.clear();
      ForEachType(type, [&](DType in) { element.sums.emplace_back(op, in); });
      if (OnlyMember(type, start) != Identity(op, type)) Take(start, element);
    }
    Take(value, element);
  }

  static void Take(const Enclosure& term, Element& element) {
    for (Accumulation& sum : element.sums) {
      sum.Take(sum.op() == ReduceOp::kSum ? term : Rounded(sum.type(), term));
    }
  }

  static Enclosure ValueOf(const Element& element) {
    if (element.sums.empty()) return element.value;
    Enclosure value = element.sums[0].Value();
    for (size_t i = 1; i < element.sums.size(); ++i) value = Join(value, element.sums[i].Value());
    return value;
  }

  // ---- Types

  // Calls `visit` with each type that a value of `type` may be computed in, its own first.
  template <class Visit>
  void ForEachType(DType type, const Visit& visit) const {
    visit(type);
    if (precision_ == Precision::kAsWritten) return;
    for (DType wider : kWiderTypes) {
      if (AtLeast(type, wider) != type) visit(wider);
    }
  }

  // The join of what `enclose` gives for each of these types.
  template <class Enclose>
  Enclosure InEachType(DType type, const Enclose& enclose) const {
    Enclosure join = enclose(type);
    ForEachType(type, [&](DType in) {
      if (in != type) join = Join(join, enclose(in));
    });
    return join;
  }

  // Whether the operation may run in wider types. Bits are those of one type, and what is cast to a
  // narrower type is meant to be rounded, but where that ends a sum of 16-bit floats.
  bool MayBeWider(const loop::ApplyValue& apply, DType operand, DType target) const {
    if (apply.op == ScalarOp::kToBits || apply.op == ScalarOp::kFromBits) return false;
    const bool is_of_floats = IsFloat(operand) && IsFloat(target);
    const bool narrows = apply.op == ScalarOp::kCast && is_of_floats && AtLeast(target, operand) != target;
    const auto* load = absl::get_if<loop::LoadValue>(&program_[apply.args[0]].node);
    return !narrows || (load != nullptr && is_accumulated_[static_cast<size_t>(load->access.tensor.value)]);
  }

  // ---- Accesses

  // The offset in elements; nullopt where the access is masked and out of bounds
  // or excluded by a condition, or where something is undecided.
  absl::optional<int64_t> Locate(const Access& access) {
    for (IndexId condition : access.conditions) {
      const auto holds = EvalIndex(condition);
      if (!holds || *holds == 0) return absl::nullopt;
    }
    const TensorView& view = CellOf(access.tensor).view;
    int64_t offset = 0;
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      const auto i = EvalIndex(access.place[axis]);
      if (!i || *i < 0 || *i >= view.shape[axis]) {
        if (!access.masked && !undecided_) OutOfRange(access);
        return absl::nullopt;
      }
      offset += *i * view.strides[axis];
    }
    return offset;
  }

  void OutOfRange(const Access& access) {
    std::vector<std::string> place;
    for (IndexId e : access.place) {
      const auto value = EvalIndex(e);
      place.push_back(value ? absl::StrCat(*value) : "undefined");
    }
    Fail(absl::StatusCode::kOutOfRange,
         absl::StrCat("access out of range: ", program_[access.tensor].name, "[", absl::StrJoin(place, ", "), "] of ",
                      ShapeText(CellOf(access.tensor).view.shape)));
  }

  // ---- Undecided indices

  // An integer element that an index loads and that has several members.
  struct Undecided {
    std::pair<int32_t, int64_t> place;  // tensor and offset
    int64_t low, high;
    long double candidates;
  };

  // What an undecided element leaves for a statement that has no join.
  absl::Status CheckDecided() {
    if (undecided_) Fail(absl::StatusCode::kInvalidArgument, UndecidedText(*undecided_));
    undecided_.reset();
    return status_;
  }

  std::string UndecidedText(const Undecided& u) const {
    return absl::StrCat("an index or condition depends on an undecided element of ",
                        program_.tensors[u.place.first].name, ", which may be ", u.low, " to ", u.high);
  }

  // Evaluates `once`; where an index in it was undecided, for each candidate.
  template <class Once>
  Enclosure OverCandidates(Once&& once) {
    const Enclosure value = once();
    if (!undecided_) return value;
    const Undecided u = *undecided_;
    undecided_.reset();
    if (u.candidates * combinations_ > kMaxCombinations) {
      Fail(absl::StatusCode::kInvalidArgument, UndecidedText(u));
      return value;
    }
    const long double outer = combinations_;
    combinations_ *= u.candidates;
    Enclosure join;
    for (int64_t candidate = u.low; candidate <= u.high && status_.ok(); ++candidate) {
      decided_[u.place] = candidate;
      join = Join(join, OverCandidates(once));
    }
    decided_.erase(u.place);
    combinations_ = outer;
    return join;
  }

  // ---- Values

  Enclosure Eval(ValueId id) {
    struct Visitor {
      ReferenceInterpreter& self;
      ValueId id;
      Enclosure operator()(const loop::ConstantValue& v) const { return self.EvalConstant(v.value); }
      Enclosure operator()(const loop::ParamValue& v) const { return Point(self.binding_.params.at(v.name)); }
      Enclosure operator()(const loop::IndexValue& v) const {
        return self.OverCandidates([&] { return self.EvalIndexValue(v.index); });
      }
      Enclosure operator()(const loop::LoadValue& v) const {
        return self.OverCandidates([&] { return self.EvalLoad(v.access); });
      }
      Enclosure operator()(const loop::ApplyValue& v) const { return self.EvalApply(id, v); }
    };
    return absl::visit(Visitor{*this, id}, program_[id].node);
  }

  // A literal that was rounded to its type may stand as it was written where values are wider. One of
  // few bits, as 0.5, was not.
  Enclosure EvalConstant(const Scalar& value) const {
    const Enclosure point = Point(value);
    if (precision_ == Precision::kAsWritten || !IsFloat(value.type) || !point.HasFinite()) return point;
    const FloatFormat format = FormatOf(value.type);
    FloatFormat half = format;
    half.precision = (format.precision + 1) / 2;
    if (half.Nearest(point.low) == point.low) return point;
    const long double reach = format.Ulp(point.low) / 2;
    return FromEnds(DType::kF64, point.low - reach, point.low + reach);
  }

  Enclosure EvalApply(ValueId id, const loop::ApplyValue& apply) {
    absl::InlinedVector<Enclosure, 3> args;
    for (size_t i = 0; i < apply.args.size(); ++i) {
      args.push_back(Within(step_operands_.IsOnlyForSteps(id, i), [&] { return Eval(apply.args[i]); }));
    }
    if (!status_.ok()) return Enclosure();
    const auto row = for_step_ ? ApplyRow : ApplyInProgram;
    const DType operand = program_[apply.args.back()].type, target = program_[id].type;
    Enclosure image = row(apply.op, operand, target, args);
    if (precision_ == Precision::kAsWritten || !MayBeWider(apply, operand, target)) return image;
    for (DType least : kWiderTypes) {
      const DType from = AtLeast(operand, least), to = AtLeast(target, least);
      if (from != operand || to != target) image = Join(image, row(apply.op, from, to, args));
    }
    return image;
  }

  Enclosure EvalIndexValue(IndexId index) {
    const auto value = EvalIndex(index);
    if (value) return Point(Scalar::I64(*value));
    constexpr absl::string_view kUndefined = "the value of an index expression overflows or divides by zero";
    if (!undecided_) Fail(absl::StatusCode::kInvalidArgument, kUndefined);
    return Enclosure();
  }

  Enclosure EvalLoad(const Access& access) {
    const auto offset = Locate(access);
    if (undecided_) return Enclosure();
    if (!offset) return access.masked ? Eval(access.fill) : Enclosure();
    return LoadElement(access.tensor, *offset);
  }

  Enclosure LoadElement(TensorId tensor, int64_t offset) {
    Cell& cell = CellOf(tensor);
    const TensorInfo& info = program_[tensor];
    if (info.storage == Storage::kInput) {
      return Point(nestor::Load(info.type, static_cast<const char*>(cell.view.data) + offset * ByteSize(info.type)));
    }
    const Element& element = cell.elements[offset];
    if (!element.written) {
      Fail(absl::StatusCode::kInternal, absl::StrCat("read of what was not written: ", info.name));
      return Enclosure();
    }
    return cell.args.empty() ? ValueOf(element) : cell.args[offset].Position();
  }

  // ---- Index expressions

  absl::optional<int64_t> EvalIndex(IndexId id) {
    const IndexNode& node = program_.pool[id];
    switch (node.kind) {
      case IndexKind::kConst: return node.value;
      case IndexKind::kVar: return vars_[node.value];
      case IndexKind::kSymbol: return binding_.Symbol(program_.pool, id);
      case IndexKind::kLoad: return EvalGather(node);
      case IndexKind::kNot: {
        const auto operand = EvalIndex(node.args[0]);
        if (!operand) return absl::nullopt;
        return *operand == 0;
      }
      default: break;
    }
    const auto a = EvalIndex(node.args[0]), b = EvalIndex(node.args[1]);
    if (!a || !b) return absl::nullopt;
    return CheckedApply(node.kind, *a, *b);
  }

  // A gathered value that lies outside its tensor is nothing; so is, for now, one
  // that is undecided.
  absl::optional<int64_t> EvalGather(const IndexNode& node) {
    const TensorId tensor{static_cast<int32_t>(node.value)};
    const auto offset = Locate({tensor, {node.args.begin(), node.args.end()}, true});
    if (!offset) return absl::nullopt;
    const std::pair<int32_t, int64_t> place(tensor.value, *offset);
    const auto it = decided_.find(place);
    if (it != decided_.end()) return it->second;
    const Enclosure e = LoadElement(tensor, *offset);
    if (!status_.ok()) return absl::nullopt;
    // From 2^63 on a u64 is no index.
    constexpr long double kEnd = 0x1p63L;
    if (e.low >= kEnd) return absl::nullopt;
    if (e.low == e.high) return static_cast<int64_t>(e.low);
    const bool all_are_indices = e.high < kEnd;
    const int64_t low = static_cast<int64_t>(e.low);
    const int64_t high = all_are_indices ? static_cast<int64_t>(e.high) : std::numeric_limits<int64_t>::max();
    const long double candidates = all_are_indices ? e.high - e.low + 1 : std::numeric_limits<long double>::infinity();
    if (!undecided_) undecided_ = Undecided{place, low, high, candidates};
    return absl::nullopt;
  }

  const Program& program_;
  const InterpreterOptions& options_;
  const Precision precision_;
  const StepOperands step_operands_;
  const std::vector<bool> is_accumulated_;  // by tensor
  Binding binding_;
  std::vector<Cell> cells_;
  std::vector<Cell> step_cells_;  // for steps, of tensors that are split
  bool for_step_ = false;         // what is evaluated, a step sees
  std::vector<int64_t> vars_;
  const Item* item_ = nullptr;  // that runs
  absl::Status status_;         // what went wrong inside a value
  absl::optional<Undecided> undecided_;                      // the first met in the index at hand
  std::map<std::pair<int32_t, int64_t>, int64_t> decided_;  // candidates being tried
  long double combinations_ = 1;                            // of them
  int64_t steps_ = 0;
  int64_t bytes_ = 0;
};

// How far x lies from the middle, in half-widths; infinite where they do not compare.
long double Excess(const Enclosure& e, const Scalar& value) {
  constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
  if (value.IsNaN() || !e.HasFinite() || std::isinf(ToLongDouble(value))) return kInfinity;
  const long double half = (e.high - e.low) / 2;
  return half == 0 ? kInfinity : std::fabs(ToLongDouble(value) - (e.low + half)) / half;
}

std::string ExcessText(long double excess) {
  return std::isinf(excess) ? "" : absl::StrCat(", ", static_cast<double>(excess), " half-widths from its middle");
}

}  // namespace

absl::StatusOr<std::vector<ReferenceTensor>> InterpretReference(const loop::Program& program, const RunInputs& inputs,
                                                                const InterpreterOptions& options,
                                                                Precision precision) {
  return ReferenceInterpreter(program, options, precision).Run(inputs);
}

absl::Status CheckEnclosed(const ReferenceTensor& want, const TensorView& got) {
  if (got.type != want.type || got.shape != want.shape) {
    return absl::InvalidArgumentError(absl::StrCat(Name(got.type), ShapeText(got.shape), ", want ", Name(want.type),
                                                   ShapeText(want.shape)));
  }
  std::string worst;
  long double worst_excess = -1;
  Dims index(want.shape.size(), 0);
  for (const Enclosure& e : want.elements) {
    const Scalar value = At(got, index);
    const long double excess = Encloses(e, value) ? -1 : Excess(e, value);
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = absl::StrCat("at [", absl::StrJoin(index, ", "), "]: ", LiteralText(value), " is not in ", ToString(e),
                           ExcessText(excess), NonFiniteText(e, value));
    }
    NextIndex(want.shape, absl::MakeSpan(index));
  }
  return worst.empty() ? absl::OkStatus() : absl::InvalidArgumentError(worst);
}

}  // namespace nestor
