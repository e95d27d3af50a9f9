// Sweeps: which points there are, and that each equals what a comparison of its study alone gives.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "sim/sweep/run/sweep_replay.hpp"
#include "sim/sweep/run/sweep_run.hpp"
#include "sim/sweep/space/plain_digits.hpp"
#include "sim/sweep/store/read_sweep_results.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::json;
using test::chain_study;
using test::error_of;
using test::kFolders;

Sweep read(const std::string& sweep, const std::string& study = "model: chain.yaml\nplatform: {devices: 2}\n") {
  return load_sweep(yaml::parse(study + "sweep:\n" + sweep, "study.yaml"), {});
}

// The values of an axis "key", as texts.
std::vector<std::string> values(const std::string& axis) {
  std::vector<std::string> texts;
  const Sweep sweep = read("  platform.key: " + axis + "\n");
  for (const yaml::Node& value : sweep.axes.at(0).keys.at(0).values) {
    texts.push_back(value.text);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST_CASE("an axis is a list or a range", "[study][sweep]") {
  CHECK(values("[1, b, 2 us]") == Texts{"1", "b", "2 us"});
  CHECK(values("{from: 1, to: 4}") == Texts{"1", "2", "3", "4"});
  CHECK(values("{from: 4, to: 2}") == Texts{"4", "3", "2"});
  CHECK(values("{from: 1 Gb/s, to: 2 Gb/s, step: 0.5 Gb/s}") == Texts{"1 Gb/s", "1.5 Gb/s", "2 Gb/s"});
  CHECK(values("{from: 0.1, to: 0.3, step: 0.1}") == Texts{"0.1", "0.2", "0.3"});
  CHECK(values("{from: 10 us, to: 40 us, count: 4}") == Texts{"10 us", "20 us", "30 us", "40 us"});
  CHECK(values("{from: 1 us, to: 100 us, count: 3, scale: log}") == Texts{"1 us", "10 us", "100 us"});
  CHECK(values("{from: 1, to: 16, count: 5, scale: log}") == Texts{"1", "2", "4", "8", "16"});
  CHECK(values("{from: 1, to: 3, count: 5}") == Texts{"1", "2", "3"}); // 1, 1.5, 2, 2.5, 3 rounded
  CHECK(values("{from: 5 us, to: 9 us, count: 1}") == Texts{"5 us"});
  CHECK(values("{from: 0.00002 s, to: 0.00003 s, count: 2}") == Texts{"0.00002 s", "0.00003 s"});
}

TEST_CASE("an axis may have a name for readers, which makes no other points", "[study][sweep]") {
  const Sweep plain = read("  seed: [1, 2]\n  zip: {platform.memory: [1 GB, 2 GB], training.global_batch: [1, 2]}\n");
  const Sweep named = read("  seed: {values: [1, 2], label: throws of the dice}\n"
                           "  zip: {platform.memory: [1 GB, 2 GB], training.global_batch: [1, 2], label: size}\n");
  CHECK(values("{from: 1, to: 3, label: n}") == Texts{"1", "2", "3"});
  CHECK(named.goal.labels.at("seed") == "throws of the dice");
  CHECK(named.goal.labels.at("platform.memory + training.global_batch") == "size");
  CHECK(named.asked == plain.asked);
  CHECK(combinations(named) == combinations(plain));
  CHECK(read_goal(yaml::parse(named.goal.document, "goal")).labels == named.goal.labels); // as a file keeps it
  CHECK(error_of([] {
          read("  seed: {values: {from: 1}, label: n}\n");
        }).find("the values of axis 'seed' are a mapping") != std::string::npos);
  CHECK(error_of([] { read("  seed: {values: [1], lable: n}\n"); }).find("unknown key 'lable'") != std::string::npos);
}

TEST_CASE("values between the ends of a range have as many digits as tell them apart", "[study][sweep]") {
  // 10 x 40^(i/5) = 10, 20.9128, 43.7345, 91.461, 191.27, 400
  CHECK(values("{from: 10 Gb/s, to: 400 Gb/s, count: 6, scale: log}") ==
        Texts{"10 Gb/s", "20.91 Gb/s", "43.73 Gb/s", "91.46 Gb/s", "191.3 Gb/s", "400 Gb/s"});
  // The last two are 1/3 of 2 apart: a thousandth of that is 1.7e-4 of them, which five digits hold.
  CHECK(values("{from: 1 us, to: 2 us, count: 4}") == Texts{"1 us", "1.3333 us", "1.6667 us", "2 us"});
  // Ends stay as they are written.
  CHECK(values("{from: 1.23456789 us, to: 200 us, count: 2, scale: log}") == Texts{"1.23456789 us", "200 us"});
  CHECK(values("{from: 500 Mb/s, to: 2 Gb/s, count: 3, scale: log}") == Texts{"500 Mb/s", "1000 Mb/s", "2000 Mb/s"});
  CHECK(values("{from: 1 us, to: 2 ms, step: 1 ms}") == Texts{"1 us", "1001 us"});
  const Texts many = values("{from: 1 Gb/s, to: 100 Gb/s, count: 5000, scale: log}");
  CHECK(many.size() == 5000);
  CHECK(many[1] == "1.000922 Gb/s"); // 100^(1/4999) = 1.00092164, 9.2e-4 from the first: seven digits
}

TEST_CASE("plain digits stand where an exponent could", "[study][sweep]") {
  CHECK(plain_digits(0.25, 4) == "0.25");
  CHECK(plain_digits(2e-5, 4) == "0.00002");
  CHECK(plain_digits(-1.23456e-7, 4) == "-0.0000001235");
  CHECK(plain_digits(1.23456789012e-9, 12) == "0.00000000123456789012");
  CHECK(plain_digits(9999.6, 4) == "10000");
  CHECK(plain_digits(12345.6, 4) == "12346"); // all that stand before the point
  CHECK(plain_digits(3e15, 12) == "3000000000000000");
  CHECK(plain_digits(0, 4) == "0");
  CHECK(plain_digits(2e-40, 4) == "2e-40");
}

TEST_CASE("an error in a sweep is told with its place", "[study][sweep]") {
  const auto wrong = [](const std::string& sweep) { return error_of([&] { read(sweep); }); };
  CHECK(wrong("  platfrm.key: [1]\n") ==
        "study.yaml:4:3: unknown key 'platfrm'; did you mean 'platform'? known: model, platform, training, loader, "
        "compare, perturb, confidence, believed, dynamic, engine, cost_model, seed, zip, where, sample, screen, "
        "objective, "
        "constraints (an axis is a dotted key of the study, such as platform.network.bandwidth)");
  CHECK(wrong("  seed: []\n").starts_with("study.yaml:4:9: axis 'seed' has no values"));
  CHECK(wrong("  seed: 3\n").starts_with("study.yaml:4:9: axis 'seed' has no values"));
  CHECK(wrong("  seed: {from: 1 us, to: 2 Gb/s}\n") ==
        "study.yaml:4:26: 'to' is of another kind than 'from'; allowed: a time");
  CHECK(wrong("  seed: {from: 1, to: 2 us}\n").find("allowed: a plain number") != std::string::npos);
  CHECK(wrong("  seed: {from: 1 us, to: 2 ms, step: 1 B}\n").find("'step' is of another kind") != std::string::npos);
  CHECK(wrong("  seed: {from: 1, to: 2, cuont: 2}\n").find("unknown key 'cuont'") != std::string::npos);
  CHECK(wrong("  seed: {from: 0, to: 2, count: 3, scale: log}\n").find("not positive") != std::string::npos);
  CHECK(wrong("  seed: {from: 1, to: 2, step: -1}\n").find("leads nowhere") != std::string::npos);
  CHECK(wrong("  seed: {from: 1, to: 1, step: 0}\n").find("leads nowhere") != std::string::npos); // 0 / 0 steps
  CHECK(wrong("  seed: {from: 1, to: 1000001, step: 1}\n").find("in at most 1000000 steps") != std::string::npos);
  CHECK(wrong("  seed: {from: 1e308, to: 2, count: 3}\n")
            .find("'from' is too large for a range; allowed: at most "
                  "1e18") != std::string::npos);
  CHECK(wrong("  seed: {from: 1, to: 600000}\n  confidence: {from: 1, to: 600000}\n") ==
        "study.yaml:5:3: the axes up to here have 1200000 values; allowed: at most 1000000");
  CHECK(wrong("  seed: {from: 0.5, to: 2.5}\n").find("is continuous") != std::string::npos);
  CHECK(wrong("  seed: [1]\n  zip: {seed: [2]}\n").find("a second axis 'seed'") != std::string::npos);
  CHECK(wrong("  zip: {seed: [2], engine: [analytic, simgrid]}\n").find("'engine' has 2 values and 'seed' 1") !=
        std::string::npos);
  CHECK(wrong("  seed: [1]\n  where: sede == 1\n").find("did you mean 'seed'?") != std::string::npos);
  CHECK(wrong("  seed: [1]\n  where: seed = 1\n").find("cannot be read from '= 1' on") != std::string::npos);
  CHECK(wrong("  objective: througput\n").find("did you mean 'throughput'?") != std::string::npos);
  CHECK(wrong("  objective: training-time\n").find("needs to know how much is trained") != std::string::npos);
  CHECK(wrong("  constraints: {powr: 3 W}\n").find("unknown key 'powr'") != std::string::npos);
  CHECK(wrong("  screen: {keep: 0 %}\n").find("more than 0 %") != std::string::npos);
  CHECK(wrong("  screen: {by: estimate, keep: 5}\n  objective: samples-per-dollar\n")
            .find("do not know usd_per_million_samples, by which 'samples-per-dollar' goes; allowed: 'by: analytic'") !=
        std::string::npos);
  CHECK(wrong("  screen: {by: estimate, keep: 5}\n  constraints: {memory: 1 GB}\n").find("peak_memory_bytes") !=
        std::string::npos);
}

// The values of all combinations, joined by blanks.
Texts combinations_of(const Sweep& sweep) {
  Texts texts;
  for (std::uint64_t number = 0; number < combinations(sweep); ++number) {
    if (const auto one = combination(sweep, number)) {
      std::string text;
      for (const Setting& setting : one->settings) {
        text += (text.empty() ? "" : " ") + setting.value;
      }
      texts.push_back(text);
    }
  }
  return texts;
}

TEST_CASE("combinations are the product of the axes, the model and the platform changing last", "[study][sweep]") {
  const Sweep sweep = read("  seed: [1, 2]\n  platform.devices: [2, 3]\n");
  CHECK(combinations_of(sweep) == Texts{"2 1", "2 2", "3 1", "3 2"});
}

TEST_CASE("zipped axes advance together", "[study][sweep]") {
  const Sweep sweep = read("  zip: [{seed: [1, 2], training.global_batch: [8, 16]}]\n  platform.devices: [2, 3]\n");
  CHECK(combinations_of(sweep) == Texts{"2 1 8", "2 2 16", "3 1 8", "3 2 16"});
}

TEST_CASE("conditions choose among combinations", "[study][sweep]") {
  const auto chosen = [](const std::string& condition) {
    return combinations_of(
        read("  seed: {from: 1, to: 4}\n  platform.latency: [1 us, 2 ms]\n  where: " + condition + "\n"));
  };
  CHECK(chosen("seed * 2 <= 4 and platform.latency < '1 ms'") == Texts{"1 us 1", "1 us 2"});
  CHECK(chosen("seed == 4 or seed - 2 == 1") == Texts{"1 us 3", "1 us 4", "2 ms 3", "2 ms 4"});
  CHECK(chosen("not (seed > 1) and platform.latency != '1 us'") == Texts{"2 ms 1"});
  CHECK(chosen("['seed >= 4', platform.latency == '0.002 s']") == Texts{"2 ms 4"});
  CHECK(chosen("platform.devices * seed == 4 and platform.latency <= '1 us'") == Texts{"1 us 2"});
  CHECK(chosen("model == chain.yaml and seed / 2 == 2") == Texts{"1 us 4", "2 ms 4"});
}

const std::string kTwoQuantities = "  platform.latency: [1 us, 2 ms]\n  platform.bandwidth: [1 MB/s, 10 Gb/s]\n"
                                   "  seed: {from: 1, to: 4}\n  compare.strategies: [uniform, single]\n";

TEST_CASE("a condition compares, adds and subtracts like with like", "[study][sweep]") {
  const std::string study = "model: chain.yaml\nplatform: {devices: 2, memory: 4 GB}\n";
  for (const std::string right : {
           "platform.latency <= '10 us'",
           "platform.latency > 0 or 0 != platform.bandwidth", // 0 is of any kind
           "platform.latency + '1 us' < '1 ms' * seed",
           "platform.bandwidth * platform.latency < '1 kB'", // B/s s
           "platform.latency <= '1 kB' / platform.bandwidth",
           "platform.bandwidth / '1 Gb/s' == 10",
           "platform.memory / platform.bandwidth < '1 h'", // a key of the study alone
           "platform.latency / '1 s' + seed < 3",
           "(seed > 2) == (platform.latency > '1 us')",
           "compare.strategies == uniform or seed < 3",
           "micro_batches * seed < 8 and strategy != single",
       }) {
    INFO(right);
    CHECK(error_of([&] { read(kTwoQuantities + "  where: " + right + "\n", study); }).empty());
  }
  const auto wrong = [&](const std::string& condition) {
    const std::string error = error_of([&] { read(kTwoQuantities + "  where: " + condition + "\n", study); });
    const std::string head = "study.yaml:8:10: in condition '" + condition + "': ";
    INFO(error);
    REQUIRE(error.starts_with(head));
    const std::size_t end = error.find("; allowed: two of one kind, or 0 beside any quantity");
    return end == std::string::npos ? error.substr(head.size()) : error.substr(head.size(), end - head.size());
  };
  CHECK(wrong("platform.latency <= '10 Gb/s'") ==
        "a time (platform.latency = 1 us) and a data rate (10 Gb/s) are compared");
  CHECK(wrong("10 >= platform.latency") == "a plain number (10) and a time (platform.latency = 1 us) are compared");
  CHECK(wrong("seed == '2 us'") == "a plain number (seed = 1) and a time (2 us) are compared");
  CHECK(wrong("platform.latency + platform.bandwidth > 0") ==
        "a time (platform.latency = 1 us) and a data rate (platform.bandwidth = 1 MB/s) are added");
  CHECK(wrong("seed > 100 and platform.latency - 1 > '1 us'") ==
        "a time (platform.latency = 1 us) and a plain number (1) are subtracted");
  CHECK(wrong("platform.latency * platform.latency == '4 s'") ==
        "a quantity in s^2 (platform.latency * platform.latency) and a time (4 s) are compared");
  CHECK(wrong("platform.bandwidth / (platform.latency + '1 s') < '3 B/s'") ==
        "a quantity in s^-2 B (platform.bandwidth / (platform.latency + '1 s')) and a data rate (3 B/s) are compared");
  CHECK(wrong("platform.latency != '10 uss'") == "a time (platform.latency = 1 us) and a text (10 uss) are compared");
  CHECK(wrong("platform.memory > '1 us'") ==
        "an amount of data (platform.memory = 4 GB) and a time (1 us) are compared");
  CHECK(wrong("micro_batches > '1 us'") == "a plain number (micro_batches) and a time (1 us) are compared");
  CHECK(wrong("seed == 1 or strategy < 3").starts_with("a text (strategy) is reckoned with; allowed: numbers and "));
  CHECK(wrong("compare.strategies * 2 == 2").starts_with("a text (compare.strategies) is reckoned with"));
}

TEST_CASE("conditions use the values of the command line", "[study][sweep]") {
  const auto chosen = [](const std::vector<Setting>& settings) {
    const std::string study =
        "model: chain.yaml\ntraining: {global_batch: 8}\nsweep: {seed: [1, 2], where: seed * 4 == "
        "training.global_batch and platform.latency < '1 ms'}\n";
    return combinations_of(load_sweep(yaml::parse(study, "study.yaml"), settings));
  };
  const Setting latency{"platform.latency", "1 us"};
  CHECK(chosen({latency}) == Texts{"2"});
  CHECK(chosen({{"training.global_batch", "8"}, {"training.global_batch", "4"}, latency}) == Texts{"1"});
  CHECK(chosen({{"training", "{global_batch: 4}"}, latency}) == Texts{"1"});
  CHECK(chosen({{"training", "{global_batch: 4}"}, {"training.global_batch", "8"}, latency}) == Texts{"2"});
  for (const std::vector<Setting>& gone :
       std::vector<std::vector<Setting>>{{{"training", "{micro_batches: 4}"}, latency},
                                         {{"training.global_batch", "4"},
                                          {"training", "{micro_batches: 4}"},
                                          latency}}) { // a mapping takes another's place
    CHECK(error_of([&] { chosen(gone); }).find("unknown word 'training.global_batch'") != std::string::npos);
  }
  CHECK(error_of([&] {
          chosen({{"platform.latency", "3"}});
        }).find("a plain number (platform.latency = 3)") != std::string::npos);
}

TEST_CASE("values of several kinds on one axis are each compared with their own kind", "[study][sweep]") {
  const auto chosen = [](const std::string& axes, const std::string& condition) {
    return combinations_of(read(axes + "  where: " + condition + "\n"));
  };
  const auto wrong = [&](const std::string& axes, const std::string& condition) {
    return error_of([&] { chosen(axes, condition); });
  };
  const std::string with_text = "  platform.latency: [none, 1 us, 2 ms]\n";
  CHECK(chosen(with_text, "platform.latency == none") == Texts{"none"});
  CHECK(chosen(with_text, "platform.latency != '1 us'") == Texts{"none", "2 ms"});
  CHECK(chosen(with_text, "platform.latency == none or platform.latency < '1 ms'") == Texts{"none", "1 us"});
  CHECK(chosen(with_text, "not (platform.latency == none) and platform.latency < '1 ms'") == Texts{"1 us"});
  CHECK(wrong(with_text, "platform.latency < '1 ms'").find("a text (platform.latency = none) is reckoned with") !=
        std::string::npos);
  CHECK(wrong(with_text, "platform.latency == '1 MB/s'").find("a text (platform.latency = none) and a data rate") !=
        std::string::npos);

  const std::string zipped = "  zip: {seed: [quick, slow], platform.latency: [none, 2 us]}\n";
  CHECK(chosen(zipped, "seed == quick or platform.latency > '1 us'") == Texts{"quick none", "slow 2 us"});
  CHECK(wrong(zipped, "seed == slow or platform.latency > '1 us'").find("platform.latency = none") !=
        std::string::npos);

  const std::string two_kinds = "  platform.speed: [1 B, 1 s, 0]\n"; // 1 B is not 1 s, though both are 1 of something
  CHECK(chosen(two_kinds, "platform.speed == '1 s'") == Texts{"1 s"});
  CHECK(wrong(two_kinds, "platform.speed >= '1 s'").find("an amount of data (platform.speed = 1 B) and a time (1 s)") !=
        std::string::npos);
  CHECK(wrong(two_kinds, "platform.speed == 1").find("an amount of data (platform.speed = 1 B) and a plain number") !=
        std::string::npos); // the bare 0 among them is no plain number
  CHECK(chosen("  platform.latency: [0, 1 us]\n", "platform.latency < '1 us'") == Texts{"0"});
  CHECK(chosen("  seed: [0, 1, 2]\n", "seed <= 1") == Texts{"0", "1"});
  CHECK(chosen("  platform: [{devices: 2}, chain]\n", "platform != chain").size() == 1);

  const std::string drawn = "  platform.latency: {from: 1 us, to: 9 us}\n  sample: {method: random, points: 3}\n";
  CHECK(chosen(drawn, "platform.latency < '1 s'").size() == 3);
  CHECK(wrong(drawn, "platform.latency < 1").find("a time (platform.latency = 1 us) and a plain number (1)") !=
        std::string::npos);
}

TEST_CASE("draws: random ones are distinct, a latin hypercube meets every value as often", "[study][sweep]") {
  const std::string axes = "  seed: {from: 1, to: 10}\n  platform.devices: {from: 1, to: 10}\n";
  const Texts drawn = combinations_of(read(axes + "  sample: {method: random, points: 60}\n"));
  CHECK(std::set<std::string>(drawn.begin(), drawn.end()).size() == 60);
  CHECK(drawn == combinations_of(read(axes + "  sample: {method: random, points: 60, seed: 1}\n")));
  CHECK(drawn != combinations_of(read(axes + "  sample: {method: random, points: 60, seed: 2}\n")));
  CHECK(combinations_of(read(axes + "  sample: {method: random, points: 500}\n")).size() == 100);

  const Sweep covered = read(axes + "  sample: {method: latin-hypercube, points: 30}\n");
  std::map<std::string, int> met;
  for (std::uint64_t number = 0; number < 30; ++number) {
    const std::optional<Combination> one = combination(covered, number);
    for (const Setting& setting : one->settings) {
      ++met[setting.key + " " + setting.value];
    }
  }
  CHECK(met.size() == 20);
  for (const auto& [value, times] : met) {
    CHECK(times == 3);
  }
}

TEST_CASE("a continuous axis is stratified between its ends", "[study][sweep]") {
  const Sweep sweep = read("  platform.latency: {from: 1 us, to: 1000 us, scale: log}\n"
                           "  sample: {method: latin-hypercube, points: 3}\n");
  std::set<int> decades;
  for (std::uint64_t number = 0; number < 3; ++number) {
    const double latency = *find_amount(combination(sweep, number)->settings.at(0).value);
    decades.insert(static_cast<int>(std::floor(std::log10(latency / 1e-6))));
  }
  CHECK(decades == std::set<int>{0, 1, 2});
}

// A folder with an empty file of results.
struct Results {
  Results() {
    std::string name = (std::filesystem::temp_directory_path() / "stagecraft-sweep-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder = name;
  }
  ~Results() { std::filesystem::remove_all(folder); }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  std::filesystem::path folder;
};

// Runs a sweep into a file and gives its points in order.
std::vector<PointRow> run(const std::string& study, const std::filesystem::path& file, SweepOutcome* outcome = nullptr,
                          const SweepOptions& options = {}) {
  InputFiles files;
  Folders folders = kFolders;
  folders.files = &files;
  const SweepInputs inputs{load_sweep(yaml::parse(study, "study.yaml"), {}), {}, folders};
  SweepPoints points(inputs, "test");
  SweepStore store(file, SweepStore::Mode::write);
  const SweepOutcome ended = run_sweep(points, store, options);
  if (outcome != nullptr) {
    *outcome = ended;
  }
  std::vector<PointRow> rows;
  store.for_each([&](const PointRow& row) { rows.push_back(row); });
  return rows;
}

const std::string kSweep =
    chain_study("training: {global_batch: 4, micro_batches: [2, 4]}\n"
                "compare: {strategies: [single, uniform, data-parallel], schedules: [gpipe, 1f1b]}\n"
                "sweep:\n  platform.devices: [2, 4]\n  platform.bandwidth: [1 MB/s, 4 MB/s, 1 GB/s]\n",
                "{devices: 2, bandwidth: 4 MB/s}");

double figure(const PointRow& row, std::string_view name) {
  for (std::size_t i = 0; i < kFigures; ++i) {
    if (figures()[i].name == name) {
      return row.figures.at(i);
    }
  }
  FAIL("no figure " << name);
  return 0;
}

// Each figure of a point is that of the run's own document. SimGrid's clock goes on from replay to replay, so that sums
// round differently.
void check_figures(const PointRow& row, const Run& run) {
  const Json json = Json::parse(to_json(run, {"m", "p"}, false));
  for (const Metric& metric : figures()) {
    INFO(metric.name);
    std::string path = "/" + std::string(metric.path());
    std::replace(path.begin(), path.end(), '.', '/');
    const Json::json_pointer key(path);
    const double found = figure(row, metric.name);
    if (metric.shape == MetricShape::length) {
      CHECK(found == static_cast<double>(json.at(key).size()));
    } else if (!json.contains(key)) {
      CHECK((metric.shape == MetricShape::largest ? found == 0 : std::isnan(found)));
    } else {
      const Json& value = json.at(key);
      if (value.is_null()) {
        CHECK(std::isnan(found));
        continue;
      }
      const double number = value.is_array() ? *std::max_element(value.begin(), value.end()) : value;
      CHECK(found == Approx(number).epsilon(1e-9).margin(1e-9));
    }
  }
}

TEST_CASE("every figure of a point is that of its run in a comparison", "[study][sweep][metrics]") {
  const std::string study = "model: gpt2\nplatform: pcie-v100\nengine: analytic\n" // tokens, and an assumed price
                            "training: {global_batch: 16, micro_batches: [4], optimizer: sgd}\n"
                            "loader: {decode: 1 s, workers: 1}\nperturb: {samples: 5, jitter: 0.1}\nconfidence: 5\n"
                            "compare: {strategies: [uniform, optimal], schedules: [1f1b, pipedream]}\n";
  Results results;
  const std::vector<PointRow> rows = run(study + "sweep: {seed: [7]}\n", results.folder / "a.sqlite");
  const Comparison comparison = test::compare_text(study, {{"seed", "7"}}).comparison;
  REQUIRE(rows.size() == 4);
  for (const PointRow& row : rows) {
    INFO(row.strategy << " " << row.schedule);
    REQUIRE(row.status == PointStatus::feasible);
    check_figures(row, test::find_run(comparison, row.strategy, row.schedule, row.micro_batches));
  }
  for (const Metric& metric : figures()) {
    INFO(metric.name);
    CHECK(std::any_of(rows.begin(), rows.end(), [&](const PointRow& row) { // something to compare
      return std::isfinite(figure(row, metric.name)) && figure(row, metric.name) != 0;
    }));
  }
}

TEST_CASE("every point is what a comparison of its study says", "[study][sweep]") {
  const std::string engine = GENERATE("simgrid", "simgrid-full", "analytic");
  Results results;
  const std::vector<PointRow> rows = run(kSweep + "engine: " + engine + "\n", results.folder / "a.sqlite");
  REQUIRE(rows.size() == 2 * 3 * 3 * 2 * 2);
  std::size_t at = 0;
  for (const std::string devices : {"2", "4"}) {
    for (const std::string bandwidth : {"1 MB/s", "4 MB/s", "1 GB/s"}) {
      const Comparison comparison =
          test::compare_text(kSweep,
                             {{"platform.devices", devices}, {"platform.bandwidth", bandwidth}, {"engine", engine}})
              .comparison;
      for (std::size_t i = 0; i < 12; ++i, ++at) {
        const PointRow& row = rows[at];
        const Run& run = test::find_run(comparison, row.strategy, row.schedule, row.micro_batches);
        INFO(row.settings << " " << row.strategy << " " << row.schedule << " " << row.micro_batches);
        REQUIRE(run.feasible == (row.status == PointStatus::feasible));
        CHECK(row.order == run.order);
        CHECK(row.reason == run.why_not);
        if (run.feasible) {
          check_figures(row, run);
        }
      }
    }
  }
}

// Eight equal layers on V100s, by cost models that may err.
const std::string kDrawn = "model: products.yaml\nplatform: nvlink-v100\n"
                           "training: {global_batch: 16, micro_batches: [4, 8], optimizer: sgd}\n"
                           "compare: {strategies: [uniform, optimal, capability], schedules: [gpipe, 1f1b]}\n";

bool has_interval(const PointRow& row) { return std::isfinite(figure(row, "confidence_median_seconds")); }

TEST_CASE("a point's interval is what a comparison of its study says, whoever draws it", "[study][sweep][confidence]") {
  const std::string engine = GENERATE("simgrid", "analytic");
  Results results;
  const std::string study = kDrawn + "engine: " + engine +
                            "\nsweep:\n  seed: [1, 2]\n  training.global_batch: [16, 32]\n  confidence: [0, 30]\n";
  const std::vector<PointRow> rows = run(study, results.folder / "a.sqlite");
  REQUIRE(rows.size() == 2 * 2 * 2 * 12);
  std::size_t at = 0;
  std::map<std::string, double> upper; // 95 %, by seed
  for (const std::string seed : {"1", "2"}) {
    for (const std::string batch : {"16", "32"}) {
      for (const std::string draws : {"0", "30"}) {
        const Comparison comparison =
            test::compare_text(study, {{"seed", seed}, {"training.global_batch", batch}, {"confidence", draws}})
                .comparison;
        for (std::size_t i = 0; i < 12; ++i, ++at) {
          const PointRow& row = rows[at];
          const Run& run = test::find_run(comparison, row.strategy, row.schedule, row.micro_batches);
          INFO(row.settings << " " << row.strategy << " " << row.schedule << " " << row.micro_batches);
          REQUIRE(row.status == PointStatus::feasible);
          REQUIRE(run.confidence.has_value() == (draws == "30"));
          REQUIRE(has_interval(row) == (draws == "30"));
          if (run.confidence) { // figures are stored with twelve digits
            const RunSpread& spread = run.confidence->iteration;
            CHECK(spread.low < spread.high);
            CHECK(figure(row, "confidence_p5_seconds") == Approx(spread.low.value).epsilon(1e-11));
            CHECK(figure(row, "confidence_median_seconds") == Approx(spread.median.value).epsilon(1e-11));
            CHECK(figure(row, "confidence_p95_seconds") == Approx(spread.high.value).epsilon(1e-11));
            upper[seed] = spread.high.value;
          }
        }
      }
    }
  }
  CHECK(upper["1"] != upper["2"]); // other draws
  const std::vector<PointRow> shared = run(study, results.folder / "b.sqlite", nullptr, {.workers = 3});
  REQUIRE(shared.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(shared[i].key == rows[i].key);
    for (const char* name : {"iteration_seconds", "confidence_p5_seconds", "confidence_p95_seconds"}) {
      CHECK((has_interval(rows[i]) || std::string(name) == "iteration_seconds"
                 ? figure(shared[i], name) == figure(rows[i], name)
                 : std::isnan(figure(shared[i], name))));
    }
  }
  SweepStore store(results.folder / "b.sqlite", SweepStore::Mode::read);
  for (const std::size_t one : {std::size_t{0}, std::size_t{12}, rows.size() - 1}) {
    const auto folder = results.folder / std::to_string(one);
    std::filesystem::create_directories(folder);
    const ReplayedPoint again = replay_point(store.find(to_text(rows[one].key)), folder);
    const std::optional<RunConfidence>& confidence = again.prepared.run.confidence;
    REQUIRE(confidence.has_value() == has_interval(rows[one]));
    if (confidence) {
      CHECK(confidence->iteration.low.value == Approx(figure(rows[one], "confidence_p5_seconds")).epsilon(1e-11));
      CHECK(confidence->iteration.high.value == Approx(figure(rows[one], "confidence_p95_seconds")).epsilon(1e-11));
      CHECK(std::isnan(confidence->best));
    }
  }
}

TEST_CASE("a first pass draws no errors, so its points are not those of a pass that does",
          "[study][sweep][confidence]") {
  Results results;
  const auto file = results.folder / "a.sqlite";
  const std::string by = GENERATE("analytic", "estimate");
  const std::string axes = "sweep:\n  training.global_batch: [16, 32]\n";
  const auto drawn_by = [](const std::vector<PointRow>& rows, const std::string& engine) {
    std::size_t with = 0, without = 0;
    for (const PointRow& row : rows) {
      (row.engine != engine ? 0 : has_interval(row) ? ++with : ++without);
    }
    return std::pair(with, without);
  };
  const std::string screen = "  screen: {by: " + by + ", keep: 5}\n";
  const std::vector<PointRow> rows = run(kDrawn + "confidence: 10\n" + axes + screen, file);
  CHECK(drawn_by(rows, by) == std::pair<std::size_t, std::size_t>(0, 24));
  CHECK(drawn_by(rows, "simgrid") == std::pair<std::size_t, std::size_t>(5, 0));
  SweepStore store(file, SweepStore::Mode::read);
  for (const PointRow& row : {rows.front(), rows.back()}) { // each again as it was, draws or not
    const auto folder = results.folder / to_text(row.key);
    std::filesystem::create_directories(folder);
    const PointResult again = replay_point(store.find(to_text(row.key)), folder).result;
    CHECK(again.status == row.status);
    for (std::size_t i = 0; i < kFigures; ++i) {
      INFO(row.engine << " " << figures()[i].name);
      CHECK((again.figures.at(i) == row.figures.at(i) ||
             (std::isnan(again.figures.at(i)) && std::isnan(row.figures.at(i)))));
    }
  }
  SweepOutcome outcome; // the quick engine's own study finds no point that lacks its draws
  const std::vector<PointRow> more = run(kDrawn + "confidence: 10\nengine: analytic\n" + axes, file, &outcome);
  CHECK(outcome.found == 0);
  CHECK(drawn_by(more, "analytic") == std::pair<std::size_t, std::size_t>(24, by == "analytic" ? 24 : 0));
  // Where nothing is drawn they are the same points.
  run(kDrawn + axes + screen, results.folder / "b.sqlite");
  run(kDrawn + "engine: analytic\n" + axes, results.folder / "b.sqlite", &outcome);
  CHECK(outcome.found == (by == "analytic" ? 24 : 0));
  // By the study's own engine there is one pass in all but name.
  const std::vector<PointRow> own =
      run(kDrawn + "confidence: 10\nengine: analytic\n" + axes + "  screen: {by: analytic, keep: 5}\n",
          results.folder / "c.sqlite");
  CHECK(drawn_by(own, "analytic") == std::pair<std::size_t, std::size_t>(24, 0));
}

TEST_CASE("a sweep tries the plain choices at more micro-batches, unless these are an axis", "[study][sweep]") {
  Results results;
  const auto counts_of_single = [&](const std::string& training, const std::string& axes, const std::string& file) {
    std::vector<int> counts;
    for (const PointRow& row : run("model: products.yaml\nplatform: nvlink-v100\n"
                                   "training: {global_batch: 8" +
                                       training +
                                       "}\ncompare: {strategies: [single, uniform], schedules: [gpipe]}\n"
                                       "sweep:\n  seed: [1]\n" +
                                       axes,
                                   results.folder / file)) {
      if (row.strategy == "single") {
        counts.push_back(row.micro_batches);
        const auto folder = results.folder / (file + std::to_string(counts.size()));
        std::filesystem::create_directories(folder);
        SweepStore store(results.folder / file, SweepStore::Mode::read);
        CHECK(replay_point(store.find(to_text(row.key)), folder).prepared.run.micro_batches == row.micro_batches);
      }
    }
    return counts;
  };
  CHECK(counts_of_single(", micro_batches: 4", "", "a.sqlite") == std::vector{4, 1, 2, 8});
  CHECK(counts_of_single("", "  training.micro_batches: [4, 2]\n", "b.sqlite") == std::vector{4, 2});
}

TEST_CASE("a sweep goes on where it ended and computes only what is new", "[study][sweep]") {
  Results results;
  const auto file = results.folder / "a.sqlite";
  SweepOutcome first;
  const std::vector<PointRow> rows = run(kSweep, file, &first);
  CHECK(first.computed == 72);
  SweepOutcome again;
  CHECK(run(kSweep, file, &again).size() == 72);
  CHECK((again.computed == 0 && again.found == 72));
  std::string more = kSweep;
  more.replace(more.find("[gpipe, 1f1b]"), 13, "[gpipe, 1f1b, zb-h1]");
  more.replace(more.find("[2, 4]\n  platform.b"), 6, "[2, 3, 4]");
  SweepOutcome wider; // 3 devices instead of 2, 3 schedules instead of 2
  CHECK(run(more, file, &wider).size() == 72 * 9 / 4);
  CHECK((wider.found == 72 && wider.feasible + wider.infeasible == 162));
}

TEST_CASE("shards are parts of the whole, and merge to it", "[study][sweep]") {
  Results results;
  const std::vector<PointRow> whole = run(kSweep, results.folder / "whole.sqlite");
  SweepStore merged(results.folder / "merged.sqlite", SweepStore::Mode::write);
  std::size_t sum = 0;
  for (int index = 1; index <= 3; ++index) {
    const auto file = results.folder / ("shard-" + std::to_string(index) + ".sqlite");
    const std::size_t part = run(kSweep, file, nullptr, {.shard = {index, 3}}).size();
    CHECK(part > 0);
    sum += part;
    CHECK(merged.merge(file) == part);
    CHECK(merged.merge(file) == 0);
  }
  CHECK(sum == whole.size());
  std::size_t at = 0;
  merged.for_each([&](const PointRow& row) {
    CHECK(row.key == whole.at(at).key);
    CHECK(row.settings == whole.at(at).settings);
    ++at;
  });
  CHECK(at == whole.size());
}

TEST_CASE("an impossible combination is a row with its reason", "[study][sweep]") {
  Results results;
  SweepOutcome outcome;
  const std::vector<PointRow> rows =
      run(chain_study("training: {global_batch: 4}\ncompare: {strategies: uniform, schedules: gpipe}\n"
                      "sweep: {training.global_batch: [4, 6], training.micro_batches: [2, 3, 4]}\n"),
          results.folder / "a.sqlite", &outcome);
  REQUIRE(rows.size() == 6); // 3 does not divide 4, 4 does not divide 6
  CHECK((outcome.feasible == 4 && outcome.failed == 2));
  for (const PointRow& row : rows) {
    const bool impossible = row.settings.find(R"("4","training.micro_batches":"3")") != std::string::npos ||
                            row.settings.find(R"("6","training.micro_batches":"4")") != std::string::npos;
    CHECK((row.status == PointStatus::failed) == impossible);
    CHECK(row.reason.empty() != impossible);
  }
  const std::string never = error_of([&] {
    run(chain_study("sweep: {training.global_batch: [4, 8], training.micro_batches: [2, 3]}\n"), results.folder / "b");
  });
  CHECK(never.starts_with("study.yaml:3:68: ")); // 3 divides neither
  // 8 divides neither the first nor the last batch, but the one between.
  const std::vector<PointRow> between =
      run(chain_study("compare: {strategies: uniform, schedules: gpipe}\n"
                      "sweep: {training.micro_batches: [4, 8], training.global_batch: [12, 64, 20]}\n"),
          results.folder / "c.sqlite", &outcome);
  CHECK(between.size() == 6);
  CHECK((outcome.feasible == 4 && outcome.failed == 2));
}

TEST_CASE("a fault is blamed on the value that causes it, and a fault of the study on no value", "[study][sweep]") {
  Results results;
  const auto wrong = [&](const std::string& text) {
    const std::string error = error_of([&] { run(chain_study(text), results.folder / "a"); });
    UNSCOPED_INFO(error);
    return error;
  };
  const std::string axes = "sweep: {platform.bandwidth: [1 GB/s, 2 GB/s], training.global_batch: [4, 8]";
  CHECK(wrong("training: {optimiser: adam}\n" + axes + "}\n").starts_with("study.yaml:3:12: unknown key 'optimiser'"));
  CHECK(wrong(axes + ", platform.devises: [2]}\n").starts_with("study.yaml:3:97: unknown key 'devises'"));
  CHECK(wrong("training: {optimiser: adam}\n" + axes + ", where: [training.global_batch > 2, strategy != single]}\n")
            .starts_with("study.yaml:3:12: unknown key 'optimiser'"));
  // A condition that leaves out a value does not prove the value valid.
  CHECK(wrong("sweep: {cost_model: [auto, nonsense], seed: [1, 2, 3], where: [seed != 2]}\n").find("'nonsense'") !=
        std::string::npos);
  // 3 divides neither 4 nor 8: of two axes that do not go together both are told.
  CHECK(wrong(axes + ", training.micro_batches: [3]}\n")
            .starts_with("study.yaml:3:71: no value for 'training.global_batch': study.yaml:3:103: 'micro_batches' 3"));
}

TEST_CASE("a setting below the platform changes the one that an axis chooses, before or after it", "[study][sweep]") {
  Results results;
  const std::string bandwidth = "platform.bandwidth: [1 MB/s, 1 GB/s]",
                    platform = "platform: [{devices: 2}, {devices: 4}]";
  const auto times = [&](const std::string& axes, const char* file) {
    std::map<std::string, double> found;
    for (const PointRow& row : run(chain_study("training: {global_batch: 4, micro_batches: 4}\nengine: analytic\n"
                                               "compare: {strategies: uniform, schedules: gpipe}\nsweep: {" +
                                               axes + "}\n"),
                                   results.folder / file)) {
      found[to_text(row.key)] = figure(row, "iteration_seconds");
    }
    return found;
  };
  const auto one = times(bandwidth + ", " + platform, "a.sqlite"),
             other = times(platform + ", " + bandwidth, "b.sqlite");
  CHECK(one.size() == 4);
  CHECK(one == other);
  std::set<double> distinct;
  for (const auto& [key, time] : one) {
    distinct.insert(time);
  }
  CHECK(distinct.size() == 4); // both axes tell
}

TEST_CASE("points have the same key exactly where their settings have the same effect", "[study][sweep]") {
  const auto keys = [](const std::vector<Setting>& settings) {
    InputFiles files;
    const SweepInputs inputs{load_sweep(yaml::parse(chain_study("sweep: {platform.bandwidth: [1 GB/s]}\n"), "s"), {}),
                             settings,
                             {kFolders.study, kFolders.shipped, &files}};
    SweepPoints points(inputs, "test");
    const auto opened = points.open(0);
    return points.row(*opened, 0, "")->key;
  };
  const Setting all{"training", "{global_batch: 8, micro_batches: 4, precision: fp16}"};
  const Setting one{"training.precision", "fp32"}, other{"seed", "7"};
  CHECK(keys({one, other}) == keys({other, one}));
  CHECK(keys({all, one}) != keys({one, all})); // the mapping undoes what came before it
  CHECK(keys({one, all}) == keys({all}));
  CHECK(keys({{"seed", "3"}, other}) == keys({other}));
  const Setting latency{"platform.latency", "3 us"}, platform{"platform", "{devices: 2, bandwidth: 1 GB/s}"};
  CHECK(keys({latency, platform}) == keys({platform, latency})); // which platform it is, is said first
}

TEST_CASE("conditions may speak of runs", "[study][sweep]") {
  Results results;
  const std::vector<PointRow> rows =
      run(kSweep + "  where: strategy != single and micro_batches == platform.devices\n", results.folder / "a.sqlite");
  CHECK(rows.size() == 2 * 3 * 2 * 2); // devices x bandwidths x strategies x schedules
}

TEST_CASE("a screen replays the best of the first pass alone", "[study][sweep]") {
  Results results;
  const std::string by = GENERATE("analytic", "estimate");
  SweepOutcome outcome;
  const std::vector<PointRow> rows =
      run(kSweep + "  screen: {by: " + by + ", keep: 10}\n", results.folder / "a.sqlite", &outcome);
  CHECK(rows.size() == 72 + 10);
  std::vector<double> screened;
  double worst = 0; // of the survivors, by the first pass
  for (const PointRow& row : rows) {
    if (row.engine == by && row.status == PointStatus::feasible) {
      screened.push_back(figure(row, "iteration_seconds"));
      worst = std::count_if(rows.begin(), rows.end(),
                            [&](const PointRow& other) {
                              return other.engine == "simgrid" && other.number == row.number && other.run == row.run;
                            }) > 0
                  ? std::max(worst, screened.back())
                  : worst;
    }
  }
  std::sort(screened.begin(), screened.end());
  CHECK(worst == screened.at(9));
}

TEST_CASE("constraints and objective choose the best", "[study][sweep]") {
  Results results;
  const std::string study = kSweep + "  objective: throughput\n  constraints: {devices: 2}\n";
  SweepOutcome outcome;
  std::vector<PointRow> rows = run(study, results.folder / "a.sqlite", &outcome);
  rows.erase(std::remove_if(
                 rows.begin(), rows.end(),
                 [](const PointRow& row) { return row.status != PointStatus::feasible || figure(row, "devices") > 2; }),
             rows.end());
  std::stable_sort(rows.begin(), rows.end(), [](const PointRow& one, const PointRow& other) {
    return figure(one, "samples_per_second") > figure(other, "samples_per_second");
  });
  SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::read);
  const Sweep asked = load_sweep(yaml::parse(study, "study.yaml"), {});
  const std::vector<RankedPoint> best = store.best(outcome.sweep, asked.goal, "simgrid", 5);
  REQUIRE(best.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(best[i].row.key == rows[i].key);
    CHECK(best[i].score == Approx(figure(rows[i], "samples_per_second")));
  }
  const SweepResults stored = read_sweep_results(store);
  REQUIRE(stored.answers.size() == 1);
  CHECK(stored.answers[0].words == "most samples per second, with devices at most 2");
  REQUIRE(stored.answers[0].best.size() >= 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(to_text(rows[i].key).starts_with(stored.keys[stored.answers[0].best[i].point]));
  }
}

// Each limit is what the middle point has: those that the database ranks behind it break it.
TEST_CASE("the report knows which points keep to the constraints", "[study][sweep]") {
  const std::string study = "model: {file: chain.yaml, device: v100-sxm2-16gb}\nplatform: mixed-v100-p100\n"
                            "training: {global_batch: 4, micro_batches: [2, 4]}\n"
                            "compare: {strategies: [uniform, single], schedules: [gpipe, 1f1b]}\n"
                            "sweep:\n  platform.network.bandwidth: [1 Gb/s, 10 Gb/s]\n";
  for (const ConstraintRow& row : constraints()) {
    INFO(row.name);
    Results results;
    SweepOutcome outcome;
    const std::string goal = study + "  objective: {name: iteration, samples: 1000}\n";
    run(goal, results.folder / "a.sqlite", &outcome);
    SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::read);
    SweepGoal asked = load_sweep(yaml::parse(goal, "study.yaml"), {}).goal;
    const ObjectiveRow limited{row.name, "", row.expression, nullptr, false, true};
    asked.objective = &limited;
    const std::vector<RankedPoint> ranked = store.best(outcome.sweep, asked, "", 100);
    REQUIRE(ranked.size() == 16);
    const double most = ranked.at(7).score * (1 + 1e-9); // rounded to and from "USD/h"
    const std::map<std::string_view, std::string> units = {
        {"memory", " B"},        {"power", " W"},    {"iteration", " s"}, {"devices", ""},
        {"training-time", " s"}, {"budget", " USD"}, {"price", " USD/h"}, {"staleness", ""}};
    std::size_t expected = 0;
    for (const RankedPoint& point : ranked) {
      expected += point.score > most ? 1 : 0;
    }
    run(goal + "  constraints: {" + std::string(row.name) + ": " +
            to_digits(row.name == "price" ? most * 3600 : most, 15) + units.at(row.name) + "}\n",
        results.folder / "a.sqlite", &outcome);
    const SweepResults stored = read_sweep_results(store);
    CHECK(stored.constraints.find(std::string(row.name) + " at most ") == 0);
    CHECK(std::count(stored.outside.begin(), stored.outside.end(), 1) == static_cast<std::ptrdiff_t>(expected));
    for (const SweepAnswer::Point& one : stored.answers.at(0).best) {
      CHECK(stored.outside.at(one.point) == 0);
    }
  }
}

// Two stages, four micro-batches: pipedream-2bw takes less than 1f1b, pipemare too, of which gradients come w/M = 1/4
// steps late.
const std::string kMixed = chain_study("training: {global_batch: 4, micro_batches: 4}\nengine: analytic\n"
                                       "compare: {strategies: uniform, schedules: [1f1b, pipedream-2bw, pipemare]}\n"
                                       "sweep:\n  platform.bandwidth: [4 MB/s, 1 GB/s]\n",
                                       "{devices: 2, bandwidth: 4 MB/s}");

// The schedules of the best points by a sweep's goal, in order of rank, and how many points were set aside.
std::pair<Texts, std::uint64_t> ranked(const std::string& study, const std::vector<Setting>& settings = {}) {
  Results results;
  SweepOutcome outcome;
  run(study, results.folder / "a.sqlite", &outcome);
  SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::read);
  const SweepGoal goal = load_sweep(yaml::parse(study, "study.yaml"), settings).goal;
  Texts schedules;
  for (const RankedPoint& point : store.best(outcome.sweep, goal, "", 100)) {
    schedules.push_back(point.row.schedule);
  }
  return {schedules, store.set_aside(outcome.sweep, goal)};
}

