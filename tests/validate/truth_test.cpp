// Tables of measured runs: read, predicted, scored. The tables here are made up; docs/formats/truth.md.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/validate/truth/intervals.hpp"
#include "sim/validate/truth/predict_truth.hpp"
#include "sim/validate/truth/rows/truth_row.hpp"
#include "sim/validate/truth/study/truth_study.hpp"
#include "sim/validate/validators.hpp"
#include "sim/workload/training/framework.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;
using Catch::StartsWith;

const std::string kHeader =
    "case,source,model,layers,hidden,heads,seq_len,vocab,gpu,gpus_per_node,nodes,tensor_parallel,"
    "pipeline_parallel,micro_batch,global_batch,precision,recompute,metric,unit,value,note\n";

// A line of the table: GPT of two layers on one A100.
std::string line(const std::string& name, const std::string& metric, const std::string& value,
                 const std::string& gpu = "a100-80gb-sxm", const std::string& model = "GPT small,2,512,8") {
  return name + ",Some Megatron-LM paper," + model + ",128,1024," + gpu + ",8,1,1,1,1,8,bf16,none," + metric + "," +
         value + ",\n";
}

fs::path table_of(const std::string& lines, const std::string& name = "made-up.csv") {
  const fs::path folder = fs::temp_directory_path() / ("stagecraft-truth-" + std::to_string(::getpid()));
  fs::create_directories((folder / name).parent_path());
  write_file(folder / name, lines);
  return folder / name;
}

Validation validated(const std::string& lines) { return validate(table_of(lines), {.shipped = kRoot}); }

// The study that is made of a table's only row.
std::string study_of(const std::string& table) {
  const fs::path file = table_of(table), studies = file.parent_path() / "studies";
  const Validation validation = validate(file, {.shipped = kRoot, .studies = studies});
  REQUIRE(validation.skipped.empty());
  REQUIRE(validation.rows.size() == 1);
  return read_file(studies / "a.yaml");
}

TEST_CASE("a row is predicted as the study that it makes, in the unit of its metric", "[validate][truth]") {
  const std::string one_device =
      kHeader + line("a", "iteration_seconds", "s,0.1") + line("b", "iteration_seconds", "ms,100") +
      line("c", "tokens_per_gpu_second", "tokens/GPU/s,1e5") + line("d", "peak_memory", "GiB,2");
  const Validation validation = validated(one_device);
  REQUIRE(validation.rows.size() == 4);
  CHECK(validation.skipped.empty());
  const auto& [a, b, c, d] = std::tie(validation.rows[0], validation.rows[1], validation.rows[2], validation.rows[3]);
  CHECK(b.measured == near(a.measured)); // 100 ms are 0.1 s
  CHECK(b.predicted == near(a.predicted));
  constexpr double kTokens = 8 * 128, kDevices = 8;
  CHECK(c.predicted == near(kTokens / a.predicted / kDevices));
  CHECK(d.measured == near(2 * 1024.0 * 1024 * 1024));
  CHECK(d.metric == "peak_memory_bytes");
  CHECK(d.predicted > 0);
  // One model has no other to tell how far off it may be: the shipped errors do.
  const auto family = narrowest_family(shipped_error_families(kFolders), {.framework = "megatron-lm-2025"});
  REQUIRE(family);
  CHECK(a.high == near(a.predicted * family->factor));
  CHECK(a.family == family->name);
  const auto memory = narrowest_family(shipped_error_families(kFolders), {.time = false});
  REQUIRE(memory);
  CHECK(d.high == near(d.predicted * memory->factor));
}

TEST_CASE("FLOPs of a table that counts recompute are those of all that ran", "[validate][truth]") {
  const auto rate = [](const std::string& note) {
    std::string row = line("a", "tflops_per_gpu", "TFLOPS,100");
    row.replace(row.find(",none,"), 6, ",full,");
    row.insert(row.size() - 1, note);
    return validated(kHeader + row).rows.front().predicted;
  };
  const double model = rate("");
  // Blocks run forward again, the head does not.
  CHECK(rate("FLOPs count recompute") > 1.2 * model);
  CHECK(rate("FLOPs count recompute") < 4.0 / 3 * model);
}

TEST_CASE("the study of a row can be run by itself, and gives what is predicted", "[validate][truth]") {
  const fs::path table = table_of(kHeader + line("alone", "iteration_seconds", "s,0.1"));
  const fs::path studies = table.parent_path() / "studies";
  const Validation validation = validate(table, {.shipped = kRoot, .studies = studies});
  REQUIRE(validation.rows.size() == 1);
  const Study read = load_study(yaml::load(studies / "alone.yaml"), kFolders, {});
  CHECK(read.training.framework == "megatron-lm-2025");
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const Comparison comparison = compare(memo).comparison;
  REQUIRE(comparison.runs.size() == 1);
  CHECK(comparison.runs.front().metrics.iteration.value == near(validation.rows.front().predicted));
}

TEST_CASE("rows that cannot be predicted are listed with the reason", "[validate][truth]") {
  const Validation validation =
      validated(kHeader + line("a", "epochs_of_glory", "s,1") + line("b", "iteration_seconds", "s,1", "abacus-9000") +
                line("c", "iteration_seconds", "s,1", "a100-80gb-sxm", "Jamba mini,2,512,8") +
                line("d", "iteration_seconds", "s,1", "a100-80gb-sxm", "GPT small,2,,8"));
  CHECK(validation.rows.empty());
  REQUIRE(validation.skipped.size() == 4);
  CHECK_THAT(validation.skipped[0].why,
             StartsWith("the metric 'epochs_of_glory' is not predicted; allowed: iteration_seconds, epoch_seconds, "));
  CHECK_THAT(validation.skipped[1].why, Contains("abacus-9000"));
  CHECK_THAT(validation.skipped[2].why, Contains("Jamba mini"));
  CHECK_THAT(validation.skipped[3].why, Contains("does not state hidden"));
}

// Two nodes of eight A100 with a network in these words: what a device has of it, and what is assumed.
std::pair<double, std::vector<std::string>> joined_by(const std::string& network) {
  const fs::path table = table_of("case,model,layers,hidden,heads,seq_len,vocab,gpu,gpus_per_node,nodes,inter_link,"
                                  "data_parallel,micro_batch,global_batch,precision,metric,unit,value\n"
                                  "a,GPT small,2,512,8,128,1024,a100-80gb-sxm,8,2,\"" +
                                  network + "\",16,1,16,bf16,iteration_seconds,s,1\n");
  const fs::path studies = table.parent_path() / "studies";
  const Validation validation = validate(table, {.shipped = kRoot, .studies = studies});
  REQUIRE(validation.rows.size() == 1);
  const yaml::Node made = yaml::load(studies / "a.yaml");
  constexpr double kGiga = 1e9;
  const std::string& bandwidth = made.find("platform")->find("network")->find("bandwidth")->text; // "45.0 GB/s"
  return {std::stod(bandwidth) * kGiga, validation.rows.front().assumed};
}

TEST_CASE("a network is of a device, a node or so many ports, and of a node where nobody says", "[validate][truth]") {
  constexpr double kReached = 0.9, kGigabit = 1e9 / 8; // of a NIC's rate, as in shipped platforms
  const auto is_of_node = [](const std::string& one) { return one.ends_with(" Gb/s for a whole node"); };
  for (const auto& [words, of_device, said] :
       {std::tuple{"400 Gb/s RDMA per GPU", 400.0, true},
        {"1600 Gb/s RoCE per node", 200.0, true},
        {"8x HDR 200Gb/s IB", 200.0, true},
        {"4x100 Gbps RoCE", 50.0, true},
        {"Storage: 2x 400Gb/s, Compute: 8x NDR 100Gb/s, Management: 1Gb/s", 100.0, true},
        {"BF3 800Gbps for NS and 4xBF3 400Gbps for EW", 200.0, true},
        {"InfiniBand 200 Gb/s", 25.0, false},
        {"200GbE", 25.0, false},
        {"100 Gbit/s", 12.5, false}}) {
    CAPTURE(words);
    const auto [bandwidth, assumed] = joined_by(words);
    CHECK(bandwidth == near(of_device * kGigabit * kReached));
    CHECK(std::any_of(assumed.begin(), assumed.end(), is_of_node) == !said);
  }
}

// The rate is the Ethernet's; devices meet over InfiniBand, of which nobody says how fast it is.
TEST_CASE("a network whose rate is not said is that of the shipped node", "[validate][truth]") {
  const auto [bandwidth, assumed] = joined_by("100GbE InfiniBand");
  CHECK(bandwidth == near(joined_by("InfiniBand").first));
  CHECK_THAT(join(assumed), Contains("the network of dgx-a100"));
}

// 16 billion parameters with Adam on one device of 80 GB.
TEST_CASE("a run that was measured is predicted where it should not have fitted, and that is said",
          "[validate][truth]") {
  const Validation validation =
      validated(kHeader + line("a", "iteration_seconds", "s,1", "a100-80gb-sxm", "GPT,20,8192,64"));
  REQUIRE(validation.rows.size() == 1);
  const std::vector<std::string>& assumed = validation.rows.front().assumed;
  CHECK(std::any_of(assumed.begin(), assumed.end(),
                    [](const std::string& one) { return one.starts_with("that it fits, though a device lacks "); }));
}

