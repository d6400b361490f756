// A loop is read as a list of definitions of scalars and stores. From what the carried scalar
// is assigned a path of one operation leads back to it; what stands beside that path are the
// terms. All that the terms need runs before the scan of a block, and the stores behind it
// with all that they need, once more where both do: it depends on no other step.
//
// (Blelloch, "Prefix sums and their applications", 1990, has the three phases.)
#include "jit/schedule/scan_lanes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/reordering.h"
#include "jit/schedule/replace_loops.h"
#include "jit/target/lanes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/lanes.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "loop_ir/scans.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

using loop::Access;
using loop::AccessKind;
using loop::Declaration;
using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::Storage;
using loop::TensorId;
using loop::ValueId;

struct Scan {
  TensorId carried;
  const Statement* update;  // of `carried`
  loop::ScanPath path;      // from there back to it, through scalars of the loop's own
  absl::flat_hash_set<TensorId> results;  // the loop's own scalars that hold what `carried` becomes
};

// ---- What a loop is

class ScanFinder {
 public:
  ScanFinder(const Program& program, const Loop& loop) : program_(program), loop_(loop), dependent_(program) {
    const std::vector<TensorId> own = fusion::DeclaredIn(loop.body);
    own_.insert(own.begin(), own.end());
  }

  absl::optional<Scan> Find() {
    Scan scan;
    if (!ReadBody(scan) || !KeepsApart(scan) || !FindTerms(scan)) return absl::nullopt;
    return scan;
  }

 private:
  // Definitions of scalars, each once, stores, and one scalar from outside. Nothing else is the loop's own.
  bool ReadBody(Scan& scan) {
    scan.update = nullptr;
    for (const Item& item : loop_.body) {
      if (item.As<Loop>() != nullptr) return false;
      const auto* declaration = item.As<Declaration>();
      if (declaration != nullptr && !program_[declaration->tensor].shape.empty()) return false;
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) continue;
      const TensorId target = statement->target.tensor;
      if (statement->op) return false;
      if (!program_[target].shape.empty()) continue;
      if (statement->target.masked || !definitions_.emplace(target, statement).second) return false;
      if (own_.contains(target)) continue;
      if (scan.update != nullptr) return false;
      scan.update = statement;
      scan.carried = target;
    }
    return scan.update != nullptr;
  }

  // Whether nothing that is stored is read, but the carried scalar, by values before its update.
  bool KeepsApart(const Scan& scan) const {
    const loop::Footprint footprint = FootprintOf(program_, loop_.body);
    for (TensorId tensor : footprint.writes) {
      if (footprint.reads.contains(tensor) && tensor != scan.carried) return false;
    }
    bool updated = false, good = true;
    for (const Item& item : loop_.body) {
      VisitIndices(program_, item, [&](IndexId e) { good = good && !LoadsFrom(program_.pool, e, scan.carried); });
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) continue;
      VisitValues(program_, statement->value, [&](ValueId, const loop::Value& value) {
        const auto* load = absl::get_if<loop::LoadValue>(&value.node);
        if (load == nullptr || !program_[load->access.tensor].shape.empty()) return;
        if (load->access.tensor == scan.carried) good = good && !updated;
        good = good && !load->access.masked;
      });
      updated |= statement == scan.update;
    }
    return good;
  }

  // Marks the values that depend on the carried scalar.
  void FindDependent(const Scan& scan) {
    absl::flat_hash_set<TensorId> scalars = {scan.carried};
    for (const Item& item : loop_.body) {
      const auto* statement = item.As<Statement>();
      if (statement != nullptr && dependent_.Add(statement->value, scalars)) scalars.insert(statement->target.tensor);
    }
  }

  // From what the carried scalar becomes back to itself.
  bool FindTerms(Scan& scan) {
    FindDependent(scan);
    const DType type = program_[scan.carried].type;
    for (const Statement* at = scan.update; dependent_.Contains(at->value) && program_[at->value].type == type;) {
      if (!FollowPath(program_, at->value, dependent_, scan.path)) return false;
      const TensorId earlier = absl::get<loop::LoadValue>(program_[scan.path.end].node).access.tensor;
      if (earlier == scan.carried) return scan.path.op.has_value();
      if (!scan.path.op) scan.results.insert(earlier);
      at = definitions_.at(earlier);
    }
    return false;
  }

  const Program& program_;
  const Loop& loop_;
  absl::flat_hash_set<TensorId> own_;
  absl::flat_hash_map<TensorId, const Statement*> definitions_;  // of scalars
  loop::DependentValues dependent_;
};