TEST_CASE("a sweep's best points are of exact training, unless the study asks otherwise", "[study][sweep]") {
  using Set = std::set<std::string>;
  const auto set_of = [](const Texts& texts) { return Set(texts.begin(), texts.end()); };
  const auto [exact, aside] = ranked(kMixed);
  CHECK(exact == Texts{"1f1b", "1f1b"});
  CHECK(aside == 4);
  const auto [all, none] = ranked(kMixed, {{"compare.rank", "throughput"}});
  CHECK(all.size() == 6);
  CHECK(all.front() != "1f1b"); // so that setting others aside says something
  CHECK(none == 0);
  CHECK(ranked(kMixed, {{"compare.rank", "throughput"}, {"compare.rank", "exact"}}).first == exact);
  // A limit of the study's own takes the place of exactness: pipemare keeps to it, pipedream-2bw with its whole step
  // does not.
  const auto [some, left] = ranked(kMixed + "  constraints: {staleness: 0.25}\n");
  CHECK(set_of(some) == Set{"1f1b", "pipemare"});
  CHECK(left == 0);
  CHECK(set_of(ranked(kMixed + "  constraints: {staleness: 0.24}\n").first) == Set{"1f1b"});
  CHECK(ranked(kMixed + "  constraints: {staleness: 1}\n").first.size() == 6);
  // A first pass keeps those for the second that count.
  CHECK(ranked(kMixed + "  screen: {by: estimate, keep: 2}\n").first == exact);
}