// 24 layers of 2,048 features on 65,536 tokens keep some 100 GB in 16 bits, and 6 GB where each runs again.
TEST_CASE("a run that would not fit recomputes its blocks where nothing says that it does not", "[validate][truth]") {
  const auto run = [](const std::string& recompute) {
    return validated(kHeader + "a,somebody's FSDP,GPT,24,2048,16,65536,1024,a100-80gb-sxm,8,1,1,1,1,8,bf16," +
                     recompute + ",iteration_seconds,s,1,\n");
  };
  const Validation unknown = run("unknown"), none = run("none"), full = run("full");
  REQUIRE(unknown.rows.size() == 1);
  CHECK(unknown.rows.front().predicted == full.rows.front().predicted);
  CHECK(none.rows.front().predicted < 0.9 * full.rows.front().predicted);
  CHECK_THAT(join(unknown.rows.front().assumed), Contains("blocks are recomputed, without which a device lacks ") &&
                                                     !Contains("nothing is recomputed") && !Contains("that it fits"));
  CHECK_THAT(join(none.rows.front().assumed), Contains("that it fits, though a device lacks "));
  // What was chosen that it may fit tells nothing of whether it does.
  CHECK(unknown.verdicts.empty());
  REQUIRE(none.verdicts.size() == 1);
  CHECK_FALSE(none.verdicts.front().predicted);
}

// Megatron-LM's `--recompute-num-layers` leaves some blocks of a stage as they are.
TEST_CASE("a run by Megatron-LM that would not fit recomputes as few blocks as make it fit", "[validate][truth]") {
  const auto run = [](const std::string& recompute) {
    return validated(kHeader + "a,Some Megatron-LM paper,GPT,24,2048,16,65536,1024,a100-80gb-sxm,8,1,1,1,1,8,bf16," +
                     recompute + ",iteration_seconds,s,1,\n");
  };
  const Validation unknown = run("unknown");
  REQUIRE(unknown.rows.size() == 1);
  const std::string assumed = join(unknown.rows.front().assumed);
  CHECK_THAT(assumed, Contains(" of 24 blocks of each stage are recomputed, without which a device lacks ") &&
                          !Contains("that it fits"));
  const std::size_t before = assumed.find(" of 24 blocks");
  const int fewest = std::stoi(assumed.substr(assumed.rfind(' ', before - 1) + 1));
  CHECK(unknown.rows.front().predicted == run("first " + std::to_string(fewest) + " blocks").rows.front().predicted);
  const Validation one_less = run("first " + std::to_string(fewest - 1) + " blocks");
  CHECK_THAT(join(one_less.rows.front().assumed), Contains("that it fits, though a device lacks "));
}

TEST_CASE("a forward that was measured alone drops nothing", "[validate][truth]") {
  const std::string row = "a,NeuSight labels,GPT,2,512,8,128,1024,a100-80gb-sxm,1,1,1,1,1,1,fp32,none,";
  CHECK_THAT(study_of(kHeader + row + "iteration_seconds,s,1,no optimizer\n"), Contains("kind: dropout"));
  CHECK_THAT(study_of(kHeader + row + "forward_seconds,s,1,forward only\n"), !Contains("kind: dropout"));
}

TEST_CASE("examples of NVIDIA run their framework's kernels", "[validate][truth]") {
  const auto study = [](const std::string& source, const std::string& precision) {
    return study_of("case,source,model,gpu,num_gpus,global_batch,precision,metric,unit,value\na,NVIDIA "
                    "DeepLearningExamples " +
                    source + ",ResNet-50 v1.5,v100-16gb-sxm,1,64," + precision + ",throughput,images/s,1\n");
  };
  CHECK_THAT(study("PyTorch/Classification/ConvNets", "fp32"), Contains("framework: pytorch-nvidia-images\n"));
  const std::string half = study("MxNet/Classification", "amp-fp16");
  CHECK_THAT(half, Contains("framework: mxnet\n") && Contains("image_layout: channels-last"));
  CHECK_THAT(study("MxNet/Classification", "fp32"), !Contains("image_layout"));
  CHECK_THAT(study("MxNet/Classification NCHW", "amp-fp16"), !Contains("image_layout"));
  CHECK_THAT(study("PyTorch/Classification with channels last", "fp32"), Contains("image_layout: channels-last"));
}

TEST_CASE("a table that is no table of measured runs names the columns that it lacks", "[validate][truth]") {
  CHECK_THAT(error_of([] { validated("case,model,gpu,metric,value\na,b,c,d,1\n"); }),
             Contains("made-up.csv:1:1: ") && Contains("needs the columns unit, global_batch, too"));
}

TEST_CASE("a table may come from a spreadsheet, with its mark, blanks around names and commas in numbers",
          "[validate][truth]") {
  const std::string plain = kHeader + line("a", "tokens_per_gpu_second", "tokens/GPU/s,1083366");
  const double measured = validated(plain).rows.front().measured;
  CHECK(measured == 1083366);
  std::string spread = kHeader;
  spread.replace(spread.find("case,source"), 11, "case , source");
  CHECK(validated("\xEF\xBB\xBF" + spread + line("a", "tokens_per_gpu_second", "tokens/GPU/s,\"1,083,366\""))
            .rows.front()
            .measured == measured);
  const auto refusal = [](const std::string& table) { return error_of([&] { validated(table); }); };
  CHECK_THAT(refusal(kHeader + line("a", "iteration_seconds", "s,\"1,5\"")), Contains("'1,5' is not a number"));
  CHECK_THAT(refusal(kHeader + line("a", "iteration_seconds", "s,\"1,0835\"")), Contains("'1,0835' is not a number"));
  CHECK_THAT(refusal("case;model;gpu\na;b;c\n"), Contains(":1:5: cells are separated by semicolons; allowed: commas"));
  CHECK_THAT(refusal("\xFF\xFE"
                     "c"),
             Contains("UTF-8"));
  CHECK_THAT(refusal(kHeader + line("", "iteration_seconds", "s,1")), Contains("the case has no name"));
}

TEST_CASE("sizes that make no model are refused by name", "[validate][truth]") {
  const auto reason = [](const std::string& model) {
    const Validation validation =
        validated(kHeader + line("a", "iteration_seconds", "s,1", "a100-80gb-sxm", "GPT small," + model));
    return validation.skipped.empty() ? "predicted" : validation.skipped.front().why;
  };
  CHECK(reason("2,512,8") == "predicted");
  CHECK_THAT(reason("2,512,7"), Contains("heads, 7, do not divide hidden, 512"));
  CHECK_THAT(reason("2,1000000000,8"), Contains("hidden is 1000000000; allowed: up to "));
}

TEST_CASE("what a row does not state is assumed, and said", "[validate][truth]") {
  const Validation validation =
      validated("case,model,layers,hidden,heads,ffn_hidden,seq_len,gpu,num_gpus,global_batch,metric,unit,value\n"
                "a,Somebody's 1B,2,512,8,1024,128,h100-80gb-sxm,4,8,iteration_seconds,s,1\n");
  REQUIRE(validation.rows.size() == 1);
  const std::vector<std::string>& assumed = validation.rows.front().assumed;
  const auto says = [&](const std::string& what) {
    return std::find(assumed.begin(), assumed.end(), what) != assumed.end();
  };
  CHECK(says("a decoder built as Llama's"));
  CHECK(says("a vocabulary of 50257, as GPT-2's"));
  CHECK(says("precision bf16"));
  CHECK(says("nothing is recomputed"));
  CHECK(says("2 samples in a micro-batch")); // 8 are no multiple of 4 x 4 replicas
}

// Their configurations hold frozen weights, and what SwiGLU keeps, in 8 bits.
TEST_CASE("a run of MLPerf that trains adapters holds in 8 bits what can be held so", "[validate][truth][lora]") {
  const auto row = [](const std::string& source, const std::string& precision, const std::string& note) {
    return study_of("case,source,model,layers,hidden,heads,ffn_hidden,seq_len,gpu,num_gpus,micro_batch,global_batch,"
                    "precision,metric,unit,value,note\na," +
                    source + ",Llama2 tiny LoRA,2,512,8,1024,128,h100-80gb-sxm,4,1,8," + precision +
                    ",iteration_seconds,s,1," + note + "\n");
  };
  const std::string all = row("MLPerf Training v5.0 results", "fp8", "LoRA rank 4 on attention");
  CHECK_THAT(all, Contains("lora: {rank: 4, layers: [qkv, projection]}"));
  CHECK_THAT(all, Contains("fp8_weights: true"));
  CHECK_THAT(all, Contains("fp8_activations: true"));
  CHECK_THAT(row("MLPerf Training v5.0 results", "bf16", ""), Contains("lora: 16\n") && !Contains("fp8_weights"));
  CHECK_THAT(row("NeMo user guide", "fp8", ""), Contains("lora: 16\n") && !Contains("fp8_weights"));
}

TEST_CASE("a laboratory's runs are predicted from its own kernels where they are shipped", "[validate][truth]") {
  const auto device = [](const std::string& source) {
    return study_of("case,source,model,layers,hidden,heads,seq_len,gpu,num_gpus,micro_batch,global_batch,precision,"
                    "metric,unit,value\na," +
                    source + ",GPT small,2,512,8,128,b200-sxm,8,1,8,bf16,iteration_seconds,s,1\n");
  };
  CHECK_THAT(device("MooreThreads/SimuMax docs"), Contains("\"type\": \"b200-sxm-simumax\""));
  CHECK_THAT(device("NeMo user guide"), Contains("\"type\": \"b200-sxm\""));
}

