// The walk over a program (value_walk.h), with sets for values. The differences:
//  - Elements that are summed or multiplied up hold an Accumulation, not a value:
//    the bound for any order needs all terms at once. It turns into a value when
//    it is read, assigned to, or accumulated into by another op. So do elements of a
//    recurrence that is a sum or a product; its next element goes on from a copy. Those
//    of a linear one hold a LinearRecurrence.
//  - An argmax keeps every candidate that may still win; mostly there is one.
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
// Temporaries of the program have memory while its plan says that they are needed, but never reuse
// that of another one: an element is more than its bytes.
//
// As the interpreter, it caches nothing between elements; it takes about five times
// as long.
#include "interp/reference.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "interp/reference_arg.h"
#include "interp/reference_cell.h"
#include "interp/reference_recurrence.h"
#include "interp/reference_rows.h"
#include "interp/reference_step_operands.h"
#include "interp/reference_sum.h"
#include "interp/value_walk.h"
#include "loop_ir/scans.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

using loop::Access;
using loop::Program;
using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;
using loop::ValueId;

// Combinations of undecided elements in one index that are tried one by one.
constexpr int kMaxCombinations = 64;

// The type itself, or `least` where that is a wider float.
DType AtLeast(DType type, DType least) {
  return IsFloat(type) && FormatOf(type).precision < FormatOf(least).precision ? least : type;
}

constexpr DType kWiderTypes[] = {DType::kF32, DType::kF64};

// By tensor: whether statements accumulate into it.
std::vector<bool> AccumulatedIn(const Program& program) {
  std::vector<bool> is_accumulated(program.tensors.size(), false);
  VisitItems(program, [&](const loop::Item& item) {
    const auto* statement = item.As<loop::Statement>();
    if (statement == nullptr || !statement->op) return;
    is_accumulated[static_cast<size_t>(statement->target.tensor.value)] = true;
  });
  return is_accumulated;
}

class ReferenceInterpreter : ValueWalk<ReferenceInterpreter, Enclosure> {
 public:
  ReferenceInterpreter(const Program& program, const InterpreterOptions& options,
                       Precision precision)
      : ValueWalk(program, options), precision_(precision), step_operands_(program),
        scans_(program), is_accumulated_(AccumulatedIn(program)), cells_(program.tensors.size()),
        step_cells_(program.tensors.size()) {}

  absl::StatusOr<std::vector<ReferenceTensor>> Run(const RunInputs& inputs) {
    NESTOR_RETURN_IF_ERROR(RunProgram(inputs));
    std::vector<ReferenceTensor> outputs;
    for (TensorId id : program_.outputs) {
      ReferenceTensor output{program_[id].type, ViewOf(id).shape, {}};
      const Cell& cell = CellOf(id);
      for (size_t i = 0; i < cell.values.size(); ++i) {
        if (!cell.written[i]) return UnwrittenResult(id, static_cast<int64_t>(i));
        output.elements.push_back(Rounded(output.type, cell.ValueAt(i)));
      }
      outputs.push_back(std::move(output));
    }
    return outputs;
  }

 private:
  friend ValueWalk;
  friend Walk;

  Cell& CellOf(TensorId id) {
    return (for_step_ && step_operands_.IsSplit(id) ? step_cells_ : cells_)[id.value];
  }

  // Evaluates for a step if `for_step`, else as for the current use.
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

  // ---- Memory

  absl::Status Allocate(TensorId id) {
    return ForEachCell(id, [&] { return AllocateCell(id); });
  }

  absl::Status AllocateCell(TensorId id) {
    NESTOR_ASSIGN_OR_RETURN(const Dims shape, ShapeOf(id));
    NESTOR_ASSIGN_OR_RETURN(const int64_t count, NumElements(shape));
    ReleaseCell(id);
    NESTOR_RETURN_IF_ERROR(Charge(id, shape, count, ElementBytes(id)));
    ViewOf(id) = nestor::ViewOf(program_[id].type, nullptr, shape);
    CellOf(id).values.resize(count);
    CellOf(id).written.resize(count);
    return absl::OkStatus();
  }