TEST_CASE("where all points are asynchronous, they are ranked", "[study][sweep]") {
  std::string study = kMixed;
  study.replace(study.find("[1f1b, "), 7, "[");
  const auto [schedules, aside] = ranked(study);
  CHECK(schedules.size() == 4);
  CHECK(aside == 0);
}

// On one device nothing is late, and yet pipedream steps after each micro-batch.
TEST_CASE("an asynchronous schedule of one stage is not of exact training either", "[study][sweep]") {
  const auto [schedules, aside] =
      ranked(chain_study("training: {global_batch: 4, micro_batches: 4}\nengine: analytic\ncompare: {strategies: "
                         "single, schedules: [accumulate, pipedream]}\nsweep:\n  seed: [1]\n"));
  CHECK(schedules == Texts{"accumulate"});
  CHECK(aside == 1);
  CHECK(is_exact("accumulate", 0));
  CHECK(is_exact("list", std::nan("")));
  CHECK_FALSE(is_exact("list", 0.5));
  CHECK_FALSE(is_exact("pipedream", 0));
}

TEST_CASE("the report of a sweep draws exact training alone, and says how much it leaves out", "[study][sweep]") {
  Results results;
  SweepOutcome outcome;
  const auto stored = [&](const std::string& study) {
    run(study, results.folder / "a.sqlite", &outcome);
    SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::read);
    return read_sweep_results(store);
  };
  const SweepResults exact = stored(kMixed);
  CHECK(exact.constraints == "exact training");
  REQUIRE(exact.outside.size() == 6);
  for (std::size_t point = 0; point < exact.points(); ++point) {
    const std::size_t axis = exact.axes.size() - kRunAxes.size() + 1;
    const std::string& schedule = exact.axes[axis].values[exact.value[point * exact.axes.size() + axis]];
    CHECK((exact.outside[point] == 0) == (schedule == "1f1b"));
  }
  const DocumentPage page = sweep_page(exact);
  CHECK_THAT(page.answer.sure,
             Catch::StartsWith("2 feasible points keep to the constraints (exact training); charts and findings are of "
                               "these, 4 others count only where charts show all."));
  // How points are ranked makes no other sweep of it.
  std::string by_time = kMixed;
  by_time.replace(by_time.find("pipemare]"), 9, "pipemare], rank: throughput");
  const SweepResults all = stored(by_time);
  CHECK(outcome.computed == 0);
  CHECK(all.answers.size() == 1);
  CHECK(all.constraints.empty());
  CHECK(all.outside.empty());
}

