// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/fits/measurements.hpp"

#include <algorithm>

#include "sim/base/statistics.hpp"
#include "sim/base/utf8.hpp"
#include "sim/platform/fits/copy_ends.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kSchemaName = "stagecraft-measurements/1";

// Ten times what the fastest device of today claims: more must be a wrong unit.
constexpr double kMostFlopsPerSecond = 1e17, kMostBytesPerSecond = 1e15;

constexpr yaml::Range kTime{0, 1e6, false, "more than 0, at most 1e6 s"};
constexpr int kMostThreads = 1024;
constexpr yaml::Range kExtent{1, 1e12, true, "1 to 1e12"};
constexpr yaml::Range kExtentOrNone{0, 1e12, true, "0 to 1e12"};

struct RegimeRow {
  std::string_view name;
  Regime regime;
};
constexpr std::array kRegimes = {RegimeRow{"burst", Regime::burst}, RegimeRow{"sustained", Regime::sustained},
                                 RegimeRow{"warm", Regime::warm},   RegimeRow{"graph", Regime::graph},
                                 RegimeRow{"event", Regime::event}, RegimeRow{"contended", Regime::contended}};

constexpr std::array kKinds = {WordRow{"gpu"}, WordRow{"gpu-partition"}, WordRow{"cpu"}};

// What a host does for a device.
constexpr std::array kHostOps = {WordRow{"launch"}, WordRow{"event"}, WordRow{"graph"}};

// What runs beside a kernel: copies by the copy engines, or by a few blocks of a kernel, as networks' kernels do.
constexpr std::array kInterferers = {WordRow{"host-to-device"},   WordRow{"device-to-host"}, WordRow{"both-ways"},
                                     WordRow{"device-to-device"}, WordRow{"8-blocks"},       WordRow{"16-blocks"},
                                     WordRow{"16-blocks-paced"}};

MeasuredDevice read_device(const yaml::Node& node) {
  yaml::Map map(node, "device");
  MeasuredDevice device;
  device.name = map.text("name");
  device.vendor = map.text("vendor");
  device.description = map.text("description", "");
  device.kind = map.choice("kind", kKinds).name;
  device.memory = map.quantity<Bytes>("memory", yaml::kPositive);
  device.processors = map.integer("processors", 1, 1 << 20, 0);
  device.cache = map.quantity<Bytes>("cache", yaml::kNotNegative, Bytes{0});
  map.finish();
  return device;
}

std::optional<Seconds> optional_time(yaml::Map& map, std::string_view key) {
  return map.has(key) ? std::optional<Seconds>(map.quantity<Seconds>(key, kTime)) : std::nullopt;
}

SampledTime read_time(yaml::Map& map) {
  SampledTime time;
  time.median = map.quantity<Seconds>("median", kTime);
  time.q1 = optional_time(map, "q1");
  time.q3 = optional_time(map, "q3");
  time.least = optional_time(map, "least");
  time.samples = map.integer("samples", 1, 1 << 30, 1);
  map.integer("dropped", 0, 1 << 30, 0);
  const Seconds q1 = time.q1.value_or(time.median), q3 = time.q3.value_or(time.median);
  if (q1 > q3) {
    throw InputError(map.where("q1"), "'q1' is more than 'q3'; allowed: q1 <= median <= q3");
  }
  if (time.median < q1 || time.median > q3) {
    throw InputError(map.where("median"), "'median' is not between 'q1' and 'q3'; allowed: q1 <= median <= q3");
  }
  if (time.least.value_or(q1) > q1) {
    throw InputError(map.where("least"), "'least' is more than the first quartile; allowed: least <= q1 <= median");
  }
  return time;
}

// Reads a shape: every dimension of the op must be there, and no other.
KernelShape read_shape(const KernelOpRow& row, const yaml::Node& node) {
  yaml::Map map(node, "shape");
  KernelShape shape{};
  for (std::size_t i = 0; i < row.rank(); ++i) {
    shape[i] = map.number(row.dimensions[i], may_be_zero(row.dimensions[i]) ? kExtentOrNone : kExtent);
    if (shape[i] != static_cast<double>(static_cast<long long>(shape[i]))) {
      throw InputError(map.where(row.dimensions[i]), "a dimension is no whole number; allowed: 1, 2, 3, …");
    }
  }
  map.finish();
  return shape;
}

void check_rates(const MeasuredRow& row, const Where& where) {
  const double flops = (flops_of(row.kernel) / row.time.median).value;
  const double bytes = (bytes_of(row.kernel) / row.time.median).value;
  if (flops > kMostFlopsPerSecond || bytes > kMostBytesPerSecond) {
    throw InputError(where, "the kernel would run at " + to_text(FlopsPerSecond{flops}) + " and " +
                                to_text(BytesPerSecond{bytes}) + "; allowed: at most 1e17 FLOP/s and 1e15 B/s");
  }
}