TEST_CASE("Zeus' V100 has the memory that its batches need", "[validate][truth]") {
  const auto device = [](const std::string& source) {
    return study_of("case,source,model,gpu,num_gpus,micro_batch,global_batch,metric,unit,value\na," + source +
                    ",resnet50,v100,1,8,8,iteration_seconds,s,1\n");
  };
  CHECK_THAT(device("Zeus power traces"), Contains("\"type\": \"v100-pcie-32gb\""));
  CHECK_THAT(device("Somebody"), Contains("\"type\": \"v100-pcie-16gb\""));
}

// neusight/Tracing/trace.py: forwards alone are of BertForSequenceClassification.
TEST_CASE("NeuSight's forwards of BERT have no head for masked words", "[validate][truth]") {
  const auto model = [](const std::string& source, const std::string& note) {
    return study_of(
        "case,source,model,seq_len,gpu,num_gpus,micro_batch,global_batch,precision,metric,unit,value,note\na," +
        source + ",bert_large,128,v100,1,8,8,fp32,iteration_seconds,s,1," + note + "\n");
  };
  CHECK_THAT(model("NeuSight labels", "inf; forward only"),
             Contains("next_sentence_loss") && !Contains("masked_language"));
  CHECK_THAT(model("NeuSight labels", "train"), Contains("masked_language"));
  CHECK_THAT(model("Somebody", "forward only"), Contains("masked_language"));
}

// PyTorch's example reads sequences in bins; TensorFlow's does not.
TEST_CASE("bins of sequences are those of NVIDIA's example in PyTorch", "[validate][truth]") {
  const auto tokens = [](const std::string& example) {
    return study_of(
        "case,source,model,seq_len,gpu,num_gpus,micro_batch,global_batch,precision,metric,unit,value\na,NVIDIA "
        "DeepLearningExamples " +
        example + ",BERT-large,512,v100,1,8,8,fp16,iteration_seconds,s,1\n");
  };
  CHECK_THAT(tokens("PyTorch/LanguageModeling/BERT"), Contains("\"shape\": [\"288\"]"));
  CHECK_THAT(tokens("TensorFlow/LanguageModeling/BERT"), Contains("\"shape\": [\"512\"]"));
}

TEST_CASE("OPT is GPT-3 with ReLU", "[validate][truth]") {
  const auto model = [](const std::string& name) {
    return study_of(
        "case,model,layers,hidden,heads,seq_len,vocab,gpu,num_gpus,micro_batch,global_batch,precision,metric,"
        "unit,value\na," +
        name + ",2,512,8,128,1024,v100,1,8,8,fp32,iteration_seconds,s,1\n");
  };
  CHECK_THAT(model("opt_13"), Contains("relu") && !Contains("gelu"));
  CHECK_THAT(model("gpt3_xl"), Contains("gelu_tanh") && !Contains("relu"));
}

// A row of DeepSeek-V3 with four layers, the first three of them dense; of a source.
TruthRow latent_row(const std::string& source, const std::string& recompute) {
  const std::string header =
      "case,source,model,layers,hidden,heads,seq_len,vocab,gpu,gpus_per_node,nodes,"
      "expert_parallel,micro_batch,global_batch,precision,recompute,metric,unit,value,ffn_hidden,"
      "experts,experts_active,moe_ffn\n";
  const fs::path table =
      table_of(header + "a," + source + ",DeepSeek-V3 671B,4,1024,8,128,1024,b200-sxm,8,1,8,1,8,bf16," + recompute +
               ",iteration_seconds,s,1,2048,8,2,512\n");
  return read_truth(table).front();
}

std::string study_of(const TruthRow& row) { return std::get<TruthStudy>(truth_study(row, kRoot)).text; }

// run_pretrain_deepseekv2.sh: MOE_LAYER_FREQ is ([0]*1+[1]*(L-1)).
TEST_CASE("SimuMax cuts mixtures down to layers of which the first is dense", "[validate][truth]") {
  CHECK_THAT(study_of(latent_row("MooreThreads/SimuMax docs", "none")),
             Contains("name: layer, repeat: 1, first: 0}") && Contains("name: layer, repeat: 3, first: 1}"));
  CHECK_THAT(study_of(latent_row("Somebody's Megatron-LM", "none")), Contains("name: layer, repeat: 3, first: 0}"));
}

TEST_CASE("Megatron-Bridge's DeepSeek-V3 predicts the token after the next, too", "[validate][truth]") {
  const std::string bridge = study_of(latent_row("NVIDIA Megatron-Bridge performance summary", "none"));
  CHECK_THAT(bridge, Contains("name: layer, repeat: 1, first: 4}") && Contains("name: further_head"));
  CHECK_THAT(study_of(latent_row("some other source", "none")), !Contains("further"));
  CHECK_THAT(study_of(latent_row("NVIDIA Megatron-Bridge performance summary (w/o MTP)", "none")),
             !Contains("further"));
}

