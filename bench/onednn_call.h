// One primitive of oneDNN on memory in any layout: an argument in another layout than the primitive
// was made for is copied into memory of its own.
#ifndef NESTOR_BENCH_ONEDNN_CALL_H_
#define NESTOR_BENCH_ONEDNN_CALL_H_

#include <dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nestor::bench {

// The CPU.
const dnnl::engine& OneDnnEngine();

struct OneDnnArgument {
  int argument;  // DNNL_ARG_..
  dnnl::memory given;
  bool result = false;
};

// Copyable; copies share memory. Throws dnnl::error.
class OneDnnCall {
 public:
  // Brings inputs into the layouts of `description`, from which `primitive` was made, where
  // these are other than those given.
  OneDnnCall(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& description,
             const std::vector<OneDnnArgument>& arguments);

  void Run() const;
  // Copies results from the primitive's layouts to the memory given for them.
  void Deliver() const;

 private:
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::vector<std::pair<dnnl::memory, dnnl::memory>> deliveries_;  // from, to
};

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_ONEDNN_CALL_H_