// ---- What becomes of it

// Copies of some of a loop's statements for one place of its index.
class StepCopy {
 public:
  StepCopy(Program& program, const Loop& loop, IndexId at) : program_(program), loop_(loop), replace_(program) {
    replace_.Set(loop.var, at);
  }

  // `value` stands for each read of the scalar, which is not defined any more.
  void Replace(TensorId scalar, ValueId value) { known_[scalar] = value; }

  // The value at this place; `scope` gets what it needs.
  ValueId Value(ValueId value, Scope& scope) {
    Define(value, scope);
    const ValueId copy = RewriteValues(program_, value, [&](ValueId id) -> absl::optional<ValueId> {
      const auto* load = absl::get_if<loop::LoadValue>(&program_[id].node);
      const auto known = load == nullptr ? known_.end() : known_.find(load->access.tensor);
      return known == known_.end() ? absl::nullopt : absl::optional<ValueId>(known->second);
    });
    return RewriteIndices(program_, copy, [&](IndexId e) { return replace_(e); });
  }

  void Stores(Scope& scope) {
    for (const Item& item : loop_.body) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || program_[statement->target.tensor].shape.empty()) continue;
      const ValueId value = Value(statement->value, scope);
      scope.push_back(item);
      Statement& copy = *scope.back().As<Statement>();
      copy.value = value;
      copy.target = RewriteAccess(program_, statement->target, [&](IndexId e) { return replace_(e); });
    }
  }

 private:
  // The scalars of the loop's own that the value reads, in the order of the text.
  void Define(ValueId value, Scope& scope) {
    absl::flat_hash_set<TensorId> wanted;
    const auto want = [&](ValueId root) {
      VisitValues(program_, root, [&](ValueId, const loop::Value& v) {
        const auto* load = absl::get_if<loop::LoadValue>(&v.node);
        if (load != nullptr && !known_.contains(load->access.tensor)) wanted.insert(load->access.tensor);
      });
    };
    want(value);
    std::vector<const Statement*> definitions;
    for (auto item = loop_.body.rbegin(); item != loop_.body.rend(); ++item) {
      const auto* statement = item->As<Statement>();
      if (statement == nullptr || !wanted.contains(statement->target.tensor)) continue;
      definitions.push_back(statement);
      want(statement->value);
    }
    for (size_t i = definitions.size(); i-- > 0;) {
      loop::TensorInfo info = program_[definitions[i]->target.tensor];
      const TensorId copy = program_.AddTensor(std::move(info));
      const ValueId computed = Value(definitions[i]->value, scope);
      scope.push_back(fusion::DeclarationOf(copy));
      scope.push_back(fusion::AssignmentOf(copy, computed));
      known_[definitions[i]->target.tensor] = program_.AddLoad({copy, {}});
    }
  }

  Program& program_;
  const Loop& loop_;
  loop::VarReplacement replace_;
  absl::flat_hash_map<TensorId, ValueId> known_;
};

// The block of width * width steps that begins at `first`. A tile's rows are `width` elements
// beside each other, whichever way time goes; that is also how many lanes there are.
class ScanBlock {
 public:
  ScanBlock(Program& program, const Loop& loop, const Scan& scan, int64_t width, bool backward, IndexId first)
      : program_(program), pool_(program.pool), maker_(program), loop_(loop), scan_(scan), width_(width),
        backward_(backward), first_(first), type_(program[scan.carried].type), wanted_(Wanted()) {}

  Scope Make() {
    Scope scope;
    const TensorId terms = Terms(scope);
    const TensorId scans = Scans(terms, scope);
    const TensorId ends = Declared("ends", {pool_.Const(width_)}, false, scope);
    const IndexId last = Step(pool_.Const(width_ - 1));
    Append(scope, Lanes([&](IndexId lane) { return Assignment(ends, {lane}, At(scans, last, lane)); }));
    const TensorId earlier = wanted_.contains(scan_.carried) ? Earlier(scans, scope) : TensorId();
    const TensorId starts = Starts(ends, scope);
    Append(scope, Rows(0, [&](IndexId row) { return Results(scans, earlier, starts, row); }));
    return scope;
  }

