// Ops of the notation are generic in element types and ranks; a signature is bound once per use, by
// matching it with what the caller gives. An op matmul(a: T[..B, m, k], b: T[..B, k, n]) given a of
// f16 and rank 4 has T = f16 and two dimensions B0, B1; what no argument tells has a default (f32,
// one dimension).
//
// Each step reads what the steps before it have bound: the length of a pack says how many
// dimensions there are, and the types and shapes of arguments use all of these.
#include "uops/notation/bind_signature.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/notation/index_resolver.h"
#include "uops/notation/lexer.h"
#include "uops/notation/statement_scope.h"

namespace nestor {
namespace {

using ast::Expr;
using ast::ExprKind;

class SignatureBinder {
 public:
  SignatureBinder(const ast::Op& syntax, const ArgumentSpecs& specs, Environment& environment)
      : syntax_(syntax), specs_(specs), environment_(environment) {}

  absl::Status Run() {
    NESTOR_RETURN_IF_ERROR(BindTypes());
    NESTOR_RETURN_IF_ERROR(BindPacks());
    NESTOR_RETURN_IF_ERROR(DeclareDimensions());
    NESTOR_RETURN_IF_ERROR(DeclareParams());
    return DeclareArguments();
  }

 private:
  Op& op() { return environment_.op; }

  static bool IsVariable(const ast::TypeName& type) { return !TypeByName(type.text).has_value(); }

  // A type variable is the type of the first argument that is given one; all others must agree.
  absl::Status BindTypes() {
    for (const ast::Argument& arg : syntax_.args) {
      const auto spec = specs_.find(arg.name);
      if (!IsVariable(arg.type) || spec == specs_.end() || !spec->second.type) continue;
      const auto [it, inserted] =
          environment_.type_variables.emplace(arg.type.text, *spec->second.type);
      if (!inserted && it->second != *spec->second.type) {
        return absl::InvalidArgumentError(
            absl::StrCat("op ", syntax_.name, ": ", arg.type.text, " is ", Name(it->second),
                         ", but argument ", arg.name, " is given ", Name(*spec->second.type)));
      }
    }
    for (const ast::Argument& arg : syntax_.args) {
      if (IsVariable(arg.type)) environment_.type_variables.emplace(arg.type.text, DType::kF32);
    }
    return absl::OkStatus();
  }

  // A pack's length follows from a given rank where it is the only unknown one.
  // A length that is found may leave one unknown pack in another argument, so the arguments are
  // gone through until no more is found.
  absl::Status BindPacks() {
    absl::flat_hash_map<std::string, int> lengths;
    for (bool changed = true; changed;) {
      changed = false;
      for (const ast::Argument& arg : syntax_.args) {
        const auto spec = specs_.find(arg.name);
        if (spec == specs_.end() || !spec->second.rank) continue;
        int known = 0;
        std::vector<std::string> unknown;
        for (const ast::Item& dim : arg.dims) {
          const auto it = lengths.find(dim.pack);
          if (!dim.is_pack) ++known;
          else if (it != lengths.end()) known += it->second;
          else unknown.push_back(dim.pack);
        }
        if (unknown.size() != 1) continue;
        if (*spec->second.rank < known) {
          return absl::InvalidArgumentError(
              absl::StrCat("op ", syntax_.name, ": argument ", arg.name, " has ",
                           *spec->second.rank, " dimensions, at least ", known, " are needed"));
        }
        lengths[unknown[0]] = *spec->second.rank - known;
        changed = true;
      }
    }
    for (const ast::Argument& arg : syntax_.args) {
      for (const ast::Item& dim : arg.dims) {
        if (dim.is_pack) DeclarePack(dim.pack, lengths.contains(dim.pack) ? lengths[dim.pack] : 1);
      }
    }
    return absl::OkStatus();
  }

  bool IsNamedDimension(absl::string_view name) const {
    for (const ast::Argument& arg : syntax_.args) {
      if (arg.name == name) return true;
      for (const ast::Item& dim : arg.dims) {
        if (!dim.is_pack && dim.expr->kind == ExprKind::kName && dim.expr->text == name)
          return true;
      }
    }
    return false;
  }

  // ..B of length 2 is the dimensions B0 and B1, or other names if an argument has these.
  void DeclarePack(const std::string& pack, int length) {
    if (environment_.dim_packs.contains(pack)) return;
    std::vector<IndexId>& dims = environment_.dim_packs[pack];
    for (int i = 0; i < length; ++i) {
      const std::string name = FreshName(absl::StrCat(pack, i), [&](absl::string_view n) {
        return IsNamedDimension(n) || environment_.dims.contains(n);
      });
      dims.push_back(op().graph.pool().Symbol(name));
      environment_.dims[name] = dims.back();
    }
  }