TEST_CASE("modules that Megatron-Core runs again are named in the study", "[validate][truth]") {
  const auto recompute = [](const std::string& words) {
    const std::string text = study_of(latent_row("NVIDIA Megatron-Bridge performance summary", words));
    const std::size_t begin = text.find("  recompute:");
    return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK(recompute("selective: mlp") == "  recompute: {modules: [mlp]}");
  CHECK(recompute("selective: mla_up_proj") == "  recompute: {modules: [mla_up_proj]}");
  CHECK(recompute("selective layernorm+moe_act") == "  recompute: {modules: [layernorm, moe_act]}");
  CHECK(recompute("selective: moe") == "  recompute: {modules: [moe]}"); // not moe_act, whose name begins alike
  CHECK(recompute("selective") == "  recompute: {modules: [core_attn]}");
}

// Of q, k, v, o, w1, w3 and w2 every second product: o, and w1 and w3, which are one here, in every second layer.
TEST_CASE("TorchTitan's selective recompute runs every second product again", "[validate][truth]") {
  const std::string header =
      "case,source,model,layers,hidden,heads,kv_heads,ffn_hidden,seq_len,vocab,gpu,num_gpus,data_parallel,zero_stage,"
      "micro_batch,global_batch,precision,recompute,metric,unit,value,note\n";
  const auto row = [&](const std::string& source, const std::string& note) {
    return read_truth(table_of(header + "a," + source +
                               ",Llama3 small,2,512,8,8,1024,128,1024,h100-80gb-sxm,8,8,"
                               "fsdp2 (ZeRO-3),1,8,bf16,selective,peak_memory,GiB,1," +
                               note + "\n"))
        .front();
  };
  const std::string of_2024 = study_of(row("pytorch/torchtitan llama3_h100_202412_torchtitan.md", ""));
  CHECK_THAT(of_2024, Contains("  recompute: {kinds: [normalization, elementwise], operators: [layer.0.projection, "
                               "layer.0.expand, layer.1.projection]}\n"));
  CHECK_THAT(of_2024, Contains("framework: torchtitan-2024\n")); // whose loss is not compiled
  CHECK_THAT(study_of(row("pytorch/torchtitan 2025-06", "")), Contains("framework: torchtitan\n"));
  CHECK_THAT(study_of(row("pytorch/torchtitan 202412_torchtitan", "torch.compile=False")),
             Contains("framework: torchtitan-eager\n"));
}

TEST_CASE("a row without sizes is the shipped workload of its name", "[validate][truth]") {
  const Validation validation =
      validated("case,model,seq_len,gpu,num_gpus,micro_batch,global_batch,precision,metric,unit,value,note\n"
                "a,ResNet-50 v1.5 (PyTorch),,v100,2,64,,fp32,throughput,images/s,700,\n"
                "b,BERT-large,128,v100,1,8,,fp16,throughput,sequences/s,100,accumulated batch per GPU: 20\n"
                "c,ResNet-51,,v100,1,64,,fp32,throughput,images/s,300,\n"
                "d,resnet50,,v100,1,64,64,,epoch_seconds,s,3600,dataset=imagenet\n"
                "e,resnet50,,v100,1,64,64,,epoch_seconds,s,3600,dataset=somebody's\n"
                "f,resnet50,,v100,1,64,64,,average_power,W,200,\n");
  REQUIRE(validation.rows.size() == 4);
  const auto study_of = [](const ValidationRow& row, const char* text) {
    return std::find(row.assumed.begin(), row.assumed.end(), text) != row.assumed.end();
  };
  const auto& [a, b, d, f] = std::tie(validation.rows[0], validation.rows[1], validation.rows[2], validation.rows[3]);
  CHECK(a.metric == "samples_per_second");
  CHECK(b.predicted > 0);
  CHECK(study_of(d, "precision fp32")); // what frameworks train models of images in
  constexpr double kImages = 1281167;
  CHECK(d.measured == near(3600 / (kImages / 64)));
  CHECK(f.metric == "mean_device_watts");
  // One device that computes all the time: convolutions at 244 W, the most that it draws, and kernels that its memory
  // bounds at 0.7 of what is above 39 W.
  CHECK(f.predicted > 39 + 0.7 * (244 - 39));
  CHECK(f.predicted < 244);
  REQUIRE(validation.skipped.size() == 2);
  CHECK_THAT(validation.skipped[0].why, Contains("the architecture of 'ResNet-51'"));
  CHECK_THAT(validation.skipped[1].why, Contains("how many samples an epoch of its data set has is not known"));
}

// The study's model, or why there is none.
std::string model_of(const std::string& name) {
  const auto rows = read_truth(table_of("case,model,layers,hidden,gpu,num_gpus,micro_batch,global_batch,metric,unit,"
                                        "value\na,\"" +
                                        name + "\",6,1024,v100,1,8,8,iteration_seconds,s,1\n"));
  const auto study = truth_study(rows.front(), kRoot);
  if (const auto* refused = std::get_if<Infeasible>(&study)) {
    return refused->reason;
  }
  const yaml::Node document = yaml::parse(std::get<TruthStudy>(study).text, "a");
  const yaml::Node& model = *document.find("model");
  return model.kind == yaml::Node::Kind::scalar ? model.text : model.find("workload")->find("name")->text;
}

TEST_CASE("models have the names that tables give them", "[validate][truth]") {
  const std::pair<const char*, const char*> names[] = {{"ResNet-18", "resnet18"},
                                                       {"ResNet-152 v1.5", "resnet152"},
                                                       {"ResNeXt101-32x4d (PyTorch)", "resnext101-32x4d"},
                                                       {"SE-ResNeXt101-32x4d", "se-resnext101-32x4d"},
                                                       {"EfficientNet-B4", "efficientnet-b4"},
                                                       {"MobileNet v2", "mobilenet-v2"},
                                                       {"GoogLeNet", "inception-v1"},
                                                       {"VGG-13", "vgg13"},
                                                       {"Wide ResNet-50", "wide-resnet50"},
                                                       {"wide_resnet101_2", "wide-resnet101"},
                                                       {"ViT-B/16", "vit-base"},
                                                       {"ViT-L/16 (JAX)", "vit-large"},
                                                       {"SSD300 v1.1", "ssd300-v1.1"},
                                                       {"U-Net Medical", "u-net-medical"},
                                                       {"UNet Medical (TF2)", "u-net-medical"},
                                                       {"U-Net (5,64)", "u-net-5-64"},
                                                       {"AmoebaNet-D (18,256)", "amoebanet-d-18-256"},
                                                       {"AmoebaNet-D (18, 416)", "amoebanet-d-18-416"},
                                                       {"GNMT v2", "gnmt-v2"},
                                                       {"GNMT", "gnmt"},
                                                       {"Transformer (big)", "transformer-big"},
                                                       {"Transformer", "transformer-big"},
                                                       {"Transformer (PyTorch)", "transformer-big"},
                                                       {"RoBERTa-large", "roberta-large"},
                                                       {"DistilBERT", "distilbert"},
                                                       {"T5-base", "t5-base"},
                                                       {"BART-large", "bart-large"},
                                                       {"BART", "bart-large"},
                                                       {"bert-large-uncased", "bert-large"},
                                                       {"NCF", "ncf-movielens-20m"},
                                                       {"Nemotron 3 Super (hybrid)", "nemotron-3-super"},
                                                       {"Nemotron 3.5 Lightning (hybrid)", "nemotron-3.5-lightning"},
                                                       {"Jasper", "jasper-10x5"},
                                                       {"Jasper 10x5", "jasper-10x5"}};
  for (const auto& [name, workload] : names) {
    INFO(name);
    CHECK(model_of(name) == workload);
  }
}

// Sizes in parentheses, and words that follow, make another model of the same name.
TEST_CASE("a name of a model that is not shipped is no other model's", "[validate][truth]") {
  for (const char* name : {"U-Net (6,72)", "U-Net Industrial", "3D U-Net", "nnU-Net", "AmoebaNet-D (36,544)", "SSD300",
                           "Mask R-CNN", "Tacotron 2", "WaveGlow", "FastPitch", "DLRM", "DLRM-DCNv2", "ELECTRA-base",
                           "Transformer (small)", "EfficientNet-B7", "ResNet-51", "RetinaNet", "Stable Diffusion"}) {
    INFO(name);
    CHECK_THAT(model_of(name), Contains("the architecture of '" + std::string(name) + "'"));
  }
}

TEST_CASE("a shipped mixture is shared as the row says, though that states no experts", "[validate][truth]") {
  const auto text = [](const std::string& model) {
    const auto rows = read_truth(table_of("case,source,model,gpu,num_gpus,expert_parallel,micro_batch,global_batch,"
                                          "metric,unit,value\na,Megatron-Bridge," +
                                          model + ",gb200,64,64,1,512,iteration_seconds,s,1\n"));
    return std::get<TruthStudy>(truth_study(rows.front(), kRoot)).text;
  };
  CHECK_THAT(text("Nemotron 3 Super"), Contains("    expert: 64\n"));
  CHECK_THAT(text("BERT-large"), !Contains("    expert: "));
}

// Its performance recipes have the flexible dispatcher since then.
TEST_CASE("tokens reach experts by HybridEP in Megatron-Bridge from 26.02 on", "[validate][truth]") {
  const auto text = [](const std::string& table) {
    const auto rows = read_truth(table_of("case,source,table,model,gpu,num_gpus,expert_parallel,micro_batch,"
                                          "global_batch,metric,unit,value\na,Megatron-Bridge," +
                                          table + ",Qwen3 30B-A3B,h100,8,8,1,512,iteration_seconds,s,1\n"));
    return std::get<TruthStudy>(truth_study(rows.front(), kRoot)).text;
  };
  CHECK_THAT(text("26.02 NeMo Container"), Contains("token_dispatcher: hybridep"));
  CHECK_THAT(text("26.04.01 NeMo Container"), Contains("token_dispatcher: hybridep"));
  CHECK_THAT(text("25.11 NeMo Container"), !Contains("token_dispatcher"));
  CHECK_THAT(text("version 126.02"), !Contains("token_dispatcher"));
}

TEST_CASE("tokens reach experts by the kernels that a row names", "[validate][truth]") {
  const auto text = [](const std::string& note) {
    const auto rows = read_truth(table_of("case,source,model,gpu,num_gpus,expert_parallel,micro_batch,global_batch,"
                                          "metric,unit,value,note\na,NeMo Automodel,Qwen3 30B-A3B,h100,8,8,1,512,"
                                          "iteration_seconds,s,1," +
                                          note + "\n"));
    return std::get<TruthStudy>(truth_study(rows.front(), kRoot)).text;
  };
  CHECK_THAT(text("kernels=TE + DeepEP"), Contains("token_dispatcher: deepep"));
  CHECK_THAT(text("HybridEP"), Contains("token_dispatcher: hybridep"));
  CHECK_THAT(text("kernels=TE"), !Contains("token_dispatcher"));
}

TEST_CASE("a name of NVIDIA's examples is the model that they have under it", "[validate][truth]") {
  const auto text = [](const std::string& source, const std::string& model) {
    const auto rows = read_truth(table_of("case,source,model,gpu,num_gpus,micro_batch,global_batch,metric,unit,value\n"
                                          "a," +
                                          source + "," + model + ",v100,1,8,8,iteration_seconds,s,1\n"));
    const auto study = truth_study(rows.front(), kRoot);
    const auto* made = std::get_if<TruthStudy>(&study);
    return made == nullptr ? std::get<Infeasible>(study).reason : made->text;
  };
  CHECK_THAT(text("NVIDIA DeepLearningExamples", "SSD"), Contains("model: ssd300-v1.1"));
  CHECK_THAT(text("Liu et al. 2016", "SSD"), Contains("the architecture of 'SSD'"));
  CHECK_THAT(text("NVIDIA DeepLearningExamples", "GNMT"), Contains("gnmt-v2"));
  CHECK_THAT(text("PipeDream", "GNMT"), !Contains("gnmt-v2"));
}

// Of a model that reads an input and an output a row states the length of one.
TEST_CASE("a sequence of half a sample is one of its two sides", "[validate][truth]") {
  const auto study = [](const char* model, int tokens) {
    const auto rows =
        read_truth(table_of("case,model,seq_len,gpu,num_gpus,micro_batch,global_batch,metric,unit,value\na," +
                            std::string(model) + "," + std::to_string(tokens) + ",v100,1,8,8,iteration_seconds,s,1\n"));
    return std::get<TruthStudy>(truth_study(rows.front(), kRoot)).text;
  };
  CHECK_THAT(study("T5-large", 512), Contains(R"("input": {"shape": ["1024"]})"));
  CHECK_THAT(study("GNMT v2", 50), Contains(R"("input": {"shape": ["100"]})"));
  CHECK_THAT(study("T5-base", 256), Contains(R"("input": {"shape": ["256"]})"));    // which reads the input twice
  CHECK_THAT(study("BERT-large", 256), Contains(R"("input": {"shape": ["256"]})")); // which slices, but not its input
}

// The data set's own workload goes first, and its samples make an epoch.
TEST_CASE("a row's data set chooses the workload and the samples of an epoch", "[validate][truth]") {
  const std::string header = "case,model,gpu,num_gpus,micro_batch,global_batch,metric,unit,value,note\n";
  const auto rows = read_truth(table_of(header + "a,ResNet50,v100,1,64,64,epoch_seconds,s,10,dataset=cifar10; x\n" +
                                        "b,ncf,v100,1,64,64,epoch_seconds,s,10,dataset=movielens-1m; optimizer=Adam\n"
                                        "c,resnet50,v100,1,64,64,epoch_seconds,s,10,dataset=imagenet\n"
                                        "d,bert_base_uncased,v100,1,8,8,epoch_seconds,s,10,dataset=squad\n"
                                        "e,bert_base_uncased,v100,1,8,8,iteration_seconds,s,10,\n"));
  REQUIRE(rows.size() == 5);
  const auto named = read_truth(table_of(header + "a,Transformer-XL Large model,v100,1,8,8,iteration_seconds,s,1,\n"));
  CHECK_THAT(std::get<TruthStudy>(truth_study(named[0], kRoot)).text, Contains("\"name\": \"transformer-xl-large\""));
  const auto study = [](const TruthRow& row) { return std::get<TruthStudy>(truth_study(row, kRoot)).text; };
  CHECK_THAT(study(rows[0]), Contains("model: resnet50-cifar10\n"));
  CHECK_THAT(study(rows[1]), Contains("model: ncf-movielens-1m\n"));
  CHECK_THAT(study(rows[2]), Contains("model: resnet50\n"));
  CHECK_THAT(study(rows[3]), Contains("\"name\": \"bert-base-squad\""));
  CHECK_THAT(study(rows[4]), Contains("\"name\": \"bert-base\"")); // of no data set: pre-training
  CHECK(rows[0].value == near(10 * 64.0 / 50000));
  CHECK(rows[3].value == near(10 * 8.0 / 88524));
  CHECK(rows[1].value == near(10 * 64.0 / (994169 * 5)));      // each positive with four that are not rated
  CHECK_THAT(study(rows[0]), Contains("optimizer: momentum")); // nothing stated, of images
  CHECK_THAT(study(rows[1]), Contains("optimizer: adam"));
  // Drawn by the host before each epoch, 2.38 us each: of 4 for each of 994,169 a batch of 64 has 64 * 4/5.
  CHECK_THAT(study(rows[1]), Contains("step_overhead: 121.856000 us"));
}

// PyTorch's convolutions use TF32 where there is any, and its products did until version 1.12; large language models
// are trained in bf16, before there was any in fp16.
TEST_CASE("a row without a precision has what its framework leaves it at", "[validate][truth]") {
  const std::string header = "case,source,model,layers,hidden,heads,seq_len,gpu,num_gpus,micro_batch,global_batch,"
                             "metric,unit,value\n";
  struct Expected {
    const char *row, *precision;
  };
  for (const auto& [row, precision] : {
           Expected{",resnet50,,,,,v100", "fp32"},
           Expected{",resnet50,,,,,a40-48gb", "tf32"},
           Expected{"Zeus,bert-base,,,,,v100", "fp32"},
           Expected{"Zeus,bert-base,,,,,a40-48gb", "tf32"},
           Expected{"Zeus,deepspeech2,,,,,a40-48gb", "tf32"},
           Expected{",gpt,4,512,8,512,v100", "fp16"},
           Expected{",gpt,4,512,8,512,a40-48gb", "bf16"},
       }) {
    INFO(row);
    const auto rows = read_truth(table_of(header + "a," + row + ",1,8,8,iteration_seconds,s,1\n"));
    const auto study = std::get<TruthStudy>(truth_study(rows.at(0), kRoot));
    CHECK_THAT(study.text, Contains(std::string("  precision: ") + precision + "\n"));
    CHECK_THAT(join(study.assumed), Contains(std::string("precision ") + precision));
  }
}

// SeanNaren/deepspeech.pytorch, configs/librispeech.yaml: `precision: 16`.
TEST_CASE("Deep Speech 2 trains on LibriSpeech in 16 bits", "[validate][truth]") {
  const auto rows =
      read_truth(table_of("case,source,model,gpu,num_gpus,micro_batch,global_batch,metric,unit,value,note\n"
                          "a,Zeus,deepspeech2,a40-48gb,1,8,8,epoch_seconds,s,10,dataset=librispeech\n"));
  CHECK_THAT(std::get<TruthStudy>(truth_study(rows.at(0), kRoot)).text, Contains("  precision: fp16\n"));
}

TEST_CASE("a row's optimiser is that of its states", "[validate][truth]") {
  const std::string header = "case,model,gpu,num_gpus,micro_batch,global_batch,metric,unit,value,note\n";
  const auto rows = read_truth(table_of(header + "a,resnet50,v100,1,64,64,iteration_seconds,s,1,optimizer=adadelta\n" +
                                        "b,resnet50,v100,1,64,64,iteration_seconds,s,1,optimizer=muon\n"));
  CHECK_THAT(std::get<TruthStudy>(truth_study(rows[0], kRoot)).text, Contains("optimizer: adam")); // two states
  CHECK_THAT(std::get<Infeasible>(truth_study(rows[1], kRoot)).reason, Contains("the optimizer 'muon'"));
}

// The clocks of four device types rest on how much limits below the highest slow ShuffleNetV2 down.
TEST_CASE("runs that clocks under a cap and the speed of a host rest on are no test of them", "[validate][truth]") {
  const std::string header = "case,model,gpu,num_gpus,micro_batch,global_batch,metric,unit,value,note\n";
  const auto row = [](const char* name, const char* model, const char* limit) {
    return std::string(name) + "," + model +
           ",v100,1,64,64,epoch_seconds,s,10,dataset=cifar100; power_limit_W=" + limit + "\n";
  };
  const Validation validation = validated(header + row("a", "shufflenetv2", "250") + row("b", "shufflenetv2", "100") +
                                          row("c", "resnet50", "100"));
  REQUIRE(validation.rows.size() == 1);
  CHECK(validation.rows[0].case_name == "c");
  REQUIRE(validation.calibration.size() == 2);
  CHECK(validation.calibration[0].case_name == "a");
  CHECK(validation.calibration[1].case_name == "b");
}

TEST_CASE("power that a device's constants rest on is not scored", "[validate][truth]") {
  const Validation validation =
      validated("case,model,gpu,num_gpus,global_batch,precision,metric,unit,value,note\n"
                "a,shufflenetv2-cifar100,v100,1,1024,fp32,average_power,W,195,power_limit_W=250\n"
                "b,resnet50,v100,1,64,fp32,average_power,W,223,power_limit_W=250\n");
  REQUIRE(validation.rows.size() == 1);
  CHECK(validation.rows[0].case_name == "b");
  REQUIRE(validation.calibration.size() == 1);
  CHECK(validation.calibration[0].case_name == "a");
}

TEST_CASE("a device under a power limit is slower and draws no more", "[validate][truth]") {
  const auto rows = validated("case,model,gpu,num_gpus,global_batch,precision,metric,unit,value,note\n"
                              "a,resnet50,v100,1,64,fp32,iteration_seconds,s,0.2,\n"
                              "b,resnet50,v100,1,64,fp32,iteration_seconds,s,0.2,power_limit_W=250\n"
                              "c,resnet50,v100,1,64,fp32,iteration_seconds,s,0.4,power_limit_W=100\n"
                              "d,resnet50,v100,1,64,fp32,average_power,W,100,power_limit_W=100\n")
                        .rows;
  REQUIRE(rows.size() == 4);
  CHECK(rows[1].predicted == rows[0].predicted); // its own limit
  CHECK(rows[2].predicted > 1.3 * rows[0].predicted);
  CHECK(rows[3].predicted > 39 + 0.7 * (100 - 39)); // as kernels that its memory bounds
  CHECK(rows[3].predicted < 100);
}

TEST_CASE("malformed rows are located errors", "[validate][truth]") {
  const auto error = [](const std::string& lines) { return error_of([&] { validated(lines); }); };
  const std::string good = line("a", "iteration_seconds", "s,1");
  CHECK_THAT(error(kHeader + good + good), Contains("made-up.csv:3:") && Contains("'a' is there twice"));
  CHECK_THAT(error(kHeader + line("a", "iteration_seconds", "fortnights,1")),
             Contains("made-up.csv:2:") && Contains("'fortnights' is no unit of iteration_seconds") && Contains("ms"));
  CHECK_THAT(error(kHeader + line("a", "iteration_seconds", "s,soon")), Contains("made-up.csv:2:"));
  CHECK_THAT(error(kHeader + line("a", "iteration_seconds", "s,inf")), Contains("made-up.csv:2:"));
  CHECK_THAT(error(kHeader + "a,b,c\n"), Contains("made-up.csv:2:"));
  CHECK_THAT(error(kHeader + line("a", "iteration_seconds", "s,-1")), Contains("made-up.csv:2:"));
}

// Of a table with these columns beside a value.
std::string refusal_of(const std::string& column, const std::string& cell) {
  return error_of([&] {
    validated("case,model,gpu,global_batch,metric,unit,value," + column + "\na,GPT,H100,8,iteration_seconds,s,1," +
              cell + "\n");
  });
}

TEST_CASE("cells that cannot be what their column is are located errors", "[validate][truth]") {
  for (const char* column : {"tensor_parallel", "pipeline_parallel", "data_parallel", "nodes", "num_gpus",
                             "gpus_per_node", "layers", "hidden", "heads", "seq_len"}) {
    CAPTURE(column);
    CHECK_THAT(refusal_of(column, "0"), Contains("made-up.csv:2:36: '0' is not allowed; allowed: an integer in [1, "));
  }
  CHECK_THAT(refusal_of("micro_batch", "2147483648"), Contains(":2:36: '2147483648' is out of range; allowed: 1 to "));
  CHECK_THAT(refusal_of("vocab", "-4"), Contains(":2:36: '-4' is not allowed"));
  CHECK_THAT(refusal_of("note", "power_limit_W=abc"),
             Contains(":2:36: 'power_limit_W=abc' states no number; allowed: power_limit_W=N, "));
  CHECK_THAT(refusal_of("note", "dataset=imagenet; power_limit_W=-5"), Contains("'power_limit_W=-5' states no number"));
  CHECK_THAT(refusal_of("note", "accumulated batch per GPU: 0"), Contains("states no number"));
  CHECK_THAT(refusal_of("note", std::string(10'001, 'a')),
             Contains(":2:36: note has 10001 characters; allowed: at most 10000"));
  const auto figure = [](const std::string& words) { return error_of([&] { validated(kHeader + words); }); };
  CHECK_THAT(figure(line("a", "mfu_percent", "%,200")), Contains("'mfu_percent' is 200 %; allowed: 0 to 100 %"));
  CHECK_THAT(figure(line("a", "mfu", "fraction,43")), Contains("is 43; allowed: 0 to 1, and up to 100 of the unit %"));
  CHECK_THAT(figure(line("a", "out_of_memory", "bool,2")), Contains("'out_of_memory' is 2; allowed: 1 where"));
  CHECK_THAT(figure(line(std::string("o\0k", 3), "iteration_seconds", "s,1")),
             Contains("made-up.csv:2:1: the case 'o\\x00k' has a control character in its name"));
}

TEST_CASE("a rounded vocabulary states none", "[validate][truth]") {
  const auto study = [](const char* words) {
    return study_of("case,model,layers,hidden,heads,seq_len,gpu,num_gpus,global_batch,metric,unit,value,vocab\n"
                    "a,GPT,2,512,8,128,H100,1,8,iteration_seconds,s,1," +
                    std::string(words) + "\n");
  };
  for (const char* rounded : {"50k", "128k", "128K", "~50000", "0.1k"}) {
    CAPTURE(rounded);
    CHECK_THAT(study(rounded), Contains("vocabulary: 50257")); // GPT-2's
  }
  CHECK_THAT(study("1024 (padded)"), Contains("vocabulary: 1024"));
}

TEST_CASE("a device without measured exchanges takes a node's bandwidth", "[validate][truth]") {
  const std::string row = "case,model,layers,hidden,heads,seq_len,gpu,num_gpus,global_batch,metric,unit,value\n"
                          "a,GPT,2,512,8,128,H20,8,8,iteration_seconds,s,1\n";
  CHECK_THAT(study_of(row), Contains("h20-sxm-96gb") && !Contains("measured_at"));
}

// Of 6 FLOPs a parameter and token a forward has 2.
TEST_CASE("the baseline of a forward counts a forward", "[validate][truth]") {
  const auto roofline = [](const std::string& metric, const std::string& note) {
    const Validation validation =
        validated("case,model,layers,hidden,heads,seq_len,gpu,num_gpus,global_batch,metric,unit,value,note\n"
                  "a,GPT,2,512,8,128,A100,1,8," +
                  metric + ",s,1," + note + "\n");
    return validation.baselines.at("roofline").front().predicted;
  };
  CHECK(roofline("iteration_seconds", "forward only") == near(roofline("iteration_seconds", "") / 3));
  // A forward's own figure is a part of the run already.
  CHECK(roofline("forward_seconds", "forward only") == near(roofline("forward_seconds", "")).epsilon(0.2));
}

TEST_CASE("cells that are no numbers are reasons", "[validate][truth]") {
  for (const char* words : {"nan", "four"}) {
    const Validation validation = validated("case,model,gpu,global_batch,metric,unit,value,vocab\n"
                                            "a,GPT,H100,8,iteration_seconds,s,1," +
                                            std::string(words) + "\n");
    REQUIRE(validation.skipped.size() == 1);
    CHECK(validation.skipped.front().why == "vocab is '" + std::string(words) + "', which is no whole number");
    CHECK(validation.skipped.front().metric == "iteration_seconds");
    CHECK(validation.skipped.front().group == "made-up");
  }
}

TEST_CASE("flags that mean nothing are located errors, or said", "[validate][truth]") {
  const fs::path table = table_of(kHeader + line("a", "iteration_seconds", "s,0.1"), "flagged/t.csv");
  const auto refusal = [&](const std::string& flags) {
    write_file(table.parent_path() / "flags.csv", flags);
    return error_of([&] { validate(table, {.shipped = kRoot}); });
  };
  CHECK_THAT(refusal("case,recompute\na,full\na,none\n"), Contains("flags.csv:3:1: case 'a' is there twice"));
  CHECK_THAT(refusal("case,recompte\na,full\n"), Contains("unknown column 'recompte'; did you mean 'recompute'?"));
  CHECK_THAT(refusal("case,vp\na,-3\n"), Contains("flags.csv:2:3: '-3' is not allowed; allowed: an integer in [1, "));
  // Words that a later table may have are said, as are cases of tables that are not here; other columns are ignored.
  const auto said = [&](const std::string& flags) {
    write_file(table.parent_path() / "flags.csv", flags);
    const Validation validation = validate(table, {.shipped = kRoot});
    REQUIRE(validation.rows.size() == 1);
    return join(validation.rows.front().assumed) + join(validation.notes);
  };
  CHECK_THAT(said("case,fsdp\na,maybe\n"), Contains("fsdp 'maybe' of flags.csv, which is not known here"));
  CHECK_THAT(said("case,tp_comm_overlap\na,yes\n"), Contains("tp_comm_overlap 'yes' of flags.csv"));
  CHECK_THAT(said("case,recompute\na,none\nz,full\n"),
             Contains("no table beside it has 1 case of its own, such as 'z'"));
  CHECK_THAT(said("case,measured by\na,somebody\n"), !Contains("flags.csv"));
  // Cases of another table in the folder, and of a table that is not here.
  table_of(kHeader + line("b", "iteration_seconds", "s,0.1"), "flagged/u.csv");
  write_file(table.parent_path() / "flags.csv", "case,recompute,vp\na,none,n/a\nb,full,2\n");
  CHECK(validate(table, {.shipped = kRoot}).rows.size() == 1);
  write_file(table.parent_path() / "flags.csv", "case,file,recompute\nz,elsewhere.csv,none\na,t.csv,none\n");
  CHECK(validate(table, {.shipped = kRoot}).rows.size() == 1);
}

TEST_CASE("several tables are predicted as a folder of them is, each once", "[validate][truth]") {
  const fs::path one = table_of(kHeader + line("a", "iteration_seconds", "s,0.1"), "one.csv");
  const fs::path two = table_of(kHeader + line("b", "iteration_seconds", "s,0.2"), "two.csv");
  const auto names = [](const std::vector<fs::path>& paths) {
    std::string all;
    for (const ValidationRow& row : validate(paths, {.shipped = kRoot}).rows) {
      all += row.group + " " + row.case_name + " " + to_digits(row.predicted, 6) + "\n";
    }
    return all;
  };
  CHECK(names({one}) + names({two}) == names({one, two}));
  CHECK_THAT(error_of([&] { names({one, two, one}); }), Contains("one.csv: the table is given twice"));
  CHECK_THAT(error_of([&] { names({one, one.parent_path()}); }), Contains("given twice"));
  CHECK_THAT(error_of([&] { names({one, kRoot / "README.md"}); }), Contains("README.md: no table of measured runs"));
  CHECK_THAT(error_of([&] { names({one, "no-such.csv"}); }), Contains("no-such.csv: no such file"));
}

TEST_CASE("filters choose rows by their columns", "[validate][truth]") {
  const fs::path table = table_of(kHeader + line("a", "iteration_seconds", "s,0.1") +
                                  line("b", "iteration_seconds", "s,0.1", "h100-80gb-sxm"));
  const auto cases = [&](const std::string& column, const std::string& text) {
    std::string names;
    for (const ValidationRow& row : validate(table, {.shipped = kRoot, .filters = {{column, text}}}).rows) {
      names += row.case_name;
    }
    return names;
  };
  CHECK(cases("gpu", "H100") == "b");
  CHECK(cases("model", "gpt") == "ab");
  CHECK(cases("model", "llama").empty());
  CHECK_THAT(error_of([&] { cases("modle", "gpt"); }), Contains("--filter") && Contains("model"));
}

// Oracle's script captures graphs of layers. What another table says is believed, unless it was read in another folder.
TEST_CASE("flags read in files of another run give way to what a run's own script says", "[validate][truth]") {
  const fs::path table =
      table_of("case,source,table,model,gpu,metric,unit,value,global_batch\n"
               "a,MLPerf Training v5.0 results (Oracle/results/x),config_8x8x1xtp1pp1cp8.sh,Llama2 70B LoRA,b200-sxm,"
               "iteration_seconds,s,1,8\n",
               "flagged.csv");
  const auto graphs = [&](const std::string& confidence) {
    write_file(table.parent_path() / "flags.csv",
               "case,file,cuda_graphs,confidence\na,flagged.csv,none," + confidence + "\n");
    const std::string flag = read_truth(table).front().flag("cuda_graphs");
    fs::remove(table.parent_path() / "flags.csv");
    return flag;
  };
  CHECK(graphs("exact") == "none");
  CHECK(graphs("\"same release, other folder\"") == "mcore: per layer");
}

TEST_CASE("settings change the study of each row", "[validate][truth]") {
  const fs::path table = table_of(kHeader + line("a", "iteration_seconds", "s,0.1"));
  const auto predicted = [&](const std::vector<Setting>& settings) {
    return validate(table, {.shipped = kRoot, .settings = settings}).rows.front().predicted;
  };
  CHECK(predicted({{"training.step_overhead", "3 s"}}) == near(predicted({{"training.step_overhead", "0 s"}}) + 3));
}

TEST_CASE("no model that a recipe rests on is scored", "[validate][truth]") {
  const Folders folders{.study = {}, .shipped = kRoot};
  std::string lines = kHeader;
  int models = 0;
  for (const std::string& name : shipped_names(folders, "workloads/frameworks")) {
    for (const CalibratedModel& model :
         read_framework(yaml::load(find_file(folders, "workloads/frameworks", name, {}))).calibrated_on) {
      if (model.architecture == "gpt") {
        lines += line("calibrated-" + std::to_string(models++), "iteration_seconds", "s,1", "a100-80gb-sxm",
                      "GPT of a recipe," + std::to_string(model.layers) + "," + std::to_string(model.hidden) + "," +
                          std::to_string(model.heads));
      }
    }
  }
  REQUIRE(models >= 3);
  const Validation validation = validated(lines + line("other", "iteration_seconds", "s,1"));
  REQUIRE(validation.rows.size() == 1);
  CHECK(validation.rows.front().case_name == "other");
  CHECK(validation.calibration.size() == static_cast<std::size_t>(models));
}

TEST_CASE("runs that were measured several times say how alike measurements are", "[validate][truth]") {
  // Each is predicted by the median of the others: 1.21 / 1 - 1, 1.105 / 1.1 - 1 and 1.05 / 1.21 - 1.
  const Validation validation =
      validated(kHeader + line("a", "iteration_seconds", "s,1") + line("b", "iteration_seconds", "s,1.1") +
                line("c", "iteration_seconds", "s,1.21"));
  std::vector<double> errors = {1.155 / 1 - 1, 1.105 / 1.1 - 1, 1 - 1.05 / 1.21};
  std::sort(errors.begin(), errors.end());
  CHECK(validation.noise.at("made-up") == near(errors[1]));
  CHECK_THAT(to_text(validation, false),
             Contains("measured again, apart") && Contains(percent(validation.noise.at("made-up"), 2)));
  const Validation once = validated(kHeader + line("a", "iteration_seconds", "s,1"));
  CHECK_THAT(to_text(once, false), !Contains("measured again"));
}

// A line of what somebody handed in to a round of MLPerf.
std::string handed_in(const std::string& name, const std::string& who, const std::string& seconds,
                      const std::string& round = "v5.0") {
  std::string row = line(name, "iteration_seconds", "s," + seconds);
  const std::string paper = "Some Megatron-LM paper";
  return row.replace(row.find(paper), paper.size(),
                     "MLPerf Training " + round + " results (" + who + "/results/x at 1234567)");
}

TEST_CASE("one plan that several hand in to a round is measured several times", "[validate][truth]") {
  const std::string one = kHeader + handed_in("a", "Dell", "1");
  CHECK(validated(one + handed_in("b", "NVIDIA", "1.1")).noise.at("made-up") == near((0.1 + 0.1 / 1.1) / 2));
  CHECK(validated(one + handed_in("b", "NVIDIA", "1.1", "v4.1")).noise.empty()); // another year's software
}

TEST_CASE("a figure that a source states twice is one measurement", "[validate][truth]") {
  const std::string twice = kHeader + line("a", "iteration_seconds", "s,1") + line("b", "iteration_seconds", "s,1");
  CHECK(validated(twice).noise.empty());
  CHECK(validated(twice + line("c", "iteration_seconds", "s,1.1")).noise.at("made-up") == near((0.1 + 0.1 / 1.1) / 2));
}

// Predictions of 1 by models whose measurements are exp(score), all of one family.
std::vector<ScoredPrediction> predictions(const std::vector<double>& scores, const std::string& front = "model ",
                                          const std::string& narrow = "narrow") {
  std::vector<ScoredPrediction> made;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    made.push_back({front + std::to_string(i), {narrow, "wide"}, std::exp(scores[i]), 1});
  }
  return made;
}

TEST_CASE("nine other models bound a prediction by the worst of them, eight do not", "[validate][intervals]") {
  const auto ten = intervals_of(predictions({.1, -.2, .3, .4, .5, .6, .7, .8, .9, 5}));
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(ten[i].models == 9);
    CHECK(ten[i].high == near(std::exp(5.0))); // 9 of 10 with its own
    CHECK(ten[i].low == near(std::exp(-5.0)));
  }
  CHECK(ten[9].high == near(std::exp(.9)));
  const auto nine = intervals_of(predictions({.1, .2, .3, .4, .5, .6, .7, .8, .9}));
  CHECK(nine.front().models == 0);
  CHECK(std::isinf(nine.front().high));
}

TEST_CASE("nineteen other models leave one out", "[validate][intervals]") {
  std::vector<double> scores;
  for (int i = 1; i <= 20; ++i) {
    scores.push_back(i / 10.0);
  }
  // Without its own, 18 of 19 have 18 / 20 = 90 % of the weight. Of .2 to 2.0 the 18th is 1.9, over the mean of the
  // other 18, (20.9 - 1.9) / 18, times the mean of all 19, 20.9 / 19.
  CHECK(intervals_of(predictions(scores)).front().high == near(std::exp(1.9 / (19.0 / 18) * (20.9 / 19))));
}

TEST_CASE("a model weighs the same, however many rows it has", "[validate][intervals]") {
  auto made = predictions({.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1});
  made.push_back({"model 19", {"narrow", "wide"}, std::exp(3.0), 1});
  made.push_back({"model 19", {"narrow", "wide"}, std::exp(3.0), 1});
  const double before = intervals_of(made).front().high;
  for (int copies = 0; copies < 100; ++copies) { // of one of the twenty, whose median they do not change
    made.push_back({"model 19", {"narrow", "wide"}, std::exp(3.0), 1});
  }
  CHECK(intervals_of(made).front().high == near(before));
}

TEST_CASE("a family that is predicted better has a narrower interval, without looking at the model itself",
          "[validate][intervals]") {
  // Sixteen models are off by .1 and eight others by .4.
  auto made = predictions(std::vector<double>(16, .1), "good ", "close");
  const auto others = predictions(std::vector<double>(8, .4), "bad ", "far");
  made.insert(made.end(), others.begin(), others.end());
  const auto intervals = intervals_of(made);
  // Of "close" without one: fifteen of .1, and two of the mean of all 23 others.
  const double close = (15 * .1 + 2 * ((15 * .1 + 8 * .4) / 23)) / 17;
  // 22 of 23 others have 22 / 24 of the weight, so a far one counts: .4 over its spread without itself and the
  // predicted model.
  const double likely = .4 / ((7 * .4 + 2 * ((15 * .1 + 7 * .4) / 22)) / 9);
  CHECK(std::log(intervals.front().high) == near(likely * close));
  CHECK(intervals.front().family == "close");
  CHECK(intervals.front().high < intervals.back().high);
  auto wrong = made;
  wrong.front().measured = std::exp(2.0); // its own error is no argument
  CHECK(intervals_of(wrong).front().high == near(intervals.front().high));
}

TEST_CASE("families of few models in all are not told apart", "[validate][intervals]") {
  auto made = predictions(std::vector<double>(8, .1), "good ", "close");
  const auto others = predictions(std::vector<double>(4, .4), "bad ", "far");
  made.insert(made.end(), others.begin(), others.end());
  CHECK(intervals_of(made).front().family == "wide");
  CHECK(error_families_of(made).size() == 1);
}

TEST_CASE("a family of one table is not kept in a file for machines that no table has", "[validate][intervals]") {
  auto made = predictions(std::vector<double>(20, .1), "good ", "close");
  const auto others = predictions(std::vector<double>(20, .4), "bad ", "far");
  made.insert(made.end(), others.begin(), others.end());
  const auto names = [&] {
    std::vector<std::string> found;
    for (const ErrorFamily& family : error_families_of(made)) {
      found.push_back(family.name);
    }
    return found;
  };
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i].table = i < 20 ? "one" : i % 2 == 0 ? "two" : "three";
  }
  CHECK(names() == std::vector<std::string>{"far", "wide"});
  CHECK(intervals_of(made).front().family == "close"); // of a row of that table it tells
}

