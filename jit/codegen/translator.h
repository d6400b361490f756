// Internal to translate.cc, translate_loops.cc, translate_statements.cc and
// translate_accesses.cc: the state of a translation.
#ifndef NESTOR_JIT_CODEGEN_TRANSLATOR_H_
#define NESTOR_JIT_CODEGEN_TRANSLATOR_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "jit/codegen/function_builder.h"
#include "jit/codegen/homes.h"
#include "jit/codegen/scalar_rows.h"
#include "jit/codegen/translate.h"

namespace nestor::jit {

// Translates one program, once; see translate.h. Operations are appended in the order in which they
// run, to the function that is open (f_): a method that translates a part of the program appends
// its operations and returns the operands that hold its values. Decisions of the code around a part
// are state: the lanes in which it runs (lanes_), the registers of the tensors in scope
// (registers_), the condition that is known to hold (guard_). A method that changes this for the
// part inside restores it.
class Translator {
 public:
  Translator(loop::Program& program, const TranslateOptions& options, const StepSink* sink);
  absl::StatusOr<Translation> Run();

 private:
  // A tensor in registers, while its scope is open.
  struct Registers {
    TypedValue value;  // of a scalar
    Operand position;  // of an arg accumulator
    std::vector<Operand> tile;
    std::vector<Operand> columns;  // of the tile as it is now; empty: not made yet
    int lanes = 1;                 // that it was declared for
  };
  // The lanes in which statements run.
  struct Lanes {
    int count = 1;
    int narrow_bytes = kLeastLaneBytes;  // of each lane, if the loop is of narrow integers
    int32_t var = -1;                    // of the loop whose iterations lie side by side
    // The frame around the loop: what all lanes share is computed there.
    int region = 0;
    int group = 0;   // ... and the frame of this group of lanes
    Operand active;  // in a tail: how many lanes take part; kNone: all
    // For a loop over a register tile: its end, if that is a number.
    int64_t end = -1;
    const loop::Loop* loop = nullptr;
  };
  // Values that were computed, and the operands that hold them.
  class Memo {
   public:
    const TypedValue* Find(loop::ValueId id) const;
    void Add(loop::ValueId id, const TypedValue& value);
    bool Holds(const Operand& operand) const { return operands_.contains(operand); }
    void Clear();

   private:
    absl::flat_hash_map<int32_t, TypedValue> values_;  // by number of the value
    absl::flat_hash_set<Operand> operands_;
  };
  // An access in memory, after Locate.
  struct Location {
    Memory memory;
    Operand valid;   // 1 where the access is made; kNone: always
    Operand stride;  // bytes from lane to lane: immediate or slot
    Operand lanes;   // a mask of the lanes that read it; kNone: all that take part
  };

  // ---- Steps and scopes (translate.cc)
  static constexpr int kNoStep = -1;
  std::vector<int> StepsOfItems(const std::vector<bool>& is_constant) const;
  absl::Status CheckLanes();
  absl::Status CheckMemory();
  std::vector<TensorPlace> Places() const;
  // A step's function is open between BeginStep and EndStep.
  void BeginStep(bool parallel, bool constant);
  absl::Status EndStep();
  absl::Status BeginStepWith(const loop::Item& item, bool constant);
  std::vector<loop::TensorId> TakeUndeclared(const loop::Item& item);
  void Scope(const loop::Scope& scope);
  void Item(const loop::Item& item);
  // Give the tensor its registers, or fill its memory, with its start value.
  void Declare(loop::TensorId tensor);
  void DeclareScalar(loop::TensorId tensor);
  void DeclareTile(loop::TensorId tensor);
  void Fill(loop::TensorId tensor);
  void FillMemory(Memory memory, DType type, uint64_t bits, Operand count);

  // ---- Loops (translate_loops.cc)
  void ParallelLoopItself(const loop::Loop& loop);
  std::vector<const loop::Loop*> CollapsedChain(const loop::Loop& outermost) const;
  void CollapsedLoops(const std::vector<const loop::Loop*>& chain, Operand begin, Operand end);
  Operand CountOf(const loop::Loop& loop);
  void Loop(const loop::Loop& loop);
  void LoopItself(const loop::Loop& loop);
  void Guarded(const loop::Loop& loop, absl::FunctionRef<void()> run);
  // Loops from `begin` to `end`, which are their bounds or those of a piece.
  void ScalarLoop(const loop::Loop& loop, Operand begin, Operand end);
  void Choice(const loop::Loop& loop, Operand runs);
  void UnrolledLoop(const loop::Loop& loop);
  void VectorLoop(const loop::Loop& loop, Operand begin, Operand end);
  void InterleavedVectors(const loop::Loop& loop, Operand begin, Operand end);
  void VectorGroups(const loop::Loop& loop, Operand index, Operand end, int interleave);
  void VectorTail(const loop::Loop& loop, Operand index, Operand end);
  void UnrolledVectors(const loop::Loop& loop, Operand begin, Operand end);
  // The loop's body for the lanes from index + offset on.
  void Group(const loop::Loop& loop, Operand index, int64_t offset);
  Operand InRegister(Operand operand);

