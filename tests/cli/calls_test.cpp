// Calls that are nearly right get the nearest right one, whole, to copy.
// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "tests/cli/program.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

struct WrongCall {
  std::string arguments;
  std::vector<std::string> answers; ///< lines, or parts of lines, on stderr
};

std::vector<WrongCall> wrong_calls() {
  const std::string program = "$ stagecraft";
  std::vector<WrongCall> calls;
  std::istringstream in(read_file(kRoot / "tests/bad_input/calls.txt"));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(program)) {
      calls.push_back({line.substr(program.size()), {}});
    } else if (!line.empty() && !line.starts_with('#')) {
      calls.back().answers.push_back(line);
    }
  }
  return calls;
}

// The files that the calls name.
void fill(const Workshop& shop) {
  shop.write("study.yaml", small_study());
  fs::copy_file(kChain, shop.folder() / "chain.yaml");
  fs::create_directory(shop.folder() / "hf");
  shop.write("hf/config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})");
  shop.write("sweep.yaml", small_study() + "sweep: {platform.bandwidth: [4 MB/s, 8 MB/s]}\n");
  fs::create_directory(shop.folder() / "tables");
  shop.write("tables/runs.csv", "case,gpu,model,metric,unit,value\n");
  shop.write("train.sh", "torchrun pretrain_gpt.py --num-layers 32 --tensor-model-parallel-size 2\n");
  shop.write("bridge.yaml", "model:\n  tensor_model_parallel_size: 2\ntrain:\n  micro_batch_size: 1\n");
  shop.write("nemo.csv", "task,model,num_gpus,tp_size,mbs,gbs\npre_train,llama3,8,1,1,8\n");
  shop.write("ds.json", R"({"train_batch_size": 8, "zero_optimization": {"stage": 1}})");
  shop.succeed("compare study.yaml -o result.json --trace trace.json");
  for (const char* file : {"plan.yaml", "plan.json"}) {
    shop.succeed("plan chain.yaml --devices 2 --strategy uniform --quiet -o " + std::string(file));
  }
  shop.succeed("replay chain.yaml --devices 2 --strategy uniform --schedule 1f1b --quiet -o run.json");
}

std::string with_short_name(std::string text) {
  const std::string program = STAGECRAFT_PROGRAM;
  for (std::size_t at = text.find(program); at != std::string::npos; at = text.find(program)) {
    text.replace(at, program.size(), "stagecraft");
  }
  return text;
}

TEST_CASE("a call that is nearly right gets the nearest right one", "[cli]") {
  const Workshop shop;
  fill(shop);
  const std::vector<WrongCall> calls = wrong_calls();
  CHECK(calls.size() > 40);
  for (const WrongCall& call : calls) {
    const Outcome outcome = shop.run(call.arguments);
    INFO("stagecraft" << call.arguments);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    REQUIRE_FALSE(call.answers.empty());
    for (const std::string& answer : call.answers) {
      const bool ends_there = answer.starts_with("did you mean: "); // nothing more than the call
      CHECK_THAT(with_short_name(outcome.err), Contains(answer + (ends_there ? "\n" : "")));
    }
  }
}

TEST_CASE("a study that was copied away from its files gets no call again, but where they are looked for", "[cli]") {
  const Workshop shop;
  fs::create_directory(shop.folder() / "away");
  shop.write("away/study.yaml", "model: models/mine.yaml\nplatform: pcie-v100\n");
  const Outcome outcome = shop.run("compare away/study.yaml");
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, Contains("away/study.yaml:1:8: no such file") && !Contains("did you mean"));
  CHECK_THAT(outcome.err, Contains("paths in 'away/study.yaml' are relative to its folder, '") &&
                              Contains("/away', or to where the program is called"));
}

// A call that is proposed is a right one: it can be read, and does not propose another.
TEST_CASE("a call that is proposed is right", "[cli]") {
  const Workshop shop;
  fill(shop);
  int tried = 0;
  for (const WrongCall& call : wrong_calls()) {
    const std::string begin = "did you mean: stagecraft ";
    const std::string& answer = call.answers.front();
    if (answer.starts_with(begin + "compare study.yaml") || answer.starts_with(begin + "compare chain.yaml") ||
        answer.starts_with(begin + "list")) {
      CHECK(shop.run(answer.substr(begin.size())).status == 0);
      ++tried;
    }
  }
  CHECK(tried > 10);
}

TEST_CASE("names and values are matched whatever their case, and units as people write them", "[cli]") {
  const Workshop shop;
  fill(shop);
  const std::string plain =
      "compare study.yaml --quiet --format json --strategies uniform --schedules 1f1b "
      "--set training.optimizer=adam --set platform.bandwidth='4 MB/s' --set platform.latency='1 min'";
  const std::string written = "compare study.yaml --quiet --format json --strategies Uniform --schedules 1F1B "
                              "--set training.optimizer=Adam --set platform.bandwidth='32 Mbps' "
                              "--set platform.latency='1 minute'";
  CHECK(answer_of(shop.succeed(plain).json()) == answer_of(shop.succeed(written).json()));
}

TEST_CASE("help and version are commands too", "[cli]") {
  const Workshop shop;
  CHECK(shop.succeed("help").out == shop.succeed("--help").out);
  CHECK(shop.succeed("help compare").out == shop.succeed("compare --help").out);
  CHECK(shop.succeed("compare help").out == shop.succeed("compare --help").out);
  CHECK(shop.succeed("version").out == shop.succeed("--version").out);
  CHECK_THAT(shop.succeed("compare --help").out, Contains("Example: stagecraft compare gpt2-xl"));
}

} // namespace
} // namespace stagecraft::test