TEST_CASE("a family of one or two models has the interval of the wider one", "[validate][intervals]") {
  auto made = predictions({.1, .1, .1, .1, .1, .1, .1, .1, .1, .1});
  made.push_back({"rare", {"rare", "wide"}, 1, 2});
  CHECK(intervals_of(made).back().family == "wide");
  CHECK(intervals_of(made).back().models == 10);
  CHECK(intervals_of(made).back().high == near(2 * std::exp(.1)));
}

TEST_CASE("families with enough models are kept in a file, and read as written", "[validate][intervals]") {
  std::vector<double> scores;
  for (int i = 1; i <= 20; ++i) {
    scores.push_back(i / 20.0);
  }
  auto made = predictions(scores);
  made.push_back({"rare", {"rare", "wide"}, std::exp(.525), 1});
  const std::vector<ErrorFamily> families = error_families_of(made);
  REQUIRE(families.size() == 2); // "rare" has one model
  CHECK(families[0].name == "narrow");
  CHECK(families[0].models == 20);
  // All means are .525. Of 21 models 20 have 20 / 22 of the weight: that of .95 counts, over the spread without it, 19
  // models that sum up to 10.5 - .95, and two of the mean of these and "rare".
  const double without = (9.55 + 2 * ((9.55 + .525) / 20)) / 21;
  CHECK(families[0].factor == near(std::exp(.95 / without * .525)));
  CHECK(families[0].median == near(1 - (std::exp(-.5) + std::exp(-.55)) / 2));
  CHECK(families[1].name == "wide");
  CHECK(families[1].rows == 21);
  const std::vector<ErrorFamily> read = read_error_families(yaml::parse(error_families_text(families), "f.yaml"));
  REQUIRE(read.size() == 2);
  CHECK(read[0].name == "narrow");
  CHECK(read[0].factor == Approx(families[0].factor).epsilon(1e-3)); // four digits
  CHECK_THAT(error_of([] {
               read_error_families(yaml::parse("families: [{name: a, models: 9, rows: 9, factor: 0.9, "
                                               "median: 0.1}]",
                                               "f.yaml"));
             }),
             Contains("f.yaml:1:") && Contains("factor") && Contains("1 to 1e6"));
}

