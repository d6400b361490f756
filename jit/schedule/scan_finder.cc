// A loop is read as a list of definitions of scalars and stores. From the value that is assigned
// to the carried scalar, a path of operations leads back to it; the other operands along that path
// are the terms.
//
//   temp now  now = max(last * a[t], x[t])  y[t] = now  last = now       no scan: two operations
//   temp now  now = last + x[t] * w[t]      y[t] = now  last = now       sum of x[t] * w[t]
//
// A path by sums, products or both is followed by FollowPath (loop_ir/scans.h), which also says
// whether it is linear. Terms must not depend on the carried scalar, in values or in subscripts.
#include "jit/schedule/scan_finder.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "fusion/scopes.h"
#include "jit/schedule/step_copy.h"
#include "loop_ir/dependence.h"

namespace nestor::loop {
namespace {

class ScanFinder {
 public:
  ScanFinder(const Program& program, const Loop& loop)
      : program_(program), loop_(loop), dependent_(program) {
    const std::vector<TensorId> own = DeclaredIn(loop.body);
    own_.insert(own.begin(), own.end());
  }

  absl::optional<Scan> Find() {
    Scan scan;
    if (!ReadBody(scan) || !KeepsApart(scan) || !FindTerms(scan)) return absl::nullopt;
    return scan;
  }

 private:
  // Whether the body has only definitions of scalars, each once, stores, and an update of one
  // scalar from outside.
  bool ReadBody(Scan& scan) {
    scan.update = nullptr;
    for (const Item& item : loop_.body) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) continue;
      const TensorId target = statement->target.tensor;
      if (!program_[target].shape.empty()) continue;
      definitions_.emplace(target, statement);
      if (own_.contains(target)) continue;
      if (scan.update != nullptr) return false;
      scan.update = statement;
      scan.carried = target;
    }
    return scan.update != nullptr && StepCopy::MayCopy(program_, loop_);
  }

  // Whether nothing that is stored is read, except the carried scalar, by values up to its update.
  bool KeepsApart(const Scan& scan) const {
    const Footprint footprint = FootprintOf(program_, loop_.body);
    for (TensorId tensor : footprint.writes) {
      if (footprint.reads.contains(tensor) && tensor != scan.carried) return false;
    }
    bool updated = false;
    return absl::c_all_of(loop_.body, [&](const Item& item) {
      if (updated && FootprintOf(program_, item).reads.contains(scan.carried)) return false;
      updated |= item.As<Statement>() == scan.update;
      return true;
    });
  }

  // Marks the values that depend on the carried scalar.
  void FindDependent(const Scan& scan) {
    absl::flat_hash_set<TensorId> scalars = {scan.carried};
    for (const Item& item : loop_.body) {
      const auto* statement = item.As<Statement>();
      if (statement != nullptr && dependent_.Add(statement->value, scalars))
        scalars.insert(statement->target.tensor);
    }
  }

  // Follows the path from the new value of the carried scalar back to it.
  bool FindTerms(Scan& scan) {
    FindDependent(scan);
    const DType type = program_[scan.carried].type;
    for (const Statement* at = scan.update;
         dependent_.Contains(at->value) && program_[at->value].type == type;) {
      if (!FollowPath(program_, at->value, dependent_, scan.path)) return false;
      const TensorId earlier = absl::get<LoadValue>(program_[scan.path.end].node).access.tensor;
      if (earlier == scan.carried) return !scan.path.terms.empty();
      if (scan.path.terms.empty()) scan.results.insert(earlier);
      at = definitions_.at(earlier);
    }
    return false;
  }

  const Program& program_;
  const Loop& loop_;
  absl::flat_hash_set<TensorId> own_;
  absl::flat_hash_map<TensorId, const Statement*> definitions_;  // of scalars
  DependentValues dependent_;
};

}  // namespace

absl::optional<Scan> FindScan(const Program& program, const Loop& loop) {
  return ScanFinder(program, loop).Find();
}

}  // namespace nestor::loop
