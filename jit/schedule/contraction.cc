// Recognizes a nest that register tiles can run: a generalized matrix product, however its loops
// are ordered and its subscripts written. Convolutions, batched and transposed products and
// distances (sums of |a - b|) all have this form, so no pass needs to know an operation by name.
//
// The method is a search over a small space. The perfect nest of loops is collected, with the core
// inside (scalars, one nest that sums into one of them, statements that use it). Then each ordered
// pair of loops is tried as row and column, and the best by LaneScore is taken: row and column must
// have bounds that do not move, and each load of the summed value may depend on one of the two at
// most. That last condition is what makes the nest a contraction:
//
//   for b { for i { for j { s = sum over k of x[b, i, k] * w[j, k]; y[b, i, j] = s } } }
//     (row i, column j): x depends on i alone, w on j alone: a contraction, with b as a batch loop
//     (row b, column i): x depends on both: none
//
// Nests have few loops, so that all pairs cost little; the proof that the loops carry no dependence
// costs more and comes last. The order of row, column and batch loops may then be chosen freely,
// while sums keep theirs.
#include "jit/schedule/contraction.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "fusion/assume_products.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/operand_part.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/stored_whole.h"
#include "jit/schedule/widen.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "uops/index/atom_sum.h"

namespace nestor::loop {
namespace {

// So few columns leave most lanes of a vector empty, so few rows most of a tile.
constexpr int64_t kFewColumns = 7, kFewRows = 3;
// A known length that counts as less than any unknown one.
constexpr int64_t kShort = 16;
// Steps of a sum that take so long that storing results far apart is little work.
constexpr int64_t kLongSum = 1024;

// Whether the sum, or one within a quotient of it, has `symbol` with a negative factor.
bool Subtracts(const IndexPool& pool, IndexId e, IndexId symbol) {
  const AtomSum sum = AtomSum::Of(pool, e);
  return absl::c_any_of(sum.terms(), [&](const AtomSum::Term& term) {
    return absl::c_any_of(term.atoms, [&](IndexId atom) {
      if (atom == symbol) return term.coefficient < 0;
      const IndexNode& node = pool[atom];
      return term.coefficient > 0 && node.kind == IndexKind::kDiv &&
             Subtracts(pool, node.args[0], symbol);
    });
  });
}

// The loops that are lengths of windows: for r in [0, R) beside for i in [0, N - R + 1), the bounds
// of another loop subtract the symbol R. A window of unknown size is thus known to be the shorter
// one.
std::vector<const Loop*> ShorterLoops(const Program& program,
                                      const std::vector<const Loop*>& loops) {
  std::vector<const Loop*> windows;
  for (const Loop* loop : loops) {
    if (!program.pool.IsConst(loop->begin, 0) || program.pool[loop->end].kind != IndexKind::kSymbol)
      continue;
    const bool is_window = absl::c_any_of(
        loops, [&](const Loop* other) { return Subtracts(program.pool, other->end, loop->end); });
    if (is_window) windows.push_back(loop);
  }
  return windows;
}

class Matcher {
 public:
  Matcher(Program& program, const absl::flat_hash_set<TensorId>& stored_whole)
      : program_(program), pool_(program.pool), stored_whole_(stored_whole) {}

  // The best pair of row and column by LaneScore; ties are decided by what the scores do not
  // measure.
  absl::optional<Contraction> Match(const Loop& outermost) {
    std::vector<const Loop*> band;
    if (!Collect(outermost, band) || band.size() < 2) return absl::nullopt;
    std::vector<const Loop*> all = band;
    all.insert(all.end(), found_.sums.begin(), found_.sums.end());
    found_.windows = ShorterLoops(program_, all);
    absl::optional<Contraction> best;
    int best_score = 0;
    for (const Loop* row : band) {
      for (const Loop* column : band) {
        absl::optional<Contraction> found = WithTile(band, *row, *column);
        if (!found) continue;
        const int score = LaneScore(*found);
        const bool wins_tie = best && score == best_score &&
                              (IsAlikeInside(*found, *best) || IsPackedOnce(*found, *best) ||
                               LiesBetter(*found, *best) || SlidesBetter(*found, *best));
        if (best && score <= best_score && !wins_tie) continue;
        best = std::move(found);
        best_score = score;
      }
    }
    // Last, as it takes longest.
    return best && AreIndependent(band) ? best : absl::nullopt;
  }