TEST_CASE("how points are ranked is no axis", "[study][sweep]") {
  CHECK_THAT(error_of([] { read("  compare.rank: [exact, throughput]\n"); }),
             Catch::StartsWith("study.yaml:4:3: 'compare.rank' says how points are ranked"));
  CHECK_THAT(error_of([] {
               load_sweep(yaml::parse(kMixed, "study.yaml"), {{"compare.rank", "fast"}});
             }),
             Catch::Contains("'fast'") && Catch::Contains("exact, throughput"));
}

// A zip has two values, of which one repeats: latency alone would explain nothing, and bandwidth all.
TEST_CASE("axes that advance together are one axis of the results", "[study][sweep]") {
  const std::string study = chain_study("training: {global_batch: 4, micro_batches: 4}\n"
                                        "compare: {strategies: uniform, schedules: gpipe}\nengine: analytic\nsweep:\n",
                                        "{devices: 2, bandwidth: 4 MB/s}");
  const std::string zip =
      "  zip: {platform.bandwidth: [1 MB/s, 1 GB/s, 1 GB/s], platform.latency: [1 us, 1 us, 2 us]}\n";
  const std::string seed = "  seed: [1, 2]\n";
  using Keys = std::vector<std::string>;
  Results results;
  run(study + zip + seed, results.folder / "a.sqlite");
  {
    SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::read);
    CHECK(store.axes() == std::vector<Keys>{{"platform.bandwidth", "platform.latency"}, {"seed"}});
    CHECK(store.axis_keys() == Keys{"platform.bandwidth", "platform.latency", "seed"});
    const SweepResults stored = read_sweep_results(store);
    CHECK(stored.axes.at(0).key == "platform.bandwidth + platform.latency");
    CHECK(stored.axes.at(0).values == Keys{"1 MB/s + 1 us", "1 GB/s + 1 us", "1 GB/s + 2 us"});
    CHECK(stored.axes.at(1).key == "seed");
    std::vector<std::string> by;
    const DocumentPage page = sweep_page(stored);
    for (const std::string& sentence : page.sections.at(0).sentences) {
      if (sentence.starts_with("By ")) {
        by.push_back(sentence);
      }
    }
    REQUIRE(by.size() == 1);
    CHECK_THAT(by[0], Catch::StartsWith("By bandwidth + latency the best samples per second differ by a factor of "));
    CHECK_THAT(by[0], Catch::EndsWith(": 1 GB/s + 1 us best, 1 MB/s + 1 us worst."));
  }
  // A second sweep lets them advance apart, so that they are axes of their own.
  run(study + "  platform.latency: [1 us, 2 us]\n", results.folder / "a.sqlite");
  SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::read);
  std::vector<Keys> axes = store.axes();
  std::sort(axes.begin(), axes.end());
  CHECK(axes == std::vector<Keys>{{"platform.bandwidth"}, {"platform.latency"}, {"seed"}});
}

