// reduce.nestor.
#include <cmath>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

NaiveOp OnRows(const std::function<double(const Row&)>& reduce) {
  return [=](const NaiveCall& call) { return Y(ReduceRows(call["x"], reduce)); };
}

double Product(const Row& row) {
  double product = 1;
  for (double x : row) product *= x;
  return product;
}

double Least(const Row& row) {
  double least = kInfinity;
  for (double x : row) least = std::isnan(least) || least < x ? least : x;
  return least;
}

double Variance(const Row& row, double correction) {
  const double mean = Mean(row);
  double squares = 0;
  for (double x : row) squares += (x - mean) * (x - mean);
  return squares / (static_cast<double>(row.size()) - correction);
}

double Nonzeros(const Row& row) {
  double count = 0;
  for (double x : row) count += x != 0;
  return count;
}

Row Magnitudes(Row row) {
  for (double& x : row) x = std::fabs(x);
  return row;
}

NaiveTensors Trace(const NaiveCall& call) {
  double total = 0;
  for (int64_t i = 0; i < call["x"].shape[0]; ++i) total += At(call["x"], {i, i});
  return Y(Scalar(total));
}

}  // namespace

NaiveTable NaiveReductions() {
  return {
      {"reduce_sum", OnRows(Total)},
      {"sum_all", [](const NaiveCall& call) { return Y(Scalar(Total(call["x"].data))); }},
      {"reduce_mean", OnRows(Mean)},
      {"reduce_prod", OnRows(Product)},
      {"reduce_max", OnRows(Largest)},
      {"reduce_min", OnRows(Least)},
      {"reduce_any", OnRows([](const Row& row) { return Nonzeros(row) > 0; })},
      {"reduce_all",
       OnRows([](const Row& row) { return Nonzeros(row) == static_cast<double>(row.size()); })},
      {"count_nonzero", OnRows(Nonzeros)},
      {"norm_l1", OnRows([](const Row& row) { return Total(Magnitudes(row)); })},
      {"norm_l2", OnRows([](const Row& row) { return NormOf(row, 2); })},
      {"norm_inf", OnRows([](const Row& row) { return Largest(Magnitudes(row)); })},
      {"norm_lp",
       [](const NaiveCall& call) {
         return Y(
             ReduceRows(call["x"], [&](const Row& row) { return NormOf(row, call.Number("p")); }));
       }},
      {"sum_squares", OnRows([](const Row& row) { return NormOf(row, 2) * NormOf(row, 2); })},
      {"variance",
       [](const NaiveCall& call) {
         return Y(ReduceRows(
             call["x"], [&](const Row& row) { return Variance(row, call.Number("correction")); }));
       }},
      {"standard_deviation",
       [](const NaiveCall& call) {
         return Y(ReduceRows(call["x"], [&](const Row& row) {
           return std::sqrt(Variance(row, call.Number("correction")));
         }));
       }},
      {"trace", Trace},
  };
}

}  // namespace nestor
