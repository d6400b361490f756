// A kernel may crash or hang, so a trial can run in a child process; then its outcome comes back as
// bytes. The wrong elements are looked up in the oracle afterwards.
#include "check/examine.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "check/fault_message.h"

namespace nestor {
namespace {

// ---- An outcome as bytes, on its way from a child

// Both ends of the pipe are one program, so the bytes of its own structs are the format.
template <class T>
void Append(const T& value, std::string& bytes) {
  static_assert(std::is_trivially_copyable_v<T>, "only plain data travels");
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

template <class T>
T Take(absl::string_view& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

std::string ToBytes(const Outcome& outcome) {
  std::string bytes;
  Append(outcome.fault, bytes);
  Append(outcome.message.size(), bytes);
  bytes += outcome.message;
  Append(outcome.verdict.elements, bytes);
  Append(outcome.verdict.by_bounds, bytes);
  Append(outcome.verdict.by_wider, bytes);
  Append(outcome.verdict.wrong_count, bytes);
  Append(outcome.verdict.histogram, bytes);
  Append(outcome.verdict.wrong.size(), bytes);
  for (const WrongElement& wrong : outcome.verdict.wrong) Append(wrong, bytes);
  return bytes;
}

// REQUIRES: `bytes` come from ToBytes.
Outcome FromBytes(absl::string_view bytes) {
  Outcome outcome;
  outcome.fault = Take<Fault>(bytes);
  const size_t size = Take<size_t>(bytes);
  outcome.message = std::string(bytes.substr(0, size));
  bytes.remove_prefix(size);
  outcome.verdict.elements = Take<int64_t>(bytes);
  outcome.verdict.by_bounds = Take<int64_t>(bytes);
  outcome.verdict.by_wider = Take<int64_t>(bytes);
  outcome.verdict.wrong_count = Take<int64_t>(bytes);
  outcome.verdict.histogram = Take<ErrorHistogram>(bytes);
  const size_t count = Take<size_t>(bytes);
  for (size_t i = 0; i < count; ++i) outcome.verdict.wrong.push_back(Take<WrongElement>(bytes));
  return outcome;
}

// Sets the elements that a run names, with the oracle's judgement where there is one.
// For faults that are about elements, such as one that is not written: those take the place of the
// judge's.
void NameElements(const KernelRun& run, Outcome& outcome) {
  const std::vector<WrongElement> judged = std::exchange(outcome.verdict.wrong, {});
  outcome.verdict.wrong_count = 0;
  for (size_t r = 0; r < run.elements.size(); ++r) {
    for (int64_t i : run.elements[r]) {
      ++outcome.verdict.wrong_count;
      if (outcome.verdict.wrong.size() >= Verdict::kMostKept) continue;
      WrongElement element;
      element.result = static_cast<int32_t>(r);
      element.element = i;
      element.got = ElementOf(run.outputs[r], i);
      for (const WrongElement& other : judged) {
        if (other.result == element.result && other.element == i) element = other;
      }
      outcome.verdict.wrong.push_back(element);
    }
  }
}

}  // namespace

// Runs the kernel, then judges what it wrote, even where it broke a rule: a report names both. The
// kernel's faults outweigh wrong elements.
Outcome Examine(const Subject& subject, const Case& given, GuardedPool& pool, KernelClock* clock) {
  const Op& op = subject.source.op;
  if (clock != nullptr) clock->Begin();
  const KernelRun run = RunKernel(subject.kernel, op, given, subject.run, pool);
  if (clock != nullptr) clock->End();
  Outcome outcome;
  outcome.fault = run.fault;
  outcome.message = run.message;
  if (run.outputs.empty() || run.fault == Fault::kSkipped || run.fault == Fault::kMisuse)
    return outcome;
  const RunInputs inputs = given.Inputs(op);
  const Judge& judge = subject.judge;
  absl::StatusOr<Verdict> verdict =
      subject.sample > 0
          ? judge.DecideSample(inputs, run.outputs, subject.sample, given.sample_seed)
          : judge.Decide(inputs, run.outputs);
  if (verdict.ok()) outcome.verdict = *std::move(verdict);
  if (!run.elements.empty()) NameElements(run, outcome);
  if (run.fault != Fault::kNone) return outcome;
  if (!verdict.ok()) {
    outcome.fault = Fault::kUndecided;
    outcome.message = std::string(verdict.status().message());
  } else if (outcome.verdict.wrong_count > 0) {
    outcome.fault = Fault::kWrong;
    outcome.message =
        absl::StrCat("gives ", outcome.verdict.wrong_count, " of ", outcome.verdict.elements,
                     outcome.verdict.elements == 1 ? " element" : " elements", " wrong");
  }
  return outcome;
}

Outcome OutcomeOfDeath(const ChildEnd& end, absl::Duration patience, const KernelNotes& notes) {
  Outcome outcome;
  outcome.fault = end.is_hung ? Fault::kHang : Fault::kCrash;
  if (end.is_hung && notes.clock.HasReturned()) {
    // A thread or an atexit handler of the kernel's, or a lock that it holds.
    outcome.message = "returns, but after it the process does not go on";
  } else if (end.is_hung) {
    outcome.message = absl::StrCat("does not end within ", absl::FormatDuration(patience));
  } else {
    outcome.message = DeathText(end);
  }
  const absl::string_view fault_message = notes.fault_message;
  if (!fault_message.empty()) absl::StrAppend(&outcome.message, ": ", fault_message);
  const absl::string_view words = absl::StripAsciiWhitespace(end.words);
  if (!words.empty()) absl::StrAppend(&outcome.message, "; it says: ", words);
  return outcome;
}

// The child says its outcome as bytes; where it dies first, its end is the outcome, with the notes
// that it left in shared memory.
Outcome ExamineInChild(const Subject& subject, const Case& given, absl::Duration patience) {
  const Shared<KernelNotes> notes;
  std::string result;
  ChildEnd end = RunInChild(
      [&](Say say) {
        KeepFaultMessages(notes->fault_message, sizeof(notes->fault_message));
        GuardedPool pool;
        say(ToBytes(Examine(subject, given, pool, &notes->clock)));
      },
      [&](absl::string_view message) {
        result = std::string(message);
        return true;
      },
      patience, [&] { return notes->clock.IsInTime(patience); });
  if (end.death.empty() && result.empty()) end.death = "exited with 0";
  return end.death.empty() ? FromBytes(result) : OutcomeOfDeath(end, patience, *notes);
}

}  // namespace nestor