TEST_CASE("constraints of several sweeps are heeded where all are the same", "[study][sweep]") {
  for (const auto& [one, other, heeded] :
       {std::tuple{"devices: 1", "devices: 1", true}, std::tuple{"devices: 1", "devices: 2", false},
        std::tuple{"devices: 1", "devices: 1, memory: 1 GB", false}}) {
    INFO(other);
    Results results;
    const std::string constraints = "  constraints: {";
    run(kSweep + constraints + one + "}\n", results.folder / "a.sqlite");
    run(kSweep + "  engine: [analytic]\n" + constraints + other + "}\n", results.folder / "a.sqlite");
    SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::read);
    const SweepResults stored = read_sweep_results(store);
    REQUIRE(stored.answers.size() == 2);
    CHECK(stored.constraints_differ == !heeded);
    CHECK(stored.outside.size() == (heeded ? stored.points() : 0));
  }
}

// By the definitions of docs/formats/sweep.md.
double score(std::string_view objective, const PointRow& row, double samples) {
  const double rate = figure(row, "samples_per_second");
  const double joules = figure(row, "joules_per_sample"), dollars = figure(row, "usd_per_million_samples") / 1e6;
  const std::map<std::string_view, double> scores = {
      {"iteration", figure(row, "iteration_seconds")},
      {"throughput", rate},
      {"samples-per-dollar", 1 / dollars},
      {"samples-per-joule", 1 / joules},
      {"training-time", samples / rate},
      {"training-cost", samples * dollars},
      {"training-energy", samples * joules},
  };
  return scores.at(objective);
}

