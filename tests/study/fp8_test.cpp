// Products in 8 bits in a study: what they take, what they hold, where they can run, what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/study/study_costs.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

std::string text(const std::string& fp8, const std::string& platform = "dgx-h100",
                 const std::string& compare = "{strategies: [uniform], schedules: [1f1b]}",
                 const std::string& cost_model = "auto") {
  return "model: small-transformer.yaml\nplatform: " + platform + "\nengine: analytic\ncost_model: " + cost_model +
         "\ntraining: {global_batch: 64, micro_batches: 8, optimizer: adam, precision: bf16" +
         (fp8.empty() ? "" : ", fp8: " + fp8) + "}\ncompare: " + compare + "\n";
}

ReplicaCost cost_of(const std::string& fp8, const std::string& cost_model) {
  const Study read = study(text(fp8, "dgx-h100", "{strategies: [single], schedules: [gpipe]}", cost_model));
  StudyCosts costs(read);
  Plan plan;
  plan.stages = {{.operators = std::vector<OperatorId>(read.model->size()), .devices = {0}}};
  std::iota(plan.stages[0].operators.begin(), plan.stages[0].operators.end(), 0);
  return cost_plan(costs.problem(8), plan).stages[0].replicas[0];
}

// Four layers of products 1024 x 1536, 1024 x 1024, 1024 x 8192 and 4096 x 1024 for 8 samples of 512 tokens.
TEST_CASE("a roofline takes the rate of 8 bits, and what is cast", "[study][fp8]") {
  const Study read = study(text(""));
  const DeviceType& type = read.platform.type_of(0);
  const double tokens = 8 * 512;
  const std::vector<std::pair<double, double>> products = {{1024, 1536}, {1024, 1024}, {1024, 8192}, {4096, 1024}};
  double faster = 0, inputs = 0, weights = 0;
  for (const auto& [in, out] : products) {
    const auto seconds = [&, in = in, out = out](Precision format) { // what is read and written counts in 16 bits
      const Bytes traffic{2 * (tokens * (in + out) + in * out)};
      return std::max(Flops{2 * tokens * in * out} / *type.rate(KernelKind::matmul, format),
                      traffic / type.memory_bandwidth);
    };
    faster += 4 * (seconds(Precision::bf16) - seconds(Precision::fp8)).value;
    inputs += 4 * tokens * in;
    weights += 4 * in * out;
  }
  const double casts = 16 * type.launch_overhead.value + 4 * inputs / type.memory_bandwidth.value;
  const ReplicaCost none = cost_of("none", "roofline"), delayed = cost_of("delayed", "roofline");
  CHECK((none.forward - delayed.forward).value == near(faster - casts));
  // The optimiser step, after which weights are cast, once an iteration.
  CHECK((delayed.optimizer - none.optimizer).value ==
        near(16 * type.launch_overhead.value + 4 * weights / type.memory_bandwidth.value));
  // Two copies of each weight, a byte each.
  CHECK((delayed.memory.frozen - none.memory.frozen).value == near(2 * weights));
  CHECK(delayed.memory.per_micro_batch < none.memory.per_micro_batch);
  CHECK(cost_of("tensorwise", "roofline").forward > delayed.forward);
}

// Of four layers' products, 1024 x 1536, 1024 x 1024, 1024 x 8192 and 4096 x 1024, each of eight replicas casts an
// eighth, 4 B a weight, and transposes seven, 2 B.
TEST_CASE("who gathers 8 bits casts its own part of the weights", "[study][fp8]") {
  const auto step = [](const std::string& more) {
    const Study read = study("model: small-transformer.yaml\nplatform: dgx-h100\ncost_model: roofline\ntraining: "
                             "{global_batch: 64, micro_batches: 8, optimizer: adam, precision: bf16, fp8: delayed, "
                             "parallel: {data: 8, zero: 1" +
                             more + "}}\n");
    StudyCosts costs(read);
    Plan plan;
    plan.stages = {{.operators = std::vector<OperatorId>(read.model->size()), .devices = {0, 1, 2, 3, 4, 5, 6, 7}}};
    std::iota(plan.stages[0].operators.begin(), plan.stages[0].operators.end(), 0);
    return cost_plan(costs.problem(8), plan).stages[0].replicas[0].optimizer.value;
  };
  const double weights = 4 * (1024.0 * (1536 + 1024 + 8192) + 4096 * 1024);
  const double bandwidth = study(text("")).platform.type_of(0).memory_bandwidth.value;
  CHECK(step("") - step(", quantized_weights: fp8") ==
        Approx(weights * (4 - 4.0 / 8 - 2 * 7.0 / 8) / bandwidth).epsilon(1e-9));
}

