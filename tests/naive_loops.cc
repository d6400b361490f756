// As plain as can be: a tensor is a shape and a row of doubles, and a place is a vector of indices.
#include "tests/naive_loops.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace nestor::naive {

int64_t Elements(const Place& shape) {
  int64_t elements = 1;
  for (int64_t extent : shape) elements *= extent;
  return elements;
}

NaiveTensor Filled(const Place& shape, double value) {
  return {shape, Row(Elements(shape), value)};
}

NaiveTensor Scalar(double value) { return {{}, {value}}; }

void ForEach(const Place& shape, const std::function<void(const Place&)>& visit) {
  for (int64_t number = 0; number < Elements(shape); ++number) {
    Place place(shape.size());
    int64_t rest = number;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      place[axis] = rest % shape[axis];
    visit(place);
  }
}

NaiveTensor Generate(const Place& shape, const std::function<double(const Place&)>& element) {
  NaiveTensor y{shape, {}};
  ForEach(shape, [&](const Place& place) { y.data.push_back(element(place)); });
  return y;
}

double Sum(const Place& shape, const std::function<double(const Place&)>& term) {
  return Total(Generate(shape, term).data);
}

bool Inside(const Place& shape, const Place& place) {
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (place[axis] < 0 || place[axis] >= shape[axis]) return false;
  }
  return true;
}

int64_t NumberOf(const Place& shape, const Place& place) {
  int64_t number = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) number = number * shape[axis] + place[axis];
  return number;
}

double At(const NaiveTensor& x, const Place& place, double outside) {
  return Inside(x.shape, place) ? x.data[NumberOf(x.shape, place)] : outside;
}

double& Element(NaiveTensor& x, const Place& place) { return x.data.at(NumberOf(x.shape, place)); }

Place Joined(Place a, const Place& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Place First(const Place& place, size_t axes) { return {place.begin(), place.begin() + axes}; }

Place Behind(const Place& place, size_t axes) { return {place.begin() + axes, place.end()}; }

Place WithLast(Place place, int64_t last) {
  place.back() = last;
  return place;
}

Row RowAt(const NaiveTensor& x, const Place& leading) {
  Row row;
  for (int64_t i = 0; i < x.shape.back(); ++i) row.push_back(At(x, Joined(leading, {i})));
  return row;
}

NaiveTensor MapRows(const NaiveTensor& x, const std::function<Row(const Row&)>& map) {
  NaiveTensor y{x.shape, {}};
  ForEach(First(x.shape, x.shape.size() - 1), [&](const Place& leading) {
    const Row row = map(RowAt(x, leading));
    y.data.insert(y.data.end(), row.begin(), row.end());
    y.shape.back() = static_cast<int64_t>(row.size());
  });
  return y;
}

NaiveTensor ReduceRows(const NaiveTensor& x, const std::function<double(const Row&)>& reduce) {
  return Generate(First(x.shape, x.shape.size() - 1),
                  [&](const Place& leading) { return reduce(RowAt(x, leading)); });
}

double Total(const Row& row) {
  double total = 0;
  for (double x : row) total += x;
  return total;
}

double Mean(const Row& row) { return Total(row) / static_cast<double>(row.size()); }

double Largest(const Row& row) {
  double largest = -kInfinity;
  for (double x : row) largest = std::isnan(largest) || largest > x ? largest : x;
  return largest;
}

Row LogSoftmax(const Row& row) {
  const double largest = Largest(row);
  double total = 0;
  for (double x : row) total += std::exp(x - largest);
  Row result;
  for (double x : row) result.push_back(x - (largest + std::log(total)));
  return result;
}

Row Softmax(const Row& row) {
  Row result = LogSoftmax(row);
  for (double& x : result) x = std::exp(x);
  return result;
}

double NormOf(const Row& row, double p) {
  double total = 0;
  for (double x : row) total += std::pow(std::fabs(x), p);
  return std::pow(total, 1 / p);
}

NaiveTensor Einsum(const std::string& equation, const std::vector<NaiveTensor>& operands) {
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms;
  std::istringstream left(equation.substr(0, arrow));
  for (std::string term; std::getline(left, term, ',');) terms.push_back(term);
  if (terms.size() < operands.size()) terms.emplace_back();  // a scalar's
  const std::string result = equation.substr(arrow + 2);
  std::map<char, int64_t> extents;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t axis = 0; axis < terms[i].size(); ++axis)
      extents[terms[i][axis]] = operands[i].shape[axis];
  }
  std::string letters;
  Place all, shape;
  for (const auto& [letter, extent] : extents) letters += letter, all.push_back(extent);
  for (char letter : result) shape.push_back(extents.at(letter));
  const auto places = [&](const std::string& term, const Place& place) {
    Place picked;
    for (char letter : term) picked.push_back(place[letters.find(letter)]);
    return picked;
  };
  NaiveTensor y = Filled(shape, 0);
  ForEach(all, [&](const Place& place) {
    double product = 1;
    for (size_t i = 0; i < operands.size(); ++i)
      product *= At(operands[i], places(terms[i], place));
    Element(y, places(result, place)) += product;
  });
  return y;
}

NaiveTensor Mapped(const NaiveTensor& x, const std::function<double(double)>& f) {
  NaiveTensor y = x;
  for (double& value : y.data) value = f(value);
  return y;
}

}  // namespace nestor::naive
