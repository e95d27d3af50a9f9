// Traces of PyTorch's profiler as files of measurements.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/named_table.hpp"
#include "sim/base/system/file.hpp"
#include "sim/platform/fits/measurements.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"
#include "tests/source_dir.hpp"

#include "calibrate/foreign/foreign_formats.hpp"
#include "calibrate/foreign/kineto_operators.hpp"

namespace stagecraft::foreign {
namespace {

using test::error_of;

// Events of a trace of an H200; the inputs of an operator that are not given are like its first.
std::string trace(const std::vector<std::string>& events) {
  return R"({"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H200","totalGlobalMem":150000000000}],
"traceEvents":[)" +
         join(events, ",\n") + "]}";
}

std::string op(int id, const std::string& name, const std::string& args, double ts = 100) {
  return R"({"ph":"X","cat":"cpu_op","name":")" + name + R"(","pid":1,"tid":1,"ts":)" + to_text(ts, 1) +
         R"(,"dur":20,"args":{"External id":)" + std::to_string(id) + (args.empty() ? "" : ",") + args + "}}";
}

// A kernel and the call that launched it, for the operator `id`.
std::string kernel(int id, int correlation, double microseconds, const std::string& name = "sm90_gemm") {
  const std::string number = std::to_string(correlation);
  return R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":101,"dur":3,"args":{"External id":)" +
         std::to_string(id) + R"(,"correlation":)" + number + R"(}},{"ph":"X","cat":"kernel","name":")" + name +
         R"(","pid":0,"tid":7,"ts":200,"dur":)" + to_text(microseconds, 3) +
         R"(,"args":{"External id":9999,"correlation":)" + number + "}}";
}

Measurements imported(const std::string& text, const ForeignOptions& options = {}) {
  return read_measurements(yaml::parse(import_kineto(text, "trace.json", options).text, "imported"));
}

std::string error(const std::string& text, const ForeignOptions& options = {}) {
  return error_of([&] { import_kineto(text, "trace.json", options); });
}

const std::string kTypes = R"("Input type":["c10::BFloat16","c10::BFloat16","c10::BFloat16"])";
const std::string kProduct = R"("Input Dims":[[128,64],[64,256]],)" + kTypes;

TEST_CASE("kernels of an operator are its time, calls of one shape one measurement", "[foreign][kineto]") {
  const Measurements read =
      imported(trace({op(1, "aten::mm", kProduct), op(2, "aten::mm", kProduct, 200), op(3, "aten::mm", kProduct, 300),
                      kernel(1, 11, 50), kernel(1, 12, 10), kernel(2, 13, 62), kernel(3, 14, 70)}));
  CHECK(read.device.name == "nvidia-h200");
  CHECK(read.device.memory.value == 150e9);
  REQUIRE(read.measured.size() == 1);
  CHECK(to_text(read.measured[0].kernel) == "gemm forward bf16 batch=1 m=128 n=256 k=64");
  CHECK(read.measured[0].time.samples == 3);
  CHECK(read.measured[0].time.median.value == Approx(62e-6)); // of 60, 62, 70
  CHECK(read.measured[0].time.least->value == Approx(60e-6));
}

TEST_CASE("a kernel whose launch is not in the trace goes by its own External id", "[foreign][kineto]") {
  const std::string alone = R"({"ph":"X","cat":"Kernel","name":"k","ts":1,"dur":5,"args":{"External id":"7"}})";
  CHECK(imported(trace({op(7, "aten::mm", kProduct), alone})).measured.size() == 1);
  const ForeignText read =
      import_kineto(trace({op(7, "aten::mm", kProduct), alone, kernel(8, 1, 15)}), "trace.json", {});
  CHECK(read.remarks ==
        std::vector<std::string>{"left out, 75.0 % of the time: 1 x kernels whose operator the trace does not name"});
}

// The kernels that a call stands for, as text, or why there are none.
std::string told(const std::string& name, const std::string& args, const std::vector<std::string>& kernels = {"k"},
                 const std::string& around = "") {
  std::vector<std::string> events = {op(1, name, args)};
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    events.push_back(kernel(1, static_cast<int>(i) + 1, 10 * (static_cast<double>(i) + 1), kernels[i]));
  }
  if (!around.empty()) {
    events.push_back(around);
  }
  const KinetoTrace read = read_kineto(trace(events), "trace.json");
  REQUIRE(read.calls.size() == 1);
  const CallTimes times = times_of(read.calls[0]);
  std::vector<std::string> texts;
  for (const KernelTime& time : times.times) {
    texts.push_back(to_text(time.kernel) + " " + to_text(time.time.value * 1e6, 0));
  }
  return times.times.empty() ? times.why_not : join(texts);
}

