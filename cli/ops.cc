// nestor ops: the tables that say what a program may call.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/ops_table.h"
#include "cli/output.h"
#include "macro_ops/generators.h"
#include "macro_ops/library.h"
#include "uops/message.h"
#include "uops/scalar_op.h"

namespace nestor::cli {
namespace {

constexpr absl::string_view kHelp = R"(nestor ops [--table] [--json]

Lists the macro ops, each in the notation that defines it; the generators, which
make ops of any rank or number of arguments, and are called where a macro op is
named: nestor print 'einsum(ij,jk->ik)'; and the scalar ops: primitive ones, which
round once, composed ones, which are bodies over others, and transcendental ones,
which are straight-line bodies with a stated error.

  --table           prints the macro ops as tables in Markdown, a family each: the
                    characters of the definition, and the blocks after fusion of
                    the op and of its gradient (of f32 and one dimension for ..N)
  --json            prints one object with the lists "macro" (name, family, summary,
                    definition), "generator" (usage, summary, example) and "scalar"
                    (name, arity, kind, definition: for f32; empty for a primitive)

Examples:
  $ nestor ops
  $ nestor ops --table
  $ nestor ops --json

Exit codes: 0 done, 2 bad usage or input.
)";

constexpr Flag kFlags[] = {{"--table", false}, {"--json", false}};

absl::string_view Kind(const ScalarOpRow& row) {
  return row.transcendental ? "transcendental" : row.body != nullptr ? "composed" : "primitive";
}

// ---- JSON

using Members = std::vector<std::pair<absl::string_view, std::string>>;  // of JSON values

std::string JsonObject(const Members& members) {
  const auto member = [](std::string* out, const auto& m) {
    absl::StrAppend(out, JsonString(m.first), ": ", m.second);
  };
  return absl::StrCat("{", absl::StrJoin(members, ", ", member), "}");
}

std::string JsonList(const std::vector<std::string>& values) {
  return absl::StrCat("[\n  ", absl::StrJoin(values, ",\n  "), "\n]");
}

// The definition of a scalar op is that for f32.
std::string JsonText() {
  std::vector<std::string> macro, generators, scalar;
  for (const MacroOp& op : MacroOps()) {
    macro.push_back(JsonObject({{"name", JsonString(op.name)},
                                {"family", JsonString(op.family)},
                                {"summary", JsonString(op.summary)},
                                {"definition", JsonString(op.definition)}}));
  }
  for (const Generator& generator : Generators()) {
    generators.push_back(JsonObject({{"usage", JsonString(generator.usage)},
                                     {"summary", JsonString(generator.summary)},
                                     {"example", JsonString(generator.example)}}));
  }
  for (const ScalarOpRow& row : AllScalarOps()) {
    scalar.push_back(JsonObject({{"name", JsonString(row.name)},
                                 {"arity", absl::StrCat(row.arity)},
                                 {"kind", JsonString(Kind(row))},
                                 {"definition", JsonString(BodyText(row.op, DType::kF32))}}));
  }
  return JsonObject({{"scalar", JsonList(scalar)},
                     {"generator", JsonList(generators)},
                     {"macro", JsonList(macro)}}) +
         "\n";
}

// ---- Text

// "fma(a, b, c): primitive", with the table's text about it below.
std::string ScalarText(const ScalarOpRow& row) {
  constexpr absl::string_view kOperands[] = {"a", "b", "c"};
  std::string text = absl::StrCat(
      row.name, "(", absl::StrJoin(absl::MakeSpan(kOperands, row.arity), ", "), "): ", Kind(row));
  if (row.transcendental)
    absl::StrAppend(&text, ", error at most ", row.ulp32, " ulp (f32), ", row.ulp64, " ulp (f64)");
  if (row.body_for_floats_only) absl::StrAppend(&text, " on floats, primitive on integers");
  const std::string body = BodyText(row.op, DType::kF32);
  if (body.empty()) return text + "\n";
  return absl::StrCat(text, "\n    ",
                      absl::StrReplaceAll(absl::StripSuffix(body, "\n"), {{"\n", "\n    "}}), "\n");
}

std::string PlainText() {
  std::string text = "# Macro ops\n";
  for (const MacroOp& op : MacroOps())
    absl::StrAppend(&text, "\n# ", op.summary, "\n", op.definition);
  absl::StrAppend(&text, "\n# Generators\n");
  for (const Generator& generator : Generators()) {
    absl::StrAppend(&text, "\n# ", generator.summary, "\n", generator.usage, ": ",
                    generator.example, "\n");
  }
  absl::StrAppend(&text, "\n# Scalar ops; bodies as for f32\n\n");
  for (const ScalarOpRow& row : AllScalarOps()) text += ScalarText(row);
  return text;
}

absl::Status Run(const Arguments& arguments) {
  if (arguments.Has("--json") && arguments.Has("--table")) {
    return absl::InvalidArgumentError("--table: not with --json");
  }
  if (arguments.Has("--json")) return WriteStdout(JsonText());
  return WriteStdout(arguments.Has("--table") ? OpsTable() : PlainText());
}

}  // namespace

const Command kOpsCommand = {
    "ops", "lists the macro ops and scalar ops", kHelp, kFlags, false, false, Run};

}  // namespace nestor::cli
