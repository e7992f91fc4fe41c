# Arguments and output: test/peers/broken-responses/clients.ts.
base=$2
variant=$1
shift 2
for path; do
  bytes=$($variant "$base$path" 2>/dev/null | wc -c; exit "${PIPESTATUS[0]}") && error= || error="exit code $?"
  echo "{\"path\":\"$path\",\"bytes\":$bytes,\"error\":\"$error\"}"
done