  absl::Status Declare(TensorId id) {
    return ForEachCell(id, [&]() -> absl::Status {
      NESTOR_RETURN_IF_ERROR(AllocateCell(id));
      if (program_[id].storage == Storage::kAccumulator) SetToIdentity(program_[id], CellOf(id));
      return absl::OkStatus();
    });
  }

  static void SetToIdentity(const TensorInfo& info, Cell& cell) {
    const size_t count = cell.values.size();
    cell.written.assign(count, true);
    if (IsArg(info.op)) cell.args.assign(count, ArgCandidates(info.op));
    else cell.values.assign(count, Point(Identity(info.op, info.type)));
  }

  absl::Status Begin(TensorId id, TensorId /*donor*/) { return Declare(id); }

  void Release(TensorId id) {
    ForEachCell(id, [&] { return ReleaseCell(id), absl::OkStatus(); }).IgnoreError();
  }

  void ReleaseCell(TensorId id) {
    Cell& cell = CellOf(id);
    bytes_ -= static_cast<int64_t>(cell.values.size()) * ElementBytes(id);
    cell = Cell();
  }

  // Of an enclosure, and of what it may have besides.
  int64_t ElementBytes(TensorId id) const {
    const bool is_summed = is_accumulated_[static_cast<size_t>(id.value)];
    return static_cast<int64_t>(sizeof(Enclosure) + (is_summed ? sizeof(Terms) : 0));
  }

  // ---- Elements

  absl::Status Store(const loop::Statement& statement, int64_t offset) {
    const loop::Scans::Link* link = scans_.Find(statement);
    return ForEachCell(statement.target.tensor, [&] {
      return link != nullptr ? StoreStep(*link, statement.target.tensor, offset)
                             : ValueWalk::Store(statement, offset);
    });
  }

  bool IsWritten(TensorId id, int64_t offset) {
    const Cell& cell = CellOf(id);
    return cell.values.empty() || cell.written[offset];
  }

  Enclosure Element(TensorId id, int64_t offset) {
    Cell& cell = CellOf(id);
    if (!cell.args.empty()) return cell.args[offset].Position();
    if (!cell.values.empty()) return cell.ValueAt(offset);
    const TensorView& view = ViewOf(id);
    return Point(
        Load(view.type, static_cast<const char*>(view.data) + offset * ByteSize(view.type)));
  }

  void Assign(TensorId id, int64_t offset, const Enclosure& value) {
    CellOf(id).Set(offset, value);
  }

  void AccumulateArg(TensorId id, int64_t offset, ReduceOp, const Enclosure& value,
                     const Enclosure& position) {
    const Enclosure rounded =
        InEachType(program_[id].type, [&](DType type) { return Rounded(type, value); });
    CellOf(id).args[offset].Take(rounded, position);
  }

  void Accumulate(TensorId id, int64_t offset, ReduceOp op, const Enclosure& value) {
    const DType type = program_[id].type;
    Cell& cell = CellOf(id);
    const bool any_order = IsFloat(type) && (op == ReduceOp::kSum || op == ReduceOp::kProd);
    if (!any_order) {
      const Enclosure current = cell.ValueAt(offset);
      const auto step = [&](DType in) { return ApplyRow(StepOp(op), in, in, {current, value}); };
      cell.Set(offset, InEachType(type, step));
      return;
    }
    if (!cell.HasTerms(offset) || cell.terms[offset].sums.empty() ||
        cell.terms[offset].sums[0].op() != op) {
      const Enclosure start = cell.ValueAt(offset);
      Terms& terms = cell.TermsAt(offset) = SumOf(op, type);
      if (OnlyMember(type, start) != Identity(op, type)) Take(start, terms);
    }
    Take(value, cell.TermsAt(offset));
  }

  // Stores the sum at the previous step plus the terms of this one.
  absl::Status StoreStep(const loop::Scans::Link& link, TensorId target, int64_t offset) {
    const DType type = program_[target].type;
    if (!link.op) return StoreLinearStep(link, target, offset);
    Terms terms = EarlierSum(link, type);
    for (const loop::ScanPath::Term& term : link.path.terms) {
      const Enclosure value = Eval(term.value);
      const auto negate = [&](DType in) { return ApplyRow(ScalarOp::kNeg, in, in, {value}); };
      Take(term.negated ? InEachType(type, negate) : value, terms);
    }
    NESTOR_RETURN_IF_ERROR(status_);
    CellOf(target).TermsAt(offset) = std::move(terms);
    return absl::OkStatus();
  }

