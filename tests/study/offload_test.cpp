// What devices leave to their hosts, and what ZeRO++ sends: bytes, seconds and memory by hand.
// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare/prepare.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// Two nodes of two devices, each with 25 GB/s to its host and as much in both directions, no matter what the other one
// copies; two devices share a host of 64 cores of 40 GFLOP/s and 380 GB/s.
constexpr double kToHost = 25e9, kHostMemory = 380e9 / 2, kCores = 64 * 40e9 / 2;
constexpr int kDevices = 4;

std::vector<Setting> links(const std::string& uplink = "50 GB/s") {
  std::vector<Setting> settings;
  for (const std::string node : {"0", "1"}) {
    settings.push_back({"platform.nodes." + node + ".links.1.uplink", uplink});
    settings.push_back({"platform.nodes." + node + ".links.1.latency", "0 s"});
  }
  return settings;
}

std::string text_of(const std::string& training, const std::string& engine = "analytic",
                    const std::string& model = "small-transformer.yaml", const std::string& schedule = "1f1b") {
  return "model: " + model + "\nplatform: two-nodes.yaml\nengine: " + engine +
         "\ntraining: {global_batch: 16, micro_batches: 4, precision: bf16, optimizer: adam, all_reduce: ring, "
         "gradient_bucket: none, " +
         training + "}\ncompare: {strategies: [mesh], schedules: [" + schedule + "]}\n";
}

Run only(const std::string& text, const std::vector<Setting>& settings = links()) {
  const ComparisonResult result = compare_text(text, settings);
  REQUIRE(result.comparison.runs.size() == 1);
  return result.comparison.runs.front();
}

double parameters() {
  static const double kParameters = totals_of(*study(text_of("parallel: {data: 4}")).model).parameters;
  return kParameters;
}

Run shared(const std::string& parallel, const std::string& offload, const std::string& engine = "analytic",
           const std::vector<Setting>& settings = links()) {
  const std::string more = offload.empty() ? "" : ", offload: {" + offload + "}";
  const Run run = only(text_of("parallel: {data: 4" + parallel + "}" + more, engine), settings);
  INFO(run.why_not);
  REQUIRE(run.feasible);
  return run;
}

double seconds(const std::string& parallel, const std::string& offload, const std::string& engine = "analytic",
               const std::vector<Setting>& settings = links()) {
  return shared(parallel, offload, engine, settings).metrics.iteration.value;
}

Approx about(double expected) { return Approx(expected).epsilon(1e-6); }

// Of a parameter in bf16 with Adam a device's step reads 2 + 2 + 12 B and writes 2 + 12. The host gets 2 B of gradient,
// reads 2 + 12, writes 12 + 2, with 15 operations, and gives 2 B back.
TEST_CASE("the host's step takes what crosses the link and its memory, or its cores, instead of the device's",
          "[study][offload]") {
  const double own = parameters() / kDevices;
  const Platform platform = study(text_of("parallel: {data: 4}")).platform;
  const DeviceType& type = platform.types.front();
  const double on_device = type.launch_overhead.value + own * 30 / type.memory_bandwidth.value;
  const double copied = 2 * own * 2 / kToHost;
  const double step = own * 28 / kHostMemory;
  const double base = seconds(", zero: 1", "");
  CHECK(seconds(", zero: 1", "optimizer: 1") - base == about(copied + step - on_device));
  // Half of it takes half as long, and the device steps its half meanwhile.
  CHECK(seconds(", zero: 1", "optimizer: 0.5") - base == about((copied + step) / 2 - on_device));
  // One slow core each: 15 operations a parameter.
  std::vector<Setting> slow = links();
  slow.push_back({"platform.nodes.0.host.cores", "2"});
  REQUIRE(own * 15 / kCores < step);
  REQUIRE(own * 15 / 40e9 > step);
  CHECK(seconds(", zero: 1", "optimizer: 1", "analytic", slow) - base == about(copied + own * 15 / 40e9 - on_device));
}

