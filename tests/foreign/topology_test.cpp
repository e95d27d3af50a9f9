// Matrices of `nvidia-smi topo -m` as platform files.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/platform/route.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"
#include "tests/source_dir.hpp"

#include "calibrate/foreign/foreign_formats.hpp"

namespace stagecraft::foreign {
namespace {

using test::error_of;

const DeviceTypeSource kTypes = device_types_in(test::source_dir() / "platforms/devices");

ForeignOptions of(const std::string& device) {
  ForeignOptions options;
  options.device = load_device_type(kTypes(device, {"test", 0, 0}), kTypes);
  return options;
}

Platform imported(const std::string& text, const ForeignOptions& options) {
  return load_platform(yaml::parse(import_topology(text, "topo.txt", options).text, "imported"), kTypes);
}

std::string error(const std::string& text, const ForeignOptions& options = of("h100-sxm-80gb")) {
  return error_of([&] { import_topology(text, "topo.txt", options); });
}

// Bandwidth of a transfer that has its links for itself, in GB/s.
double bandwidth(const Platform& platform, DeviceId from, DeviceId to) {
  Router router(platform);
  return 1e-9 / router.cost(from, to).seconds_per_byte;
}

double latency(const Platform& platform, DeviceId from, DeviceId to) {
  Router router(platform);
  return router.cost(from, to).latency.value;
}

// Eight devices at one switch, a card near each, colours and all.
std::string dgx(const std::string& nvlinks = "NV18") {
  std::string text = "Topology of host\n\x1b[4m";
  for (int column = 0; column < 16; ++column) {
    text += "\t" + std::string(column < 8 ? "GPU" : "NIC") + std::to_string(column % 8);
  }
  text += "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n";
  for (int row = 0; row < 16; ++row) {
    text += std::string(row < 8 ? "GPU" : "NIC") + std::to_string(row % 8);
    for (int column = 0; column < 16; ++column) {
      const bool near = row % 8 == column % 8, same_half = row % 8 / 4 == column % 8 / 4;
      text += "\t" + (row == column           ? " X "
                      : row < 8 && column < 8 ? nvlinks
                      : near                  ? "PXB"
                      : same_half             ? "NODE"
                                              : "SYS");
    }
    text += row < 4 ? "\t0-55,112-167\t0\t\tN/A\n" : row < 8 ? "\t56-111,168-223\t1\t\tN/A\n" : "\t\t\t\t\n";
  }
  return text +
         "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend:\n\n"
         "  NIC0: mlx5_0\n  NIC1: mlx5_1\n";
}

TEST_CASE("a platform reads back whatever its device and the device's file are called", "[foreign][topology]") {
  for (const std::string name : {"h100\nx", "h100: b #c", "h100'", "h100\"\\", "h100 [x]{", "h100\xe2\x80\xae"}) {
    CAPTURE(name);
    ForeignOptions options = of("h100-sxm-80gb");
    options.device->name = name;
    options.device_file = name + ".yaml";
    const yaml::Node read = yaml::parse(import_topology(dgx(), "topo.txt", options).text, "imported");
    CHECK(read.find("name")->text == name + "-x8");
    CHECK(read.find("device_types")->items.front().text == name + ".yaml");
    CHECK(read.find("nodes")->items.front().find("devices")->items.front().find("type")->text == name);
  }
}

TEST_CASE("eight devices that all have all their NVLinks stand at a switch", "[foreign][topology]") {
  const Platform platform = imported(dgx(), of("h100-sxm-80gb"));
  REQUIRE(platform.devices.size() == 8);
  CHECK(platform.nodes[0].host.cores == 224);
  CHECK(bandwidth(platform, 0, 7) == Approx(18 * 20.55)); // the share of 450 GB/s that is stated as reached
  CHECK(latency(platform, 0, 7) == Approx(10e-6));
}

TEST_CASE("with fewer links than peers want the same matrix is a mesh", "[foreign][topology]") {
  // Four A100 of twelve links, four between each two: 3 x 4 = 12, so no switch; with five between each two there is
  // one.
  const auto four = [](const std::string& links) {
    return "     GPU0 GPU1 GPU2 GPU3 CPU Affinity\nGPU0 X " + links + " " + links + " " + links + " 0-7\nGPU1 " +
           links + " X " + links + " " + links + " 0-7\nGPU2 " + links + " " + links + " X " + links + " 0-7\nGPU3 " +
           links + " " + links + " " + links + " X 0-7\n";
  };
  const Platform mesh = imported(four("NV4"), of("a100-sxm-80gb")),
                 at_switch = imported(four("NV5"), of("a100-sxm-80gb"));
  CHECK(bandwidth(mesh, 1, 3) == Approx(4 * 20.25));
  CHECK(latency(mesh, 1, 3) == Approx(8e-6));
  CHECK(latency(at_switch, 1, 3) == Approx(10e-6));
}

const std::string kTwoSockets = "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
                                "GPU0\t X \tNV4\tSYS\tSYS\tPIX\t0-31\t0\t\tN/A\n"
                                "GPU1\tNV4\t X \tSYS\tSYS\tPXB\t0-31\t0\t\tN/A\n"
                                "GPU2\tSYS\tSYS\t X \tNV4\tSYS\t32-63\t1\t\tN/A\n"
                                "GPU3\tSYS\tSYS\tNV4\t X \tSYS\t32-63\t1\t\tN/A\n"
                                "NIC0\tPIX\tPXB\tSYS\tSYS\t X \t\t\t\n";

TEST_CASE("pairs of two sockets: NVLink within, PCIe by way of the host between", "[foreign][topology]") {
  const Platform platform = imported(kTwoSockets, of("v100-sxm2-16gb"));
  CHECK(platform.nodes[0].host.cores == 64);
  CHECK(bandwidth(platform, 0, 1) == Approx(4 * 23.95));
  CHECK(bandwidth(platform, 0, 2) == Approx(12));
  // Device 0 has a switch by the card that it shares with 1, so three links; 2 and 3 are at the host.
  CHECK(latency(platform, 0, 2) == Approx(7.5e-6));
  const std::string text = import_topology(kTwoSockets, "topo.txt", of("v100-sxm2-16gb")).text;
  CHECK(text.find("# PCIe: 12 GB/s: assumption") != std::string::npos);
  CHECK(text.find("#   NUMA node 1: GPU2, GPU3.") != std::string::npos);
}

TEST_CASE("a box without NVLink: PIX and PXB share a switch, PHB, NODE and SYS do not", "[foreign][topology]") {
  const std::string text = "        GPU0    GPU1    GPU2    GPU3    GPU4\n"
                           "GPU0     X      PIX     PHB     NODE    SYS\n"
                           "GPU1    PIX      X      PHB     NODE    SYS\n"
                           "GPU2    PHB     PHB      X      PXB     SYS\n"
                           "GPU3    NODE    NODE    PXB      X      SYS\n"
                           "GPU4    SYS     SYS     SYS     SYS      X\n";
  const Platform platform = imported(text, of("l4-24gb"));
  CHECK(platform.nodes[0].host.cores == 64);      // assumed
  CHECK(latency(platform, 0, 1) == Approx(5e-6)); // device, switch, device
  CHECK(latency(platform, 2, 3) == Approx(5e-6));
  CHECK(latency(platform, 0, 2) == Approx(10e-6));  // device, switch, host, switch, device
  CHECK(latency(platform, 0, 4) == Approx(7.5e-6)); // one switch fewer
  CHECK(bandwidth(platform, 0, 4) == Approx(25));
  ForeignOptions faster = of("l4-24gb");
  faster.pcie = BytesPerSecond{13e9};
  CHECK(bandwidth(imported(text, faster), 0, 4) == Approx(13));
}

TEST_CASE("several machines get a network, a card for each device where each has one near", "[foreign][topology]") {
  ForeignOptions options = of("h100-sxm-80gb");
  options.nodes = 2;
  CHECK(error(dgx(), options).find("--network: several nodes need a network") == 0);
  options.network = BytesPerSecond{47e9};
  const Platform platform = imported(dgx(), options);
  REQUIRE(platform.devices.size() == 16);
  CHECK(bandwidth(platform, 0, 8) == Approx(47));
  CHECK(latency(platform, 0, 8) == Approx(20e-6));
  options = of("v100-sxm2-16gb"); // whose one card is the host's
  options.nodes = 2;
  options.network = BytesPerSecond{5e9};
  CHECK(bandwidth(imported(kTwoSockets, options), 0, 4) == Approx(5));
}

TEST_CASE("links that are not known must be given, per link and direction", "[foreign][topology]") {
  const std::string pair = "GPU0 GPU1\nGPU0 X NV2\nGPU1 NV2 X\n";
  CHECK(error(pair, of("l4-24gb")).find("--nvlink: the matrix has NVLinks, but the bandwidth of a link of 'l4-24gb'") ==
        0);
  ForeignOptions options = of("l4-24gb");
  options.nvlink = BytesPerSecond{7e9};
  CHECK(bandwidth(imported(pair, options), 0, 1) == Approx(14));
  CHECK(error(pair, of("mi300x-192gb")).find("--nvlink") == 0);
  CHECK(error("GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\n", of("mi300x-192gb"))
            .find("--pcie: the bandwidth of a PCIe slot of") == 0);
  CHECK(error(pair, {}).find("--device: the matrix does not say what its GPUs are") == 0);
}

TEST_CASE("a switch whose devices have unequal numbers of links takes the least", "[foreign][topology]") {
  std::string text = "GPU0 GPU1 GPU2\nGPU0 X NV18 NV16\nGPU1 NV18 X NV16\nGPU2 NV16 NV16 X\n";
  CHECK(bandwidth(imported(text, of("h100-sxm-80gb")), 0, 1) == Approx(16 * 20.55));
}

TEST_CASE("one device alone is a platform too", "[foreign][topology]") {
  CHECK(imported("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-19\tN/A\n", of("t4-16gb")).devices.size() == 1);
}

TEST_CASE("broken matrices are refused at the cell", "[foreign][topology]") {
  CHECK(error("") == "topo.txt:1:1: no line of columns 'GPU0  GPU1 …'; allowed: the output of `nvidia-smi topo -m`");
  CHECK(error("GPU0 GPU1\nGPU0 X NVX\nGPU1 PIX X\n").find("topo.txt:2:8: ") == 0);
  CHECK(error("GPU0 GPU1\nGPU0 X QPI\nGPU1 QPI X\n") ==
        "topo.txt:2:8: 'QPI' is no connection of two devices; allowed: X, NV#, PIX, PXB, PHB, NODE, SYS");
  CHECK(error("GPU0 GPU1\nGPU0 X PIX\nGPU1 SYS X\n") ==
        "topo.txt:3:6: 'SYS' between 'GPU1' and 'GPU0', whose row says otherwise at topo.txt:2:8; allowed: the same in "
        "both directions");
  CHECK(error("GPU0 GPU1\nGPU0 PIX PIX\nGPU1 PIX X\n").find("topo.txt:2:6: 'PIX' between 'GPU0' and 'GPU0'") == 0);
  CHECK(error("GPU0 GPU1\nGPU0 X X\nGPU1 PIX X\n").find("topo.txt:2:8: 'X' between") == 0);
  CHECK(error("GPU0 GPU1\nGPU0 X\nGPU1 PIX X\n") == "topo.txt:2:6: the row ends after 1 connections; allowed: 2");
  CHECK(error("GPU0 GPU1\nGPU0 X PIX\n") == "topo.txt:1:1: the matrix has 1 rows; allowed: the 2 of the header");
  CHECK(error("GPU0 GPU1\nGPU1 X PIX\nGPU0 PIX X\n").find("topo.txt:2:1: 'GPU1' instead of the row of 'GPU0'") == 0);
  CHECK(error("GPU0 GPU0\nGPU0 X PIX\nGPU0 PIX X\n").find("topo.txt:1:6: 'GPU0' stands twice") == 0);
  CHECK(error("GPU0 NIC0 GPU1\n").find("topo.txt:1:11: 'GPU1' stands behind network cards") == 0);
  CHECK(error("GPU0 CPU Affinity\nGPU0 X 3-99999999999\n").find("topo.txt:2:8: ") == 0);
}

TEST_CASE("the shipped sample of nvidia-smi is read", "[foreign][topology]") {
  const std::filesystem::path file = test::source_dir() / "../shared/samples/nvidia_smi_topo.txt";
  if (!std::filesystem::exists(file)) {
    WARN("no " << file.string());
    return;
  }
  CHECK(imported(read_file(file), of("v100-sxm2-16gb")).devices.size() == 4);
}

} // namespace
} // namespace stagecraft::foreign
