// Which numbers are worth code of their own is asked in every call of new sizes, so it must be
// cheap: symbols are collected once for each program; a call looks its sizes up, and adds up work
// only where some are small.
#include "jit/size_classes.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "fusion/cost/work.h"
#include "loop_ir/constants.h"
#include "uops/index/atom_sum.h"
#include "uops/index/index_expr.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;

// For a sum: the loops of a product go over rows, columns and the summed axis.
constexpr ptrdiff_t kLeastShortLoops = 3;

// The steps from which a sum is worth lanes of its own if rows or columns are few.
constexpr int64_t kLeastLongSum = 32;

// The least speed-up of code in which index arithmetic folds away.
constexpr double kGainOfArithmetic = 16;
// Few rows are up to 4 times as fast without tiles, and are called often.
constexpr double kGainOfVersion = 256;

// Collects the symbols of the unfused program by their use in it; see ProgramSymbols.
class ComputedWith {
 public:
  explicit ComputedWith(const Program& program) : program_(program) {}

  // One nest: its windows, its sums, and its index arithmetic.
  void AddNest(const loop::Item& nest) {
    bool slides = false, sums = false;
    std::vector<IndexId> ends;
    VisitItems(nest, [&](const Item& item) {
      if (const Loop* loop = item.As<Loop>()) {
        ends_[loop->var] = loop->end;
        ends.push_back(loop->end);
      }
      const Statement* statement = item.As<Statement>();
      if (statement == nullptr) return;
      if (statement->op) (*statement->op == ReduceOp::kSum ? sums : compares_) = true;
      VisitIndices(program_, item, [&](IndexId e) {
        AddIndex(e);
        slides = slides || IsWindow(e);
      });
    });
    if (sums) sums_.push_back(std::move(ends));
    if (!slides) return;
    VisitItems(nest, [&](const Item& item) {
      const Loop* loop = item.As<Loop>();
      if (loop == nullptr) return;
      VisitIndex(program_.pool, loop->end, [&](IndexId id, const IndexNode& node) {
        if (node.kind == IndexKind::kSymbol) beside_windows_.insert(program_.pool.SymbolName(id));
      });
    });
  }

  ProgramSymbols Symbols() const {
    return {{names_.begin(), names_.end()},
            {beside_windows_.begin(), beside_windows_.end()},
            EndAxes(),
            compares_ ? std::vector<std::vector<IndexId>>() : sums_};
  }

 private:
  // Whether two loops move it, by steps that contain no dimension: steps by a dimension occur in an
  // axis that was split in two.
  bool IsWindow(IndexId e) const {
    const IndexPool& pool = program_.pool;
    const auto sum = AtomSum::Of(pool, e);
    const auto moves = [&](IndexId atom) { return pool[atom].kind == IndexKind::kVar; };
    const auto is_dimension = [&](IndexId atom) {
      return pool[atom].kind == IndexKind::kSymbol && !absl::StartsWith(pool.SymbolName(atom), "$");
    };
    int loops = 0;
    for (const AtomSum::Term& term : sum.terms()) {
      if (!absl::c_any_of(term.atoms, moves)) continue;
      if (absl::c_any_of(term.atoms, is_dimension)) return false;
      ++loops;
    }
    return loops > 1;
  }

  std::vector<std::string> EndAxes() const {
    const IndexPool& pool = program_.pool;
    std::set<std::string> names;
    for (const auto* arguments : {&program_.inputs, &program_.outputs}) {
      for (loop::TensorId tensor : *arguments) {
        const Shape& shape = program_[tensor].shape;
        if (shape.size() < 2) continue;
        for (IndexId axis : {shape.front(), shape.back()}) {
          if (pool[axis].kind == IndexKind::kSymbol) names.insert(pool.SymbolName(axis));
        }
      }
    }
    return {names.begin(), names.end()};
  }

  // A loop index alone is not arithmetic.
  void AddIndex(IndexId e) {
    if (program_.pool[e].kind != IndexKind::kVar) AddSymbols(e);
  }

