// Internal to the translation: the values of statements, computed in lanes.
#ifndef NESTOR_JIT_CODEGEN_TRANSLATE_VALUES_H_
#define NESTOR_JIT_CODEGEN_TRANSLATE_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "jit/codegen/lane_builder.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/scalar_rows.h"
#include "jit/codegen/table.h"
#include "jit/codegen/translate_accesses.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// How many registers each value of a program takes.
class RegisterNeeds {
 public:
  // REQUIRES: the program outlives this.
  explicit RegisterNeeds(const loop::Program& program) : program_(program) {}
  int Of(loop::ValueId id);

 private:
  const loop::Program& program_;
  std::vector<int> needs_;  // by value, for those that were asked for and those before them
};

class ValueTranslator {
 public:
  using Ids = absl::flat_hash_set<int32_t>;  // numbers of values

  // REQUIRES: the arguments outlive this.
  ValueTranslator(loop::Program& program, Table& table, RegisterNeeds& needs, LaneBuilder& f,
                  AccessTranslator& accesses)
      : program_(program), table_(table), needs_(needs), f_(f), accesses_(accesses) {}

  // The value in all lanes; computed once until Forget, operands before it, the one with the
  // greatest need of registers first.
  TypedValue Value(loop::ValueId id);
  // Assigns the value to `target`, a register, with a move if need be.
  void Assign(TypedValue& target, const TypedValue& value);
  // Forgets what was computed, so that Assign may change its registers: where a statement begins,
  // and once its result is complete.
  void Forget() { memo_.Clear(); }

  // In what `run` translates, gated products are products, and the choices `ungated` are their last
  // operands.
  void WithoutGates(Ids ungated, absl::FunctionRef<void()> run);

 private:
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

  TypedValue Compute(loop::ValueId id);
  TypedValue Param(const std::string& name, DType type);
  TypedValue IndexNumber(IndexId e);
  TypedValue Load(const loop::Access& access);
  TypedValue LoadLanes(const loop::Access& access, const Location& location);
  TypedValue LoadMasked(const loop::Access& access, const Location& location);

  loop::Program& program_;
  Table& table_;
  RegisterNeeds& needs_;
  LaneBuilder& f_;
  AccessTranslator& accesses_;
  Memo memo_;
  bool without_gates_ = false;  // gated products run as products
  Ids ungated_;                 // of fused ones, the choices that are left out then
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TRANSLATE_VALUES_H_
