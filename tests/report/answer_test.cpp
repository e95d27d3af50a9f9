// The answer card of each kind of result, findings by what they change, the plan on its machines, and what changed
// between two results.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>

#include "sim/report/page/documents.hpp"
#include "sim/report/page/finding.hpp"
#include "sim/report/page/json_document.hpp"
#include "sim/report/page/plan_picture.hpp"
#include "sim/report/page/strategy_colors.hpp"
#include "sim/report/page/sweep/sweep_page.hpp"
#include "sim/report/page/sweep/sweep_scale.hpp"
#include "sim/strategy/strategy.hpp"
#include "tests/catch.hpp"

using namespace stagecraft;
using nlohmann::json;

namespace {

// A run on two GPUs of 16 GiB, one stage each, that takes `seconds`.
json run_on_two(const std::string& strategy, double seconds) {
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  return {{"strategy", strategy},
          {"schedule", "1f1b"},
          {"order", "1f1b"},
          {"engine", "simgrid"},
          {"micro_batches", 4},
          {"devices", {"n0/v100-sxm2-16gb-0", "n1/v100-sxm2-16gb-0"}},
          {"unused_devices", json::array()},
          {"feasible", true},
          {"iteration_seconds", seconds},
          {"samples_per_second", 32 / seconds},
          {"tokens_per_second", 32 * 1000 / seconds},
          {"tokens_per_device_second", 16 * 1000 / seconds},
          {"mfu", 0.5},
          {"speedup", 1.5},
          {"utilization", {0.5, 0.75}},
          {"exposed_communication_seconds", {0.1 * seconds, 0.05 * seconds}},
          {"peak_memory_bytes", {12 * kGibibyte, 4 * kGibibyte}},
          {"lower_bound_seconds", 1.0},
          {"over_bound", seconds - 1},
          {"usd_per_million_samples", 90 * seconds},
          {"stages",
           {{{"devices", {"n0/v100-sxm2-16gb-0"}}, {"operators", {"a"}}, {"seconds", 0.1}},
            {{"devices", {"n1/v100-sxm2-16gb-0"}}, {"operators", {"b"}}, {"seconds", 0.2}}}}};
}

json setting() {
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  const json link = {{"from", "host"}, {"to", "fabric"}, {"bytes_per_second", 12.5e9}, {"count", 2}};
  return {
      {"program", "9.9"},
      {"model", {{"parameters", 1.5e9}}},
      {"training", {{"global_batch", 32}, {"precision", "bf16"}, {"optimizer", "adam"}}},
      {"platform",
       {{"types", {{{"name", "v100-sxm2-16gb"}, {"vendor", "nvidia"}, {"count", 2}, {"memory_bytes", 16 * kGibibyte}}}},
        {"nodes",
         {{{"names", {"n0", "n1"}},
           {"devices", {{{"type", "v100-sxm2-16gb"}, {"count", 1}}}},
           {"links", json::array()}}}},
        {"network", {link}}}}};
}

json comparison() {
  json unfit = run_on_two("data-parallel", 1);
  unfit["feasible"] = false;
  unfit["iteration_seconds"] = nullptr;
  unfit["why_not"] = "stage 0 on 'a' needs 20.00 GiB, 4.000 GiB more than its 16.00 GiB";
  unfit["would_fit"] = "recompute: full";
  return {{"schema", "stagecraft/1"}, {"model", "m"},
          {"platform", "p"},          {"global_batch", 32},
          {"rank", "exact"},          {"verdict", {"the verdict"}},
          {"setting", setting()},     {"runs", {run_on_two("optimal", 1.25), run_on_two("uniform", 1.5), unfit}}};
}

DocumentPage page_of(const json& document) { return read_document("x.json", document.dump()); }

std::string figure_of(const Answer& answer, const std::string& name) {
  for (const AnswerFigure& figure : answer.figures) {
    if (figure.name == name) {
      return figure.value + " | " + figure.detail;
    }
  }
  return "";
}

std::string basis_of(const Answer& answer, const std::string& name) {
  for (const AnswerBasis& basis : answer.basis) {
    if (basis.name == name) {
      return basis.value;
    }
  }
  return "";
}

} // namespace

