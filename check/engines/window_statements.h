// Statements of nest programs (nest_programs.h) that slide a window over a tensor: convolutions and
// poolings.
#ifndef NESTOR_CHECK_ENGINES_WINDOW_STATEMENTS_H_
#define NESTOR_CHECK_ENGINES_WINDOW_STATEMENTS_H_

#include <string>
#include <vector>

#include "check/engines/expression_generator.h"
#include "check/engines/partial_uses.h"
#include "check/random.h"
#include "uops/dtype.h"

namespace nestor {

struct WindowStatement {
  std::string text;
  DefinedValue value;
};

// A tensor of images: its name, the extents of its axes, and in which order they lie.
struct Images {
  std::string name;
  std::string channels, rows, columns;
  bool has_batch, channels_last;
};

// Over one axis, with a window of unknown size; stride and padding may be $s and $p.
//   name[j, i] = sum[k, r](x0[k, $s*i + r - $p] * x1[j, k, r]) where i < (M + 2*$p - R) / $s + 1
WindowStatement DrawLine(Random& random, DType type, ExpressionGenerator& expressions,
                         const std::string& name);
// The $params that the statements of DrawLine mention.
std::vector<std::string> LineParams();

// Over two axes, with all sizes but the images' known.
//   name[l, o, i, j] = sum[k, r, s](x0[l, k, 2*i + r - 1, j + s] * x1[o, k, r, s])
//       where i < (M - 1) / 2 + 1, j < (N - 2) / 1 + 1, r < 3, s < 3
// `images`: what it reads, and then its results, which another layer may read; without a name, it
// reads a new argument.
WindowStatement DrawLayer(Random& random, DType type, ExpressionGenerator& expressions,
                          const std::string& name, Images& images);
// Those that a first layer reads, in a drawn order of axes.
Images DrawImages(Random& random);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_WINDOW_STATEMENTS_H_
