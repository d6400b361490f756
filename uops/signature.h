// What a caller must know of an op, or of a program, to call it.
#ifndef NESTOR_UOPS_SIGNATURE_H_
#define NESTOR_UOPS_SIGNATURE_H_

#include <string>
#include <vector>

#include "uops/op.h"

namespace nestor {

struct SignatureArgument {
  std::string name;
  DType type;
  const Shape* shape;
  bool shape_only;
};
struct Signature {
  std::string name;
  const IndexPool* pool;
  std::vector<SignatureArgument> args;
  const std::vector<ParamInfo>* params;
  const std::vector<Equality>* equalities;
  const std::vector<RangeCheck>* range_checks;
};
// The views point into `op`. That of a program is in loop_ir/signature.h.
Signature SignatureOf(const Op& op);

}  // namespace nestor

#endif  // NESTOR_UOPS_SIGNATURE_H_