TEST_CASE("a comparison's card says in one sentence what to do, how fast it is, and what does not fit",
          "[report][answer]") {
  const Answer answer = page_of(comparison()).answer;
  CHECK(answer.sentence == "Train m on these 2 GPUs as a pipeline of 2 stages: 1.250 s per step, 1.5 times the fastest "
                           "single GPU, 25 % from the proven limit; data-parallel does not fit into memory.");
  CHECK(figure_of(answer, "Time per step") == "1.250 s | 32 samples");
  CHECK(figure_of(answer, "Tokens per second") == "25,600 | 12,800 per device"); // 32 000 / 1.25, of two devices
  CHECK(figure_of(answer, "MFU") == "50.0 % | of the devices' peak reaches the model");
  CHECK(figure_of(answer, "Memory left") == "25 % | 4.000 GiB of 16.00 GiB on the fullest device"); // 12 of 16 in use
  // A million samples cost 112.50 USD at 1 000 tokens each: a billion tokens, in 1e9 / 25 600 s; an hour takes
  // 92 160 samples.
  CHECK(figure_of(answer, "A billion tokens") == "112.50 USD | in 10.9 hours; 10.37 USD per hour");
  CHECK(basis_of(answer, "Model") == "m, 1.5 billion parameters");
  CHECK(basis_of(answer, "Training") == "bf16, adam");
  CHECK(basis_of(answer, "Batch") == "32 samples in 4 micro-batches");
  CHECK(basis_of(answer, "Made by") == "Stagecraft 9.9, engine simgrid");
}

TEST_CASE("a card says how sure the winner is, by what is known of errors", "[report][answer]") {
  json document = comparison();
  CHECK(
      page_of(document).answer.sure.starts_with("The next, uniform under 1f1b with 4 micro-batches, takes 20 % longer. "
                                                "How far off the time may be is not known"));
  const auto expect = [&](double median) {
    document["runs"][0]["expected"] = {
        {"low_seconds", 1}, {"high_seconds", 2}, {"family", "pipelines"}, {"models", 5}, {"median_error", median}};
    return page_of(document).answer;
  };
  // 20 % apart: less than half of a median error of 50 %, more than half of one of 30 %.
  CHECK(expect(0.5).sure.starts_with("Too close to call between optimal under 1f1b with 4 micro-batches and uniform"));
  CHECK(expect(0.3).sure.starts_with("The next, uniform under 1f1b"));
  CHECK(figure_of(expect(0.3), "Time per step") == "1.250 s | 1.000 s to 2.000 s in nine of ten measured runs");
  CHECK(expect(0.3).sure.find("Half of the predictions for pipelines were within 30 %") != std::string::npos);
  document["runs"][0]["expected_memory"] = {{"low_bytes", 1 << 30}, {"high_bytes", 3 << 29}, {"have_bytes", 1 << 30}};
  CHECK(
      expect(0.3).sure.ends_with("Its fullest device would need 1.000 GiB to 1.500 GiB of 1.000 GiB nine times out of "
                                 "ten."));
  document["runs"][0].erase("expected");
  document["runs"][0]["confidence"] = {{"best", 0.6}, {"iteration_seconds", {{"p5", 1.2}, {"p95", 1.3}}}};
  CHECK(page_of(document).answer.sure.starts_with("Too close to call between optimal"));
  document["runs"][0]["confidence"]["best"] = 0.95;
  CHECK(page_of(document).answer.sure.find("the winner stays the fastest in 95 %") != std::string::npos);
}

