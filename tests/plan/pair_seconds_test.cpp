// A forward and a backward beside each other, layer by layer, where ranks share experts.
// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/passes/pair_seconds.hpp"
#include "tests/catch.hpp"

namespace stagecraft::test {
namespace {

std::vector<Seconds> seconds(const std::vector<double>& values) {
  std::vector<Seconds> all;
  for (const double value : values) {
    all.push_back(Seconds{value});
  }
  return all;
}

// One layer: attention, dispatch, experts, combine, and 1 s behind it.
const SplitPass kForward{seconds({3, 2, 1}), seconds({2, 2}), seconds({0, 0, 0})};
SplitPass backward_with(double dispatch) { return {seconds({0, 4, 3}), seconds({1, dispatch}), seconds({0, 2, 1})}; }

// Exchanges: backward's combine 0-1, dispatch 3-5 once attention is done. Computed: attention 0-3, experts' backward
// with their weights 3-9, experts 9-11, attention's backward 11-15, the rest 15-16. Dispatched gradients 9-11 and the
// combine 11-13 are hidden.
TEST_CASE("passes side by side take what they compute where that is enough to hide exchanges", "[plan][experts]") {
  CHECK(seconds_of_pair(kForward, backward_with(2), false).value == near(16));
  CHECK(seconds_of_pair(kForward, backward_with(2), true).value == near(16));
}

// The same where each exchange takes half of the device: the 7 s of exchanges, all hidden, cost 3.5 s. Attention 0-3.5,
// dispatch 3.5-5.5, experts' backward 3.5-10.5, dispatched gradients 10.5-12.5, experts 10.5-13.5, combine 13.5-15.5,
// attention's backward 13.5-18.5, the rest 18.5-19.5.
TEST_CASE("what is computed beside an exchange that takes half of the device takes twice as long", "[plan][experts]") {
  const auto slowed = [](SplitPass pass) {
    pass.slower.assign(pass.exchanges.size(), 2);
    return pass;
  };
  CHECK(seconds_of_pair(slowed(kForward), slowed(backward_with(2)), false).value == near(19.5));
  CHECK(seconds_of_pair(slowed(kForward), slowed(backward_with(2)), true).value == near(19.5));
}

// Of 5 s. At once: gradients of experts 9-14, behind their weights; attention's backward 14-18 and the rest 18-19.
// Delayed: gradients 7-12 beside the weights 7-9 and the experts 9-11; attention's backward 12-15, its weights 15-16,
// the rest 16-17.
TEST_CASE("gradients of weights that wait hide an exchange that is longer than what stands beside it",
          "[plan][experts]") {
  CHECK(seconds_of_pair(kForward, backward_with(5), false).value == near(19));
  CHECK(seconds_of_pair(kForward, backward_with(5), true).value == near(17));
}

TEST_CASE("a pass whose fellow has nothing to compute takes what it takes alone", "[plan][experts]") {
  const SplitPass none{seconds({0}), {}, seconds({0})};
  CHECK(seconds_of_pair(kForward, none, false).value == near(3 + 2 + 2 + 2 + 1));
  CHECK(seconds_of_pair(none, backward_with(2), false).value == near(1 + 6 + 2 + 4));
  CHECK(seconds_of_pair(none, backward_with(2), true).value == near(1 + 4 + 2 + 3 + 1)); // 2 s of weights beside 2 s
}

// The same layer, of which the host launches each part in so long, and waits before the dispatch.
SplitPass launched(SplitPass pass, double each, std::optional<double> late = {}) {
  pass.launches = SplitLaunches{std::vector<Seconds>(pass.computations.size(), Seconds{each}),
                                std::vector<Seconds>(pass.weights.size()),
                                std::vector<std::optional<Seconds>>(pass.exchanges.size())};
  if (late) {
    pass.launches->exchanges.front() = Seconds{*late};
  }
  return pass;
}

// Six parts of 1 s are launched long before they are computed; of 4 s they take 24 s, and the last second behind that.
// A host that waits for the dispatched tokens goes on at 3 + 2, and dispatches by 3 + 2 + 3 = 8, until 10, beside the
// experts' backward until 9. The dispatched gradients go behind that, until 12, experts' forward 10-12, its combine
// 12-14, attention's backward 12-16, the rest 16-17.
TEST_CASE("one host launches both passes of a pair", "[plan][experts][host]") {
  const auto with = [](double each, std::optional<double> late = {}) {
    return seconds_of_pair(launched(kForward, each, late), launched(backward_with(2), each), false).value;
  };
  CHECK(with(0) == near(16));
  CHECK(with(1) == near(16));
  CHECK(with(4) == near(24));
  CHECK(with(0, 5) == near(17));
  // Of ten parts, exchanges among them, each takes it 2 s more.
  CHECK(seconds_of_pair(launched(kForward, 1), launched(backward_with(2), 1), false, Seconds{2}).value == near(26));
}

// A tensor group's exchange of 1 s, of which 0.5 s stand out, counts as computed in its part; two exchanges with
// experts that follow at once are one.
TEST_CASE("a pass is split where tokens go to experts", "[plan][experts]") {
  GroupPass pass;
  pass.computations = {{Seconds{3}, 0}, {Seconds{2}, 1}, {Seconds{0}, 2}, {Seconds{4}, 3}};
  pass.exchanges = {{CollectiveKind::all_reduce, Bytes{8}, Seconds{1}, 0, Axis::tensor},
                    {CollectiveKind::all_to_all, Bytes{8}, Seconds{5}, 1, Axis::experts},
                    {CollectiveKind::all_to_all, Bytes{8}, Seconds{6}, 2, Axis::experts}};
  pass.seconds = Seconds{9 + 0.5 + 11};
  DeviceType type;
  const SplitPass split = split_at_experts(pass, type);
  CHECK(split.exchanges == seconds({11}));
  REQUIRE(split.computations.size() == 2);
  CHECK(split.computations[0].value == near(5.5));
  CHECK(split.computations[1].value == near(4));

  GroupPass input = pass; // without 1 s of weights in the first part and 3 s in the last
  input.computations[0].seconds = Seconds{2};
  input.computations[3].seconds = Seconds{1};
  input.seconds = pass.seconds - Seconds{4};
  const SplitPass both = split_at_experts(pass, input, type);
  CHECK(both.computations[0].value == near(4.5));
  CHECK(both.weights[0].value == near(1));
  CHECK(both.weights[1].value == near(3));

  // The rule: kernels on 20 of 80 multiprocessors leave products three quarters of these.
  type.processors = 80;
  pass.exchanges[1].processors = 20;
  pass.exchanges[2].processors = 8;
  CHECK(split_at_experts(pass, type).slower == std::vector<double>{1});
  type.beside_exchange.by_rule = true;
  CHECK(split_at_experts(pass, type).slower.front() == near(1 / 0.75));
}

} // namespace
} // namespace stagecraft::test