// Two devices share 64 cores and 380 GB/s. A core moves 18 GB/s: with one, two or ten threads each device has 18, 36 or
// 180 of its 190 GB/s, with eleven and more all of them; 32 are its cores, whatever more it has threads.
TEST_CASE("a host steps with the threads that each device's process has", "[study][offload]") {
  const double own = parameters() / kDevices;
  for (const std::string engine : {"analytic", "simgrid"}) {
    const auto of = [&](const std::string& threads, const std::string& cores = "64") {
      std::vector<Setting> settings = links();
      settings.insert(settings.end(), {{"training.host_threads", threads}, {"platform.nodes.0.host.cores", cores}});
      return seconds(", zero: 1", "optimizer: 1", engine, settings);
    };
    for (const int threads : {1, 2, 10}) {
      CAPTURE(engine, threads);
      CHECK(of(std::to_string(threads)) - of("0") == about(own * 28 / (threads * 18e9) - own * 28 / kHostMemory));
    }
    CHECK(of("11") == about(of("0")));
    CHECK(of("64", "4") == about(of("2", "4"))); // no more than its cores
    CHECK(of("3", "4") > of("0", "4"));
  }
}

// With an uplink of 25 GB/s for two devices each copies at half the rate; the closed form has each alone.
TEST_CASE("copies share the links between devices and hosts", "[study][offload]") {
  const double own = parameters() / kDevices;
  const auto more = [&](const std::string& engine, const std::string& uplink) {
    return seconds(", zero: 1", "optimizer: 1", engine, links(uplink)) -
           seconds(", zero: 1", "", engine, links(uplink));
  };
  const double alone = more("analytic", "25 GB/s");
  CHECK(more("simgrid", "50 GB/s") == about(alone));
  CHECK(more("simgrid", "25 GB/s") == about(alone + 2 * own * 2 / kToHost));
}

// Clipped gradients are read and written once more, by the host; the device reads them all for their norm before, and
// scales none.
TEST_CASE("the host scales the gradients that it steps with", "[study][offload]") {
  const double own = parameters() / kDevices;
  const std::string clips = ", clip_gradients: true";
  const auto of = [&](const std::string& offload) {
    return only(text_of("parallel: {data: 4, zero: 1}" + clips + offload)).metrics.iteration.value -
           only(text_of("parallel: {data: 4, zero: 1}" + offload)).metrics.iteration.value;
  };
  const DeviceType type = study(text_of("parallel: {data: 4}")).platform.types.front();
  const double scaled = type.launch_overhead.value + 2 * own * 2 / type.memory_bandwidth.value;
  CHECK(of(", offload: {optimizer: 1}") - of("") == about(own * 4 / kHostMemory - scaled));
}

// A device's fourth of 12 B of states, 2 of gradients and 2 of weights is with the host instead.
TEST_CASE("what hosts hold devices do not", "[study][offload]") {
  const double own = parameters() / kDevices;
  const auto saved = [](const std::string& parallel, const std::string& offload) {
    return (shared(parallel, "").metrics.peak_memory[0] - shared(parallel, offload).metrics.peak_memory[0]).value;
  };
  CHECK(saved(", zero: 1", "optimizer: 1") == near(12 * own));
  CHECK(saved(", zero: 1", "optimizer: 0.25") == near(3 * own));
  CHECK(saved(", zero: 2", "optimizer: 1") == near(12 * own));
  CHECK(saved(", zero: 2", "optimizer: 1, gradients: true") == near(14 * own));
  CHECK(saved(", zero: 3", "optimizer: 1, gradients: true, parameters: true") == near(16 * own));
  CHECK(saved("", "optimizer: 1") == near(12 * kDevices * own)); // each replica has all states
}

