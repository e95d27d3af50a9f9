// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/kernel_tables.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "sim/base/format/csv.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/system/file.hpp"

namespace stagecraft::fit {
namespace {

constexpr int kMostExtent = 1 << 30;
constexpr double kMostFlopsPerSecond = 1e17, kMostBytesPerSecond = 1e15;

// Precisions under the names that public tables use.
struct PrecisionName {
  std::string_view name;
  Precision precision;
};
constexpr std::array kPrecisionNames = {
    PrecisionName{"fp32", Precision::fp32},           PrecisionName{"float32", Precision::fp32},
    PrecisionName{"float", Precision::fp32},          PrecisionName{"tf32", Precision::tf32},
    PrecisionName{"fp16", Precision::fp16},           PrecisionName{"float16", Precision::fp16},
    PrecisionName{"half", Precision::fp16},           PrecisionName{"bf16", Precision::bf16},
    PrecisionName{"bfloat16", Precision::bf16},       PrecisionName{"fp8", Precision::fp8},
    PrecisionName{"fp8_block", Precision::fp8_block}, PrecisionName{"fp8-block", Precision::fp8_block},
    PrecisionName{"mxfp8", Precision::mxfp8},         PrecisionName{"nvfp4", Precision::nvfp4},
};

struct ElementBytes {
  std::string_view name;
  double bytes;
};
constexpr std::array kElementBytes = {ElementBytes{"half", 2},  ElementBytes{"float16", 2}, ElementBytes{"bfloat16", 2},
                                      ElementBytes{"float", 4}, ElementBytes{"float32", 4}, ElementBytes{"int8", 1},
                                      ElementBytes{"uint8", 1}, ElementBytes{"fp8", 1},     ElementBytes{"double", 8}};

struct CollectiveName {
  std::string_view name, ours;
};
constexpr std::array kCollectiveNames = {
    CollectiveName{"all_reduce", "all-reduce"},         CollectiveName{"all_gather", "all-gather"},
    CollectiveName{"reduce_scatter", "reduce-scatter"}, CollectiveName{"alltoall", "all-to-all"},
    CollectiveName{"broadcast", "broadcast"},           CollectiveName{"send", "send"}};

// Operators bound by memory. One without a kernel of its own is taken as a variant of one that moves as many bytes.
struct OperatorName {
  std::string_view name;
  KernelOp op;
  std::string_view variant;
};
constexpr std::array kOperatorNames = {OperatorName{"add", KernelOp::add, ""},
                                       OperatorName{"mul", KernelOp::add, "mul"},
                                       OperatorName{"div", KernelOp::add, "div"},
                                       OperatorName{"pow", KernelOp::add, "pow"},
                                       OperatorName{"addu", KernelOp::relu, "addu"},
                                       OperatorName{"mulu", KernelOp::relu, "mulu"},
                                       OperatorName{"divu", KernelOp::relu, "divu"},
                                       OperatorName{"powu", KernelOp::relu, "powu"},
                                       OperatorName{"tanh", KernelOp::relu, "tanh"},
                                       OperatorName{"relu", KernelOp::relu, ""},
                                       OperatorName{"gelu", KernelOp::gelu, ""},
                                       OperatorName{"ln", KernelOp::layer_norm, ""},
                                       OperatorName{"layer-norm", KernelOp::layer_norm, ""},
                                       OperatorName{"softmax", KernelOp::softmax, ""},
                                       OperatorName{"copy", KernelOp::copy, ""},
                                       OperatorName{"dropout", KernelOp::dropout, ""}};

// One row of a table; finds cells by the names of their columns.
class Row {
public:
  Row(const CsvTable& table, std::size_t number) : table_(table), number_(number) {}

  bool has(std::string_view column) const { return table_.has(column); }
  const CsvCell& cell(std::string_view column) const { return table_.at(number_, column); }
  double extent(std::string_view column) const { return cell(column).integer(1, kMostExtent); }
  double extent(std::string_view column, double otherwise) const {
    return table_.has(column) ? extent(column) : otherwise;
  }
  double flag(std::string_view column, double otherwise) const {
    return table_.has(column) ? cell(column).integer(0, 1) : otherwise;
  }
  Precision precision(std::string_view column, Precision otherwise) const {
    return table_.has(column)
               ? find_by_name(kPrecisionNames, cell(column).text, "number format", cell(column).where).precision
               : otherwise;
  }

