// Similar names are looked for among those that the library defines. Its dynamic section in memory
// lists these in a table of symbols, whose length only the hash table tells.
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "check/c_kernel.h"
#include "uops/invariant.h"
#include "uops/message.h"

namespace nestor {
namespace {

// The value of an entry of the dynamic section: an address.
template <class T>
const T* Entry(const link_map& map, ElfW(Sxword) tag) {
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == tag) return reinterpret_cast<const T*>(entry->d_un.d_ptr);
  }
  return nullptr;
}

// One more than the number of the last symbol that a DT_GNU_HASH table holds: four words,
// a Bloom filter, the first symbol of each bucket, and a chain for each bucket, the end of
// which is odd.
size_t EndOfSymbols(const uint32_t* table) {
  const uint32_t buckets = table[0], first = table[1], filter_words = table[2];
  const uint32_t* const bucket = table + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* const chain = bucket + buckets;
  const uint32_t last = buckets == 0 ? 0 : *std::max_element(bucket, bucket + buckets);
  if (last < first) return 0;
  size_t symbol = last;
  while ((chain[symbol - first] & 1) == 0) ++symbol;
  return symbol + 1;
}

// The functions that the library exports, for the message that one is missing. dlsym finds a name
// but lists none, so the table of symbols is read as the loader does. Empty where the library has
// no GNU hash table, which alone says how many symbols there are.
std::vector<std::string> FunctionsOf(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return {};
  const auto* const symbols = Entry<ElfW(Sym)>(*map, DT_SYMTAB);
  const auto* const strings = Entry<char>(*map, DT_STRTAB);
  const auto* const hashes = Entry<uint32_t>(*map, DT_GNU_HASH);
  if (symbols == nullptr || strings == nullptr || hashes == nullptr) return {};
  std::vector<std::string> names;
  for (size_t i = 0, end = EndOfSymbols(hashes); i < end; ++i) {
    const bool is_function = ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC;
    if (is_function && symbols[i].st_shndx != SHN_UNDEF)
      names.emplace_back(strings + symbols[i].st_name);
  }
  return names;
}

// "softmax(float const*, float*, long, long)" of C++, or "".
std::string Demangled(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  const std::string result = status == 0 && text != nullptr ? text : "";
  std::free(text);
  return result;
}

std::string Suggestion(const std::string& symbol, const std::vector<std::string>& functions) {
  for (const std::string& function : functions) {
    const std::string name = Demangled(function);
    if (absl::StartsWith(name, absl::StrCat(symbol, "("))) {
      return absl::StrCat(", but one of C++, ", name, ": declare it extern \"C\"");
    }
  }
  return DidYouMean(symbol, functions);
}

// ---- Before it is loaded

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

template <class T>
absl::optional<T> ReadAt(std::ifstream& file, uint64_t offset) {
  T value;
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  if (!file.read(reinterpret_cast<char*>(&value), sizeof(value))) return absl::nullopt;
  return value;
}

// How many bytes the segments of an ELF file span; 0 for other files, which dlopen refuses.
uint64_t BytesOfSegments(std::ifstream& file) {
  const auto header = ReadAt<ElfW(Ehdr)>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return 0;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = ReadAt<ElfW(Phdr)>(file, header->e_phoff + i * sizeof(ElfW(Phdr)));
    if (segment && segment->p_type == PT_LOAD)
      bytes = std::max(bytes, segment->p_offset + segment->p_filesz);
  }
  return bytes;
}

// The loader maps a file that was cut short as if it were whole, and the first access to a missing
// part ends the process.
absl::Status CheckWhole(const std::string& file, const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return absl::OkStatus();
  std::ifstream contents(path, std::ios::binary);
  const uint64_t size = static_cast<uint64_t>(info.st_size), needed = BytesOfSegments(contents);
  if (needed <= size) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("cannot load ", file, ": truncated: its segments need ",
                                          needed, " bytes, there are ", size));
}

}  // namespace

absl::StatusOr<SharedLibrary> SharedLibrary::Open(const std::string& file) {
  // To dlopen, an empty name means this program.
  if (file.empty()) return absl::NotFoundError("cannot load a library without a name");
  const std::string path =
      !absl::StrContains(file, '/') && Exists(file) ? absl::StrCat("./", file) : file;
  NESTOR_RETURN_IF_ERROR(CheckWhole(file, path));
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return SharedLibrary(file, std::shared_ptr<void>(handle, dlclose));
  absl::string_view reason = dlerror();
  absl::ConsumePrefix(&reason, absl::StrCat(path, ": "));  // not all of them name it
  return absl::NotFoundError(absl::StrCat("cannot load ", file, ": ", reason));
}

absl::StatusOr<SharedLibrary::Function> SharedLibrary::Find(const std::string& symbol) const {
  void* const found = dlsym(handle_.get(), symbol.c_str());
  if (found != nullptr) return reinterpret_cast<Function>(found);
  return absl::NotFoundError(absl::StrCat(file_, " has no function '", symbol, "'",
                                          Suggestion(symbol, FunctionsOf(handle_.get()))));
}

}  // namespace nestor