// Two devices of a node: states and gradients of half of the parameters, and their weights where these rest there too.
TEST_CASE("what devices leave to a host must fit there, to the byte", "[study][offload]") {
  const auto run_with = [](double bytes, const std::string& offload) {
    std::vector<Setting> settings = links();
    settings.push_back({"platform.nodes.0.host.memory", std::to_string(std::llround(bytes)) + " B"});
    return only(text_of("parallel: {data: 4, zero: 3}, offload: {" + offload + "}"), settings);
  };
  const std::string all = "optimizer: 1, gradients: true, parameters: true";
  for (const auto& [offload, bytes] : {std::pair{std::string("optimizer: 1"), 14.0}, {all, 16.0}}) {
    INFO(offload);
    const double need = parameters() / 2 * bytes;
    CHECK(run_with(need, offload).feasible);
    const Run run = run_with(need - 1, offload);
    CHECK_FALSE(run.feasible);
    CHECK_THAT(run.why_not, Catch::StartsWith("the host of 'a' needs ") && Catch::Contains("more than its"));
  }
}

// Two blocks keep (100 + 50) and (70 + 40) numbers of 2 B of each micro-batch. GPipe holds four at a time; what remains
// of each kind is what two units in a row have, on the way there and on the way back.
TEST_CASE("activations that are left to hosts make room, but for those on their way", "[study][offload]") {
  const auto run_of = [](const std::string& offload, const std::vector<Setting>& more = {}) {
    std::vector<Setting> settings = links();
    settings.insert(settings.end(), more.begin(), more.end());
    return only(text_of("parallel: {data: 4}" + offload, "analytic", "blocks.yaml", "gpipe"), settings);
  };
  const Run kept = run_of("");
  const auto saved = [&](const std::string& activations) {
    const Run run = run_of(", offload: {activations: " + activations + "}");
    REQUIRE(run.feasible);
    return (kept.metrics.peak_memory[0] - run.metrics.peak_memory[0]).value;
  };
  const double first = 2 * 150, both = 2 * (150 + 110);
  CHECK(saved("1") == near(4 * first - 2 * first));
  CHECK(saved("all") == near(4 * both - 2 * both));
  CHECK(saved("none") == 0);
  // The host has four micro-batches' of two devices.
  const auto with_host = [&](double bytes) {
    return run_of(", offload: {activations: all}",
                  {{"platform.nodes.1.host.memory", std::to_string(std::llround(bytes)) + " B"}});
  };
  CHECK(with_host(2 * 4 * both).feasible);
  CHECK_THAT(with_host(2 * 4 * both - 1).why_not, Catch::StartsWith("the host of 'b' needs "));
}

// Bytes of a kind in an iteration, of all devices.
struct Sent {
  double to_host = 0, from_host = 0;
  double between = 0; ///< of collectives, from the first node to the other one
};

Sent sent_by(const std::string& training, const std::string& model = "small-transformer.yaml") {
  std::vector<Setting> settings = links();
  settings.push_back({"unfold", "true"});
  const Study read = study(text_of(training, "analytic", model), settings);
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  std::vector<Prepared> made = prepare(memo, scenarios_of(read));
  REQUIRE(made.size() == 1);
  INFO(made.front().run.why_not);
  REQUIRE(made.front().graph);
  const TaskGraph& graph = *made.front().graph;
  const std::vector<std::int32_t> tasks = graph.tasks_per_work();
  Sent sent;
  for (std::size_t index = 0; index < graph.works.size(); ++index) {
    const Work& work = graph.works[index];
    const double bytes = work.bytes * tasks[index];
    sent.to_host += work.kind == TaskKind::to_host ? bytes : 0;
    sent.from_host += work.kind == TaskKind::from_host ? bytes : 0;
    if (!work.transfers() || !is_collective(work.kind)) {
      continue;
    }
    for (const LinkId link : graph.legs[static_cast<std::size_t>(work.leg)].links) {
      sent.between += read.platform.links[static_cast<std::size_t>(link)].name == "a/host>fabric" ? bytes : 0;
    }
  }
  return sent;
}

