// A failure is shrunk by making the program of the same seed with fewer nodes, which is a prefix
// of it, and by asking for one result at a time. A crash leaves no time for that: its handler
// prints the seed.
#include "tests/random_programs.h"

#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "uops/notation/print.h"

namespace nestor {

int64_t Setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  int64_t value;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

namespace {

// A broken invariant aborts: the last line says for which seed.
char current_case[64];
void PrintCurrentCase(int) {
  const ssize_t written = write(STDERR_FILENO, current_case, std::strlen(current_case));
  std::_Exit(written < 0 ? 2 : 1);
}

}  // namespace

void SetCurrentCase(absl::string_view what, uint64_t seed) {
  std::signal(SIGABRT, PrintCurrentCase);
  std::signal(SIGSEGV, PrintCurrentCase);
  std::snprintf(current_case, sizeof current_case, "crashed in %s seed %llu\n",
                std::string(what).c_str(), static_cast<unsigned long long>(seed));
}

namespace {

InputOptions InputsOf(const GeneratorOptions& options) {
  InputOptions inputs;
  inputs.extremes = options.extremes;
  return inputs;
}

// The first finding among the prefixes of the program, with single results, and the
// case that gives it.
std::string Shrunk(uint64_t seed, const GeneratorOptions& options, const Property& property) {
  Counts ignored;
  for (int nodes = 0; nodes <= options.nodes; ++nodes) {
    GeneratorOptions fewer = options;
    fewer.nodes = nodes;
    const Op op = RandomOp(seed, fewer);
    std::vector<Op> candidates;
    for (const Result& result : op.results) {
      candidates.push_back(op);
      candidates.back().results = {result};
    }
    candidates.push_back(op);
    for (const Op& candidate : candidates) {
      const Finding finding = property(candidate, seed, ignored);
      if (!finding) continue;
      return absl::StrCat("shrunk to ", nodes, " nodes: ", *finding, "\n", PrintOp(candidate), "\n",
                          InputsText(RandomInputs(candidate, seed, InputsOf(options)).inputs));
    }
  }
  return "";
}

}  // namespace

void TestPrograms(absl::string_view what, int64_t count, const GeneratorOptions& base,
                  const Property& property) {
  const uint64_t first = Setting("NESTOR_RANDOM_SEED", 1);
  count = Setting("NESTOR_RANDOM_COUNT", count);
  Counts counts;
  int failures = 0;
  for (uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    SetCurrentCase(what, seed);
    GeneratorOptions options = base;
    options.nodes = 1 + static_cast<int>(seed % base.nodes);
    const Op op = RandomOp(seed, options);
    const Finding finding = property(op, seed, counts);
    if (!finding) continue;
    ++failures;
    ADD_FAILURE() << what << " seed " << seed << ", " << Shrunk(seed, options, property);
  }
  std::cerr << what << ": " << counts.programs << " programs, refused by both " << counts.refused
            << ", by the interval proof alone " << counts.conservative << ", without gradient "
            << counts.no_gradient << "\n";
  EXPECT_LE(counts.refused, base.extremes ? counts.programs / 2 : counts.programs / 100 + 3);
  EXPECT_LE(counts.conservative, counts.programs / 500 + 3);
  EXPECT_LE(counts.no_gradient, count / 10 + 3);
}

}  // namespace nestor
