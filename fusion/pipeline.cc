// The list of passes, and the code that runs it. The order is one of enabling: substitution makes
// expressions, so that gathering and merging see whole computations; merging makes values local, so
// that contraction shrinks them to scalars; these are substituted again. Splitting decides masks,
// and what becomes constant by it is forwarded, hoisted, counted (equal_terms) or removed. A pass
// that could undo another one comes before it. Passes appear twice where a later one makes new work
// for them; the list as a whole runs once.
#include "fusion/pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "fusion/assume_products.h"
#include "fusion/common_subexpressions.h"
#include "fusion/contract.h"
#include "fusion/dead_code.h"
#include "fusion/dead_stores.h"
#include "fusion/demote.h"
#include "fusion/equal_terms.h"
#include "fusion/forward_stores.h"
#include "fusion/gather_from_scatter.h"
#include "fusion/hoist.h"
#include "fusion/merge_loops.h"
#include "fusion/narrow_temporaries.h"
#include "fusion/reciprocals.h"
#include "fusion/simplify.h"
#include "fusion/split_loops.h"
#include "fusion/substitute.h"
#include "loop_ir/rewrite.h"
#include "loop_ir/verify.h"
#include "uops/invariant.h"

namespace nestor::fusion {

// The comment before a pass says why it stands there.
Pipeline Pipeline::Default() {
  return Pipeline({
      // Before any index is rewritten: products of indices are as they were written.
      {"assume_products", loop::AssumeProducts},
      {"dead_code", loop::EliminateDeadCode},
      // Copies and chains go into the expressions that use them, so that merging sees only values
      // that are worth a loop. An access that is proven in range then needs no mask, and can be
      // composed where a mask was in the way.
      {"substitute", loop::SubstituteTemporaries},
      {"simplify", loop::Simplify},
      {"substitute_2", loop::SubstituteTemporaries},
      // Scatters whose value is now one expression become reductions, before their loops are merged
      // with others.
      {"gather_from_scatter", loop::GatherFromScatter},
      {"merge", loop::MergeLoops},
      // Sums over the other dimension join a walk that is there.
      {"demote", loop::DemoteAccumulators},
      {"merge_2", loop::MergeLoops},
      // A tensor that passes values between merged loops shrinks to what one iteration needs, often
      // a scalar that is used once.
      {"contract", loop::ContractTemporaries},
      {"substitute_3", loop::SubstituteTemporaries},
      // The inside of a pad needs no mask.
      {"split_loops", loop::SplitLoops},
      // Sums of which a part has no term left are numbers there.
      {"forward_stores", loop::ForwardStores},
      {"simplify_2", loop::Simplify},
      {"reciprocals", loop::UseReciprocals, /*reorders_rounding=*/true},
      // Last, as substitution would undo it: each value computed once, and as far out
      // as it can be.
      {"hoist", loop::HoistInvariants},
      {"common_subexpressions", loop::EliminateCommonSubexpressions},
      {"substitute_4", loop::SubstituteTemporaries},
      // Handles parts of split loops whose results nobody needs, or are all one number.
      {"forward_stores_2", loop::ForwardStores},
      {"equal_terms", loop::MultiplyEqualTerms, /*reorders_rounding=*/true},
      {"narrow_temporaries", loop::NarrowTemporaries},
      {"dead_stores", loop::EliminateDeadStores},
      {"dead_code_2", loop::EliminateDeadCode},
  });
}

absl::StatusOr<size_t> Pipeline::Find(absl::string_view name) const {
  std::vector<absl::string_view> names;
  for (size_t i = 0; i < passes_.size(); ++i) {
    if (passes_[i].name == name) return i;
    names.push_back(passes_[i].name);
  }
  return absl::NotFoundError(
      absl::StrCat("there is no pass called ", name, "; there are: ", absl::StrJoin(names, ", ")));
}

absl::Status Pipeline::Insert(size_t position, Pass pass) {
  if (Find(pass.name).ok())
    return absl::AlreadyExistsError(absl::StrCat("there is a pass called ", pass.name));
  passes_.insert(passes_.begin() + static_cast<int64_t>(position), std::move(pass));
  return absl::OkStatus();
}

absl::Status Pipeline::InsertBefore(absl::string_view name, Pass pass) {
  NESTOR_ASSIGN_OR_RETURN(const size_t position, Find(name));
  return Insert(position, std::move(pass));
}

absl::Status Pipeline::InsertAfter(absl::string_view name, Pass pass) {
  NESTOR_ASSIGN_OR_RETURN(const size_t position, Find(name));
  return Insert(position + 1, std::move(pass));
}

absl::Status Pipeline::Disable(absl::string_view name) {
  NESTOR_ASSIGN_OR_RETURN(const size_t position, Find(name));
  passes_.erase(passes_.begin() + static_cast<int64_t>(position));
  return absl::OkStatus();
}

void Pipeline::Truncate(int count) {
  if (count < static_cast<int>(passes_.size())) passes_.resize(std::max(count, 0));
}

namespace {

absl::Status Verified(const loop::Program& program, absl::string_view where) {
  const absl::Status status = Verify(program);
  return status.ok() ? status : absl::InternalError(absl::StrCat(where, ": ", status.message()));
}

// More are refused, before memory is short: the passes take about a kilobyte for each.
constexpr int64_t kMaxStatements = 250'000;

absl::Status CheckSize(const loop::Program& program) {
  int64_t statements = 0;
  VisitItems(program,
             [&](const loop::Item& item) { statements += item.As<loop::Statement>() != nullptr; });
  if (statements <= kMaxStatements) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("program ", program.name, ": ", statements,
                                                   " statements, where the passes take at most ",
                                                   kMaxStatements));
}

}  // namespace

// Pass by pass. Values that no statement uses any more are dropped where their number has doubled,
// so that this takes no longer than making them, and at last.
absl::Status Pipeline::Run(loop::Program& program, const RunOptions& options) const {
  NESTOR_RETURN_IF_ERROR(CheckSize(program));
  if (options.verify) NESTOR_RETURN_IF_ERROR(Verified(program, "before the first pass"));
  size_t kept = program.values.size();
  bool any_unused = false;  // since some pass changed something
  program.proven = false;   // passes change accesses; one of them may prove them anew
  for (size_t i = 0; i < passes_.size(); ++i) {
    const Pass& pass = passes_[i];
    if (options.strict && pass.reorders_rounding) continue;
    const absl::Time start = absl::Now();
    const absl::StatusOr<bool> changed = pass.run(program);
    const absl::Duration time = absl::Now() - start;
    if (!changed.ok()) {
      return absl::InternalError(
          absl::StrCat("pass ", pass.name, ": ", changed.status().message()));
    }
    any_unused |= *changed;
    if (any_unused && program.values.size() > 2 * kept) {
      DropUnusedValues(program);
      kept = program.values.size();
      any_unused = false;
    }
    if (options.verify)
      NESTOR_RETURN_IF_ERROR(Verified(program, absl::StrCat("after pass ", pass.name)));
    if (options.observer) options.observer({pass, static_cast<int>(i), *changed, time}, program);
  }
  if (any_unused) DropUnusedValues(program);
  return absl::OkStatus();
}

}  // namespace nestor::fusion