// Weights and gradients of the units, 2 B a parameter; the last unit is gathered once for forward and backward.
TEST_CASE("gradients leave, and weights come, as often as they are reduced and gathered", "[study][offload]") {
  constexpr int kMicroBatches = 4;
  const double all = 2 * parameters();
  const std::string zero = "parallel: {data: 4, zero: ";
  CHECK(sent_by(zero + "1}, offload: {optimizer: 1}").to_host == near(all));
  CHECK(sent_by(zero + "1}, offload: {optimizer: 0.5}").to_host == near(all / 2));
  CHECK(sent_by(zero + "1}, offload: {optimizer: 1}").from_host == near(all));
  CHECK(sent_by(zero + "2}, offload: {optimizer: 1, gradients: true}").to_host == near(kMicroBatches * all));
  CHECK(sent_by(zero + "2, reduce: last-micro-batch}, offload: {optimizer: 1, gradients: true}").to_host == near(all));
  const Sent rests = sent_by(zero + "3}, offload: {optimizer: 1, gradients: true, parameters: true}");
  const double head = 2 * (1024 * 4096 + 1024); // after the blocks: a norm and the head
  CHECK(rests.from_host == near(kMicroBatches * (2 * all - head)));
  CHECK(rests.to_host == near(kMicroBatches * all));
  CHECK(sent_by("parallel: {data: 4}, offload: {optimizer: 1}").to_host == near(kDevices * all));
}

// A ring over four devices in two nodes carries 3/4 of what is gathered or reduced over each of its links, one of which
// leads from one node to the other. A unit's weights are gathered for the forward and, but for the last unit's, again;
// gradients are reduced once.
TEST_CASE("ZeRO++ sends a fraction between nodes", "[study][offload][zero++]") {
  const double all = 2 * parameters(), head = 2 * (1024 * 4096 + 1024);
  constexpr int kMicroBatches = 4;
  const double forward = 0.75 * all * kMicroBatches, backward = 0.75 * (all - head) * kMicroBatches;
  const auto between = [](const std::string& more) {
    return sent_by("parallel: {data: 4, zero: 3" + more + "}").between;
  };
  const double reduced = forward;
  CHECK(between("") == about(forward + backward + reduced));
  // 8 bits with a scale of 4 B for 8000 numbers, of 16.
  const double eight = (1 + 4.0 / 8000) / 2, four = (0.5 + 4.0 / 8000) / 2;
  CHECK(between(", quantized_weights: int8") == about(eight * (forward + backward) + reduced));
  // Backward gathers inside nodes.
  CHECK(between(", hpz_partition_size: 2") == about(forward + reduced));
  // Each device of a node sends half of what it has to its counterpart, which is half of all after the hop inside.
  const double two_hops = 2 * four * all / 4 * kMicroBatches;
  CHECK(between(", quantized_gradients: true") == about(forward + backward + two_hops));
  CHECK(between(", quantized_weights: int8, hpz_partition_size: 2, quantized_gradients: true") ==
        about(eight * forward + two_hops));
}

