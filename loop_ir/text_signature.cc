// Recursive descent. The order of the text is that of use: inputs' shapes give the dimensions, all
// that follows may compute with them.
#include "loop_ir/text_signature.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/notation/parser.h"

namespace nestor::loop {

// ---- Names

// A name that is out of scope may be used again; one in scope may not, also not for another kind.
absl::StatusOr<Token> SignatureParser::NewName(absl::string_view what) {
  const Token& token = Peek();
  if (token.kind != TokenKind::kName || IsReserved(token.text)) return Expected(what);
  if (names_.contains(token.text)) {
    return ErrorAt(token.position, absl::StrCat("'", token.text, "' is already defined"));
  }
  return tokens_[next_++];
}

void SignatureParser::Define(const std::string& name, Named named) {
  names_.emplace(name, named);
  defined_.push_back(name);
}

void SignatureParser::ForgetDownTo(size_t count) {
  for (; defined_.size() > count; defined_.pop_back()) names_.erase(defined_.back());
}

TensorId SignatureParser::AddTensor(const std::string& name, TensorInfo tensor) {
  tensor.name = name;
  const TensorId id = program_.AddTensor(std::move(tensor));
  Define(name, {true, id.value});
  return id;
}

// ---- Signature

absl::Status SignatureParser::Signature() {
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
absl::Status SignatureParser::Inputs() {
  if (At(";") || At(")")) return absl::OkStatus();
  naming_dimensions_ = true;
  do {
    NESTOR_RETURN_IF_ERROR(AddArgument(Storage::kInput, program_.inputs));
  } while (Take(","));
  naming_dimensions_ = false;
  return absl::OkStatus();
}

// x: f32[N, C]      s: shape f32[A]      y: f32, of rank 0
absl::Status SignatureParser::AddArgument(Storage storage, std::vector<TensorId>& list) {
  TensorInfo tensor;
  tensor.storage = storage;
  NESTOR_ASSIGN_OR_RETURN(const Token name, NewName("the name of a tensor"));
  NESTOR_RETURN_IF_ERROR(Need(":"));
  tensor.shape_only = storage == Storage::kInput && Take("shape");
  NESTOR_RETURN_IF_ERROR(TypeAndShape(tensor));
  list.push_back(AddTensor(name.text, std::move(tensor)));
  return absl::OkStatus();
}

absl::StatusOr<DType> SignatureParser::Type() {
  const auto type = TypeByName(Peek().text);
  if (!type) return Expected("a type");
  ++next_;
  return *type;
}

absl::Status SignatureParser::TypeAndShape(TensorInfo& tensor) {
  NESTOR_ASSIGN_OR_RETURN(tensor.type, Type());
  if (!Take("[")) return absl::OkStatus();
  return List("]", [&] { return AppendIndex(tensor.shape); });
}

// ; $k: i64 = 1 in [1, inf], $a: f32)      or only the ")"
absl::Status SignatureParser::Params() {
  if (!Take(";")) return Take(")") ? absl::OkStatus() : Expected("',', ';' or ')'");
  return List(")", [&] { return AddParam(); });
}

// $name: TYPE = value in [low, high]; the last two parts may be missing.
absl::Status SignatureParser::AddParam() {
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
    NESTOR_ASSIGN_OR_RETURN(param.low, BoundOf("-inf", param.type, ParseParamLiteral));
    NESTOR_RETURN_IF_ERROR(Need(","));
    NESTOR_ASSIGN_OR_RETURN(param.high, BoundOf("inf", param.type, ParseParamLiteral));
    NESTOR_RETURN_IF_ERROR(Need("]"));
  }
  program_.params.push_back(std::move(param));
  return absl::OkStatus();
}

// ---- Demands

// A literal before "<=" tells a range from an equality.
absl::Status SignatureParser::Require() {
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

absl::Status SignatureParser::RequireEquality() {
  Equality equality;
  NESTOR_ASSIGN_OR_RETURN(equality.left, Index(kSumTightness));
  NESTOR_RETURN_IF_ERROR(Need("=="));
  NESTOR_ASSIGN_OR_RETURN(equality.right, Index(kSumTightness));
  program_.equalities.push_back(std::move(equality));
  return absl::OkStatus();
}

absl::Status SignatureParser::RequireRange() {
  RangeCheck check;
  NESTOR_ASSIGN_OR_RETURN(const auto low, BoundOf("-inf", DType::kI64));
  NESTOR_RETURN_IF_ERROR(Need("<="));
  NESTOR_ASSIGN_OR_RETURN(check.value, Index(kSumTightness));
  NESTOR_RETURN_IF_ERROR(Need("<="));
  NESTOR_ASSIGN_OR_RETURN(const auto high, BoundOf("inf", DType::kI64));
  if (low) check.low = low->ToInt();
  if (high) check.high = high->ToInt();
  program_.range_checks.push_back(std::move(check));
  return absl::OkStatus();
}

absl::Status SignatureParser::ReadDomain(std::vector<Domain>& domains) {
  Domain domain;
  // Indices of a domain are in scope up to its end only.
  const size_t outside = NumDefined();
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

absl::Status SignatureParser::ReadVersionTest() {
  VersionTest test;
  NESTOR_ASSIGN_OR_RETURN(test.flag, Index(kSumTightness));
  NESTOR_RETURN_IF_ERROR(Need("=="));
  if (Peek().text != "0" && Peek().text != "1") return Expected("0 or 1");
  test.value = tokens_[next_++].text == "1";
  program_.version.push_back(test);
  return absl::OkStatus();
}

// Domains share their indices, by position.
absl::Status SignatureParser::DomainIndex(Domain& domain) {
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

absl::Status SignatureParser::Numbers(IndexList& list) {
  do {
    NESTOR_RETURN_IF_ERROR(AppendIndex(list));
  } while (Take(","));
  return absl::OkStatus();
}

}  // namespace nestor::loop
