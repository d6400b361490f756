// A signature holds pointers to what is large, and copies of what callers ask for by name.
#include "uops/signature.h"

namespace nestor {

Signature SignatureOf(const Op& op) {
  Signature signature{op.name, &op.graph.pool(), {}, &op.params, &op.equalities, &op.range_checks};
  for (const Argument& arg : op.args) {
    signature.args.push_back({arg.name, arg.type, &arg.shape, arg.shape_only});
  }
  return signature;
}

}  // namespace nestor
