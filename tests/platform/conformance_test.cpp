// Every shipped device type and platform obeys the laws; a new file is tested without a new test.
// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <map>

#include "sim/base/system/file.hpp"
#include "sim/platform/fits/kernel_fits.hpp"
#include "sim/platform/route.hpp"
#include "tests/catch.hpp"
#include "tests/platform/platforms.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

using test::near;

// The dotted keys of all scalars that begin with a digit: the numbers of a file.
void collect_numbers(const yaml::Node& node, const std::string& prefix, std::vector<std::string>& keys) {
  for (const yaml::Node::Entry& entry : node.entries) {
    const std::string key = prefix.empty() ? entry.key : prefix + "." + entry.key;
    if (key == "fits" || key == "measurements") {
      continue; // they name their source themselves
    }
    if (entry.value.kind == yaml::Node::Kind::map && key != "sources") {
      collect_numbers(entry.value, key, keys);
    } else if (!entry.value.text.empty() && std::isdigit(static_cast<unsigned char>(entry.value.text.front())) != 0) {
      keys.push_back(key);
    }
  }
}

TEST_CASE("every shipped device type loads, and its name is its file's", "[platform][conformance]") {
  const auto files = test::yaml_files(test::platforms_folder() / "devices");
  CHECK(files.size() >= 14);
  for (const auto& file : files) {
    INFO(file);
    const DeviceType type = load_device_type(yaml::load(file), test::shipped_types());
    CHECK(type.name == file.stem());
    CHECK(type.busy >= type.idle);
    CHECK(type.idle.value > 0);
    CHECK(type.price.rate.value > 0);
    CHECK(type.memory.value >= 1e9);
    CHECK(type.rate(KernelKind::matmul, Precision::fp32));
    for (const KernelKindRow& kind : kKernelKinds) {
      for (const PrecisionRow& precision : kNumberFormats) {
        const auto rate = type.rate(kind.kind, precision.precision);
        const auto peak = type.peak[static_cast<size_t>(precision.precision)];
        if (kind.matrix && rate) {
          INFO(kind.name << " " << precision.name);
          REQUIRE(peak);
          CHECK(*rate <= *peak);
        }
      }
    }
  }
}

TEST_CASE("every number of a shipped device type has its source", "[platform][conformance]") {
  for (const auto& file : test::yaml_files(test::platforms_folder() / "devices")) {
    const yaml::Node document = yaml::load(file);
    const yaml::Node* sources = document.find("sources");
    REQUIRE(sources != nullptr);
    std::vector<std::string> numbers;
    collect_numbers(document, "", numbers);
    CHECK(numbers.size() > 10);
    for (const std::string& key : numbers) {
      INFO(file << " " << key);
      const yaml::Node* source = sources->find(key.starts_with("price.") ? "price" : key);
      REQUIRE(source != nullptr);
      CHECK(source->text.size() > 5);
      if (document.find("origin")->text == "made-up") {
        CHECK_THAT(source->text, Catch::StartsWith("made up"));
      }
    }
  }
}

TEST_CASE("every shipped price names whose it is, and whether it is assumed", "[platform][conformance]") {
  for (const auto& file : test::yaml_files(test::platforms_folder() / "devices")) {
    INFO(file);
    const yaml::Node document = yaml::load(file);
    const Price price = load_device_type(document, test::shipped_types()).price;
    CHECK_FALSE(price.source.empty());
    const std::string& text = document.find("sources")->find("price")->text;
    CHECK(price.assumed == (text.starts_with("assumption") || text.starts_with("made up")));
  }
}

// The chip of a device type: its name begins with it, but for those whose boards go by other names. Two have chips that
// nobody measured, and count as their next relatives.
std::string chip_of(const std::string& name) {
  const std::map<std::string, std::string> other_names = {{"h800-sxm-80gb", "h100"}, {"a800-sxm-80gb", "a100"},
                                                          {"gh200-96gb", "h100"},    {"rtx-6000-ada-48gb", "l40s"},
                                                          {"p40-24gb", "p4"},        {"quadro-rtx-6000-24gb", "v100"}};
  const auto found = other_names.find(name);
  return found != other_names.end() ? found->second : name.substr(0, name.find('-'));
}