  // A bound that moves with a loop around it depends on what that loop's end depends on.
  void AddSymbols(IndexId e) {
    VisitIndex(program_.pool, e, [&](IndexId id, const IndexNode& node) {
      if (node.kind == IndexKind::kSymbol) names_.insert(program_.pool.SymbolName(id));
      if (node.kind != IndexKind::kVar) return;
      // Done once for each loop; its end may contain the index of a surrounding loop.
      if (auto end = ends_.extract(node.value)) AddSymbols(end.mapped());
    });
  }

  const Program& program_;
  // By loop index: the ends of loops whose symbols are not in names_ yet.
  absl::flat_hash_map<int64_t, IndexId> ends_;
  std::set<std::string> names_, beside_windows_;
  std::vector<std::vector<IndexId>> sums_;
  bool compares_ = false;
};

absl::optional<int64_t> ValueOf(const Program& program, IndexId e, loop::SymbolValue symbol) {
  return EvaluateIndex(
      program.pool, e,
      [&](const IndexNode& node, absl::Span<const int64_t>) -> absl::optional<int64_t> {
        if (node.kind != IndexKind::kSymbol) return absl::nullopt;
        return symbol(program.pool.SymbolNameAt(node.value));
      });
}

// An estimate: a loop whose bounds depend on other loops counts as one iteration. In double, as a
// product of lengths may exceed int64.
double IterationsOf(const Program& program, const Loop& loop, loop::SymbolValue symbol) {
  const auto begin = ValueOf(program, loop.begin, symbol), end = ValueOf(program, loop.end, symbol);
  if (!begin || !end) return 1;
  const double length = static_cast<double>(*end) - static_cast<double>(*begin);
  return std::max(0.0, length / static_cast<double>(loop.step));
}

// Iterations times operations, bottom up; a plain copy counts as one.
double WorkOf(const Program& program, const Scope& scope, loop::SymbolValue symbol) {
  double work = 0;
  for (const Item& item : scope) {
    if (const Loop* loop = item.As<Loop>()) {
      work += IterationsOf(program, *loop, symbol) * WorkOf(program, loop->body, symbol);
    } else if (const Statement* statement = item.As<Statement>()) {
      work += std::max(1, loop::OperationsOf(program, statement->value) + (statement->op ? 1 : 0));
    }
  }
  return work;
}

// Compiling takes time in proportion to these, so the least work that pays for it does, too.
int64_t NumStatements(const Program& program) {
  int64_t count = 0;
  VisitItems(program, [&](const Item& item) { count += item.As<Statement>() != nullptr; });
  return count;
}

}  // namespace

ProgramSymbols SymbolsOf(const Program& program) {
  ComputedWith computed(program);
  for (const Item& item : program.body) computed.AddNest(item);
  return computed.Symbols();
}

double WorkAt(const Program& program, loop::SymbolValue symbol) {
  return WorkOf(program, program.body, symbol);
}

double BytesAt(const Program& program, loop::SymbolValue symbol) {
  double bytes = 0;
  const auto add = [&](loop::TensorId id) {
    const loop::TensorInfo& info = program[id];
    if (info.shape_only) return;
    double of_tensor = ByteSize(info.type);
    for (IndexId extent : info.shape)
      of_tensor *= static_cast<double>(ValueOf(program, extent, symbol).value_or(0));
    bytes += of_tensor;
  };
  absl::c_for_each(program.inputs, add);
  absl::c_for_each(program.outputs, add);
  return bytes;
}

SizeClasses::SizeClasses(const Program& program, const SizeClassOptions& options)
    : program_(program), options_(options),
      symbols_(options.variants > 0 ? SymbolsOf(program) : ProgramSymbols()),
      least_work_(static_cast<double>(options.least_work) *
                  static_cast<double>(NumStatements(program))) {}

