// Recursive descent over the signature, scopes and statements.
//
// The words that begin an item (for, temp, acc, drop, block, require, domain, assume) are not
// reserved: they are keywords where there can be no statement, that is, where no access and
// assignment follow.
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "loop_ir/text.h"
#include "loop_ir/text_expressions.h"
#include "uops/invariant.h"
#include "uops/notation/lexer.h"
#include "uops/notation/parser.h"

namespace nestor::loop {
namespace {

// Constructs in place: g++ 12 sees uninitialized members in a moved variant.
template <class Node>
void Append(Scope& scope, Node node) {
  scope.emplace_back();
  scope.back().node.template emplace<Node>(std::move(node));
}

class ProgramParser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  absl::StatusOr<Program> Run() {
    NESTOR_RETURN_IF_ERROR(Signature());
    NESTOR_RETURN_IF_ERROR(Need("{"));
    while (!Take("}")) NESTOR_RETURN_IF_ERROR(TopItem());
    if (Peek().kind != TokenKind::kEof) return Expected("the end of the text");
    return std::move(program_);
  }

 private:
  // ---- Names

  // A name that is out of scope may be used again; one in scope may not, also not for another kind.
  absl::StatusOr<Token> NewName(absl::string_view what) {
    const Token& token = Peek();
    if (token.kind != TokenKind::kName || IsReserved(token.text)) return Expected(what);
    if (names_.contains(token.text)) {
      return ErrorAt(token.position, absl::StrCat("'", token.text, "' is already defined"));
    }
    return tokens_[next_++];
  }

  void Define(const std::string& name, Named named) {
    names_.emplace(name, named);
    defined_.push_back(name);
  }
  void ForgetDownTo(size_t count) {
    for (; defined_.size() > count; defined_.pop_back()) names_.erase(defined_.back());
  }

  // ---- Signature

  // program NAME(INPUTS; PARAMS) -> (OUTPUTS)
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

  // A bare name in an input's shape is a dimension, and there are no other dimensions.
  absl::Status Inputs() {
    if (At(";") || At(")")) return absl::OkStatus();
    naming_dimensions_ = true;
    do {
      NESTOR_RETURN_IF_ERROR(AddArgument(Storage::kInput, program_.inputs));
    } while (Take(","));
    naming_dimensions_ = false;
    return absl::OkStatus();
  }

  // x: f32[N, C]      s: shape f32[A]      y: f32, of rank 0
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

  // ; $k: i64 = 1 in [1, inf], $a: f32)      or only the ")"
  absl::Status Params() {
    if (!Take(";")) return Take(")") ? absl::OkStatus() : Expected("',', ';' or ')'");
    return List(")", [&] { return AddParam(); });
  }

