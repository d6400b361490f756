// A test of memory plans that shares no reasoning with them: shadow memory. Every byte knows which
// element of which tensor was last written there, and each read must find its own element. The test
// knows nothing about lifetimes, steps or the reasons for taking memory over.
#include "loop_ir/memory_plan_testing.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

struct Owner {
  TensorId tensor;
  int64_t element = -1;
};

// Each buffer outside of the arenas has a region of its own; these are the arenas.
constexpr int kArena = -1, kPrivateArena = -2;

struct Place {
  int region = kArena;
  int64_t offset = 0;
};

class Replay {
 public:
  Replay(const SizedProgram& sized, const MemoryPlan& plan, const Arena& arena)
      : sized_(sized), program_(sized.program()), places_(program_.tensors.size()),
        bytes_(program_.tensors.size()) {
    for (size_t i = 0; i < places_.size(); ++i) places_[i].region = static_cast<int>(i);
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      const PlannedBuffer& buffer = plan.buffers[i];
      const int region = buffer.is_private ? kPrivateArena : kArena;
      const Place place = buffer.output.value >= 0 ? Place{buffer.output.value, 0}
                                                   : Place{region, arena.offsets[i]};
      for (TensorId tensor : buffer.tensors) places_[tensor.value] = place;
    }
  }

  void Share(TensorId output, TensorId input) { places_[output.value] = places_[input.value]; }

  // Every byte of memory remembers which element was last written there. At the end outputs must
  // still hold their own elements.
  absl::Status Run(const Arena& arena, GatheredValue gathered) {
    for (size_t i = 0; i < places_.size(); ++i) NESTOR_RETURN_IF_ERROR(Allocate(i, arena));
    for (TensorId input : program_.inputs) Fill(input);
    const auto access = [&](const WalkedAccess& a) {
      if (a.reads) Read(a);
      if (a.writes) Write(a.tensor, a.element);
    };
    NESTOR_RETURN_IF_ERROR(
        WalkAccesses(sized_, gathered, access, [&](TensorId tensor) { Declare(tensor); }));
    for (TensorId output : program_.outputs) {
      for (int64_t i = 0; i < elements_[output.value]; ++i) Read({output, i, true, false});
    }
    return status_;
  }

 private:
  // Where the plan puts the tensor, which must lie within the arena and be aligned.
  absl::Status Allocate(size_t i, const Arena& arena) {
    const TensorId tensor{static_cast<int32_t>(i)};
    NESTOR_ASSIGN_OR_RETURN(const std::vector<int64_t> extents, sized_.Extents(tensor));
    NESTOR_ASSIGN_OR_RETURN(const int64_t bytes, sized_.Bytes(tensor));
    int64_t count = 1;
    for (int64_t extent : extents) count *= extent;
    elements_.push_back(count);
    bytes_[i] = ElementBytes(program_[tensor]);
    const Place& place = places_[i];
    const int64_t end = place.region == kArena ? arena.total : arena.private_total;
    const bool fits =
        place.offset >= 0 && place.offset % kArenaAlignment == 0 && place.offset + bytes <= end;
    if (place.region >= 0 || fits) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat(program_[tensor].name, " at ", place.offset, " is out of the arena"));
  }

  Owner& At(TensorId tensor, int64_t element, int64_t byte) {
    const Place& place = places_[tensor.value];
    return memory_[{place.region, place.offset + element * bytes_[tensor.value] + byte}];
  }

  void Declare(TensorId tensor) {
    if (program_[tensor].storage == Storage::kAccumulator) Fill(tensor);
  }

  void Fill(TensorId tensor) {
    for (int64_t i = 0; i < elements_[tensor.value]; ++i) Write(tensor, i);
  }

  void Write(TensorId tensor, int64_t element) {
    for (int64_t byte = 0; byte < bytes_[tensor.value]; ++byte)
      At(tensor, element, byte) = {tensor, element};
  }

  std::string ElementText(TensorId tensor, int64_t element) const {
    return absl::StrCat(program_[tensor].name, "[", element, "]");
  }

  // Each byte must still belong to the element that was written there last.
  void Read(const WalkedAccess& a) {
    for (int64_t byte = 0; byte < bytes_[a.tensor.value] && status_.ok(); ++byte) {
      const Owner& owner = At(a.tensor, a.element, byte);
      if (owner.tensor == a.tensor && owner.element == a.element) continue;
      const std::string found =
          owner.element < 0 ? "nothing" : ElementText(owner.tensor, owner.element);
      status_ = absl::InternalError(
          absl::StrCat(ElementText(a.tensor, a.element), " is read where ", found, " was written"));
    }
  }

  const SizedProgram& sized_;
  const Program& program_;
  std::vector<Place> places_;      // by tensor
  std::vector<int64_t> bytes_;     // by tensor, of an element
  std::vector<int64_t> elements_;  // by tensor
  absl::flat_hash_map<std::pair<int, int64_t>, Owner> memory_;
  absl::Status status_;
};

}  // namespace

absl::Status ReplayPlan(const SizedProgram& program, const MemoryPlan& plan, const Arena& arena,
                        GatheredValue gathered, int alias) {
  Replay replay(program, plan, arena);
  if (alias >= 0) replay.Share(plan.aliases[alias].first, plan.aliases[alias].second);
  return replay.Run(arena, gathered);
}

}  // namespace nestor::loop
