// SPDX-License-Identifier: Apache-2.0
#include "sim/platform/vertex_name.hpp"

namespace stagecraft {

std::string name_of_kind(const Vertex& vertex) {
  if (vertex.kind == Vertex::Kind::device) {
    return "device";
  }
  const std::string name = vertex.name.substr(vertex.name.rfind('/') + 1);
  const std::size_t last = name.find_last_not_of("0123456789");
  const bool numbered = last != std::string::npos && last + 1 < name.size() && name[last] == '-';
  return numbered ? name.substr(0, last) : name;
}

} // namespace stagecraft
