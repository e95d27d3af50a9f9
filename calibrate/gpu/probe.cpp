// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/probe.hpp"

#include "calibrate/gpu/pipelines/partitions.hpp"

namespace stagecraft::gpu {
namespace {

std::string found(const std::string& what, const SharedLibrary& library) {
  return what + ": " + (library ? "found" : "missing: " + library.problem());
}

std::string parts_of(int device) {
  constexpr int kUnit = 8;
  try {
    const Partitions parts(device, {kUnit});
    return "parts of the device: of " + std::to_string(kUnit) + " multiprocessors beside " +
           std::to_string(parts.rest()) + " others";
  } catch (const DeviceError& error) {
    return std::string("parts of the device: none: ") + error.what();
  }
}

} // namespace

std::vector<std::string> probe(const Session& session) {
  const DeviceFacts& facts = session.facts;
  std::string software;
  for (const auto& [name, version] : describe_software(session)) {
    software += (software.empty() ? "" : ", ") + name + " " + version;
  }
  return {"device: " + facts.description + ", " + std::to_string(facts.processors) + " multiprocessors, " +
              memory_text(facts.memory) + ", " + memory_text(facts.free_memory) + " free",
          "software: " + software,
          found("cuBLASLt", session.lt.library),
          found("cuDNN", session.dnn.library),
          "NVML: " + (session.nvml.problem().empty() ? session.nvml.state() : session.nvml.problem()),
          parts_of(session.device)};
}

} // namespace stagecraft::gpu