TEST_CASE("findings come by what they change, and none repeats the card", "[report][answer]") {
  CHECK(ranked_sentences({{1, "a"}, {3, "b"}, {1, "c"}, {2, "d"}}) == std::vector<std::string>{"b", "d", "a", "c"});
  json document = comparison();
  document["runs"][1]["usd_per_million_samples"] = 50; // of 112.50
  const std::vector<std::string> findings = page_of(document).sections.at(0).sentences;
  REQUIRE(findings.size() == 3);
  CHECK(findings[0] == "Cheapest is uniform under 1f1b with 4 micro-batches: 56 % less than the fastest (50.00 USD "
                       "against 112.50 USD), at 20.0 % more time.");
  CHECK(findings[1] ==
        "Planning pays: cut into equal parts (uniform under 1f1b) a step takes 1.500 s, 1.20 times as long.");
  CHECK(findings[2] == "1 of 3 runs do not fit or cannot run; the least that makes one fit: data-parallel under 1f1b, "
                       "with recompute: full.");
}

TEST_CASE("where nothing fits the card says so and why", "[report][answer]") {
  json document = comparison();
  document["runs"] = {document["runs"][2]};
  const Answer answer = page_of(document).answer;
  CHECK(answer.sentence == "Nothing that was tried trains m on p: stage 0 on 'a' needs 20.00 GiB, 4.000 GiB more than "
                           "its 16.00 GiB; would fit with recompute: full.");
  CHECK(answer.sure.empty());
}

TEST_CASE("on one device there is nothing to divide, and what is as fast is no gain", "[report][answer]") {
  json document = comparison();
  json alone = document["runs"][0];
  alone["devices"] = {"a"};
  json uniform = alone;
  uniform["strategy"] = "uniform";
  document["runs"] = {alone, uniform};
  const DocumentPage page = page_of(document);
  CHECK(page.answer.sentence.starts_with("Train m on this one GPU: 1.250 s per step"));
  for (const PageSection& section : page.sections) {
    for (const std::string& sentence : section.sentences) {
      CHECK(sentence.find("Planning pays") == std::string::npos);
    }
  }
}

TEST_CASE("of what makes runs fit the least is named, and one reason of all of them once", "[report][answer]") {
  json document = comparison();
  json run = document["runs"][2];
  document["runs"] = json::array();
  for (const char* change : {"5.982 TiB more memory per device", "644.6 GiB more memory per device"}) {
    run["would_fit"] = change;
    document["runs"].push_back(run);
  }
  const auto finds = [&](const std::string& text) {
    for (const PageSection& section : page_of(document).sections) {
      for (const std::string& sentence : section.sentences) {
        if (sentence.find(text) != std::string::npos) {
          return true;
        }
      }
    }
    return false;
  };
  CHECK(page_of(document).answer.sure.starts_with("The first, "));
  CHECK(finds("the least that makes one fit: data-parallel under 1f1b, with 644.6 GiB more memory"));
  run["would_fit"] = "recompute: full"; // costs no device
  document["runs"].push_back(run);
  CHECK(finds("the least that makes one fit: data-parallel under 1f1b, with recompute: full"));
  document["runs"] = {document["runs"][0], document["runs"][0]};
  CHECK(page_of(document).answer.sentence.ends_with("would fit with 5.982 TiB more memory per device."));
}

TEST_CASE("more than five sentences are folded, and a copy of an input is shown as it is", "[report][answer]") {
  Page page{.title = "t"};
  page.sections = {{.title = "s", .sentences = {"one", "two", "three", "four", "five", "six"}}};
  page.inputs = {{.text = "a.yaml", .file = "./a.yaml", .copy = "key: <b>\nnext: \x1b\n"}};
  const std::string html = to_html(page);
  const std::size_t fold = html.find("<summary>1 more</summary>");
  REQUIRE(fold != std::string::npos);
  CHECK(html.find("<li>five</li>") < fold);
  CHECK(html.find("<li>six</li>") > fold);
  CHECK(html.find("key: &lt;b&gt;\nnext: \\x1b\n</pre>") != std::string::npos);
  CHECK(html.find("href=\"./a.yaml\"") == std::string::npos); // the copy takes the place of the link
}

