// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replayer.hpp"

#include <algorithm>

#include "sim/base/process/worker_pool.hpp"

namespace stagecraft {
namespace {

struct Batch {
  std::size_t first, count; // of the requests
};

double executed(const ReplayRequest& request) {
  return static_cast<double>(request.graph.tasks()) * request.iterations;
}

// Batches of about equal work. They do not depend on the number of workers, since what else an engine has replayed may
// show in the last digits of a timeline.
std::vector<Batch> batches_of(std::span<const ReplayRequest> requests) {
  constexpr double kLeast = 50'000; // executed tasks: more than a child takes to start
  constexpr int kMost = 64;
  double all = 0;
  for (const ReplayRequest& request : requests) {
    all += executed(request);
  }
  const double share = std::max(kLeast, all / kMost);
  std::vector<Batch> batches;
  double done = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (batches.empty() || done >= share) {
      batches.push_back({i, 0});
      done = 0;
    }
    ++batches.back().count;
    done += executed(requests[i]);
  }
  return batches;
}

std::string to_bytes(std::span<const Timeline> timelines) {
  std::string bytes;
  for (const Timeline& timeline : timelines) {
    put_timeline(bytes, timeline);
  }
  return bytes;
}

void take_timelines(std::string_view bytes, std::span<Timeline> timelines) {
  ByteReader reader(bytes);
  for (Timeline& timeline : timelines) {
    timeline = take_timeline(reader);
  }
}

} // namespace

void put_timeline(std::string& bytes, const Timeline& timeline) {
  put(bytes, timeline.iterations);
  put(bytes, timeline.window);
  put_list(bytes, timeline.start);
  put_list(bytes, timeline.finish);
}

Timeline take_timeline(ByteReader& reader) {
  Timeline timeline{.iterations = reader.take<int>()};
  timeline.window = reader.take<int>();
  timeline.start = reader.take_list<double>();
  timeline.finish = reader.take_list<double>();
  return timeline;
}

std::vector<Timeline> Replayer::operator()(std::span<const ReplayRequest> requests) const {
  const std::vector<Batch> batches = batches_of(requests);
  std::vector<Timeline> timelines(requests.size());
  const auto replayed = [&](const Batch& batch) { return engine_(requests.subspan(batch.first, batch.count)); };
  const auto room_of = [&](const Batch& batch) { return std::span(timelines).subspan(batch.first, batch.count); };
  share_out(workers_,
            {.count = batches.size(),
             .work = [&](std::size_t batch) { return to_bytes(replayed(batches[batch])); },
             .take = [&](std::size_t batch, const auto& bytes) { take_timelines(bytes, room_of(batches[batch])); },
             .here =
                 [&](std::size_t batch) {
                   std::vector<Timeline> made = replayed(batches[batch]);
                   std::move(made.begin(), made.end(), room_of(batches[batch]).begin());
                 }});
  return timelines;
}

} // namespace stagecraft
