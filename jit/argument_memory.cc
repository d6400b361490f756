// Every call is checked, so the usual answer, that all is well, must cost little: outputs sorted by
// address are apart if neighbours are. Only where they are not, each pair is looked at, so that the
// error names the first pair.
#include "jit/argument_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"

namespace nestor::jit {

// Aliasing is judged by the ranges, and their total decides about threads and prefetching.
absl::Status ArgumentMemory::Measure(const CallArguments& arguments) {
  footprints_.clear();
  bytes_ = 0;
  has_results_ = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(ByteRange range, Footprint(arguments[i]));
    if (arguments.Info(i).shape_only) range = {};  // nobody reads the elements
    footprints_.push_back(range);
    bytes_ += range.end - range.begin;
    has_results_ |= i >= arguments.NumInputs() && range.end != range.begin;
  }
  return absl::OkStatus();
}

absl::Status ArgumentMemory::Check(const CallArguments& arguments, Aliases aliases) {
  const size_t count = arguments.size();
  for (size_t i = 0; i < count; ++i) {
    const TensorView& view = arguments[i];
    const ByteRange& footprint = footprints_[i];
    if (view.data == nullptr && footprint.begin != footprint.end)
      return ArgumentError(arguments.program(), i, "has no memory");
    const int bytes = ByteSize(view.type);
    if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(bytes) == 0) continue;
    return ArgumentError(arguments.program(), i,
                         absl::StrCat("elements of ", Name(view.type),
                                      " do not lie at a multiple of ", bytes, " bytes"));
  }
  if (OutputsAreApart(arguments, aliases)) return absl::OkStatus();
  for (size_t output = arguments.NumInputs(); output < count; ++output) {
    for (size_t other = 0; other < output; ++other) {
      NESTOR_RETURN_IF_ERROR(CheckOverlap(arguments, aliases, output, other));
    }
  }
  return absl::OkStatus();
}

// Whether CheckOverlap would accept all outputs. Sorted by address, outputs do not overlap if
// neighbours do not, and an input can only overlap outputs that follow each other.
bool ArgumentMemory::OutputsAreApart(const CallArguments& arguments, Aliases aliases) {
  const auto begin = [&](size_t i) {
    return static_cast<const char*>(arguments[i].data) + footprints_[i].begin;
  };
  const auto end = [&](size_t i) {
    return static_cast<const char*>(arguments[i].data) + footprints_[i].end;
  };
  const auto is_empty = [&](size_t i) { return footprints_[i].begin == footprints_[i].end; };
  // A member, so that calls allocate nothing.
  std::vector<size_t>& outputs = sorted_outputs_;
  outputs.clear();
  for (size_t i = arguments.NumInputs(); i < arguments.size(); ++i) {
    if (!is_empty(i)) outputs.push_back(i);
  }
  std::sort(outputs.begin(), outputs.end(),
            [&](size_t a, size_t b) { return begin(a) < begin(b); });
  for (size_t k = 1; k < outputs.size(); ++k) {
    if (end(outputs[k - 1]) > begin(outputs[k])) return false;
  }
  for (size_t input = 0; input < arguments.NumInputs(); ++input) {
    if (is_empty(input)) continue;
    auto output = std::partition_point(outputs.begin(), outputs.end(),
                                       [&](size_t i) { return end(i) <= begin(input); });
    for (; output != outputs.end() && begin(*output) < end(input); ++output) {
      if (!CheckOverlap(arguments, aliases, *output, input).ok()) return false;
    }
  }
  return true;
}

// Footprints are ranges of bytes from the first element, so two arguments whose elements interleave
// without touching count as overlapping.
absl::Status ArgumentMemory::CheckOverlap(const CallArguments& arguments, Aliases aliases,
                                          size_t output, size_t other) const {
  const TensorView& a = arguments[output];
  const TensorView& b = arguments[other];
  const char* const x = static_cast<const char*>(a.data);
  const char* const y = static_cast<const char*>(b.data);
  const ByteRange &p = footprints_[output], &q = footprints_[other];
  if (p.begin == p.end || q.begin == q.end || x + p.end <= y + q.begin ||
      y + q.end <= x + p.begin) {
    return absl::OkStatus();
  }
  const size_t inputs = arguments.NumInputs();
  const std::pair<int, int> pair(static_cast<int>(output - inputs), static_cast<int>(other));
  // Just on top of each other: only then is each element read before its own place is written.
  const bool allowed = other < inputs && std::binary_search(aliases.begin(), aliases.end(), pair) &&
                       a.data == b.data && IsContiguous(a) && IsContiguous(b);
  if (allowed) return absl::OkStatus();
  return ArgumentError(arguments.program(), output,
                       absl::StrCat("its memory overlaps that of ", arguments.Info(other).name));
}

}  // namespace nestor::jit