 private:
  TensorId Terms(Scope& scope) {
    const TensorId terms = Tile("terms", scope);
    Append(scope, Rows(0, [&](IndexId row) {
      return Lanes([&](IndexId lane) {
        Scope inside;
        StepCopy copy(program_, loop_, Place(row, lane));
        const std::vector<loop::ScanPath::Term>& all = scan_.path.terms;
        ValueId sum = Term(all.back(), copy, inside);
        for (size_t i = all.size() - 1; i-- > 0;) sum = Apply(sum, Term(all[i], copy, inside));
        Append(inside, Assignment(terms, {row, lane}, sum));
        return inside;
      });
    }));
    return terms;
  }

  ValueId Term(const loop::ScanPath::Term& term, StepCopy& copy, Scope& scope) {
    const ValueId value = copy.Value(term.value, scope);
    return term.negated ? program_.AddApply(ScalarOp::kNeg, {value}, type_) : value;
  }

  // scans[s, l]: of row l, from where time begins in it up to element s.
  TensorId Scans(TensorId terms, Scope& scope) {
    const TensorId scans = Tile("scans", scope);
    const IndexId start = Step(pool_.Const(0));
    Append(scope, Lanes([&](IndexId lane) { return Assignment(scans, {start, lane}, At(terms, lane, start)); }));
    Append(scope, Rows(1, [&](IndexId row) {
      return Lanes([&](IndexId lane) {
        const ValueId last = At(scans, Step(pool_.Sub(row, pool_.Const(1))), lane);
        return Assignment(scans, {Step(row), lane}, Apply(last, At(terms, lane, Step(row))));
      });
    }));
    return scans;
  }

  // The same up to the step before element s.
  TensorId Earlier(TensorId scans, Scope& scope) {
    const TensorId earlier = Tile("earlier", scope);
    const ValueId nothing = program_.AddConstant(Nothing());
    Append(scope, Lanes([&](IndexId lane) { return Assignment(earlier, {Step(pool_.Const(0)), lane}, nothing); }));
    Append(scope, Rows(1, [&](IndexId row) {
      return Lanes([&](IndexId lane) {
        return Assignment(earlier, {Step(row), lane}, At(scans, Step(pool_.Sub(row, pool_.Const(1))), lane));
      });
    }));
    return earlier;
  }

  // What the carried scalar is before each row. A row after the other, but apart from the rows' results: these need not
  // wait for each other.
  TensorId Starts(TensorId ends, Scope& scope) {
    const TensorId starts = Declared("starts", {pool_.Const(width_)}, false, scope);
    Append(scope, Rows(0, [&](IndexId r) {
      const IndexId row = Step(r);
      const ValueId end = program_.AddLoad({ends, {row}});
      const ValueId start = program_.AddLoad({scan_.carried, {}});
      Scope inside = Assignment(starts, {row}, start);
      Append(inside, Assignment(scan_.carried, {}, NESTOR_MUTANT("scan_row_starts_anew") ? end : Apply(start, end)));
      return inside;
    }));
    return starts;
  }

  // Row `row` of the results.
  Scope Results(TensorId scans, TensorId earlier, TensorId starts, IndexId row) {
    const ValueId start = program_.AddLoad({starts, {row}});
    return Lanes([&](IndexId lane) {
      Scope inside;
      StepCopy copy(program_, loop_, Place(row, lane));
      if (absl::c_any_of(scan_.results, [&](TensorId result) { return wanted_.contains(result); })) {
        const ValueId now = Held("now", Apply(start, At(scans, lane, row)), inside);
        for (TensorId result : scan_.results) copy.Replace(result, now);
      }
      if (wanted_.contains(scan_.carried)) {
        copy.Replace(scan_.carried, Held("last", Apply(start, At(earlier, lane, row)), inside));
      }
      copy.Stores(inside);
      return inside;
    });
  }

