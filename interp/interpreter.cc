// A walk over the program: one member function per kind of node. Index
// expressions evaluate to nothing where they overflow, divide by zero or gather
// from outside a tensor; an access whose place is nothing is out of bounds.
//
// Every tensor that the program writes carries a mark per element, so that a read
// of what was never written is found. Temporaries of the program have memory while its
// plan (loop_ir/memory_plan.h) says that they are needed. Where one takes the memory of
// another, in place, each has a mark of its own: what one wrote, the other has not.
#include "interp/interpreter.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "loop_ir/intervals.h"
#include "loop_ir/memory_plan.h"
#include "uops/invariant.h"
#include "uops/scalar_body.h"

namespace nestor {
namespace {

using loop::Access;
using loop::Item;
using loop::Program;
using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;
using loop::Value;
using loop::ValueId;

// Of what the program writes.
struct Memory {
  Tensor elements;
  std::vector<uint8_t> written;  // per element: the mark of the tensor that wrote it, or 0
};

// A tensor while the program runs.
struct Cell {
  TensorView view;
  std::shared_ptr<Memory> memory;   // null for inputs, and where nothing needs it
  uint8_t mark = 1;
  std::vector<int64_t> positions;   // of an arg accumulator
  ElementLoader load = nullptr;     // of its type
  int64_t element_size = 0;         // in bytes
};

class Interpreter {
 public:
  Interpreter(const Program& program, const InterpreterOptions& options)
      : program_(program), options_(options), cells_(program.tensors.size()), vars_(program.vars.size()),
        random_(options.shuffle_seed.value_or(0)) {
    for (size_t i = 0; i < cells_.size(); ++i) {
      cells_[i].load = LoaderOf(program.tensors[i].type);
      cells_[i].element_size = ByteSize(program.tensors[i].type);
    }
  }

  absl::StatusOr<std::vector<Tensor>> Run(const RunInputs& inputs) {
    NESTOR_ASSIGN_OR_RETURN(binding_, Bind(SignatureOf(program_), inputs));
    const auto symbol = [&](const std::string& name) { return binding_.Find(name); };
    NESTOR_RETURN_IF_ERROR(loop::CheckDomains(program_, symbol));
    BindSymbols();
    BindFunctions();
    for (TensorId id : program_.inputs) Cell(id).view = inputs.tensors.at(program_[id].name);
    for (TensorId id : program_.outputs) NESTOR_RETURN_IF_ERROR(Allocate(id));
    if (AllOutputsAreEmpty()) return TakeOutputs();
    NESTOR_RETURN_IF_ERROR(loop::ProveNoOverflow(program_, symbol));
    for (TensorId id : program_.temps) NESTOR_RETURN_IF_ERROR(ShapeOf(id).status());
    NESTOR_RETURN_IF_ERROR(RunBlocks());
    return TakeOutputs();
  }

 private:
  struct Cell& Cell(TensorId id) { return cells_[id.value]; }

  // ---- Setting up

  void BindSymbols() {
    symbol_values_.resize(program_.pool.size());
    for (size_t i = 0; i < program_.pool.size(); ++i) {
      symbol_values_[i] = binding_.Symbol(program_.pool, IndexId{static_cast<int32_t>(i)});
    }
  }

  void BindFunctions() {
    functions_.resize(program_.values.size());
    for (size_t i = 0; i < program_.values.size(); ++i) {
      const Value& value = program_.values[i];
      const auto* apply = absl::get_if<loop::ApplyValue>(&value.node);
      if (apply == nullptr) continue;
      functions_[i] = FunctionOf(apply->op, program_[apply->args.back()].type, value.type);
    }
  }

  absl::StatusOr<Dims> ShapeOf(TensorId id) {
    const TensorInfo& info = program_[id];
    Dims shape;
    for (IndexId extent : info.shape) {
      const auto value = EvalIndex(extent);
      if (!value || *value < 0) return BadExtent(info, value);
      shape.push_back(*value);
    }
    return shape;
  }

  absl::Status Allocate(TensorId id) {
    const TensorInfo& info = program_[id];
    NESTOR_ASSIGN_OR_RETURN(Dims shape, ShapeOf(id));
    struct Cell& cell = Cell(id);
    if (cell.memory != nullptr && cell.view.shape == shape) {
      // Entered again: the same memory, unwritten again.
      std::fill(cell.memory->written.begin(), cell.memory->written.end(), 0);
      return absl::OkStatus();
    }
    Release(id);
    NESTOR_ASSIGN_OR_RETURN(const int64_t bytes, NumBytes(info.type, shape));
    if (options_.max_bytes > 0 && bytes > options_.max_bytes - bytes_) {
      return absl::ResourceExhaustedError(absl::StrCat("program ", program_.name, ": tensor ", info.name, " ",
                                                       ShapeText(shape), " exceeds the limit of ",
                                                       options_.max_bytes, " bytes"));
    }
    cell.memory = std::make_shared<Memory>();
    NESTOR_ASSIGN_OR_RETURN(cell.memory->elements, Tensor::Create(info.type, shape));
    bytes_ += bytes;
    cell.view = cell.memory->elements.view();
    cell.memory->written.assign(cell.memory->elements.num_elements(), 0);
    return absl::OkStatus();
  }