TEST_CASE("every shipped fit says where its measurements come from, and how far off it is", "[platform][conformance]") {
  for (const auto& file : test::yaml_files(test::platforms_folder() / "devices")) {
    const yaml::Node document = yaml::load(file);
    if (const yaml::Node* fits = document.find("fits")) {
      INFO(file);
      const DeviceType type = load_device_type(document, test::shipped_types());
      if (const yaml::Node* from = fits->find("from")) { // those of the same chip
        CHECK(type.origin == Origin::catalogue);
        CHECK(chip_of(from->text) == chip_of(type.name));
        CHECK(type.fits->scale);
        continue;
      }
      REQUIRE(fits->find("provenance") != nullptr);
      CHECK((type.origin == Origin::measured) == !type.fits->kernels.empty());
      for (const KernelFit& fit : type.fits->kernels) {
        INFO(fit.name);
        const FitError& error = fit.grid ? fit.grid->error : fit.family ? fit.family->error : fit.line->error;
        CHECK(error.points > 0);
        CHECK(error.scheme != "none");
      }
    }
  }
}

TEST_CASE("every shipped platform loads, and its name is its file's", "[platform][conformance]") {
  const auto files = test::yaml_files(test::platforms_folder());
  CHECK(files.size() >= 9);
  for (const auto& file : files) {
    INFO(file);
    const Platform platform = load_platform(yaml::load(file), test::shipped_types());
    CHECK(platform.name == file.stem());
    CHECK_FALSE(platform.description.empty());
    for (const Link& link : platform.links) {
      CHECK(link.bandwidth.value > 0);
      CHECK(link.latency.value >= 0);
    }
  }
}

bool is_of_torus(const Platform& platform, LinkId link) {
  return std::any_of(platform.tori.begin(), platform.tori.end(), [&](const Torus& torus) {
    return std::find(torus.links.begin(), torus.links.end(), link) != torus.links.end();
  });
}

// Legs follow one another from the first device to the second, and the costs are what their links say. Only through a
// torus do they pass other devices.
void check_route(const Platform& platform, const Route& route, DeviceId from, DeviceId to) {
  int at = from;
  for (const Leg& leg : route.legs) {
    Seconds latency;
    BytesPerSecond bandwidth = platform.links[static_cast<size_t>(leg.links.front())].bandwidth;
    for (const LinkId id : leg.links) {
      const Link& link = platform.links[static_cast<size_t>(id)];
      REQUIRE(link.from == at);
      const bool passes_device = platform.vertices[static_cast<size_t>(at)].kind == Vertex::Kind::device && at != from;
      REQUIRE((!passes_device || is_of_torus(platform, id)));
      at = link.to;
      latency += link.latency;
      bandwidth = std::min(bandwidth, link.bandwidth);
    }
    REQUIRE(leg.latency.value == near(latency.value));
    REQUIRE(leg.bandwidth == bandwidth);
  }
  REQUIRE(at == to);
  const bool one_vendor = platform.type_of(from).vendor == platform.type_of(to).vendor;
  REQUIRE((route.legs.size() == 1) == one_vendor);
}

TEST_CASE("on every shipped platform every device reaches every other", "[platform][conformance]") {
  for (const auto& file : test::yaml_files(test::platforms_folder())) {
    INFO(file);
    const Platform platform = load_platform(yaml::load(file), test::shipped_types());
    const int devices = static_cast<int>(platform.devices.size());
    const int step = devices > 64 ? 37 : 1; // a sample of the pairs where there are many
    Router router(platform);
    for (DeviceId from = 0; from < devices; from += step) {
      for (DeviceId to = 0; to < devices; ++to) {
        const Route* route = router.find(from, to);
        REQUIRE(route != nullptr);
        if (from != to) {
          check_route(platform, *route, from, to);
        }
      }
    }
  }
}

// The first ```yaml block of a document.
yaml::Node example_of(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  const std::string opening = "```yaml\n";
  const size_t start = text.find(opening);
  REQUIRE(start != std::string::npos);
  const size_t first = start + opening.size();
  return yaml::parse(text.substr(first, text.find("```", first) - first), file.string());
}

TEST_CASE("the examples of the format descriptions load", "[platform][conformance]") {
  const std::filesystem::path folder = test::source_dir() / "docs/formats";
  CHECK(load_device_type(example_of(folder / "device.md")).name == "example-16gb");
  const Platform platform = load_platform(example_of(folder / "platform.md"), test::shipped_types());
  CHECK(names_of(platform.nodes) == std::vector<std::string>{"server-0", "server-1"});
}

TEST_CASE("every shipped platform and device type is in the README", "[platform][conformance]") {
  const std::string readme = read_file(test::platforms_folder() / "README.md");
  for (const char* folder : {".", "devices"}) {
    for (const auto& file : test::yaml_files(test::platforms_folder() / folder)) {
      CHECK_THAT(readme, Catch::Contains("`" + file.stem().string() + "`"));
    }
  }
}

} // namespace
} // namespace stagecraft
