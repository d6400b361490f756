// Reads the notation of SEMANTICS 2 into a syntax tree. It handles the grammar only: names, types
// and ranges are left to the elaborator.
//
// Bad text gives an InvalidArgument Status "LINE:COLUMN: ..." that names the
// offending piece and what was expected. Nesting (brackets and prefix operators)
// is bounded by kMaxNesting; chains of operators are not nesting and may be of
// any length.
#ifndef NESTOR_UOPS_NOTATION_PARSER_H_
#define NESTOR_UOPS_NOTATION_PARSER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "uops/notation/ast.h"

namespace nestor {

inline constexpr int kMaxNesting = 200;

// `line`: the number of the first line, from which positions count.
absl::StatusOr<ast::File> ParseFile(absl::string_view text, int line = 1);

// One expression, with nothing after it.
absl::StatusOr<ast::ExprPtr> ParseExpression(absl::string_view text);

// True for the words that no name may be: "sum", "where", "f32", ...
bool IsReserved(absl::string_view word);

// True for a NAME of the grammar that is not reserved: one of a tensor, a dimension or an index.
bool IsName(absl::string_view word);

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_PARSER_H_
