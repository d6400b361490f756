// Specialization replaces symbols by numbers everywhere at once: shapes, checks, domains and
// scopes, so that a program stays consistent with itself. Expressions are rebuilt bottom up, so
// that parts that have become constant are folded on the way: (H + 2*$p - R)/$s + 1 becomes a
// number if all are known, and H - 2 for a window of 3 without padding. Each expression is rebuilt
// once, however often it occurs.
#include "loop_ir/constants.h"

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

class Constants {
 public:
  Constants(IndexPool& pool, SymbolValue value) : pool_(pool), value_(value) {}

  IndexId In(IndexId e) {
    const auto known = memo_.find(e);
    if (known != memo_.end()) return known->second;
    const IndexId replaced = ReplaceLeaves(pool_, e, IndexKind::kSymbol,
                                           [&](int64_t symbol) { return ConstantOf(symbol); });
    memo_.emplace(e, replaced);
    return replaced;
  }

  void InAll(IndexList& list) {
    for (IndexId& e : list) e = In(e);
  }

 private:
  absl::optional<IndexId> ConstantOf(int64_t symbol) {
    const absl::optional<int64_t> value = value_(pool_.SymbolNameAt(symbol));
    return value ? absl::make_optional(pool_.Const(*value)) : absl::nullopt;
  }

  IndexPool& pool_;
  SymbolValue value_;
  absl::flat_hash_map<IndexId, IndexId> memo_;
};

}  // namespace

// All that mentions symbols, so that nothing is checked against a size that the loops do not have.
void PutConstants(Program& program, SymbolValue value) {
  Constants constants(program.pool, value);
  for (TensorInfo& tensor : program.tensors) constants.InAll(tensor.shape);
  for (Equality& equality : program.equalities) {
    equality.left = constants.In(equality.left);
    equality.right = constants.In(equality.right);
  }
  for (RangeCheck& check : program.range_checks) check.value = constants.In(check.value);
  for (std::vector<Domain>* list : {&program.domains, &program.assumptions}) {
    for (Domain& domain : *list) {
      for (IndexList* part : {&domain.extents, &domain.places, &domain.values})
        constants.InAll(*part);
    }
  }
  for (VersionTest& test : program.version) test.flag = constants.In(test.flag);
  RewriteIndices(program, program.body, [&](IndexId e) { return constants.In(e); });
}

}  // namespace nestor::loop
