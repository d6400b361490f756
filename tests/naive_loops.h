// The common part of the references: loops over all places of a shape, and reads that may be out of
// bounds. Shapes and places are the same type. Axes are counted from 0.

#ifndef NESTOR_TESTS_NAIVE_LOOPS_H_
#define NESTOR_TESTS_NAIVE_LOOPS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/naive_ops.h"

namespace nestor::naive {

using Place = std::vector<int64_t>;
using Row = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

int64_t Elements(const Place& shape);
NaiveTensor Filled(const Place& shape, double value);
NaiveTensor Scalar(double value);

// Row major, none where an extent is 0.
void ForEach(const Place& shape, const std::function<void(const Place&)>& visit);
// The tensor whose elements are element(place).
NaiveTensor Generate(const Place& shape, const std::function<double(const Place&)>& element);
// The sum of term(place).
double Sum(const Place& shape, const std::function<double(const Place&)>& term);

bool Inside(const Place& shape, const Place& place);
double At(const NaiveTensor& x, const Place& place, double outside = 0);
// REQUIRES: Inside(x.shape, place).
double& Element(NaiveTensor& x, const Place& place);

Place Joined(Place a, const Place& b);
Place First(const Place& place, size_t axes);
Place Behind(const Place& place, size_t axes);  // without the first `axes`
Place WithLast(Place place, int64_t last);

// A row is the elements along the last axis.
NaiveTensor MapRows(const NaiveTensor& x, const std::function<Row(const Row&)>& map);
NaiveTensor ReduceRows(const NaiveTensor& x, const std::function<double(const Row&)>& reduce);
// The row at the place of its leading axes.
Row RowAt(const NaiveTensor& x, const Place& leading);

double Total(const Row& row);
double Mean(const Row& row);
double Largest(const Row& row);  // NaN where there is one, -inf for an empty row
Row Softmax(const Row& row);
Row LogSoftmax(const Row& row);
double NormOf(const Row& row, double p);

// Torch's einsum: one letter for each axis, and a result, e.g. "ik,kj->ij".
NaiveTensor Einsum(const std::string& equation, const std::vector<NaiveTensor>& operands);

// f of each element.
NaiveTensor Mapped(const NaiveTensor& x, const std::function<double(double)>& f);

inline NaiveTensors Y(NaiveTensor y) { return {{"y", std::move(y)}}; }

}  // namespace nestor::naive

#endif  // NESTOR_TESTS_NAIVE_LOOPS_H_
