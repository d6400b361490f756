// A line consists of words, each a field with its name; the last word has the choices. Every line
// is checked when it is read, so that a file that was made for other choices is refused as a whole
// and never half used.
#include "jit/schedules.h"

#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"
#include "uops/stable_hash.h"

namespace nestor::jit {
namespace {

constexpr absl::string_view kTitle = "# nestor schedules\n";

// The fields in the order of a line.
struct KeyField {
  absl::string_view name;
  std::string ScheduleKey::*text;
};
constexpr KeyField kKeyFields[] = {{"program", &ScheduleKey::program},
                                   {"cpu", &ScheduleKey::cpu},
                                   {"isa", &ScheduleKey::isa},
                                   {"mode", &ScheduleKey::mode},
                                   {"sizes", &ScheduleKey::sizes}};

// Each size up to this is a class of its own.
constexpr int64_t kLargestAlone = 16;

// 9 is 9, 300 is 512: a schedule for one size serves those near it.
int64_t LargestInClass(int64_t size) {
  if (size <= kLargestAlone) return size;
  int64_t largest = kLargestAlone;
  while (largest < size && largest <= INT64_MAX / 2) largest *= 2;
  return largest;
}

// ("isa", "isa=avx2") -> "avx2"
absl::StatusOr<absl::string_view> TakeField(absl::string_view name, absl::string_view word) {
  if (absl::ConsumePrefix(&word, name) && absl::ConsumePrefix(&word, "=") && !word.empty())
    return word;
  return absl::InvalidArgumentError(
      absl::StrCat("`", name, "=..` is expected where there is `", word, "`"));
}

// "tile_rows=6,sum_block=768". Choose tells whether the names and values are legal.
absl::StatusOr<ChosenValues> ParseChoices(absl::string_view text) {
  ChosenValues values;
  for (const absl::string_view choice : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(choice, absl::MaxSplits('=', 1));
    int64_t value;
    if (!absl::SimpleAtoi(parts.second, &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("`NAME=NUMBER` is expected where there is `", choice, "`"));
    }
    values.emplace_back(parts.first, value);
  }
  // Only to see whether they are legal: options differ from caller to caller.
  ScheduleOptions tried;
  NESTOR_RETURN_IF_ERROR(Choose(values, tried));
  return values;
}

}  // namespace

std::string TextOf(const ChosenValues& values) {
  return absl::StrJoin(values, ",", absl::PairFormatter("="));
}

absl::StatusOr<Schedules> Schedules::Parse(absl::string_view text) {
  Schedules schedules;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto at_line = [&](const absl::Status& status) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
    };
    const absl::Status read = schedules.ParseLine(line);
    if (!read.ok()) return at_line(read);
  }
  return schedules;
}

// op=NAME program=HASH cpu=NAME isa=NAME mode=NAME sizes=K:512,M:64 tile_rows=6,sum_block=768
absl::Status Schedules::ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  constexpr size_t kWords = std::size(kKeyFields) + 2;  // the op before them, the choices after
  if (words.size() != kWords) {
    return absl::InvalidArgumentError(
        absl::StrCat(kWords, " words are expected, there are ", words.size()));
  }
  NESTOR_ASSIGN_OR_RETURN(const absl::string_view op, TakeField("op", words[0]));
  ScheduleKey key;
  for (size_t i = 0; i < std::size(kKeyFields); ++i) {
    NESTOR_ASSIGN_OR_RETURN(const absl::string_view value,
                            TakeField(kKeyFields[i].name, words[i + 1]));
    key.*kKeyFields[i].text = std::string(value);
  }
  NESTOR_ASSIGN_OR_RETURN(ChosenValues values, ParseChoices(words.back()));
  // Two searches may have been joined by hand; which of them is right is not for this code to say.
  if (Find(key) != nullptr) return absl::InvalidArgumentError("an earlier line is for the same");
  Set(key, std::string(op), std::move(values));
  return absl::OkStatus();
}

std::string Schedules::ToText() const {
  std::string text(kTitle);
  for (const auto& [key, line] : lines_) {
    absl::StrAppend(&text, "op=", line.op);
    for (const KeyField& field : kKeyFields)
      absl::StrAppend(&text, " ", field.name, "=", key.*field.text);
    absl::StrAppend(&text, " ", TextOf(line.values), "\n");
  }
  return text;
}

void Schedules::Set(const ScheduleKey& key, std::string op, ChosenValues values) {
  if (values.empty()) lines_.erase(key);
  else lines_[key] = {std::move(op), std::move(values)};
}

const ChosenValues* Schedules::Find(const ScheduleKey& key) const {
  const auto line = lines_.find(key);
  return line == lines_.end() ? nullptr : &line->second.values;
}

// The hash is of the program's text without its name, so ops that compute the same share schedules.
ProgramSchedules::ProgramSchedules(std::shared_ptr<const Schedules> schedules,
                                   const loop::Program& unfused, Isa isa, bool strict)
    : schedules_(std::move(schedules)) {
  loop::Program nameless = unfused;
  nameless.name.clear();
  // Stable: the same on every machine and in every run, as it is kept in files.
  key_.program = absl::StrCat(absl::Hex(StableHash(loop::ToText(nameless)), absl::kZeroPad16));
  key_.cpu = CpuName();
  key_.isa = std::string(Name(isa));
  key_.mode = strict ? "strict" : "fast";
  std::set<std::string> symbols;
  for (size_t i = 0; i < unfused.pool.size(); ++i) {
    const IndexId e{static_cast<int32_t>(i)};
    if (unfused.pool[e].kind == IndexKind::kSymbol) symbols.insert(unfused.pool.SymbolName(e));
  }
  symbols_.assign(symbols.begin(), symbols.end());
  for (const loop::TensorId input : unfused.inputs) inputs_.push_back(unfused[input].name);
}

// "K:512,M:512,w:bound", in the order of names; "-" for a program without sizes.
ScheduleKey ProgramSchedules::KeyAt(loop::SymbolValue symbol,
                                    const std::vector<bool>& bound) const {
  std::vector<std::string> classes;
  for (const std::string& name : symbols_) {
    const absl::optional<int64_t> size = symbol(name);
    // Where code is specialized to some sizes, the others have no value, and the key is of those
    // alone.
    if (size) classes.push_back(absl::StrCat(name, ":", LargestInClass(*size)));
  }
  for (size_t i = 0; i < bound.size(); ++i) {
    if (bound[i]) classes.push_back(absl::StrCat(inputs_[i], ":bound"));
  }
  ScheduleKey key = key_;
  key.sizes = classes.empty() ? "-" : absl::StrJoin(classes, ",");
  return key;
}

const ChosenValues& ProgramSchedules::At(loop::SymbolValue symbol,
                                         const std::vector<bool>& bound) const {
  static const ChosenValues& none = *new ChosenValues;
  if (schedules_ == nullptr) return none;
  const ChosenValues* values = schedules_->Find(KeyAt(symbol, bound));
  return values == nullptr ? none : *values;
}

}  // namespace nestor::jit
