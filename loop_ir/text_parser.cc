// Recursive descent over scopes and statements; the signature and demands are read by
// text_signature.cc, values and index expressions by text_expressions.cc.
//
// The words that begin an item (for, temp, acc, stream, drop, require, ..) are not
// reserved: they are keywords where there can be no statement, that is, where no access and
// assignment follow.
#include "absl/strings/str_cat.h"
#include "loop_ir/text.h"
#include "loop_ir/text_signature.h"
#include "uops/invariant.h"
#include "uops/notation/lexer.h"

namespace nestor::loop {
namespace {

// Constructs in place: g++ 12 sees uninitialized members in a moved variant.
template <class Node>
void Append(Scope& scope, Node node) {
  scope.emplace_back();
  scope.back().node.template emplace<Node>(std::move(node));
}

class ProgramParser : private SignatureParser {
 public:
  using SignatureParser::SignatureParser;

  absl::StatusOr<Program> Run() {
    NESTOR_RETURN_IF_ERROR(Signature());
    NESTOR_RETURN_IF_ERROR(Need("{"));
    while (!Take("}")) NESTOR_RETURN_IF_ERROR(TopItem());
    if (Peek().kind != TokenKind::kEof) return Expected("the end of the text");
    return std::move(program_);
  }

 private:
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
    if (TakeKeyword("version")) return ReadVersionTest();
    if (TakeKeyword("proven")) {
      program_.proven = true;
      return absl::OkStatus();
    }
    return AppendItem(program_.body);
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
    const size_t defined = NumDefined();
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
    const size_t defined = NumDefined();
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
};

}  // namespace

absl::StatusOr<Program> ParseProgram(absl::string_view text) {
  NESTOR_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(text));
  return ProgramParser(std::move(tokens)).Run();
}

}  // namespace nestor::loop
