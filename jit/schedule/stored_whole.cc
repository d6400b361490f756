#include "jit/schedule/stored_whole.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "loop_ir/perfect_nest.h"

namespace nestor::loop {
namespace {

class Search {
 public:
  explicit Search(const Program& program) : program_(program) {
    VisitItems(program, [&](const Item& item) {
      if (const auto* statement = item.As<Statement>()) ++stores_[statement->target.tensor];
    });
    Visit(program.body);
  }

  absl::flat_hash_set<TensorId> found;

 private:
  void Visit(const Scope& scope) {
    const std::vector<TensorId> declared = DeclaredIn(scope);
    for (const Item& item : scope) {
      const auto* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      if (!declared.empty()) NoteStores(*loop, declared);
      Visit(loop->body);
    }
  }

  // Adds those of the tensors that the perfect nest stores whole.
  void NoteStores(const Loop& outermost, const std::vector<TensorId>& declared) {
    const LoopsAround band = BandOf(outermost);
    for (const Item& item : band.back()->body) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) continue;
      const TensorId tensor = statement->target.tensor;
      if (absl::c_linear_search(declared, tensor) && stores_[tensor] == 1 &&
          WalksWhole(*statement, band))
        found.insert(tensor);
    }
  }

  // Whether each loop walks an axis of the target, from its begin to its end.
  bool WalksWhole(const Statement& statement, const std::vector<const Loop*>& band) const {
    const Access& target = statement.target;
    const TensorInfo& info = program_[target.tensor];
    if (info.storage != Storage::kTemp || statement.op || target.masked ||
        !statement.needed_if.empty() || target.place.size() != band.size())
      return false;
    return absl::c_all_of(band, [&](const Loop* loop) {
      for (size_t axis = 0; axis < target.place.size(); ++axis) {
        if (program_.pool.VarValue(target.place[axis]) != loop->var) continue;
        return program_.pool.IsConst(loop->begin, 0) && loop->end == info.shape[axis] &&
               loop->step == 1;
      }
      return false;
    });
  }

  const Program& program_;
  absl::flat_hash_map<TensorId, int> stores_;  // statements that store to it
};

}  // namespace

absl::flat_hash_set<TensorId> StoredWhole(const Program& program) { return Search(program).found; }

bool HasAllValues(const Program& program, const absl::flat_hash_set<TensorId>& stored_whole,
                  TensorId tensor) {
  return program[tensor].storage == Storage::kInput || stored_whole.contains(tensor);
}

}  // namespace nestor::loop
