# Reads JUnit XML tag by tag. A record is what stands between two "<", so a tag and the text behind it.
# Comments and CDATA sections are passed over: a test may print what looks like a report.

BEGIN { RS = "<" }

FNR == 1 {
  if (previous != "") check_end()
  previous = FILENAME
  suites = depth = 0
}

{
  if (inside != "") {
    if (index($0, inside)) inside = ""
    next
  }
  if (substr($0, 1, 3) == "!--") {
    if (!index($0, "-->")) inside = "-->"
    next
  }
  if (substr($0, 1, 8) == "![CDATA[") {
    if (!index($0, "]]>")) inside = "]]>"
    next
  }
  if ($0 ~ /^testcase[ \t\r\n\/>]/) start_case()
  else if ($0 ~ /^\/testcase[ \t\r\n>]/) end_case()
  else if (open_case && $0 ~ /^(failure|error)[ \t\r\n\/>]/) {
    verdict = "failed"
    if (message == "") message = attribute($0, "message")
  }
  else if (open_case && $0 ~ /^skipped[ \t\r\n\/>]/ && verdict == "passed") verdict = "skipped"
  else if ($0 ~ /^testsuites?[ \t\r\n\/>]/) {
    suites++
    if (!is_empty($0)) depth++
  }
  else if ($0 ~ /^\/testsuites?[ \t\r\n>]/) depth--
}

END {
  # awk comes here also after an exit.
  if (status) exit status
  check_end()
  for (number = 1; number <= named; number++) print lines[number]
  if (failed > named) printf "… and %d more\n", failed - named
  printf "%d tests: %d passed, %d failed, %d skipped, in %.3f s\n", total, total - failed - skipped, failed, skipped, seconds
  printf "total=%d\npassed=%d\nfailed=%d\nskipped=%d\nseconds=%.3f\n", total, total - failed - skipped, failed, skipped, seconds > counts
}

# What began must have ended.
function check_end() {
  if (inside != "" || open_case || suites == 0 || depth != 0) broken(previous)
}

function start_case() {
  if (open_case) end_case()
  open_case = 1
  verdict = "passed"
  message = ""
  name = attribute($0, "name")
  class = attribute($0, "classname")
  time = attribute($0, "time")
  gsub(/,/, "", time)
  if (time ~ /^[0-9]+(\.[0-9]+)?$/) seconds += time
  if (is_empty($0)) end_case()
}

function end_case() {
  if (!open_case) return
  open_case = 0
  total++
  if (verdict == "skipped") skipped++
  if (verdict != "failed") return
  failed++
  if (named >= show + 0) return
  lines[++named] = "FAILED " plain(class == "" ? name : class " > " name) (message == "" ? "" : ": " plain(message))
}

# The value of an attribute, its quotes taken off. A value may hold any sign but its own quote, also ">".
function attribute(tag, wanted,    rest, quote, at, key) {
  rest = tag
  sub(/^[^ \t\r\n]*/, "", rest)
  while (match(rest, /^[ \t\r\n]+[^ \t\r\n=\/>]+[ \t\r\n]*=[ \t\r\n]*["']/)) {
    key = substr(rest, 1, RLENGTH)
    quote = substr(rest, RLENGTH, 1)
    rest = substr(rest, RLENGTH + 1)
    gsub(/[ \t\r\n="']/, "", key)
    at = index(rest, quote)
    if (at == 0) return ""
    if (key == wanted) return substr(rest, 1, at - 1)
    rest = substr(rest, at + 1)
  }
  return ""
}

# <testcase … /> has no content.
function is_empty(tag,    rest) {
  rest = tag
  gsub(/"[^"]*"/, "", rest)
  gsub(/'[^']*'/, "", rest)
  sub(/>.*/, "", rest)
  return rest ~ /\/[ \t\r\n]*$/
}

# One line without control characters, its entities written out, of a length that can be read.
function plain(text) {
  gsub(/&lt;/, "<", text)
  gsub(/&gt;/, ">", text)
  gsub(/&quot;/, "\"", text)
  gsub(/&apos;/, "'", text)
  gsub(/&#(10|13|9|xA|xD|x9|xa|xd);/, " ", text)
  gsub(/&amp;/, "\\&", text)
  gsub(/[\001-\037\177]/, " ", text)
  return length(text) > 300 ? substr(text, 1, 297) "..." : text
}

function broken(file) {
  printf "junit: %s is no JUnit report, or is cut off\n", file > "/dev/stderr"
  status = 1
  exit 1
}