// Megatron-LM's fp8_param_gather and FSDP's: the products of the four layers, 1024 x 1536, 1024 x 1024, 1024 x 8192 and
// 4096 x 1024, a byte a weight in place of two; embedding, head and norms as they are.
TEST_CASE("weights that are multiplied in 8 bits are gathered so, after a step too", "[study][offload][fp8]") {
  const double all = 2 * parameters(), head = 2 * (1024 * 4096 + 1024);
  const double products = 4 * (1024.0 * (1536 + 1024 + 8192) + 4096 * 1024);
  const auto between = [](const std::string& fp8, const std::string& more) {
    return sent_by("fp8: " + fp8 + ", parallel: {data: 4, zero: " + more + "}").between;
  };
  const double reduced = 0.75 * all;
  CHECK(between("delayed", "1") == about(reduced + 0.75 * all));
  for (const std::string fp8 : {"delayed", "tensorwise"}) {
    for (const std::string gather : {"", ", gather: before-use"}) {
      CHECK(between(fp8, "1" + gather + ", quantized_weights: fp8") == about(reduced + 0.75 * (all - products)));
    }
  }
  // A scale of 4 B for 128 x 128 weights.
  CHECK(between("blockwise", "1, quantized_weights: fp8") ==
        about(reduced + 0.75 * (all - products * (1 - 4.0 / (128 * 128)))));
  // Each micro-batch gathers for its forward and, but for the head, for its backward.
  CHECK(between("delayed", "3, quantized_weights: fp8") ==
        about(4 * (reduced + 0.75 * (all - products) + 0.75 * (all - head - products))));
}

// With two copies of a byte a weight takes as much alone as it did in 16 bits; without, both are held.
TEST_CASE("weights in 8 bits alone take the place of those in 16", "[study][offload][fp8]") {
  const double products = 4 * (1024.0 * (1536 + 1024 + 8192) + 4096 * 1024);
  const auto peak = [](const std::string& more) {
    return only(text_of("fp8: delayed, parallel: {data: 4, zero: 1, quantized_weights: fp8}" + more))
        .metrics.peak_memory[0]
        .value;
  };
  CHECK(peak("") - peak(", fp8_weights: true") == near(2 * products));
}

// Two nodes of two replicas, which share inside their node: between nodes parts of gradients are added up, by rings of
// two that carry what they add up. Each device has half of all that is no expert's and one of the two halves of the
// experts, which is whole: there is but one of it in a node.
TEST_CASE("groups of replicas share states and experts, and add up gradients over groups",
          "[study][offload][experts]") {
  const std::string model = "small-mixture.yaml";
  const double all = 2 * totals_of(*study(text_of("parallel: {data: 4}", "analytic", model)).model).parameters;
  constexpr int kMicroBatches = 4;
  const auto between = [&](const std::string& more) {
    return sent_by("parallel: {data: 4, expert: 2, shard: 2, zero: " + more + "}", model).between;
  };
  CHECK(between("1") == about(all));
  CHECK(between("1, gather: before-use") == about(all));
  CHECK(between("2") == about(kMicroBatches * all));
  CHECK(between("3") == about(kMicroBatches * all));
  CHECK(sent_by("parallel: {data: 4, shard: 2, zero: 1}").between == about(2 * parameters()));
  // Of four replicas with experts of their own no two have the same ones, and each half of them shares all else.
  const Run none = only(text_of("parallel: {data: 4, expert: 4, shard: 2, zero: 3}", "analytic", model));
  CHECK_THAT(none.why_not, Catch::Contains("experts are those of 4 replicas, and groups of training.parallel.shard 2 "
                                           "share; allowed: a multiple of 4"));
}

// A second copy takes half of the weights on each of two devices.
TEST_CASE("a second copy of weights takes its part of memory", "[study][offload][zero++]") {
  const double before = shared(", zero: 3", "").metrics.peak_memory[0].value;
  const double after = shared(", zero: 3, hpz_partition_size: 2", "").metrics.peak_memory[0].value;
  CHECK(after - before == near(2 * parameters() / 2));
}

