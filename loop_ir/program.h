// The nested-loop IR: how a program is computed.
//
// A Program has a scope: an ordered list of declarations, loops and statements; a loop's body is a
// scope too. There are two statements, assignment and accumulation, and no branches. Tensors are
// not SSA. verify.h lists the invariants, text.h describes the text form.
//
//   program mean(x: f32[N, K]) -> (y: f32[N]) {
//     for n in [0, N) {                  # a Loop, the only item of the program's body; its own:
//       acc s: f32 = sum                 #   a Declaration of a TensorInfo, with kAccumulator
//       for k in [0, K) { s += x[n, k] } #   a Loop; its Statement has an op, kSum
//       y[n] = s / f32(index(K))         #   a Statement without one: an assignment
//     }
//   }
//
// Values and index expressions live in arenas of the program and are immutable; scopes hold their
// ids. A Program is a value: copies are independent. Not thread-safe while it is changed.
#ifndef NESTOR_LOOP_IR_PROGRAM_H_
#define NESTOR_LOOP_IR_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "absl/types/variant.h"
#include "uops/dtype.h"
#include "uops/graph.h"
#include "uops/index/index_expr.h"
#include "uops/op.h"
#include "uops/scalar_op.h"

namespace nestor::loop {

// A tensor, by its number in Program::tensors.
struct TensorId {
  int32_t value = -1;
  friend bool operator==(TensorId a, TensorId b) { return a.value == b.value; }
  friend bool operator!=(TensorId a, TensorId b) { return a.value != b.value; }
  template <class H>
  friend H AbslHashValue(H h, TensorId id) {
    return H::combine(std::move(h), id.value);
  }
};

// A value, by its number in Program::values. Equal trees may have different numbers; operands have
// smaller ones than the values that they are in.
struct ValueId {
  int32_t value = -1;
  bool valid() const { return value >= 0; }
  friend bool operator==(ValueId a, ValueId b) { return a.value == b.value; }
  friend bool operator!=(ValueId a, ValueId b) { return a.value != b.value; }
};

// ---- Tensors

enum class Storage : uint8_t {
  kInput,        // an argument
  kOutput,       // a result; holds anything before its first write
  kTemp,         // fresh, unwritten, on each entry of the scope that declares it
  kAccumulator,  // a temp whose elements start at the identity of its op
};

// Extents are checked where the tensor is allocated: a negative one is an error there.
struct TensorInfo {
  std::string name;  // unique in the program
  DType type;        // of an arg accumulator: the type of the compared values
  Shape shape;       // over symbols and the loop indices in scope
  Storage storage = Storage::kTemp;
  ReduceOp op = ReduceOp::kSum;  // of an accumulator
  bool is_register = false;      // of a temp or accumulator: constant extents, for a register tile
  bool shape_only = false;       // of an input: only its dimensions are read
};

// The type that a read of the tensor gives: its own; for an arg accumulator i64, a place.
DType ReadType(const TensorInfo& tensor);

// ---- Index expressions of a program: Var(v) is loop index number v, Load(t, ..)
// an element of the integer tensor number t, a symbol a dimension or an integer
// $param.

// A place in a tensor. An unmasked access must be in range. Outside the tensor, or where a
// condition is false, a masked load gives `fill`, and a masked store is dropped, without evaluating
// its value.
//
//   x[i, k]                     tensor x, place {i, k}
//   x[i + r - 1, k | 0.0]       masked, with the fill 0.0: padding
//   drop y[i] if i < K = v      a masked store; its conditions are {i < K}
struct Access {
  TensorId tensor;
  IndexList place = {};
  bool masked = false;
  ValueId fill = {};  // of a masked load: a Constant, a ParamValue or an IndexValue of symbols
  IndexList conditions = {};
  // In a program that is `proven`: bit k is set where code has to find out whether axis k is in
  // range. (Bit kLastAxisBit stands for all axes from there on.) Bit kLoadsBit is set where it has
  // to find out whether loads in subscripts are in range; for those in conditions, it always has.
  uint64_t checked = 0;