// Reads a kernel and its time, of a map that may have more.
MeasuredRow read_kernel_time(yaml::Map& map, const Where& where) {
  MeasuredRow row{.where = where};
  const KernelOpRow& op = map.choice("op", kKernelOps);
  row.kernel.op = op.op;
  row.kernel.pass = map.choice("pass", kKernelPasses, "forward").pass;
  row.kernel.precision = map.choice("precision", kNumberFormats).precision;
  row.kernel.shape = read_shape(op, map.node("shape"));
  row.time = read_time(map);
  row.variant = map.text("variant", "");
  map.text("clock", "");
  check_rates(row, map.where("median"));
  return row;
}

MeasuredRow read_row(const yaml::Node& node) {
  yaml::Map map(node, "measurement");
  MeasuredRow row = read_kernel_time(map, node.where);
  row.regime = map.choice("regime", kRegimes, "burst").regime;
  map.finish();
  return row;
}

void check_bandwidth(Bytes size, Seconds time, const Where& where) {
  const double rate = (size / time).value;
  if (rate > kMostBytesPerSecond) {
    throw InputError(where, "data would move at " + to_text(BytesPerSecond{rate}) + "; allowed: at most 1e15 B/s");
  }
}

MeasuredCopy read_copy(const yaml::Node& node) {
  yaml::Map map(node, "copy");
  MeasuredCopy copy{.where = node.where};
  copy.from = map.choice("from", kCopyEnds).name;
  copy.to = map.choice("to", kCopyEnds).name;
  copy.memory = map.choice("memory", kCopyMemories, "").name;
  copy.both_ways = map.boolean("both_ways", false);
  copy.size = map.quantity<Bytes>("size", yaml::kPositive);
  copy.time = read_time(map);
  map.finish();
  check_bandwidth(copy.size, copy.time.median, map.where("median"));
  return copy;
}

MeasuredCollective read_collective(const yaml::Node& node) {
  yaml::Map map(node, "collective");
  MeasuredCollective collective{.where = node.where};
  collective.op = map.choice("op", kCollectiveOps).name;
  collective.devices = map.integer("devices", 2, 1 << 20);
  collective.size = map.quantity<Bytes>("size", yaml::kPositive);
  collective.in_place = map.boolean("in_place", false);
  collective.time = read_time(map);
  map.finish();
  check_bandwidth(collective.size, collective.time.median, map.where("median"));
  return collective;
}

MeasuredHost read_host(const yaml::Node& node) {
  yaml::Map map(node, "launching");
  MeasuredHost host{.where = node.where};
  host.op = map.choice("op", kHostOps).name;
  host.threads = map.integer("threads", 1, kMostThreads, 1);
  host.streams = map.integer("streams", 1, kMostThreads, 1);
  host.nodes = map.integer("nodes", 1, 1 << 20, 0);
  if ((host.op == "graph") != (host.nodes > 0)) {
    throw InputError(map.where(map.has("nodes") ? "nodes" : "op"), "'nodes' goes with a graph, and only with one");
  }
  host.time = read_time(map);
  host.call = optional_time(map, "call");
  map.finish();
  return host;
}

MeasuredInterference read_interference(const yaml::Node& node) {
  yaml::Map map(node, "interference");
  const MeasuredRow row = read_kernel_time(map, node.where);
  MeasuredInterference beside{.kernel = row.kernel, .time = row.time, .variant = row.variant, .where = node.where};
  beside.beside = map.choice("beside", kInterferers).name;
  beside.alone = map.quantity<Seconds>("alone", kTime);
  const yaml::Range rate{0, kMostBytesPerSecond, true, "0 to 1e15 B/s"};
  beside.beside_rate = map.quantity<BytesPerSecond>("beside_rate", rate);
  beside.rate_alone = map.quantity<BytesPerSecond>("rate_alone", {0, kMostBytesPerSecond, false, "more than 0"});
  map.finish();
  return beside;
}

// Reads `rate`: of arithmetic if its unit says FLOP, else of data.
void read_rate(yaml::Map& map, MeasuredPower& power) {
  if (!map.has("rate")) {
    return;
  }
  if (map.text("rate").find("FLOP") != std::string::npos) {
    power.flops = map.quantity<FlopsPerSecond>("rate", {0, kMostFlopsPerSecond, true, "0 to 1e17 FLOP/s"});
  } else {
    power.bandwidth = map.quantity<BytesPerSecond>("rate", {0, kMostBytesPerSecond, true, "0 to 1e15 B/s"});
  }
}

MeasuredPower read_power(const yaml::Node& node) {
  yaml::Map map(node, "power");
  MeasuredPower power{.where = node.where};
  power.state = map.text("state");
  power.power = map.quantity<Watts>("power", {0, 1e6, false, "more than 0, at most 1 MW"});
  power.duration = map.quantity<Seconds>("duration", kTime, Seconds{0});
  read_rate(map, power);
  map.text("clock", "");
  map.finish();
  return power;
}

