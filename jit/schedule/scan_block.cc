// A scan hands one value on from step to step, so its steps cannot run in lanes as they are. A
// block of W*W adjacent steps can: it is read as a square of W rows of W steps, and each lane scans
// one row. Statements that the terms need run before the scan of a block; the stores run after it,
// with the statements that they need (step_copy.h). Those that both need run twice, since they
// depend on no other step.
//
// A scan by one operation has three phases (Blelloch, "Prefix sums and their applications", 1990):
// each row is scanned by itself, then the ends of rows are scanned, W steps one after the other,
// and then each row's results are combined with the result before the row. A linear scan, h -> a h
// + b, composes steps (Blelloch, sec. 1.4): first to find each row's effect on any start, h ->
// product * h + end, then from its actual start once more. So its results are those of the steps
// one after the other.
//
// Time may run down along memory (`backward`): then rows and lanes are numbered from the other end
// (Step), and everything else is the same. Reads and stores always go up along memory.
#include "jit/schedule/scan_block.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/memory/memory.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/step_copy.h"
#include "loop_ir/dependence.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// The parts that both kinds of blocks share.
// Tiles are [step, lane] after the transpose: element (s, l) is step s of row l.
class BlockMaker : public ScanBlocks {
 public:
  BlockMaker(Program& program, const Loop& loop, const Scan& scan, int64_t width, bool backward)
      : program_(program), pool_(program.pool), loop_(loop), scan_(scan), width_(width),
        type_(program[scan.carried].type), maker_(program), backward_(backward), wanted_(Wanted()) {
  }

  Scope Before() override { return {}; }

  Scope At(IndexId first) override {
    first_ = first;
    Scope scope;
    const Held held = Run(scope);
    Append(scope, Elements([&](IndexId row, IndexId lane) { return Results(held, row, lane); }));
    return scope;
  }

 protected:
  // By row and lane of the stored elements.
  using Value = std::function<ValueId(IndexId row, IndexId lane)>;
  // The carried scalar after a step, and before it.
  struct Held {
    Value now, last;
  };

  // All steps of the block, without their stores.
  virtual Held Run(Scope& scope) = 0;

  bool WantsLast() const { return wanted_.contains(scan_.carried); }

  // The copies of a loop's statements at an element.
  StepCopy CopyAt(IndexId row, IndexId lane) { return StepCopy(program_, loop_, Place(row, lane)); }

  ValueId TermOf(const ScanPath::Term& term, StepCopy& copy, Scope& scope) {
    const ValueId value = copy.Value(term.value, scope);
    return term.negated ? program_.AddApply(ScalarOp::kNeg, {value}, type_) : value;
  }

  // tile[s, l] = first(l) where time begins, else next(the tile's element of the step
  // before, step, l).
  TensorId StepByStep(absl::string_view name, Scope& scope,
                      absl::FunctionRef<ValueId(IndexId lane)> first,
                      absl::FunctionRef<ValueId(ValueId last, IndexId step, IndexId lane)> next) {
    const TensorId tile = Tile(name, scope);
    const IndexId start = Step(pool_.Const(0));
    Append(scope, Lanes([&](IndexId lane) {
             return Assignment(tile, {start, lane}, first(lane));
           }));
    Append(scope, Rows(1, [&](IndexId row) {
             return Lanes([&](IndexId lane) {
               const ValueId last = Load(tile, Step(pool_.Sub(row, pool_.Const(1))), lane);
               return Assignment(tile, {Step(row), lane}, next(last, Step(row), lane));
             });
           }));
    return tile;
  }

  // The tile's values one step later.
  TensorId Earlier(TensorId tile, Scope& scope, absl::FunctionRef<ValueId(IndexId lane)> first) {
    const TensorId earlier = Tile("earlier", scope);
    Append(scope, Lanes([&](IndexId lane) {
             return Assignment(earlier, {Step(pool_.Const(0)), lane}, first(lane));
           }));
    Append(scope, Rows(1, [&](IndexId row) {
             return Lanes([&](IndexId lane) {
               return Assignment(earlier, {Step(row), lane},
                                 Load(tile, Step(pool_.Sub(row, pool_.Const(1))), lane));
             });
           }));
    return earlier;
  }

  // A row of lanes, in memory.
  TensorId Stored(absl::string_view name, Scope& scope,
                  absl::FunctionRef<ValueId(IndexId lane)> value) {
    const TensorId vector = Declared(name, {pool_.Const(width_)}, false, scope);
    Append(scope, Lanes([&](IndexId lane) { return Assignment(vector, {lane}, value(lane)); }));
    return vector;
  }

