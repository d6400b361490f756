// The report of stats and bench: figures by name.
#ifndef NESTOR_CLI_FIGURES_H_
#define NESTOR_CLI_FIGURES_H_

#include <string>
#include <vector>

namespace nestor::cli {

struct Figure {
  std::string key;
  std::string value;
  bool is_text = false;  // else a number, as JSON writes it
};
using Figures = std::vector<Figure>;

// `key: value` a line, or one JSON object.
std::string FiguresText(const Figures& figures, bool is_json);

// A count that was computed in floating point.
std::string CountText(double count);

}  // namespace nestor::cli

#endif  // NESTOR_CLI_FIGURES_H_
