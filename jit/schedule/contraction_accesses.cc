// What the operands of a contraction read.
#include <cstddef>
#include <vector>

#include "absl/types/variant.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"

namespace nestor::loop {

int BatchLoopsOf(const Program& program, const Contraction& nest, const Access& access) {
  size_t loops = nest.batch.size();
  while (loops > 0 && !DependsOn(program, access, *nest.batch[loops - 1])) --loops;
  return static_cast<int>(loops);
}

Access AccessOf(const Program& program, const Contraction::Operand& operand) {
  return absl::get<LoadValue>(program[operand.load].node).access;
}

std::vector<Access> AccessesOf(const Program& program, const Contraction::Operand& operand) {
  std::vector<Access> accesses = {AccessOf(program, operand)};
  VisitLoads(program, operand.read, [&](ValueId id, const Access& access) {
    if (id != operand.load) accesses.push_back(access);
  });
  return accesses;
}

}  // namespace nestor::loop