  // The terms of the element at the previous step; null where that lies outside or has none.
  const Terms* EarlierOf(const loop::Scans::Link& link) {
    const Access& access = absl::get<loop::LoadValue>(program_[link.path.end].node).access;
    const absl::optional<int64_t> place = Locate(access);
    if (!place) return nullptr;
    const Cell& cell = CellOf(access.tensor);
    return cell.HasTerms(*place) ? &cell.terms[*place] : nullptr;
  }

  // A copy: the element at this step goes on with all terms of the steps before, in any order.
  Terms EarlierSum(const loop::Scans::Link& link, DType type) {
    const Terms* earlier = EarlierOf(link);
    if (earlier != nullptr && earlier->is_step && earlier->sums[0].op() == *link.op)
      return *earlier;
    Terms terms = SumOf(*link.op, type);
    terms.is_step = true;
    Take(Eval(link.path.end), terms);
    return terms;
  }

  // Stores the value at the previous step, multiplied and added to in the order of the text.
  absl::Status StoreLinearStep(const loop::Scans::Link& link, TensorId target, int64_t offset) {
    const DType type = program_[target].type;
    Terms terms = EarlierStep(link, type);
    for (auto term = link.path.terms.rbegin(); term != link.path.terms.rend(); ++term) {
      const Enclosure value = Eval(term->value);
      for (LinearRecurrence& step : terms.steps) {
        if (term->op == ScalarOp::kMul) step.Multiply(Rounded(step.type(), value));
        else step.Add(term->negated ? Negated(value) : value);
      }
    }
    NESTOR_RETURN_IF_ERROR(status_);
    CellOf(target).TermsAt(offset) = std::move(terms);
    return absl::OkStatus();
  }

  Terms EarlierStep(const loop::Scans::Link& link, DType type) {
    const Terms* earlier = EarlierOf(link);
    if (earlier != nullptr && !earlier->steps.empty()) return *earlier;
    Terms terms;
    const Enclosure start = Eval(link.path.end);
    ForEachType(type, [&](DType in) { terms.steps.emplace_back(in, start); });
    return terms;
  }

  // None so far, of a sum or product.
  Terms SumOf(ReduceOp op, DType type) const {
    Terms terms;
    ForEachType(type, [&](DType in) { terms.sums.emplace_back(op, in); });
    return terms;
  }

  static void Take(const Enclosure& term, Terms& terms) {
    for (Accumulation& sum : terms.sums) {
      sum.Take(sum.op() == ReduceOp::kSum ? term : Rounded(sum.type(), term));
    }
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

  // The join of the enclosures that `enclose` gives for each of these types.
  template <class Enclose>
  Enclosure InEachType(DType type, const Enclose& enclose) const {
    Enclosure join = enclose(type);
    ForEachType(type, [&](DType in) {
      if (in != type) join = Join(join, enclose(in));
    });
    return join;
  }

  // Whether the operation may run in wider types. Bits are those of one type, and a cast to a
  // narrower type is meant to round, except where it ends a sum of 16-bit floats.
  bool MayBeWider(const loop::ApplyValue& apply, DType operand, DType target) const {
    if (apply.op == ScalarOp::kToBits || apply.op == ScalarOp::kFromBits) return false;
    const bool is_of_floats = IsFloat(operand) && IsFloat(target);
    const bool narrows =
        apply.op == ScalarOp::kCast && is_of_floats && AtLeast(target, operand) != target;
    const auto* load = absl::get_if<loop::LoadValue>(&program_[apply.args[0]].node);
    return !narrows ||
           (load != nullptr && is_accumulated_[static_cast<size_t>(load->access.tensor.value)]);
  }

  // ---- Undecided indices

  // An integer element that an index loads and that has several members.
  struct Undecided {
    std::pair<int32_t, int64_t> place;  // tensor and offset
    int64_t low, high;
    long double candidates;
  };

  bool IsUndecided() const { return undecided_.has_value(); }

  // A statement has no join over an undecided element.
  bool IsDecided() {
    if (undecided_) Fail(absl::StatusCode::kInvalidArgument, UndecidedText(*undecided_));
    undecided_.reset();
    return status_.ok();
  }

  std::string UndecidedText(const Undecided& u) const {
    return absl::StrCat("an index or condition depends on an undecided element of ",
                        program_.tensors[u.place.first].name, ", which may be ", u.low, " to ",
                        u.high);
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
      // The element now counts as this candidate wherever the index loads it.
      decided_[u.place] = candidate;
      join = Join(join, OverCandidates(once));
    }
    decided_.erase(u.place);
    combinations_ = outer;
    return join;
  }