  const CsvCell& latency() const { return cell(table_.has("latency_ms") ? "latency_ms" : "latency"); }
  Seconds time() const {
    const double milliseconds = latency().number();
    if (milliseconds <= 0) {
      throw InputError(latency().where, "a time of 0; allowed: more than 0 ms");
    }
    return Seconds{milliseconds / 1000};
  }

private:
  const CsvTable& table_;
  std::size_t number_;
};

// Shape of a convolution with a square window on a square image.
KernelShape convolution_shape(const Row& row) {
  const double window = row.extent("kernel"), side = row.extent("input_size");
  const double padding = row.cell("padding").integer(0, kMostExtent);
  if (window > side + 2 * padding) {
    throw InputError(row.cell("kernel").where, "the window is larger than the padded image");
  }
  return {row.extent("batch"),
          row.extent("in_channels"),
          side,
          side,
          row.extent("out_channels"),
          window,
          window,
          row.extent("stride"),
          padding,
          row.extent("groups", 1)};
}

// Of heads of DeepSeek-V2 and V3, of which tables with `mla_dtype` are: the mean of 192 features of keys and 128 of
// values (DeepSeek-AI 2024, 3.1.2).
constexpr double kLatentWidth = (192 + 128) / 2.0;

KernelSample read_kernel(TableKind kind, const Row& row) {
  KernelSample sample{.time = row.time()};
  Kernel& kernel = sample.kernel;
  switch (kind) {
  case TableKind::gemm:
  case TableKind::linear:
    kernel.op = KernelOp::gemm;
    kernel.precision = row.precision("dtype", kind == TableKind::gemm ? Precision::bf16 : Precision::fp32);
    kernel.shape = {row.extent("b", row.extent("batch", 1)), row.extent("m"), row.extent("n"), row.extent("k")};
    break;
  case TableKind::attention: {
    kernel.op = KernelOp::attention;
    kernel.precision = row.precision("attn_dtype", row.precision("mla_dtype", Precision::bf16));
    const double heads = row.extent("num_heads");
    const double width = row.has("mla_dtype") ? kLatentWidth : 128;
    kernel.shape = {
        row.extent("batch_size"),      row.extent("isl"),    heads, row.extent("num_key_value_heads", heads),
        row.extent("head_dim", width), row.flag("causal", 1)};
    break;
  }
  case TableKind::convolution:
    kernel.op = KernelOp::convolution;
    kernel.precision = row.precision("dtype", Precision::fp32);
    kernel.shape = convolution_shape(row);
    break;
  default: {
    const CsvCell& op = row.cell("op");
    const OperatorName& name = find_by_name(kOperatorNames, op.text, "operator", op.where);
    kernel.op = name.op;
    sample.variant = name.variant;
    kernel.precision = row.precision("dtype", Precision::fp32);
    kernel.shape = {row.extent("rows"), row.extent("columns")};
  }
  }
  return sample;
}

// The variant of an attention kernel: whether it is of latent keys, and whether it keeps keys and values in another
// format than the product: "fp8-cache".
std::string attention_variant(const CsvTable& table, std::size_t number) {
  const bool latent = table.has("mla_dtype");
  const char* format = latent ? "mla_dtype" : "attn_dtype";
  std::string variant(latent ? kLatentAttention : "");
  if (table.has("kv_cache_dtype") && table.has(format)) {
    const std::string& cache = table.at(number, "kv_cache_dtype").text;
    if (cache != table.at(number, format).text) {
      variant += (variant.empty() ? "" : "-") + cache + "-cache";
    }
  }
  return variant;
}

// Whether each query sees a window of keys alone: our attention is of all keys, or of all before it.
bool has_window(const CsvTable& table, std::size_t number) {
  return table.has("window_size") && table.at(number, "window_size").integer(0, kMostExtent) > 0;
}

// Nothing for sums of single bytes: no gradient is one, and a switch that adds up halves leaves them to a ring.
std::optional<MeasuredCollective> read_collective(const Row& row) {
  MeasuredCollective collective{.where = row.latency().where};
  const CsvCell& op = row.cell("collective");
  collective.op = find_by_name(kCollectiveNames, op.text, "collective", op.where).ours;
  const CsvCell& type = row.cell("dtype");
  const double bytes = find_by_name(kElementBytes, type.text, "element type", type.where).bytes;
  collective.devices = row.cell("num_gpus").integer(2, 1 << 20);
  collective.size = Bytes{row.cell("message_elements").number(1, 1e15) * bytes};
  collective.time.median = row.time();
  const bool adds = collective.op == "all-reduce" || collective.op == "reduce-scatter";
  return adds && bytes == 1 ? std::nullopt : std::optional(collective);
}

void check_rates(const Kernel& kernel, Seconds time, const Where& where) {
  const double flops = (flops_of(kernel) / time).value, bytes = (bytes_of(kernel) / time).value;
  if (flops > kMostFlopsPerSecond || bytes > kMostBytesPerSecond) {
    throw InputError(where, "the kernel would run at " + to_text(FlopsPerSecond{flops}) + " and " +
                                to_text(BytesPerSecond{bytes}) + "; allowed: at most 1e17 FLOP/s and 1e15 B/s");
  }
}

// Splits a name into words: "Tesla V100-PCIE-32GB" gives {tesla, v100, pcie, 32gb}.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) {
    words.pop_back();
  }
  return words;
}