// The closed form that planners add up follows the rules of the replay.
TEST_CASE("the estimate of what is quantized or left to hosts is its replay", "[study][offload][zero++]") {
  for (const std::string parallel :
       {", zero: 1", ", zero: 1, shard: 2", ", zero: 2, shard: 2", ", zero: 3, shard: 2", ", zero: 3",
        ", zero: 3, quantized_weights: int8", ", zero: 3, copied_out: true", ", zero: 3, hpz_partition_size: 2",
        ", zero: 3, quantized_gradients: true",
        ", zero: 3, quantized_weights: int8, hpz_partition_size: 2, quantized_gradients: true"}) {
    const bool weights = parallel.find("3") != std::string::npos;
    for (const std::string& offload :
         {std::string(), std::string("optimizer: 1"), std::string("activations: 1"), std::string("activations: 2"),
          std::string("optimizer: 1, gradients: true, parameters: true")}) {
      if (!weights && offload.find("parameters") != std::string::npos) {
        continue;
      }
      CAPTURE(parallel, offload);
      const Run run = shared(parallel, offload);
      CHECK(run.estimate.value == Approx(run.metrics.iteration.value).epsilon(1e-6));
      CHECK(run.lower_bound.value <= run.metrics.iteration.value * (1 + 1e-9));
    }
  }
}

// Experts that lie within a tensor group are the same on all replicas, and theirs is still a collective of its own.
TEST_CASE("the estimate of experts' collectives is their replay", "[study][offload][experts]") {
  for (const std::string layout :
       {"data: 4, expert: 2", "data: 4, shard: 2", "data: 4, shard: 2, expert: 2",
        "tensor: 2, sequence: true, data: 2, expert: 2", "tensor: 2, data: 2, expert: 2, expert_tensor: 2"}) {
    for (const std::string zero : {"1", "1, gather: before-use", "2", "3", "3, reshard: after-step"}) {
      CAPTURE(layout, zero);
      const Run run = only(
          text_of("expert_skew: 0, parallel: {" + layout + ", zero: " + zero + "}", "analytic", "small-mixture.yaml"));
      INFO(run.why_not);
      REQUIRE(run.feasible);
      CHECK(run.estimate.value == Approx(run.metrics.iteration.value).epsilon(1e-6));
    }
  }
}

// A device does one of a kind at a time: what all replicas share, then what those with the same experts do. Each group
// of these has network cards of its own, so that nothing shares a link.
TEST_CASE("no group of experts gathers or reduces beside what all replicas share", "[study][offload][experts]") {
  const auto seconds = [](const std::string& zero, const std::string& engine) {
    const Run run = only("model: small-mixture.yaml\nplatform: 2 x dgx-h100\nengine: " + engine +
                             "\ntraining: {global_batch: 16, micro_batches: 1, precision: bf16, optimizer: adam, "
                             "gradient_bucket: none, expert_skew: 0, parallel: {data: 16, expert: 4, zero: " +
                             zero + "}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n",
                         {});
    INFO(run.why_not);
    REQUIRE(run.feasible);
    return run.metrics.iteration.value;
  };
  for (const std::string zero : {"1", "1, gather: before-use", "2"}) {
    INFO(zero);
    CHECK(seconds(zero, "simgrid") == Approx(seconds(zero, "analytic")).epsilon(1e-6));
  }
}

TEST_CASE("what cannot be left to hosts or made smaller says why", "[study][offload]") {
  const auto why = [](const std::string& training, const std::string& schedule) {
    const Run run = only(text_of(training, "analytic", "small-transformer.yaml", schedule));
    CHECK_FALSE(run.feasible);
    return run.why_not;
  };
  const Run star =
      compare_text("model: chain.yaml\nplatform: {devices: 2}\ntraining: {global_batch: 4, parallel: "
                   "{data: 2}, offload: {optimizer: 1}}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n")
          .comparison.runs.front();
  CHECK_THAT(star.why_not, Catch::Contains("can leave nothing to its host: no links lead there and back"));
  CHECK_THAT(why("parallel: {pipeline: 2, data: 2}, offload: {optimizer: 1}", "pipedream-2bw"),
             Catch::Contains("this schedule has no pause there"));
  CHECK_THAT(why("parallel: {data: 4, zero: 3, hpz_partition_size: 3}", "1f1b"),
             Catch::Contains("'hpz_partition_size' 3 does not divide the 4 replicas that share weights; nearest that "
                             "do: 2 or 4"));
}

} // namespace
} // namespace stagecraft::test
