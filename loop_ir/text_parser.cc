// Recursive descent straight into the program's pool and values: no syntax tree,
// since every name is declared before its use and types follow from the leaves.
//
// Nothing that may follow an expression continues it, so newlines carry no
// meaning and are dropped. The words that begin an item (for, temp, acc, drop,
// block, require) are not reserved: they are keywords where no statement could
// stand, that is, where an access and an assignment do not follow.
//
// Index expressions and values have one grammar; BinaryLevel and Prefix are
// templates over which of the two is built.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "loop_ir/operands.h"
#include "loop_ir/text.h"
#include "loop_ir/text_syntax.h"
#include "uops/invariant.h"
#include "uops/lexer.h"
#include "uops/parser.h"

namespace nestor::loop {
namespace {

using ast::Position;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
    tokens_.erase(std::remove_if(tokens_.begin(), tokens_.end(),
                                 [](const Token& t) { return t.kind == TokenKind::kEnd && t.text == "\n"; }),
                  tokens_.end());
  }

  absl::StatusOr<Program> Run() {
    NESTOR_RETURN_IF_ERROR(Signature());
    NESTOR_RETURN_IF_ERROR(Need("{"));
    while (!Take("}")) NESTOR_RETURN_IF_ERROR(TopItem());
    if (Peek().kind != TokenKind::kEof) return Expected("the end of the text");
    return std::move(program_);
  }

 private:
  // ---- Tokens

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  bool At(absl::string_view text, size_t ahead = 0) const { return Peek(ahead).text == text; }
  bool Take(absl::string_view text) {
    if (!At(text) || Peek().kind == TokenKind::kEof) return false;
    ++next_;
    return true;
  }
  absl::Status Expected(absl::string_view what) const {
    const Token& token = Peek();
    const bool end = token.kind == TokenKind::kEof;
    return ErrorAt(token.position, absl::StrCat("expected ", what, ", found ",
                                                end ? "the end of the text" : absl::StrCat("'", token.text, "'")));
  }
  absl::Status Need(absl::string_view text) {
    return Take(text) ? absl::OkStatus() : Expected(absl::StrCat("'", text, "'"));
  }
  absl::StatusOr<Token> NewName(absl::string_view what) {
    const Token& token = Peek();
    if (token.kind != TokenKind::kName || IsReserved(token.text)) return Expected(what);
    if (names_.contains(token.text)) {
      return ErrorAt(token.position, absl::StrCat("'", token.text, "' is already defined"));
    }
    return tokens_[next_++];
  }
  // Reads `element` separated by commas up to `close`, which may come at once.
  absl::Status List(absl::string_view close, absl::FunctionRef<absl::Status()> element) {
    if (Take(close)) return absl::OkStatus();
    do {
      NESTOR_RETURN_IF_ERROR(element());
    } while (Take(","));
    if (!Take(close)) return Expected(absl::StrCat("',' or '", close, "'"));
    return absl::OkStatus();
  }

  // One step deeper in brackets, prefix operators or loops while it lives.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) { ++parser_.nesting_; }
    ~Nesting() { --parser_.nesting_; }
    absl::Status Check() const {
      if (parser_.nesting_ <= kMaxNesting) return absl::OkStatus();
      return ErrorAt(parser_.Peek().position,
                     absl::StrCat("nested too deeply (more than ", kMaxNesting, " levels)"));
    }

