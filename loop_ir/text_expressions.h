// Reads the pieces of a program's text that have no scopes of their own: names, literals, index
// expressions, values and accesses, built straight into the Program. text_signature.h and
// text_parser.cc read what is around them.
#ifndef NESTOR_LOOP_IR_TEXT_EXPRESSIONS_H_
#define NESTOR_LOOP_IR_TEXT_EXPRESSIONS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "uops/index/operators.h"
#include "uops/notation/lexer.h"
#include "uops/notation/token_reader.h"

namespace nestor::loop {

class ExpressionParser : protected TokenReader {
 public:
  // Newlines carry no meaning: nothing that may follow an expression continues it.
  explicit ExpressionParser(std::vector<Token> tokens);

 protected:
  // ---- Names

  // The number of a tensor, or of the index of a loop around.
  struct Named {
    bool is_tensor;
    int32_t number;
  };
  bool AtTensor() const;
  absl::StatusOr<TensorId> Tensor();
  const ParamInfo* FindParam(absl::string_view name) const;

  // ---- Literals

  // The number of tokens of the literal here, its minus included; 0: none.
  size_t LiteralLength() const;
  // `read`: ParseLiteral, or ParseParamLiteral for the value of a $param.
  using LiteralReader = absl::optional<Scalar> (*)(absl::string_view text, DType type);
  absl::StatusOr<Scalar> LiteralOf(DType type, LiteralReader read = ParseLiteral);
  // A bound of a range, or nullopt for `no_bound`: "-inf" where it is a lower one, "inf" where it
  // is an upper one.
  absl::StatusOr<absl::optional<Scalar>> BoundOf(absl::string_view no_bound, DType type,
                                                 LiteralReader read = ParseLiteral);

  // ---- Expressions, of operators at least as tight as `tightness`

  absl::StatusOr<IndexId> Index(int tightness = kLoosest);
  absl::StatusOr<ValueId> Value();
  absl::Status AppendIndex(IndexList& list);
  absl::Status AppendPlace(Access& access);
  absl::StatusOr<Access> LoadAccess();
  // c, c, ...
  absl::Status Conditions(IndexList& conditions);

  Program program_;
  absl::flat_hash_map<std::string, Named> names_;  // of those in scope
  absl::flat_hash_set<std::string> dimensions_;
  bool naming_dimensions_ = false;  // in the inputs' shapes: a bare name is a dimension

 private:
  // T is IndexId or ValueId: both kinds of expressions have one grammar, and rows of their own for
  // literals, signs and operators.
  template <class T>
  absl::StatusOr<T> Binary(int tightness);
  template <class T>
  absl::StatusOr<T> Prefix();
  std::string TakeLiteral();

  absl::StatusOr<IndexId> Literal(IndexId);
  absl::StatusOr<IndexId> Signed(const PrefixOperator& row, const ast::Position& position,
                                 IndexId operand);
  absl::StatusOr<IndexId> Combine(const InfixOperator& row, const ast::Position& position,
                                  IndexId a, IndexId b);
  absl::StatusOr<IndexId> Primary(IndexId);
  absl::StatusOr<IndexId> IntegerParam();
  absl::StatusOr<IndexId> MinOrMax();
  absl::StatusOr<IndexId> IndexLoad();

  absl::StatusOr<ValueId> Literal(ValueId);
  absl::StatusOr<ValueId> Signed(const PrefixOperator& row, const ast::Position& position,
                                 ValueId operand);
  absl::StatusOr<ValueId> Combine(const InfixOperator& row, const ast::Position& position,
                                  ValueId a, ValueId b);
  absl::StatusOr<ValueId> Primary(ValueId);
  absl::StatusOr<ValueId> ValueParam();
  absl::StatusOr<ValueId> Load();
  absl::StatusOr<ValueId> Fill(DType type);
  absl::StatusOr<ValueId> Function();
  absl::StatusOr<ValueId> TypeApplied(const ast::Position& position, DType type);
  absl::StatusOr<ValueId> Apply(const ast::Position& position, ScalarOp op,
                                absl::Span<const ValueId> args, DType target = DType::kF32);
  absl::Status NeedBool(absl::string_view sign, ScalarOp op, const ast::Position& position,
                        ValueId operand) const;
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_TEXT_EXPRESSIONS_H_