const std::string kBackwardNode =
    R"({"ph":"X","cat":"cpu_op","name":"autograd::engine::evaluate_function: MmBackward0","pid":1,"tid":1,"ts":90,"dur":40})";

TEST_CASE("the pass of a product is how its operands lie", "[foreign][kineto]") {
  const auto product = [](const std::string& strides) { return kProduct + R"(,"Input Strides":)" + strides; };
  CHECK(told("aten::mm", product("[[64,1],[1,64]]")) == "gemm forward bf16 batch=1 m=128 n=256 k=64 10");
  CHECK(told("aten::mm", product("[[64,1],[256,1]]")) == "gemm forward bf16 batch=1 m=128 n=256 k=64 10");
  CHECK(told("aten::mm", product("[[64,1],[256,1]]"), {"k"}, kBackwardNode) ==
        "gemm backward-input bf16 batch=1 m=128 n=256 k=64 10");
  CHECK(told("aten::mm", product("[[1,128],[256,1]]"), {"k"}, kBackwardNode) ==
        "gemm backward-weight bf16 batch=1 m=128 n=256 k=64 10");
  CHECK(told("aten::mm", kProduct, {"k"}, kBackwardNode) == "products of backward without Input Strides");
  CHECK(told("aten::addmm", R"("Input Dims":[[256],[128,64],[64,256],[],[]],)" + kTypes) ==
        "gemm forward bf16 batch=1 m=128 n=256 k=64 10");
  CHECK(told("aten::bmm", R"("Input Dims":[[8,128,64],[8,64,256]],)" + kTypes, {"k"}, kBackwardNode) ==
        "gemm backward-input bf16 batch=8 m=128 n=256 k=64 10");
  CHECK(told("aten::mm", R"("Input Dims":[[128,64],[63,256]],)" + kTypes) == "shapes that are no product");
}

TEST_CASE("fp32 products are tf32 where their kernels say so", "[foreign][kineto]") {
  const std::string args = R"("Input Dims":[[128,64],[64,256]],"Input type":["float","float"])";
  CHECK(told("aten::mm", args, {"ampere_sgemm_128x64_tn"}).find("gemm forward fp32") == 0);
  CHECK(told("aten::mm", args, {"sm80_xmma_gemm_f32f32_tf32f32_f32"}).find("gemm forward tf32") == 0);
  CHECK(told("aten::mm", R"("Input Dims":[[128,64],[64,256]],"Input type":["double","double"])") ==
        "tensors of double");
}

const std::string kFloat = R"("Input type":["float","float","float"],)";

TEST_CASE("convolutions by their several operators, both gradients by their kernels' names", "[foreign][kineto]") {
  const std::string shape = " n=8 c=64 h=56 w=56 k=128 r=3 s=3 stride=2 padding=1 groups=1 ";
  CHECK(told("aten::cudnn_convolution", kFloat + R"("Input Dims":[[8,64,56,56],[128,64,3,3],[],[],[],[],[],[],[]],
"Concrete Inputs":["","","[1, 1]","[2, 2]","[1, 1]","1","False","False","True"])") ==
        "convolution forward fp32" + shape + "10");
  CHECK(told("aten::_convolution", kFloat + R"("Input Dims":[[8,64,56,56],[128,64,3,3],[],[],[],[],[],[],[]],
"Concrete Inputs":["","","","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1"])") ==
        "convolution forward fp32" + shape + "10");
  const auto backward = [&](const std::string& mask) {
    return kFloat + R"("Input Dims":[[8,128,28,28],[8,64,56,56],[128,64,3,3],[],[],[],[],[],[],[],[]],
"Concrete Inputs":["","","","[0]","[2, 2]","[1, 1]","[1, 1]","False","[0, 0]","1",")" +
           mask + R"("])";
  };
  CHECK(
      told("aten::convolution_backward", backward("[True, True, False]"), {"cudnn_dgrad", "x_wgrad_y", "z_wgrad_w"}) ==
      "convolution backward-input fp32" + shape + "10, convolution backward-weight fp32" + shape + "50");
  CHECK(told("aten::convolution_backward", backward("[False, True, False]"), {"anything"}) ==
        "convolution backward-weight fp32" + shape + "10");
  CHECK(told("aten::convolution_backward", backward("[True, True, False]"), {"anything"}) ==
        "both gradients, in kernels whose names do not tell which");
  CHECK(told("aten::_convolution", kFloat + R"("Input Dims":[[8,64,56,56],[128,64,3,3],[],[],[],[],[],[],[]],
"Concrete Inputs":["","","","[2, 1]","[1, 1]","[1, 1]","False","[0, 0]","1"])") ==
        "windows unlike in their two directions");
  CHECK(told("aten::cudnn_convolution", kFloat + R"("Input Dims":[[8,64,56,56],[128,64,3,3],[],[],[],[]])") ==
        "no Concrete Inputs recorded");
}

