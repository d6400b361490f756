// The header is a Python dictionary. numpy evaluates it; here a cursor walks the small part of that
// language which the format allows, so that errors name the place. The keys come in any order.
#include "tensor/npy_header.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// The start of a piece of the file, fit to be printed in a message.
std::string Excerpt(absl::string_view text) {
  std::string printable(text.substr(0, 24));
  for (char& c : printable) c = absl::ascii_isprint(c) ? c : '?';
  return printable;
}

// ---- Element types ----

// numpy's floats are those of IEEE 754 with 16, 32 and 64 bits.
bool IsInNumpy(DType type) {
  const int significand = FactsOf(type).significand;
  return !IsFloat(type) || significand == 11 || significand == 24 || significand == 53;
}

// The code of numpy without its byte order: a letter for the kind, and the bytes. A float that
// numpy lacks is stored as an unsigned integer.
std::string CodeOf(DType type) {
  const char* const kind = type == DType::kBool                   ? "b"
                           : IsUnsigned(type) || !IsInNumpy(type) ? "u"
                           : IsSigned(type)                       ? "i"
                                                                  : "f";
  return absl::StrCat(kind, ByteSize(type));
}

// The code that no integer has: of a float that numpy lacks, that of bytes of no type.
std::string OwnCodeOf(DType type) {
  return IsInNumpy(type) ? CodeOf(type) : absl::StrCat("V", ByteSize(type));
}

bool MayStore(absl::string_view code, DType type) {
  return code == CodeOf(type) || code == OwnCodeOf(type);
}

std::string KnownCodes() {
  return absl::StrJoin(AllTypes(), " ",
                       [](std::string* out, DType type) { absl::StrAppend(out, OwnCodeOf(type)); });
}

// The type of elements that have the same type in numpy.
// "f4" -> f32, "u2" -> u16 (bf16 only where it is expected), "c8" -> Unimplemented
absl::StatusOr<DType> OwnType(absl::string_view code, absl::string_view descr,
                              absl::optional<DType> expected) {
  for (DType type : AllTypes()) {
    if (code != OwnCodeOf(type)) continue;
    if (!IsInNumpy(type)) {
      return Malformed("elements of type '", descr, "' are read only where ", Name(type),
                       " is expected",
                       expected ? absl::StrCat(", here ", Name(*expected), " is") : "");
    }
    if (!expected) return type;
    return Malformed("holds ", Name(type), " where ", Name(*expected), " is expected");
  }
  return absl::UnimplementedError(absl::StrCat("elements of type '", Excerpt(descr),
                                               "' are not supported, only ", KnownCodes()));
}

std::string DescrOf(DType type) {
  return absl::StrCat(ByteSize(type) == 1 ? "|" : "<", CodeOf(type));
}

// ---- Header ----

