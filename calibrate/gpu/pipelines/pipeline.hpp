// A pipeline to be run outside the simulator: what runs where, in which order, and what waits for what.
// docs/formats/pipeline.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "calibrate/gpu/sweep/kernel.hpp"

namespace stagecraft::gpu {

/// A device of a pipeline: multiprocessors of the GPU, or threads of its host.
struct PipelineDevice {
  std::string name;
  int processors = 0; ///< size of its partition of the GPU; 0: the whole GPU
  int threads = 0;    ///< number of host threads; 0: it is not on the host

  bool on_host() const { return threads > 0; }
};

/// How copies go between two devices on the GPU. A copy to or from the host always goes directly.
enum class CopyRoute : std::uint8_t {
  device, ///< within the memory of the GPU
  host,   ///< to pinned memory of the host and back
  shaped, ///< within the GPU, but as slow as a link of some latency and bandwidth
};

inline constexpr std::array<std::string_view, 3> kCopyRoutes = {"device", "host", "shaped"};
constexpr std::string_view name_of(CopyRoute route) { return kCopyRoutes[static_cast<std::size_t>(route)]; }

/// A kernel, and how many times it runs in a row.
struct RepeatedKernel {
  Kernel kernel;
  int times = 1;
};

/// What all tasks of one kind do.
struct PipelineWork {
  enum class Kind : std::uint8_t { compute, copy, join }; ///< a join does nothing; tasks wait for it
  Kind kind = Kind::join;
  int device = -1;                     ///< the device that computes or sends
  std::vector<RepeatedKernel> kernels; ///< for a computation, in order
  int to = -1, channel = -1; ///< for a copy: the receiving device, and a channel, whose copies run one after another
  std::int64_t bytes = 0;
  CopyRoute route = CopyRoute::device;
  double latency = 0, bandwidth = 0; ///< for a shaped copy, in s and B/s; bandwidth 0: no limit
};

/// Task `to` waits for task `from`, `iterations` iterations earlier.
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
  std::vector<std::string> names;         ///< [task]: for messages, such as F0@1
  std::vector<std::vector<int>> after;    ///< [task]: the tasks that wait for it
  std::vector<std::vector<int>> programs; ///< [device]: its computations in order
  std::vector<PipelineTie> ties;

  int tasks() const { return static_cast<int>(work.size()); }
};

/// The text of the pipeline's file.
std::string to_text(const Pipeline& pipeline);

/// Reads the text; std::invalid_argument says "file:line:column: what is wrong; what is allowed". A pipeline that was
/// read has every computation exactly once, in the program of its device, and no task waits for itself.
Pipeline parse_pipeline(const std::string& text, const std::string& file);

/// A digest (FNV-1a) in sixteen hexadecimal digits; in practice equal only for equal texts.
std::string digest_of(const std::string& text);

/// Whether a device is a whole GPU with `processors` multiprocessors.
bool is_whole(const PipelineDevice& device, int processors);

/// Why a GPU with `processors` multiprocessors, in units of `unit`, cannot be partitioned for the pipeline; "" if it
/// can. Copies within the GPU need a unit of their own.
std::string why_no_partitions(const Pipeline& pipeline, int processors, int unit);

} // namespace stagecraft::gpu
