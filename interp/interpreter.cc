// The walk over a program (value_walk.h), with bits for values.
//
// Every tensor that the program writes carries a mark per element, so that a read of an element
// that was never written is found. Temporaries of the program have memory while its plan
// (loop_ir/memory_plan.h) says that they are needed. Where one takes the memory of another, in
// place, each has a mark of its own: an element that one wrote counts as unwritten for the other.
#include "interp/interpreter.h"

#include <algorithm>
#include <memory>
#include <random>

#include "interp/value_walk.h"
#include "uops/invariant.h"
#include "uops/scalar_body.h"

namespace nestor {
namespace {

using loop::Access;
using loop::Program;
using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;
using loop::ValueId;

// The memory of tensors that the program writes.
struct Memory {
  Tensor elements;
  std::vector<uint8_t> written;  // per element: the mark of the tensor that wrote it, or 0
};

// A tensor while the program runs.
struct Cell {
  std::shared_ptr<Memory> memory;  // null for inputs, and where nothing needs it
  uint8_t mark = 1;
  std::vector<int64_t> positions;  // of an arg accumulator
  ElementLoader load = nullptr;    // of its type
  int64_t element_size = 0;        // in bytes
};

class Interpreter : ValueWalk<Interpreter, Bits> {
 public:
  Interpreter(const Program& program, const InterpreterOptions& options)
      : ValueWalk(program, options), cells_(program.tensors.size()),
        functions_(program.values.size()), random_(options.shuffle_seed.value_or(0)) {
    for (size_t i = 0; i < cells_.size(); ++i) {
      cells_[i].load = LoaderOf(program.tensors[i].type);
      cells_[i].element_size = ByteSize(program.tensors[i].type);
    }
    for (size_t i = 0; i < functions_.size(); ++i) {
      const auto* apply = absl::get_if<loop::ApplyValue>(&program.values[i].node);
      if (apply == nullptr) continue;
      // Looked up once for each value, not for each element.
      functions_[i] =
          FunctionOf(apply->op, program[apply->args.back()].type, program.values[i].type);
    }
  }

  absl::StatusOr<std::vector<Tensor>> Run(const RunInputs& inputs) {
    NESTOR_RETURN_IF_ERROR(RunProgram(inputs));
    std::vector<Tensor> outputs;
    for (TensorId id : program_.outputs) {
      Memory& memory = *CellOf(id).memory;
      const auto hole = std::find(memory.written.begin(), memory.written.end(), 0);
      if (hole != memory.written.end()) return UnwrittenResult(id, hole - memory.written.begin());
      outputs.push_back(std::move(memory.elements));
    }
    return outputs;
  }

 private:
  // The walk calls what follows by these names; nothing is virtual (the curiously recurring
  // template).
  friend ValueWalk;
  friend Walk;

  Cell& CellOf(TensorId id) { return cells_[id.value]; }

  // ---- Memory

  // Fresh elements, none of them written. The bytes of a scope that is entered many times count
  // once.
  absl::Status Allocate(TensorId id) {
    const TensorInfo& info = program_[id];
    NESTOR_ASSIGN_OR_RETURN(const Dims shape, ShapeOf(id));
    Cell& cell = CellOf(id);
    if (cell.memory != nullptr && ViewOf(id).shape == shape) {
      // The scope is entered again: the memory is the same, and unwritten again.
      std::fill(cell.memory->written.begin(), cell.memory->written.end(), 0);
      return absl::OkStatus();
    }
    Release(id);
    NESTOR_ASSIGN_OR_RETURN(const int64_t count, NumElements(shape));
    NESTOR_RETURN_IF_ERROR(Charge(id, shape, count, cell.element_size));
    cell.memory = std::make_shared<Memory>();
    NESTOR_ASSIGN_OR_RETURN(cell.memory->elements, Tensor::Create(info.type, shape));
    ViewOf(id) = cell.memory->elements.view();
    cell.memory->written.assign(count, 0);
    return absl::OkStatus();
  }

  // Makes the tensor fresh on each entry: unwritten, or at the identity.
  absl::Status Declare(TensorId id) {
    NESTOR_RETURN_IF_ERROR(Allocate(id));
    const TensorInfo& info = program_[id];
    if (info.storage != Storage::kAccumulator) return absl::OkStatus();
    Cell& cell = CellOf(id);
    std::vector<uint8_t>& written = cell.memory->written;
    std::fill(written.begin(), written.end(), cell.mark);
    if (IsArg(info.op)) {
      cell.positions.assign(written.size(), -1);
      return absl::OkStatus();
    }
    const Scalar identity = Identity(info.op, info.type);
    for (size_t i = 0; i < written.size(); ++i)
      nestor::Store(identity, Address(id, static_cast<int64_t>(i)));
    return absl::OkStatus();
  }