// The symbols whose values are small, each by its own rule; none if the call computes too little to
// pay for compiling.
SizeClass SizeClasses::Of(loop::SymbolValue symbol) const {
  SizeClass constants;
  const auto add = [&](const std::vector<std::string>& names, int64_t least, int64_t most) {
    for (const std::string& name : names) {
      const absl::optional<int64_t> value = symbol(name);
      if (!value || *value < least || *value > most) continue;
      constants.emplace_back(name, NESTOR_MUTANT("size_class_too_high") ? *value + 1 : *value);
    }
  };
  const int64_t most = options_.largest_constant;
  add(symbols_.computed_with, -most, most);
  // Decided before the other rules add theirs: these gain less.
  const double least_work = constants.empty() ? least_work_ : least_work_ / kGainOfArithmetic;
  add(symbols_.end_axes, 1, 1);
  add(SymbolsOfShortSums(symbol), -most, most);
  if (constants.empty() || !Computes(least_work, symbol)) return {};
  add(symbols_.beside_windows, -most, most);
  std::sort(constants.begin(), constants.end());
  constants.erase(std::unique(constants.begin(), constants.end()), constants.end());
  return constants;
}

bool SizeClasses::PaysForVersion(loop::SymbolValue symbol) const {
  return options_.variants > 0 && Computes(least_work_ / kGainOfVersion, symbol);
}

// Two rules: few rows or columns beside a long sum; and all loops short inside of a long one.
std::vector<std::string> SizeClasses::SymbolsOfShortSums(loop::SymbolValue symbol) const {
  std::vector<std::string> names;
  const auto add = [&](IndexId end) {
    VisitIndex(program_.pool, end, [&](IndexId id, const IndexNode& node) {
      if (node.kind == IndexKind::kSymbol) names.push_back(program_.pool.SymbolName(id));
    });
  };
  const auto is_within = [&](IndexId end, int64_t least, int64_t most) {
    const auto value = ValueOf(program_, end, symbol);
    return value && *value >= least && *value <= most;
  };
  const auto is_short = [&](IndexId end) { return is_within(end, 0, options_.largest_constant); };
  for (const std::vector<IndexId>& ends : symbols_.sums) {
    const size_t loops = ends.size();
    if (loops >= 3 &&
        is_within(ends[loops - 1], kLeastLongSum, std::numeric_limits<int64_t>::max())) {
      for (size_t i = loops - 3; i < loops - 1; ++i) {
        if (is_within(ends[i], 2, options_.largest_constant * 3 / 4)) add(ends[i]);
      }
    }
    const auto inside = std::find_if_not(ends.rbegin(), ends.rend(), is_short);
    if (inside == ends.rend() || inside - ends.rbegin() < kLeastShortLoops) continue;
    std::for_each(ends.rbegin(), inside, add);
  }
  return names;
}

// Rows too short for their vectors gain by merging axes. A sum does also where a short axis lies
// within another one: the iterations of both, which read the same columns, say, are then rows of one
// product.
bool SizeClasses::HasShortRows(loop::SymbolValue symbol) const {
  const auto is_short = [&](IndexId axis) {
    const auto length = ValueOf(program_, axis, symbol);
    return length && *length < options_.short_row;
  };
  const auto has_short = [&](loop::TensorId tensor) {
    const Shape& shape = program_[tensor].shape;
    if (shape.size() < 2) return false;
    return std::any_of(symbols_.sums.empty() ? shape.end() - 1 : shape.begin() + 1, shape.end(),
                       is_short);
  };
  const bool found =
      absl::c_any_of(program_.inputs, has_short) || absl::c_any_of(program_.outputs, has_short);
  return options_.variants > 0 && found;
}

Program WithConstants(Program program, const SizeClass& constants) {
  const absl::flat_hash_map<std::string, int64_t> values(constants.begin(), constants.end());
  loop::PutConstants(program, [&](const std::string& name) -> absl::optional<int64_t> {
    const auto value = values.find(name);
    if (value == values.end()) return absl::nullopt;
    return value->second;
  });
  return program;
}

}  // namespace nestor::jit
