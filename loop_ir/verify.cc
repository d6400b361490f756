// One walk in the order of the text that keeps the tensors and loop indices in scope. Ids are
// checked first (verify_ids.h), so that messages can print what they are about. Sections are
// numbered by the invariants of verify.h that they check. Proofs (15 in part, 16) come last, as
// they presume a program that is well-formed otherwise.
#include "loop_ir/verify.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "loop_ir/dependence.h"
#include "loop_ir/operands.h"
#include "loop_ir/proofs.h"
#include "loop_ir/text.h"
#include "loop_ir/verify_ids.h"
#include "uops/invariant.h"
#include "uops/notation/parser.h"

namespace nestor::loop {
namespace {

bool IsIdentifier(absl::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         absl::c_all_of(name, [&](char c) { return letter(c) || digit(c); });
}

// Errors that name the program, and the item that is being verified.
class Messages {
 protected:
  explicit Messages(const Program& program) : program_(program) {}

  // Error(id, " is declared twice") -> "program softmax: in `temp t: f32[N]`: t is declared twice"
  template <class... Pieces>
  absl::Status Error(const Pieces&... pieces) const {
    return absl::InvalidArgumentError(
        absl::StrCat("program ", program_.name, ": ",
                     item_ == nullptr ? "" : absl::StrCat("in `", ToText(program_, *item_), "`: "),
                     Text(pieces)...));
  }

  const Program& program_;
  const Item* item_ = nullptr;  // where we are; null: the signature

 private:
  std::string Text(absl::string_view text) const { return std::string(text); }
  std::string Text(int64_t number) const { return absl::StrCat(number); }
  std::string Text(DType type) const { return std::string(Name(type)); }
  std::string Text(TensorId tensor) const { return program_[tensor].name; }
  std::string Text(IndexId index) const { return ToText(program_, index); }
  std::string Text(ValueId value) const { return ToText(program_, value); }
};

// Invariant 2, which nothing else depends on.
class NameVerifier : private Messages {
 public:
  explicit NameVerifier(const Program& program) : Messages(program) {}