TEST_CASE("a waterfall adds up to its whole", "[report][answer]") {
  const Chart chart = waterfall_of("w", "t", "[s]", {{"a", 2, true}, {"b", 0, false}, {"c", 0.5, false}}, "whole");
  CHECK(chart.y.names == std::vector<std::string>{"a", "c", "whole"});
  const std::vector<Mark>& marks = chart.series.at(0).marks;
  CHECK((marks[0].begin == 0 && marks[0].x == 2));
  CHECK((marks[1].begin == 2 && marks[1].x == 2.5));
  CHECK((marks[2].begin == 0 && marks[2].x == 2.5));
  CHECK(marks[1].label == "500.0 ms");
  CHECK(marks[0].color != marks[1].color); // work, and what is lost
  // gnuplot draws the bar from where it begins.
  CHECK(figure_of(chart).series.at(0).rows.find("2.5 1 2 2.5") != std::string::npos);
  // And for other programs the same with names.
  CHECK(figure_of(chart).csv == "value [s],name,begin\n2,a,0\n2.5,c,2\n2.5,whole,0\n");
  // What is won back goes back: 2 + 0.5 - 0.25 = 2.25.
  const Chart back = waterfall_of("w", "t", "[s]", {{"a", 2, true}, {"c", 0.5, false}, {"d", -0.25, false}}, "whole");
  const std::vector<Mark>& steps = back.series.at(0).marks;
  CHECK(back.y.names == std::vector<std::string>{"a", "c", "d", "whole"});
  CHECK((steps.at(2).begin == 2.5 && steps.at(2).x == 2.25 && steps.at(3).x == 2.25));
  CHECK(steps.at(2).label == "-250.0 ms");
  CHECK((steps.at(2).color != steps.at(0).color && steps.at(2).color != steps.at(1).color));
}

TEST_CASE("of many devices those of a node that are alike are one bar", "[report][figures]") {
  // 8 devices a node; of the second the last is 1 % less busy, which is told by three digits; 0.01 % is not.
  json run = run_on_two("uniform", 1.25);
  run["devices"] = json::array();
  run["utilization"] = json::array();
  for (int device = 0; device < 16; ++device) {
    run["devices"].push_back("node-" + std::to_string(device / 8) + "/gpu-" + std::to_string(device % 8));
    run["utilization"].push_back(device == 15 ? 0.891 : device == 0 ? 0.90009 : 0.9);
  }
  const auto bars = [&] {
    const DocumentPage page = read_document("run", run.dump());
    for (const PageSection& section : page.sections) {
      for (const Chart& chart : section.charts) {
        if (chart.name == "utilization") {
          return chart.y.names;
        }
      }
    }
    return std::vector<std::string>{};
  };
  CHECK(bars().size() == 16); // few enough to stand alone
  run["devices"].push_back("node-2/gpu-0");
  run["utilization"].push_back(0.9);
  CHECK(bars() == std::vector<std::string>{"node-0: 8 devices", "node-1/gpu-0 x 7", "node-1/gpu-7", "node-2/gpu-0"});
}

