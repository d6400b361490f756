// The form of a value tells its kind: FILE.npy, TYPE[2,3], or a number; the op's syntax tells that
// of its name. Entry points: ReadWords, InstantiateFor.
#include "cli/given.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tensor/npy.h"
#include "uops/invariant.h"
#include "uops/message.h"
#include "uops/notation/ast.h"

namespace nestor::cli {
namespace {

absl::Status Error(absl::string_view message) { return absl::InvalidArgumentError(message); }

std::string Text(const NameValue& word) { return absl::StrCat(word.name, "=", word.value); }

bool IsShape(absl::string_view value) {
  return absl::EndsWith(value, "]") && absl::StrContains(value, "[");
}

// "'f31' ..", as the end of a message.
std::string UnknownType(const std::string& text) {
  std::vector<std::string> known;
  for (DType type : AllTypes()) known.emplace_back(Name(type));
  return absl::StrCat("unknown type '", text, "'", DidYouMean(text, known), " (there are ",
                      absl::StrJoin(known, ", "), ")");
}

// "f32[2, 3]", or "[2, 3]" for an argument of any type.
absl::StatusOr<GivenShape> ParseShape(const NameValue& word) {
  GivenShape given;
  const size_t bracket = word.value.find('[');
  const std::string type = word.value.substr(0, bracket);
  if (!type.empty()) {
    given.type = TypeByName(type);
    if (!given.type) return Error(absl::StrCat(Text(word), ": ", UnknownType(type)));
  }
  const std::string dims = word.value.substr(bracket + 1, word.value.size() - bracket - 2);
  if (absl::StripAsciiWhitespace(dims).empty()) return given;
  for (absl::string_view dim : absl::StrSplit(dims, ',')) {
    int64_t extent;
    if (!absl::SimpleAtoi(dim, &extent) || extent < 0) {
      return Error(
          absl::StrCat(Text(word), ": '", absl::StripAsciiWhitespace(dim), "' is no extent"));
    }
    given.shape.push_back(extent);
  }
  const auto bytes = NumBytes(given.type.value_or(DType::kF64), given.shape);
  if (!bytes.ok()) return Error(absl::StrCat(Text(word), ": ", bytes.status().message()));
  return given;
}

bool IsTypeVariable(const ast::Argument& arg) { return !TypeByName(arg.type.text); }

// One word at a time, by the op's syntax alone: the op itself is made only when types and ranks are
// known.
class WordReader {
 public:
  explicit WordReader(const Program& program) : syntax_(program.Syntax()) {
    for (const ast::Argument& arg : syntax_.args) args_.push_back(arg.name);
    for (const ast::Param& param : syntax_.params) params_.push_back(param.name);
  }

  // Whether the word gives a type variable its type.
  bool IsType(const NameValue& word) const {
    const bool is_variable = absl::c_any_of(syntax_.args, [&](const ast::Argument& arg) {
      return IsTypeVariable(arg) && arg.type.text == word.name;
    });
    return is_variable && (TypeByName(word.value) || !IsDimension(word.name));
  }

  absl::Status ReadType(const NameValue& word, Given& given) const {
    const auto type = TypeByName(word.value);
    if (!type) return Error(absl::StrCat(Text(word), ": ", UnknownType(word.value)));
    given.types[word.name] = *type;
    return absl::OkStatus();
  }

  // A file or a shape belongs to an argument; a number to a $param, or else to a dimension.
  absl::Status Read(const NameValue& word, Given& given) const {
    const auto arg = std::find(args_.begin(), args_.end(), word.name);
    const bool is_param = absl::c_linear_search(params_, absl::StrCat("$", word.name));
    const bool is_file = absl::EndsWith(word.value, ".npy");
    if (is_file || IsShape(word.value)) {
      if (arg == args_.end()) return NoArgument(word, is_param);
      return is_file ? ReadTensor(word, arg - args_.begin(), given) : ReadShape(word, given);
    }
    if (arg != args_.end() && !is_param) {
      return Error(absl::StrCat(Text(word), ": ", word.name, " is a tensor: give ", word.name,
                                "=FILE.npy, or ", word.name, "=f32[2,3] to have it made up"));
    }
    if (is_param) given.params.emplace_back(absl::StrCat("$", word.name), word.value);
    else given.dims.emplace_back(word.name, word.value);
    return absl::OkStatus();
  }

 private:
  absl::Status NoArgument(const NameValue& word, bool is_param) const {
    if (is_param) return Error(absl::StrCat(Text(word), ": $", word.name, " takes a number"));
    if (IsDimension(word.name))
      return Error(
          absl::StrCat(Text(word), ": ", word.name, " is a dimension, which takes a number"));
    return Error(absl::StrCat(Text(word), ": op ", syntax_.name, " has no argument '", word.name,
                              "'", DidYouMean(word.name, args_)));
  }

