// Rows whose peers do something else than Nestor, fail, or keep their results: each is noticed, and
// none keeps the others from being measured.
#include "bench/row.h"

#include "bench/arithmetic_peak.h"
#include "bench/sweep.h"
#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

const MeasureOptions kQuick = {.rounds = 1, .batch_seconds = 1e-4};

// A peer that doubles x into y, or does something else.
PeerMaker Scaler(std::string engine, float factor) {
  return [=](Buffers& buffers, int) -> absl::StatusOr<Peer> {
    const auto run = [&buffers, factor] {
      for (int i = 0; i < 100; ++i)
        buffers["y"].values<float>()[i] = factor * buffers["x"].values<float>()[i];
    };
    return Peer{engine, run, nullptr};
  };
}

Row Doubling() {
  Row row;
  row.name = "double";
  row.buffers = {{"x", DType::kF32, {100}}, {"y", DType::kF32, {100}, Fill::kOutput}};
  row.steps = {{"op f(x: f32[N]) -> (y) { y[i] = x[i] + x[i] }"}};
  row.traffic = {{{"x"}, {"y"}}};
  row.peers = {Scaler("peer", 2)};
  row.goal = {TimesPeer("peer", 1e-6)};
  return row;
}

TEST(RowTest, MeasuresAllEnginesOnOneAndTwoThreads) {
  for (const int threads : {1, 2}) {
    ThreadTeam team(threads);
    const RowResult result = RunRow(Doubling(), team, kQuick);
    EXPECT_EQ(result.failure, "");
    EXPECT_EQ(result.row, "double");
    EXPECT_EQ(result.threads, threads);
    EXPECT_EQ(result.max_difference, absl::optional<double>(0));
    EXPECT_TRUE(result.CostOf(kNestor) && result.CostOf("peer"));
    EXPECT_EQ(result.CostOf(kLimit).has_value(), !SweepVariants(1, 1).empty());
  }
}

TEST(RowTest, TheLimitMayBeOfArithmetic) {
  Row row = Doubling();
  row.traffic = {};
  row.multiply_adds = 1e5;
  for (const int threads : {1, 2}) {
    ThreadTeam team(threads);
    EXPECT_EQ(RunRow(row, team, kQuick).CostOf(kLimit).has_value(), !PeakVariants().empty());
  }
}

TEST(RowTest, TheGoalNamesTheBestPeer) {
  ThreadTeam team(1);
  Row row = Doubling();
  PeerMaker slow = [](Buffers& buffers, int threads) {
    absl::StatusOr<Peer> peer = Scaler("slow", 2)(buffers, threads);
    peer->run = [run = peer->run] {
      for (int i = 0; i < 1000; ++i) run();
    };
    return peer;
  };
  row.peers = {slow, Scaler("peer", 2)};
  row.goal = {TimesPeer(kBestPeer, 1e-6)};
  EXPECT_EQ(RunRow(row, team, kQuick).goal[0].engine, "peer");
}

TEST(RowTest, AWrongResultIsAFailure) {
  ThreadTeam team(1);
  Row row = Doubling();
  row.peers = {Scaler("peer", 2), Scaler("other", 2.1)};
  const RowResult result = RunRow(row, team, kQuick);
  EXPECT_EQ(result.failure, "Nestor: differs from other by 0.048");
  EXPECT_FALSE(Judge(result).met);
}

// Else Nestor's results would be compared with themselves.
TEST(RowTest, APeerThatWritesNothingDoesNotAgree) {
  ThreadTeam team(1);
  Row row = Doubling();
  row.peers = {[](Buffers&, int) -> absl::StatusOr<Peer> { return Peer{"peer", [] {}, nullptr}; }};
  EXPECT_EQ(RunRow(row, team, kQuick).failure, "Nestor: differs from peer by inf");
}

TEST(RowTest, AnEngineThatFailsLeavesTheOthers) {
  ThreadTeam team(1);
  Row row = Doubling();
  row.steps = {{"op f(x: f32[N]) -> (z) { z[i] = x[i] }"}};
  row.peers.push_back(
      [](Buffers&, int) -> absl::StatusOr<Peer> { return absl::UnimplementedError("not built"); });
  const RowResult result = RunRow(row, team, kQuick);
  EXPECT_EQ(result.failure, "a peer: not built; Nestor: the row has no buffer z");
  EXPECT_FALSE(result.CostOf(kNestor));
  EXPECT_TRUE(result.CostOf("peer"));
  EXPECT_FALSE(Judge(result).met);
}

TEST(RowTest, WhatAPeerKeepsIsDelivered) {
  ThreadTeam team(1);
  Row row = Doubling();
  row.peers = {[](Buffers& buffers, int) -> absl::StatusOr<Peer> {
    const auto deliver = [&buffers] {
      for (int i = 0; i < 100; ++i)
        buffers["y"].values<float>()[i] = 2 * buffers["x"].values<float>()[i];
    };
    return Peer{"peer", [] {}, deliver};
  }};
  EXPECT_EQ(RunRow(row, team, kQuick).failure, "");
}

TEST(RowTest, AYardstickRunsOnItsOwnBuffers) {
  ThreadTeam team(1);
  Row row = Doubling();
  row.peers = {NestorPeer("Nestor f64",
                          {{"x", DType::kF64, {10}}, {"y", DType::kF64, {10}, Fill::kOutput}},
                          {{"op f(x: f64[N]) -> (y) { y[i] = x[i] * x[i] }"}})};
  row.goal = {TimesPeer(kBestPeer, 1e-6)};
  const RowResult result = RunRow(row, team, kQuick);
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.CostOf("Nestor f64"));
  EXPECT_EQ(result.goal[0].engine, kBestPeer);
}

}  // namespace
}  // namespace nestor::bench
