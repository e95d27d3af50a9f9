// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/nvml.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace stagecraft::gpu {
namespace {

// Values of nvmlClockType_t and nvmlTemperatureSensors_t.
constexpr int kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;

// What a function of NVML returns for the device, times `unit`; nothing if the function or the device is missing.
template <class Device, class Value>
std::optional<double> ask(Device device, int (*function)(Device, Value*), double unit) {
  Value value = 0;
  return device != nullptr && function != nullptr && function(device, &value) == 0
             ? std::optional(static_cast<double>(value) * unit)
             : std::nullopt;
}

template <class Device, class Value>
std::optional<double> ask(Device device, int (*function)(Device, int, Value*), int of, double unit) {
  Value value = 0;
  return device != nullptr && function != nullptr && function(device, of, &value) == 0
             ? std::optional(static_cast<double>(value) * unit)
             : std::nullopt;
}

} // namespace

template <class Function> void Nvml::want(Function*& function, const char* name, const char* older) {
  SharedLibrary probe = library_; // so that a missing function does not affect the others
  probe.load(function, name);
  if (function == nullptr && older != nullptr) {
    probe = library_;
    probe.load(function, older);
  }
}

Nvml::Nvml(const std::vector<std::string>& folders, const std::string& bus_id) {
  library_ = SharedLibrary::open({"libnvidia-ml.so.1", "libnvidia-ml.so"}, folders);
  want(initialize_, "nvmlInit_v2");
  want(by_bus_id_, "nvmlDeviceGetHandleByPciBusId_v2");
  want(power_, "nvmlDeviceGetPowerUsage");
  want(limit_, "nvmlDeviceGetEnforcedPowerLimit");
  want(energy_, "nvmlDeviceGetTotalEnergyConsumption");
  want(clock_, "nvmlDeviceGetClockInfo");
  want(most_clock_, "nvmlDeviceGetMaxClockInfo");
  want(temperature_, "nvmlDeviceGetTemperature");
  want(reasons_, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons");
  want(driver_, "nvmlSystemGetDriverVersion");
  if (!library_ || initialize_ == nullptr || by_bus_id_ == nullptr) {
    problem_ = library_ ? "NVML lacks functions" : library_.problem();
    return;
  }
  const int started = initialize_();
  const int found = started == 0 ? by_bus_id_(bus_id.c_str(), &device_) : started;
  problem_ = found == 0 ? "" : "NVML says " + std::to_string(found);
  device_ = found == 0 ? device_ : nullptr;
}

std::optional<double> Nvml::power() const { return ask(device_, power_, 1e-3); }
std::optional<double> Nvml::power_limit() const { return ask(device_, limit_, 1e-3); }
std::optional<double> Nvml::energy() const { return ask(device_, energy_, 1e-3); }
std::optional<double> Nvml::clock() const { return ask(device_, clock_, kClockSm, 1e6); }
std::optional<double> Nvml::memory_clock() const { return ask(device_, clock_, kClockMemory, 1e6); }
std::optional<double> Nvml::most_clock() const { return ask(device_, most_clock_, kClockSm, 1e6); }
std::optional<double> Nvml::temperature() const { return ask(device_, temperature_, kTemperatureGpu, 1); }

std::optional<unsigned long long> Nvml::reasons() const {
  unsigned long long bits = 0;
  return device_ != nullptr && reasons_ != nullptr && reasons_(device_, &bits) == 0 ? std::optional(bits)
                                                                                    : std::nullopt;
}

std::string Nvml::driver() const {
  std::array<char, 96> text{};
  return problem_.empty() && driver_ != nullptr && driver_(text.data(), text.size()) == 0 ? text.data() : "";
}

std::string Nvml::state() const {
  std::string text;
  const auto add = [&](const char* front, std::optional<double> value, double unit, const char* name) {
    if (value) {
      text += (text.empty() ? "" : ", ") + std::string(front) + std::to_string(std::lround(*value / unit)) + name;
    }
  };
  add("", clock(), 1e6, " MHz");
  add("memory ", memory_clock(), 1e6, " MHz");
  add("", temperature(), 1, " C");
  add("", power(), 1, " W");
  if (const auto bits = reasons()) {
    std::array<char, 40> hex{};
    std::snprintf(hex.data(), hex.size(), "%sreasons 0x%llx", text.empty() ? "" : ", ", *bits);
    text += hex.data();
  }
  return text;
}

} // namespace stagecraft::gpu