  // The innermost loop along which masked windows slide is the column.
  absl::optional<Contraction> MatchWindows(const Loop& outermost) {
    std::vector<const Loop*> band;
    if (!Collect(outermost, band)) return absl::nullopt;
    for (auto column = band.rbegin(); column != band.rend(); ++column) {
      absl::optional<Contraction> found = WithWindows(band, **column);
      if (found) return AreIndependent(band) ? found : absl::nullopt;
    }
    return absl::nullopt;
  }

 private:
  // Walks down the perfect nest: each loop but the last holds one loop and nothing else.
  bool Collect(const Loop& outermost, std::vector<const Loop*>& band) {
    for (const Loop* loop : BandOf(outermost)) {
      if (!IsPlain(*loop) || MovesWith(*loop, band)) return false;
      band.push_back(loop);
    }
    core_ = &band.back()->body;
    return FindSum();
  }

  bool IsPlain(const Loop& loop) const {
    const LoopAttributes& a = loop.attributes;
    return loop.step == 1 && !a.parallel && !a.vector && !a.unroll && !pool_.HasLoad(loop.begin) &&
           !pool_.HasLoad(loop.end);
  }
  // Whether the bounds are numbers, except that the end may be the minimum of one and an expression
  // that moves with a loop around the nest.
  bool IsFixed(const Loop& loop) const {
    const auto hull = HullOf(program_, loop);
    return hull && hull->begin == loop.begin;
  }
  bool MovesWith(const Loop& loop, const std::vector<const Loop*>& around) const {
    return absl::c_any_of(
        around, [&](const Loop* outer) { return BoundsMoveWith(pool_, loop, outer->var); });
  }

  // ---- The core: scalars, one nest that sums into one of them, and statements.

  // The core is declarations of scalars, loops of which one holds the step, then what reads the
  // sum; in another order it is no contraction.
  bool FindSum() {
    for (const Item& item : *core_) {
      if (const auto* loop = item.As<Loop>()) {
        if (!found_.sums.empty() || !FindStep(*loop)) return false;
      } else if (const auto* declaration = item.As<Declaration>()) {
        if (!program_[declaration->tensor].shape.empty()) return false;
        declared_.insert(declaration->tensor);
      } else if (found_.sums.empty()) {
        return false;
      }
    }
    return found_.step != nullptr && declared_.contains(found_.accumulator) && EndsUseOnlyTheSum();
  }

  // The sums are a perfect nest around the step `s op= value`, where s starts at op's identity.
  bool FindStep(const Loop& outermost) {
    found_.sums = BandOf(outermost);
    const auto is_plain = [&](const Loop* loop) { return IsPlain(*loop); };
    if (!absl::c_all_of(found_.sums, is_plain)) return false;
    found_.step = OnlyStatementIn(outermost);
    if (found_.step == nullptr || !found_.step->op || IsArg(*found_.step->op)) return false;
    found_.accumulator = found_.step->target.tensor;
    const TensorInfo& info = program_[found_.accumulator];
    return info.storage == Storage::kAccumulator && info.op == *found_.step->op &&
           info.shape.empty() && info.type != DType::kBool && !found_.step->target.masked;
  }

  // Indices must not be loaded, either: one computed from a scalar of the core does not follow from
  // rows and columns.
  bool EndsUseOnlyTheSum() const {
    bool good = true;
    for (const Item& item : *core_) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) continue;
      good = good && statement->target.tensor != found_.accumulator;
      VisitIndices(program_, item, [&](IndexId e) { good = good && !pool_.HasLoad(e); });
    }
    return good;
  }

  // Tiles interleave iterations of all loops of the band and read operands before they would be
  // read otherwise: so no loop may carry a dependence, and nothing in the core may change an
  // operand.
  bool AreIndependent(const std::vector<const Loop*>& band) const {
    const Footprint footprint = FootprintOf(program_, *core_);
    bool good = true;
    VisitLoads(program_, found_.step->value, [&](ValueId, const Access& access) {
      good = good && !footprint.Changes(access.tensor) && !declared_.contains(access.tensor);
    });
    return good && std::all_of(band.begin(), band.end(), [&](const Loop* loop) {
             return !CarriedTensor(program_, *loop).has_value();
           });
  }

