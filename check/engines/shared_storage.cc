// The live range of a temporary goes from the first item at the top that touches it to the last.
// Two temporaries with disjoint live ranges become one tensor: all accesses get its name, and its
// live range is the union.
#include "check/engines/shared_storage.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/variant.h"
#include "fusion/scopes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

using loop::Program;
using loop::TensorId;

struct Life {
  int first = -1, last = -1;  // numbers of items at the top
};

// The only statement of a perfect nest, if it stores without a mask.
const loop::Statement* OnlyStore(const loop::Item& nest) {
  const loop::Item* item = &nest;
  while (const auto* loop = item->As<loop::Loop>()) {
    if (loop->body.size() != 1) return nullptr;
    item = &loop->body[0];
  }
  const auto* statement = item->As<loop::Statement>();
  return statement == nullptr || statement->op || statement->target.masked ? nullptr : statement;
}

class Sharing {
 public:
  Sharing(Program program, Random& random) : program_(std::move(program)), random_(random) {
    lives_.resize(program_.tensors.size());
    gathered_.resize(program_.tensors.size());
    for (size_t i = 0; i < program_.body.size(); ++i) Note(static_cast<int>(i));
    FindGathered();
  }

  Program Run() {
    for (TensorId temp : DeclaredIn(program_.body)) {
      if (!IsFree(temp) || !random_.Chance(70)) continue;
      const std::vector<TensorId> heirs = HeirsOf(temp);
      if (!heirs.empty()) Share(temp, random_.Pick(heirs));
    }
    // At the end, as lives are numbers of items.
    std::vector<TensorId> declared = TakeDeclarations(program_.body);
    declared.erase(std::remove_if(declared.begin(), declared.end(),
                                  [&](TensorId temp) { return gone_.contains(temp); }),
                   declared.end());
    program_.body = WithDeclarations(program_, std::move(program_.body), declared);
    return std::move(program_);
  }

 private:
  // ---- Lives

  // Items are few, so each is asked about all tensors.
  void Note(int item) {
    const loop::Footprint footprint =
        loop::FootprintOf(program_, program_.body[static_cast<size_t>(item)]);
    for (size_t t = 0; t < lives_.size(); ++t) {
      if (!footprint.Touches(TensorId{static_cast<int32_t>(t)})) continue;
      if (lives_[t].first < 0) lives_[t].first = item;
      lives_[t].last = item;
    }
  }

  // An index expression names its tensor in the pool, which Share does not rewrite.
  void FindGathered() {
    loop::VisitItems(program_, [&](const loop::Item& item) {
      loop::VisitIndices(program_, item, [&](IndexId e) {
        VisitIndex(program_.pool, e, [&](IndexId, const IndexNode& node) {
          if (node.kind == IndexKind::kLoad) gathered_[static_cast<size_t>(node.value)] = true;
        });
      });
    });
  }

  Life& LifeOf(TensorId tensor) { return lives_[static_cast<size_t>(tensor.value)]; }

  bool IsFree(TensorId tensor) {
    return program_[tensor].storage == loop::Storage::kTemp && LifeOf(tensor).first >= 0 &&
           !gathered_[static_cast<size_t>(tensor.value)];
  }

  std::vector<TensorId> HeirsOf(TensorId temp) {
    std::vector<TensorId> heirs;
    for (const std::vector<TensorId>& tensors : {DeclaredIn(program_.body), program_.outputs}) {
      for (TensorId heir : tensors) {
        if (heir != temp && MayInherit(temp, heir)) heirs.push_back(heir);
      }
    }
    return heirs;
  }

  // One item may read the last of the old and write the new where each element is read before its
  // place is written: y[i] = t[i] + 1, but not y[i] = t[i + 1].
  bool MayInherit(TensorId temp, TensorId heir) {
    const loop::TensorInfo &from = program_[temp], &to = program_[heir];
    if (from.type != to.type || from.shape != to.shape) return false;
    if (to.storage != loop::Storage::kOutput && !IsFree(heir)) return false;
    const int end = LifeOf(temp).last, begin = LifeOf(heir).first;
    return end < begin ||
           (end == begin && IsPointwise(program_.body[static_cast<size_t>(begin)], temp, heir));
  }

  // Whether each element of `heir` is computed from the element of `temp` at the same place.
  bool IsPointwise(const loop::Item& nest, TensorId temp, TensorId heir) const {
    const loop::Statement* store = OnlyStore(nest);
    if (store == nullptr || store->target.tensor != heir) return false;
    bool pointwise = true;
    loop::VisitValues(program_, store->value, [&](loop::ValueId, const loop::Value& value) {
      const auto* load = absl::get_if<loop::LoadValue>(&value.node);
      if (load == nullptr || load->access.tensor != temp) return;
      pointwise &= !load->access.masked && load->access.place == store->target.place;
    });
    return pointwise;
  }

  // ---- One tensor for two

  // Renames `temp` to `heir` everywhere: from then on their lives are one.
  void Share(TensorId temp, TensorId heir) {
    for (loop::Value& value : program_.values) {
      auto* load = absl::get_if<loop::LoadValue>(&value.node);
      if (load != nullptr && load->access.tensor == temp) load->access.tensor = heir;
    }
    loop::VisitStatements(program_, [&](loop::Statement& statement) {
      if (statement.target.tensor == temp) statement.target.tensor = heir;
    });
    gone_.insert(temp);
    // The last item is the heir's already, since its life ends no sooner.
    LifeOf(heir).first = LifeOf(temp).first;
    LifeOf(temp) = Life();
  }

  Program program_;
  Random& random_;
  std::vector<Life> lives_;     // by tensor
  std::vector<bool> gathered_;  // by tensor
  absl::flat_hash_set<TensorId> gone_;
};

}  // namespace

loop::Program WithSharedStorage(loop::Program program, Random& random) {
  Program shared = Sharing(std::move(program), random).Run();
  const absl::Status status = loop::Verify(shared);
  NESTOR_CHECK(status.ok(), absl::StrCat(status.ToString(), "\n", loop::ToText(shared)));
  return shared;
}

}  // namespace nestor
