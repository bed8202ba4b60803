#!/bin/sh
# What three Kafka nodes left on their disks after a bad day: read into a lake, asked three
# questions, and told as a page. Then a node of one's own: started, used by a real client, stopped,
# and its history told. Writes only below out/.
set -eu
cd "$(dirname "$0")/.."
data=tests/fixtures/eventful_day/data
lake=out/lake

bold='' dim='' plain=''
if [ -t 1 ]; then
    bold=$(printf '\033[1m') dim=$(printf '\033[2m') plain=$(printf '\033[0m')
fi
say() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
run() {
    printf '%s$ %s%s\n' "$dim" "$*" "$plain"
    "$@"
}

rm -rf "$lake"
mkdir -p out
say "1. Read the disks of three nodes into one history (Spark)"
run kraftline history build --from "$data" --to "$lake"

say "2. How did 'clicks' stand while nobody could write to it?"
run kraftline history as-of "$lake" partitions --at 2026-11-16T01:02:20Z --topic clicks

say "3. What was offline that day, and for how long?"
run kraftline history health "$lake" --type offline

say "4. Why clicks? From the files of one node alone, without Spark or a lake"
run kraftline why clicks-0 --in "$data/node-1"

say "5. The whole day on one page"
run kraftline report "$lake" --out out/report.html

say "6. A Kafka node of one's own, without a JVM; and a real client (librdkafka) that uses it"
rm -rf out/node
port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
printf '%s$ kraftline start --override listeners=PLAINTEXT://127.0.0.1:%s --override log.dirs=out/node &%s\n' \
    "$dim" "$port" "$plain"
kraftline start --override listeners="PLAINTEXT://127.0.0.1:$port" --override log.dirs=out/node \
    2>out/node.log &
node=$!
trap 'kill "$node" 2>/dev/null || true' EXIT
until grep -q 'is ready' out/node.log; do
    kill -0 "$node" 2>/dev/null || { cat out/node.log; exit 1; }
    sleep 0.05
done
cat out/node.log
run python tools/demo_client.py "127.0.0.1:$port"
kill "$node"
wait "$node"
tail -n 1 out/node.log

say "7. What happened there, from the files that it left"
run kraftline changes out/node

printf '\nThe report: file://%s/out/report.html\n' "$PWD"
printf 'The files are real: tests/fixtures/eventful_day/make.py says how they came to be.\n'
