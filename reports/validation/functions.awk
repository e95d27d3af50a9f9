# What the tables of the scoreboard have in common: reports/validation/run reads it in front of each.
# SPDX-License-Identifier: Apache-2.0
function size(x) { return x < 0 ? -x : x }
function percent(x) { return sprintf("%.1f %%", 100 * x) }
# The same of a text for people, without places.
function share(x) { return sprintf("%.0f %%", 100 * x) }
# 2725 as 2,725.
function thousands(n, text) {
  for (text = ""; n >= 1000; n = int(n / 1000)) text = sprintf(",%03d", n % 1000) text
  return n text
}
# A line of CSV whose quoted texts have no commas and no quotes any more.
function unquoted(line, text) {
  while (match(line, /"[^"]*"/)) {
    text = substr(line, RSTART + 1, RLENGTH - 2)
    gsub(/,/, ";", text)
    line = substr(line, 1, RSTART - 1) text substr(line, RSTART + RLENGTH)
  }
  return line
}
# Reads a line of CSV into cell[NAME], by the names in the file's first line, which gives 0, as a row without a score
# does.
function read_row(i, n, text) {
  n = split(unquoted($0), text, ",")
  if (FNR == 1) {
    for (i in name) delete name[i]
    for (i in cell) delete cell[i]
    for (i = 1; i <= n; ++i) name[i] = text[i]
    return 0
  }
  for (i in name) cell[name[i]] = text[i]
  return cell["status"] !~ /^(not scored|skipped|right|wrong)$/
}
# The median of values[key, 1 ... n].
function median(values, key, n, i, j, t, sorted) {
  for (i = 1; i <= n; ++i) {
    t = values[key, i]
    for (j = i - 1; j > 0 && sorted[j] > t; --j) sorted[j + 1] = sorted[j]
    sorted[j + 1] = t
  }
  return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}
# Prints a paragraph in lines of at most 118 characters; `first` stands before its first line, `other` before the others.
# A number stays with its per cent.
function paragraph(text, first, other, i, n, word, line) {
  gsub(/ %/, "~%", text)
  n = split(text, word, / /)
  for (i = 1; i <= n; ++i) sub(/~%/, " %", word[i])
  line = first word[1]
  for (i = 2; i <= n; ++i) {
    if (length(line " " word[i]) > 118) {
      print line
      line = other word[i]
    } else line = line " " word[i]
  }
  print line
}