TEST_CASE("the picture of a plan has its stages, how full memory is, and how long links carry data",
          "[report][answer]") {
  json run = run_on_two("optimal", 1);
  Tracks tracks;
  tracks.tracks = {{"links", "n0/host>fabric"}, {"links", "n0/host>fabric #2"}};
  tracks.kinds = {{"transfer", "x", 1}, {"all-reduce", "y", 1}};
  tracks.track_begin = {0, 2, 3};
  tracks.start = {0, 4, 1}; // of 10 s: from 0 to 3, where two overlap, and from 4 to 10
  tracks.finish = {2, 10, 3};
  tracks.kind = {0, 0, 1};
  const json document = comparison();
  const std::optional<PagePlan> plan = plan_picture(document, run, &tracks);
  REQUIRE(plan);
  REQUIRE(plan->nodes.size() == 2); // alike, but they hold different stages
  CHECK(plan->nodes[0].tiles.at(0).stages == std::vector<int>{0});
  CHECK(plan->nodes[1].tiles.at(0).stages == std::vector<int>{1});
  CHECK(plan->nodes[0].tiles.at(0).memory == Approx(0.75));
  CHECK(plan->nodes[1].tiles.at(0).busy == Approx(0.75));
  REQUIRE(plan->network.size() == 1);
  CHECK(plan->network[0].name == "fabric – host");
  CHECK(plan->network[0].in_use == Approx(0.9));
  CHECK(plan->network[0].carries == "all-reduce, between stages");
  CHECK(plan->notes.at(0) == "The pipeline goes from node to node between stages 0 to 1 (n0 to n1).");
  // Two copies of one stage: one node stands for both.
  run["stages"] = {{{"devices", run["devices"]}, {"layout", {{"data", 2}, {"tensor", 1}, {"context", 1}}}}};
  const std::optional<PagePlan> copies = plan_picture(document, run, nullptr);
  REQUIRE(copies->nodes.size() == 1);
  CHECK(copies->nodes[0].alike == 2);
  CHECK(copies->nodes[0].tiles.at(0).rank == "copy 1/2");
  CHECK(std::isnan(copies->network[0].in_use));            // without a timeline nobody knows
  CHECK_FALSE(plan_picture(json::object(), run, nullptr)); // an older document
}

TEST_CASE("two results of a kind are compared: what changed, and what that did", "[report][answer]") {
  const json before = comparison();
  json after = before;
  after["setting"]["training"]["precision"] = "fp8";
  after["runs"][0] = run_on_two("optimal", 1);
  const auto difference = difference_page("a.json", page_of(before), "b.json", page_of(after));
  REQUIRE(difference);
  CHECK(difference->answer.sentence ==
        "A step of the best run takes 1.000 s instead of 1.250 s, 20 % shorter; changed in "
        "the inputs: training precision from bf16 to fp8.");
  CHECK(difference->answer.figures.at(1).value == "−20 %");
  const PageTable& changes = difference->sections.at(0).tables.at(0);
  REQUIRE(changes.rows.size() == 1);
  CHECK(changes.rows[0].at(2).text == "fp8");
  // Of the two runs that both have, one is faster and one is as before.
  CHECK(figure_of(difference->answer, "Runs in both") == "2 | 1 faster, 0 slower");
  // With twice the batch steps are no measure: 64 samples in 2 s are as fast as 32 in 1 s.
  after["runs"][0]["iteration_seconds"] = 2.0;
  after["runs"][0]["samples_per_second"] = 32.0;
  CHECK(difference_page("a.json", page_of(before), "b.json", page_of(after))
            ->answer.sentence.find("The best run trains 32 instead of 25.6 samples per second, 25 % more") == 0);
  CHECK_FALSE(
      difference_page("a", page_of(before), "b", page_of(json{{"planners", json::array()}, {"plans", json::array()}})));
}

TEST_CASE("degrees and prices that differ are named, and files of another name are no difference", "[report][answer]") {
  json before = comparison();
  before["inputs"] = {"a.yaml"};
  before["setting"]["training"]["parallel"] = {{"tensor", 2}, {"zero", 1}};
  before["setting"]["platform"]["types"][0]["usd_per_hour"] = 2.5;
  json after = before;
  after["inputs"] = {"b.yaml"};
  const auto sentence = [&] {
    return difference_page("a.json", page_of(before), "b.json", page_of(after))->answer.sentence;
  };
  CHECK(sentence().ends_with("changed in the inputs: nothing that the results name."));
  after["setting"]["training"]["parallel"]["zero"] = 3;
  CHECK(sentence().ends_with("changed in the inputs: training parallel zero from 1 to 3."));
  after["setting"]["platform"]["types"][0]["usd_per_hour"] = 3;
  CHECK(sentence().ends_with("changed in the inputs: platform prices from v100-sxm2-16gb 2.50 USD/h to v100-sxm2-16gb "
                             "3.00 USD/h, training parallel zero from 1 to 3.") ==
        false); // longer than a sentence takes
  CHECK(sentence().ends_with("training parallel zero from 1 to 3 and 1 more."));
}