TEST_CASE("every objective ranks by its definition; what has no figure has no rank", "[study][sweep]") {
  for (const bool priced : {true, false}) {
    const std::string study = std::string("training: {global_batch: 4, micro_batches: [2, 4]}\n"
                                          "compare: {strategies: uniform, schedules: [gpipe, 1f1b]}\n") +
                              (priced ? "model: {file: chain.yaml, device: v100-sxm2-16gb}\nplatform: mixed-v100-p100\n"
                                        "sweep:\n  platform.network.bandwidth: [1 Gb/s, 10 Gb/s]\n"
                                      : "model: chain.yaml\nplatform: {devices: 2, bandwidth: 1 GB/s}\n"
                                        "sweep:\n  platform.bandwidth: [1 MB/s, 1 GB/s]\n");
    for (const ObjectiveRow& objective : objectives()) {
      INFO(objective.name << " " << priced);
      Results results;
      SweepOutcome outcome;
      const std::vector<PointRow> rows =
          run(study + "  objective: {name: " + std::string(objective.name) + ", samples: 1000}\n",
              results.folder / "a.sqlite", &outcome);
      SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::read);
      const SweepGoal goal = store.asked().at(0).goal;
      const std::vector<RankedPoint> best = store.best(outcome.sweep, goal, "", 100);
      const bool known = std::isfinite(score(objective.name, rows.front(), 1000));
      CHECK(best.size() == (known ? rows.size() : 0));
      for (std::size_t i = 0; i < best.size(); ++i) {
        CHECK(best[i].score == Approx(score(objective.name, best[i].row, 1000)));
        if (i > 0) {
          CHECK((objective.largest ? best[i - 1].score >= best[i].score : best[i - 1].score <= best[i].score));
        }
      }
    }
  }
}