// How many words of our name occur in theirs; 0 if the first, the family, does not.
int words_shared(const std::string& ours, const std::string& theirs) {
  const std::vector<std::string> own = words_of(ours), other = words_of(theirs);
  const auto has = [&](const std::string& word) { return std::find(other.begin(), other.end(), word) != other.end(); };
  return own.empty() || !has(own.front()) ? 0 : static_cast<int>(std::count_if(own.begin(), own.end(), has));
}

std::string choose_device(const std::vector<std::string>& devices, const std::string& device_name,
                          const std::string& select, const Where& where) {
  if (!select.empty()) {
    if (std::find(devices.begin(), devices.end(), select) == devices.end()) {
      throw InputError(where, unknown_name("device of the table", select, devices));
    }
    return select;
  }
  if (devices.size() == 1) {
    return devices.front();
  }
  int most = 0, holders = 0;
  std::string best;
  for (const std::string& device : devices) {
    const int shared = words_shared(device_name, device);
    holders = shared > most ? 1 : holders + (shared == most ? 1 : 0);
    if (shared > most) {
      most = shared;
      best = device;
    }
  }
  if (most == 0 || holders > 1) {
    throw InputError(where, "the table has several devices, and '" + device_name +
                                "' could be none or several of them; allowed with --select: " + join(devices));
  }
  return best;
}

std::vector<std::string> devices_of(const CsvTable& table) {
  std::vector<std::string> devices;
  for (std::size_t i = 0; table.has("device") && i < table.rows(); ++i) {
    const std::string& device = table.at(i, "device").text;
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(device);
    }
  }
  return devices;
}

CsvTable open_table(TableKind kind, std::string_view text, const std::string& name) {
  switch (kind) {
  case TableKind::gemm:
  case TableKind::linear:
    return {text, name, {"m", "n", "k"}};
  case TableKind::attention:
    return {text, name, {"batch_size", "isl", "num_heads"}};
  case TableKind::convolution:
    return {text, name, {"batch", "in_channels", "out_channels", "kernel", "input_size", "stride", "padding"}};
  case TableKind::memory_bound:
    return {text, name, {"op", "rows", "columns"}};
  default:
    return {text, name, {"collective", "dtype", "num_gpus", "message_elements"}};
  }
}

} // namespace

KernelTable read_kernel_table(TableKind kind, const std::filesystem::path& file, const std::string& device_name,
                              const std::string& select) {
  return read_kernel_table(kind, read_file(file), file.string(), device_name, select);
}

KernelTable read_kernel_table(TableKind kind, std::string_view text, const std::string& file,
                              const std::string& device_name, const std::string& select) {
  const CsvTable table = open_table(kind, text, file);
  const Where top{file, 1, 1};
  if (!table.has("latency_ms") && !table.has("latency")) {
    throw InputError(top, "no column 'latency_ms'");
  }
  KernelTable read;
  const std::vector<std::string> devices = devices_of(table);
  if (!devices.empty()) {
    read.device = choose_device(devices, device_name, select, top);
  } else if (!select.empty()) {
    throw InputError(top, "no column 'device' to select '" + select + "' from");
  }
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (!devices.empty() && table.at(i, "device").text != read.device) {
      continue;
    }
    const Row row(table, i);
    if (kind == TableKind::nccl) {
      if (const auto collective = read_collective(row)) {
        read.collectives.push_back(*collective);
      }
      continue;
    }
    if (kind == TableKind::attention && has_window(table, i)) {
      continue;
    }
    read.kernels.push_back(read_kernel(kind, row));
    if (kind == TableKind::attention) {
      read.kernels.back().variant = attention_variant(table, i);
    }
    check_rates(read.kernels.back().kernel, read.kernels.back().time, row.latency().where);
  }
  if (read.kernels.empty() && read.collectives.empty()) {
    throw InputError(top, "the table has no rows; allowed: one or more");
  }
  return read;
}

} // namespace stagecraft::fit