  // The heir has the next mark, so that to it nothing is written. All the heirs of one item
  // have their memory before it runs: marks repeat only after 255 of them.
  void TakeOver(TensorId donor, TensorId heir) {
    const struct Cell& from = Cell(donor);
    struct Cell& to = Cell(heir);
    to.memory = from.memory;
    to.mark = static_cast<uint8_t>(from.mark % 255 + 1);
    to.view = ViewOf(program_[heir].type, from.view.data, from.view.shape);
  }

  void Release(TensorId id) {
    struct Cell& cell = Cell(id);
    if (cell.memory == nullptr) return;
    if (cell.memory.use_count() == 1) {
      bytes_ -= cell.memory->elements.num_bytes();
    } else {
      // A later heir may have this mark again.
      std::replace(cell.memory->written.begin(), cell.memory->written.end(), cell.mark, uint8_t{0});
    }
    cell.memory.reset();
    std::vector<int64_t>().swap(cell.positions);
  }

  absl::Status BadExtent(const TensorInfo& info, absl::optional<int64_t> value) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "program ", program_.name, ": tensor ", info.name, ": an extent ",
        value ? absl::StrCat("is negative: ", *value) : std::string("divides by zero or overflows")));
  }

  bool AllOutputsAreEmpty() {
    return std::all_of(program_.outputs.begin(), program_.outputs.end(),
                       [&](TensorId id) { return Cell(id).memory->written.empty(); });
  }

  absl::StatusOr<std::vector<Tensor>> TakeOutputs() {
    std::vector<Tensor> outputs;
    for (TensorId id : program_.outputs) {
      struct Cell& cell = Cell(id);
      const std::vector<uint8_t>& written = cell.memory->written;
      const auto hole = std::find(written.begin(), written.end(), 0);
      if (hole != written.end()) {
        return absl::InternalError(absl::StrCat("program ", program_.name, ": element ", hole - written.begin(),
                                                " of ", program_[id].name, " was not written"));
      }
      outputs.push_back(std::move(cell.memory->elements));
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
    const loop::MemoryPlan plan = loop::PlanMemory(program_);
    const std::vector<loop::ItemLives> lives = loop::LivesOfItems(program_, plan);
    std::vector<TensorId> donors(program_.tensors.size());
    for (const loop::PlannedBuffer& buffer : plan.buffers) {
      for (size_t i = 1; i < buffer.tensors.size(); ++i) donors[buffer.tensors[i].value] = buffer.tensors[i - 1];
    }
    auto life = lives.begin();
    for (const loop::Block& block : program_.blocks) {
      for (const Item& item : block.body) NESTOR_RETURN_IF_ERROR(RunTopItem(item, *life++, donors));
    }
    return absl::OkStatus();
  }

  absl::Status RunTopItem(const Item& item, const loop::ItemLives& lives, const std::vector<TensorId>& donors) {
    for (TensorId id : lives.born) {
      const TensorId donor = donors[id.value];
      if (donor.value >= 0) TakeOver(donor, id);
      else NESTOR_RETURN_IF_ERROR(Declare(id));
    }
    NESTOR_RETURN_IF_ERROR(RunItem(item));
    for (TensorId id : lives.dying) Release(id);
    return absl::OkStatus();
  }

  absl::Status RunItem(const Item& item) {
    if (const auto* loop = item.As<loop::Loop>()) return RunLoop(*loop);
    if (const auto* statement = item.As<loop::Statement>()) return RunStatement(*statement);
    return Declare(item.As<loop::Declaration>()->tensor);
  }

  absl::Status RunLoop(const loop::Loop& loop) {
    const auto begin = EvalIndex(loop.begin), end = EvalIndex(loop.end);
    if (!begin || !end) {
      return absl::InvalidArgumentError(
          absl::StrCat("a bound of loop ", program_.vars[loop.var], " divides by zero or overflows"));
    }
    const bool shuffled = options_.shuffle_seed && (loop.attributes.parallel || loop.attributes.vector);
    if (shuffled) return RunShuffled(loop, *begin, *end);
    for (int64_t i = *begin; i < *end; i += loop.step) NESTOR_RETURN_IF_ERROR(RunIteration(loop, i));
    return absl::OkStatus();
  }

  absl::Status RunShuffled(const loop::Loop& loop, int64_t begin, int64_t end) {
    std::vector<int64_t> order;
    for (int64_t i = begin; i < end; i += loop.step) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random_);
    for (int64_t i : order) NESTOR_RETURN_IF_ERROR(RunIteration(loop, i));
    return absl::OkStatus();
  }

  absl::Status RunIteration(const loop::Loop& loop, int64_t i) {
    NESTOR_RETURN_IF_ERROR(CountStep());
    vars_[loop.var] = i;
    for (const Item& item : loop.body) NESTOR_RETURN_IF_ERROR(RunItem(item));
    return absl::OkStatus();
  }

  // Fresh on each entry: unwritten, or at the identity.
  absl::Status Declare(TensorId id) {
    NESTOR_RETURN_IF_ERROR(Allocate(id));
    const TensorInfo& info = program_[id];
    if (info.storage != Storage::kAccumulator) return absl::OkStatus();
    struct Cell& cell = Cell(id);
    std::vector<uint8_t>& written = cell.memory->written;
    std::fill(written.begin(), written.end(), cell.mark);
    if (IsArg(info.op)) {
      cell.positions.assign(written.size(), -1);
      return absl::OkStatus();
    }
    const Scalar identity = Identity(info.op, info.type);
    for (size_t i = 0; i < written.size(); ++i) Store(identity, Element(cell, static_cast<int64_t>(i)));
    return absl::OkStatus();
  }

  // ---- Statements

  absl::Status RunStatement(const loop::Statement& statement) {
    NESTOR_RETURN_IF_ERROR(CountStep());
    // The place first: the value of a store that is dropped is not evaluated, so
    // that its loads may rely on the store's conditions.
    const absl::optional<int64_t> offset = Locate(statement.target);
    if (!status_.ok()) return status_;
    if (!offset) return absl::OkStatus();
    const Bits value = Eval(statement.value);
    const Bits position = statement.position.valid() ? Eval(statement.position) : 0;
    if (!status_.ok()) return status_;
    struct Cell& cell = Cell(statement.target.tensor);
    const DType type = program_[statement.target.tensor].type;
    if (!statement.op) {
      Store(Scalar{type, value}, Element(cell, *offset));
      cell.memory->written[*offset] = cell.mark;
      return absl::OkStatus();
    }
    if (!IsWritten(cell, *offset)) return Unwritten(statement.target);
    if (IsArg(*statement.op)) {
      AccumulateArg(*statement.op, cell, *offset, Scalar{type, value}, FromBits<int64_t>(position));
      return absl::OkStatus();
    }
    const Bits operands[] = {cell.load(Element(cell, *offset)), value};
    const Bits next = Primitive(StepOp(*statement.op), type, type)(operands);
    Store(Scalar{type, next}, Element(cell, *offset));
    return absl::OkStatus();
  }

  // The first of equals, the first NaN if any.
  static void AccumulateArg(ReduceOp op, struct Cell& cell, int64_t offset, Scalar value, int64_t position) {
    int64_t& best = cell.positions[offset];
    const Scalar current{value.type, cell.load(Element(cell, offset))};
    const bool better = best < 0 || (!current.IsNaN() && (value.IsNaN() || Beats(op, value, current)));
    if (!better) return;
    best = position;
    Store(value, Element(cell, offset));
  }

  static bool Beats(ReduceOp op, const Scalar& value, const Scalar& current) {
    const ScalarOp compare = op == ReduceOp::kArgmax ? ScalarOp::kGt : ScalarOp::kLt;
    const Bits operands[] = {value.bits, current.bits};
    return Primitive(compare, value.type, DType::kBool)(operands) != 0;
  }

  // ---- Accesses

  static char* Element(const struct Cell& cell, int64_t offset) {
    return static_cast<char*>(cell.view.data) + offset * cell.element_size;
  }

  // Inputs are.
  static bool IsWritten(const struct Cell& cell, int64_t offset) {
    return cell.memory == nullptr || cell.memory->written[offset] == cell.mark;
  }

  // The offset in elements of an access; nullopt where it is masked and out of
  // bounds or excluded by a condition. An unmasked access out of bounds sets
  // status_.
  absl::optional<int64_t> Locate(const Access& access) {
    for (IndexId condition : access.conditions) {
      const auto holds = EvalIndex(condition);
      if (!holds || *holds == 0) return absl::nullopt;
    }
    const TensorView& view = Cell(access.tensor).view;
    int64_t offset = 0;
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      const auto i = EvalIndex(access.place[axis]);
      if (!i || *i < 0 || *i >= view.shape[axis]) {
        if (!access.masked) OutOfRange(access);
        return absl::nullopt;
      }
      offset += *i * view.strides[axis];
    }
    return offset;
  }

  std::string AccessText(const Access& access) {
    std::vector<std::string> place;
    for (IndexId e : access.place) {
      const auto value = EvalIndex(e);
      place.push_back(value ? absl::StrCat(*value) : "undefined");
    }
    return absl::StrCat(program_[access.tensor].name, "[", absl::StrJoin(place, ", "), "] of ",
                        ShapeText(Cell(access.tensor).view.shape));
  }

  void OutOfRange(const Access& access) {
    if (!status_.ok()) return;
    status_ = absl::OutOfRangeError(
        absl::StrCat("program ", program_.name, ": access out of range: ", AccessText(access)));
  }

  absl::Status Unwritten(const Access& access) {
    return absl::InternalError(
        absl::StrCat("program ", program_.name, ": read of what was not written: ", AccessText(access)));
  }

  // ---- Values

  Bits Eval(ValueId id) {
    struct Visitor {
      Interpreter& self;
      ValueId id;
      Bits operator()(const loop::ConstantValue& v) const { return v.value.bits; }
      Bits operator()(const loop::ParamValue& v) const { return self.binding_.params.at(v.name).bits; }
      Bits operator()(const loop::IndexValue& v) const { return self.EvalIndexValue(v.index); }
      Bits operator()(const loop::LoadValue& v) const { return self.EvalLoad(v.access); }
      Bits operator()(const loop::ApplyValue& v) const { return self.EvalApply(id, v); }
    };
    return absl::visit(Visitor{*this, id}, program_[id].node);
  }

  Bits EvalApply(ValueId id, const loop::ApplyValue& apply) {
    Bits operands[3] = {};
    for (size_t i = 0; i < apply.args.size(); ++i) operands[i] = Eval(apply.args[i]);
    return functions_[id.value](operands);
  }

  Bits EvalIndexValue(IndexId index) {
    const auto value = EvalIndex(index);
    if (value) return ToBits(*value);
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("program ", program_.name, ": the value of an index expression overflows or divides by zero"));
    }
    return 0;
  }

  Bits EvalLoad(const Access& access) {
    const auto offset = Locate(access);
    if (!offset) return access.masked ? Eval(access.fill) : 0;
    struct Cell& cell = Cell(access.tensor);
    if (!IsWritten(cell, *offset)) {
      if (status_.ok()) status_ = Unwritten(access);
      return 0;
    }
    const TensorInfo& info = program_[access.tensor];
    if (info.storage == Storage::kAccumulator && IsArg(info.op)) return ToBits(cell.positions[*offset]);
    return cell.load(Element(cell, *offset));
  }

  // ---- Index expressions

  absl::optional<int64_t> EvalIndex(IndexId id) {
    const IndexNode& node = program_.pool[id];
    switch (node.kind) {
      case IndexKind::kConst: return node.value;
      case IndexKind::kVar: return vars_[node.value];
      case IndexKind::kSymbol: return symbol_values_[id.value];
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

  // A gathered value that lies outside its tensor is nothing; so is a u64 that no i64 is.
  absl::optional<int64_t> EvalGather(const IndexNode& node) {
    const TensorId tensor{static_cast<int32_t>(node.value)};
    const Access access{tensor, {node.args.begin(), node.args.end()}, true};
    const auto offset = Locate(access);
    if (!offset) return absl::nullopt;
    const Scalar value{ReadType(program_[tensor]), EvalLoad({tensor, access.place, false})};
    if (!value.FitsInt64()) return absl::nullopt;
    return value.ToInt();
  }

  const Program& program_;
  const InterpreterOptions& options_;
  Binding binding_;
  std::vector<struct Cell> cells_;
  std::vector<int64_t> vars_;
  std::vector<absl::optional<int64_t>> symbol_values_;  // by IndexId
  std::vector<ScalarFunction> functions_;               // by ValueId, of scalar ops
  std::mt19937_64 random_;
  absl::Status status_;  // what went wrong inside a value
  int64_t steps_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace

Signature SignatureOf(const loop::Program& program) {
  Signature signature{program.name, &program.pool, {}, &program.params, &program.equalities, &program.range_checks};
  for (TensorId id : program.inputs) {
    const TensorInfo& info = program[id];
    signature.args.push_back({info.name, info.type, &info.shape, info.shape_only});
  }
  return signature;
}

absl::StatusOr<std::vector<Tensor>> Interpret(const loop::Program& program, const RunInputs& inputs,
                                              const InterpreterOptions& options) {
  return Interpreter(program, options).Run(inputs);
}

}  // namespace nestor
