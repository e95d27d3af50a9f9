// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/pipelines/pipelines.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "calibrate/gpu/output/whole_file.hpp"

namespace stagecraft::gpu {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || in.bad()) {
    throw std::invalid_argument("cannot read " + path);
  }
  return text.str();
}

// Whether the file has times of exactly this pipeline.
bool is_done(const std::string& path, const Pipeline& pipeline) {
  if (!std::ifstream(path)) {
    return false;
  }
  try {
    const CarriedOut carried = parse_times(read_text(path), path);
    return carried.failure.empty() && carried.pipeline == digest_of(to_text(pipeline));
  } catch (const std::invalid_argument&) {
    return false;
  }
}

CarriedOut carry_out_here(const Pipeline& pipeline, int runs, const MakeLanes& make) {
  try {
    const std::unique_ptr<Lanes> lanes = make(pipeline);
    return carry_out(pipeline, *lanes, runs);
  } catch (const std::exception& failure) {
    CarriedOut carried;
    carried.pipeline = digest_of(to_text(pipeline));
    carried.failure = failure.what();
    std::replace(carried.failure.begin(), carried.failure.end(), '\n', ' ');
    std::replace(carried.failure.begin(), carried.failure.end(), '#', ' ');
    return carried;
  }
}

std::string milliseconds(const CarriedOut& carried) {
  std::int64_t end = 0;
  for (const LaneSpan& span : carried.spans) {
    end = std::max(end, span.finish);
  }
  std::ostringstream text;
  text.precision(4);
  text << static_cast<double>(end) * 1e-6 << " ms";
  return text.str();
}

} // namespace

std::string times_path(const std::string& pipeline, const std::string& folder) {
  const std::size_t slash = pipeline.rfind('/');
  const std::string name = slash == std::string::npos ? pipeline : pipeline.substr(slash + 1);
  const std::string stem = name.substr(0, name.rfind('.') == 0 ? std::string::npos : name.rfind('.'));
  const std::string beside = slash == std::string::npos ? "" : pipeline.substr(0, slash + 1);
  return (folder.empty() ? beside : folder + "/") + stem + ".times";
}

CarriedOut carry_out_text(const std::string& text, const std::string& name, int runs, const MakeLanes& make) {
  return carry_out_here(parse_pipeline(text, name), runs, make);
}

PipelinesEnd carry_out_files(const Options& options, const MakeLanes& make, const std::atomic<bool>& stop,
                             const std::function<void(const std::string&)>& told) {
  std::vector<Pipeline> pipelines;
  for (const std::string& path : options.pipelines) {
    pipelines.push_back(parse_pipeline(read_text(path), path));
    order_steps(pipelines.back());
  }
  const auto begin = std::chrono::steady_clock::now();
  PipelinesEnd end;
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    const std::string& name = options.pipelines[i];
    const std::string path = times_path(name, options.out);
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin;
    if (is_done(path, pipelines[i])) {
      ++end.done;
      told(name + ": is there already");
    } else if (stop || since.count() > options.budget) {
      ++end.left;
    } else {
      const CarriedOut carried = carry_out_here(pipelines[i], options.runs, make);
      write_whole(path, to_text(carried));
      ++(carried.failure.empty() ? end.done : end.failed);
      told(name + ": " + (carried.failure.empty() ? milliseconds(carried) : carried.failure));
    }
  }
  return end;
}

} // namespace stagecraft::gpu