  // The scalars that stores need, but for what results are computed from.
  absl::flat_hash_set<TensorId> Wanted() const {
    absl::flat_hash_set<TensorId> wanted;
    for (auto item = loop_.body.rbegin(); item != loop_.body.rend(); ++item) {
      const auto* statement = item->As<Statement>();
      if (statement == nullptr) continue;
      const TensorId target = statement->target.tensor;
      const bool stores = !program_[target].shape.empty();
      if (!stores && (!wanted.contains(target) || scan_.results.contains(target))) continue;
      VisitValues(program_, statement->value, [&](ValueId, const loop::Value& value) {
        const auto* load = absl::get_if<loop::LoadValue>(&value.node);
        if (load != nullptr) wanted.insert(load->access.tensor);
      });
    }
    return wanted;
  }

  // x op nothing is x, to the bit.
  Scalar Nothing() const {
    switch (*scan_.path.op) {
      case ScalarOp::kAdd: return IsFloat(type_) ? Scalar::Float(type_, -0.0) : Identity(ReduceOp::kSum, type_);
      case ScalarOp::kMul: return Identity(ReduceOp::kProd, type_);
      case ScalarOp::kMax: return Identity(ReduceOp::kMax, type_);
      default: return Identity(ReduceOp::kMin, type_);
    }
  }

  // Where the loop's index is at element `lane` of row `row`.
  IndexId Place(IndexId row, IndexId lane) {
    const IndexId element = pool_.Add(pool_.Mul(pool_.Const(width_), row), lane);
    if (!backward_) return pool_.Add(first_, element);
    return pool_.Sub(pool_.Add(first_, pool_.Const(width_ * width_ - 1)), element);
  }
  // The row, or the element of a row, that is number i in time.
  IndexId Step(IndexId i) { return backward_ ? pool_.Sub(pool_.Const(width_ - 1), i) : i; }

  ValueId Apply(ValueId a, ValueId b) { return program_.AddApply(*scan_.path.op, {a, b}, type_); }
  ValueId At(TensorId tile, IndexId row, IndexId column) { return program_.AddLoad({tile, {row, column}}); }

  TensorId Tile(absl::string_view name, Scope& scope) {
    return Declared(name, {pool_.Const(width_), pool_.Const(width_)}, true, scope);
  }
  TensorId Declared(absl::string_view name, Shape shape, bool is_register, Scope& scope) {
    const TensorId tensor =
        program_.AddTensor({std::string(name), type_, std::move(shape), Storage::kTemp, ReduceOp::kSum, is_register});
    scope.push_back(fusion::DeclarationOf(tensor));
    return tensor;
  }

  // A new scalar with the value.
  ValueId Held(absl::string_view name, ValueId value, Scope& scope) {
    const TensorId scalar = Declared(name, {}, false, scope);
    scope.push_back(fusion::AssignmentOf(scalar, value));
    return program_.AddLoad({scalar, {}});
  }

  Scope Rows(int64_t begin, LoopMaker::Body body) {
    return maker_.Between("r", pool_.Const(begin), pool_.Const(width_), kUnrolled, body);
  }
  Scope Lanes(LoopMaker::Body body) { return maker_.Counted("l", pool_.Const(width_), kVector, body); }

  Program& program_;
  IndexPool& pool_;
  LoopMaker maker_;
  const Loop& loop_;
  const Scan& scan_;
  const int64_t width_;
  const bool backward_;
  const IndexId first_;
  const DType type_;
  const absl::flat_hash_set<TensorId> wanted_;
};

class LaneScans {
 public:
  LaneScans(Program& program, const ScanLanesOptions& options)
      : program_(program), pool_(program.pool), options_(options), ranges_(program) {}

  bool Run() {
    return ReplaceLoops(program_, ranges_, [&](Loop& loop) -> absl::optional<Scope> {
      if (loop.step != 1) return absl::nullopt;
      const absl::optional<Scan> scan = ScanFinder(program_, loop).Find();
      if (!scan || !MayReorder(*scan->path.op, program_[scan->carried].type, options_.reorders_rounding)) return absl::nullopt;
      const absl::optional<bool> backward = Direction(loop);
      const int64_t width = LanesOf(program_[scan->carried].type, options_.isa);
      if (!backward || !Qualifies(loop, *scan, width)) return absl::nullopt;
      return InBlocks(loop, *scan, width, *backward);
    });
  }