  absl::Status Begin(TensorId id, TensorId donor) {
    if (donor.value < 0) return Declare(id);
    TakeOver(donor, id);
    return absl::OkStatus();
  }

  // The heir has the next mark, so that for it nothing is written. All heirs of one item have their
  // memory before it runs, so marks repeat only after 255 of them.
  void TakeOver(TensorId donor, TensorId heir) {
    const Cell& from = CellOf(donor);
    Cell& to = CellOf(heir);
    to.memory = from.memory;
    to.mark = static_cast<uint8_t>(from.mark % 255 + 1);
    ViewOf(heir) = nestor::ViewOf(program_[heir].type, ViewOf(donor).data, ViewOf(donor).shape);
  }

  void Release(TensorId id) {
    Cell& cell = CellOf(id);
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

  // ---- Scopes

  absl::Status RunIterations(const loop::Loop& loop, int64_t begin, int64_t end) {
    const bool any_order = loop.attributes.parallel || loop.attributes.vector;
    if (!options_.shuffle_seed || !any_order) return Walk::RunIterations(loop, begin, end);
    std::vector<int64_t> order;
    for (int64_t i = begin; i < end; i += loop.step) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random_);
    for (int64_t i : order) NESTOR_RETURN_IF_ERROR(RunIteration(loop, i));
    return absl::OkStatus();
  }

  // ---- Elements

  char* Address(TensorId id, int64_t offset) {
    return static_cast<char*>(ViewOf(id).data) + offset * CellOf(id).element_size;
  }

  bool IsWritten(TensorId id, int64_t offset) {
    const Cell& cell = CellOf(id);
    return cell.memory == nullptr || cell.memory->written[offset] == cell.mark;
  }

  Scalar Held(TensorId id, int64_t offset) {
    return {program_[id].type, CellOf(id).load(Address(id, offset))};
  }

  Bits Element(TensorId id, int64_t offset) {
    const Cell& cell = CellOf(id);
    return cell.positions.empty() ? cell.load(Address(id, offset)) : ToBits(cell.positions[offset]);
  }

  void Put(TensorId id, int64_t offset, Bits value) {
    nestor::Store(Scalar{program_[id].type, value}, Address(id, offset));
  }

  void Assign(TensorId id, int64_t offset, Bits value) {
    Put(id, offset, value);
    const Cell& cell = CellOf(id);
    cell.memory->written[offset] = cell.mark;
  }

  // In the order of the loops, one rounding at each step: the bits that SEMANTICS 5 defines.
  void Accumulate(TensorId id, int64_t offset, ReduceOp op, Bits value) {
    const DType type = program_[id].type;
    const Bits operands[] = {CellOf(id).load(Address(id, offset)), value};
    Put(id, offset, Primitive(StepOp(op), type, type)(operands));
  }

  // Keeps the first of equal values, or the first NaN if there is one.
  void AccumulateArg(TensorId id, int64_t offset, ReduceOp op, Bits bits, Bits position) {
    int64_t& best = CellOf(id).positions[offset];
    const Scalar value{program_[id].type, bits}, current = Held(id, offset);
    const bool better =
        best < 0 || (!current.IsNaN() && (value.IsNaN() || Beats(op, value, current)));
    if (!better) return;
    best = FromBits<int64_t>(position);
    Put(id, offset, bits);
  }

  static bool Beats(ReduceOp op, const Scalar& value, const Scalar& current) {
    const ScalarOp compare = op == ReduceOp::kArgmax ? ScalarOp::kGt : ScalarOp::kLt;
    const Bits operands[] = {value.bits, current.bits};
    return Primitive(compare, value.type, DType::kBool)(operands) != 0;
  }

  // ---- Values

  static Bits Constant(const Scalar& value) { return value.bits; }

  Bits EvalApply(ValueId id, const loop::ApplyValue& apply) {
    Bits operands[3] = {};
    for (size_t i = 0; i < apply.args.size(); ++i) operands[i] = Eval(apply.args[i]);
    return functions_[id.value](operands);
  }

  // A load outside of its tensor gives no index; neither does a u64 beyond the range of i64.
  absl::optional<int64_t> Gather(const Access& access) {
    const auto offset = Locate(access);
    if (!offset) return absl::nullopt;
    const Scalar value{ReadType(program_[access.tensor]), LoadElement(access, *offset)};
    return value.FitsInt64() ? absl::make_optional(value.ToInt()) : absl::nullopt;
  }

  std::vector<Cell> cells_;
  std::vector<ScalarFunction> functions_;  // by ValueId, of scalar ops
  std::mt19937_64 random_;
};

}  // namespace

absl::StatusOr<std::vector<Tensor>> Interpret(const loop::Program& program, const RunInputs& inputs,
                                              const InterpreterOptions& options) {
  return Interpreter(program, options).Run(inputs);
}

}  // namespace nestor