  // ---- Row and column

  // The contraction with this row and this column; nullopt where a load depends on both, or none on
  // one of them, or where a value is an index that differs between rows or columns, which no
  // operand holds.
  absl::optional<Contraction> WithTile(const std::vector<const Loop*>& band, const Loop& row,
                                       const Loop& column) {
    if (&row == &column || !IsFixed(row) || !IsFixed(column) || Moves(column)) return absl::nullopt;
    Contraction found = found_;
    found.is_ragged = Moves(row);
    if (!FindHulls(row, found)) return absl::nullopt;
    found.core = core_;
    found.row = &row;
    found.column = &column;
    for (const Loop* loop : band) {
      if (loop != &row && loop != &column) found.batch.push_back(loop);
    }
    bool good = true;
    VisitValues(program_, found.step->value, [&](ValueId id, const Value& value) {
      if (const auto* index = absl::get_if<IndexValue>(&value.node)) {
        good = good && !HoldsVar(pool_, index->index, row.var) &&
               !HoldsVar(pool_, index->index, column.var);
      }
      const auto* load = absl::get_if<LoadValue>(&value.node);
      if (load == nullptr) return;
      const bool in_rows = DependsOn(program_, load->access, row);
      const bool in_columns = DependsOn(program_, load->access, column);
      good = good && !(in_rows && in_columns) && !HasLoads(load->access);
      if (in_rows) Add(found, found.rows, id, load->access);
      if (in_columns) Add(found, found.columns, id, load->access);
      good = good && !(found.is_ragged && in_columns &&
                       !HasAllValues(program_, stored_whole_, load->access.tensor));
    });
    if (!good || found.rows.empty() || found.columns.empty()) return absl::nullopt;
    return found;
  }

  // For a depthwise convolution: no operand is shared by rows, so there is no tile to choose, and
  // the only operands of interest are masked ones that slide along the column.
  absl::optional<Contraction> WithWindows(const std::vector<const Loop*>& band,
                                          const Loop& column) {
    if (!IsFixed(column) || Moves(column)) return absl::nullopt;
    Contraction found = found_;
    if (!FindHulls(column, found)) return absl::nullopt;
    found.core = core_;
    found.column = &column;
    for (const Loop* loop : band) {
      if (loop != &column) found.batch.push_back(loop);
    }
    VisitLoads(program_, found.step->value, [&](ValueId id, const Access& access) {
      if (access.masked && !HasLoads(access) && SlidesAlong(program_, access, found.sums, column))
        Add(found, found.columns, id, access);
    });
    if (found.columns.empty()) return absl::nullopt;
    return found;
  }

  // Sums whose bounds move get constant bounds that contain them. For a triangle, `for k in [0, i +
  // 1)` with rows i in [0, N), these are [0, N): the extremes over the first and last row.
  bool FindHulls(const Loop& row, Contraction& found) {
    if (found.is_ragged && found.sums.size() > 1) return false;
    for (const Loop* sum : found.sums) {
      absl::optional<Hull> hull = HullOf(program_, *sum);
      if (found.is_ragged) {
        const IndexId last = pool_.Sub(row.end, pool_.Const(1));
        const auto begins = ExtremesOver(program_, sum->begin, row.var, row.begin, last);
        const auto ends = ExtremesOver(program_, sum->end, row.var, row.begin, last);
        if (!begins || !ends) return false;
        if (!hull) {
          const IndexId begin = Within(begins->least, IndexKind::kMax),
                        end = Within(ends->greatest, IndexKind::kMin);
          hull = HullOf(program_, {sum->var, begin, end, 1, {}, {}});
        }
      }
      if (!hull) return false;
      found.hulls.push_back(*hull);
    }
    return true;
  }

  // Rewrites i + min(a, N - i) as min(i + a, N), in which N bounds the sum: the last row of
  // a strip that starts at i has the first form. Returns `e` as it is where it holds no
  // such minimum (maximum).
  IndexId Within(IndexId e, IndexKind kind) {
    if (!pool_.HasVar(e)) return e;
    for (const AtomSum::Term& term : AtomSum::Of(pool_, e).InOrder(pool_)) {
      if (term.coefficient != 1 || term.atoms.size() != 1 || pool_[term.atoms[0]].kind != kind)
        continue;
      const IndexId rest = pool_.Sub(e, term.atoms[0]);
      const IndexId a = pool_[term.atoms[0]].args[0], b = pool_[term.atoms[0]].args[1];
      return pool_.Make(kind, 0, {pool_.Add(rest, a), pool_.Add(rest, b)});
    }
    return e;
  }

