// Backend `emulated`: computations sleep their times, transfers cross a network of this machine's own.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/network.hpp"

namespace stagecraft::pipeline {
namespace {

class Emulated : public Backend {
public:
  explicit Emulated(const Setting& setting) : network_(setting) {}

  void compute(const Job& job) override { sleep_until(job.start + nanoseconds(job.work.seconds), stopped()); }

  // A link's latency is kept by the sender: queues that delay packets are not to be had everywhere. So is what
  // the links' buckets, full after a pause, let through beyond their rate.
  void transfer(const Job& job, int channel) override {
    sleep_until(job.start + nanoseconds(job.work.latency + network_.head_start(channel)), stopped());
    network_.send(channel, job.work.bytes);
  }

  std::vector<std::pair<std::string, std::string>> conditions() const override { return network_.conditions(); }

private:
  void interrupted() override { network_.shut(); }

  Network network_;
};

} // namespace

std::unique_ptr<Backend> make_emulated(const Setting& setting) { return std::make_unique<Emulated>(setting); }

} // namespace stagecraft::pipeline
