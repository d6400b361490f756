// Any bytes as a .npy file: an error, or a tensor that is written and read as the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor/npy.h"
#include "uops/invariant.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<nestor::Tensor> tensor =
      nestor::ReadNpyFromString(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!tensor.ok()) return 0;
  const absl::StatusOr<std::string> bytes = nestor::WriteNpyToString(*tensor);
  NESTOR_CHECK(bytes.ok(), bytes.status().ToString());
  const absl::StatusOr<nestor::Tensor> again = nestor::ReadNpyFromString(*bytes);
  NESTOR_CHECK(again.ok() && nestor::BitEqual(*tensor, *again), "another tensor");
  return 0;
}