TEST_CASE("a value is refused only for its own fault, not for that of another axis", "[study][sweep]") {
  // 4 micro-batches do not divide 255 samples, nor 5 divide 256: with the first values of all axes nothing runs, nor
  // with the last, whatever the seed is, which no point fails for.
  Results results;
  SweepOutcome outcome;
  const std::string axes = "sweep:\n  training.global_batch: [255, 256]\n  training.micro_batches: [4, 5]\n";
  const std::string study = chain_study("training: {global_batch: 256, micro_batches: 4}\n"
                                        "compare: {strategies: uniform, schedules: 1f1b}\n");
  run(study + axes + "  seed: [1, 2]\n", results.folder / "a.sqlite", &outcome);
  CHECK(outcome.feasible == 4);
  CHECK(outcome.failed == 4);
  const std::string typo = "sweep:\n  training.micro_batches: [4, 8]\n  engine: [no-such-engine, simgrid]\n";
  CHECK(error_of([&] { run(study + typo, results.folder / "b.sqlite"); }).find("no-such-engine") != std::string::npos);
}

// 300 W idle with 200 W busy is a contradiction; the other three are none.
TEST_CASE("only the points whose numbers contradict each other fail, in any order of values", "[study][sweep]") {
  for (const std::string idle : {"[300 W, 50 W]", "[50 W, 300 W]"}) {
    INFO(idle);
    const Results results;
    SweepOutcome outcome;
    run("model: gpt2-xl\nplatform: mixed-v100-p100\ntraining: {global_batch: 8, micro_batches: 8}\n"
        "compare: {strategies: uniform, schedules: [gpipe, 1f1b]}\nengine: analytic\n"
        "sweep: {platform.network.power.idle: " +
            idle + ", platform.network.power.busy: [200 W, 400 W]}\n",
        results.folder / "a.sqlite", &outcome);
    CHECK(outcome.feasible == 3 * 2);
    CHECK(outcome.failed == 2);
  }
}

TEST_CASE("sweeps that ask for different points differ, even if their axes have the same names", "[study][sweep]") {
  const std::string study = chain_study("training: {global_batch: 4, micro_batches: 4}\n"
                                        "compare: {strategies: uniform, schedules: gpipe}\nengine: analytic\nsweep:\n",
                                        "{devices: 2, bandwidth: 4 MB/s}");
  const std::string latency = "  platform.latency: [1 us, 2 us]\n";
  const std::string grid = "  platform.bandwidth: [1 MB/s, 1 GB/s]\n" + latency;
  const std::string draws = "  sample: {method: random, points: 4}\n";
  for (const auto& [one, other, points] : {
           std::tuple{grid, grid + "  where: platform.bandwidth < '1 GB/s'\n", 2},
           {grid, "  zip: {platform.bandwidth: [1 MB/s, 1 GB/s], platform.latency: [1 us, 2 us]}\n", 2},
           {"  platform.bandwidth: {from: 1 GB/s, to: 2 GB/s}\n" + draws,
            "  platform.bandwidth: {from: 1 MB/s, to: 2 MB/s}\n" + draws, 4},
       }) {
    INFO(other);
    const Results both, alone;
    SweepOutcome outcome;
    run(study + one, both.folder / "a.sqlite");
    run(study + other, both.folder / "a.sqlite", &outcome);
    run(study + other, alone.folder / "a.sqlite");
    SweepStore shared(both.folder / "a.sqlite", SweepStore::Mode::read);
    SweepStore own(alone.folder / "a.sqlite", SweepStore::Mode::read);
    const SweepGoal goal = read_goal(yaml::parse("{}", "goal"));
    const std::vector<RankedPoint> best = shared.best(outcome.sweep, goal, "", 100);
    const std::vector<RankedPoint> expected = own.best(1, goal, "", 100);
    CHECK(outcome.feasible == static_cast<std::uint64_t>(points));
    REQUIRE(best.size() == expected.size());
    for (std::size_t i = 0; i < best.size(); ++i) {
      CHECK(best[i].row.key == expected[i].row.key);
    }
  }
}

TEST_CASE("shards of a screened sweep keep as many points in one file as in separate files", "[study][sweep]") {
  const std::string study = kSweep + "  screen: {keep: 6}\n";
  const auto replayed = [](const std::filesystem::path& file) {
    SweepStore store(file, SweepStore::Mode::read);
    return store.count(0, PointStatus::feasible, "simgrid");
  };
  const Results results;
  std::uint64_t apart = 0;
  for (int shard = 1; shard <= 3; ++shard) {
    const auto own = results.folder / (std::to_string(shard) + ".sqlite");
    run(study, own, nullptr, {.shard = {shard, 3}});
    run(study, results.folder / "all.sqlite", nullptr, {.shard = {shard, 3}});
    apart += replayed(own);
  }
  CHECK(apart == 6);
  CHECK(replayed(results.folder / "all.sqlite") == 6);
}

TEST_CASE("a point that one sweep screened and another asked for is shown", "[study][sweep]") {
  const Results results;
  run(kSweep + "  screen: {keep: 2}\n", results.folder / "a.sqlite");
  SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::write);
  const std::uint64_t screened = store.screened();
  CHECK(screened > 2);
  run(kSweep + "engine: analytic\n", results.folder / "a.sqlite");
  CHECK(store.screened() == 0);
}

// Four different points, drawn ten times.
TEST_CASE("a point that is drawn several times is computed and counted once", "[study][sweep]") {
  const Results results;
  SweepOutcome outcome;
  const std::string study = chain_study("training: {global_batch: 4, micro_batches: 4}\n"
                                        "compare: {strategies: uniform, schedules: gpipe}\nengine: analytic\nsweep:\n",
                                        "{devices: 2, bandwidth: 4 MB/s}") +
                            "  platform.bandwidth: [1 MB/s, 1 GB/s]\n  platform.latency: [1 us, 2 us]\n"
                            "  sample: {method: latin-hypercube, points: 10}\n";
  run(study, results.folder / "a.sqlite", &outcome);
  CHECK((outcome.computed == 4 && outcome.found == 6 && outcome.feasible == 4));
  run(study, results.folder / "a.sqlite", &outcome);
  CHECK((outcome.computed == 0 && outcome.found == 10 && outcome.feasible == 4));
}

TEST_CASE("a sweep that ends before its first point keeps its study", "[study][sweep]") {
  const Results results;
  std::filesystem::create_directories(results.folder);
  const std::filesystem::path study = results.folder / "study.yaml";
  std::ofstream(study) << kSweep;
  SweepOutcome outcome;
  const auto ends = [](std::uint64_t, std::uint64_t) { return false; };
  run(kSweep, results.folder / "a.sqlite", &outcome, {.study = study, .progress = ends});
  CHECK(!outcome.whole);
  const auto kept = SweepStore(results.folder / "a.sqlite", SweepStore::Mode::read).paths();
  CHECK(std::count(kept.begin(), kept.end(), study.string()) == 1);
}

TEST_CASE("a failed point gives way to a later one, in all sweeps that have it", "[study][sweep]") {
  const Results results;
  PointRow row;
  row.settings = "{}";
  row.key = Fingerprint().add("point").digest();
  row.status = PointStatus::failed;
  const auto file = [&](const char* name) { return results.folder / name; };
  SweepRecord record;
  record.settings = "{}";
  record.keys = "[]";
  const auto add = [&](SweepStore& store, const char* sweep) {
    record.digest = Fingerprint().add(sweep).digest();
    const std::int64_t id = store.add_sweep(record);
    store.has(id, row.key, 0, 0, true);
    store.add(id, row);
    return std::pair(id, store.commit());
  };
  SweepStore store(file("a.sqlite"), SweepStore::Mode::write);
  const std::int64_t first = add(store, "first").first;
  row.status = PointStatus::feasible;
  const auto [second, doubles] = add(store, "second");
  CHECK(doubles == 0);
  CHECK(store.count(first, PointStatus::feasible) == 1);
  CHECK(store.count(second, PointStatus::feasible) == 1);
  CHECK(add(store, "second").second == 1); // what is feasible stays
  row.status = PointStatus::failed;
  SweepStore merged(file("b.sqlite"), SweepStore::Mode::write);
  add(merged, "first");
  merged.merge(file("a.sqlite"));
  CHECK(merged.count(0, PointStatus::feasible) == 1);
  CHECK(merged.count(0, PointStatus::failed) == 0);
}