TEST_CASE("attention by its several operators, whichever axis its heads are", "[foreign][kineto]") {
  const std::string bf16 = R"("Input type":["c10::BFloat16","c10::BFloat16","c10::BFloat16"],)";
  CHECK(told("aten::_flash_attention_forward",
             bf16 + R"("Input Dims":[[2,512,16,64],[2,512,4,64],[2,512,4,64],[],[],[],[],[],[],[]],
"Concrete Inputs":["","","","","","512","512","0.","True","False"])") ==
        "attention forward bf16 batch=2 sequence=512 heads=16 kv_heads=4 head_size=64 causal=1 10");
  CHECK(told("aten::_scaled_dot_product_cudnn_attention",
             bf16 + R"("Input Dims":[[2,16,512,64],[2,16,512,64],[2,16,512,64],[],[],[],[]],
"Concrete Inputs":["","","","","True","0.","False","False"])") ==
        "attention forward bf16 batch=2 sequence=512 heads=16 kv_heads=16 head_size=64 causal=0 10");
  CHECK(
      told(
          "aten::_efficient_attention_backward",
          bf16 +
              R"("Input Dims":[[2,512,16,64],[2,512,16,64],[2,512,16,64],[2,512,16,64],[],[],[],[],[],[],[],[],[],[],[]],
"Concrete Inputs":["","","","","","","","","512","512","","0.","","","1","False"])",
          {"a", "b"}) ==
      "attention backward-input bf16 batch=2 sequence=512 heads=16 kv_heads=16 head_size=64 causal=1 30");
  CHECK(told("aten::_flash_attention_forward",
             bf16 + R"("Input Dims":[[2,1,16,64],[2,512,16,64],[2,512,16,64],[],[],[],[],[],[]],
"Concrete Inputs":["","","","","","1","512","0.","True","False"])") == "queries and keys of unlike shapes");
}

TEST_CASE("memory-bound operators are rows and columns", "[foreign][kineto]") {
  const auto rows = [](const char* what, const char* shape) { return std::string(what) + " fp32 " + shape + " 10"; };
  const std::string two = kFloat + R"("Input Dims":[[4,8,16],[4,8,16],[]])";
  CHECK(told("aten::add", two) == rows("add forward", "rows=32 columns=16"));
  CHECK(told("aten::add_", kFloat + R"("Input Dims":[[4,8,16],[16],[]])") == "operands unlike in shape or type");
  CHECK(told("aten::copy_", two) == rows("copy forward", "rows=32 columns=16"));
  CHECK(told("aten::gelu", two) == rows("gelu forward", "rows=32 columns=16"));
  CHECK(told("aten::threshold_backward", two) == rows("relu backward-input", "rows=32 columns=16"));
  CHECK(told("aten::clamp_min", kFloat + R"("Input Dims":[[16],[]],"Concrete Inputs":["","0."])") ==
        rows("relu forward", "rows=1 columns=16"));
  CHECK(told("aten::clamp_min", kFloat + R"("Input Dims":[[16],[]],"Concrete Inputs":["","0.5"])") == "not from 0 on");
  CHECK(told("aten::native_layer_norm", kFloat + R"("Input Dims":[[4,8,16],[],[8,16],[8,16],[]])") ==
        rows("layer-norm forward", "rows=4 columns=128"));
  CHECK(told("aten::native_layer_norm_backward",
             kFloat + R"("Input Dims":[[4,8,16],[4,8,16],[],[4,8,1],[4,8,1],[16],[16],[]])",
             {"k"}) == rows("layer-norm backward-input", "rows=32 columns=16"));
  CHECK(told("aten::cudnn_batch_norm", kFloat + R"("Input Dims":[[4,8,5,5],[8]])") ==
        rows("batch-norm forward", "rows=100 columns=8"));
  CHECK(told("aten::_softmax", kFloat + R"("Input Dims":[[4,8,16],[],[]],"Concrete Inputs":["","-1","False"])") ==
        rows("softmax forward", "rows=32 columns=16"));
  CHECK(told("aten::_softmax", kFloat + R"("Input Dims":[[4,8,16],[],[]],"Concrete Inputs":["","1","False"])") ==
        "not over the last axis");
  CHECK(told("aten::index_select", kFloat + R"("Input Dims":[[50257,768],[],[512]],"Concrete Inputs":["","0",""])") ==
        rows("embedding forward", "rows=512 columns=768"));
  CHECK(told("aten::embedding_dense_backward", kFloat + R"("Input Dims":[[2,256,768],[2,256],[],[],[]])") ==
        rows("embedding backward-weight", "rows=512 columns=768"));
  CHECK(told("aten::sum", kFloat + R"("Input Dims":[[4,16],[]])") == rows("sum forward", "rows=4 columns=16"));
  CHECK(told("aten::sum", kFloat + R"("Input Dims":[[4,16],[],[],[]])") == "over some axes only");
  CHECK(told("aten::gelu", kFloat + R"("Input Dims":[[4,0]])") == "empty tensors");
  CHECK(told("aten::gelu", "") == "no shapes recorded");
  CHECK(told("aten::mul", two) == "no kernel of ours");
}

