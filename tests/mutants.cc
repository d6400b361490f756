// Does the net catch fish? For each deliberate fault (uops/mutant.h) `nestor check --random`
// runs in a process of its own, until it finds something wrong or its time is over.
//
//   ./bazelw run --config=mutants //tests:mutants [-- [--time=60s] [--seed=1] [NAME..]]
//
// Prints a line for each, and then how many were found. First the check runs without a fault, and
// must find nothing. Exits with 1 where a fault was missed that is not expected to be.
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace nestor {
namespace {

struct Mutant {
  const char* name;
  const char* why_missed = "";  // where the fault cannot be observed
};

constexpr Mutant kMutants[] = {
    // Lanes and masks.
    {"tail_mask_too_long"},
    {"tail_mask_too_short"},
    {"tail_mask_inverted"},
    {"second_group_at_first"},
    {"last_vector_whole"},
    {"lanes_before_begin_read"},
    {"lanes_beyond_end_read"},
    {"less_where_unordered"},
    {"narrow_lane_not_extended"},
    {"odd_bytes_not_multiplied"},
    // Accumulators.
    {"stale_accumulator"},
    {"max_starts_at_zero"},
    {"max_starts_at_lowest_finite"},
    {"lane_partial_dropped"},
    {"lane_partials_combined_twice"},
    {"argmax_last_of_equals"},
    // Merging, substitution, contraction.
    {"pivot_check_skipped"},
    {"permutation_ignores_order"},
    {"merge_left_across_dependence"},
    {"merge_right_across_dependence"},
    {"merge_across_iterations"},
    {"equal_dimensions_assumed"},
    {"substitution_across_write"},
    {"contraction_of_what_is_read_later"},
    {"hoisted_out_of_empty_loop"},
    {"zeros_of_both_signs_are_one"},
    {"common_subexpression_across_write"},
    {"live_store_removed"},
    {"forwarded_across_write"},
    {"mask_removed_one_element_early"},
    {"impossible_condition_dropped"},
    {"scatter_inverted_with_wrong_residue"},
    {"reset_block_dropped"},
    // Values.
    {"fill_of_wrong_sign"},
    {"floordiv_truncates"},
    {"mod_of_wrong_sign"},
    {"index_division_truncates"},
    {"index_remainder_of_wrong_sign"},
    {"gather_index_of_32_bits"},
    {"gather_unchecked"},
    {"bf16_truncated"},
    {"fma_subtracts"},
    {"gates_left_out"},
    {"param_read_at_compile_time"},
    // Registers and the machine.
    {"spill_slot_reused_while_live"},
    {"callee_saved_not_restored"},
    {"upper_halves_not_cleared"},
    {"hoisted_constant_clobbered"},
    {"prefetch_that_faults"},
    {"streaming_store_without_fence"},
    // Layouts, memory, caches, threads.
    {"broadcast_stride_of_one"},
    {"stride_of_wrong_axis"},
    {"layout_class_ignored"},
    {"arena_slots_overlap"},
    {"memory_taken_over_while_read"},
    {"workspace_reused_for_other_shapes"},
    {"kept_value_overwritten"},
    {"kept_values_of_another_call"},
    {"workers_share_memory"},
    {"cache_key_without_set"},
    {"size_class_too_high"},
    {"dependent_loop_parallel"},
    {"piece_runs_on"},
    // Schedules.
    {"transpose_tail_unwritten"},
    {"jam_remainder_skipped"},
    {"jam_remainder_twice"},
    {"last_step_is_the_first"},
    {"reads_of_a_step_assigned"},
    {"last_strip_whole"},
    {"last_piece_whole"},
    {"last_rows_skipped"},
    {"last_rows_one_early"},
    {"panel_tail_not_zeroed"},
    {"panel_of_other_columns"},
    {"sum_block_starts_anew"},
    {"sum_blocks_overlap"},
    {"epilogue_after_first_block"},
    {"mask_of_element_ignored"},
    {"mask_of_kept_sum_dropped"},
    {"strip_reads_row_before"},
    {"split_sum_of_what_is_made"},
    {"scan_row_starts_anew"},
    {"part_of_axis_merged"},
    {"changing_copy_hoisted"},
    {"second_run_skipped"},
    // Gradients.
    {"div_gradient_without_minus"},
    {"ties_given_in_full"},
    {"ties_with_what_is_given"},
    {"fan_out_assigned"},
    {"factors_before_left_out"},
    {"reflection_not_undone"},
};

struct Settings {
  std::string time = "60s", seed = "1";
  std::vector<std::string> names;  // empty: all
};

struct Outcome {
  int exit_code;
  std::string text;
};

Outcome Check(const std::string& mutant, const Settings& settings) {
  const std::string command = absl::StrCat(
      "NESTOR_MUTANT=", mutant, " cli/nestor check --random --shrink=0s --time=", settings.time,
      " --seed=", settings.seed, " 2>/dev/null");
  Outcome outcome{2, ""};
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  for (size_t count; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    outcome.text.append(buffer, count);
  outcome.exit_code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

// The value of a line `key: value`.
std::string Figure(const std::string& text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, key) && absl::ConsumePrefix(&line, ": "))
      return std::string(line);
  }
  return "?";
}

std::string FirstLineOfFinding(const std::string& text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "seed ")) return std::string(line.substr(0, 160));
  }
  return "";
}

bool IsFound(const Mutant& mutant, const Settings& settings) {
  const Outcome outcome = Check(mutant.name, settings);
  const bool found = outcome.exit_code == 1;
  std::printf("%-36s %s after %s trials, %s s  %s\n", mutant.name, found ? "found" : "MISSED",
              Figure(outcome.text, "trials").c_str(), Figure(outcome.text, "seconds").c_str(),
              found ? FirstLineOfFinding(outcome.text).c_str() : mutant.why_missed);
  std::fflush(stdout);
  return found;
}

int Run(const Settings& settings) {
  const Outcome none = Check("", settings);
  if (none.exit_code != 0) {
    std::printf("without a fault, too, the check finds something:\n%s\n", none.text.c_str());
    return 2;
  }
  int found = 0, missed = 0, unexpected = 0;
  for (const Mutant& mutant : kMutants) {
    if (!settings.names.empty() &&
        std::count(settings.names.begin(), settings.names.end(), mutant.name) == 0)
      continue;
    const bool is_found = IsFound(mutant, settings);
    ++(is_found ? found : missed);
    unexpected += !is_found && *mutant.why_missed == '\0';
  }
  std::printf("%d found, %d missed\n", found, missed);
  return unexpected == 0 ? 0 : 1;
}

Settings ReadSettings(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (absl::ConsumePrefix(&word, "--time=")) settings.time = std::string(word);
    else if (absl::ConsumePrefix(&word, "--seed=")) settings.seed = std::string(word);
    else settings.names.emplace_back(word);
  }
  return settings;
}

}  // namespace
}  // namespace nestor

int main(int argc, char** argv) { return nestor::Run(nestor::ReadSettings(argc, argv)); }
