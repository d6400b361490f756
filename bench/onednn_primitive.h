// The common part of all peers that are one primitive of oneDNN: views of buffers, errors, and the
// way from a primitive to a peer.
#ifndef NESTOR_BENCH_ONEDNN_PRIMITIVE_H_
#define NESTOR_BENCH_ONEDNN_PRIMITIVE_H_

#include <dnnl.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/onednn_call.h"
#include "bench/row.h"

namespace nestor::bench {

// Compact, the last axis innermost.
dnnl::memory::desc CompactDescriptor(const dnnl::memory::dims& shape);
// ... of an f32 tensor's shape.
dnnl::memory::desc DescriptorOf(const Tensor& tensor);

// A buffer as an argument of a primitive.
struct OneDnnOperand {
  int argument;  // DNNL_ARG_..
  std::string buffer;
  dnnl::memory::desc layout = {};  // of the buffer
  bool result = false;
};

// Runs `primitive` on the operands. Where `description`, from which it was made, has a layout other
// than the buffer's, the operand has memory of its own: inputs are copied there now, results are
// copied back when they are delivered. Throws dnnl::error.
Peer PrimitivePeer(absl::string_view engine, const dnnl::primitive& primitive,
                   const dnnl::primitive_desc_base& description,
                   const std::vector<OneDnnOperand>& operands, Buffers& buffers);

// The result of `make`; oneDNN reports by exceptions, which this turns into Statuses.
template <class Make>
absl::StatusOr<Peer> GuardedFromOneDnn(const Make& make) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN: ", error.what()));
  }
}

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_ONEDNN_PRIMITIVE_H_