  // $name: TYPE = value in [low, high]; the last two parts may be missing.
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
      NESTOR_ASSIGN_OR_RETURN(param.value, LiteralOf(param.type, ParseParamLiteral));
    }
    if (Take("in")) {
      NESTOR_RETURN_IF_ERROR(Need("["));
      NESTOR_ASSIGN_OR_RETURN(param.low, BoundOf(param.type, ParseParamLiteral));
      NESTOR_RETURN_IF_ERROR(Need(","));
      NESTOR_ASSIGN_OR_RETURN(param.high, BoundOf(param.type, ParseParamLiteral));
      NESTOR_RETURN_IF_ERROR(Need("]"));
    }
    program_.params.push_back(std::move(param));
    return absl::OkStatus();
  }

  // ---- Items

  // Whether a NAME follows, and after it what makes it the target of a statement.
  // y[..]   y =   y +=   y max=
  bool AtStatement() const {
    if (Peek().kind != TokenKind::kName) return false;
    return At("[", 1) || At("=", 1) || AtAccumulation(1);
  }
  bool AtAccumulation(size_t ahead) const {
    return At("+=", ahead) || At("*=", ahead) ||
           (ReduceOpByName(Peek(ahead).text) && At("=", ahead + 1));
  }
  // drop[i] = 1.0        a tensor named drop;     drop y[i] if i < N = 1.0      a masked store
  bool TakeKeyword(absl::string_view word) { return !AtStatement() && Take(word); }

  // Demands and items of the program, in any order.
  absl::Status TopItem() {
    if (Take(";")) return absl::OkStatus();
    if (TakeKeyword("require")) return Require();
    if (TakeKeyword("domain")) return ReadDomain(program_.domains);
    if (TakeKeyword("assume")) return ReadDomain(program_.assumptions);
    if (TakeKeyword("proven")) {
      program_.proven = true;
      return absl::OkStatus();
    }
    return AppendItem(program_.body);
  }

  // require 1 <= $k <= 9 "message", or require M == N "message". A literal before "<=" tells them
  // apart.
  absl::Status Require() {
    const size_t literal = LiteralLength();
    const bool range = literal > 0 && At("<=", literal);
    NESTOR_RETURN_IF_ERROR(range ? RequireRange() : RequireEquality());
    std::string& message =
        range ? program_.range_checks.back().message : program_.equalities.back().message;
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
    NESTOR_ASSIGN_OR_RETURN(equality.left, Index(kSumTightness));
    NESTOR_RETURN_IF_ERROR(Need("=="));
    NESTOR_ASSIGN_OR_RETURN(equality.right, Index(kSumTightness));
    program_.equalities.push_back(std::move(equality));
    return absl::OkStatus();
  }

  absl::Status RequireRange() {
    RangeCheck check;
    NESTOR_ASSIGN_OR_RETURN(const auto low, BoundOf(DType::kI64));
    NESTOR_RETURN_IF_ERROR(Need("<="));
    NESTOR_ASSIGN_OR_RETURN(check.value, Index(kSumTightness));
    NESTOR_RETURN_IF_ERROR(Need("<="));
    NESTOR_ASSIGN_OR_RETURN(const auto high, BoundOf(DType::kI64));
    if (low) check.low = low->ToInt();
    if (high) check.high = high->ToInt();
    program_.range_checks.push_back(std::move(check));
    return absl::OkStatus();
  }

  // domain i < M, j < N : places ; values
  absl::Status ReadDomain(std::vector<Domain>& domains) {
    Domain domain;
    // Indices of a domain are in scope up to its end only.
    const size_t outside = defined_.size();
    while (Peek().kind == TokenKind::kName && At("<", 1)) {
      NESTOR_RETURN_IF_ERROR(DomainIndex(domain));
      if (!Take(",")) break;
    }
    if (Take(":")) NESTOR_RETURN_IF_ERROR(Numbers(domain.places));
    if (Take(";")) NESTOR_RETURN_IF_ERROR(Numbers(domain.values));
    ForgetDownTo(outside);
    domains.push_back(std::move(domain));
    return absl::OkStatus();
  }

  // Domains share their indices, by position.
  absl::Status DomainIndex(Domain& domain) {
    NESTOR_ASSIGN_OR_RETURN(const Token name, NewName("the index of a domain"));
    ++next_;  // <
    NESTOR_ASSIGN_OR_RETURN(const IndexId extent, Index(kSumTightness));
    if (domain.extents.size() == program_.domain_vars.size()) {
      program_.domain_vars.push_back(program_.AddVar(name.text));
    }
    Define(name.text, {false, program_.domain_vars[domain.extents.size()]});
    domain.extents.push_back(extent);
    return absl::OkStatus();
  }

  absl::Status Numbers(IndexList& list) {
    do {
      NESTOR_RETURN_IF_ERROR(AppendIndex(list));
    } while (Take(","));
    return absl::OkStatus();
  }

  // temp NAME: TYPE[..] register, or acc NAME: TYPE[..] = OP register
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
      if (!op)
        return Expected("what is accumulated: sum, prod, max, min, argmax, argmin, any or all");
      tensor.op = *op;
      ++next_;
    }
    tensor.is_register = TakeKeyword("register");
    return AddTensor(name.text, std::move(tensor));
  }

  // Names that the scope has defined are forgotten at its end, so that siblings may use the names
  // again.
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

  // A name before an access or "=" is a tensor, even if it is a keyword elsewhere.
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

  // NAME in [begin, end) step N ATTRIBUTES PREFETCHES { .. }; the index is known from the
  // prefetches on.
  absl::StatusOr<Loop> ReadLoop() {
    Loop loop;
    NESTOR_ASSIGN_OR_RETURN(const Token name, NewName("a loop index"));
    if (dimensions_.contains(name.text)) {
      return ErrorAt(name.position,
                     absl::StrCat("the loop index '", name.text, "' has the name of a dimension"));
    }
    NESTOR_RETURN_IF_ERROR(Need("in"));
    NESTOR_RETURN_IF_ERROR(Need("["));
    NESTOR_ASSIGN_OR_RETURN(loop.begin, Index());
    NESTOR_RETURN_IF_ERROR(Need(","));
    NESTOR_ASSIGN_OR_RETURN(loop.end, Index());
    NESTOR_RETURN_IF_ERROR(Need(")"));
    if (Take("step")) {
      NESTOR_ASSIGN_OR_RETURN(const Scalar step, LiteralOf(DType::kI64));
      loop.step = step.ToInt();
    }
    NESTOR_RETURN_IF_ERROR(Attributes(loop.attributes));
    // After the bounds, in which the index is not known.
    loop.var = program_.AddVar(name.text);
    const size_t defined = defined_.size();
    Define(name.text, {false, loop.var});
    while (Take("prefetch")) {
      NESTOR_ASSIGN_OR_RETURN(const Prefetch::Cache cache, PrefetchCache());
      NESTOR_ASSIGN_OR_RETURN(Access access, LoadAccess());
      loop.prefetches.push_back({std::move(access), cache});
    }
    NESTOR_RETURN_IF_ERROR(ReadScope(loop.body));
    ForgetDownTo(defined);
    return loop;
  }

  // In any order.
  absl::Status Attributes(LoopAttributes& attributes) {
    for (;;) {
      if (Take("parallel")) {
        attributes.parallel = true;
      } else if (Take("vector")) {
        attributes.vector = true;
        NESTOR_ASSIGN_OR_RETURN(attributes.lanes, Count("a vector has 1 to ", " lanes"));
      } else if (Take("interleave")) {
        NESTOR_ASSIGN_OR_RETURN(attributes.interleave, Count("1 to ", " vectors run side by side"));
      } else if (Take("unroll")) {
        attributes.unroll = true;
      } else if (Take("tail")) {
        attributes.tail = true;
      } else {
        return absl::OkStatus();
      }
    }
  }

  // (8), of lanes or vectors; 0: there is none.
  absl::StatusOr<int> Count(absl::string_view from, absl::string_view what) {
    if (!Take("(")) return 0;
    const ast::Position position = Peek().position;
    NESTOR_ASSIGN_OR_RETURN(const Scalar count, LiteralOf(DType::kI64));
    if (count.ToInt() < 1 || count.ToInt() > kMostLanes)
      return ErrorAt(position, absl::StrCat(from, kMostLanes, what));
    NESTOR_RETURN_IF_ERROR(Need(")"));
    return static_cast<int>(count.ToInt());
  }

  // (2)
  absl::StatusOr<Prefetch::Cache> PrefetchCache() {
    if (!Take("(")) return Prefetch::Cache::kFirst;
    const Token number = Peek();
    NESTOR_ASSIGN_OR_RETURN(const Scalar cache, LiteralOf(DType::kI64));
    NESTOR_RETURN_IF_ERROR(Need(")"));
    if (cache.ToInt() == 2) return Prefetch::Cache::kSecond;
    return ErrorAt(number.position,
                   "what is prefetched goes into the first cache, or the second one: (2)");
  }

  // stream drop NAME[place] if c, c OP= value needed if c, c
  absl::StatusOr<Statement> ReadStatement() {
    Statement statement;
    statement.streams = TakeKeyword("stream");
    statement.target.masked = TakeKeyword("drop");
    if (!AtTensor()) {
      if (AtStatement()) return Tensor().status();
      return Expected("a statement, a declaration, a loop or '}'");
    }
    NESTOR_ASSIGN_OR_RETURN(statement.target.tensor, Tensor());
    if (Take("[")) {
      NESTOR_RETURN_IF_ERROR(List("]", [&] { return AppendPlace(statement.target); }));
    }
    if (statement.target.masked && Take("if"))
      NESTOR_RETURN_IF_ERROR(Conditions(statement.target.conditions));
    NESTOR_RETURN_IF_ERROR(Operator(statement));
    NESTOR_RETURN_IF_ERROR(ValueOf(statement));
    if (!TakeNeeded()) return statement;
    NESTOR_RETURN_IF_ERROR(Conditions(statement.needed_if));
    return statement;
  }

  // Both words: the next statement may begin with a tensor named `needed`.
  bool TakeNeeded() { return At("needed") && At("if", 1) && Take("needed") && Take("if"); }

  // a argmax= (v, k)     s += v
  absl::Status ValueOf(Statement& statement) {
    const bool pair = statement.op && IsArg(*statement.op);
    if (pair) NESTOR_RETURN_IF_ERROR(Need("("));
    NESTOR_ASSIGN_OR_RETURN(statement.value, Value());
    if (!pair) return absl::OkStatus();
    NESTOR_RETURN_IF_ERROR(Need(","));
    NESTOR_ASSIGN_OR_RETURN(statement.position, Value());
    return Need(")");
  }

  // += and *= are one token; max=, any= and the like are two.
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

  std::vector<std::string> defined_;  // the names in scope, in order
};

}  // namespace

absl::StatusOr<Program> ParseProgram(absl::string_view text) {
  NESTOR_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return ProgramParser(std::move(tokens)).Run();
}

}  // namespace nestor::loop