  static constexpr size_t kLastAxisBit = 62, kLoadsBit = 63;
  // The bit of `checked` for an axis.
  static uint64_t CheckedBit(size_t axis) {
    return uint64_t{1} << (axis < kLastAxisBit ? axis : kLastAxisBit);
  }
  static constexpr uint64_t kCheckedLoads = uint64_t{1} << kLoadsBit;
  bool IsChecked(size_t axis) const { return (checked & CheckedBit(axis)) != 0; }
  bool ChecksLoads() const { return (checked & kCheckedLoads) != 0; }
};

// ---- Values: expression trees.

struct ConstantValue {
  Scalar value;
};
struct ParamValue {
  std::string name;
};  // a bool or float $param, with "$"
struct IndexValue {
  IndexId index;
};  // i64
struct LoadValue {
  Access access;
};
struct ApplyValue {  // a scalar op
  ScalarOp op;
  absl::InlinedVector<ValueId, 3> args;
};

// Shared trees are allowed: a value may be an operand of many. It is evaluated where a statement
// uses it, so what it gives depends on the scope.
struct Value {
  absl::variant<ConstantValue, ParamValue, IndexValue, LoadValue, ApplyValue> node;
  DType type;
};

// ---- Scopes

// `y[n] = value`, or `y[n] op= value` for one of the ops of ReduceOp. `position` is only for argmax
// and argmin: a[n] argmax= (value, position), with position an i64; a read of `a` gives the
// position that has won.
struct Statement {
  Access target;
  absl::optional<ReduceOp> op;
  ValueId value;
  ValueId position;
  bool streams = false;  // what is written is not read soon: whole vectors go past the caches
  // Conditions. Where one does not hold, the statement may or may not be left out: results are the
  // same, as when a product with 0 is added to a sum. The interpreter leaves it out; code does
  // where that is faster.
  IndexList needed_if = {};
};

// Declares a temp or an accumulator for the rest of the scope that holds the declaration. Each
// entry of the scope makes a new tensor: nothing is kept from one iteration to the next.
struct Declaration {
  TensorId tensor;
};

// Enough for the narrowest lanes of the widest vectors.
constexpr int kMostLanes = 64;

// A loop's attributes permit another order of execution, never another value. Those who set them
// prove that (dependence.h); who ignores them, as the interpreter does, is right as well.
struct LoopAttributes {
  bool parallel = false;  // iterations in any order, or at once
  bool vector = false;    // iterations in groups of lanes
  bool unroll = false;    // a copy of the body for each iteration; with lanes, for each vector
  int lanes = 0;          // of a vector loop: how many, a power of two; 0: not decided
  // How a loop with lanes that is not unrolled runs: so many vectors side by side, operation by
  // operation, while there are as many, then one by one. 0: not decided.
  int interleave = 0;
  // Of a loop with lanes: fewer iterations than lanes may be left at last, for a vector in which
  // the other lanes are masked. Without, its length is a multiple of the lanes.
  bool tail = false;

  // Whether it is decided how its vectors run.
  bool HasVectors() const { return lanes > 0 && (unroll || interleave > 0); }
};

// An element that is brought near because it is read soon; an unmasked access. It need not exist,
// but the elements that its indices load must.
struct Prefetch {
  Access access;
  // How near: into the first cache; or into the second, where so much else is read before it that
  // the first would lose it.
  enum class Cache : uint8_t { kFirst, kSecond };
  Cache cache = Cache::kFirst;
};

struct Item;
using Scope = std::vector<Item>;

struct Loop {   // for var in [begin, end) step step
  int32_t var;  // number of the loop index
  IndexId begin, end;
  int64_t step = 1;
  LoopAttributes attributes;
  Scope body;
  std::vector<Prefetch> prefetches = {};  // of each iteration
};

// Copying one copies what is below it; ids stay those of the same program.
struct Item {
  absl::variant<Loop, Statement, Declaration> node;

  template <class Kind>
  Kind* As() {
    return absl::get_if<Kind>(&node);
  }
  template <class Kind>
  const Kind* As() const {
    return absl::get_if<Kind>(&node);
  }
};

// The indices that one part of an op runs over, and what it computes from them. It describes the op
// as it was written, so a program keeps it whatever passes do to the loops: CheckDomains
// (intervals.h) decides before a run whether sizes and $params are legal, so that every engine and
// every stage of a program answers alike.
//
//   y[i] = x[i*$s + 1]    has the extents {N}, the places {i*$s + 1}
struct Domain {
  IndexList extents;  // the index Program::domain_vars[k] runs over [0, extents[k])
  // The affine parts of places and conditions. A division by zero is out of bounds there.
  IndexList places;
  IndexList values;  // numbers that the op computes with

  friend bool operator==(const Domain& a, const Domain& b) {
    return a.extents == b.extents && a.places == b.places && a.values == b.values;
  }
  template <class H>
  friend H AbslHashValue(H h, const Domain& d) {
    return H::combine(std::move(h), d.extents, d.places, d.values);
  }
};

// Which of several versions of its loops a program has, where sizes decide which one is fast (loop
// versioning).
struct VersionTest {
  IndexId flag;        // over symbols: 0 or 1
  bool value = false;  // at the sizes that the loops were made for
};

// Names in use, and what to call the next tensor or loop index of a name.
class UniqueNames {
 public:
  // `name`, or `name_2`, `name_3`...: the first that is free; it is taken then.
  std::string Take(absl::string_view name);

