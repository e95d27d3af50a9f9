// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/without_processors.hpp"

#include <algorithm>

#include "sim/platform/fits/kernel_fits.hpp"

namespace stagecraft {
namespace {

// As the type says, or its fits; 0 where neither does, as of devices whose links have engines of their own.
double multiprocessors_of(const DeviceType& type) {
  const double fitted = type.fits ? type.fits->processors * (type.fits->scale ? type.fits->scale->processors : 1) : 0;
  return type.processors > 0 ? type.processors : fitted;
}

} // namespace

double slower_without(double part) { return 1 / (1 - std::min(0.5, part)); }

double slower_without_processors(const DeviceType& type, double processors) {
  const double all = multiprocessors_of(type);
  return all > 1 ? slower_without(processors / all) : 1;
}

} // namespace stagecraft