  // Every name in an argument's dimensions is a dimension.
  absl::Status DeclareDimensions() {
    for (const ast::Argument& arg : syntax_.args) {
      for (const ast::Item& dim : arg.dims) {
        if (!dim.is_pack) NESTOR_RETURN_IF_ERROR(DeclareNames(*dim.expr));
      }
    }
    return absl::OkStatus();
  }

  // Every name in an extent is a dimension, also in an expression of some: x: T[N + K - 1] names N
  // and K.
  absl::Status DeclareNames(const Expr& expr) {
    if (expr.kind == ExprKind::kName)
      environment_.dims[expr.text] = op().graph.pool().Symbol(expr.text);
    if (expr.kind == ExprKind::kAccess) {
      return ErrorAt(expr.position, "a dimension cannot depend on a tensor's values");
    }
    for (const ast::ExprPtr& arg : expr.args) NESTOR_RETURN_IF_ERROR(DeclareNames(*arg));
    return absl::OkStatus();
  }

  // A $param without a type is an i64; the infinities as bounds mean that there is none.
  absl::Status DeclareParams() {
    for (const ast::Param& param : syntax_.params) {
      ParamInfo info{param.name, DType::kI64, {}, {}, {}};
      if (param.type) {
        if (IsVariable(*param.type))
          environment_.type_variables.emplace(param.type->text, DType::kF32);
        NESTOR_ASSIGN_OR_RETURN(info.type, environment_.Type(*param.type));
      }
      if (!environment_.params.emplace(param.name, info.type).second) {
        return ErrorAt(param.position, absl::StrCat("'", param.name, "' is already defined"));
      }
      NESTOR_ASSIGN_OR_RETURN(info.value, ParamLiteral(param.value, info.type));
      NESTOR_ASSIGN_OR_RETURN(info.low, ParamBound(param.low, info.type));
      NESTOR_ASSIGN_OR_RETURN(info.high, ParamBound(param.high, info.type));
      op().params.push_back(std::move(info));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<absl::optional<Scalar>> ParamLiteral(const absl::optional<ast::Literal>& literal,
                                                      DType type) {
    if (!literal) return absl::optional<Scalar>();
    const auto value = ParseParamLiteral(literal->text, type);
    if (value) return value;
    return ErrorAt(literal->position,
                   absl::StrCat("the literal '", literal->text, "' does not fit ", Name(type)));
  }

  absl::StatusOr<absl::optional<Scalar>> ParamBound(const absl::optional<ast::Literal>& literal,
                                                    DType type) {
    if (!literal || literal->text == "inf" || literal->text == "-inf")
      return absl::optional<Scalar>();
    return ParamLiteral(literal, type);
  }

  // Names of tensors and dimensions are kept apart: in an expression they would mean two things.
  absl::Status DeclareArguments() {
    for (const ast::Argument& arg : syntax_.args) {
      if (environment_.dims.contains(arg.name)) {
        return ErrorAt(arg.position,
                       absl::StrCat("the argument '", arg.name, "' has the name of a dimension"));
      }
      if (environment_.tensors.contains(arg.name) || environment_.shapes.contains(arg.name)) {
        return ErrorAt(arg.position, absl::StrCat("'", arg.name, "' is already defined"));
      }
      NESTOR_ASSIGN_OR_RETURN(const DType type, environment_.Type(arg.type));
      NESTOR_ASSIGN_OR_RETURN(Shape shape, IndexResolver(environment_).Extents(arg.dims));
      const auto spec = specs_.find(arg.name);
      if (spec != specs_.end() && spec->second.rank &&
          *spec->second.rank != static_cast<int>(shape.size())) {
        return absl::InvalidArgumentError(
            absl::StrCat("op ", syntax_.name, ": argument ", arg.name, " has ", shape.size(),
                         " dimensions, is given ", *spec->second.rank));
      }
      const NodeId node = op().graph.AddInput(arg.name, type, shape);
      if (arg.shape_only) environment_.shapes.insert(arg.name);
      else environment_.tensors[arg.name] = node;
      op().args.push_back({arg.name, type, std::move(shape), arg.shape_only, node});
    }
    return absl::OkStatus();
  }

  const ast::Op& syntax_;
  const ArgumentSpecs& specs_;
  Environment& environment_;
};

}  // namespace

absl::Status BindSignature(const ast::Op& syntax, const ArgumentSpecs& specs,
                           Environment& environment) {
  return SignatureBinder(syntax, specs, environment).Run();
}

}  // namespace nestor
