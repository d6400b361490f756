// Internal to the translation: statements, which write values to elements.
#ifndef NESTOR_JIT_CODEGEN_TRANSLATE_STATEMENTS_H_
#define NESTOR_JIT_CODEGEN_TRANSLATE_STATEMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "jit/codegen/lane_builder.h"
#include "jit/codegen/scalar_rows.h"
#include "jit/codegen/translate_accesses.h"
#include "jit/codegen/translate_tensors.h"
#include "jit/codegen/translate_values.h"
#include "loop_ir/program.h"

namespace nestor::jit {

class StatementTranslator {
 public:
  // Appends each statement once to `numbered`; its number is its place there. REQUIRES: the
  // arguments outlive this.
  StatementTranslator(loop::Program& program, Tensors& tensors, LaneBuilder& f,
                      AccessTranslator& accesses, ValueTranslator& values,
                      std::vector<loop::Statement>& numbered)
      : program_(program), tensors_(tensors), f_(f), accesses_(accesses), values_(values),
        numbered_(numbered) {}

  // REQUIRES: the target is declared; the statement, which is known by its address, outlives this.
  void Statement(const loop::Statement& statement);

 private:
  int32_t NumberOf(const loop::Statement& statement);
  // `location`: of the target, if it is in memory.
  void Write(const loop::Statement& statement, const Location& location);
  void WriteScalar(const loop::Statement& statement);
  void WriteTile(const loop::Statement& statement);
  bool CoversTile(const loop::Access& target) const;
  void WriteMemory(const loop::Statement& statement, const Location& location);
  void WriteArg(const loop::Statement& statement, const Location& location);
  TypedValue Result(const loop::Statement& statement, const TypedValue& old);

  loop::Program& program_;
  Tensors& tensors_;
  LaneBuilder& f_;
  AccessTranslator& accesses_;
  ValueTranslator& values_;
  std::vector<loop::Statement>& numbered_;
  absl::flat_hash_map<const loop::Statement*, int32_t> numbers_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TRANSLATE_STATEMENTS_H_
