// Figures of measured runs that need more than their own run: shares, verdicts, whole trainings, and what rows leave
// open. The tables here are made up; docs/formats/truth.md.
// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/convergence.hpp"
#include "sim/validate/truth/open_cells.hpp"
#include "sim/validate/truth/study/truth_device.hpp"
#include "sim/validate/truth/study/truth_study.hpp"
#include "sim/validate/validators.hpp"
#include "tests/error_of.hpp"
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

using Catch::Contains;

const std::string kColumns = "case,source,model,layers,hidden,heads,seq_len,vocab,gpu,gpus_per_node,nodes,"
                             "tensor_parallel,sequence_parallel,pipeline_parallel,virtual_stages,micro_batch,"
                             "global_batch,precision,schedule,recompute,metric,unit,value,note\n";

fs::path figures_table(const std::string& lines) {
  const fs::path folder = fs::temp_directory_path() / ("stagecraft-figures-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  write_file(folder / "figures.csv", lines);
  return folder / "figures.csv";
}

Validation validated_figures(const std::string& lines) {
  return validate(figures_table(kColumns + lines), {.shipped = kRoot});
}

// Korthikanti et al. 2023, table 2, per layer and in units of s b h bytes: 10 + 24/t + 5 a s/(h t) by tensor
// parallelism, (34 + 5 a s/h)/t with sequence parallelism, 10 + 24/t without attention's middle. With a = 16, s = h =
// 1024 and t = 8 that is 23, 14.25 and 13; 2 where all runs again. Embedding and head are no part of it.
TEST_CASE("activations as a share of those by tensor parallelism alone", "[validate][truth]") {
  const auto row = [](const std::string& name, const std::string& sequence, const std::string& recompute) {
    return name + ",Korthikanti et al. 2023,GPT small,48,1024,16,1024,1024,a100-80gb-sxm,8,1,8," + sequence +
           ",1,1,4,4,fp16,none," + recompute + ",activation_memory_share,percent of tensor-parallel baseline,50,\n";
  };
  const Validation validation = validated_figures(row("base", "false", "none") + row("shared", "true", "none") +
                                                  row("less", "false", "selective") + row("all", "false", "full"));
  REQUIRE(validation.skipped.size() == 1); // the base is 100 % of itself whatever is predicted
  CHECK(validation.skipped.front().case_name == "base");
  CHECK(validation.skipped.front().why == "it is the run that others are compared with");
  REQUIRE(validation.rows.size() == 3);
  CHECK(validation.rows[0].measured == near(0.5));
  CHECK(validation.rows[0].predicted == near(14.25 / 23).epsilon(0.001));
  CHECK(validation.rows[1].predicted == near(13. / 23).epsilon(0.001));
  CHECK(validation.rows[2].predicted == near(2. / 23).epsilon(0.001));
  CHECK(validation.rows[0].high == 0); // errors of bytes do not bound a share
}

// 16 billion parameters with Adam on a device of 80 GB, and a model of two small layers.
TEST_CASE("a run that was measured fitted, and one that ran out of memory did not", "[validate][truth]") {
  const auto row = [](const std::string& name, const std::string& sizes, const std::string& figure) {
    return name + ",Some Megatron-LM paper,GPT," + sizes + ",128,1024,a100-80gb-sxm,8,1,1,,1,,1,8,bf16,,none," +
           figure + "\n";
  };
  const std::string large = "20,8192,64", small = "2,512,8";
  const Validation validation = validated_figures(
      row("a", small, "iteration_seconds,s,1,") + row("b", small, "peak_memory,GiB,1,") + // the same run as a
      row("c", large, "iteration_seconds,s,1,") + row("d", "24,8192,64", "out_of_memory,bool,1,") +
      row("e", "4,512,8", "out_of_memory,bool,1,") + row("f", "6,512,8", "out_of_memory,bool,0,") +
      row("g", "28,8192,64", "forward_seconds,s,1,forward only") + // holds less than a training would
      row("h", "32,8192,64", "activation_memory,GiB,1,"));         // may have been computed
  const VerdictCounts counts = count_verdicts(validation.verdicts);
  CHECK(counts.runs == 5);
  CHECK(counts.right == 3);           // a, d, f
  CHECK(counts.fitted_only == 1);     // c
  CHECK(counts.predicted_only == 1);  // e
  CHECK(validation.rows.size() == 5); // verdicts have no error
  CHECK(validation.skipped.empty());
  const std::string json = to_json(validation);
  CHECK_THAT(json, Contains("\"which_runs_fit\"") && Contains("\"fitted_though_predicted_not_to\": 1"));
  CHECK_THAT(to_text(validation, false), Contains("which runs fit"));
}

// Four stages of a layer each, the last with a head of 50,304 words, which takes longer than any layer.
TEST_CASE("a stage's pass is the middle stage's, and a run's the longest", "[validate][truth]") {
  const auto forward = [](const std::string& stages, const std::string& figure) {
    const Validation validation =
        validated_figures("a,Some Megatron-LM paper,GPT,4,1024,16,1024,50304,a100-80gb-sxm," + stages + ",1,1,," +
                          stages + ",,16,64,bf16,,none," + figure + ",1,\n");
    REQUIRE(validation.rows.size() == 1);
    return validation.rows.front().predicted;
  };
  const double longest = forward("4", "forward_seconds,s"), middle = forward("4", "stage_forward_ms,s");
  CHECK(middle > 0);
  CHECK(longest > 1.5 * middle);
  CHECK(forward("1", "stage_forward_ms,s") == near(forward("1", "forward_seconds,s")));
}

// One device, so no communicators: tensors fit into 99 % of 80 GiB less 551 MB. Peak memory is of tensors alone.
TEST_CASE("a run fits with what a process holds beside tensors, into what programs see of the memory",
          "[validate][truth]") {
  std::string rows;
  std::vector<std::string> layers;
  for (int count = 300; count <= 420; count += 5) {
    layers.push_back(std::to_string(count));
    for (const char* const figure : {"peak_memory,GiB,1,", "out_of_memory,bool,1,"}) {
      rows += layers.back() + figure[0] + ",Some Megatron-LM paper,GPT," + layers.back() +
              ",1024,16,128,1024,a100-80gb-sxm,1,1,1,,1,,1,1,bf16,,none," + figure + "\n";
    }
  }
  const Validation validation = validated_figures(rows);
  REQUIRE(validation.rows.size() == layers.size());
  REQUIRE(validation.verdict_rows.size() == layers.size());
  constexpr double kRoom = 0.99 * 80 * 1024 * 1024 * 1024 - 551e6;
  int fit = 0;
  for (std::size_t at = 0; at < layers.size(); ++at) {
    CAPTURE(layers[at], validation.rows[at].predicted);
    CHECK(validation.verdict_rows[at].predicted == (validation.rows[at].predicted <= kRoom));
    fit += validation.verdict_rows[at].predicted ? 1 : 0;
  }
  CHECK(fit > 0);
  CHECK(fit < static_cast<int>(layers.size()));
}

TEST_CASE("a run on a device of unknown memory tells nothing of whether it fits", "[validate][truth]") {
  const auto open = [](const std::string& gpu) {
    TruthRow row;
    row.gpu = gpu;
    return leaves_memory_open(row, kRoot);
  };
  CHECK(open("a100-sxm"));
  CHECK(open("NVIDIA V100"));
  CHECK_FALSE(open("a100-80gb-sxm"));
  CHECK_FALSE(open("gb200"));
  CHECK_FALSE(open("h200-141gb-sxm")); // there is one h200-sxm
}

TruthRow mlperf_row(const std::string& model, int batch) {
  TruthRow row;
  row.source = "MLPerf Training v5.0 results";
  row.model = model;
  row.global_batch = batch;
  return row;
}

TEST_CASE("what the source says amiss of a row is refused where it stands, or listed", "[validate][truth]") {
  const auto row = [](const std::string& gpu, const std::string& figure) {
    return "a,Some Megatron-LM paper,GPT,2,512,8,128,1024," + gpu + ",8,1,1,,1,,1,8,bf16,,none," + figure + "\n";
  };
  const Validation open = validated_figures(row("a100-sxm", "out_of_memory,bool,1,"));
  CHECK(open.verdicts.empty());
  REQUIRE(open.skipped.size() == 1);
  CHECK(open.skipped.front().why == "how much memory 'a100-sxm' has is open");
  CHECK_THAT(
      test::error_of([&] { validated_figures(row("a100-80gb-sxm", "bubble_fraction_from_profile,fraction,1.5,")); }),
      Contains("'bubble_fraction_from_profile' is 1.5; allowed: 0 to 1"));
  // A word of a note begins where nothing stands before it: an optimizer "true" is none.
  const Validation noted =
      validated_figures(row("a100-80gb-sxm", "iteration_seconds,s,1,distributed_optimizer=true; optimizer=adam"));
  CHECK(noted.rows.size() == 1);
}

// A row of one node whose forward alone was measured says nothing of whether a training fits.
TEST_CASE("a forward that was measured is no training that fitted", "[validate][truth]") {
  const Validation validation =
      validated_figures("a,Some Megatron-LM paper,GPT,2,512,8,128,1024,a100-80gb-sxm,1,1,1,,1,"
                        ",8,8,bf16,,none,forward_seconds,s,1,\n");
  CHECK(validation.rows.size() == 1);
  CHECK(validation.verdicts.empty());
}

// Batch 32: 6037 1/3 samples, 128: 11264. 48 is a sixth of the way. Of the evaluations every 384 samples, which 48
// divides, the first 0.125 x 48 + 2 = 8 are left out.
TEST_CASE("a benchmark converges after as many samples as its reference does", "[validate][truth]") {
  const auto length = [](const std::string& model, int batch) {
    return std::get<TrainingLength>(training_length(mlperf_row(model, batch)));
  };
  const TrainingLength between = length("Llama2 70B LoRA", 48);
  CHECK(between.samples == near(18112. / 3 + (11264 - 18112. / 3) / 6));
  CHECK(between.evaluations == near(between.samples / 384 - 8));
  CHECK(between.evaluated == 173);
  CHECK_THAT(between.assumed, Contains("converges after 6908 samples"));
  CHECK(length("Llama2 70B LoRA", 128).samples == 11264);
  // Every 12288 samples, of which 36 make 342 iterations of 12312; none is left out.
  const TrainingLength pretrained = length("Llama3.1 8B", 36);
  CHECK(pretrained.evaluations == near(pretrained.samples / 12312));
  // Every step; every 46,080 samples in the round 5.0, later every 18,432, of which the first 2304 * 0.0026 + 12 are
  // left out.
  CHECK(length("DeepSeek-V3 671B", 16384).evaluations == near(765952. / 16384));
  CHECK(length("Llama3.1 405B", 2304).evaluations == near(380160. / 46080));
  TruthRow later = mlperf_row("Llama3.1 405B", 2304);
  later.source = "MLPerf Training v5.1 results";
  CHECK(std::get<TrainingLength>(training_length(later)).evaluations == near(368640. / 18432 - 17));
  CHECK(length("GPT-3 175B", 2048).samples == near(1177760563.2 / 2048));
  for (const int batch : {4, 256}) { // beyond the reference's
    CHECK_THAT(std::get<Infeasible>(training_length(mlperf_row("Llama2 70B LoRA", batch))).reason,
               Contains("not published for a batch of " + std::to_string(batch)));
  }
  CHECK_THAT(std::get<Infeasible>(training_length(mlperf_row("T5", 64))).reason, Contains("is not published"));
}

// 100 iterations of 4 s, 3 of which are passes, a third of them forward; five evaluations of 20 samples, three
// iterations of 8 each.
TEST_CASE("a whole training is its iterations and its evaluations", "[validate][truth]") {
  const TrainingLength length{.samples = 800, .evaluations = 5, .evaluated = 20, .batch = 8, .assumed = {}};
  const PredictedRun run{.iteration = 4, .forward = 0.1, .backward = 0.15, .weight = 0.05, .update = 1};
  CHECK(seconds_to_train(length, run) == near(100 * 4 + 5 * 3 * 1));
}

TEST_CASE("a time to train is shown beside the score", "[validate][truth]") {
  const std::string run =
      ",MLPerf Training v5.0 results,Llama2 70B LoRA,2,512,8,128,1024,h100-80gb-sxm,8,1,1,,1,,1,8,bf16,"
      ",none,";
  const std::string table = "case,source,model,layers,hidden,heads,seq_len,vocab,gpu,gpus_per_node,nodes,"
                            "tensor_parallel,sequence_parallel,pipeline_parallel,virtual_stages,micro_batch,"
                            "global_batch,precision,schedule,recompute,metric,unit,value,note,ffn_hidden\n"
                            "a" +
                            run + "iteration_seconds,s,1,,1024\nb" + run + "time_to_train_seconds,s,1,,1024\n";
  const Validation validation = validate(figures_table(table), {.shipped = kRoot});
  REQUIRE(validation.rows.size() == 2);
  const auto& [iteration, training] = std::tie(validation.rows[0], validation.rows[1]);
  CHECK(training.beside);
  CHECK(training.predicted > 28608. / 9 / 8 * iteration.predicted); // and evaluations
  CHECK(training.predicted < 2 * 28608. / 9 / 8 * iteration.predicted);
  CHECK_THAT(to_json(validation),
             Contains("\"beside\": true") &&
                 Contains("\"mape\": " + std::to_string(std::abs(iteration.error())).substr(0, 6)));
}

// Two stages of equal layers: of M + 1 turns M are busy.
TEST_CASE("a bubble is compared by the time that is none", "[validate][truth]") {
  const Validation validation =
      validated_figures("a,Zero Bubble,GPT small,16,2048,16,1024,128,a100-80gb-sxm,2,1,1,,2,1,4,32,fp16,1f1b,none,"
                        "bubble_fraction_from_profile,fraction,0.12,\n"
                        "b,Zero Bubble,GPT small,16,2048,16,1024,128,a100-80gb-sxm,2,1,1,,2,1,4,32,fp16,1f1b,none,"
                        "stage_communication_ms,ms,1,\n");
  REQUIRE(validation.rows.size() == 2);
  CHECK(validation.rows[0].metric == "busy_share");
  CHECK(validation.rows[0].measured == near(1 - 0.12));
  CHECK(validation.rows[0].predicted == near(8. / 9).epsilon(0.02));
  // 4 x 1024 x 2048 numbers of two bytes over a link of 250 to 300 GB/s, and the recipe's hand-over.
  constexpr double kBytes = 4. * 1024 * 2048 * 2, kHandOver = 500e-6;
  CHECK(validation.rows[1].predicted > kHandOver + kBytes / 300e9);
  CHECK(validation.rows[1].predicted < kHandOver + kBytes / 200e9);
}

std::string study_text(const std::string& line) {
  return std::get<TruthStudy>(truth_study(read_truth(figures_table(kColumns + line)).front(), kRoot)).text;
}

TEST_CASE("two stages more than layers are those of the embedding and the head", "[validate][truth]") {
  const auto study = [](const std::string& layers) {
    return study_text(
        "a,Zero Bubble,GPT small," + layers +
        ",512,8,128,128,a100-80gb-sxm,8,1,1,,4,2,1,8,fp16,interleaved-1f1b,none,iteration_seconds,s,1,\n");
  };
  CHECK_THAT(study("6"), Contains("interleave: 2\n    layers: \"E|(t|)*6L\"\n"));
  CHECK_THAT(study("8"), Contains("interleave: 2\n") && !Contains("layers: \""));
  const auto study_by = [](const char* schedule, int layers, int pipeline) {
    return study_text("a,Zero Bubble,GPT small," + std::to_string(layers) + ",512,8,128,128,a100-80gb-sxm,8,1,1,," +
                      std::to_string(pipeline) + ",,1,8,fp16," + schedule + ",none,iteration_seconds,s,1,\n");
  };
  CHECK_THAT(study_by("zb-v", 6, 4), Contains("layers: \"E|(t|)*6L\"\n")); // two stages of each rank
  CHECK_THAT(study_by("1f1b", 6, 8), Contains("layers: \"E|(t|)*6L\"\n"));
  CHECK_THAT(study_by("1f1b", 6, 4), !Contains("layers: \""));
}

TEST_CASE("a peak without a batch is of a pipeline that is full", "[validate][truth]") {
  const auto row = [](const std::string& pipeline, const std::string& figure) {
    return "a,Zero Bubble,GPT small,8,512,8,128,128,a100-80gb-sxm,8,1,1,," + pipeline + ",1,3,,fp16,1f1b,none," +
           figure + "\n";
  };
  // Four micro-batches of each of four ranks, of 3 samples, in 2 replicas.
  CHECK_THAT(study_text(row("4", "peak_memory,GiB,1,")), Contains("global_batch: 96\n"));
  for (const std::string& text : {row("1", "peak_memory,GiB,1,"), row("4", "iteration_seconds,s,1,")}) {
    const Validation validation = validated_figures(text);
    REQUIRE(validation.skipped.size() == 1);
    CHECK(validation.skipped.front().why == "the row states no global batch");
  }
}

TEST_CASE("cells that a row leaves open are its recipe's, and widen the interval", "[validate][truth]") {
  TruthRow row;
  row.source = "NVIDIA-NeMo/Megatron-Bridge skills";
  row.model = "Qwen3 30B-A3B";
  TruthRow stated = row, other = row;
  const FilledCells filled = fill_open_cells(row);
  CHECK(row.sizes.sequence == 4096);
  CHECK(row.global_batch == 32);
  CHECK(row.micro_batch == 2);
  REQUIRE(filled.others.size() == 1);
  CHECK(filled.others.front().global_batch == 8);
  CHECK(filled.others.front().micro_batch == 1);
  CHECK_THAT(filled.assumed, Contains("4096 tokens") && Contains("32 samples") && Contains("spans 8"));
  stated.global_batch = 64; // only the length is open
  CHECK(fill_open_cells(stated).others.empty());
  CHECK(stated.global_batch == 64);
  other.model = "GPT 1B";
  CHECK(fill_open_cells(other).assumed.empty());
  CHECK(other.sizes.sequence == 0);

  const Validation validation =
      validate(figures_table(
                   "case,source,model,layers,hidden,heads,kv_heads,ffn_hidden,experts,experts_active,moe_ffn,vocab,gpu,"
                   "num_gpus,gpus_per_node,tensor_parallel,pipeline_parallel,expert_parallel,micro_batch,global_batch,"
                   "precision,recompute,metric,unit,value\n"
                   "a,Megatron-Bridge,Qwen3 30B-A3B,2,512,8,8,1024,8,2,256,1024,h100-80gb-sxm,8,8,1,1,8,,,bf16,"
                   "none,iteration_seconds,s,1\n"),
               {.shipped = kRoot});
  REQUIRE(validation.rows.size() == 1);
  const ValidationRow& wide = validation.rows.front();
  const auto family =
      narrowest_family(shipped_error_families(kFolders), {.mixture = true, .framework = "megatron-bridge"});
  REQUIRE(family);
  CHECK(wide.low < 0.9 * wide.predicted / family->factor); // 8 samples take less than 32
  CHECK(wide.high == near(wide.predicted * family->factor));
}

TEST_CASE("metrics of which the source says too little have their reason", "[validate][truth]") {
  const Validation validation = validated_figures(
      "a,GPipe,GPT small,2,512,8,128,128,p100,8,1,1,,2,1,1,8,fp32,gpipe,none,throughput normalized to K=2 M=1,x,1,\n");
  REQUIRE(validation.skipped.size() == 1);
  CHECK(validation.skipped.front().why == "the metric 'throughput normalized to K=2 M=1' is not predicted: its batch, "
                                          "which the authors fitted to memory, is not published");
}

// A run of which all blocks run again takes longer, and less than 4/3 as long as one where nothing does: one forward
// more beside a forward and a backward of twice its time.
TEST_CASE("a run by a training framework that states no recompute may have recomputed all blocks",
          "[validate][truth]") {
  const auto row_of = [](const std::string& source, const std::string& recompute) {
    const Validation validation = validate(
        figures_table("case,source,model,layers,hidden,heads,seq_len,vocab,gpu,gpus_per_node,nodes,tensor_parallel,"
                      "pipeline_parallel,micro_batch,global_batch,precision,recompute,metric,unit,value\n"
                      "a," +
                      source + ",GPT small,8,2048,16,2048,50304,a100-80gb-sxm,8,1,1,1,2,16,bf16," + recompute +
                      ",iteration_seconds,s,1\n"),
        {.shipped = kRoot});
    REQUIRE(validation.rows.size() == 1);
    return validation.rows.front();
  };
  const ValidationRow open = row_of("Megatron-LM paper", ""), none = row_of("Megatron-LM paper", "none"),
                      full = row_of("Megatron-LM paper", "full"), script = row_of("PyTorch script", "");
  CHECK(open.predicted == near(none.predicted));
  CHECK(open.low == near(none.low));
  CHECK(open.high == near(full.high));
  CHECK(full.predicted > 1.1 * none.predicted);
  CHECK(full.predicted < 4.0 / 3 * none.predicted);
  CHECK_THAT(join(open.assumed), Contains("its interval spans a run whose blocks all run again"));
  CHECK_THAT(join(none.assumed), !Contains("run again"));
  CHECK_THAT(join(script.assumed), !Contains("run again"));
}

} // namespace
} // namespace stagecraft::test
