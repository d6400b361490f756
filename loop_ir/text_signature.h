// Reads what a loop program says to those who call it: its signature, and what it demands of sizes.
// Also the names that any part of a text defines. text_parser.cc reads the items between.
//
// A bad text is an InvalidArgument "LINE:COLUMN: ..."; a parser is of no use after it.
#ifndef NESTOR_LOOP_IR_TEXT_SIGNATURE_H_
#define NESTOR_LOOP_IR_TEXT_SIGNATURE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "loop_ir/program.h"
#include "loop_ir/text_expressions.h"
#include "uops/notation/lexer.h"

namespace nestor::loop {

class SignatureParser : protected ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

 protected:
  // ---- Names

  // Takes a name that nothing in scope has. `what` says in errors whose name it is to be.
  absl::StatusOr<Token> NewName(absl::string_view what);
  void Define(const std::string& name, Named named);
  size_t NumDefined() const { return defined_.size(); }
  // Ends the scope of all names but the first `count` that are defined now.
  void ForgetDownTo(size_t count);
  // Adds the tensor to the program and defines its name.
  TensorId AddTensor(const std::string& name, TensorInfo tensor);

  // ---- Signature

  // program NAME(INPUTS; PARAMS) -> (OUTPUTS)
  absl::Status Signature();
  // f32[N, C], or f32 of rank 0
  absl::Status TypeAndShape(TensorInfo& tensor);

  // ---- Demands, each after the word that it begins with

  // require 1 <= $k <= 9 "message", or require M == N "message"
  absl::Status Require();
  // domain i < M, j < N : places ; values
  absl::Status ReadDomain(std::vector<Domain>& domains);
  // version min(1, N/16) == 0
  absl::Status ReadVersionTest();

 private:
  absl::Status Inputs();
  absl::Status AddArgument(Storage storage, std::vector<TensorId>& list);
  absl::StatusOr<DType> Type();
  absl::Status Params();
  absl::Status AddParam();

  absl::Status RequireEquality();
  absl::Status RequireRange();
  absl::Status DomainIndex(Domain& domain);
  absl::Status Numbers(IndexList& list);

  std::vector<std::string> defined_;  // the names in scope, in order
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_TEXT_SIGNATURE_H_