TEST_CASE("a comparison by a framework's recipe says where measurements of runs like it lie", "[validate][intervals]") {
  const auto compared = [](const std::string& framework) {
    const std::string text = "model: gpt2\nplatform: dgx-a100\ntraining: {global_batch: 8, micro_batch_size: 1, "
                             "precision: bf16, parallel: {tensor: 1, pipeline: 1}" +
                             framework + "}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n";
    return compare_text(text).comparison;
  };
  const Comparison with = compared(", framework: megatron-lm-2022");
  const Run& run = with.runs.front();
  REQUIRE(run.expected);
  const std::vector<ErrorFamily> shipped =
      read_error_families(yaml::load(kRoot / "platforms/errors/measured-runs.yaml"));
  const auto family = narrowest_family(shipped, {.framework = "megatron-lm-2022"});
  REQUIRE(family);
  CHECK(run.expected->family == family->name);
  CHECK(run.expected->high.value == near(run.metrics.iteration.value * family->factor));
  CHECK(run.expected->low.value == near(run.metrics.iteration.value / family->factor));
  const auto of_memory = narrowest_family(shipped, {.time = false, .framework = "megatron-lm-2022"});
  REQUIRE((of_memory && run.expected_memory));
  const std::vector<Bytes>& peaks = run.metrics.peak_memory;
  const Bytes most = *std::max_element(peaks.begin(), peaks.end());
  CHECK(run.expected_memory->peak.value == most.value);
  CHECK(run.expected_memory->high.value == near(most.value * of_memory->factor));
  CHECK(run.expected_memory->low.value == near(most.value / of_memory->factor));
  CHECK_THAT(join(with.verdict), Contains("Its fullest device, ") && Contains("which fits"));
  // One without has the range of predictions that no recipe made slower, round their centre.
  const Run plain = compared("").runs.front();
  const auto beside = narrowest_family(shipped_error_families(kFolders, false), {});
  REQUIRE((plain.expected && beside));
  CHECK(plain.expected->low.value == near(plain.metrics.iteration.value * beside->centre / beside->factor));
  CHECK(plain.expected->high.value == near(plain.metrics.iteration.value * beside->centre * beside->factor));
  CHECK_THAT(plain.expected->family, Contains("without a framework"));
  CHECK_FALSE(plain.expected_memory); // what an allocator holds is a recipe's to say
}

