// Kernels that somebody else compiled, in any language that has C functions: from a shared
// object, called by the prototype that check/c_prototype derives from the op.
#ifndef NESTOR_CHECK_C_KERNEL_H_
#define NESTOR_CHECK_C_KERNEL_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "check/c_prototype.h"
#include "check/kernel_call.h"

namespace nestor {

// A shared object that stays loaded in this process until the last copy of this is destroyed.
class SharedLibrary {
 public:
  using Function = void (*)();

  // As dlopen, but a name without "/" is first looked for in the current directory. Runs
  // the initialisers of the library, which is trusted. NotFound has the loader's message
  // and the file's name.
  static absl::StatusOr<SharedLibrary> Open(const std::string& file);

  // NotFound names the file, the symbol and, where there is one, a similar symbol; it also says if
  // the symbol is there under its mangled C++ name.
  absl::StatusOr<Function> Find(const std::string& symbol) const;

 private:
  SharedLibrary(std::string file, std::shared_ptr<void> handle)
      : file_(std::move(file)), handle_(std::move(handle)) {}

  std::string file_;
  std::shared_ptr<void> handle_;
};

// Calls `function` by `prototype`: OK for kKernelDone, Unimplemented for kKernelDeclines,
// Unknown, with the number, for any other. Unimplemented, too, where the prototype has no
// strides and a view is not compact. REQUIRES: the calls are of the prototype's op.
Kernel CKernel(CPrototype prototype, SharedLibrary::Function function);

// One call of the kernel, to be run often: its arguments are read from `call` now. The tensors that
// `call` views must outlive it. For timing.
std::function<absl::Status()> CKernelCall(CPrototype prototype, SharedLibrary::Function function,
                                          const KernelCall& call);

// CKernel of a function in a library, which it keeps loaded.
absl::StatusOr<Kernel> LoadCKernel(const std::string& file, const CPrototype& prototype);

// The same, but loaded by the first call, in each process that makes one: initialisers of the
// library then run where the kernel does. A call gives the Status of LoadCKernel where that fails.
Kernel LateCKernel(const std::string& file, const CPrototype& prototype);

// The Status of LoadCKernel in a process of its own. Unavailable where an initialiser of the
// library ends the process, or takes longer than `patience`. REQUIRES: as RunInChild.
absl::Status TryLoadCKernel(const std::string& file, const CPrototype& prototype,
                            absl::Duration patience);

}  // namespace nestor

#endif  // NESTOR_CHECK_C_KERNEL_H_
