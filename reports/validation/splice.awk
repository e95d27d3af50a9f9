# A page with the parts that reports/validation/run makes put between their marks, <!-- made: NAME --> and
# <!-- made so far -->. `parts` is the folder of NAME.md.
# SPDX-License-Identifier: Apache-2.0
/^<!-- made: [a-z-]+ -->$/ {
  print
  file = parts "/" $3 ".md"
  print ""
  while ((got = (getline line <file)) > 0) print line
  if (got < 0) {
    print "splice.awk: " FILENAME " asks for " file ", which was not made" >"/dev/stderr"
    exit 2
  }
  print ""
  within = 1
}
/^<!-- made so far -->$/ { within = 0 }
!within { print }