 private:
  absl::flat_hash_map<std::string, int> next_;  // the number to try next, by name taken
};

// Members are public, as passes rewrite all of them; the Add.. functions keep names unique and ids
// in order. `proven` and each access's `checked` are set together, by the pass that proves ranges.
struct Program {
  // In the source, so that not each file that copies or ends one compiles them anew.
  Program();
  Program(const Program&);
  Program(Program&&) noexcept;
  Program& operator=(const Program&);
  Program& operator=(Program&&) noexcept;
  ~Program();

  std::string name;
  IndexPool pool;
  std::vector<TensorInfo> tensors;
  std::vector<std::string> vars;  // names of the loop indices, unique in the program
  std::vector<Value> values;

  std::vector<TensorId> inputs;  // in the order of the signature
  std::vector<TensorId> outputs;
  std::vector<ParamInfo> params;
  std::vector<Equality> equalities;
  std::vector<RangeCheck> range_checks;
  std::vector<Domain> domains;
  // Numbers that are not affine, as `places` of domains: passes assumed that they stay in int64
  // (fusion/assume_products.h). Where sizes or $params may break that, the loops as they are now
  // may not run: see ProveNoOverflow.
  std::vector<Domain> assumptions;
  // Where a value is false, the loops are right at all sizes, but slow where the flag is 1; where it
  // is true, they may run only where the flag is 1: see ProveNoOverflow.
  std::vector<VersionTest> version;
  std::vector<int32_t> domain_vars;  // loop indices of no loop, shared by all domains
  // Temporaries that it declares itself are those of the whole program.
  Scope body;
  // Whether every access is known to be in range along each axis that it does not mark
  // `checked`.
  bool proven = false;
  UniqueNames tensor_names, var_names;

  const TensorInfo& operator[](TensorId id) const { return tensors[id.value]; }
  TensorInfo& operator[](TensorId id) { return tensors[id.value]; }
  const Value& operator[](ValueId id) const { return values[id.value]; }

  // Returns its id. The name is made unique: t, t_2, t_3... References to tensors and values are
  // invalid after the next Add... Declares nothing: the caller adds a Declaration.
  TensorId AddTensor(TensorInfo info);
  // A loop index named after `name`, made unique.
  int32_t AddVar(absl::string_view name);

  // Each makes a new value. REQUIRES: ids in it are those of values that are there, and types fit.
  ValueId AddConstant(Scalar value);
  // A bool or float $param; an integer one is a symbol in index expressions.
  ValueId AddParam(absl::string_view name, DType type);
  ValueId AddIndexValue(IndexId index);
  // Of the type that reads of the tensor have (ReadType).
  ValueId AddLoad(Access access);
  // `target`: the type of a cast, else ignored.
  ValueId AddApply(ScalarOp op, absl::Span<const ValueId> args, DType target = DType::kF32);
};

// ---- Traversal. None of these recurses through values, which may be nested to any
// depth: a sum of n terms is n deep.

// Calls `visit` on every value of the tree, operands first, fills included.
void VisitValues(const Program& program, ValueId id,
                 absl::FunctionRef<void(ValueId, const Value&)> visit);
// The same for the loads of the tree, without those in indices.
void VisitLoads(const Program& program, ValueId id,
                absl::FunctionRef<void(ValueId, const Access&)> visit);

Item DeclarationOf(TensorId tensor);

// Moves the items of `more` to the end of `scope`.
void Append(Scope& scope, Scope more);

// The tensors that the scope itself declares, in order.
std::vector<TensorId> DeclaredIn(const Scope& scope);

// Calls `visit` on every item of the scope and below, in order, a loop before its
// body.
void VisitItems(const Scope& scope, absl::FunctionRef<void(const Item&)> visit);
// The same for the item and those below it.
void VisitItems(const Item& item, absl::FunctionRef<void(const Item&)> visit);
// The same for all items of the program.
void VisitItems(const Program& program, absl::FunctionRef<void(const Item&)> visit);

// The loops around an item, the outermost first.
using LoopsAround = std::vector<const Loop*>;
// Calls `visit` on every item of the program, in order, with the loops around it.
void VisitItemsInLoops(const Program& program,
                       absl::FunctionRef<void(const Item&, const LoopsAround&)> visit);

// Calls `visit` on every index expression that the item itself holds: a loop's
// bounds, a statement's places and conditions and those in its values, a
// declaration's extents.
void VisitIndices(const Program& program, const Item& item, absl::FunctionRef<void(IndexId)> visit);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_PROGRAM_H_
