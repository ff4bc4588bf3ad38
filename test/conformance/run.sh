#!/usr/bin/env bash
# Runs the official MCP conformance suite against Mainstem, with a well-behaved server behind it.
#
#   run.sh BINARY [SET…]      SET: 0.1.16, 2025-11-25, 2026-07-28; all three if none is named
#
# Each scenario is a line. The exit status is 0 if all scenarios end as baseline.txt says; then it says so in the last line.
# RESULTS=FOLDER keeps what the suite recorded. Needs npm; Node 24 and the suite are installed on first use.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/tools.sh"

mainstem=$(realpath "${1:?usage: run.sh BINARY [SET…]}")
shift
[ $# -gt 0 ] || set -- 0.1.16 2025-11-25 2026-07-28
need_node
fixture=$(need_npm fixture @modelcontextprotocol/server@2.3.1 @modelcontextprotocol/node@2.0.0)

work=$(mktemp -d)
pids=()
finish() {
	local status=$?
	[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait || true
	rm -rf "$work"
	exit $status
}
trap finish EXIT

read -r fixture_port mainstem_port < <("$NODE" -e '
	const taken = [0, 0].map(() => require("node:net").createServer().listen(0, "127.0.0.1"));
	setTimeout(() => { console.log(taken.map(s => s.address().port).join(" ")); process.exit(); }, 50)')

# until_up URL LOG: waits until it answers with a status below 500.
until_up() {
	"$NODE" -e '
		const [url] = process.argv.slice(1), end = Date.now() + 30000;
		const ask = () => fetch(url).then(r => r.status < 500, () => false).then(up =>
			up ? process.exit(0) : Date.now() > end ? process.exit(1) : setTimeout(ask, 100));
		ask()' "$1" || { echo "$1 does not answer:" >&2 && tail -20 "$2" >&2 && return 1; }
}

NODE_PATH=$fixture/node_modules "$NODE" "$here/fixture.cjs" "$fixture_port" 2>"$work/fixture.log" &
pids+=($!)
until_up "http://127.0.0.1:$fixture_port/mcp" "$work/fixture.log"

# The suite calls tools by the names, and looks at the schemas and results, that the fixture has.
cat >"$work/mainstem.yaml" <<-EOF
	listen: 127.0.0.1:$mainstem_port
	state_dir: $work/state
	naming: {mode: on_conflict}
	mcpServers:
	  fixture:
	    url: http://127.0.0.1:$fixture_port/mcp
	    schema: passthrough
	    output: passthrough
EOF
"$mainstem" serve --config "$work/mainstem.yaml" >"$work/mainstem.log" 2>&1 &
pids+=($!)
until_up "http://127.0.0.1:$mainstem_port/readyz" "$work/mainstem.log"

suite=@modelcontextprotocol/conformance
status=0
for set; do
	case $set in
	0.1.16) version=0.1.16 select=(--suite all) ;;
	2025-11-25 | 2026-07-28) version=0.2.0-alpha.12 select=(--requirements "$set") ;;
	*) echo "unknown set $set (want 0.1.16, 2025-11-25 or 2026-07-28)" >&2 && exit 2 ;;
	esac
	modules=$(need_npm "conformance-$version" "$suite@$version")
	results=${RESULTS:-$work/results}/$set
	mkdir -p "$results"
	# What counts is what the suite recorded, which the baseline is compared with, and not its exit status.
	timeout 300 "$NODE" --require "$here/loopback.cjs" "$modules/node_modules/$suite/dist/index.js" \
		server --url "http://127.0.0.1:$mainstem_port/mcp" "${select[@]}" --output-dir "$results" >"$results/log" 2>&1 || true
	"$NODE" "$here/verdict.mjs" "$set" "$results" "$here/baseline.txt" || status=1
done
kill -0 "${pids[1]}" 2>/dev/null || { echo "mainstem ended by itself:" && tail -20 "$work/mainstem.log" && status=1; } >&2
exit $status
