// A step of a sum may be unneeded for a row of a tile (Statement::needed_if), but a test in each
// row at each step would cost more than the product that it saves. A condition a < b holds where
// its margin b - a is positive, and the margin is affine in the row: if it rises with the row, it
// holds in all tiles if it holds in the first one at this row, and if it falls, in all if it holds
// in the last one. So most conditions are proven once, at compile time, for all tiles, and a test
// is left for the few rows at the borders, as in
//
//   1 <= i + p  at the written-out step p = 0:  row 0 of the tile is tested, rows 1.. never are
#include "jit/schedule/needed_rows.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "loop_ir/affine.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {

// Keeps the conditions that are affine with a known slope in the row; others are not tested here.
NeededRows::NeededRows(Program& program, Ranges& ranges, const Contraction& nest, IndexId rows,
                       absl::FunctionRef<bool(size_t)> is_written_out)
    : program_(program), pool_(program.pool), ranges_(ranges), nest_(nest), rows_(rows),
      first_sum_(nest.sums.size()) {
  if (nest_.row == nullptr || nest_.is_ragged) return;
  for (const IndexId condition : nest_.step->needed_if) {
    if (!CanBeUsed(condition, is_written_out)) continue;
    const bool or_equal = pool_[condition].kind == IndexKind::kLe;
    const IndexId a = pool_[condition].args[0], b = pool_[condition].args[1];
    const IndexId margin = pool_.Add(pool_.Sub(b, a), pool_.Const(or_equal ? 1 : 0));
    const auto by = StrideIn(pool_, margin, nest_.row->var);
    if (by) margins_.push_back({margin, *by < 0});
  }
}

// Whether the condition follows from the row and from steps that are written out. Notes the first
// sum of these.
bool NeededRows::CanBeUsed(IndexId condition, absl::FunctionRef<bool(size_t)> is_written_out) {
  const IndexNode& node = pool_[condition];
  if (node.kind != IndexKind::kLe && node.kind != IndexKind::kLt) return false;
  if (!absl::c_all_of(node.args, [&](IndexId arg) { return pool_.IsAffine(arg); })) return false;
  std::vector<int64_t> vars;
  CollectVars(pool_, condition, vars);
  size_t first = nest_.sums.size();
  const bool good = absl::c_all_of(vars, [&](int64_t var) {
    if (var == nest_.row->var) return true;
    const auto sum =
        absl::c_find_if(nest_.sums, [&](const Loop* loop) { return loop->var == var; });
    const auto number = static_cast<size_t>(sum - nest_.sums.begin());
    first = std::min(first, number);
    return sum != nest_.sums.end() && is_written_out(number);
  });
  if (good) first_sum_ = std::min(first_sum_, first);
  return good;
}

// The margin at a row, counted from the nest's first, and at a step of the written-out sums.
IndexId NeededRows::MarginAt(IndexId margin, IndexId row, const std::vector<IndexId>& sums) {
  VarReplacement replace(program_);
  replace.Set(nest_.row->var, pool_.Add(nest_.row->begin, row));
  for (size_t i = first_sum_; i < nest_.sums.size(); ++i) {
    replace.Set(nest_.sums[i]->var, pool_.Add(nest_.hulls[i].begin, sums[i]));
  }
  return replace(margin);
}

// The least margin decides: min(1, max(0, margin), ..) is 0 where some condition does not hold.
IndexId NeededRows::At(IndexId row, int64_t r, int64_t tile_rows,
                       const std::vector<IndexId>& sums) {
  const IndexId none = pool_.Const(0), in_first = pool_.Const(r);
  const IndexId in_last = pool_.Sub(rows_, pool_.Const(tile_rows - r));
  IndexId needed = pool_.Const(1);
  for (const auto& [margin, falls] : margins_) {
    if (ranges_.Less(none, MarginAt(margin, falls ? in_last : in_first, sums))) continue;
    needed = pool_.Min(needed, pool_.Max(none, MarginAt(margin, pool_.Add(row, in_first), sums)));
  }
  return needed;
}

}  // namespace nestor::loop
