// move.nestor.
#include <algorithm>
#include <utility>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

// map() of each row.
NaiveOp OnRows(const std::function<Row(const NaiveCall&, const Row&)>& map) {
  return [=](const NaiveCall& call) {
    return Y(MapRows(call["x"], [&](const Row& row) { return map(call, row); }));
  };
}

// map() of each matrix of the last two axes, given by its element's place there.
using Matrix = std::function<double(int64_t, int64_t)>;
NaiveTensor OnMatrices(const NaiveTensor& x, int64_t rows, int64_t columns,
                       const std::function<double(const Matrix&, int64_t, int64_t)>& map) {
  const Place batch = First(x.shape, x.shape.size() - 2);
  return Generate(Joined(batch, {rows, columns}), [&](const Place& p) {
    const Matrix matrix = [&](int64_t i, int64_t j) {
      return At(x, Joined(First(p, batch.size()), {i, j}));
    };
    return map(matrix, p[batch.size()], p.back());
  });
}

int64_t Rows(const NaiveTensor& x) { return x.shape[x.shape.size() - 2]; }

NaiveTensors Transpose(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  return Y(OnMatrices(x, x.shape.back(), Rows(x),
                      [](const Matrix& m, int64_t i, int64_t j) { return m(j, i); }));
}

// The same elements in another shape.
NaiveTensors Flatten(const NaiveCall& call) {
  NaiveTensor y = call["x"];
  const int64_t last = y.shape.back();
  y.shape.pop_back();
  y.shape.back() *= last;
  return Y(y);
}

NaiveTensors Unflatten(const NaiveCall& call) {
  NaiveTensor y = call["x"];
  y.shape.back() /= call.Integer("columns");
  y.shape.push_back(call.Integer("columns"));
  return Y(y);
}

Row Reversed(const NaiveCall&, Row row) {
  std::reverse(row.begin(), row.end());
  return row;
}

Row Rolled(const NaiveCall& call, const Row& row) {
  Row rolled(row.size());
  const int64_t length = static_cast<int64_t>(row.size());
  for (int64_t i = 0; i < length; ++i)
    rolled[((i + call.Integer("shift")) % length + length) % length] = row[i];
  return rolled;
}

Row Tiled(const NaiveCall& call, const Row& row) {
  Row tiled;
  for (int64_t i = 0; i < call.Integer("times"); ++i)
    tiled.insert(tiled.end(), row.begin(), row.end());
  return tiled;
}

Row Repeated(const NaiveCall& call, const Row& row) {
  Row repeated;
  for (double x : row) repeated.insert(repeated.end(), call.Integer("times"), x);
  return repeated;
}

Row Differences(const NaiveCall&, const Row& row) {
  Row differences;
  for (size_t i = 1; i < row.size(); ++i) differences.push_back(row[i] - row[i - 1]);
  return differences;
}

Row Sliced(const NaiveCall& call, const Row& row) {
  Row slice;
  for (int64_t i = 0; i < call.Integer("length"); ++i) {
    const int64_t at = call.Integer("start") + i * call.Integer("step");
    slice.push_back(at >= 0 && at < static_cast<int64_t>(row.size()) ? row[at] : 0);
  }
  return slice;
}

NaiveTensors Expand(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  return Y(Generate(Joined(x.shape, {call.Integer("times")}),
                    [&](const Place& p) { return At(x, First(p, p.size() - 1)); }));
}

NaiveTensors Concat(const NaiveCall& call) {
  const NaiveTensor &a = call["a"], &b = call["b"];
  NaiveTensor y{WithLast(a.shape, a.shape.back() + b.shape.back()), {}};
  ForEach(First(a.shape, a.shape.size() - 1), [&](const Place& leading) {
    for (const NaiveTensor* x : {&a, &b}) {
      const Row row = RowAt(*x, leading);
      y.data.insert(y.data.end(), row.begin(), row.end());
    }
  });
  return Y(y);
}

NaiveTensors Stack(const NaiveCall& call) {
  NaiveTensor y{Joined({2}, call["a"].shape), call["a"].data};
  y.data.insert(y.data.end(), call["b"].data.begin(), call["b"].data.end());
  return Y(y);
}