const auto all_gather = [](double microseconds, int ranks = 4) {
  return R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather","ts":1,"dur":)" + to_text(microseconds, 1) +
         R"(,"args":{"Collective name":"_allgather_base","In msg nelems":256,"Out msg nelems":1024,"dtype":"BFloat16","Group size":)" +
         std::to_string(ranks) + "}}";
};

TEST_CASE("collectives are left out unless asked for: then the least time of a size", "[foreign][kineto]") {
  const std::string text = trace({op(1, "aten::mm", kProduct), kernel(1, 1, 50), all_gather(90), all_gather(60)});
  const ForeignText without = import_kineto(text, "trace.json", {});
  CHECK(without.remarks ==
        std::vector<std::string>{
            "left out, 75.0 % of the time: 2 x collectives, whose times hold the wait for other ranks; "
            "--collectives takes the least of each"});
  ForeignOptions options;
  options.collectives = true;
  const Measurements read = imported(text, options);
  REQUIRE(read.collectives.size() == 1);
  CHECK(read.collectives[0].op == "all-gather");
  CHECK(read.collectives[0].devices == 4);
  CHECK(read.collectives[0].size.value == 2048); // what each gets out, 1024 numbers of 2 B
  CHECK(read.collectives[0].time.median.value == Approx(60e-6));
  CHECK(error(trace({all_gather(5, 1)}), options).find("_allgather_base of BFloat16: no collective of ours") !=
        std::string::npos);
}

TEST_CASE("traces that cannot be used are refused", "[foreign][kineto]") {
  CHECK(error(trace({})) ==
        "trace.json: no kernel of a known operator and shape, since there are no GPU kernels at all; "
        "allowed: a trace of a GPU with record_shapes=True");
  CHECK(error(trace({op(1, "aten::mm", ""), kernel(1, 1, 5)})).find("1 x aten::mm: no shapes recorded") !=
        std::string::npos);
  CHECK(error("{").find("trace.json:1:") == 0);
  CHECK(error("{}") == "trace.json:1:1: the document: missing key 'traceEvents'");
  CHECK(error("\x1f\x8b\x08 and so on").find("trace.json: compressed by gzip") == 0);
  CHECK(error(trace({R"({"ph":"X","cat":"kernel","name":"k","dur":-1})"})) ==
        "trace.json:2:58: traceEvents[0].dur: must be a number of 0 or more, got -1");
  CHECK(error(trace({op(1, "aten::mm", R"("Input Dims":3)"), kernel(1, 1, 5)})) ==
        "trace.json:2:132: traceEvents[0].args.Input Dims: must be an array, got 3");
  CHECK(error(R"({"traceEvents":[]})").find("--device: the trace has no deviceProperties") == 0);
}

// The trace is of an H200. A chip is a whole word of its name; a file of one's own may be called anything.
TEST_CASE("a trace is not taken for one of another chip", "[foreign][kineto]") {
  const std::string text = trace({op(1, "aten::mm", kProduct), kernel(1, 1, 50)});
  const auto given = [](const std::string& name, const std::string& file) {
    ForeignOptions options;
    options.device = DeviceType{};
    options.device->name = name;
    options.device_file = file;
    return options;
  };
  CHECK(error(text, given("b200-sxm", "")) ==
        "--device: the trace was taken on 'NVIDIA H200', not on a device of type 'b200-sxm'; "
        "allowed: the type that was measured, or a file of your own for it");
  CHECK(error(text, given("h20-96gb", "")).find("--device: the trace was taken on") == 0);
  CHECK_NOTHROW(import_kineto(text, "trace.json", given("h200-sxm", "")));
  CHECK_NOTHROW(import_kineto(text, "trace.json", given("b200-sxm", "b200-sxm.yaml")));
}

TEST_CASE("the shipped sample of Kineto has a collective, and a kernel without an operator", "[foreign][kineto]") {
  const std::filesystem::path file = test::source_dir() / "../shared/samples/kineto.json";
  if (!std::filesystem::exists(file)) {
    WARN("no " << file.string());
    return;
  }
  ForeignOptions options;
  options.collectives = true;
  const Measurements read = imported(read_file(file), options);
  REQUIRE(read.collectives.size() == 1);
  CHECK(read.collectives[0].size.value == 2 << 20); // 1 Mi numbers of bf16
}

} // namespace
} // namespace stagecraft::foreign
