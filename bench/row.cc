// Engines of a row are made differently but used alike: each becomes a contender, a function
// without arguments. Nestor's are its compiled steps, the limit's write sums over the outputs, a
// peer makes its own. So results are compared first; after that the contents of the outputs
// do not matter.
#include "bench/row.h"

#include <iterator>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/nestor_kernel.h"
#include "uops/invariant.h"

namespace nestor::bench {
namespace {

struct BoundKernel {
  std::unique_ptr<NestorKernel> kernel;
  std::vector<TensorView> inputs, outputs;
};
// Shared, as std::function copies its captures.
using BoundKernels = std::shared_ptr<std::vector<BoundKernel>>;

absl::StatusOr<std::vector<TensorView>> ViewsOf(absl::Span<const std::string> names,
                                                Buffers& buffers) {
  std::vector<TensorView> views;
  for (const std::string& name : names) {
    if (!buffers.Has(name))
      return absl::InvalidArgumentError(absl::StrCat("the row has no buffer ", name));
    views.push_back(buffers[name]);
  }
  return views;
}

absl::Status RunAll(std::vector<BoundKernel>& kernels) {
  for (BoundKernel& bound : kernels)
    NESTOR_RETURN_IF_ERROR(bound.kernel->Run(bound.inputs, bound.outputs));
  return absl::OkStatus();
}

// Compiles the steps and binds them to the buffers.
absl::StatusOr<BoundKernels> CompileAll(absl::Span<const Step> steps, Buffers& buffers,
                                        int threads) {
  auto kernels = std::make_shared<std::vector<BoundKernel>>();
  for (const Step& step : steps) {
    BoundKernel bound;
    const NestorKernel::Options options = {
        .threads = threads, .gradient = step.gradient, .wrt = step.wrt};
    NESTOR_ASSIGN_OR_RETURN(bound.kernel, NestorKernel::Compile(step.notation, options));
    for (const std::string& name : step.bound) {
      NESTOR_RETURN_IF_ERROR(bound.kernel->Bind(name, buffers[name]));
    }
    NESTOR_ASSIGN_OR_RETURN(bound.inputs, ViewsOf(bound.kernel->arguments(), buffers));
    NESTOR_ASSIGN_OR_RETURN(bound.outputs, ViewsOf(bound.kernel->results(), buffers));
    kernels->push_back(std::move(bound));
  }
  return kernels;
}

// Also runs the steps once.
absl::StatusOr<Peer> Prepare(absl::string_view engine, absl::Span<const Step> steps,
                             Buffers& buffers, int threads) {
  NESTOR_ASSIGN_OR_RETURN(const BoundKernels kernels, CompileAll(steps, buffers, threads));
  NESTOR_RETURN_IF_ERROR(RunAll(*kernels));
  const auto run = [kernels] {
    const absl::Status status = RunAll(*kernels);
    NESTOR_CHECK(status.ok(), status.ToString());
  };
  return Peer{std::string(engine), run, nullptr, /*compared=*/true};
}

// ---- Comparison ----

absl::StatusOr<double> LargestDifference(absl::Span<const Tensor> want,
                                         absl::Span<const Tensor> got) {
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    NESTOR_ASSIGN_OR_RETURN(const double difference, MaxRelativeDifference(want[i], got[i]));
    largest = std::max(largest, difference);
  }
  return largest;
}

absl::StatusOr<double> Compare(const Peer& peer, absl::Span<const Tensor> nestor,
                               Buffers& buffers) {
  buffers.PoisonOutputs();
  peer.run();
  if (peer.deliver) peer.deliver();
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Tensor> want, buffers.CopyOutputs());
  return LargestDifference(want, nestor);
}

absl::Status CompareAll(const Row& row, absl::Span<const Peer> peers, Buffers& buffers,
                        RowResult& result) {
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Tensor> nestor, buffers.CopyOutputs());
  for (const Peer& peer : peers) {
    if (!peer.compared) continue;
    NESTOR_ASSIGN_OR_RETURN(const double difference, Compare(peer, nestor, buffers));
    result.max_difference = std::max(result.max_difference.value_or(0), difference);
    if (!(difference <= row.tolerance)) {
      return absl::InternalError(
          absl::StrFormat("differs from %s by %.2g", peer.engine, difference));
    }
  }
  return absl::OkStatus();
}

// ---- The row ----

// Adds the status to the earlier failures.
void Fail(const absl::Status& status, absl::string_view engine, RowResult& result) {
  if (status.ok()) return;
  absl::StrAppend(&result.failure, result.failure.empty() ? "" : "; ", engine, ": ",
                  status.message());
}