  // The carried scalar before each row. It is computed row by row, but apart from the rows'
  // results: these need not wait for each other.
  TensorId Starts(Scope& scope, absl::FunctionRef<ValueId(ValueId start, IndexId row)> next) {
    const TensorId starts = Declared("starts", {pool_.Const(width_)}, false, scope);
    Append(scope, Rows(0, [&](IndexId r) {
             const IndexId row = Step(r);
             const ValueId start = program_.AddLoad({scan_.carried, {}});
             Scope inside = Assignment(starts, {row}, start);
             Append(inside, Assignment(scan_.carried, {}, next(start, row)));
             return inside;
           }));
    return starts;
  }

  // The row, or the element of a row, that is number i in time.
  IndexId Step(IndexId i) { return backward_ ? pool_.Sub(pool_.Const(width_ - 1), i) : i; }

  ValueId Apply(ScalarOp op, ValueId a, ValueId b) { return program_.AddApply(op, {a, b}, type_); }
  ValueId Load(TensorId tile, IndexId row, IndexId column) {
    return program_.AddLoad({tile, {row, column}});
  }
  ValueId Load(TensorId vector, IndexId lane) { return program_.AddLoad({vector, {lane}}); }

  TensorId Tile(absl::string_view name, Scope& scope) {
    return Declared(name, {pool_.Const(width_), pool_.Const(width_)}, true, scope);
  }
  // A new scalar with the value.
  ValueId Kept(absl::string_view name, ValueId value, Scope& scope) {
    const TensorId scalar = Declared(name, {}, false, scope);
    scope.push_back(AssignmentOf(scalar, value));
    return program_.AddLoad({scalar, {}});
  }

  Scope Rows(int64_t begin, LoopMaker::Body body) {
    return maker_.Between("r", pool_.Const(begin), pool_.Const(width_), kUnrolled, body);
  }
  Scope Lanes(LoopMaker::Body body) {
    return maker_.Counted("l", pool_.Const(width_), kVector, body);
  }
  Scope Elements(absl::FunctionRef<Scope(IndexId row, IndexId lane)> body) {
    return Rows(0,
                [&](IndexId row) { return Lanes([&](IndexId lane) { return body(row, lane); }); });
  }

  Program& program_;
  IndexPool& pool_;
  const Loop& loop_;
  const Scan& scan_;
  const int64_t width_;
  const DType type_;

 private:
  Scope Results(const Held& held, IndexId row, IndexId lane) {
    Scope inside;
    StepCopy copy = CopyAt(row, lane);
    if (absl::c_any_of(scan_.results, [&](TensorId result) { return wanted_.contains(result); })) {
      const ValueId now = Kept("now", held.now(row, lane), inside);
      for (TensorId result : scan_.results) copy.Replace(result, now);
    }
    if (WantsLast()) copy.Replace(scan_.carried, Kept("last", held.last(row, lane), inside));
    copy.Stores(inside);
    return inside;
  }

  // The scalars that stores need, without those from which results are computed.
  absl::flat_hash_set<TensorId> Wanted() const {
    absl::flat_hash_set<TensorId> wanted;
    for (auto item = loop_.body.rbegin(); item != loop_.body.rend(); ++item) {
      const auto* statement = item->As<Statement>();
      if (statement == nullptr) continue;
      const TensorId target = statement->target.tensor;
      const bool stores = !program_[target].shape.empty();
      if (!stores && (!wanted.contains(target) || scan_.results.contains(target))) continue;
      VisitLoads(program_, statement->value,
                 [&](ValueId, const Access& access) { wanted.insert(access.tensor); });
    }
    return wanted;
  }

  // The loop's index at element `lane` of row `row`.
  IndexId Place(IndexId row, IndexId lane) {
    const IndexId element = pool_.Add(pool_.Mul(pool_.Const(width_), row), lane);
    if (!backward_) return pool_.Add(first_, element);
    return pool_.Sub(pool_.Add(first_, pool_.Const(width_ * width_ - 1)), element);
  }

  TensorId Declared(absl::string_view name, Shape shape, bool is_register, Scope& scope) {
    const TensorId tensor = program_.AddTensor(
        {std::string(name), type_, std::move(shape), Storage::kTemp, ReduceOp::kSum, is_register});
    scope.push_back(DeclarationOf(tensor));
    return tensor;
  }

  LoopMaker maker_;
  const bool backward_;
  const absl::flat_hash_set<TensorId> wanted_;
  IndexId first_;
};

// Scans by one operation: a row's results combine the result before it and the scan of its terms.
//
//   scans[s, l] = scans[s - 1, l] + terms[l, s]    each row by itself, in lanes
//   starts[r + 1] = starts[r] + scans[W - 1, r]    from row to row
//   results (r, l) = starts[r] + scans[l, r]       in lanes along memory
class ScansOfOne : public BlockMaker {
 public:
  using BlockMaker::BlockMaker;

