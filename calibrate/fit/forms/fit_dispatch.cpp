// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/forms/fit_dispatch.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "sim/base/format/csv.hpp"
#include "sim/workload/expert_spread.hpp"

#include "calibrate/fit/forms/blocks.hpp"
#include "calibrate/fit/forms/least_squares.hpp"

namespace stagecraft::fit {
namespace {

constexpr int kRanksOfNode = 8, kMostNodes = 8, kMostChosenNodes = 4;

// Experts of each of `blocks` equal parts, in their order.
std::vector<int> in_parts(int experts, int blocks) {
  std::vector<int> block_of(experts);
  for (int i = 0; i < experts; ++i) {
    block_of[i] = static_cast<int>(static_cast<long long>(i) * blocks / experts);
  }
  return block_of;
}

struct Copies {
  double inside = 0, between = 0;
};

// Every rank sends and receives as much: of the nodes of a token all but its own are over the network, and of the ranks
// on a node all but the one at which it arrives inside.
Copies copies_of(const Routing& routing, int nodes) {
  const auto expected = [&](int blocks) {
    const std::vector<double> hits = hit_probabilities(routing, in_parts(routing.experts, blocks));
    return std::accumulate(hits.begin(), hits.end(), 0.0);
  };
  const auto all_but_one = [](int of) { return (of - 1.0) / of; };
  return {expected(nodes * kRanksOfNode) * all_but_one(kRanksOfNode), expected(nodes) * all_but_one(nodes)};
}

// Reads rows; copies of the same routing are counted once.
class Reader {
public:
  explicit Reader(const CsvTable& table) : table_(table) {}

  void read(std::size_t row, std::vector<MeasuredDispatch>& read) {
    constexpr int kMostTokens = 1 << 30, kMostWidth = 1 << 20, kMostExperts = 4096, kMostProcessors = 1024;
    const int nodes = integer(row, "node_num", kMostNodes), experts = integer(row, "num_experts", kMostExperts);
    const int top = integer(row, "num_topk", experts);
    const double tokens = integer(row, "num_token", kMostTokens), width = integer(row, "hidden_size", kMostWidth);
    if (experts % (nodes * kRanksOfNode) != 0) {
      throw InputError(table_.at(row, "num_experts").where,
                       "does not divide into " + std::to_string(nodes * kRanksOfNode) + " ranks; allowed: what does");
    }
    const Copies& copies = copies_of_routing(nodes, experts, top);
    const auto add = [&](const char* op, double bytes, const std::string& column) {
      read.push_back({op, nodes, integer(row, column + "_sms", kMostProcessors), tokens, bytes * width, copies.inside,
                      copies.between, time(row, column)});
    };
    add("dispatch", 1 + 4.0 / 128, "dispatch");
    add("combine", 2, "combine");
  }

private:
  int integer(std::size_t row, const std::string& column, int most) const {
    return static_cast<int>(table_.at(row, column).integer(1, most));
  }

  // What ranks tell each other beforehand counts with the rest.
  Seconds time(std::size_t row, const std::string& op) const {
    const CsvCell& cell = table_.at(row, op + "_transmit_us");
    const double microseconds = cell.number() + table_.at(row, op + "_notify_us").number();
    if (microseconds <= 0) {
      throw InputError(cell.where, "a time of 0; allowed: more than 0 us");
    }
    return Seconds{microseconds / 1e6};
  }

  const Copies& copies_of_routing(int nodes, int experts, int top) {
    const auto [known, is_new] = copies_.try_emplace({nodes, experts, top});
    if (is_new) {
      Routing routing{.experts = experts, .top = top};
      if (nodes > kMostChosenNodes && experts / nodes * kMostChosenNodes >= top) {
        routing.groups = nodes;
        routing.top_groups = kMostChosenNodes;
      }
      known->second = copies_of(routing, nodes);
    }
    return known->second;
  }