   private:
    Parser& parser_;
  };

  // ---- Names

  // A tensor, or the index of a loop around: its number.
  struct Named {
    bool is_tensor;
    int32_t number;
  };

  void Define(const std::string& name, Named named) {
    names_.emplace(name, named);
    defined_.push_back(name);
  }
  void ForgetDownTo(size_t count) {
    for (; defined_.size() > count; defined_.pop_back()) names_.erase(defined_.back());
  }

  bool AtTensor() const {
    const auto it = names_.find(Peek().text);
    return Peek().kind == TokenKind::kName && it != names_.end() && it->second.is_tensor;
  }
  absl::StatusOr<TensorId> Tensor() {
    if (AtTensor()) return TensorId{names_.at(tokens_[next_++].text).number};
    if (Peek().kind != TokenKind::kName || IsReserved(Peek().text)) return Expected("a tensor");
    return ErrorAt(Peek().position, absl::StrCat("unknown tensor '", Peek().text, "'"));
  }

  const ParamInfo* FindParam(absl::string_view name) const {
    for (const ParamInfo& param : program_.params) {
      if (param.name == name) return &param;
    }
    return nullptr;
  }

  // ---- Signature

  absl::Status Signature() {
    NESTOR_RETURN_IF_ERROR(Need("program"));
    NESTOR_ASSIGN_OR_RETURN(const Token name, NewName("the program's name"));
    program_.name = name.text;
    NESTOR_RETURN_IF_ERROR(Need("("));
    NESTOR_RETURN_IF_ERROR(Inputs());
    NESTOR_RETURN_IF_ERROR(Params());
    NESTOR_RETURN_IF_ERROR(Need("->"));
    NESTOR_RETURN_IF_ERROR(Need("("));
    return List(")", [&] { return AddArgument(Storage::kOutput, program_.outputs); });
  }

  // A bare name in an input's shape is a dimension, and only such are dimensions.
  absl::Status Inputs() {
    if (At(";") || At(")")) return absl::OkStatus();
    naming_dimensions_ = true;
    do {
      NESTOR_RETURN_IF_ERROR(AddArgument(Storage::kInput, program_.inputs));
    } while (Take(","));
    naming_dimensions_ = false;
    return absl::OkStatus();
  }

  absl::Status AddArgument(Storage storage, std::vector<TensorId>& list) {
    TensorInfo tensor;
    tensor.storage = storage;
    NESTOR_ASSIGN_OR_RETURN(const Token name, NewName("the name of a tensor"));
    NESTOR_RETURN_IF_ERROR(Need(":"));
    tensor.shape_only = storage == Storage::kInput && Take("shape");
    NESTOR_RETURN_IF_ERROR(TypeAndShape(tensor));
    list.push_back(AddTensor(name.text, std::move(tensor)));
    return absl::OkStatus();
  }

  TensorId AddTensor(const std::string& name, TensorInfo tensor) {
    tensor.name = name;
    const TensorId id = program_.AddTensor(std::move(tensor));
    Define(name, {true, id.value});
    return id;
  }

  absl::StatusOr<DType> Type() {
    const auto type = TypeByName(Peek().text);
    if (!type) return Expected("a type");
    ++next_;
    return *type;
  }

  absl::Status TypeAndShape(TensorInfo& tensor) {
    NESTOR_ASSIGN_OR_RETURN(tensor.type, Type());
    if (!Take("[")) return absl::OkStatus();
    return List("]", [&] { return AppendIndex(tensor.shape); });
  }

  absl::Status Params() {
    if (!Take(";")) return Take(")") ? absl::OkStatus() : Expected("',', ';' or ')'");
    return List(")", [&] { return AddParam(); });
  }

  absl::Status AddParam() {
    ParamInfo param;
    if (Peek().kind != TokenKind::kParam) return Expected("a $param");
    if (FindParam(Peek().text) != nullptr) {
      return ErrorAt(Peek().position, absl::StrCat("'", Peek().text, "' is already defined"));
    }
    param.name = tokens_[next_++].text;
    NESTOR_RETURN_IF_ERROR(Need(":"));
    NESTOR_ASSIGN_OR_RETURN(param.type, Type());
    if (Take("=")) {
      NESTOR_ASSIGN_OR_RETURN(param.value, LiteralOf(param.type));
    }
    if (Take("in")) {
      NESTOR_RETURN_IF_ERROR(Need("["));
      NESTOR_ASSIGN_OR_RETURN(param.low, BoundOf(param.type));
      NESTOR_RETURN_IF_ERROR(Need(","));
      NESTOR_ASSIGN_OR_RETURN(param.high, BoundOf(param.type));
      NESTOR_RETURN_IF_ERROR(Need("]"));
    }
    program_.params.push_back(std::move(param));
    return absl::OkStatus();
  }

  // ---- Literals

  // The number of tokens of the literal here, its minus included; 0: none.
  size_t LiteralLength() const {
    const size_t sign = At("-") ? 1 : 0;
    const Token& token = Peek(sign);
    if (token.kind == TokenKind::kNumber || token.text == "inf" || token.text == "nan") return sign + 1;
    return sign == 0 && (token.text == "true" || token.text == "false") ? 1 : 0;
  }

  std::string TakeLiteral() {
    std::string text;
    for (size_t n = LiteralLength(); n > 0; --n) text += tokens_[next_++].text;
    return text;
  }

  absl::StatusOr<Scalar> LiteralOf(DType type) {
    const Position position = Peek().position;
    if (LiteralLength() == 0) return Expected("a literal");
    const std::string text = TakeLiteral();
    if (const auto value = ParseLiteral(text, type)) return *value;
    return ErrorAt(position, absl::StrCat("the literal '", text, "' does not fit ", Name(type)));
  }

  // A bound of a range; an infinity is none.
  absl::StatusOr<absl::optional<Scalar>> BoundOf(DType type) {
    if (Take("inf")) return absl::optional<Scalar>();
    if (At("-") && At("inf", 1)) {
      next_ += 2;
      return absl::optional<Scalar>();
    }
    NESTOR_ASSIGN_OR_RETURN(const Scalar value, LiteralOf(type));
    return absl::optional<Scalar>(value);
  }

  static DType OwnType(absl::string_view literal) {
    if (literal == "true" || literal == "false") return DType::kBool;
    return literal.find_first_of(".einf") == absl::string_view::npos &&
                   literal.find('E') == absl::string_view::npos
               ? DType::kI64
               : DType::kF32;
  }

  // ---- Items

  // NAME followed by what makes it the target of a statement.
  bool AtStatement() const {
    if (Peek().kind != TokenKind::kName) return false;
    return At("[", 1) || At("=", 1) || AtAccumulation(1);
  }
  bool AtAccumulation(size_t ahead) const {
    return At("+=", ahead) || At("*=", ahead) || (ReduceOpByName(Peek(ahead).text) && At("=", ahead + 1));
  }
  bool TakeKeyword(absl::string_view word) { return !AtStatement() && Take(word); }

  absl::Status TopItem() {
    if (Take(";")) return absl::OkStatus();
    if (At("temp") || At("acc")) {
      NESTOR_ASSIGN_OR_RETURN(const TensorId tensor, Declared());
      program_.temps.push_back(tensor);
      return absl::OkStatus();
    }
    if (Take("require")) return Require();
    Block block;
    if (At("for")) {
      NESTOR_RETURN_IF_ERROR(AppendItem(block.body));
    } else if (Take("block")) {
      NESTOR_RETURN_IF_ERROR(ReadScope(block.body));
    } else {
      return Expected("'temp', 'acc', 'require', 'for', 'block' or '}'");
    }
    program_.blocks.push_back(std::move(block));
    return absl::OkStatus();
  }

  absl::Status Require() {
    const size_t literal = LiteralLength();
    const bool range = literal > 0 && At("<=", literal);
    NESTOR_RETURN_IF_ERROR(range ? RequireRange() : RequireEquality());
    std::string& message = range ? program_.range_checks.back().message : program_.equalities.back().message;
    if (Peek().kind != TokenKind::kString) return Expected("a message in quotes");
    const absl::string_view quoted = Peek().text;
    std::string error;
    if (!absl::CUnescape(quoted.substr(1, quoted.size() - 2), &message, &error)) {
      return ErrorAt(Peek().position, absl::StrCat("bad escape in a message: ", error));
    }
    ++next_;
    return absl::OkStatus();
  }

  absl::Status RequireEquality() {
    Equality equality;
    NESTOR_ASSIGN_OR_RETURN(equality.left, Binary<IndexId>(kSumTightness));
    NESTOR_RETURN_IF_ERROR(Need("=="));
    NESTOR_ASSIGN_OR_RETURN(equality.right, Binary<IndexId>(kSumTightness));
    program_.equalities.push_back(std::move(equality));
    return absl::OkStatus();
  }

  absl::Status RequireRange() {
    RangeCheck check;
    NESTOR_ASSIGN_OR_RETURN(const auto low, BoundOf(DType::kI64));
    NESTOR_RETURN_IF_ERROR(Need("<="));
    NESTOR_ASSIGN_OR_RETURN(check.value, Binary<IndexId>(kSumTightness));
    NESTOR_RETURN_IF_ERROR(Need("<="));
    NESTOR_ASSIGN_OR_RETURN(const auto high, BoundOf(DType::kI64));
    if (low) check.low = low->ToInt();
    if (high) check.high = high->ToInt();
    program_.range_checks.push_back(std::move(check));
    return absl::OkStatus();
  }

  absl::StatusOr<TensorId> Declared() {
    TensorInfo tensor;
    const bool accumulator = tokens_[next_++].text == "acc";
    tensor.storage = accumulator ? Storage::kAccumulator : Storage::kTemp;
    NESTOR_ASSIGN_OR_RETURN(const Token name, NewName("the name of a tensor"));
    NESTOR_RETURN_IF_ERROR(Need(":"));
    NESTOR_RETURN_IF_ERROR(TypeAndShape(tensor));
    if (accumulator) {
      NESTOR_RETURN_IF_ERROR(Need("="));
      const auto op = ReduceOpByName(Peek().text);
      if (!op) return Expected("what is accumulated: sum, prod, max, min, argmax, argmin, any or all");
      tensor.op = *op;
      ++next_;
    }
    tensor.is_register = TakeKeyword("register");
    return AddTensor(name.text, std::move(tensor));
  }

  absl::Status ReadScope(Scope& scope) {
    const Nesting nesting(*this);
    NESTOR_RETURN_IF_ERROR(nesting.Check());
    const size_t defined = defined_.size();
    NESTOR_RETURN_IF_ERROR(Need("{"));
    while (!Take("}")) {
      if (!Take(";")) NESTOR_RETURN_IF_ERROR(AppendItem(scope));
    }
    ForgetDownTo(defined);
    return absl::OkStatus();
  }

  // In place: g++ 12 sees uninitialized members in a moved variant.
  template <class Node>
  static void Append(Scope& scope, Node node) {
    scope.emplace_back();
    scope.back().node.template emplace<Node>(std::move(node));
  }

  absl::Status AppendItem(Scope& scope) {
    if (!AtStatement() && (At("temp") || At("acc"))) {
      NESTOR_ASSIGN_OR_RETURN(const TensorId tensor, Declared());
      Append(scope, Declaration{tensor});
    } else if (TakeKeyword("for")) {
      NESTOR_ASSIGN_OR_RETURN(Loop loop, ReadLoop());
      Append(scope, std::move(loop));
    } else {
      NESTOR_ASSIGN_OR_RETURN(Statement statement, ReadStatement());
      Append(scope, std::move(statement));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Loop> ReadLoop() {
    Loop loop;
    NESTOR_ASSIGN_OR_RETURN(const Token name, NewName("a loop index"));
    if (dimensions_.contains(name.text)) {
      return ErrorAt(name.position, absl::StrCat("the loop index '", name.text, "' has the name of a dimension"));
    }
    NESTOR_RETURN_IF_ERROR(Need("in"));
    NESTOR_RETURN_IF_ERROR(Need("["));
    NESTOR_ASSIGN_OR_RETURN(loop.begin, Binary<IndexId>(1));
    NESTOR_RETURN_IF_ERROR(Need(","));
    NESTOR_ASSIGN_OR_RETURN(loop.end, Binary<IndexId>(1));
    NESTOR_RETURN_IF_ERROR(Need(")"));
    if (Take("step")) {
      NESTOR_ASSIGN_OR_RETURN(const Scalar step, LiteralOf(DType::kI64));
      loop.step = step.ToInt();
    }
    Attributes(loop.attributes);
    loop.var = program_.AddVar(name.text);
    const size_t defined = defined_.size();
    Define(name.text, {false, loop.var});
    NESTOR_RETURN_IF_ERROR(ReadScope(loop.body));
    ForgetDownTo(defined);
    return loop;
  }

  void Attributes(LoopAttributes& attributes) {
    for (;;) {
      if (Take("parallel")) attributes.parallel = true;
      else if (Take("vector")) attributes.vector = true;
      else if (Take("unroll")) attributes.unroll = true;
      else return;
    }
  }

  absl::StatusOr<Statement> ReadStatement() {
    Statement statement;
    statement.target.masked = TakeKeyword("drop");
    if (!AtTensor()) {
      if (AtStatement()) return Tensor().status();
      return Expected("a statement, a declaration, a loop or '}'");
    }
    NESTOR_ASSIGN_OR_RETURN(statement.target.tensor, Tensor());
    if (Take("[")) {
      NESTOR_RETURN_IF_ERROR(List("]", [&] { return AppendIndex(statement.target.place); }));
    }
    if (statement.target.masked && Take("if")) NESTOR_RETURN_IF_ERROR(Conditions(statement.target));
    NESTOR_RETURN_IF_ERROR(Operator(statement));
    const bool pair = statement.op && IsArg(*statement.op);
    if (pair) NESTOR_RETURN_IF_ERROR(Need("("));
    NESTOR_ASSIGN_OR_RETURN(statement.value, Binary<ValueId>(1));
    if (!pair) return statement;
    NESTOR_RETURN_IF_ERROR(Need(","));
    NESTOR_ASSIGN_OR_RETURN(statement.position, Binary<ValueId>(1));
    NESTOR_RETURN_IF_ERROR(Need(")"));
    return statement;
  }

  absl::Status Operator(Statement& statement) {
    if (Take("=")) return absl::OkStatus();
    if (!AtAccumulation(0)) return Expected("'=' or an accumulation");
    if (At("+=") || At("*=")) {
      statement.op = At("+=") ? ReduceOp::kSum : ReduceOp::kProd;
      ++next_;
    } else {
      statement.op = ReduceOpByName(Peek().text);
      next_ += 2;
    }
    return absl::OkStatus();
  }

  // ---- Accesses

  absl::Status AppendIndex(IndexList& list) {
    NESTOR_ASSIGN_OR_RETURN(const IndexId e, Binary<IndexId>(1));
    list.push_back(e);
    return absl::OkStatus();
  }

  absl::Status Conditions(Access& access) {
    do {
      NESTOR_RETURN_IF_ERROR(AppendIndex(access.conditions));
    } while (Take(","));
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> Load() {
    Access access;
    NESTOR_ASSIGN_OR_RETURN(access.tensor, Tensor());
    if (!Take("[")) return program_.AddLoad(std::move(access));
    while (!At("]") && !At("|")) {
      NESTOR_RETURN_IF_ERROR(AppendIndex(access.place));
      if (!Take(",")) break;
    }
    access.masked = Take("|");
    if (access.masked) {
      NESTOR_ASSIGN_OR_RETURN(access.fill, Fill(ReadType(program_[access.tensor])));
      if (Take("if")) NESTOR_RETURN_IF_ERROR(Conditions(access));
    }
    if (!Take("]")) return Expected(access.masked ? "',', 'if' or ']'" : "',', '|' or ']'");
    return program_.AddLoad(std::move(access));
  }

  absl::StatusOr<ValueId> Fill(DType type) {
    if (LiteralLength() == 0) return Prefix<ValueId>();
    NESTOR_ASSIGN_OR_RETURN(const Scalar value, LiteralOf(type));
    return program_.AddConstant(value);
  }

  // ---- Expressions: of index expressions and of values

  const InfixRow* AtInfix() const {
    if (Peek().kind != TokenKind::kSymbol) return nullptr;
    for (const InfixRow& row : kInfixRows) {
      if (Peek().text == row.text) return &row;
    }
    return nullptr;
  }

  // Operators at least as tight as `tightness`, by precedence climbing: a chain
  // of any length takes no stack.
  template <class T>
  absl::StatusOr<T> Binary(int tightness) {
    NESTOR_ASSIGN_OR_RETURN(T left, Prefix<T>());
    for (const InfixRow* row = AtInfix(); row != nullptr && row->tightness >= tightness; row = AtInfix()) {
      const Position position = tokens_[next_++].position;
      NESTOR_ASSIGN_OR_RETURN(const T right, Binary<T>(row->tightness + 1));
      NESTOR_ASSIGN_OR_RETURN(left, Combine(*row, position, left, right));
      const InfixRow* following = AtInfix();
      if (row->tightness == kCompareTightness && following != nullptr &&
          following->tightness == kCompareTightness) {
        return Expected("'&&' or '||' (comparisons do not chain)");
      }
    }
    return left;
  }

  template <class T>
  absl::StatusOr<T> Prefix() {
    const Nesting nesting(*this);
    NESTOR_RETURN_IF_ERROR(nesting.Check());
    if (LiteralLength() > 0) return Literal(T());
    for (const PrefixRow& row : kPrefixRows) {
      const Position position = Peek().position;
      if (!Take(row.text)) continue;
      NESTOR_ASSIGN_OR_RETURN(const T operand, Prefix<T>());
      return Signed(row, position, operand);
    }
    if (!Take("(")) return Primary(T());
    NESTOR_ASSIGN_OR_RETURN(const T inner, Binary<T>(1));
    if (!Take(")")) return Expected("an operator or ')'");
    return inner;
  }

  // ---- Index expressions

  absl::StatusOr<IndexId> Literal(IndexId) {
    NESTOR_ASSIGN_OR_RETURN(const Scalar value, LiteralOf(DType::kI64));
    return program_.pool.Const(value.ToInt());
  }

  absl::StatusOr<IndexId> Signed(const PrefixRow& row, const Position&, IndexId operand) {
    return row.logical ? program_.pool.Not(operand) : program_.pool.Neg(operand);
  }

  absl::StatusOr<IndexId> Combine(const InfixRow& row, const Position& position, IndexId a, IndexId b) {
    IndexPool& pool = program_.pool;
    switch (row.op) {
      case ScalarOp::kAdd: return pool.Add(a, b);
      case ScalarOp::kSub: return pool.Sub(a, b);
      case ScalarOp::kMul: return pool.Mul(a, b);
      case ScalarOp::kDiv: return pool.Div(a, b);
      case ScalarOp::kMod: return pool.Mod(a, b);
      case ScalarOp::kAnd: return pool.Condition(IndexKind::kAnd, a, b);
      case ScalarOp::kOr: return pool.Condition(IndexKind::kOr, a, b);
      case ScalarOp::kEq: return pool.Condition(IndexKind::kEq, a, b);
      case ScalarOp::kNe: return pool.Condition(IndexKind::kNe, a, b);
      case ScalarOp::kLt: return pool.Condition(IndexKind::kLt, a, b);
      case ScalarOp::kLe: return pool.Condition(IndexKind::kLe, a, b);
      case ScalarOp::kGt: return pool.Condition(IndexKind::kLt, b, a);
      case ScalarOp::kGe: return pool.Condition(IndexKind::kLe, b, a);
      default: return ErrorAt(position, absl::StrCat("'", row.text, "' is no operator of index expressions"));
    }
  }

  absl::StatusOr<IndexId> Primary(IndexId) {
    const Token& token = Peek();
    if (token.kind == TokenKind::kParam) return IntegerParam();
    if (token.kind != TokenKind::kName) return Expected("an index expression");
    if (At("min") || At("max")) return MinOrMax();
    if (IsReserved(token.text)) return Expected("an index expression");
    if (At("[", 1)) return IndexLoad();
    const auto it = names_.find(token.text);
    if (it != names_.end() && !it->second.is_tensor) {
      ++next_;
      return program_.pool.Var(it->second.number);
    }
    if (naming_dimensions_) dimensions_.insert(token.text);
    if (!dimensions_.contains(token.text)) {
      return ErrorAt(token.position, absl::StrCat("'", token.text, "' is no index of a loop around and no dimension"));
    }
    return program_.pool.Symbol(tokens_[next_++].text);
  }

  // In the inputs' shapes $params are met before they are declared.
  absl::StatusOr<IndexId> IntegerParam() {
    const Token& token = tokens_[next_];
    const ParamInfo* param = FindParam(token.text);
    if (!naming_dimensions_ && (param == nullptr || !IsInteger(param->type))) {
      return ErrorAt(token.position, absl::StrCat("'", token.text, "' is no integer $param"));
    }
    ++next_;
    return program_.pool.Symbol(token.text);
  }

  absl::StatusOr<IndexId> MinOrMax() {
    const IndexKind kind = At("min") ? IndexKind::kMin : IndexKind::kMax;
    ++next_;
    NESTOR_RETURN_IF_ERROR(Need("("));
    NESTOR_ASSIGN_OR_RETURN(const IndexId a, Binary<IndexId>(1));
    NESTOR_RETURN_IF_ERROR(Need(","));
    NESTOR_ASSIGN_OR_RETURN(const IndexId b, Binary<IndexId>(1));
    NESTOR_RETURN_IF_ERROR(Need(")"));
    return program_.pool.Make(kind, 0, {a, b});
  }

  absl::StatusOr<IndexId> IndexLoad() {
    NESTOR_ASSIGN_OR_RETURN(const TensorId tensor, Tensor());
    NESTOR_RETURN_IF_ERROR(Need("["));
    IndexList place;
    NESTOR_RETURN_IF_ERROR(List("]", [&] { return AppendIndex(place); }));
    return program_.pool.Load(tensor.value, place);
  }

  // ---- Values

  absl::StatusOr<ValueId> Literal(ValueId) {
    std::string text = Peek().text;
    if (text == "-") text = Peek(1).text;
    NESTOR_ASSIGN_OR_RETURN(const Scalar value, LiteralOf(OwnType(text)));
    return program_.AddConstant(value);
  }

  absl::StatusOr<ValueId> Signed(const PrefixRow& row, const Position& position, ValueId operand) {
    if (row.logical) NESTOR_RETURN_IF_ERROR(NeedBool(row.text, row.op, position, operand));
    return Apply(position, row.op, {operand});
  }

  absl::StatusOr<ValueId> Combine(const InfixRow& row, const Position& position, ValueId a, ValueId b) {
    if (row.logical) NESTOR_RETURN_IF_ERROR(NeedBool(row.text, row.op, position, a));
    return Apply(position, row.op, {a, b});
  }

  absl::Status NeedBool(absl::string_view sign, ScalarOp op, const Position& position, ValueId operand) const {
    if (program_[operand].type == DType::kBool) return absl::OkStatus();
    return ErrorAt(position, absl::StrCat("'", sign, "' takes bool, is given ", Name(program_[operand].type),
                                          ": write ", Row(op).name, "(..)"));
  }

  absl::StatusOr<ValueId> Apply(const Position& position, ScalarOp op, absl::Span<const ValueId> args,
                                DType target = DType::kF32) {
    std::vector<DType> types;
    for (ValueId arg : args) types.push_back(program_[arg].type);
    const auto type = TypeOfApply(op, types, target);
    if (!type.ok()) return ErrorAt(position, type.status().message());
    return program_.AddApply(op, args, target);
  }

  absl::StatusOr<ValueId> Primary(ValueId) {
    const Token& token = Peek();
    if (token.kind == TokenKind::kParam) return ValueParam();
    if (token.kind != TokenKind::kName) return Expected("a value");
    if (At("(", 1)) return Function();
    return Load();
  }

  absl::StatusOr<ValueId> ValueParam() {
    const Token& token = tokens_[next_];
    const ParamInfo* param = FindParam(token.text);
    if (param == nullptr) return ErrorAt(token.position, absl::StrCat("unknown parameter '", token.text, "'"));
    if (IsInteger(param->type)) {
      return ErrorAt(token.position, absl::StrCat("an integer $param is a value as index(", token.text, ")"));
    }
    ++next_;
    return program_.AddParam(param->name, param->type);
  }

  absl::StatusOr<ValueId> Function() {
    const Token& name = tokens_[next_];
    next_ += 2;
    if (name.text == "index") {
      NESTOR_ASSIGN_OR_RETURN(const IndexId index, Binary<IndexId>(1));
      NESTOR_RETURN_IF_ERROR(Need(")"));
      return program_.AddIndexValue(index);
    }
    if (const auto type = TypeByName(name.text)) return TypeApplied(name.position, *type);
    const auto op = ScalarOpByName(name.text);
    if (!op || *op == ScalarOp::kCast) {
      return ErrorAt(name.position, absl::StrCat("'", name.text, "' is no scalar op"));
    }
    std::vector<ValueId> args;
    NESTOR_RETURN_IF_ERROR(List(")", [&]() -> absl::Status {
      NESTOR_ASSIGN_OR_RETURN(const ValueId arg, Binary<ValueId>(1));
      args.push_back(arg);
      return absl::OkStatus();
    }));
    return Apply(name.position, *op, args);
  }

  absl::StatusOr<ValueId> TypeApplied(const Position& position, DType type) {
    const size_t literal = LiteralLength();
    if (literal > 0 && At(")", literal)) {
      NESTOR_ASSIGN_OR_RETURN(const Scalar value, LiteralOf(type));
      ++next_;
      return program_.AddConstant(value);
    }
    NESTOR_ASSIGN_OR_RETURN(const ValueId operand, Binary<ValueId>(1));
    NESTOR_RETURN_IF_ERROR(Need(")"));
    return Apply(position, ScalarOp::kCast, {operand}, type);
  }

  std::vector<Token> tokens_;
  size_t next_ = 0;
  int nesting_ = 0;
  Program program_;
  absl::flat_hash_map<std::string, Named> names_;  // of those in scope
  std::vector<std::string> defined_;               // the same, in order
  absl::flat_hash_set<std::string> dimensions_;
  bool naming_dimensions_ = false;
};

}  // namespace

absl::StatusOr<Program> ParseProgram(absl::string_view text) {
  NESTOR_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return Parser(std::move(tokens)).Run();
}

}  // namespace nestor::loop