 private:
  Held Run(Scope& scope) override {
    const TensorId terms = Terms(scope);
    const TensorId scans = StepByStep(
        "scans", scope, [&](IndexId lane) { return Load(terms, lane, Step(pool_.Const(0))); },
        [&](ValueId last, IndexId step, IndexId lane) {
          return Combine(last, Load(terms, lane, step));
        });
    const IndexId end = Step(pool_.Const(width_ - 1));
    const TensorId ends =
        Stored("ends", scope, [&](IndexId lane) { return Load(scans, end, lane); });
    const ValueId nothing = program_.AddConstant(Nothing());
    const TensorId earlier =
        WantsLast() ? Earlier(scans, scope, [&](IndexId) { return nothing; }) : TensorId();
    const TensorId starts = Starts(scope, [&](ValueId start, IndexId row) {
      const ValueId step = Load(ends, row);
      return NESTOR_MUTANT("scan_row_starts_anew") ? step : Combine(start, step);
    });
    const auto from_start = [this, starts](TensorId tile) -> Value {
      return [this, starts, tile](IndexId row, IndexId lane) {
        return Combine(Load(starts, row), Load(tile, lane, row));
      };
    };
    return {from_start(scans), from_start(earlier)};
  }

  // The terms, read by rows of memory.
  TensorId Terms(Scope& scope) {
    const TensorId terms = Tile("terms", scope);
    Append(scope, Elements([&](IndexId row, IndexId lane) {
             Scope inside;
             StepCopy copy = CopyAt(row, lane);
             const std::vector<ScanPath::Term>& all = scan_.path.terms;
             ValueId sum = TermOf(all.back(), copy, inside);
             for (size_t i = all.size() - 1; i-- > 0;)
               sum = Combine(sum, TermOf(all[i], copy, inside));
             Append(inside, Assignment(terms, {row, lane}, sum));
             return inside;
           }));
    return terms;
  }

  // x op nothing is x, to the bit.
  Scalar Nothing() const {
    switch (scan_.path.op()) {
      case ScalarOp::kAdd:
        return IsFloat(type_) ? Scalar::Float(type_, -0.0) : Identity(ReduceOp::kSum, type_);
      case ScalarOp::kMul: return Identity(ReduceOp::kProd, type_);
      case ScalarOp::kMax: return Identity(ReduceOp::kMax, type_);
      default: return Identity(ReduceOp::kMin, type_);
    }
  }

  ValueId Combine(ValueId a, ValueId b) { return Apply(scan_.path.op(), a, b); }
};

// Scans by sums and products: a step is h -> factor * h + term.
//
//   sums[s, l] = sums[s - 1, l]*a + b              each row from 0; product[l]: its factors
//   starts[r + 1] = starts[r]*product[r] + sums[W - 1, r]
//   scans[s, l] = scans[s - 1, l]*a + b            each row from starts[l]: the results
class LinearScans : public BlockMaker {
 public:
  LinearScans(Program& program, const Loop& loop, const Scan& scan, int64_t width, bool backward)
      : BlockMaker(program, loop, scan, width, backward), same_factor_(HasSameFactor()) {}

  // Computes the factor, and the product of the factors of a row, where it is the same
  // at all steps.
  Scope Before() override {
    Scope scope;
    if (!same_factor_) return scope;
    StepCopy copy(program_, loop_, loop_.begin);
    absl::optional<ValueId> factor;
    for (const ScanPath::Term& term : scan_.path.terms) {
      if (term.op == ScalarOp::kMul) Combine(ScalarOp::kMul, TermOf(term, copy, scope), factor);
    }
    factor_ = Kept("factor", *factor, scope);
    product_ = factor_;
    for (int64_t i = 1; i < width_; ++i)
      product_ = Kept("product", Apply(ScalarOp::kMul, product_, factor_), scope);
    return scope;
  }

 private:
  struct LinearStep {
    absl::optional<ValueId> factor, term;
  };
  // By step and lane.
  struct Steps {
    TensorId factors, terms;
  };

