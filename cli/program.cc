// Files are not trusted: whatever PROGRAM holds, reading it ends, and errors name it. Entry
// point: LoadProgram.
#include "cli/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/output.h"
#include "macro_ops/generators.h"
#include "re2/re2.h"
#include "tensor/files.h"
#include "uops/invariant.h"
#include "uops/message.h"

namespace nestor::cli {
namespace {

bool IsFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

// Whether the word cannot be the name of a file or a macro op: "op NAME(..", or anything with a
// body or of several lines.
bool IsText(absl::string_view word) {
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(word);
  const bool begins =
      absl::StartsWith(text, "op") && text.size() > 2 && absl::ascii_isspace(text[2]);
  return absl::StrContains(text, begins ? "(" : "{") || absl::StrContains(text, '\n');
}

absl::Status NoSuchProgram(const std::string& word) {
  std::vector<std::string> known;
  for (const MacroOp& op : MacroOps()) known.push_back(op.name);
  return absl::NotFoundError(
      absl::StrCat("'", word, "' is neither a file, nor an op's text, nor a macro op",
                   DidYouMean(word, known), " (`nestor ops` lists the macro ops)"));
}

// `text` with a blank for each control character and a "?" for each byte that is not UTF-8, so that
// the text before a column keeps its length.
std::string OneColumnEach(absl::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) shown += '?';
    else if (text[0] >= 0 && text[0] < ' ') shown += ' ';
    else absl::StrAppend(&shown, text.substr(0, length));
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return shown;
}

// The line with a caret under `column` (from 1, in bytes); for a long line, the part around
// the caret.
std::string ShowLine(absl::string_view text, size_t line, size_t column) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (line == 0 || line > lines.size() || column == 0) return "";
  const absl::string_view whole = lines[line - 1];
  if (absl::StripAsciiWhitespace(whole).empty()) return "";
  const auto continues = [](char c) { return (c & 0xc0) == 0x80; };  // inside a UTF-8 character
  size_t begin = column > 80 ? column - 60 : 0;
  while (begin > 0 && begin < whole.size() && continues(whole[begin])) --begin;
  const std::string shown = OneColumnEach(whole.substr(std::min(begin, whole.size()), 100));
  const absl::string_view before = absl::string_view(shown).substr(0, column - 1 - begin);
  const size_t indent = before.size() - std::count_if(before.begin(), before.end(), continues);
  return absl::StrCat("\n    ", shown, "\n    ", std::string(indent, ' '), "^");
}

constexpr absl::string_view kError = "", kWarning = "warning: ";

// Removes a leading "LINE:COLUMN: ".
absl::Status WithoutPosition(absl::string_view message, const std::string& op,
                             absl::string_view kind) {
  re2::StringPiece rest(message.data(), message.size());
  if (!RE2::Consume(&rest, R"(\d+:\d+: )")) return absl::InvalidArgumentError(message);
  return absl::InvalidArgumentError(
      absl::StrCat(kind, "op ", op, ": ", absl::string_view(rest.data(), rest.size())));
}

// Puts the place and the line before a message that says "LINE:COLUMN: ...".
absl::Status Locate(absl::string_view message, const std::string& place, absl::string_view text,
                    absl::string_view kind) {
  int line, column;
  re2::StringPiece rest(message.data(), message.size());
  if (!RE2::Consume(&rest, R"((\d+):(\d+): )", &line, &column))
    return absl::InvalidArgumentError(message);
  const absl::string_view unplaced(rest.data(), rest.size());
  return MarkLocated(absl::InvalidArgumentError(absl::StrCat(
      place, ":", line, ":", column, ": ", kind, unplaced, ShowLine(text, line, column))));
}

absl::Status SelectOp(Program& program, const absl::optional<std::string>& wanted) {
  const std::vector<std::string> names = program.own->OpNames();
  if (names.empty()) return absl::InvalidArgumentError(absl::StrCat(program.place, " holds no op"));
  program.op = wanted.value_or(names.back());
  if (program.own->Has(program.op)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(program.place, " has no op named '", program.op, "'",
                                          DidYouMean(program.op, names)));
}

absl::StatusOr<Program> FromText(std::string place, std::string text,
                                 const absl::optional<std::string>& wanted) {
  Program program;
  program.place = std::move(place);
  program.text = std::move(text);
  absl::StatusOr<Module> module = Module::Parse(program.text, &MacroLibrary());
  if (!module.ok()) return Locate(module.status().message(), program.place, program.text, kError);
  program.own = *std::move(module);
  NESTOR_RETURN_IF_ERROR(SelectOp(program, wanted));
  return program;
}

absl::StatusOr<Program> FromGenerator(const std::string& call,
                                      const absl::optional<std::string>& wanted) {
  NESTOR_ASSIGN_OR_RETURN(std::string text, Generate(call));
  return FromText(call, std::move(text), wanted);
}

absl::StatusOr<Program> FromMacro(const MacroOp& macro, const absl::optional<std::string>& wanted) {
  if (wanted && *wanted != macro.name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--op=", *wanted, " chooses an op of a file, but PROGRAM is the macro op ", macro.name));
  }
  Program program;
  program.macro = &macro;
  program.op = macro.name;
  return program;
}

}  // namespace

absl::StatusOr<Op> Program::Instantiate(const ArgumentSpecs& specs) const {
  // Positions in the library's text mean nothing to the user.
  const auto located = [&](absl::string_view message, absl::string_view kind) {
    return macro != nullptr ? WithoutPosition(message, op, kind)
                            : Locate(message, place, text, kind);
  };
  absl::StatusOr<Op> result = module().Instantiate(op, specs);
  if (!result.ok()) return located(result.status().message(), kError);
  for (const std::string& warning : result->warnings()) ReportError(located(warning, kWarning));
  return result;
}

// A file of the name wins; then what looks like text, a generator's call, or a macro op. A word
// with a dot or a slash is meant as a file.
absl::StatusOr<Program> LoadProgram(const Arguments& arguments) {
  const std::string& word = arguments.program;
  const auto wanted = arguments.Find("--op");
  const bool is_file = IsFile(word);
  if (!is_file && IsText(word)) return FromText("<PROGRAM>", word, wanted);
  if (!is_file && IsGeneratorCall(word)) return FromGenerator(word, wanted);
  if (word == "-") {
    NESTOR_ASSIGN_OR_RETURN(std::string text, ReadTextToEnd(STDIN_FILENO, "<stdin>", "program"));
    return FromText("<stdin>", std::move(text), wanted);
  }
  if (!is_file) {
    if (const MacroOp* macro = FindMacroOp(word)) return FromMacro(*macro, wanted);
    if (!Exists(word) && word.find_first_of("./") == std::string::npos) return NoSuchProgram(word);
  }
  NESTOR_ASSIGN_OR_RETURN(std::string text, ReadTextFile(word, "program"));
  return FromText(word, std::move(text), wanted);
}

}  // namespace nestor::cli