MeasuredSentinel read_sentinel(const yaml::Node& node) {
  yaml::Map map(node, "sentinel");
  MeasuredSentinel sentinel;
  sentinel.when = map.text("when");
  sentinel.kernel = parse_kernel(map.text("kernel"), map.where("kernel"));
  sentinel.median = map.quantity<Seconds>("median", kTime);
  map.finish();
  return sentinel;
}

template <class Row> std::vector<Row> read_rows(yaml::Map& map, std::string_view key, Row (*read)(const yaml::Node&)) {
  std::vector<Row> rows;
  for (const yaml::Node* item : map.list(key)) {
    rows.push_back(read(*item));
  }
  return rows;
}

// The method names what an empty kernel takes between two events; a measurement of it in a graph has no events.
Seconds between_events(const yaml::Node* method, const std::vector<MeasuredRow>& rows) {
  const yaml::Node* empty = method == nullptr ? nullptr : method->find("empty_kernel");
  const auto in_graph = std::find_if(rows.begin(), rows.end(), [](const MeasuredRow& row) {
    return row.kernel.op == KernelOp::launch && row.regime == Regime::graph;
  });
  if (empty == nullptr || in_graph == rows.end()) {
    return Seconds{0};
  }
  const auto time = yaml::quantity<Seconds>(*empty, "empty_kernel", yaml::kDelay);
  return std::max(Seconds{0}, time - in_graph->time.median);
}

// All entries on one line: "driver 580.159, cuda 13.0".
std::string free_texts(const yaml::Node* node, std::string_view what) {
  std::string texts;
  if (node != nullptr) {
    const yaml::Map must_be_mapping(*node, std::string(what));
    for (const yaml::Node::Entry& entry : node->entries) {
      texts += (texts.empty() ? "" : ", ") + entry.key + " " + yaml::scalar(entry.value, entry.key);
    }
  }
  return texts;
}

// Place of the last value in a file; where a file ends too early, errors name it.
const Where& last_place(const yaml::Node& node) {
  if (!node.entries.empty()) {
    return last_place(node.entries.back().value);
  }
  return node.items.empty() ? node.where : last_place(node.items.back());
}

void check_schema(yaml::Map& map, const yaml::Node& document) {
  const std::string schema = map.text("schema");
  if (schema != kSchemaName) {
    throw InputError(map.where("schema"), "schema '" + excerpt(schema) + "'; allowed: " + std::string(kSchemaName));
  }
  if (!map.boolean("complete", false)) {
    throw InputError(last_place(document), "the measurements end here without 'complete: true', so they were cut off; "
                                           "allowed: a whole file, 'calibrate -o' of the same name goes on");
  }
}

} // namespace

double SampledTime::spread() const { return q1 && q3 ? relative_spread(q1->value, median.value, q3->value) : 0; }

Seconds kernel_time(const Measurements& measurements, const MeasuredRow& row) {
  constexpr double kLeast = 0.2;
  if (row.regime != Regime::burst || row.kernel.op == KernelOp::launch) {
    return row.time.median;
  }
  return std::max(row.time.median - measurements.between_events, row.time.median * kLeast);
}

Measurements read_measurements(const yaml::Node& document) {
  yaml::Map map(document, "measurements");
  check_schema(map, document);
  Measurements measurements;
  measurements.device = read_device(map.node("device"));
  for (const char* key : {"software", "method", "host"}) {
    const std::string texts = free_texts(map.find(key), key);
    measurements.provenance += (measurements.provenance.empty() || texts.empty() ? "" : "; ") + texts;
  }
  map.node("measured");
  measurements.measured = read_rows(map, "measured", read_row);
  measurements.between_events = between_events(map.find("method"), measurements.measured);
  measurements.copies = read_rows(map, "copies", read_copy);
  measurements.collectives = read_rows(map, "collectives", read_collective);
  measurements.host = read_rows(map, "launching", read_host);
  measurements.interference = read_rows(map, "interference", read_interference);
  measurements.power = read_rows(map, "power", read_power);
  measurements.sentinels = read_rows(map, "sentinels", read_sentinel);
  map.quantity<Seconds>("duration", yaml::kNotNegative, Seconds{0});
  map.finish();
  return measurements;
}

std::vector<MeasuredKernel> measured_kernels(const Measurements& measurements) {
  std::vector<MeasuredKernel> all;
  for (const MeasuredRow& row : measurements.measured) {
    if (row.regime == Regime::burst) {
      all.push_back({row.kernel, kernel_time(measurements, row), row.time.spread()});
    }
  }
  std::stable_sort(all.begin(), all.end(), measured_before);
  std::vector<MeasuredKernel> kernels;
  for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
    std::vector<double> times, spreads;
    for (; end < all.size() && all[end].kernel == all[first].kernel; ++end) {
      times.push_back(all[end].time.value);
      spreads.push_back(all[end].spread);
    }
    kernels.push_back({all[first].kernel, Seconds{quantile(times, 0.5)}, quantile(spreads, 0.5)});
  }
  return kernels;
}

} // namespace stagecraft