  // ---- Sums of gated products (translate_gated_sums.cc)
  void FindPartsOfGatedSums();
  bool StartsSum(const loop::Statement& statement) const;
  bool IsCopy(const loop::Statement& statement) const;
  absl::optional<size_t> GatedSumOf(const loop::Scope& scope, size_t declaration) const;
  void GatedSum(const loop::Scope& scope, size_t first, size_t last, loop::TensorId tile);
  Operand AnyDoubtful(loop::TensorId tile, bool zeros);

  // ---- Statements (translate_statements.cc)
  void Statement(const loop::Statement& statement);
  // `location`: of the target, if it is in memory.
  void Write(const loop::Statement& statement, const Location& location);
  bool IsOwn(Operand operand) const;
  void WriteScalar(const loop::Statement& statement);
  void WriteTile(const loop::Statement& statement);
  bool CoversTile(const loop::Access& target) const;
  void WriteMemory(const loop::Statement& statement, const Location& location);
  void WriteArg(const loop::Statement& statement, const Location& location);
  std::pair<TypedValue, TypedValue> Better(ReduceOp op, const TypedValue& best,
                                           const TypedValue& place, const TypedValue& value,
                                           const TypedValue& position);
  void Assign(TypedValue& target, const TypedValue& value);
  TypedValue Result(const loop::Statement& statement, const TypedValue& old);

  int NeedOf(loop::ValueId id);
  // The value in all lanes; computed once per statement, operands before it, the one with the
  // greatest need of registers first.
  TypedValue Value(loop::ValueId id);
  TypedValue Compute(loop::ValueId id);
  TypedValue Param(const std::string& name, DType type);
  TypedValue IndexNumber(IndexId e);

  // ---- Accesses (translate_accesses.cc)
  TypedValue Load(const loop::Access& access);
  TypedValue LoadScalar(loop::TensorId tensor);
  TypedValue Spread(const TypedValue& scalar);
  TypedValue LoadMemory(loop::TensorId tensor, const Location& location);
  TypedValue LoadAt(const loop::Access& access, const Location& location);
  TypedValue LoadMasked(const loop::Access& access, const Location& location);
  TypedValue LoadLanes(const loop::Access& access, const Location& location);
  TypedValue LoadElements(DType type, const Location& location, bool invariant = false);
  void StoreElements(DType type, const Location& location, const TypedValue& value, bool streams);
  void Prefetch(const loop::Prefetch& prefetch);
  TypedValue LoadTile(const loop::Access& access);
  // `lane`: receives the lane of the register at which the access begins.
  Operand& TileRegister(const loop::Access& access, int64_t& lane);
  Location Locate(const loop::Access& access);
  // A mask of the lanes in which 0 <= e < extent.
  Operand LanesInRange(IndexId e, IndexId extent, int lane_bytes);
  bool IsSharedGather(IndexId e) const;
  // Leaves the function, with the statement's number, unless `valid`.
  void Trap(Operand valid);
  Location PositionsOf(loop::TensorId tensor, const Location& location);

  int64_t ConstantOf(IndexId e) const;
  Operation MakeMemory(Opcode opcode, DType type, int lanes, const Memory& memory) const;
  Operand Emit(Operation operation);
  Operand EmitTo(Operand result, Operation operation);
  ValueBuilder Builder() { return ValueBuilder(f_->list(), lanes_.count, lanes_.narrow_bytes); }
  // A builder for the tile's registers.
  ValueBuilder TileBuilder(loop::TensorId tile);
  // The kind of lanes that values of the type have in the surrounding loop.
  Lane LaneOf(DType type) const { return jit::LaneOf(type, lanes_.narrow_bytes); }
  // A mask of the lanes that take part; made once per group. REQUIRES: IsPartial().
  Operand ActiveMask(int lane_bytes);
  bool IsPartial() const { return lanes_.active.kind != Operand::kNone; }
  HomeKind KindOf(loop::TensorId tensor) const { return homes_[tensor.value].kind; }

  loop::Program& program_;
  const TranslateOptions& options_;
  const StepSink* const sink_;
  Translation out_;
  std::vector<Home> homes_;
  // The program's tensors in registers, and accumulators in memory, before their first use.
  std::vector<loop::TensorId> undeclared_;
  std::vector<TensorPlace> places_;
  std::unique_ptr<FunctionBuilder> f_;
  std::vector<Registers> registers_;  // by tensor
  Lanes lanes_;
  IndexId guard_;  // the condition that a surrounding loop has tested
  absl::flat_hash_set<loop::TensorId> parts_of_gated_sums_;
  bool without_gates_ = false;            // gated products run as products
  absl::flat_hash_set<int32_t> ungated_;  // of fused ones, the choices that are left out then
  int32_t statement_ = -1;
  int64_t first_own_register_ = 0;  // of the statement: earlier ones belong to other statements
  int item_ = 0;                    // at the top of the program
  Memo memo_;                       // of the statement: values that were computed
  std::vector<int> needs_;          // by value, for those that were asked for and those before them
  absl::flat_hash_map<const loop::Statement*, int32_t> numbers_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TRANSLATOR_H_