  absl::Status Run() const {
    if (!IsIdentifier(program_.name)) return Error("'", program_.name, "' is no name of a program");
    absl::flat_hash_set<absl::string_view> tensors, vars, params;
    for (const TensorInfo& tensor : program_.tensors)
      NESTOR_RETURN_IF_ERROR(OneName(tensor.name, "tensor", tensors));
    for (const std::string& var : program_.vars)
      NESTOR_RETURN_IF_ERROR(OneName(var, "loop index", vars));
    for (const ParamInfo& param : program_.params) {
      const absl::string_view name = param.name;
      if (name.empty() || name[0] != '$')
        return Error("the $param '", name, "' does not begin with '$'");
      if (!IsIdentifier(name.substr(1))) return Error("'", name, "' is no name of a $param");
      if (!params.insert(name).second) return Error("two $params are named ", name);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status OneName(absl::string_view name, absl::string_view what,
                       absl::flat_hash_set<absl::string_view>& taken) const {
    if (!IsIdentifier(name) || IsReserved(name))
      return Error("'", name, "' is no name of a ", what);
    if (!taken.insert(name).second)
      return Error("the name ", name, " is given to more than one ", what);
    return absl::OkStatus();
  }
};

class Verifier : private Messages {
 public:
  explicit Verifier(const Program& program) : Messages(program), pool_(program.pool) {}

  // In the order of the rules in verify.h; proofs come last, since they rely on all others.
  absl::Status Run() {
    NESTOR_RETURN_IF_ERROR(NameVerifier(program_).Run());
    NESTOR_RETURN_IF_ERROR(Signature());
    NESTOR_RETURN_IF_ERROR(Checks());
    NESTOR_RETURN_IF_ERROR(Items(program_.body));
    item_ = nullptr;
    for (TensorId output : program_.outputs) {
      if (!written_.contains(output) && MayHaveElements(program_, output))
        return Error(output, " is an output that no statement writes");
    }
    return VerifyProofs(program_);
  }

 private:
  // ---- 3, 6, 7: what the program declares

  // Dimensions are the symbols in the shapes of inputs; any other symbol must be a $param.
  absl::Status Signature() {
    for (const ParamInfo& param : program_.params) params_.emplace(param.name, param.type);
    for (TensorId id : program_.inputs) {
      // All inputs first: an input's shape may name a dimension that a later one introduces.
      for (IndexId extent : program_[id].shape) CollectDimensions(extent);
    }
    for (TensorId id : program_.inputs) NESTOR_RETURN_IF_ERROR(Argument(id, Storage::kInput));
    for (TensorId id : program_.outputs) NESTOR_RETURN_IF_ERROR(Argument(id, Storage::kOutput));
    return absl::OkStatus();
  }

  void CollectDimensions(IndexId extent) {
    VisitIndex(pool_, extent, [&](IndexId id, const IndexNode& node) {
      if (node.kind == IndexKind::kSymbol && pool_.SymbolName(id)[0] != '$') dimensions_.insert(id);
    });
  }

  absl::Status Argument(TensorId id, Storage storage) {
    const TensorInfo& tensor = program_[id];
    if (tensor.storage != storage) return Error(id, " has another storage than where it is listed");
    if (tensor.is_register) return Error(id, " is an argument in a register");
    for (IndexId extent : tensor.shape) NESTOR_RETURN_IF_ERROR(OverSymbols(extent, "an extent"));
    return Declare(id);
  }

  // A tensor is declared once in the whole program: its id means one thing.
  absl::Status Declare(TensorId id) {
    const TensorInfo& tensor = program_[id];
    if (!declared_.insert(id).second) return Error(id, " is declared twice");
    in_scope_.insert(id);
    for (IndexId extent : tensor.shape) NESTOR_RETURN_IF_ERROR(Number(extent, "an extent"));
    if (tensor.shape_only && tensor.storage != Storage::kInput)
      return Error(id, " is shape-only and no input");
    if (tensor.storage == Storage::kAccumulator && !ReduceResultType(tensor.op, tensor.type)) {
      return Error(id, ": ", Name(tensor.op), " does not take ", tensor.type);
    }
    return absl::OkStatus();
  }

  // ---- 8: checks

  // Indices of domains count as those of loops that are over: no loop may use them.
  absl::Status Checks() {
    for (const Equality& e : program_.equalities) {
      NESTOR_RETURN_IF_ERROR(OverSymbols(e.left, "an equality"));
      NESTOR_RETURN_IF_ERROR(OverSymbols(e.right, "an equality"));
    }
    for (const RangeCheck& c : program_.range_checks)
      NESTOR_RETURN_IF_ERROR(OverSymbols(c.value, "a range check"));
    for (const auto* list : {&program_.domains, &program_.assumptions}) {
      for (const Domain& domain : *list) NESTOR_RETURN_IF_ERROR(CheckDomain(domain));
    }
    for (const VersionTest& test : program_.version)
      NESTOR_RETURN_IF_ERROR(OverSymbols(test.flag, "the flag of a version"));
    looped_.insert(program_.domain_vars.begin(), program_.domain_vars.end());
    return absl::OkStatus();
  }

  // Over the domains' own indices, which no loop has.
  absl::Status CheckDomain(const Domain& domain) {
    if (domain.extents.size() > program_.domain_vars.size())
      return Error("a domain has more extents than indices");
    const auto vars = program_.domain_vars.begin();
    for (IndexId extent : domain.extents)
      NESTOR_RETURN_IF_ERROR(OverSymbols(extent, "an extent of a domain"));
    vars_.insert(vars, vars + static_cast<int64_t>(domain.extents.size()));
    for (const IndexList* list : {&domain.places, &domain.values}) {
      for (IndexId e : *list) NESTOR_RETURN_IF_ERROR(Number(e, "a domain"));
    }
    vars_.clear();
    return absl::OkStatus();
  }

  // ---- 6, 10: index expressions

  // A number, free of loads.
  absl::Status Number(IndexId id, absl::string_view what) const {
    if (pool_.HasLoad(id)) return Error(what, " holds a load: ", id);
    return Indexing(id, what);
  }

  absl::Status OverSymbols(IndexId id, absl::string_view what) const {
    if (pool_.HasVar(id)) return Error(what, " holds a loop index: ", id);
    return Number(id, what);
  }

  // A number.
  absl::Status Indexing(IndexId id, absl::string_view what) const {
    if (IsCondition(pool_[id].kind)) return Error(what, " is a condition: ", id);
    return Expression(id);
  }

  bool IsConditionOrBool(IndexId id) const {
    return IsCondition(pool_[id].kind) || pool_.IsConst(id, 0) || pool_.IsConst(id, 1);
  }

  absl::Status Condition(IndexId id) const {
    if (!IsConditionOrBool(id)) return Error("expected a condition, found ", id);
    return Expression(id);
  }

  absl::Status Expression(IndexId root) const {
    absl::Status status;
    VisitIndex(pool_, root, [&](IndexId id, const IndexNode& node) {
      if (status.ok()) status = ExpressionNode(id, node);
    });
    return status;
  }

  // Numbers and conditions do not mix, and every leaf must be in scope here.
  absl::Status ExpressionNode(IndexId id, const IndexNode& node) const {
    const bool logical =
        node.kind == IndexKind::kAnd || node.kind == IndexKind::kOr || node.kind == IndexKind::kNot;
    for (IndexId arg : node.args) {
      const bool fits = logical ? IsConditionOrBool(arg) : !IsCondition(pool_[arg].kind);
      if (!fits) return Error("expected a ", logical ? "condition" : "number", ", found ", arg);
    }
    if (node.kind == IndexKind::kVar && !vars_.contains(node.value)) {
      return Error("the loop index ", id, " is used outside its loop");
    }
    if (node.kind == IndexKind::kSymbol) return Symbol(id);
    if (node.kind != IndexKind::kLoad) return absl::OkStatus();
    const TensorId tensor{static_cast<int32_t>(node.value)};
    NESTOR_RETURN_IF_ERROR(Read(tensor, node.args.size()));
    if (IsInteger(ReadType(program_[tensor]))) return absl::OkStatus();
    return Error(tensor, " is used as an index but reads as ", ReadType(program_[tensor]));
  }

  absl::Status Symbol(IndexId id) const {
    const std::string& name = pool_.SymbolName(id);
    if (name[0] != '$') {
      if (dimensions_.contains(id)) return absl::OkStatus();
      return Error(name, " is no dimension of the inputs");
    }
    const auto it = params_.find(name);
    if (it != params_.end() && IsInteger(it->second)) return absl::OkStatus();
    return Error(name, " is no integer $param of the program");
  }

  // ---- 4, 11, 12: accesses

  // Ids are valid here (VerifyIds); whether the tensor exists at this place is another question.
  absl::Status Use(TensorId id, size_t rank) const {
    if (!in_scope_.contains(id)) return Error(id, " is used outside the scope of its declaration");
    const size_t axes = program_[id].shape.size();
    if (axes != rank) return Error(id, " has ", axes, " axes, is accessed with ", rank, " indices");
    return absl::OkStatus();
  }

  absl::Status Read(TensorId id, size_t rank) const {
    NESTOR_RETURN_IF_ERROR(Use(id, rank));
    if (program_[id].shape_only) return Error(id, " is read, but only its shape is given");
    return absl::OkStatus();
  }

  absl::Status Places(const Access& access) const {
    for (IndexId e : access.place) NESTOR_RETURN_IF_ERROR(Indexing(e, "an index"));
    for (IndexId c : access.conditions) NESTOR_RETURN_IF_ERROR(Condition(c));
    if (access.masked) return absl::OkStatus();
    if (!access.conditions.empty())
      return Error("an unmasked access of ", access.tensor, " has conditions");
    if (access.fill.valid()) return Error("an unmasked access of ", access.tensor, " has a fill");
    return absl::OkStatus();
  }

  absl::Status Load(const Access& access) const {
    NESTOR_RETURN_IF_ERROR(Read(access.tensor, access.place.size()));
    NESTOR_RETURN_IF_ERROR(Places(access));
    return access.masked ? Fill(access) : absl::OkStatus();
  }

  // A prefetch of a place that does not exist does nothing, so it needs no proof that it is in
  // range.
  absl::Status Prefetch(const Access& access) {
    NESTOR_RETURN_IF_ERROR(Load(access));
    if (access.masked) return Error("what is prefetched has no mask");
    if (!access.place.empty() && !program_[access.tensor].is_register) return absl::OkStatus();
    return Error(access.tensor, " is prefetched, which may lie in a register");
  }

  // It must be the same at all iterations, so that it can be made once.
  absl::Status Fill(const Access& access) const {
    if (!access.fill.valid()) return Error("a masked load of ", access.tensor, " has no fill");
    const DType type = program_[access.fill].type, read = ReadType(program_[access.tensor]);
    if (type != read)
      return Error("the fill of ", access.tensor, " is ", type, ", the tensor ", read);
    const Value* value = &program_[access.fill];
    const auto* apply = absl::get_if<ApplyValue>(&value->node);
    if (apply != nullptr && apply->op == ScalarOp::kCast) value = &program_[apply->args[0]];
    const auto* index = absl::get_if<IndexValue>(&value->node);
    const bool invariant =
        index != nullptr && !pool_.HasVar(index->index) && !pool_.HasLoad(index->index);
    const bool plain =
        value == &program_[access.fill] && (absl::holds_alternative<ConstantValue>(value->node) ||
                                            absl::holds_alternative<ParamValue>(value->node));
    if (plain || invariant) return absl::OkStatus();
    return Error("the fill of ", access.tensor,
                 " is no constant, $param or index of symbols: ", access.fill);
  }

  // Rules for the target of a statement; its place may read elements, as in y[ids[i]] += v.
  absl::Status Store(const Access& access) {
    NESTOR_RETURN_IF_ERROR(Use(access.tensor, access.place.size()));
    NESTOR_RETURN_IF_ERROR(Places(access));
    if (program_[access.tensor].storage == Storage::kInput)
      return Error("the input ", access.tensor, " is written");
    if (access.fill.valid()) return Error("a store to ", access.tensor, " has a fill");
    // A masked store counts: whether all elements are written is known at run time only.
    written_.insert(access.tensor);
    return absl::OkStatus();
  }

  // ---- 13: values

  // Each value's type must be what its operands give.
  absl::Status Tree(ValueId root) {
    absl::Status status;
    VisitValues(program_, root, [&](ValueId id, const Value& value) {
      if (!status.ok()) return;
      const auto type =
          absl::visit([&](const auto& node) { return TypeOf(node, value.type); }, value.node);
      if (!type.ok()) status = type.status();
      else if (*type != value.type)
        status = Error(id, " has type ", value.type, ", expected ", *type);
    });
    return status;
  }

  absl::StatusOr<DType> TypeOf(const ConstantValue& node, DType) const { return node.value.type; }

  // An integer $param is a symbol of index expressions, and a value only through an IndexValue.
  absl::StatusOr<DType> TypeOf(const ParamValue& node, DType) const {
    const auto it = params_.find(node.name);
    if (it == params_.end()) return Error(node.name, " is no $param of the program");
    if (IsInteger(it->second))
      return Error("the integer $param ", node.name, " stands outside an index expression");
    return it->second;
  }

  absl::StatusOr<DType> TypeOf(const IndexValue& node, DType) const {
    NESTOR_RETURN_IF_ERROR(Indexing(node.index, "an index value"));
    return DType::kI64;
  }

  absl::StatusOr<DType> TypeOf(const LoadValue& node, DType) const {
    NESTOR_RETURN_IF_ERROR(Load(node.access));
    return ReadType(program_[node.access.tensor]);
  }

  absl::StatusOr<DType> TypeOf(const ApplyValue& node, DType target) const {
    std::vector<DType> operands;
    for (ValueId arg : node.args) operands.push_back(program_[arg].type);
    const auto type = TypeOfApply(node.op, operands, target);
    if (!type.ok()) return Error(type.status().message());
    return type;
  }

  // ---- 3 to 5, 9, 14, 15: scopes

  // A tensor is in scope from its declaration to the end of its scope.
  absl::Status Items(const Scope& scope) {
    std::vector<TensorId> local;
    for (const Item& item : scope) {
      item_ = &item;
      if (const auto* declaration = item.As<Declaration>()) local.push_back(declaration->tensor);
      NESTOR_RETURN_IF_ERROR(absl::visit([&](const auto& node) { return Check(node); }, item.node));
    }
    for (TensorId id : local) in_scope_.erase(id);
    return absl::OkStatus();
  }

  absl::Status Check(const Declaration& declaration) {
    const TensorInfo& tensor = program_[declaration.tensor];
    if (tensor.storage != Storage::kTemp && tensor.storage != Storage::kAccumulator) {
      return Error(declaration.tensor, " is declared in a scope but is no temp and no accumulator");
    }
    for (IndexId extent : tensor.shape) {
      if (tensor.is_register && pool_.ConstValue(extent).value_or(0) <= 0) {
        return Error("a register tensor has the extent ", extent,
                     ", which is no positive constant");
      }
    }
    return Declare(declaration.tensor);
  }

  // A loop index is that of one loop only. A loop that may run in any order must carry nothing.
  absl::Status Check(const Loop& loop) {
    // Items moves item_ on; the error about dependences is the loop's.
    const Item* const item = item_;
    if (!looped_.insert(loop.var).second)
      return Error("the loop index is that of another loop, too");
    if (loop.step <= 0) return Error("the step ", loop.step, " is not positive");
    NESTOR_RETURN_IF_ERROR(Number(loop.begin, "a bound"));
    NESTOR_RETURN_IF_ERROR(Number(loop.end, "a bound"));
    // Bounds come before: a loop's own index is not in them.
    vars_.insert(loop.var);
    for (const loop::Prefetch& prefetch : loop.prefetches)
      NESTOR_RETURN_IF_ERROR(Prefetch(prefetch.access));
    NESTOR_RETURN_IF_ERROR(Items(loop.body));
    vars_.erase(loop.var);
    item_ = item;
    const LoopAttributes& attributes = loop.attributes;
    if (attributes.lanes == 0 && (attributes.interleave != 0 || attributes.tail))
      return Error("it says how vectors of no lanes run");
    if (!attributes.parallel && !attributes.vector) return absl::OkStatus();
    // The tensor that a proof of independence fails on; a dependence that cannot be excluded is an
    // error.
    if (const auto tensor = CarriedTensor(program_, loop)) {
      return Error("iterations may depend on each other through ", *tensor);
    }
    return absl::OkStatus();
  }

  absl::Status Check(const Statement& statement) {
    NESTOR_RETURN_IF_ERROR(Store(statement.target));
    NESTOR_RETURN_IF_ERROR(Tree(statement.value));
    NESTOR_RETURN_IF_ERROR(Needed(statement));
    if (statement.position.valid()) NESTOR_RETURN_IF_ERROR(Tree(statement.position));
    const TensorId target = statement.target.tensor;
    const DType type = program_[target].type, given = program_[statement.value].type;
    if (given != type) return Error(target, " is ", type, ", the value ", given);
    NESTOR_RETURN_IF_ERROR(Operator(statement));
    const bool pair = statement.op && IsArg(*statement.op);
    if (pair != statement.position.valid()) {
      return Error(pair ? "the position of the value is missing"
                        : "only argmax and argmin have a position");
    }
    if (!pair || program_[statement.position].type == DType::kI64) return absl::OkStatus();
    return Error("the position is ", program_[statement.position].type, ", not i64");
  }

  // An engine may ask the condition before it reads anything, or not at all.
  absl::Status Needed(const Statement& statement) const {
    for (IndexId c : statement.needed_if) {
      NESTOR_RETURN_IF_ERROR(Condition(c));
      if (pool_.HasLoad(c))
        return Error("whether a statement is needed follows from ", c, ", which reads elements");
    }
    return absl::OkStatus();
  }

  // An accumulator takes its own op alone, because its start is that op's identity.
  absl::Status Operator(const Statement& statement) const {
    const TensorId target = statement.target.tensor;
    const TensorInfo& tensor = program_[target];
    const bool accumulator = tensor.storage == Storage::kAccumulator;
    if (!statement.op) {
      return accumulator ? Error("the accumulator ", target, " is assigned to") : absl::OkStatus();
    }
    if (accumulator && tensor.op != *statement.op) {
      return Error("the accumulator ", target, " is of ", Name(tensor.op), ", not ",
                   Name(*statement.op));
    }
    if (!accumulator && IsArg(*statement.op)) {
      return Error(Name(*statement.op), " into ", target, ", which is no accumulator");
    }
    if (ReduceResultType(*statement.op, tensor.type)) return absl::OkStatus();
    return Error(Name(*statement.op), " does not take ", tensor.type);
  }

  const IndexPool& pool_;
  absl::flat_hash_map<std::string, DType> params_;
  absl::flat_hash_set<IndexId> dimensions_;
  absl::flat_hash_set<TensorId> declared_, in_scope_, written_;
  absl::flat_hash_set<int64_t> looped_, vars_;  // ever a loop's; of a loop around
};

}  // namespace

bool MayHaveElements(const Program& program, TensorId tensor) {
  return absl::c_none_of(program[tensor].shape,
                         [&](IndexId extent) { return program.pool.IsConst(extent, 0); });
}

absl::Status Verify(const Program& program) {
  NESTOR_RETURN_IF_ERROR(VerifyIds(program));
  return Verifier(program).Run();
}

}  // namespace nestor::loop
