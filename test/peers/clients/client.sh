#!/bin/bash
# Calls of curl and wget. Arguments and output: test/peers/client-stacks/client-program.ts.
# The first argument is the command with its options, such as `curl --http2`.
set -u
read -ra program <<<"$1"
base=$2 folder=$3
shift 3
out=$(mktemp) err=$(mktemp)
trap 'rm -f "$out" "$err"' EXIT

call() { # cell, URLs
  local cell=$1
  shift
  if [[ ${program[0]} == curl ]]; then
    local post=()
    [[ $cell == post ]] && post=(--data-binary "@$folder/post" -H 'Content-Type: application/json')
    [[ $cell == up ]] && post=(-X POST -T "$folder/up" -H 'Content-Type: application/json')
    "${program[@]}" -sS -f -N --max-time 60 "${post[@]}" "$@"
  else
    local post=()
    [[ $cell == post || $cell == up ]] && post=(--post-file="$folder/$cell" --header='Content-Type: application/json')
    "${program[@]}" --no-config -nv --tries=1 --timeout=60 -O - "${post[@]}" "$@"
  fi
}

report_events() {
  while IFS= read -r line; do
    [[ $line == 'data: '* ]] && printf '{"cell":"sse","event":"%s"}\n' "${line#data: }"
  done
}

for cell in "$@"; do
  urls=("$base/$cell")
  [[ $cell == keep-alive ]] && for _ in 1 2 3 4; do urls+=("$base/$cell"); done
  if [[ $cell == sse ]]; then
    call "$cell" "${urls[@]}" 2>"$err" | report_events
    status=${PIPESTATUS[0]}
    : >"$out"
  else
    call "$cell" "${urls[@]}" >"$out" 2>"$err"
    status=$?
  fi
  if [[ $status == 0 ]]; then
    printf '{"cell":"%s","bytes":%s,"sha256":"%s"}\n' "$cell" "$(wc -c <"$out")" "$(sha256sum <"$out" | cut -d' ' -f1)"
  else
    printf '{"cell":"%s","error":"%s"}\n' "$cell" "$(tr -d '"\\' <"$err" | tr -c '[:print:]' ' ')"
  fi
done
