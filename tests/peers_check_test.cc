// The reports of Check on kernels that many use: each is judged on drawn cases. Prints the table of
// docs/peers.md. NESTOR_PEER=softmax judges only kernels with that in their names.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "check/check.h"
#include "gtest/gtest.h"
#include "tests/peer_kernels.h"

namespace nestor {
namespace {

// Options for a run long enough for the rarest finding; if there is none, short.
CheckOptions OptionsFor(const PeerKernel& peer) {
  const bool searches = !peer.finding.empty();
  CheckOptions options = peer.options;
  return options.Isolated().Trials(searches ? 2000 : 400).For(absl::Seconds(searches ? 30 : 4));
}

// A finding may depend on the instruction set, so it need not occur on every machine.
void Judge(const PeerKernel& peer) {
  const char* const only = std::getenv("NESTOR_PEER");
  if (only != nullptr && !absl::StrContains(peer.name, only)) return;
  const absl::StatusOr<CheckReport> report = CheckKernel(peer.op, peer.kernel, OptionsFor(peer));
  ASSERT_TRUE(report.ok()) << peer.name << ": " << report.status();
  absl::PrintF("| %s | %d | %d | %s | %.2g |\n", peer.name, report->trials, report->skipped,
               report->IsRight() ? "right" : std::string(Name(report->fault)),
               report->histogram.largest);
  if (peer.finding.empty()) EXPECT_TRUE(report->IsRight()) << peer.name << ": " << *report;
  else absl::PrintF("%s; known: %s\n", report->ToString(), peer.finding);
  std::fflush(stdout);
}

TEST(PeersCheck, OpenBlas) {
  for (const PeerKernel& peer : OpenBlasKernels()) Judge(peer);
}

TEST(PeersCheck, OneDnn) {
  for (const PeerKernel& peer : OneDnnKernels()) Judge(peer);
}

}  // namespace
}  // namespace nestor