 private:
  // Whether time runs backward along memory; nullopt where most accesses jump.
  absl::optional<bool> Direction(const Loop& loop) {
    int up = 0, down = 0, jumps = 0;
    for (const Item& item : loop.body) {
      VisitAccesses(program_, item, [&](TensorId, absl::Span<const IndexId> place, AccessKind) {
        const auto moves = [&](IndexId e) { return HoldsVar(pool_, e, loop.var); };
        if (absl::c_none_of(place, moves)) return;
        const auto step = CoefficientOf(program_, place.back(), loop.var);
        const bool along_row = step && absl::c_none_of(place.first(place.size() - 1), moves);
        const bool is_up = along_row && pool_.IsConst(*step, 1), is_down = along_row && pool_.IsConst(*step, -1);
        ++(is_up ? up : is_down ? down : jumps);
      });
    }
    if (std::max(up, down) <= 2 * (jumps + std::min(up, down))) return absl::nullopt;
    return down > up;
  }

  bool Qualifies(const Loop& loop, const Scan& scan, int64_t width) {
    if (LanesOf(program_, loop, options_.isa) != width || !RunsInLanes(program_, ranges_, loop)) return false;
    // Nothing is carried but the scalar.
    Loop rest = loop;
    rest.body.erase(std::remove_if(rest.body.begin(), rest.body.end(), [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      return statement != nullptr && statement->target.tensor == scan.carried;
    }), rest.body.end());
    return !CarriedTensor(program_, rest).has_value();
  }

  // As many steps as there are before rows of a block are whole vectors of memory, if a row of
  // what is stored begins with one.
  IndexId StepsBefore(const Loop& loop, int64_t width, bool backward) {
    for (const Item& item : loop.body) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || statement->target.place.empty()) continue;
      const IndexId place = statement->target.place.back();
      const auto step = CoefficientOf(program_, place, loop.var);
      if (!step || !pool_.IsConst(*step, backward ? -1 : 1)) continue;
      loop::VarReplacement start(program_);
      start.Set(loop.var, loop.begin);
      const IndexId first = start(place), zero = pool_.Const(0);
      const IndexId steps = backward ? pool_.Add(first, pool_.Const(1)) : pool_.Sub(zero, first);
      return pool_.Mod(steps, pool_.Const(width));
    }
    return pool_.Const(0);
  }

  // The loop in three parts: up to a whole vector, whole blocks, and the rest.
  absl::optional<Scope> InBlocks(Loop& loop, const Scan& scan, int64_t width, bool backward) {
    const IndexId steps = pool_.Const(width * width);
    Loop rest = loop;
    rest.begin = pool_.Add(loop.begin, StepsBefore(loop, width, backward));
    if (ranges_.Less(pool_.Sub(rest.end, rest.begin), steps)) return absl::nullopt;
    const IndexId blocks = pool_.Div(ranges_.LengthOf(rest), steps);
    Scope scope;
    if (loop.begin != rest.begin) Append(scope, Fresh(loop, pool_.Min(rest.begin, loop.end)));
    Append(scope, LoopMaker(program_).Counted(program_.vars[loop.var], blocks, kPlain, [&](IndexId block) {
      const IndexId first = pool_.Add(rest.begin, pool_.Mul(block, steps));
      return ScanBlock(program_, loop, scan, width, backward, first).Make();
    }));
    rest.begin = pool_.Add(rest.begin, pool_.Mul(blocks, steps));
    if (!pool_.IsConst(pool_.Sub(rest.end, rest.begin), 0)) Append(scope, ScopeOf(std::move(rest)));
    return scope;
  }

  // A copy of the loop up to `end`, with an index and tensors of its own.
  Scope Fresh(const Loop& loop, IndexId end) {
    Loop part = loop;
    part.end = end;
    absl::optional<Loop> copy = fusion::FreshCopy(program_, ranges_, part);
    return copy ? ScopeOf(*std::move(copy)) : Scope();
  }

  Program& program_;
  IndexPool& pool_;
  const ScanLanesOptions& options_;
  loop::Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> ScanInLanes(Program& program, const ScanLanesOptions& options) {
  return LaneScans(program, options).Run();
}

}  // namespace nestor::jit
