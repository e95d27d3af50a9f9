// Plans that Sailor measured: read, replayed, refused. The folder here is made up; docs/formats/sailor.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/study/error_families.hpp"
#include "sim/validate/sailor_study.hpp"
#include "sim/validate/validators.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

// A model of two layers, each 10 ms forward and 20 ms backward on a "Card", for micro-batches of one sample; between
// nodes and within them 1 GB/s whatever the size. A layer has 250,000 parameters and hands on 250,000 elements, 1 MB
// each.
class SailorFolder {
public:
  SailorFolder() : path_(fs::temp_directory_path() / ("stagecraft-sailor-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_ / "validation" / "here");
    file("measured_summary.csv", "file,model\nhere/plan.json,Toy\n");
    const std::string half = "[0.005, 0.01, 0.005]";
    const std::string times = R"({"0": )" + half + R"(, "1": )" + half + R"(, "2": [0.01, 0.02, 0.005]})";
    file("profiles_simulator.json", R"({"Toy": {"Card": {"1": {"1": )" + times + R"(, "2": )" + times + "}}}}\n");
    const auto layer = [](int parameters, int kept) {
      return R"({"params_floats": )" + std::to_string(parameters) + R"(, "act_mem_floats": )" + std::to_string(kept) +
             R"(, "act_output_floats": 250000})";
    };
    const std::string layers = R"({"0": )" + layer(125000, 500000) + R"(, "1": )" + layer(125000, 500000) +
                               R"(, "2": )" + layer(250000, 1000000) + "}";
    file("llm_info.json", R"({"Toy": {"1": )" + layers + R"(, "2": )" + layers + "}}\n");
    network("[[0, 0, 1], 1000000000]");
    plan("[[0, 1, 2]]", "[[[[[\"Card\", 1, \"z\"]], 1]]]", 1, 4);
  }

  void file(const std::string& name, const std::string& text) { write_file((path_ / name).string(), text); }

  void network(const std::string& fit) {
    file("network_coeffs_all_homo.json", R"({"inter": {"Card": {"1": )" + fit + R"(, "2": )" + fit + "}}}\n");
    file("intra_node_bandwidths.json", R"({"Card": {"2": )" + fit + "}}\n");
  }

  void plan(const std::string& layers, const std::string& groups, int stages, int batch) {
    file("validation/here/plan.json", R"({"pipeline_list": [{"num_stages": )" + std::to_string(stages) +
                                          ",\n \"layers_per_stage\": " + layers + ",\n \"tmp_per_stage\": " + groups +
                                          ",\n \"dp\": [1]}],\n \"mbs\": 1, \"gbs\": " + std::to_string(batch) +
                                          ", \"real\": 0.1, \"max_mem\": 3e9}\n");
  }

  /// Calls the GPU so in all files.
  void rename_gpu(const std::string& name) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path_)) {
      if (entry.is_regular_file()) {
        std::string text = read_file(entry.path().string());
        for (std::size_t at = text.find("Card"); at != std::string::npos; at = text.find("Card", at + name.size())) {
          text.replace(at, 4, name);
        }
        write_file(entry.path().string(), text);
      }
    }
  }

  Validation validated() const { return validate(path_, {.shipped = kRoot}); }
  double predicted(const std::string& metric = "iteration_seconds") const {
    for (const ValidationRow& row : validated().rows) {
      if (row.metric == metric) {
        return row.predicted;
      }
    }
    return 0;
  }
  std::string error() const {
    return error_of([&] { validated(); });
  }

private:
  fs::path path_;
};

const std::string kReplica = "[[[\"Card\", 1, \"z\"]], 1]";
const std::string kOne = "[" + kReplica + "]", kTwo = "[" + kReplica + ", " + kReplica + "]";

TEST_CASE("a plan on one GPU takes its layers' times for every micro-batch, and the update", "[validate][sailor]") {
  const SailorFolder folder;
  CHECK(folder.predicted() == near(4 * 2 * 0.03 + 0.005));
  const Validation validation = folder.validated();
  CHECK(validation.baselines.begin()->second.front().predicted == near(4 * 2 * 0.03 + 0.005));
  CHECK(validation.rows.front().measured == near(0.1));
  CHECK(validation.rows.front().group == "here");
}

// 1 ms a transfer, which blocks whoever sends, and is an instruction of whoever receives. Stage 0: F 0-10, sends -11, F
// -21, sends -22. Stage 1, with 1 ms to receive before each F: 11-22, B -42, sends -43, F -54, B -74, sends -75. Stage
// 0 receives and computes B 43-64 and 75-96; the update takes 5.
TEST_CASE("sending and receiving take the time of both", "[validate][sailor]") {
  SailorFolder folder;
  folder.plan("[[0, 1], [2]]", "[" + kOne + ", " + kOne + "]", 2, 2);
  CHECK(folder.predicted() == near(0.101));
}

// Ranks of a group send half of the tensor each at half of the node's rate, 1 ms, and gather it: half of it in 0.5 ms.
TEST_CASE("a group's ranks send their parts and gather them", "[validate][sailor]") {
  SailorFolder folder;
  const std::string two = "[[[[\"Card\", 2, \"z\"]], 2]]";
  folder.plan("[[0, 1], [2]]", "[" + two + ", " + two + "]", 2, 1);
  // F 10, sent 1, received 1.5, F 10, B 20, sent 1, received 1.5, B 20, update 5.
  CHECK(folder.predicted() == near(0.070));
}

// A ring of two passes 0.5 MB twice for each MB of gradients.
TEST_CASE("replicas reduce their gradients after all backwards", "[validate][sailor]") {
  SailorFolder folder;
  folder.plan("[[0, 1, 2]]", "[" + kTwo + "]", 1, 4);
  CHECK(folder.predicted() == near(2 * 0.06 + 2 * 0.001 + 0.005));
}

