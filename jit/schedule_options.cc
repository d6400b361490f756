// The table has a row for each number. Sizes of tiles come first: they decide which sizes of blocks
// are good. A search goes through the rows in order and keeps the best value of each (coordinate
// descent), so the order is part of what it finds.
#include "jit/schedule_options.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "uops/message.h"

namespace nestor::jit {

absl::Span<const ScheduleChoice> ScheduleChoices() {
  static const std::vector<ScheduleChoice>& choices = *new std::vector<ScheduleChoice>{
      // clang-format off
      {"tile_vectors", {1, 2, 3, 4, 6}, 0, 8,
       [](ScheduleOptions& o, int64_t v) { o.contractions.vectors = v; }},
      {"tile_rows", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14}, 0, 16,
       [](ScheduleOptions& o, int64_t v) { o.contractions.rows = v; }},
      {"panels", {0, 1}, 0, 1,
       [](ScheduleOptions& o, int64_t v) { o.contractions.panels = v != 0; }},
      {"columns_outside", {0, 1}, 0, 1,
       [](ScheduleOptions& o, int64_t v) { o.contractions.columns_outside = v != 0; }},
      {"sum_block", {96, 192, 256, 384, 512, 768, 1152, 2304}, 1, 1 << 20,
       [](ScheduleOptions& o, int64_t v) { o.contractions.sum_block = v; }},
      {"row_block", {1, 2, 4, 8, 12, 16, 24, 32, 64}, 1, 1 << 10,
       [](ScheduleOptions& o, int64_t v) { o.contractions.row_block = v; }},
      {"column_block", {1, 2, 3, 4, 6, 8, 12}, 1, 1 << 10,
       [](ScheduleOptions& o, int64_t v) { o.contractions.column_block = v; }},
      {"strip_rows", {6, 8, 12, 16, 24, 32, 48, 64, 96}, 1, 1 << 12,
       [](ScheduleOptions& o, int64_t v) { o.strips.rows = v; }},
      {"order_columns", {496, 1008, 2032, 4080}, 1, 1 << 16,
       [](ScheduleOptions& o, int64_t v) { o.memory_order.columns = v; }},
      {"order_rows", {4, 8, 16, 32}, 1, 1 << 10,
       [](ScheduleOptions& o, int64_t v) { o.memory_order.rows = v; }},
      {"sum_piece", {1 << 13, 1 << 14, 1 << 15, 1 << 17, 1 << 18, 1 << 20}, 1, int64_t{1} << 40,
       [](ScheduleOptions& o, int64_t v) { o.parallel_sums.least_steps = v; }},
      {"accumulators", {1, 2, 4, 8}, 1, 8,
       [](ScheduleOptions& o, int64_t v) { o.accumulators = v; }},
      // clang-format on
  };
  return choices;
}

// All values or none: a copy is changed first.
absl::Status Choose(const ChosenValues& values, ScheduleOptions& options) {
  ScheduleOptions changed = options;
  const absl::Span<const ScheduleChoice> choices = ScheduleChoices();
  for (const auto& [name, value] : values) {
    const auto has_name = [&sought = name](const ScheduleChoice& c) { return c.name == sought; };
    const auto choice = absl::c_find_if(choices, has_name);
    if (choice == choices.end()) {
      std::vector<std::string> known;
      for (const ScheduleChoice& other : choices) known.emplace_back(other.name);
      return absl::InvalidArgumentError(
          absl::StrCat("a schedule has no choice '", name, "'", DidYouMean(name, known)));
    }
    if (value < choice->least || value > choice->most) {
      return absl::InvalidArgumentError(absl::StrCat(name, "=", value, ": from ", choice->least,
                                                     " to ", choice->most, " is expected"));
    }
    choice->set(changed, value);
  }
  options = changed;
  return absl::OkStatus();
}

}  // namespace nestor::jit
