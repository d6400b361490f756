// libffi calls a function whose parameters are known only at run time: it is given a type and the
// address of a value for each. Values are taken from the call in the order of the prototype; eight
// bytes hold any.
#include "check/c_kernel.h"

#include <ffi.h>

#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "check/child.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

using Kind = CParameter::Kind;

// By the name that the C type has in the prototype, so the call and the header cannot disagree.
ffi_type* ValueType(DType type) {
  static const auto* const types = new absl::flat_hash_map<absl::string_view, ffi_type*>{
      {"bool", &ffi_type_uint8},      {"float", &ffi_type_float},    {"double", &ffi_type_double},
      {"int8_t", &ffi_type_sint8},    {"int16_t", &ffi_type_sint16}, {"int32_t", &ffi_type_sint32},
      {"int64_t", &ffi_type_sint64},  {"uint8_t", &ffi_type_uint8},  {"uint16_t", &ffi_type_uint16},
      {"uint32_t", &ffi_type_uint32}, {"uint64_t", &ffi_type_uint64}};
  return types->at(CType(type));
}

ffi_type* TypeOf(const CParameter& parameter) {
  const bool is_pointer = parameter.kind == Kind::kInput || parameter.kind == Kind::kOutput;
  return is_pointer ? &ffi_type_pointer : ValueType(parameter.type);
}

struct Value {
  alignas(8) char bytes[8] = {};
};

// The number or address as it lies in memory; libffi reads as many bytes as the type has.
Value ValueOf(const CParameter& parameter, const KernelCall& call) {
  Value value;
  const auto store = [&](auto number) { std::memcpy(value.bytes, &number, sizeof(number)); };
  switch (parameter.kind) {
    case Kind::kInput:
    case Kind::kOutput: store(call.view(parameter.of).data); break;
    case Kind::kStride: store(call.stride(parameter.of, parameter.axis)); break;
    case Kind::kDimension: store(call.dim(parameter.of)); break;
    case Kind::kParam: Store(call.scalar(parameter.of), value.bytes); break;
  }
  return value;
}

// The prototype in libffi's form; it may not move, as `cif` points into it.
// Immutable once made, so one may serve many calls.
class CFunction {
 public:
  CFunction(CPrototype prototype, SharedLibrary::Function function)
      : prototype_(std::move(prototype)), function_(function) {
    for (const CParameter& parameter : prototype_.parameters) types_.push_back(TypeOf(parameter));
    const ffi_status status =
        ffi_prep_cif(&cif_, FFI_DEFAULT_ABI, static_cast<unsigned>(types_.size()), &ffi_type_sint,
                     types_.data());
    NESTOR_CHECK(status == FFI_OK, prototype_.symbol);
  }
  CFunction(const CFunction&) = delete;
  CFunction& operator=(const CFunction&) = delete;

  // Unimplemented where the function does not support the call's layouts.
  absl::StatusOr<std::vector<Value>> ValuesOf(const KernelCall& call) const {
    NESTOR_RETURN_IF_ERROR(CheckLayouts(call));
    std::vector<Value> values;
    for (const CParameter& parameter : prototype_.parameters)
      values.push_back(ValueOf(parameter, call));
    return values;
  }

  absl::Status Call(std::vector<Value>& values) const {
    std::vector<void*> addresses;
    for (Value& value : values) addresses.push_back(value.bytes);
    // libffi widens an integer result to a whole register, so that an int needs an ffi_arg.
    ffi_arg code = 0;
    ffi_call(&cif_, function_, &code, addresses.data());
    return StatusOf(static_cast<int>(code));
  }

 private:
  absl::Status CheckLayouts(const KernelCall& call) const {
    for (const CParameter& parameter : prototype_.parameters) {
      const bool is_tensor = parameter.kind == Kind::kInput || parameter.kind == Kind::kOutput;
      if (prototype_.strided || !is_tensor || IsContiguous(call.view(parameter.of))) continue;
      return absl::UnimplementedError(
          absl::StrCat("is told no strides, and ", parameter.of, " is not compact"));
    }
    return absl::OkStatus();
  }

  // Unimplemented is what Check counts as skipped; any other error is a fault of the kernel.
  absl::Status StatusOf(int code) const {
    if (code == kKernelDone) return absl::OkStatus();
    if (code == kKernelDeclines) return absl::UnimplementedError("does not do these sizes");
    return absl::UnknownError(absl::StrCat("returned ", code, ", which is neither ", kKernelDone,
                                           " (done) nor ", kKernelDeclines,
                                           " (does not do these sizes)"));
  }

  CPrototype prototype_;
  SharedLibrary::Function function_;
  std::vector<ffi_type*> types_;
  mutable ffi_cif cif_;  // ffi_call takes it as not const, and writes nothing
};

}  // namespace

Kernel CKernel(CPrototype prototype, SharedLibrary::Function function) {
  auto shared = std::make_shared<const CFunction>(std::move(prototype), function);
  return [shared](const KernelCall& call) -> absl::Status {
    NESTOR_ASSIGN_OR_RETURN(std::vector<Value> values, shared->ValuesOf(call));
    return shared->Call(values);
  };
}

std::function<absl::Status()> CKernelCall(CPrototype prototype, SharedLibrary::Function function,
                                          const KernelCall& call) {
  auto shared = std::make_shared<const CFunction>(std::move(prototype), function);
  auto values = shared->ValuesOf(call);
  if (!values.ok()) return [status = values.status()] { return status; };
  return [shared, values = *std::move(values)]() mutable { return shared->Call(values); };
}

absl::StatusOr<Kernel> LoadCKernel(const std::string& file, const CPrototype& prototype) {
  NESTOR_ASSIGN_OR_RETURN(const SharedLibrary library, SharedLibrary::Open(file));
  NESTOR_ASSIGN_OR_RETURN(const SharedLibrary::Function function, library.Find(prototype.symbol));
  // The capture keeps the library loaded for as long as the kernel may be called.
  return [library, kernel = CKernel(prototype, function)](const KernelCall& call) {
    return kernel(call);
  };
}

// Loads at the first call, which Check makes in a child when it isolates trials: the library's
// initialisers then run there. A failure to load is kept as well, and returned by each call.
Kernel LateCKernel(const std::string& file, const CPrototype& prototype) {
  // Shared by all copies of the std::function, so the library is loaded once in a process.
  auto loaded = std::make_shared<absl::optional<absl::StatusOr<Kernel>>>();
  return [=](const KernelCall& call) -> absl::Status {
    if (!*loaded) *loaded = LoadCKernel(file, prototype);
    return (*loaded)->ok() ? (**loaded).value()(call) : (*loaded)->status();
  };
}

// In a child: a library's initialisers may crash or hang, and this process has to say so.
absl::Status TryLoadCKernel(const std::string& file, const CPrototype& prototype,
                            absl::Duration patience) {
  absl::optional<std::string> error;
  const ChildEnd end =
      RunInChild([&](Say say) { say(LoadCKernel(file, prototype).status().message()); },
                 [&](absl::string_view message) {
                   error = std::string(message);
                   return true;
                 },
                 patience);
  if (error && error->empty()) return absl::OkStatus();
  if (error) return absl::NotFoundError(*error);
  const std::string death = end.death.empty() ? "exited with 0" : end.death;
  return absl::UnavailableError(
      absl::StrCat("while ", file, " is loaded, its initialisers ",
                   end.is_hung ? "do not end: the process " : "end the process: ", death,
                   end.words.empty() ? "" : "; it says: ", end.words));
}

}  // namespace nestor