  // Whether the name alone is a dimension of some argument.
  bool IsDimension(absl::string_view name) const {
    return absl::c_any_of(syntax_.args, [&](const ast::Argument& arg) {
      return absl::c_any_of(arg.dims, [&](const ast::Item& dim) {
        return dim.expr != nullptr && dim.expr->kind == ast::ExprKind::kName &&
               dim.expr->text == name;
      });
    });
  }

  // A type that the program or a word names is the one expected, which is how uint16 files
  // are bf16.
  absl::Status ReadTensor(const NameValue& word, size_t arg, Given& given) const {
    const std::string& type = syntax_.args[arg].type.text;
    const auto said = given.types.find(type);
    const auto expected =
        said == given.types.end() ? TypeByName(type) : absl::make_optional(said->second);
    absl::StatusOr<Tensor> tensor = ReadNpy(word.value, expected);
    if (!tensor.ok()) {
      return absl::Status(tensor.status().code(),
                          absl::StrCat("argument ", word.name, ": ", tensor.status().message()));
    }
    given.tensors.emplace(word.name, *std::move(tensor));
    return absl::OkStatus();
  }

  absl::Status ReadShape(const NameValue& word, Given& given) const {
    NESTOR_ASSIGN_OR_RETURN(given.shapes[word.name], ParseShape(word));
    return absl::OkStatus();
  }

  const ast::Op& syntax_;
  std::vector<std::string> args_, params_;
};

ArgumentSpecs SpecsOf(const Given& given) {
  ArgumentSpecs specs;
  for (const auto& [name, tensor] : given.tensors) specs[name] = {tensor.type(), tensor.rank()};
  for (const auto& [name, shape] : given.shapes)
    specs[name] = {shape.type, static_cast<int>(shape.shape.size())};
  return specs;
}

// A type variable gets the type that the words give; else that of an argument; else `otherwise`.
absl::Status SetTypeVariables(const ast::Op& syntax, const Given& given,
                              absl::optional<DType> otherwise, ArgumentSpecs& specs) {
  absl::flat_hash_set<std::string> known;
  for (const ast::Argument& arg : syntax.args) {
    if (specs[arg.name].type) known.insert(arg.type.text);
  }
  for (const ast::Argument& arg : syntax.args) {
    const auto said = given.types.find(arg.type.text);
    const bool is_open = IsTypeVariable(arg) && !known.contains(arg.type.text);
    absl::optional<DType> type = is_open ? otherwise : absl::nullopt;
    if (said != given.types.end()) type = said->second;
    if (!type) continue;
    absl::optional<DType>& own = specs[arg.name].type;
    if (own.value_or(*type) != *type) {
      return Error(absl::StrCat("argument ", arg.name, " is ", Name(*own), ", but ", arg.type.text,
                                " is given as ", Name(*type)));
    }
    own = type;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<absl::optional<DType>> ReadType(const Arguments& arguments, const Program& program) {
  const auto text = arguments.Find("--type");
  if (!text) return absl::optional<DType>();
  const auto type = TypeByName(*text);
  if (!type) return Error(absl::StrCat("--type=", *text, ": ", UnknownType(*text)));
  const ast::Op& syntax = program.Syntax();
  if (absl::c_any_of(syntax.args, IsTypeVariable)) return type;
  return Error(
      absl::StrCat("--type=", *text, ": op ", syntax.name, " names the type of each argument"));
}

absl::StatusOr<Given> ReadWords(const Arguments& arguments, const Program& program) {
  const WordReader reader(program);
  Given given;
  for (const NameValue& word : arguments.words) {
    if (reader.IsType(word)) NESTOR_RETURN_IF_ERROR(reader.ReadType(word, given));
  }
  for (const NameValue& word : arguments.words) {
    if (!reader.IsType(word)) NESTOR_RETURN_IF_ERROR(reader.Read(word, given));
  }
  return given;
}

absl::StatusOr<Given> ReadShapeWords(const Arguments& arguments, const Program& program) {
  const WordReader reader(program);
  for (const NameValue& word : arguments.words) {
    if (IsShape(word.value) || reader.IsType(word)) continue;
    return Error(absl::StrCat(Text(word), ": only types and shapes are read here, as in ",
                              word.name, "=f32[2,3]; dimensions and $params stay symbols"));
  }
  return ReadWords(arguments, program);
}

absl::StatusOr<Op> InstantiateFor(const Program& program, const Given& given,
                                  absl::optional<DType> type) {
  ArgumentSpecs specs = SpecsOf(given);
  NESTOR_RETURN_IF_ERROR(SetTypeVariables(program.Syntax(), given, type, specs));
  NESTOR_ASSIGN_OR_RETURN(Op op, program.Instantiate(specs));
  for (const Argument& arg : op.args) {
    const auto shape = given.shapes.find(arg.name);
    if (shape == given.shapes.end() || shape->second.type.value_or(arg.type) == arg.type) continue;
    return Error(absl::StrCat("op ", op.name, ": argument ", arg.name, " is ", Name(arg.type),
                              ", is given ", Name(*shape->second.type)));
  }
  return op;
}

}  // namespace nestor::cli