// More points than one statement takes: of 40, ten are there, five have failed, 25 are new, and one comes twice.
TEST_CASE("points are counted as new, as there already, or as taking a failed one's place", "[study][sweep]") {
  const Results results;
  SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::write);
  const auto add = [&](const char* name, std::uint64_t end, PointStatus (*status_of)(std::uint64_t)) {
    SweepRecord record;
    record.digest = Fingerprint().add(name).digest();
    const std::int64_t sweep = store.add_sweep(record);
    for (std::uint64_t number = 0; number < end; ++number) {
      PointRow row;
      row.key = Fingerprint().add(std::min<std::uint64_t>(number, 39)).digest();
      row.number = number;
      row.status = status_of(number);
      store.add(sweep, row);
    }
    return std::pair(sweep, store.commit());
  };
  const auto [first, none] =
      add("first", 15, [](std::uint64_t number) { return number < 10 ? PointStatus::feasible : PointStatus::failed; });
  CHECK(none == 0);
  const auto [second, doubles] = add("second", 41, [](std::uint64_t) { return PointStatus::infeasible; });
  CHECK(doubles == 10 + 1);
  using Counts = std::array<std::uint64_t, kStatuses>;
  CHECK(store.counts(0) == Counts{10, 30, 0});
  CHECK(store.counts(first) == Counts{10, 5, 0});
  CHECK(store.counts(second) == Counts{10, 30, 0});
  CHECK(add("second", 41, [](std::uint64_t) { return PointStatus::failed; }).second == 41);
  CHECK(store.counts(0) == Counts{10, 30, 0}); // what has failed since takes nobody's place
}

// Of 3000 combinations all but the last three are ruled out, or all are there already.
TEST_CASE("a worker gives back the points that it has no time for", "[study][sweep]") {
  InputFiles files;
  Folders folders = kFolders;
  folders.files = &files;
  for (const std::string where : {"  where: platform.bandwidth > '2997 MB/s'\n", ""}) {
    const SweepInputs inputs{load_sweep(yaml::parse(chain_study("training: {global_batch: 4, micro_batches: 4}\n"
                                                                "engine: analytic\n"
                                                                "compare: {strategies: uniform, schedules: gpipe}\n"
                                                                "sweep:\n  platform.bandwidth: {from: 1 MB/s, to: 3000 "
                                                                "MB/s, step: 1 MB/s}\n",
                                                                "{devices: 2, bandwidth: 4 MB/s}") +
                                                        where,
                                                    "study.yaml"),
                                        {}),
                             {},
                             folders};
    SweepPoints points(inputs, "test");
    KeyFilter stored;
    for (std::uint64_t number = 0; number < 3000 && where.empty(); ++number) {
      stored.add(points.row(*points.open(number), 0, "")->key);
    }
    const SweepShard whole;
    SweepWorker worker(points, stored, whole, "");
    SweepTask task{.end = combinations(inputs.sweep)};
    std::size_t done = 0, known = 0;
    while (task.units() > 0) {
      const TaskResult result = task_result_from(to_bytes(worker.work(task_from(to_bytes(task)))));
      REQUIRE(result.units > 0);
      CHECK(result.known.size() <= 2000); // an answer has room in a pipe
      done += result.done.size();
      known += result.known.size();
      task = task.split(result.units).second;
    }
    CHECK(done == (where.empty() ? 0 : 3));
    CHECK(known == (where.empty() ? 3000 : 0));
  }
}

// Twelve runs: a new worker runs a few, however dear they prove, and leaves the others to all.
TEST_CASE("the runs of one combination are shared out", "[study][sweep]") {
  InputFiles files;
  Folders folders = kFolders;
  folders.files = &files;
  const SweepInputs inputs{load_sweep(yaml::parse(kSweep, "study.yaml"), {}), {}, folders};
  SweepPoints points(inputs, "test");
  const KeyFilter nothing;
  const SweepShard whole;
  SweepWorker worker(points, nothing, whole, "");
  const TaskResult first = worker.work({.end = 1});
  CHECK(first.units == 1);
  CHECK(first.done.size() == 4);
  REQUIRE(first.left.size() == 8);
  std::size_t done = 0;
  for (SweepTask task{.points = first.left}; task.units() > 0;) {
    const TaskResult result = worker.work(task);
    CHECK(result.left.empty());
    CHECK(result.units == result.done.size());
    done += result.done.size();
    task = task.split(result.units).second;
  }
  CHECK(done == 8);
}

TEST_CASE("the report has what the last pass found, and what failed in any", "[study][sweep]") {
  const std::string study =
      chain_study("training: {global_batch: 256, micro_batches: 4}\n"
                  "compare: {strategies: uniform, schedules: [1f1b, gpipe]}\nengine: analytic\n") +
      "sweep:\n  training.global_batch: [255, 256]\n  training.micro_batches: [4, 5]\n";
  for (const auto& [screen, feasible, screened] : {std::tuple{"", 4, 0},
                                                   {"  screen: {by: analytic, keep: 1}\n", 4, 0},
                                                   {"  screen: {by: estimate, keep: 1}\n", 1, 4}}) {
    INFO(screen);
    Results results;
    run(study + screen, results.folder / "a.sqlite");
    SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::read);
    const SweepResults stored = read_sweep_results(store);
    CHECK(stored.points() == static_cast<std::size_t>(feasible));
    CHECK(stored.screened == static_cast<std::uint64_t>(screened));
    CHECK(stored.failed == 2); // 4 do not divide 255, nor 5 256: no runs were made of them
  }
}

TEST_CASE("a sweep that is run again with another goal answers that goal", "[study][sweep]") {
  Results results;
  const auto file = results.folder / "a.sqlite";
  run(kSweep + "  objective: throughput\n", file);
  SweepOutcome outcome;
  run(kSweep + "  objective: {name: training-time, samples: 1000}\n", file, &outcome);
  CHECK(outcome.computed == 0);
  SweepStore store(file, SweepStore::Mode::read);
  const SweepResults stored = read_sweep_results(store);
  REQUIRE(stored.answers.size() == 1);
  CHECK(stored.answers[0].words == "least time to train 1000 samples");
  REQUIRE(stored.answers[0].best.size() == 10);
  for (const SweepAnswer::Point& one : stored.answers[0].best) {
    CHECK(one.score == Approx(1000 / stored.samples_per_second[one.point]));
  }
}

TEST_CASE("results are read as often as one likes, and nothing is left beside them", "[study][sweep]") {
  const Results results;
  const std::filesystem::path file = results.folder / "a.sqlite", here = std::filesystem::current_path();
  run(kSweep, file);
  std::filesystem::current_path(results.folder);
  for (int time = 0; time < 3; ++time) {
    CHECK_NOTHROW(SweepStore(file, SweepStore::Mode::read).keys());
  }
  std::filesystem::current_path(here);
  CHECK_FALSE(std::filesystem::exists(results.folder / ":memory:"));
}

TEST_CASE("a point is replayed from what its results keep, whatever became of the files", "[study][sweep]") {
  Results results;
  const auto study = results.folder / "study";
  std::filesystem::create_directories(study);
  std::filesystem::copy(test::kRoot / "tests/study/chain.yaml", study / "mine.yaml");
  InputFiles files;
  const SweepInputs inputs{
      load_sweep(yaml::parse("model: {file: mine.yaml, device: v100-sxm2-16gb}\nplatform: mixed-v100-p100\n"
                             "training: {global_batch: 4, micro_batches: 4}\n"
                             "compare: {strategies: [optimal, uniform], schedules: 1f1b}\n"
                             "sweep: {platform.network.bandwidth: [1 MB/s, 1 GB/s], platform: [mixed-v100-p100]}\n",
                             "study.yaml"),
                 {}),
      {},
      {study, test::kRoot, &files}};
  SweepPoints points(inputs, "test");
  SweepStore store(results.folder / "a.sqlite", SweepStore::Mode::write);
  run_sweep(points, store, {});
  std::filesystem::remove_all(study);
  std::vector<PointRow> rows;
  store.for_each([&](const PointRow& row) { rows.push_back(row); });
  REQUIRE(rows.size() == 4);
  for (const PointRow& row : rows) {
    const auto folder = results.folder / to_text(row.key);
    std::filesystem::create_directories(folder);
    const ReplayedPoint again = replay_point(store.find(to_text(row.key).substr(0, 12)), folder);
    CHECK(again.prepared.run.strategy == row.strategy);
    CHECK(again.prepared.run.metrics.iteration.value == Approx(figure(row, "iteration_seconds")).epsilon(1e-9));
  }
  CHECK(error_of([&] { store.find("00000000"); }).find("no such point") != std::string::npos);
}

TEST_CASE("a file of another kind is refused as a file of results", "[study][sweep]") {
  Results results;
  const auto text = results.folder / "text";
  write_file(text, std::string(5000, 'x'));
  CHECK(error_of([&] { SweepStore(text, SweepStore::Mode::write); }).find("no file of results") != std::string::npos);
  CHECK(error_of([&] { SweepStore(results.folder / "no", SweepStore::Mode::read); }).find("no such file") !=
        std::string::npos);
}

TEST_CASE("where two processes add one point at once, both sweeps have it and it is stored once", "[study][sweep]") {
  const Results results;
  const std::filesystem::path file = results.folder / "both.sqlite";
  SweepStore one(file, SweepStore::Mode::write), other(file, SweepStore::Mode::write);
  SweepRecord record;
  record.digest = Fingerprint().add("one").digest();
  const std::int64_t ours = one.add_sweep(record);
  record.digest = Fingerprint().add("other").digest();
  const std::int64_t theirs = other.add_sweep(record);
  PointRow row;
  row.key = Fingerprint().add("point").digest();
  CHECK_FALSE(one.has(ours, row.key, 0, 0, false));
  CHECK_FALSE(other.has(theirs, row.key, 0, 0, false));
  other.add(theirs, row);
  other.commit();
  one.add(ours, row);
  one.commit();
  CHECK(one.count(ours, PointStatus::feasible) == 1);
  CHECK(one.count(theirs, PointStatus::feasible) == 1);
  CHECK(one.count(0, PointStatus::feasible) == 1);
  CHECK(one.has(ours, row.key, 0, 0, false));
}

} // namespace
} // namespace stagecraft