// Four stages idle 3 / (M + 3) of the time: little between 16 and 17 micro-batches, nearly half between 2 and 17.
TEST_CASE("a lead is too close to call below half of what such predictions are off by", "[validate][intervals]") {
  const auto compared = [](const std::string& counts) {
    return compare_text("model: gpt2\nplatform: dgx-a100\ntraining: {global_batch: 544, micro_batches: [" + counts +
                        "], precision: bf16, parallel: {tensor: 1, pipeline: 4}, framework: megatron-lm-2022}\n"
                        "compare: {strategies: [mesh], schedules: [1f1b]}\n")
        .comparison;
  };
  for (const bool close : {true, false}) {
    const Comparison comparison = compared(close ? "17, 16, 2" : "17, 2, 1");
    REQUIRE((comparison.runs.size() == 3 && comparison.runs[0].expected));
    const double lead = comparison.runs[1].metrics.iteration / comparison.runs[0].metrics.iteration - 1;
    CHECK((lead < comparison.runs[0].expected->median / 2) == close);
    CHECK((join(comparison.verdict).find("too close to call") != std::string::npos) == close);
  }
}

TEST_CASE("on devices whose kernels nobody measured a run may be further off", "[validate][intervals]") {
  const auto run_on = [](const std::string& platform, const std::string& precision = "bf16") {
    return compare_text("model: gpt2\nplatform: " + platform +
                        "\ntraining: {global_batch: 8, micro_batch_size: 1, precision: " + precision +
                        ", framework: megatron-lm-2025, parallel: {tensor: 1, pipeline: 1}}\n"
                        "compare: {strategies: [mesh], schedules: [1f1b]}\n")
        .comparison.runs.front();
  };
  const Run measured = run_on("dgx-h100"), rated = run_on("mi300x-8");
  const Run derived =
      run_on("\n  name: own\n  nodes:\n    - name: box\n      host: {cores: 8, core_speed: 30 GFLOP/s, memory: "
             "64 GB, memory_bandwidth: 100 GB/s, disk_bandwidth: 1 GB/s, power: {idle: 100 W, core_busy: "
             "4 W, core_spin: 2 W}}\n      devices: [{type: quadro-rtx-6000-24gb, count: 2}]\n      links: "
             "[{kind: pcie-switch, devices: all, bandwidth: 12 GB/s, latency: 5 us}]",
             "fp16");
  REQUIRE((measured.expected && derived.expected && rated.expected));
  const auto factor_of = [](const Run& run) { return run.expected->high / run.metrics.iteration; };
  CHECK_THAT(measured.expected->family, !Contains("nobody measured"));
  for (const Run* other : {&derived, &rated}) { // the fits of a V100, which has more multiprocessors; no fits
    CHECK_THAT(other->expected->family, Contains("on devices whose kernels nobody measured"));
    CHECK(factor_of(*other) > factor_of(measured));
  }
  // Of memory no kernel tells.
  CHECK(rated.expected_memory->family == measured.expected_memory->family);
  CHECK(families_of({.time = false, .measured_device = false}) == families_of({.time = false}));
}

