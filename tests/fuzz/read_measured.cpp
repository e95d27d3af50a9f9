// Measurements of other tools, and the files of the program that measures a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "sim/platform/fits/measurements.hpp"
#include "tests/fuzz/fuzz_files.hpp"
#include "tests/fuzz/read.hpp"

#include "calibrate/fit/kernel_tables.hpp"
#include "calibrate/foreign/foreign_formats.hpp"
#include "calibrate/gpu/pipelines/carry_out.hpp"

namespace stagecraft::fuzz {
namespace {

// The program that measures a GPU builds without the simulator and has no InputError: its readers refuse a file with
// std::invalid_argument.
template <class Read> void read_for_gpu(const Read& read) {
  try {
    read();
  } catch (const std::invalid_argument& refusal) {
    throw InputError({"file", 0, 0}, refusal.what());
  }
}

// Converts a file of another tool and reads the result back, as `import` does.
void import_foreign(std::string_view bytes, std::string_view name) {
  static const foreign::ForeignOptions kOptions{.device = shipped_type("h200-sxm"),
                                                .nvlink = BytesPerSecond{450e9},
                                                .pcie = BytesPerSecond{50e9},
                                                .nodes = 2,
                                                .network = BytesPerSecond{50e9}};
  for (const foreign::ForeignFormat& format : foreign::foreign_formats()) {
    if (format.name == name) {
      const yaml::Node document = yaml::parse(format.read(bytes, "file", kOptions).text, "the new file");
      document.find("nodes") != nullptr ? void(load_platform(document, shipped_types()))
                                        : void(read_measurements(document));
      return;
    }
  }
  require(false, "the format has a row");
}

} // namespace

void read_kernel_tables(std::string_view bytes) {
  for (const fit::TableKindRow& row : fit::kTableKinds) {
    try {
      fit::read_kernel_table(row.kind, bytes, "file", "h100-sxm-80gb", "");
    } catch (const InputError&) { // a table of another kind
    }
  }
}

void read_shape_list(std::string_view bytes) {
  read_for_gpu([&] {
    for (const gpu::Kernel& kernel : gpu::parse_shape_list(bytes, "file")) {
      const std::string text = to_text(kernel);
      require(gpu::parse_kernel(text) == kernel, "a kernel reads back as the same");
      require(to_text(stagecraft::parse_kernel(text, {"line", 1, 1})) == text, "both programs name kernels alike");
      flops_of(kernel);
      bytes_of(kernel);
    }
  });
}

void read_pipeline(std::string_view bytes) {
  read_for_gpu([&] {
    const gpu::Pipeline pipeline = gpu::parse_pipeline(std::string(bytes), "file");
    const std::string text = to_text(pipeline);
    require(to_text(gpu::parse_pipeline(text, "written")) == text, "a pipeline reads back as the same");
    gpu::why_no_partitions(pipeline, 132, 8);
    gpu::order_steps(pipeline);
  });
}

void read_times(std::string_view bytes) {
  read_for_gpu([&] {
    const std::string text = to_text(gpu::parse_times(std::string(bytes), "file"));
    require(to_text(gpu::parse_times(text, "written")) == text, "times read back as the same");
  });
}

void read_kineto_trace(std::string_view bytes) { import_foreign(bytes, "kineto"); }

void read_nccl_output(std::string_view bytes) { import_foreign(bytes, "nccl-tests"); }

void read_topology(std::string_view bytes) { import_foreign(bytes, "nvidia-smi-topo"); }

} // namespace stagecraft::fuzz
