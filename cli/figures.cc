// Keys and values are the same in both forms, so that a reader of one can read the other.
#include "cli/figures.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/output.h"
#include "uops/message.h"

namespace nestor::cli {

std::string CountText(double count) {
  return std::abs(count) < 1e18 ? absl::StrCat(std::llround(count))
                                : absl::StrFormat("%.17g", count);
}

std::string FiguresText(const Figures& figures, bool is_json) {
  const auto line = [](std::string* out, const Figure& figure) {
    absl::StrAppend(out, figure.key, ": ", figure.value, "\n");
  };
  const auto member = [](std::string* out, const Figure& figure) {
    absl::StrAppend(out, JsonString(figure.key), ": ",
                    figure.is_text ? JsonString(figure.value) : figure.value);
  };
  if (!is_json) return absl::StrJoin(figures, "", line);
  return absl::StrCat("{", absl::StrJoin(figures, ", ", member), "}\n");
}

}  // namespace nestor::cli
