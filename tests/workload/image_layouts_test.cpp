// Images with channels first, which convolutions on tensor cores transpose.
// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/image_layouts.hpp"
#include "tests/catch.hpp"
#include "tests/workload/models.hpp"

namespace stagecraft {
namespace {

using test::near;

// 3 x 8 x 8 to 4 x 8 x 8, then grouped, then a pointwise activation.
ModelGraph images() {
  return test::workload("name: images\ninput: {shape: [3, 8, 8]}\nlayers:\n"
                        "  - {name: first, kind: conv2d, channels: 4, kernel: 3, padding: 1}\n"
                        "  - {name: second, kind: conv2d, channels: 8, kernel: 3, padding: 1}\n"
                        "  - {name: grouped, kind: conv2d, channels: 8, kernel: 3, padding: 1, groups: 2}\n"
                        "  - {name: relu, kind: relu}\n");
}

constexpr const ImageLayoutRow& kFirst = kImageLayouts[1];

TEST_CASE("a convolution transposes what it reads and what it writes", "[workload][images]") {
  const ModelGraph as_is = images();
  const ModelGraph transposed = with_image_layout(as_is, kFirst, Precision::tf32);
  const Operator& second = transposed.operators[1];
  constexpr double kPixels = 8 * 8, kBytes = 4, kReadAndWritten = 2;
  for (const Pass& pass : {second.forward, second.backward_input, second.backward_weight}) {
    CHECK(pass.casts == 2);
    CHECK(pass.cast_bytes == near(kReadAndWritten * kBytes * kPixels * (4 + 8)));
  }
  CHECK(transposed.operators[0].backward_input.casts == 0); // no gradient of images
  CHECK(transposed.operators[2].forward.casts == 0);        // grouped
  CHECK(transposed.operators[3].forward.casts == 0);
}

TEST_CASE("nothing is transposed with channels last, and in fp32", "[workload][images]") {
  const ModelGraph as_is = images();
  CHECK(with_image_layout(as_is, kImageLayouts[0], Precision::tf32).operators[1].forward.casts == 0);
  CHECK(with_image_layout(as_is, kFirst, Precision::fp32).operators[1].forward.casts == 0);
  CHECK(with_image_layout(as_is, kFirst, Precision::fp16).operators[1].forward.cast_bytes == near(2 * 2 * 64 * 12));
}

TEST_CASE("kernels over windows are those of the layout, in every precision", "[workload][images]") {
  const ModelGraph as_is = test::workload("name: images\ninput: {shape: [3, 8, 8]}\nlayers:\n"
                                          "  - {name: pool, kind: max_pool, kernel: 3, stride: 2}\n"
                                          "  - {name: again, kind: max_pool, kernel: 3, stride: 2}\n");
  const Operator& last = as_is.operators[1];
  for (const Precision precision : {Precision::fp32, Precision::fp16}) {
    const Operator first = with_image_layout(as_is, kFirst, precision).operators[1];
    CHECK(first.forward.instructions == last.forward.instructions_channels_first);
    CHECK(first.backward_input.instructions == last.backward_input.instructions_channels_first);
    CHECK(first.forward.instructions != last.forward.instructions);
    CHECK(with_image_layout(as_is, kImageLayouts[0], precision).operators[1].forward.instructions ==
          last.forward.instructions);
  }
}

} // namespace
} // namespace stagecraft