  // Whether the bounds of a sum move with the loop, or with another sum.
  bool Moves(const Loop& side) const {
    return absl::c_any_of(found_.sums, [&](const Loop* sum) {
      return BoundsMoveWith(pool_, *sum, side.var) || MovesWith(*sum, found_.sums);
    });
  }

  bool HasLoads(const Access& access) const {
    const auto has = [&](IndexId e) { return pool_.HasLoad(e); };
    return std::any_of(access.place.begin(), access.place.end(), has) ||
           std::any_of(access.conditions.begin(), access.conditions.end(), has);
  }

  // The same for all rows and columns that are tried.
  ValueId PartOf(ValueId load) {
    const auto known =
        absl::c_find_if(parts_, [&](const auto& part) { return part.first == load; });
    if (known != parts_.end()) return known->second;
    parts_.emplace_back(load, PartReading(program_, found_.step->value, load));
    return parts_.back().second;
  }

  // Adds the operand that this load belongs to, unless it is there: several loads may be parts of
  // one computed operand.
  void Add(const Contraction& found, std::vector<Contraction::Operand>& operands, ValueId id,
           const Access& access) {
    Contraction::Operand operand{id, PartOf(id)};
    if (absl::c_any_of(operands, [&](const auto& known) { return known.read == operand.read; }))
      return;
    operand.batch_loops = BatchLoopsOf(program_, found, access);
    operands.push_back(operand);
  }

  // Whether the loop is known to be shorter than others, or to have at most `few` steps.
  bool IsWindow(const Contraction& found, const Loop& loop, int64_t few) const {
    const auto length = KnownLength(program_, loop);
    return length ? *length <= few : absl::c_linear_search(found.windows, &loop);
  }

  // Whether only the row differs, and is further inside: loops outside run over batches and heads,
  // of which there are few. False where it is known to be short.
  bool IsAlikeInside(const Contraction& found, const Contraction& best) const {
    const auto length = KnownLength(program_, *found.row);
    return found.column == best.column && (!length || *length > kShort);
  }

  // Whether only its columns are the same in all batches, so that they are packed once.
  static bool IsPackedOnce(const Contraction& found, const Contraction& best) {
    const auto moves = [](const Contraction::Operand& operand) { return operand.batch_loops > 0; };
    return absl::c_none_of(found.columns, moves) && absl::c_any_of(best.columns, moves);
  }

  // Whether only the row differs, and its operands lie side by side along it: they are read in
  // place, while those of `best` would be packed, as the elements that one of their rows sums do
  // not lie together.
  bool LiesBetter(const Contraction& found, const Contraction& best) const {
    const auto lies_along = [&](const Contraction::Operand& operand) {
      return IsAlong(program_, AccessOf(program_, operand), *found.row);
    };
    const auto lies_together = [&](const Contraction::Operand& operand) {
      const Access access = AccessOf(program_, operand);
      const auto of_row = absl::c_find_if(
          access.place, [&](IndexId e) { return HoldsVar(pool_, e, best.row->var); });
      return std::none_of(access.place.begin(), of_row,
                          [&](IndexId e) { return MovesWithAny(pool_, e, best.sums); });
    };
    return found.column == best.column && absl::c_all_of(found.rows, lies_along) &&
           !absl::c_all_of(best.rows, lies_together);
  }

  // Whether only the row differs, and windows slide along it over adjacent elements: tiles read
  // these in place, while operands of windows that slide over another axis would be copied for each
  // place of the window.
  bool SlidesBetter(const Contraction& found, const Contraction& best) const {
    const auto slides = [&](const Contraction& nest, bool along_last) {
      return absl::c_all_of(nest.rows, [&](const Contraction::Operand& operand) {
        const Access access = AccessOf(program_, operand);
        return SlidesAlong(program_, access, nest.sums, *nest.row) &&
               MovesLastAlone(program_, access, *nest.row) == along_last;
      });
    };
    return found.column == best.column && slides(found, true) && slides(best, false);
  }

