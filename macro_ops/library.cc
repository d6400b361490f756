// Finds the ops in the compiled-in files, and reads the comments before each into a summary and
// samples. The parser reads an op's text when it is first called: a program calls a few of the ops,
// and to read them all would take longer than to compile most kernels.
#include "macro_ops/library.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "macro_ops/library_text.h"
#include "re2/re2.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// One word of a sample line: NAME=[3,4], NAME=[3]<4 or $name=literal.
void ParseWord(const std::string& word, Sample& sample) {
  static const RE2& argument = *new RE2(R"((\w+)=\[([\d,]*)\](?:<(\d+))?)");
  static const RE2& param = *new RE2(R"((\$\w+)=(\S+))");
  std::string name, dims, bound, literal;
  if (RE2::FullMatch(word, argument, &name, &dims, &bound)) {
    SampleArgument arg{name, {}, absl::nullopt};
    for (absl::string_view dim : absl::StrSplit(dims, ',', absl::SkipEmpty())) {
      int64_t extent = 0;
      NESTOR_CHECK(absl::SimpleAtoi(dim, &extent), word);
      arg.shape.push_back(extent);
    }
    int64_t limit;
    if (absl::SimpleAtoi(bound, &limit)) arg.bound = limit;
    sample.args.push_back(std::move(arg));
    return;
  }
  NESTOR_CHECK(RE2::FullMatch(word, param, &name, &literal), word);
  sample.params.emplace_back(name, literal);
}

// "x=[3,4] ids=[5]<4 $k=2"
Sample ParseSample(absl::string_view line) {
  Sample sample;
  for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    ParseWord(std::string(word), sample);
  }
  return sample;
}

// An op in a file, and the comment lines before it, which are its own. All are parts of the text.
struct OpText {
  Module::Definition definition;
  std::vector<absl::string_view> comments;  // without "# "
};

// An op's lines end with a lone "}", which the files keep to. Outside of ops, a line without "# "
// or "op " is passed over.
std::vector<OpText> OpsIn(absl::string_view text) {
  std::vector<OpText> ops;
  OpText next;
  const char* begin = nullptr;  // of the op
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (begin == nullptr && absl::StartsWith(line, "op ")) {
      begin = line.data();
      next.definition.name = line.substr(3, line.find('(') - 3);
      next.definition.line = number;
    } else if (begin == nullptr && absl::ConsumePrefix(&line, "# ")) {
      next.comments.push_back(line);
    } else if (begin != nullptr && line == "}") {
      next.definition.text = text.substr(begin - text.data(), line.data() + 2 - begin);
      ops.push_back(std::exchange(next, OpText()));
      begin = nullptr;
    }
  }
  return ops;
}

MacroOp MacroOpOf(const LibraryFile& file, const OpText& text) {
  MacroOp op;
  op.name = std::string(text.definition.name);
  op.family = std::string(absl::StripSuffix(file.name, ".nestor"));
  op.definition = std::string(text.definition.text);
  for (absl::string_view line : text.comments) {
    if (absl::ConsumePrefix(&line, "sample ")) op.samples.push_back(ParseSample(line));
    else if (absl::ConsumePrefix(&line, "where ")) op.conditions.emplace_back(line);
    else absl::StrAppend(&op.summary, op.summary.empty() ? "" : " ", line);
  }
  return op;
}

}  // namespace

const Module& MacroLibrary() {
  static const Module* const library = [] {
    std::vector<Module::Definition> definitions;
    for (const LibraryFile& file : LibraryFiles()) {
      for (const OpText& op : OpsIn(file.text)) definitions.push_back(op.definition);
    }
    return new Module(Module::OfDefinitions(definitions));
  }();
  return *library;
}

// Read once, and never deleted: ops in other statics may use it while the process ends.
const std::vector<MacroOp>& MacroOps() {
  static const auto* const ops = [] {
    auto* list = new std::vector<MacroOp>;
    for (const LibraryFile& file : LibraryFiles()) {
      for (const OpText& op : OpsIn(file.text)) list->push_back(MacroOpOf(file, op));
    }
    return list;
  }();
  return *ops;
}

const MacroOp* FindMacroOp(absl::string_view name) {
  const std::vector<MacroOp>& ops = MacroOps();
  const auto op = absl::c_find_if(ops, [&](const MacroOp& one) { return one.name == name; });
  return op == ops.end() ? nullptr : &*op;
}

}  // namespace nestor
