// Measurements of a framework beside their prediction: layers found by name or kind, known factors found as errors, and
// files refused that match nothing.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "sim/cost/memory.hpp"
#include "sim/validate/validators.hpp"
#include "sim/validate/witness.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// A folder with witnesses and the chain: four matrix products measured for one sample, 1 s forward and 2 s backward.
class Folder {
public:
  Folder() {
    fs::create_directories(path);
    fs::copy_file(kRoot / "tests/study/chain.yaml", path / "chain.yaml", fs::copy_options::overwrite_existing);
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path add(const std::string& name, const std::string& text) const {
    write_file(path / name, text);
    return path / name;
  }

  const fs::path path = fs::temp_directory_path() / ("stagecraft-witness-" + std::to_string(getpid()));
};

std::string layer(const std::string& name, const std::string& kind, double forward, double backward) {
  char text[200];
  std::snprintf(text, sizeof text, "  - {name: %s, kind: %s, forward_seconds: %.17g, backward_seconds: %.17g}\n",
                name.c_str(), kind.c_str(), forward, backward);
  return text;
}

// Lines 1 to 7 are the head; `more` begins on line 8.
std::string chain_witness(const std::string& more, const std::string& precision = "fp32") {
  return "witness: torch 2.4\nmodel: chain.yaml\ndevice: v100-pcie-16gb\nbatch: 1\nprecision: " + precision +
         "\noptimizer: momentum\neager: {step_seconds: 10, peak_bytes: 8e6, reserved_bytes: 10e6, outside_bytes: "
         "1e6}\n" +
         more;
}

const ValidationRow& row_of(const Validation& validation, const std::string& name, const std::string& metric) {
  const auto found = std::find_if(validation.rows.begin(), validation.rows.end(), [&](const ValidationRow& row) {
    return row.case_name == name && row.metric == metric;
  });
  INFO(name << " " << metric);
  REQUIRE(found != validation.rows.end());
  return *found;
}

std::string refusal(const std::string& text) {
  const Folder folder;
  const fs::path file = folder.add("w.yaml", text);
  return error_of([&] { validate(file, {.shipped = kRoot}); }).substr(folder.path.string().size() + 1);
}

TEST_CASE("a witness's layers, step and memory stand beside their prediction", "[study][validate][witness]") {
  const Folder folder;
  const fs::path file = folder.add(
      "w.yaml",
      chain_witness("captured: {step_seconds: 12}\nlayers:\n" + layer("a", "matmul", 0.8, 2.5) + // named
                    layer("fc1", "matmul", 1, 0) +                                       // b, the next of its kind
                    layer("d", "matmul", 0.25, 0.5) + layer("d", "matmul", 0.25, 0.5))); // two modules make one
  const Validation validation = validate(file, {.shipped = kRoot});
  CHECK(row_of(validation, "w/a", "forward_seconds").error() == Approx(1 / 0.8 - 1));
  CHECK(row_of(validation, "w/a", "backward_seconds").error() == Approx(2 / 2.5 - 1));
  CHECK(row_of(validation, "w/a", "forward_seconds").group == "matmul");
  CHECK(row_of(validation, "w/b", "forward_seconds").error() == Approx(0).margin(1e-12));
  CHECK(row_of(validation, "w/d", "forward_seconds").measured == Approx(0.5));
  CHECK(row_of(validation, "w/d", "backward_seconds").measured == Approx(1));
  // One micro-batch through four operators of 1 s and 2 s; 4000 parameters are stepped over in microseconds.
  CHECK(row_of(validation, "w", "eager_step_seconds").predicted == Approx(4 * (1 + 2)).epsilon(1e-5));
  CHECK(row_of(validation, "w", "eager_step_seconds").error() == Approx(0.2).epsilon(1e-4));
  CHECK(row_of(validation, "w", "captured_step_seconds").measured == 12);
  // Weights, gradients and momentum of 4 bytes each; b, c and d keep their inputs of 4 MB, a has none.
  CHECK(row_of(validation, "w", "eager_peak_bytes").predicted == Approx(4000 * 12 + 3 * 4e6));
  CHECK(row_of(validation, "w", "eager_reserved_bytes").predicted == Approx(4000 * 12 + 3 * 4e6));
  REQUIRE(validation.rows.size() == 5 + 4);
  REQUIRE(validation.skipped.size() == 1);
  CHECK(validation.skipped.front().case_name == "w/b");
  CHECK(validation.skipped.front().why == "backward_seconds: measured as 0");
  REQUIRE(validation.notes.size() == 3);
  CHECK(validation.notes[0] == "w: torch 2.4 on v100-pcie-16gb; 3 of 4 operators were measured as layers, 75.00 % of "
                               "the predicted time of all");
  CHECK(validation.notes[1] == "The allocator held 25.00 % more than its tensors at their peak, and the framework "
                               "976.6 KiB beside it (medians).");
  // Errors of forward passes: 25 %, 0 %, 100 %.
  CHECK(validation.notes[2].find("forward_seconds 25.00 % (3)") != std::string::npos);
}

// The chain has four products: a kernel each in forward, two each in backward.
TEST_CASE("each way of a step is predicted by its own recipe, a graph without launches", "[study][validate][witness]") {
  const Folder folder;
  folder.add("slow.yaml",
             "name: slow\ndescription: d\nsources: s\ntraining: {launches: {each: 1 s, kernels: 3}, kernel_speed: "
             "{matrix: 0.5}}\n");
  const fs::path file = folder.add(
      "w.yaml", "witness: torch\nmodel: chain.yaml\ndevice: v100-pcie-16gb\nbatch: 1\nprecision: fp32\noptimizer: sgd\n"
                "eager: {framework: slow.yaml, step_seconds: 1, loop_seconds: 1, host_seconds: 1, kernels: 1, "
                "kernel_seconds: 1}\n"
                "captured: {framework: slow.yaml, step_seconds: 1, host_seconds: 1, kernels: 1, kernel_seconds: 1}\n"
                "compiled: {step_seconds: 1}\nlayers:\n" +
                    layer("a", "matmul", 1, 2));
  const Validation validation = validate(file, {.shipped = kRoot});
  const auto predicted = [&](const std::string& metric) { return row_of(validation, "w", metric).predicted; };
  const double kernels = 4 * (1 + 2) / 0.5;
  const double launches = 4 * 3 + 8 * 3;
  CHECK(predicted("eager_step_seconds") == Approx(4 * 3 + 8 * 3).epsilon(1e-5)); // above 8 and 16 s of kernels
  CHECK(predicted("eager_loop_seconds") == predicted("eager_step_seconds"));
  CHECK(predicted("eager_host_seconds") == Approx(launches));
  CHECK(predicted("eager_kernels") == launches);
  CHECK(predicted("eager_kernel_seconds") == Approx(kernels).epsilon(1e-5));
  CHECK(predicted("captured_step_seconds") == Approx(kernels).epsilon(1e-5));
  CHECK(predicted("captured_kernel_seconds") == predicted("captured_step_seconds"));
  CHECK(predicted("compiled_step_seconds") == Approx(4 * (1 + 2)).epsilon(1e-5)); // no recipe
  CHECK(row_of(validation, "w/a", "forward_seconds").predicted == Approx(1));     // alone, at full speed
  CHECK(validation.rows.size() == 5 + 2 + 1 + 2); // no launches of a graph, so neither a host's time nor kernels
}

TEST_CASE("the layers of a shipped network are found by their kinds alone", "[study][validate][witness]") {
  const ModelGraph model = load_model(kRoot / "workloads/vgg16.yaml");
  const DeviceTypeSource source = device_types_in(kRoot / "platforms/devices");
  const DeviceType type = load_device_type(source("h100-sxm-80gb", {}), source);
  const auto cost = std::get<std::unique_ptr<CostModel>>(make_cost_model("calibrated", {model}, {}));
  constexpr double kBatch = 8;
  constexpr double kConvolution = 1.25, kOther = 0.5; // measured over predicted
  std::string layers;
  std::size_t passes = 0;
  for (OperatorId op = 0; op < model.size(); ++op) {
    const Operator& what = model.operators[op];
    if (what.type == "flatten" || what.type == "cross_entropy") {
      continue; // no modules of torchvision's network
    }
    const auto time = cost->time(op, type, kBatch, Precision::bf16);
    REQUIRE(time);
    const double factor = what.type == "conv2d" ? kConvolution : kOther;
    const double backward = time->backward_input.value + time->backward_weight.value;
    layers += layer("features." + std::to_string(op), what.type, factor * time->forward.value, factor * backward);
    passes += 2;
  }
  const Folder folder;
  folder.add("not-one.yaml", "name: other\n");
  folder.add("vgg16.yaml",
             "# measured by hand\nwitness: torch\nmodel: vgg16\ndevice: h100-sxm-80gb\nbatch: 8\nprecision: bf16\n"
             "optimizer: adam\neager: {step_seconds: 1}\nlayers:\n" +
                 layers);
  const Validation validation = validate(folder.path, {.shipped = kRoot});
  CHECK(validation.skipped.empty());
  CHECK(validation.rows.size() == passes + 1);
  for (const ValidationRow& row : validation.rows) {
    INFO(row.case_name << " " << row.metric);
    if (row.metric != "eager_step_seconds") {
      CHECK(row.error() == Approx(1 / (row.group == "convolution" ? kConvolution : kOther) - 1));
    }
  }
}

TEST_CASE("layers go to operators in order, and never to one that another names", "[study][validate][witness]") {
  const ModelGraph model = load_model(kRoot / "tests/study/gelu.yaml"); // a: matmul, g: elementwise, b: matmul, h
  const auto match = [&](const std::vector<std::pair<std::string, std::string>>& named) {
    std::vector<WitnessLayer> layers;
    for (const auto& [name, kind] : named) {
      layers.push_back({name, kind, Seconds{1}, Seconds{1}, {}});
    }
    return match_layers(layers, model);
  };
  CHECK(match({{"x", "matmul"}, {"y", "elementwise"}, {"z", "matmul"}}) == std::vector<OperatorId>{0, 1, 2});
  CHECK(match({{"x", "elementwise"}, {"y", "elementwise"}}) == std::vector<OperatorId>{1, 3});
  CHECK(match({{"x", "matmul"}, {"a", "matmul"}}) == std::vector<OperatorId>{2, 0});
  CHECK(match({}).empty());
  CHECK_FALSE(error_of([&] { match({{"b", "matmul"}, {"x", "matmul"}}); }).empty()); // a is not behind b
}

TEST_CASE("a witness that is malformed or matches no operator is refused with its place",
          "[study][validate][witness]") {
  CHECK(refusal(chain_witness("layers:\n" + layer("a", "matmul", 1, 2) + layer("pool", "pooling", 1, 2))) ==
        "w.yaml:10:12: layer 'pool' of kind 'pooling' matches no operator of 'chain'; allowed: the name of an "
        "operator, or the kind of one that no layer names behind 'a', as `stagecraft show` lists them");
  CHECK(refusal(chain_witness("layers:\n" + layer("a", "pooling", 1, 2)))
            .starts_with("w.yaml:9:12: layer 'a' is of kind 'pooling', and the operator of 'chain' is not"));
  CHECK(refusal(chain_witness("layers:\n" + layer("a", "matmul", -1, 2))).starts_with("w.yaml:9:"));
  CHECK(refusal(chain_witness("peak_byte: 3\n")).starts_with("w.yaml:8:1: unknown key 'peak_byte'"));
  CHECK(refusal(chain_witness("captured: {peak_byte: 3}\n")).starts_with("w.yaml:8:12: unknown key 'peak_byte'"));
  CHECK(refusal(chain_witness("captured: {step_seconds: 0}\n")).starts_with("w.yaml:8:"));
  CHECK(refusal(chain_witness("captured: {framework: torhc}\n"))
            .starts_with("w.yaml:8:23: no such file, and unknown framework 'torhc'"));
  CHECK(refusal(chain_witness("", "bf16")).find("the model's profile was taken in fp32") != std::string::npos);
  CHECK(refusal("witness: torch\nmodel: chain.yaml\ndevice: here.yaml\nbatch: 1\nprecision: fp32\noptimizer: sgd\n")
            .starts_with("w.yaml:3:9: no device file 'here.yaml' beside this one"));
  CHECK(refusal("witness: torch\nmodel: chain.yaml\ndevice: v101\n").find("missing key 'batch'") != std::string::npos);
}

TEST_CASE("a witness on a device too small for the step still tells its layers", "[study][validate][witness]") {
  const Folder folder;
  // 12 MB of activations a sample and 16 GB of memory; profiles of one sample scale with the batch.
  const fs::path file =
      folder.add("w.yaml", "witness: torch\nmodel: chain.yaml\ndevice: v100-pcie-16gb\nbatch: 2000\nprecision: fp32\n"
                           "optimizer: sgd\neager: {step_seconds: 1}\nlayers:\n" +
                               layer("a", "matmul", 1000, 2000));
  const Validation validation = validate(file, {.shipped = kRoot});
  CHECK(validation.rows.size() == 2);
  REQUIRE(validation.skipped.size() == 1);
  CHECK(validation.skipped.front().why.starts_with("the eager step: "));
}

} // namespace
} // namespace stagecraft::test
