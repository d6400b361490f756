// A primitive says in which layout it takes an argument; a reorder, which is also a primitive,
// copies between two layouts.
#include "bench/onednn_call.h"

namespace nestor::bench {
namespace {

using dnnl::memory;

void Reorder(const memory& from, const memory& to) {
  dnnl::stream stream(OneDnnEngine());
  memory source = from, destination = to;
  dnnl::reorder(source, destination).execute(stream, source, destination);
  stream.wait();
}

}  // namespace

const dnnl::engine& OneDnnEngine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

OneDnnCall::OneDnnCall(const dnnl::primitive& primitive,
                       const dnnl::primitive_desc_base& description,
                       const std::vector<OneDnnArgument>& arguments)
    : stream_(OneDnnEngine()), primitive_(primitive) {
  for (const OneDnnArgument& a : arguments) {
    const memory::desc wanted = description.query_md(dnnl::query::exec_arg_md, a.argument);
    const bool same = wanted == a.given.get_desc();
    const memory used = same ? a.given : memory(wanted, OneDnnEngine());
    arguments_.insert({a.argument, used});
    if (same) continue;
    if (a.result) deliveries_.emplace_back(used, a.given);
    else Reorder(a.given, used);
  }
}

void OneDnnCall::Run() const {
  dnnl::stream stream = stream_;
  primitive_.execute(stream, arguments_);
  stream.wait();
}

void OneDnnCall::Deliver() const {
  for (const auto& [from, to] : deliveries_) Reorder(from, to);
}

}  // namespace nestor::bench