  // Whether each place of a window is an iteration of a batch loop: the elements
  // read there overlap.
  bool IsOfWindows(const Access& access, const Contraction& found) const {
    return absl::c_any_of(found.batch, [&](const Loop* loop) {
      return SlidesAlong(program_, access, found.sums, *loop);
    });
  }

  // Whether results of all places of a small window, whose loop is around, lie next to each other:
  // a tile whose columns have all these results is stored line by line.
  bool StoresPlacesTogether(const Contraction& found) const {
    const auto is_small_window = [&](const Loop* loop) {
      const auto slides = [&](const Contraction::Operand& operand) {
        return SlidesAlong(program_, AccessOf(program_, operand), found.sums, *loop);
      };
      const auto length = KnownLength(program_, *loop);
      return absl::c_any_of(found.columns, slides) && length && *length <= kShort;
    };
    return absl::c_any_of(found.batch, [&](const Loop* loop) {
      return is_small_window(loop) && StoresLieAlong(program_, *core_, *loop);
    });
  }

  // Whether the sums have at least kLongSum steps together; unknown lengths count as long.
  bool HasManySteps(const Contraction& found) const {
    int64_t steps = 1;
    for (const Loop* sum : found.sums) {
      const auto length = KnownLength(program_, *sum);
      if (!length) return true;
      steps *= std::clamp<int64_t>(*length, 0, kLongSum);
    }
    return steps >= kLongSum;
  }

  // Many columns count most, unless they would be packed for a few rows; then results that lie next
  // to each other, operands that do, columns for which results of all places of a window do, rows
  // that windows slide over, as they are read in place, and many rows.
  int LaneScore(const Contraction& found) {
    const bool few_rows = IsWindow(found, *found.row, kFewRows);
    const bool lie_well = absl::c_all_of(found.columns, [&](const Contraction::Operand& operand) {
      return IsAlong(program_, AccessOf(program_, operand), *found.column);
    });
    int score = IsWindow(found, *found.column, kFewColumns) || (few_rows && !lie_well) ? 1 : 17;
    score += !few_rows;
    for (const Item& item : *core_) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || statement->target.place.empty()) continue;
      score += 4 * IsAlong(program_, statement->target, *found.column);
    }
    for (const Contraction::Operand& operand : found.columns) {
      score += 2 * IsAlong(program_, AccessOf(program_, operand), *found.column);
    }
    const bool of_windows = absl::c_any_of(found.columns, [&](const Contraction::Operand& operand) {
      return IsOfWindows(AccessOf(program_, operand), found);
    });
    score += of_windows ? 2 * (lie_well && StoresPlacesTogether(found)) : HasManySteps(found);
    for (const Contraction::Operand& operand : found.rows) {
      const Access access = AccessOf(program_, operand);
      score += IsAlong(program_, access, *found.row) ||
               (!access.masked && IsAlong(program_, access, *found.sums.back()));
    }
    return score;
  }

  Program& program_;
  IndexPool& pool_;
  const absl::flat_hash_set<TensorId>& stored_whole_;
  const Scope* core_ = nullptr;
  Contraction found_;  // the parts that do not depend on row and column
  absl::flat_hash_set<TensorId> declared_;
  std::vector<std::pair<ValueId, ValueId>> parts_;  // loads and their PartReading
};

}  // namespace

absl::optional<Contraction> ContractionOf(Program& program, const Loop& loop,
                                          const absl::flat_hash_set<TensorId>& stored_whole) {
  return Matcher(program, stored_whole).Match(loop);
}

absl::optional<Contraction> WindowsOf(Program& program, const Loop& loop) {
  return Matcher(program, {}).MatchWindows(loop);
}

// Assumes a number that exceeds int64 where there are more elements.
void AssumeFewElements(Program& program, const Shape& shape) {
  constexpr int64_t kMostElements = int64_t{1} << 24;
  IndexId number = program.pool.Const(std::numeric_limits<int64_t>::max() / kMostElements);
  for (IndexId extent : shape) number = program.pool.Mul(number, extent);
  AssumeNumbers(program, {number}, {});
}

}  // namespace nestor::loop
