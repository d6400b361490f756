// Draws the scalar expressions of nest programs (nest_programs.h). They read values that statements
// have defined, and arguments that are declared as expressions need them.
#ifndef NESTOR_CHECK_ENGINES_EXPRESSION_GENERATOR_H_
#define NESTOR_CHECK_ENGINES_EXPRESSION_GENERATOR_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "check/engines/nest_axes.h"
#include "check/random.h"
#include "uops/dtype.h"

namespace nestor {

class ExpressionGenerator {
 public:
  // Expressions are of `type`. REQUIRES: `random` outlives this.
  ExpressionGenerator(Random& random, DType type)
      : random_(random), type_(type), has_pack_(random.Chance(15)) {}

  // Declares an argument and returns its name.
  std::string NewArgument(absl::string_view type, const std::string& shape);
  // The declarations: "x0: f32[M, N]".
  const std::vector<std::string>& arguments() const { return arguments_; }
  // Expressions may read `name` from here on. REQUIRES: it is of their type and has
  // just these axes.
  void AddValue(const std::string& name, const Axes& axes) { values_.push_back({name, axes}); }

  // An access to a value over just these axes, in any order, or to a new argument, which may have a
  // leading pack. With `fresh` always to a new argument.
  std::string Access(const Axes& axes, bool fresh = false);
  // An expression over at most these axes.
  std::string Expression(const Axes& axes, int depth);

  // Whether an access has mentioned the pack since the statement began: then the value that the
  // statement defines has that axis, too.
  bool mentions_pack() const { return mentions_pack_; }
  void BeginStatement() { mentions_pack_ = false; }

 private:
  struct Value {
    std::string name;
    Axes axes;
  };

  Value ValueOver(Axes axes, bool fresh);
  std::vector<std::string> Place(const Axes& axes);
  std::string Condition(const Axes& axes);
  std::string Literal();
  std::string Leaf(const Axes& axes);
  std::string Quotient(const std::string& a, const std::string& b);
  std::string Unary(const std::string& a);

  Random& random_;
  const DType type_;
  const bool has_pack_;
  bool mentions_pack_ = false;
  std::vector<std::string> arguments_;
  std::vector<Value> values_;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_EXPRESSION_GENERATOR_H_
