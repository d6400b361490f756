// A read of a temporary costs a store before it, and memory between. An op costs next to nothing
// beside them, as long as its operands are at hand, or take no more memory than the temporary.
#include "fusion/recomputation.h"

#include "absl/algorithm/container.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// Ops that are cheaper than to store and read.
constexpr int kMaxCheap = 3;
// Ops on numbers and $params alone that may be repeated for each read of their one value: a cast.
constexpr int kMostForOne = 1;

bool IsExpansion(const Program& program, const Definition& definition) {
  const size_t rank = definition.vars.size();
  const int most = rank > 0 ? kSlowOp - 1 : kMostForOne;
  return definition.cost <= most && absl::c_all_of(definition.reads, [&](TensorId tensor) {
           return program[tensor].shape.size() < rank;
         });
}

bool IsWidening(const Program& program, const Definition& definition) {
  const int64_t bytes = ByteSize(program[definition.tensor].type);
  return IsCheap(program, definition) && !definition.reads.empty() &&
         absl::c_all_of(definition.reads, [&](TensorId tensor) {
           return program[tensor].shape.empty() || ByteSize(program[tensor].type) < bytes;
         });
}

// Whether the statement reads what `read`, of the definition's value, is at the place of `access`.
bool ReadsAtPlaceOf(const Program& program, const Definition& definition, const Access& read,
                    const Access& access, const Statement& statement) {
  IndexList place;
  for (IndexId index : read.place) {
    const auto axis = absl::c_find(definition.vars, program.pool.VarValue(index));
    if (axis == definition.vars.end()) return false;
    place.push_back(access.place[static_cast<size_t>(axis - definition.vars.begin())]);
  }
  bool found = false;
  VisitLoads(program, statement.value, [&](ValueId, const Access& other) {
    found = found || (other.tensor == read.tensor && other.place == place && !other.masked);
  });
  return found && !read.masked;
}

bool IsOfReadElements(const Program& program, const Definition& definition, const Access& access,
                      const Statement& statement) {
  if (definition.cost != 1 || definition.reads.empty() || access.masked) return false;
  bool reads_all = true;
  VisitLoads(program, definition.value, [&](ValueId, const Access& read) {
    reads_all = reads_all && ReadsAtPlaceOf(program, definition, read, access, statement);
  });
  return reads_all;
}

}  // namespace

bool IsCheap(const Program& program, const Definition& definition) {
  const size_t rank = definition.vars.size();
  return rank > 0 && definition.cost <= kMaxCheap &&
         absl::c_count_if(definition.reads, [&](TensorId tensor) {
           return program[tensor].shape.size() >= rank;
         }) <= 1;
}

bool CostsLessThanRead(const Program& program, const Definition& definition, const Access& access,
                       const Statement& statement) {
  return IsExpansion(program, definition) || IsWidening(program, definition) ||
         IsOfReadElements(program, definition, access, statement);
}

}  // namespace nestor::loop
