// Values of device memory on the host, as numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "calibrate/gpu/sweep/kernel.hpp"

namespace stagecraft::gpu {

using Values = std::vector<double>;

/// How elements are stored: in a precision, or in 8 bits with more exponent, as gradients are.
enum class Stored : std::uint8_t { fp32, fp16, bf16, e4m3, e5m2 };

/// How a precision is stored; fp8 as e4m3.
Stored stored_as(Precision precision);

/// `count` values from device memory, once everything enqueued before has ended. DeviceError if they cannot be read.
Values read_values(Stored stored, const void* device, std::int64_t count);
std::vector<int> read_integers(const int* device, std::int64_t count);
std::vector<unsigned char> read_bytes(const unsigned char* device, std::int64_t count);
/// Writes one fp32 value.
void write_value(float* device, float value);

} // namespace stagecraft::gpu