// 90 and 99 USD for a million samples of 1000 tokens: 10 % apart. The third has no price.
TEST_CASE("several results are offers, the cheapest first, and how sure that is", "[report][answer]") {
  json dear = comparison(), cheap = comparison(), unpriced = comparison();
  dear["platform"] = "dear";
  dear["runs"][0]["usd_per_million_samples"] = 99;
  dear["runs"][0]["samples_per_second"] = 32;
  dear["runs"][0]["tokens_per_second"] = 32000;
  cheap["platform"] = "cheap";
  cheap["runs"][0]["usd_per_million_samples"] = 90;
  cheap["runs"][0]["samples_per_second"] = 16;
  cheap["runs"][0]["tokens_per_second"] = 16000;
  unpriced["platform"] = "unpriced";
  unpriced["runs"][0]["usd_per_million_samples"] = nullptr;
  const DocumentPage pages[] = {page_of(dear), page_of(unpriced), page_of(cheap)};
  const auto offers = offers_page({{"d.json", &pages[0]}, {"u.json", &pages[1]}, {"c.json", &pages[2]}});
  REQUIRE(offers);
  const PageTable& table = offers->sections.at(0).tables.at(0);
  CHECK(table.rows.at(0).at(0).text == "cheap");
  CHECK(table.rows.at(1).at(0).text == "dear");
  CHECK(table.rows.at(2).at(0).text == "unpriced");
  CAPTURE(offers->answer.sentence, offers->answer.sure);
  CHECK(offers->answer.sentence.starts_with(
      "cheap is the cheapest: a billion tokens cost 90.00 USD and take 17.4 hours"));
  CHECK(
      offers->answer.sure.starts_with("dear is 10 % behind: ratios of two predicted times are 6 % off in the median"));
  dear["runs"][0]["usd_per_million_samples"] = 92;
  const DocumentPage close = page_of(dear);
  CHECK(offers_page({{"d.json", &close}, {"c.json", &pages[2]}})
            ->answer.sure.starts_with("Too close to call against dear"));
  unpriced["model"] = "another";
  const DocumentPage other = page_of(unpriced);
  CHECK_FALSE(offers_page({{"o.json", &other}, {"c.json", &pages[2]}}));
}

TEST_CASE("axes have the names that readers know", "[report][answer]") {
  CHECK(short_name("platform.network.bandwidth") == "network bandwidth");
  CHECK(short_name("training.parallel.tensor") == "tensor-parallel degree");
  const SweptAxis servers{"platform.nodes.0.count", {"1", "2"}, "A100 servers"};
  CHECK(value_in_words(servers, "2") == "2 A100 servers");
  CHECK(value_in_words(servers, "1") == "1 A100 server");
  CHECK(value_in_words({"micro_batches", {}}, "1") == "1 micro-batch");
  CHECK(value_in_words({"platform.network.bandwidth", {}}, "10 Gb/s") == "network bandwidth 10 Gb/s");
  CHECK(value_in_words({"strategy", {}}, "uniform") == "uniform");
  CHECK(scale_of(servers).axis.title == "A100 servers");
}

TEST_CASE("each shipped strategy has a colour and symbol of its own on every page", "[report][answer]") {
  std::vector<int> colors;
  for (const StrategyRow& row : strategies()) {
    colors.push_back(strategy_color(row.name));
  }
  std::sort(colors.begin(), colors.end());
  CHECK(std::adjacent_find(colors.begin(), colors.end()) == colors.end());
  CHECK(strategy_color("a plan from a file") == strategy_color("a plan from a file"));
}