  // A load outside of its tensor gives no index; neither does, for now, an undecided one.
  absl::optional<int64_t> Gather(const Access& access) {
    const auto offset = Locate(access);
    if (!offset) return absl::nullopt;
    const std::pair<int32_t, int64_t> place(access.tensor.value, *offset);
    const auto it = decided_.find(place);
    if (it != decided_.end()) return it->second;
    const Enclosure e = LoadElement(access, *offset);
    if (!status_.ok()) return absl::nullopt;
    // From 2^63 on a u64 is no index.
    constexpr long double kEnd = 0x1p63L;
    if (e.low >= kEnd) return absl::nullopt;
    if (e.low == e.high) return static_cast<int64_t>(e.low);
    const bool all_are_indices = e.high < kEnd;
    const int64_t low = static_cast<int64_t>(e.low);
    const int64_t high =
        all_are_indices ? static_cast<int64_t>(e.high) : std::numeric_limits<int64_t>::max();
    const long double candidates =
        all_are_indices ? e.high - e.low + 1 : std::numeric_limits<long double>::infinity();
    if (!undecided_) undecided_ = Undecided{place, low, high, candidates};
    return absl::nullopt;
  }

  // ---- Values

  static Enclosure Constant(const Scalar& value) { return Point(value); }

  // Where values are wider, a literal that was rounded to its type may have its value as written. A
  // literal of few bits, such as 0.5, was not rounded.
  Enclosure EvalConstant(const Scalar& value) const {
    const Enclosure point = Point(value);
    if (precision_ == Precision::kAsWritten || !IsFloat(value.type) || !point.HasFinite())
      return point;
    const FloatFormat format = FormatOf(value.type);
    FloatFormat half = format;
    // A number of at most half of the bits is taken as one that was meant exactly.
    half.precision = (format.precision + 1) / 2;
    if (half.Nearest(point.low) == point.low) return point;
    const long double reach = format.Ulp(point.low) / 2;
    return FromEnds(DType::kF64, point.low - reach, point.low + reach);
  }

  Enclosure EvalCompared(ValueId id) {
    return Within(true, [&] { return Eval(id); });
  }
  Enclosure EvalIndexValue(IndexId index) {
    return OverCandidates([&] { return ValueWalk::EvalIndexValue(index); });
  }
  Enclosure EvalLoad(ValueId id, const Access& access) {
    return OverCandidates([&] { return ValueWalk::EvalLoad(id, access); });
  }

  Enclosure EvalApply(ValueId id, const loop::ApplyValue& apply) {
    absl::InlinedVector<Enclosure, 3> args;
    for (size_t i = 0; i < apply.args.size(); ++i) {
      args.push_back(
          Within(step_operands_.IsOnlyForSteps(id, i), [&] { return Eval(apply.args[i]); }));
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

  const Precision precision_;
  const StepOperands step_operands_;
  const loop::Scans scans_;
  const std::vector<bool> is_accumulated_;  // by tensor
  std::vector<Cell> cells_;
  std::vector<Cell> step_cells_;                            // for steps, of tensors that are split
  bool for_step_ = false;                                   // a step uses the evaluated value
  absl::optional<Undecided> undecided_;                     // the first one in the current index
  std::map<std::pair<int32_t, int64_t>, int64_t> decided_;  // candidates being tried
  long double combinations_ = 1;                            // of them
};

}  // namespace

absl::StatusOr<std::vector<ReferenceTensor>> InterpretReference(const loop::Program& program,
                                                                const RunInputs& inputs,
                                                                const InterpreterOptions& options,
                                                                Precision precision) {
  return ReferenceInterpreter(program, options, precision).Run(inputs);
}

}  // namespace nestor
