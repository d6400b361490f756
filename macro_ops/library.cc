// Reads the compiled-in files once: the notation into a Module, the comments before each op into
// summaries and samples. Two readers see the same text: the parser skips the comments, and this one
// takes the lines between "op" and "}" as they are.
#include "macro_ops/library.h"

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

// An op's lines end with a lone "}", which the files keep to.
// The comments before an op are its own; a line without "# " or "op " is passed over.
std::vector<MacroOp> ReadFile(absl::string_view text) {
  std::vector<MacroOp> ops;
  MacroOp next;
  bool inside = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (inside) {
      absl::StrAppend(&next.definition, line, "\n");
      inside = line != "}";
      if (!inside) ops.push_back(std::exchange(next, MacroOp()));
    } else if (absl::ConsumePrefix(&line, "# sample ")) {
      next.samples.push_back(ParseSample(line));
    } else if (absl::ConsumePrefix(&line, "# where ")) {
      next.conditions.emplace_back(line);
    } else if (absl::ConsumePrefix(&line, "# ")) {
      absl::StrAppend(&next.summary, next.summary.empty() ? "" : " ", line);
    } else if (absl::StartsWith(line, "op ")) {
      next.name = std::string(line.substr(3, line.find('(') - 3));
      next.definition = absl::StrCat(line, "\n");
      inside = true;
    }
  }
  return ops;
}

}  // namespace

const Module& MacroLibrary() {
  static const Module* const library = [] {
    std::string all;
    for (const LibraryFile& file : LibraryFiles()) absl::StrAppend(&all, file.text, "\n");
    absl::StatusOr<Module> module = Module::Parse(all);
    NESTOR_CHECK(module.ok(), module.status().ToString());
    return new Module(*std::move(module));
  }();
  return *library;
}

// Read once, and never deleted: ops in other statics may use it while the process ends.
const std::vector<MacroOp>& MacroOps() {
  static const auto* const ops = [] {
    auto* list = new std::vector<MacroOp>;
    for (const LibraryFile& file : LibraryFiles()) {
      for (MacroOp& op : ReadFile(file.text)) {
        op.family = std::string(absl::StripSuffix(file.name, ".nestor"));
        list->push_back(std::move(op));
      }
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
