// Words mix freely, as in `nestor run conv2d x=x.npy --seed=3 stride=2`, so each is recognized by
// its form alone: a dash begins a flag, NAME= a value, and any other word is PROGRAM. Entry
// point: ParseArguments.
#include "cli/arguments.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "uops/invariant.h"
#include "uops/notation/module.h"

namespace nestor::cli {
namespace {

absl::Status Error(absl::string_view message) { return absl::InvalidArgumentError(message); }

// NAME=value or $NAME=value, where `word` has that form.
absl::optional<NameValue> AsNameValue(absl::string_view word) {
  const size_t equals = word.find('=');
  if (equals == absl::string_view::npos) return absl::nullopt;
  absl::string_view name = word.substr(0, equals);
  absl::ConsumePrefix(&name, "$");
  if (!IsName(name)) return absl::nullopt;
  return NameValue{std::string(name), std::string(word.substr(equals + 1))};
}

class Parser {
 public:
  Parser(const Command& command, absl::Span<const std::string> words)
      : command_(command), words_(words) {}

  // In the order of the words; after "--" a dash means nothing.
  absl::StatusOr<Arguments> Run() {
    if (AsksForHelp()) {
      result_.help = true;
      return std::move(result_);
    }
    bool only_words = false;  // after "--"
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (!only_words && word == "--") only_words = true;
      else
        NESTOR_RETURN_IF_ERROR(only_words || word[0] != '-' || word == "-" ? Word(word)
                                                                           : FlagWord(word));
    }
    if (command_.takes_program && command_.needs_program && result_.program.empty()) {
      return Error(
          "PROGRAM is missing: a file in the notation, - for stdin, an op's text, or a macro op's name");
    }
    return std::move(result_);
  }

 private:
  bool AsksForHelp() const {
    for (const std::string& word : words_) {
      if (word == "--") return false;
      if (word == "--help" || word == "-h") return true;
    }
    return false;
  }

  absl::Status Word(const std::string& word) {
    if (!command_.takes_program) return Error(absl::StrCat("unexpected '", word, "'"));
    if (auto given = AsNameValue(word)) return AddWord(*std::move(given));
    if (word.empty()) return Error("PROGRAM is an empty word");
    if (!result_.program.empty()) {
      return Error(absl::StrCat("unexpected '", word, "': PROGRAM is '", result_.program,
                                "' already, and other words are NAME=value"));
    }
    result_.program = word;
    return absl::OkStatus();
  }

  absl::Status AddWord(NameValue given) {
    if (!names_.insert(given.name).second)
      return Error(absl::StrCat("'", given.name, "' is given twice"));
    result_.words.push_back(std::move(given));
    return absl::OkStatus();
  }

  // --FLAG=VALUE or --FLAG VALUE, by the command's own table of flags.
  absl::Status FlagWord(const std::string& word) {
    if (word == "-o" && command_.takes_outputs) return Output();
    if (absl::StartsWith(word, "-o") && command_.takes_outputs) {
      return Error(absl::StrCat(word, ": -o and NAME=FILE are two words, as in -o y=y.npy"));
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto flag = std::find_if(command_.flags.begin(), command_.flags.end(),
                                   [&](const Flag& f) { return f.name == name; });
    if (flag == command_.flags.end()) return UnknownFlag(name);
    std::string value;
    if (equals != std::string::npos) {
      if (!flag->takes_value) return Error(absl::StrCat(name, " takes no value"));
      value = word.substr(equals + 1);
    } else if (flag->takes_value) {
      if (next_ == words_.size()) return Error(absl::StrCat(name, " needs a value"));
      value = words_[next_++];
    }
    if (flag->repeats) result_.repeated.push_back({name, value});
    else if (!result_.flags.emplace(name, value).second)
      return Error(absl::StrCat(name, " is given twice"));
    return absl::OkStatus();
  }

  absl::Status UnknownFlag(const std::string& name) const {
    std::vector<std::string> known = {"--help"};
    for (const Flag& flag : command_.flags) known.emplace_back(flag.name);
    if (command_.takes_outputs) known.push_back("-o");
    return Error(absl::StrCat("unknown flag '", name, "'", DidYouMean(name, known)));
  }

  absl::Status Output() {
    if (next_ == words_.size()) return Error("-o needs NAME=FILE");
    const std::string& word = words_[next_++];
    auto output = AsNameValue(word);
    if (!output || output->value.empty())
      return Error(absl::StrCat("-o ", word, ": NAME=FILE is expected"));
    if (!outputs_.insert(output->name).second)
      return Error(absl::StrCat("-o ", output->name, " is given twice"));
    result_.outputs.push_back(*std::move(output));
    return absl::OkStatus();
  }

  const Command& command_;
  absl::Span<const std::string> words_;
  size_t next_ = 0;
  absl::flat_hash_set<std::string> names_, outputs_;  // so far
  Arguments result_;
};

}  // namespace

bool IsName(absl::string_view text) {
  const auto in_name = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  return !text.empty() && !absl::ascii_isdigit(text[0]) &&
         std::all_of(text.begin(), text.end(), in_name);
}

absl::optional<std::string> Arguments::Find(absl::string_view flag) const {
  const auto it = flags.find(flag);
  if (it == flags.end()) return absl::nullopt;
  return it->second;
}

std::vector<std::string> Arguments::All(absl::string_view flag) const {
  std::vector<std::string> values;
  for (const NameValue& given : repeated) {
    if (given.name == flag) values.push_back(given.value);
  }
  return values;
}

absl::StatusOr<std::vector<std::string>> Arguments::List(absl::string_view flag) const {
  const auto text = Find(flag);
  if (!text || text->empty()) return std::vector<std::string>();
  const std::vector<std::string> names = absl::StrSplit(*text, ',');
  absl::flat_hash_set<absl::string_view> known;
  for (const std::string& name : names) {
    if (!IsName(name)) return Error(absl::StrCat(flag, "=", *text, ": '", name, "' is no name"));
    if (!known.insert(name).second)
      return Error(absl::StrCat(flag, "=", *text, ": '", name, "' is named twice"));
  }
  return names;
}

absl::StatusOr<uint64_t> Arguments::Seed() const {
  const auto text = Find("--seed");
  uint64_t seed = 0;
  if (text && !absl::SimpleAtoi(*text, &seed)) {
    return Error(absl::StrCat("--seed=", *text, ": an integer from 0 to 2^64-1 is expected"));
  }
  return seed;
}

absl::StatusOr<Arguments> ParseArguments(const Command& command,
                                         absl::Span<const std::string> words) {
  return Parser(command, words).Run();
}

}  // namespace nestor::cli