// GPT-2's products and its attention over all pairs before a token, three times, on eight A100 of 312 TFLOP/s.
TEST_CASE("a device of which nothing but the peak is known may take twice as long", "[validate][intervals]") {
  const auto run_of = [](const std::string& efficiency) {
    return compare_text(
               "model: gpt2\nplatform:\n  name: own\n  device_types:\n    - {name: own-96gb, vendor: own, origin: "
               "catalogue, memory: 96 GB, memory_bandwidth: 4 TB/s, launch_overhead: 3 us, power: {idle: 70 W, "
               "busy: 400 W}, peak: {fp32: 44 TFLOP/s, bf16: 148 TFLOP/s}, vector: 44 TFLOP/s" +
               efficiency +
               "}\n  nodes:\n    - name: box\n      host: {cores: 8, core_speed: 30 GFLOP/s, memory: 64 GB, "
               "memory_bandwidth: 100 GB/s, disk_bandwidth: 1 GB/s, power: {idle: 100 W, core_busy: 4 W, "
               "core_spin: 2 W}}\n      devices: [{type: own-96gb, count: 2}]\n      links: [{kind: "
               "nvswitch, devices: all, bandwidth: 450 GB/s, latency: 5 us}]\n"
               "training: {global_batch: 64, micro_batches: 1, precision: bf16}\n"
               "compare: {strategies: [data-parallel], schedules: [gpipe]}\n")
        .comparison.runs.front();
  };
  const Run nominal = run_of(""), stated = run_of(", efficiency: {matmul: 0.8}");
  const auto family = narrowest_family(shipped_error_families(kFolders, false), {.measured_device = false});
  REQUIRE((family && nominal.expected && stated.expected));
  CHECK(stated.expected->high.value == near(stated.metrics.iteration.value * family->centre * family->factor));
  CHECK(nominal.expected->high.value == near(2 * nominal.metrics.iteration.value * family->centre * family->factor));
  CHECK_THAT(nominal.expected->family, Contains("no 'efficiency' says what share of its peak own-96gb reaches"));
  CHECK_THAT(stated.expected->family, !Contains("efficiency"));
}

TEST_CASE("no range reaches below what products take at the nominal peak", "[validate][intervals]") {
  const Run run = compare_text("model: gpt2\nplatform: dgx-a100\ntraining: {global_batch: 64, micro_batches: 1, "
                               "precision: bf16}\ncompare: {strategies: [data-parallel], schedules: [gpipe]}\n")
                      .comparison.runs.front();
  constexpr double kLayers = 12, kHidden = 768, kWords = 50257, kTokens = 1024, kBatch = 64;
  constexpr double kWeights = 12 * kLayers * kHidden * kHidden + kWords * kHidden, kPairs = kTokens * (kTokens + 1) / 2;
  constexpr double kSample = 3 * (2 * kWeights * kTokens + 2 * 2 * kLayers * kPairs * kHidden);
  REQUIRE(run.expected);
  CHECK(run.expected->low.value == near(kBatch * kSample / (8 * 312e12)));
  CHECK(run.expected->low < run.lower_bound);
}

} // namespace
} // namespace stagecraft::test