// header = "{" { string ":" value [ "," ] } "}", where a value is a string, True or False, or a
// tuple of integers, as its key requires.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : text_(text) {}

  // {FIELD, FIELD, ..}: the three fields in any order, and nothing after it but blanks.
  absl::StatusOr<NpyHeader> Parse() {
    if (!Take('{')) return Expected("'{'");
    while (!Take('}')) {
      NESTOR_RETURN_IF_ERROR(Field());
      if (!Take(',') && Peek() != '}') return Expected("',' or '}'");
    }
    if (Peek() != '\0' || at_ != text_.size()) return Expected("the end");
    if (seen_ != (kDescr | kFortranOrder | kShape)) {
      return Malformed("the header lacks one of 'descr', 'fortran_order', 'shape'");
    }
    return std::move(header_);
  }

 private:
  enum Key { kDescr = 1, kFortranOrder = 2, kShape = 4 };

  // The next character after white space; '\0' at the end.
  // A byte of 0 in the text looks like the end; callers that accept the end check at_.
  char Peek() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool Take(char c) {
    if (Peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  bool TakeWord(absl::string_view word) {
    Peek();
    if (!absl::StartsWith(text_.substr(at_), word)) return false;
    at_ += word.size();
    return true;
  }

  absl::Status Expected(absl::string_view what) {
    Peek();
    const std::string found = at_ == text_.size() ? "its end" : Excerpt(text_.substr(at_));
    return Malformed("the header has ", found, " at byte ", at_, " where ", what, " is expected");
  }

  absl::Status Field() {
    std::string key;
    if (!String(&key)) return Expected("a key");
    if (!Take(':')) return Expected("':'");
    if (key == "descr") return Descr();
    if (key == "fortran_order") return FortranOrder();
    if (key == "shape") return Shape();
    return Malformed("the header has the unknown key '", Excerpt(key), "'");
  }

  absl::Status First(Key key, absl::string_view name) {
    if (seen_ & key) return Malformed("the header gives '", name, "' twice");
    seen_ |= key;
    return absl::OkStatus();
  }

  absl::Status Descr() {
    if (Peek() == '[') return absl::UnimplementedError("structured elements are not supported");
    if (!String(&header_.descr)) return Expected("a type in quotes");
    return First(kDescr, "descr");
  }

  absl::Status FortranOrder() {
    header_.fortran_order = TakeWord("True");
    if (!header_.fortran_order && !TakeWord("False")) return Expected("True or False");
    return First(kFortranOrder, "fortran_order");
  }

  // A tuple of one has a comma: "(3,)"; "(3)" is a number.
  absl::Status Shape() {
    if (!Take('(')) return Expected("a shape in parentheses");
    bool comma = true;
    while (!Take(')')) {
      if (!comma) return Expected("',' or ')'");
      int64_t extent;
      if (!Integer(&extent)) return Expected("an extent");
      if (header_.shape.size() == kMaxNpyRank) return Malformed("more than ", kMaxNpyRank, " axes");
      header_.shape.push_back(extent);
      comma = Take(',');
    }
    if (header_.shape.size() == 1 && !comma) return Malformed("the shape is a number, not a tuple");
    return First(kShape, "shape");
  }

  // A string in either quote, without escapes, which nothing in this format needs.
  bool String(std::string* value) {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return false;
    const size_t end = text_.find(quote, at_ + 1);
    if (end == absl::string_view::npos) return false;
    *value = std::string(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return true;
  }

  // Decimal digits that fit, and the L that Python 2 put after a long.
  bool Integer(int64_t* value) {
    Peek();
    size_t end = at_;
    while (end < text_.size() && absl::ascii_isdigit(text_[end])) ++end;
    if (!absl::SimpleAtoi(text_.substr(at_, end - at_), value)) return false;
    at_ = end;
    TakeWord("L");
    return true;
  }

  absl::string_view text_;
  size_t at_ = 0;
  int seen_ = 0;
  NpyHeader header_;
};

std::string ShapeTuple(absl::Span<const int64_t> shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

}  // namespace

absl::StatusOr<NpyElement> NpyElementOf(absl::string_view descr, absl::optional<DType> expected) {
  absl::string_view code = descr;
  const char order = descr.empty() ? '\0' : descr[0];
  if (absl::StrContains("<>=|", order)) code.remove_prefix(1);
  if (!expected || !MayStore(code, *expected)) {
    NESTOR_ASSIGN_OR_RETURN(expected, OwnType(code, descr, expected));
  }
  return NpyElement{*expected, order == '>' && ByteSize(*expected) > 1};
}

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text) {
  return HeaderParser(text).Parse();
}

// With kMaxNpyRank axes the header is far below the 64 KiB of version 1.0.
std::string NpyHeaderBytes(const TensorView& view) {
  std::string header =
      absl::StrCat("{'descr': '", DescrOf(view.type),
                   "', 'fortran_order': False, 'shape': ", ShapeTuple(view.shape), ", }");
  const size_t before = kNpyMagic.size() + 4;
  // The elements begin at a multiple of 64 bytes, as numpy has it, so that a mapped file is
  // aligned.
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes(kNpyMagic);
  bytes += '\1';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header;
}

}  // namespace nestor