TEST_CASE("memory is that of the replay, of the framework's copies and of its context", "[validate][sailor]") {
  SailorFolder folder;
  // Weights, gradients and two states, and two copies, of 500,000 parameters; what a micro-batch keeps; 2 GB.
  constexpr double kTensors = 500'000 * (4 + 4 + 8 + 8) + 2 * 4e6;
  CHECK(folder.predicted("peak_memory_bytes") == Approx(kTensors + 2e9).epsilon(2e-3));
  folder.rename_gpu("GH-96"); // the authors' simulator: 4.76 GB of kernels, and 0.3 GB
  CHECK(folder.predicted("peak_memory_bytes") == Approx(kTensors + 5.06e9).epsilon(1e-3));
}

// Too few plans are known: the intervals are those of all models' runs, by the file that is shipped.
TEST_CASE("a plan's time and memory have the widest family's intervals", "[validate][sailor]") {
  const std::vector<ErrorFamily> families = shipped_error_families({.study = {}, .shipped = kRoot});
  const auto factor = [&](const std::string& name) {
    return std::find_if(families.begin(), families.end(), [&](const auto& family) { return family.name == name; })
        ->factor;
  };
  const Validation validation = SailorFolder().validated();
  const ValidationRow &time = validation.rows[0], &memory = validation.rows[1];
  CHECK(time.low == near(time.predicted / factor("times of all models")));
  CHECK(time.high == near(time.predicted * factor("times of all models")));
  CHECK(memory.high == near(memory.predicted * factor("memory of all models")));
  CHECK(time.family == "times of all models");
}

TEST_CASE("plans that have no such replay are listed with the reason", "[validate][sailor]") {
  SailorFolder folder;
  const std::string two = "[[[[\"Card\", 2, \"z\"]], 2]]";
  folder.plan("[[0, 1], [2]]", "[" + kOne + ", " + two + "]", 2, 2);
  REQUIRE(folder.validated().skipped.size() == 1);
  CHECK_THAT(folder.validated().skipped.front().why, Contains("different tensor degrees"));
  folder.plan("[[0, 1, 2]]", "[" + kTwo + "]", 1, 3);
  CHECK_THAT(folder.validated().skipped.front().why, Contains("batch is no multiple"));
}

TEST_CASE("malformed plans, profiles and networks are located errors", "[validate][sailor]") {
  const auto error = [](const auto& change) {
    SailorFolder folder;
    change(folder);
    return folder.error();
  };
  CHECK_THAT(error([](SailorFolder& f) { f.plan("[[0, 2]]", "[" + kOne + "]", 1, 4); }),
             Contains("plan.json:2:") && Contains("layer 2 does not follow"));
  CHECK_THAT(error([](SailorFolder& f) { f.plan("[[0, 1, 2]]", "[" + kOne + "]", 2, 4); }),
             Contains("plan.json:2:") && Contains("a list of 2"));
  CHECK_THAT(error([](SailorFolder& f) { f.plan("[[0, 1, 2]]", "[[[[[\"Card\", 2, \"z\"]], 1]]]", 1, 4); }),
             Contains("plan.json:3:") && Contains("2 GPUs has tensor degree 1"));
  CHECK_THAT(error([](SailorFolder& f) { f.plan("[[0, 1, 2]]", "[[[[[\"Board\", 1, \"z\"]], 1]]]", 1, 4); }),
             Contains("profiles_simulator.json:1:") && Contains("no GPU 'Board'; there are: Card"));
  CHECK_THAT(error([](SailorFolder& f) { f.plan("[[0, 1, 2]]", "[" + kOne + "]", 1, -4); }), Contains("plan.json:5:"));
  CHECK_THAT(error([](SailorFolder& f) { f.file("measured_summary.csv", "file,model\n../plan.json,Toy\n"); }),
             Contains("measured_summary.csv:2:1") && Contains("no file below validation"));
  CHECK_THAT(error([](SailorFolder& f) { f.file("measured_summary.csv", "file,model\nhere/plan.json,Game\n"); }),
             Contains("no model 'Game'"));
  CHECK_THAT(error([](SailorFolder& f) { f.network("[[0, 0, 1]]"); }), Contains("network_coeffs_all_homo.json:1:"));
  CHECK_THAT(error([](SailorFolder& f) {
               f.network("[[0, 0, -1], 1000000000]");
               f.plan("[[0, 1], [2]]", "[" + kOne + ", " + kOne + "]", 2, 2);
             }),
             Contains("network_coeffs_all_homo.json:1:") && Contains("no bandwidth left"));
  CHECK_THAT(error([](SailorFolder& f) { f.file("llm_info.json", "{\"Toy\": {\"1\": {\"0\": 3}}}"); }),
             Contains("llm_info.json:1:"));
}

TEST_CASE("Sailor's own plans are predicted as docs/validation/unlike-nodes.md says", "[validate][sailor][data]") {
  const fs::path folder = kRoot / ".." / "shared" / "data" / "sailor";
  if (!fs::exists(folder)) {
    WARN("skipped: no folder ../shared/data/sailor");
    return;
  }
  const Validation validation = validate(folder, {.shipped = kRoot});
  CHECK(validation.skipped.empty());
  const auto error = [&](const std::string& cluster) {
    std::vector<ValidationRow> rows;
    for (const ValidationRow& row : validation.rows) {
      if (row.group == cluster && row.metric == "iteration_seconds") {
        rows.push_back(row);
      }
    }
    return accuracy_of(rows).mape;
  };
  CHECK(error("clariden") < 0.09);
  CHECK(error("mit") < 0.04);
}

} // namespace
} // namespace stagecraft::test