  const CsvTable& table_;
  std::map<std::tuple<int, int, int>, Copies> copies_;
};

using Points = std::vector<const MeasuredDispatch*>;

// The parts of a time, each of which has a coefficient.
std::array<double, 5> parts_of(const MeasuredDispatch& one) {
  const double bytes = one.tokens * one.bytes;
  return one.nodes > 1 ? std::array<double, 5>{1, 0, 0, 0, bytes * one.between}
                       : std::array<double, 5>{1, one.tokens, bytes, bytes * one.inside, 0};
}

DispatchLine line_through(const Points& points) {
  constexpr double kSquaredUpTo = 0.02;
  constexpr int kReweightings = 10;
  const auto rows = static_cast<Eigen::Index>(points.size());
  Eigen::MatrixXd relative(rows, 5);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const MeasuredDispatch& point = *points[static_cast<std::size_t>(i)];
    const std::array<double, 5> parts = parts_of(point);
    relative.row(i) = Eigen::Map<const Eigen::RowVectorXd>(parts.data(), 5) / point.time.value;
  }
  Eigen::VectorXd trust = Eigen::VectorXd::Ones(rows), x;
  for (int round = 0; round < kReweightings; ++round) {
    x = solve_non_negative(trust.asDiagonal() * relative, trust);
    const Eigen::ArrayXd errors = ((relative * x).array() - 1).abs();
    trust = (kSquaredUpTo / errors.max(kSquaredUpTo)).sqrt();
  }
  return {Seconds{x[0]}, Seconds{x[1]}, x[2], x[3], x[4], {}};
}

double error_at(const DispatchLine& line, const MeasuredDispatch& point) {
  const std::array<double, 5> parts = parts_of(point);
  const std::array<double, 5> each = {line.start.value, line.per_token.value, line.own, line.inside, line.between};
  return std::inner_product(parts.begin(), parts.end(), each.begin(), 0.0) / point.time.value - 1;
}

FitError held_out(const Points& points) {
  std::set<double> sizes;
  for (const MeasuredDispatch* point : points) {
    sizes.insert(point->tokens);
  }
  Points others, held;
  for (const MeasuredDispatch* point : points) {
    (std::distance(sizes.begin(), sizes.find(point->tokens)) % 2 == 0 ? others : held).push_back(point);
  }
  std::vector<double> errors;
  const DispatchLine line = line_through(others);
  for (const MeasuredDispatch* point : held) {
    errors.push_back(error_at(line, *point));
  }
  return error_of(errors, "every second number of tokens");
}

} // namespace

std::vector<MeasuredDispatch> read_dispatch_table(std::string_view text, const std::string& file) {
  const CsvTable table(text, file,
                       {"node_num", "hidden_size", "num_token", "num_topk", "num_experts", "dispatch_sms",
                        "dispatch_transmit_us", "dispatch_notify_us", "combine_sms", "combine_transmit_us",
                        "combine_notify_us"});
  Reader reader(table);
  std::vector<MeasuredDispatch> read;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    reader.read(row, read);
  }
  if (read.empty()) {
    throw InputError({file, 1, 1}, "the table has no rows; allowed: one or more");
  }
  return read;
}

std::vector<DispatchFit> fit_dispatches(const std::vector<MeasuredDispatch>& measured, const DispatchLinks& links) {
  std::map<std::tuple<std::string, int, int>, Points> groups;
  for (const MeasuredDispatch& one : measured) {
    groups[{one.op, one.nodes, one.processors}].push_back(&one);
  }
  std::vector<DispatchFit> fits;
  for (const auto& [group, points] : groups) {
    const auto& [op, nodes, processors] = group;
    DispatchLine line = line_through(points);
    line.links = links;
    fits.push_back({.op = op, .nodes = nodes, .processors = processors, .line = line, .error = held_out(points)});
  }
  return fits;
}

} // namespace stagecraft::fit
