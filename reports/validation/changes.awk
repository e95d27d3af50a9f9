# What the project's README says of pairs of runs that differ in one setting. Reads what-ifs.csv.
# SPDX-License-Identifier: Apache-2.0
!read_row() { next }
cell["setting"] == "device type" {
  add("devices")
  next
}
{
  add("all")
  if (cell["setting"] == "power limit") add("power")
  else add("other")
}
function add(key) {
  ratio[key, ++pairs[key]] = size(cell["error"])
  if (cell["tie"] == 1) return
  ++decided[key]
  right[key] += (cell["measured"] - 1) * (cell["predicted"] - 1) > 0
}
END {
  paragraph("**What a change does** is known better. Of " thousands(decided["all"]) " pairs of runs that differ in one setting the direction is right in " \
    share(right["all"] / decided["all"]) ", and the ratio is " percent(median(ratio, "all", pairs["all"])) " off in the median. Of other settings than power limits it is right in " \
    share(right["other"] / decided["other"]) ", of power limits in " share(right["power"] / decided["power"]) \
    ": nearly always where the device decides, as for ResNet-50, and hardly ever where the host does, since a limit then changes nothing in the model.", "- ", "  ")
  paragraph("**Which device type is faster** at the same work is said rightly of " share(right["devices"] / decided["devices"]) " of " \
    thousands(decided["devices"]) " pairs of device types, and the ratio is " percent(median(ratio, "devices", pairs["devices"])) " off in the median.", "- ", "  ")
}
