// A pipeline to be carried out away from the simulator: what runs where, in which order, and what waits for what.
// docs/formats/pipeline.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "calibrate/gpu/sweep/kernel.hpp"

namespace stagecraft::gpu {

/// One device of a pipeline: multiprocessors of the GPU, or threads of its host.
struct PipelineDevice {
  std::string name;
  int processors = 0; ///< of a partition of the GPU; 0: the whole GPU
  int threads = 0;    ///< of the host, instead; 0: it is no host device

  bool on_host() const { return threads > 0; }
};

/// How bytes go between two devices of the GPU. Where an end is on the host they cross to it in any case.
enum class CopyRoute : std::uint8_t {
  device, ///< within the memory of the GPU
  host,   ///< to pinned memory of the host and back
  shaped, ///< within the GPU, no sooner than a link of a latency and a bandwidth would have it
};

inline constexpr std::array<std::string_view, 3> kCopyRoutes = {"device", "host", "shaped"};
constexpr std::string_view name_of(CopyRoute route) { return kCopyRoutes[static_cast<std::size_t>(route)]; }

/// A kernel that is run so many times, one after the other.
struct RepeatedKernel {
  Kernel kernel;
  int times = 1;
};

/// What all tasks of one kind do.
struct PipelineWork {
  enum class Kind : std::uint8_t { compute, copy, join }; ///< a join does nothing; others wait for it
  Kind kind = Kind::join;
  int device = -1;                     ///< that computes or sends
  std::vector<RepeatedKernel> kernels; ///< of a computation, in order
  int to = -1, channel = -1;           ///< of a copy: the device that gets it; copies of a channel follow one another
  std::int64_t bytes = 0;
  CopyRoute route = CopyRoute::device;
  double latency = 0, bandwidth = 0; ///< s, B/s of a shaped copy; a bandwidth of 0 is no limit
};

/// Task `to` waits for task `from` of so many iterations earlier.
struct PipelineTie {
  int from = 0, to = 0, iterations = 1;
};

struct Pipeline {
  std::string name;
  int iterations = 1;
  std::vector<PipelineDevice> devices;
  int channels = 0;
  std::vector<PipelineWork> works;
  std::vector<int> work;                  ///< [task]
  std::vector<std::string> names;         ///< [task]: for messages, as F0@1
  std::vector<std::vector<int>> after;    ///< [task]: the tasks that wait for it
  std::vector<std::vector<int>> programs; ///< [device]: its computations in order
  std::vector<PipelineTie> ties;

  int tasks() const { return static_cast<int>(work.size()); }
};

/// The file's text.
std::string to_text(const Pipeline& pipeline);

/// Reads it; std::invalid_argument says "file:line:column: what is wrong; what is allowed". What is read can be carried
/// out as far as its order goes: every computation stands once in the program of its device, nothing waits for itself.
Pipeline parse_pipeline(const std::string& text, const std::string& file);

/// A number that two texts share only if they are the same, in practice (FNV-1a): sixteen hexadecimal digits.
std::string digest_of(const std::string& text);

/// Whether a device is a whole GPU of so many multiprocessors.
bool is_whole(const PipelineDevice& device, int processors);

/// Why a GPU of so many multiprocessors, in units of `unit`, cannot be partitioned so; "" where it can. Copies within
/// the GPU take a unit of their own.
std::string why_no_partitions(const Pipeline& pipeline, int processors, int unit);

} // namespace stagecraft::gpu