NaiveTensors Split(const NaiveCall& call) {
  const int64_t at = call.Integer("at");
  NaiveTensor a =
      MapRows(call["x"], [&](const Row& row) { return Row(row.begin(), row.begin() + at); });
  NaiveTensor b =
      MapRows(call["x"], [&](const Row& row) { return Row(row.begin() + at, row.end()); });
  return {{"a", a}, {"b", b}};
}

// The elements of `when` where the mask is true, and of `otherwise` elsewhere.
NaiveTensor Chosen(const NaiveTensor& mask, const NaiveTensor& when, const NaiveTensor& otherwise) {
  NaiveTensor y = otherwise;
  for (size_t i = 0; i < y.data.size(); ++i)
    y.data[i] = mask.data[i] != 0 ? when.data[i] : otherwise.data[i];
  return y;
}

NaiveTensors MaskedFill(const NaiveCall& call) {
  return Y(Chosen(call["mask"], Filled(call["x"].shape, call.Number("value")), call["x"]));
}

NaiveOp Triangle(bool lower) {
  return [=](const NaiveCall& call) {
    const NaiveTensor& x = call["x"];
    const int64_t diagonal = call.Integer("diagonal");
    return Y(OnMatrices(x, Rows(x), x.shape.back(), [&](const Matrix& m, int64_t i, int64_t j) {
      const bool kept = lower ? j - i <= diagonal : j - i >= diagonal;
      return kept ? m(i, j) : 0;
    }));
  };
}

NaiveTensors Diag(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  const int64_t diagonal = call.Integer("diagonal"), length = x.shape.back();
  const int64_t side = length + std::abs(diagonal);
  NaiveTensor y = Filled(Joined(WithLast(x.shape, side), {side}), 0);
  ForEach(x.shape, [&](const Place& p) {
    const int64_t i = p.back();
    Element(y, Joined(First(p, p.size() - 1), {i + std::max<int64_t>(-diagonal, 0),
                                               i + std::max<int64_t>(diagonal, 0)})) = At(x, p);
  });
  return Y(y);
}

NaiveTensors Diagonal(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  const Place batch = First(x.shape, x.shape.size() - 2);
  int64_t length = 0;
  for (int64_t i = 0; i < Rows(x); ++i)
    length += i + call.Integer("offset") >= 0 && i + call.Integer("offset") < x.shape.back();
  const int64_t first_row = std::max<int64_t>(0, -call.Integer("offset"));
  return Y(Generate(Joined(batch, {length}), [&](const Place& p) {
    const int64_t row = first_row + p.back();
    return At(x, Joined(First(p, batch.size()), {row, row + call.Integer("offset")}));
  }));
}

NaiveTensors Eye(const NaiveCall& call) {
  return Y(Generate({call.Integer("rows"), call.Integer("columns")},
                    [](const Place& p) { return p[0] == p[1]; }));
}

NaiveTensors Arange(const NaiveCall& call) {
  return Y(Generate({call.Integer("count")}, [&](const Place& p) {
    return call.Number("start") + static_cast<double>(p[0]) * call.Number("step");
  }));
}

}  // namespace

NaiveTable NaiveMoves() {
  return {
      {"transpose", Transpose},
      {"flatten", Flatten},
      {"unflatten", Unflatten},
      {"flip", OnRows(Reversed)},
      {"roll", OnRows(Rolled)},
      {"tile", OnRows(Tiled)},
      {"repeat", OnRows(Repeated)},
      {"expand", Expand},
      {"concat", Concat},
      {"stack", Stack},
      {"split", Split},
      {"slice", OnRows(Sliced)},
      {"diff", OnRows(Differences)},
      {"choose",
       [](const NaiveCall& call) { return Y(Chosen(call["condition"], call["a"], call["b"])); }},
      {"masked_fill", MaskedFill},
      {"tril", Triangle(true)},
      {"triu", Triangle(false)},
      {"diag", Diag},
      {"diagonal", Diagonal},
      {"eye", Eye},
      {"arange", Arange},
  };
}

}  // namespace nestor