std::vector<Peer> MakePeers(const Row& row, Buffers& buffers, int threads, RowResult& result) {
  std::vector<Peer> peers;
  for (const PeerMaker& make : row.peers) {
    absl::StatusOr<Peer> peer = make(buffers, threads);
    Fail(peer.status(), "a peer", result);
    if (peer.ok()) peers.push_back(*std::move(peer));
  }
  return peers;
}

// The names of the peers whose results are the row's.
std::vector<std::string> NamesOf(absl::Span<const Peer> peers) {
  std::vector<std::string> names;
  for (const Peer& peer : peers) {
    if (peer.compared) names.push_back(peer.engine);
  }
  return names;
}

// The vector operations by f32 results; those of wider types count for more.
absl::StatusOr<Operations> OperationsOf(const Row& row, Buffers& buffers) {
  NESTOR_ASSIGN_OR_RETURN(const BoundKernels kernels,
                          CompileAll(row.steps, buffers, /*threads=*/1));
  Operations sum;
  for (const BoundKernel& bound : *kernels) {
    NESTOR_ASSIGN_OR_RETURN(const loop::Statistics statistics, bound.kernel->Count(bound.inputs));
    sum.all += statistics.result_bytes / sizeof(float);
    sum.products += statistics.product_bytes / sizeof(float);
    sum.quotients += statistics.quotient_bytes / sizeof(float);
  }
  return sum;
}

std::vector<Contender> LimitsOf(const Row& row, Buffers& buffers, ThreadTeam& team,
                                RowResult& result) {
  NESTOR_CHECK(row.traffic.empty() || row.multiply_adds == 0,
               "a row is bound by bytes or by arithmetic");
  if (row.traffic.empty()) return ArithmeticContenders(row.multiply_adds, team);
  std::vector<Contender> contenders = LimitContenders(row.traffic, buffers, team);
  if (!row.counts_operations) return contenders;
  const absl::StatusOr<Operations> operations = OperationsOf(row, buffers);
  Fail(operations.status(), "the count of operations", result);
  if (operations.ok())
    absl::c_move(OperationContenders(*operations, team), std::back_inserter(contenders));
  return contenders;
}

}  // namespace

Row OfOperations(Row row, double fraction) {
  row.name += ", of its operations";
  row.counts_operations = true;
  row.goal = {OfLimit(fraction)};
  return row;
}

// An engine that fails is named in the result, and the others run all the same.
RowResult RunRow(const Row& row, ThreadTeam& team, const MeasureOptions& options) {
  RowResult result;
  result.row = row.name;
  result.threads = team.size();
  result.goal = row.goal;
  absl::StatusOr<Buffers> buffers = Buffers::Create(row.buffers);
  Fail(buffers.status(), "buffers", result);
  if (!buffers.ok()) return result;

  const std::vector<Peer> peers = MakePeers(row, *buffers, team.size(), result);
  std::vector<Contender> contenders;
  const absl::StatusOr<Peer> nestor = Prepare(kNestor, row.steps, *buffers, team.size());
  Fail(nestor.status(), kNestor, result);
  if (nestor.ok()) {
    contenders.push_back({nestor->engine, nestor->run});
    Fail(CompareAll(row, peers, *buffers, result), kNestor, result);
  }
  for (const Peer& peer : peers) contenders.push_back({peer.engine, peer.run});
  for (Contender& limit : LimitsOf(row, *buffers, team, result))
    contenders.push_back(std::move(limit));

  result.readings = MeasureAlternating(contenders, options);
  for (Reading& reading : result.readings) reading.cost *= 1e3;
  JoinLimits(result);
  NameBestPeer(NamesOf(peers), result);
  return result;
}

// Nestor as a peer of itself, with other buffers: a way to compare two forms of one op.
PeerMaker NestorPeer(std::string engine, std::vector<BufferSpec> buffers, std::vector<Step> steps) {
  return [=](Buffers& rows_buffers, int threads) -> absl::StatusOr<Peer> {
    std::vector<BufferSpec> specs = buffers;
    for (BufferSpec& spec : specs) spec.shape = rows_buffers[spec.name].shape();
    NESTOR_ASSIGN_OR_RETURN(Buffers made, Buffers::Create(specs));
    const auto own = std::make_shared<Buffers>(std::move(made));
    NESTOR_ASSIGN_OR_RETURN(Peer peer, Prepare(engine, steps, *own, threads));
    peer.run = [own, run = std::move(peer.run)] { run(); };  // the buffers live as long
    peer.compared = false;
    return peer;
  };
}

}  // namespace nestor::bench