// contract is 4096 to 1024 features. Forward it is the product [tokens, 1024, 4096], of which a group of four that
// divides what is summed over has [tokens, 1024, 1024], and one that divides columns [tokens, 256, 4096]; the gradient
// of its weights is [4096, 1024, tokens], and [1024, 1024, tokens] or [4096, 256, tokens] of it. In 16 bits a group
// counts as if it divided columns.
TEST_CASE("in 8 bits a group divides the dimension that it divides", "[study][fp8]") {
  const auto time = [](const std::string& fp8, bool sums) {
    const Study read = study(text(fp8, "dgx-h100"));
    const auto& operators = read.model->operators;
    const auto op = std::find_if(operators.begin(), operators.end(),
                                 [](const Operator& one) { return one.name == "layer.0.contract"; });
    return *read.cost->time_of_shard(static_cast<OperatorId>(op - operators.begin()), read.platform.type_of(0), 8,
                                     Precision::bf16, {4, 0.5, sums});
  };
  const Study read = study(text(""));
  const DeviceType& type = read.platform.type_of(0);
  const auto product = [&](KernelPass pass, double m, double n, double k) {
    const KernelTime timed = *predict(*type.fits, Kernel{KernelOp::gemm, pass, Precision::fp8, {1, m, n, k}});
    CHECK(timed.cast.value > 0); // the table's own cast, which the training's replaces
    return timed.time - timed.cast;
  };
  // Where columns are divided each casts the whole input, 4 B an element, else the fourth that it has.
  const double tokens = 8 * 512;
  const Bytes cast{4 * tokens * 4096};
  const auto casts = [&](double part) { return type.launch_overhead + cast * part / type.memory_bandwidth; };
  CHECK((time("delayed", true).forward - casts(0.25)).value ==
        near(product(KernelPass::forward, tokens, 1024, 1024).value));
  CHECK((time("delayed", false).forward - casts(1)).value ==
        near(product(KernelPass::forward, tokens, 256, 4096).value));
  CHECK(time("delayed", true).backward_weight.value ==
        near(product(KernelPass::backward_weight, 1024, 1024, tokens).value));
  CHECK(time("delayed", false).backward_weight.value ==
        near(product(KernelPass::backward_weight, 4096, 256, tokens).value));
  CHECK(time("none", true).forward == time("none", false).forward);
}

// The same product of a group of four that gathers what each has cast. Where it divides columns, the input is gathered:
// each casts a fourth, 4 bytes an element, and transposes what the others cast, 2 bytes, in place of casting all; the
// gradient of the output is its own. Where it divides what is summed over, it is the other way round.
TEST_CASE("a group that gathers in 8 bits casts its own part and transposes the rest", "[study][fp8]") {
  const Study read = study(text("delayed"));
  const auto& operators = read.model->operators;
  const auto op = std::find_if(operators.begin(), operators.end(),
                               [](const Operator& one) { return one.name == "layer.0.contract"; });
  const DeviceType& type = read.platform.type_of(0);
  const double tokens = 8 * 512;
  for (const bool sums : {false, true}) {
    const auto time = [&](bool own) {
      const Shard shard{.degree = 4, .activations = 0, .sums = sums, .casts_own = own};
      return *read.cost->time_of_shard(static_cast<OperatorId>(op - operators.begin()), type, 8, Precision::bf16,
                                       shard);
    };
    const auto bytes = [&](double elements, bool gathered) {
      const double own = 4 / 4.0;
      return Bytes{elements * (gathered ? own + 2 * 3 / 4.0 - 4 : 0)};
    };
    CHECK((time(true).forward - time(false).forward).value ==
          near((bytes(tokens * 4096, !sums) / type.memory_bandwidth).value));
    CHECK((time(true).backward_input - time(false).backward_input).value ==
          near((bytes(tokens * 1024, sums) / type.memory_bandwidth).value));
  }
}

TEST_CASE("formats run where the device has them", "[study][fp8]") {
  const auto run = [](const std::string& fp8, const std::string& platform) {
    return compare_text(text(fp8, platform)).comparison.runs.front();
  };
  CHECK(run("tensorwise", "dgx-h100").feasible);
  CHECK(run("mxfp8", "dgx-b200").feasible);
  CHECK(!run("mxfp8", "dgx-h100").feasible);
  CHECK(run("blockwise", "dgx-h100").feasible);
  CHECK(run("nvfp4", "dgx-b200").feasible);
  CHECK(!run("nvfp4", "dgx-h100").feasible);
  CHECK_THAT(run("mxfp8", "dgx-h100").why_not,
             Contains("(matmul, mxfp8) has no kernel on device type 'h100-sxm-80gb'"));
  CHECK_THAT(run("delayed", "dgx-a100").why_not, Contains("(matmul, fp8) has no kernel"));
  CHECK(run("none", "dgx-a100").feasible);
}

TEST_CASE("no run with products in 8 bits beats the bound", "[study][fp8][bound]") {
  for (const char* cost_model : {"roofline", "calibrated"}) {
    const Comparison all = compare_text(text("delayed", "dgx-h100",
                                             "{strategies: all, schedules: [1f1b, interleaved, zb-h1]}", cost_model))
                               .comparison;
    int checked = 0;
    for (const Run& run : all.runs) {
      CAPTURE(cost_model, run.strategy, run.schedule, run.why_not);
      if (run.feasible) {
        CHECK(run.lower_bound.value > 0);
        CHECK(run.lower_bound.value <= run.metrics.iteration.value * (1 + 1e-9));
        ++checked;
      }
    }
    CHECK(checked > 20);
  }
}

TEST_CASE("products in 8 bits need 16 bits around them, shapes, and blocks", "[study][fp8]") {
  const auto error = [](const std::string& model, const std::string& training) {
    return error_of([&] { study("model: " + model + "\nplatform: dgx-h100\ntraining: {" + training + "}\n"); });
  };
  CHECK_THAT(error("small-transformer.yaml", "fp8: delayed"), Contains("study.yaml:3:17: casts tensors of 16 bits"));
  CHECK_THAT(error("products.yaml", "precision: bf16, fp8: delayed"),
             Contains("has no linear layers in numbered blocks"));
  CHECK_THAT(error("small-transformer.yaml", "precision: bf16, fp8: eighths"),
             Contains("unknown fp8 'eighths'; known: none, delayed, tensorwise, rowwise, mxfp8, blockwise, nvfp4"));
  CHECK_THAT(error("chain.yaml", "fp8: delayed, precision: fp16"), Contains("allowed: "));
}

} // namespace
} // namespace stagecraft::test