  Held Run(Scope& scope) override {
    const Steps steps = StepsOf(scope);
    const auto next = [&](ValueId last, IndexId step, IndexId lane) {
      return Apply(ScalarOp::kAdd, Apply(ScalarOp::kMul, last, Factor(steps, step, lane)),
                   Load(steps.terms, step, lane));
    };
    const IndexId begin = Step(pool_.Const(0)), end = Step(pool_.Const(width_ - 1));
    const TensorId sums = StepByStep(
        "sums", scope, [&](IndexId lane) { return Load(steps.terms, begin, lane); }, next);
    const TensorId ends =
        Stored("ends", scope, [&](IndexId lane) { return Load(sums, end, lane); });
    const TensorId products = same_factor_ ? TensorId() : Products(steps, scope);
    const TensorId starts = Starts(scope, [&](ValueId start, IndexId row) {
      const ValueId product = same_factor_ ? product_ : Load(products, row);
      return Apply(ScalarOp::kAdd, Apply(ScalarOp::kMul, start, product), Load(ends, row));
    });
    const TensorId scans = StepByStep(
        "scans", scope, [&](IndexId lane) { return next(Load(starts, lane), begin, lane); }, next);
    const TensorId earlier =
        WantsLast() ? Earlier(scans, scope, [&](IndexId lane) { return Load(starts, lane); })
                    : TensorId();
    const auto by_columns = [this](TensorId tile) -> Value {
      return [this, tile](IndexId row, IndexId lane) { return Load(tile, lane, row); };
    };
    return {by_columns(scans), by_columns(earlier)};
  }

  // The products of the factors of each lane's row.
  TensorId Products(const Steps& steps, Scope& scope) {
    const TensorId products = StepByStep(
        "products", scope, [&](IndexId lane) { return Factor(steps, Step(pool_.Const(0)), lane); },
        [&](ValueId last, IndexId step, IndexId lane) {
          return Apply(ScalarOp::kMul, last, Factor(steps, step, lane));
        });
    return Stored("row_products", scope, [&](IndexId lane) {
      return Load(products, Step(pool_.Const(width_ - 1)), lane);
    });
  }

  // Steps are read by rows of memory, and held by columns.
  Steps StepsOf(Scope& scope) {
    const TensorId terms = Tile("terms", scope),
                   factors = same_factor_ ? TensorId() : Tile("factors", scope);
    Append(scope, Elements([&](IndexId row, IndexId lane) {
             Scope inside;
             StepCopy copy = CopyAt(row, lane);
             const LinearStep step = StepOf(copy, inside);
             Append(inside, Assignment(terms, {row, lane}, *step.term));
             if (!same_factor_) Append(inside, Assignment(factors, {row, lane}, *step.factor));
             return inside;
           }));
    return {same_factor_ ? TensorId() : Turned(factors, scope), Turned(terms, scope)};
  }

  TensorId Turned(TensorId tile, Scope& scope) {
    const TensorId turned = Tile("turned", scope);
    Append(scope, Elements([&](IndexId row, IndexId lane) {
             return Assignment(turned, {row, lane}, Load(tile, lane, row));
           }));
    return turned;
  }

  ValueId Factor(const Steps& steps, IndexId step, IndexId lane) {
    return same_factor_ ? factor_ : Load(steps.factors, step, lane);
  }

  // Factor and term both exist, as the scan adds and multiplies.
  LinearStep StepOf(StepCopy& copy, Scope& scope) {
    LinearStep step;
    for (auto term = scan_.path.terms.rbegin(); term != scan_.path.terms.rend(); ++term) {
      const ValueId value = TermOf(*term, copy, scope);
      if (term->op == ScalarOp::kAdd) {
        Combine(ScalarOp::kAdd, value, step.term);
        continue;
      }
      Combine(ScalarOp::kMul, value, step.factor);
      if (step.term) step.term = Apply(ScalarOp::kMul, *step.term, value);
    }
    return step;
  }

  // `with` becomes the value, or itself combined with it.
  void Combine(ScalarOp op, ValueId value, absl::optional<ValueId>& with) {
    with = with ? Apply(op, *with, value) : value;
  }

  // Whether nothing in the factors moves with the loop.
  bool HasSameFactor() const {
    return absl::c_all_of(scan_.path.terms, [&](const ScanPath::Term& term) {
      return term.op == ScalarOp::kAdd || !Moves(term.value);
    });
  }

  bool Moves(ValueId root) const {
    const std::vector<TensorId> own = DeclaredIn(loop_.body);
    bool any = false;
    VisitValues(program_, root, [&](ValueId, const loop::Value& value) {
      if (const auto* index = absl::get_if<IndexValue>(&value.node))
        any |= HoldsVar(pool_, index->index, loop_.var);
      const auto* load = absl::get_if<LoadValue>(&value.node);
      if (load == nullptr) return;
      any |= absl::c_linear_search(own, load->access.tensor) ||
             DependsOn(program_, load->access, loop_);
    });
    return any;
  }

  const bool same_factor_;
  ValueId factor_, product_;  // where same_factor_
};

}  // namespace

std::unique_ptr<ScanBlocks> BlocksOf(Program& program, const Loop& loop, const Scan& scan,
                                     int64_t width, bool backward) {
  if (scan.path.IsLinear())
    return absl::make_unique<LinearScans>(program, loop, scan, width, backward);
  return absl::make_unique<ScansOfOne>(program, loop, scan, width, backward);
}

}  // namespace nestor::loop
