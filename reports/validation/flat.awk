# JSON as `stagecraft validate` writes it, a key a line, as lines of tabs: the keys on the way, from 0 in lists, and the
# value. Lists within rows are left out.
# SPDX-License-Identifier: Apache-2.0
{
  match($0, /^ */)
  depth = RLENGTH
  line = substr($0, depth + 1)
  if (line ~ /^[]}]/) next
  sub(/,$/, "", line)
  if (match(line, /^"[^"]*": /)) {
    key = substr(line, 2, RLENGTH - 4)
    line = substr(line, RLENGTH + 1)
  } else key = next_of[depth]++
  if (line ~ /^[[{]$/) {
    path[depth] = depth > 1 ? path[depth - 1] "\t" key : key
    next_of[depth + 1] = 0
    next
  }
  if (line ~ /^[[{]/) next
  gsub(/^"|"$/, "", line)
  print (depth > 1 ? path[depth - 1] "\t" : "") key "\t" line
}
