#!/bin/sh
# Explains a directory that a real Kafka 4.3 cluster left behind: what it is, what happened there,
# whether it is sound, and what damage looks like. Writes only below a temporary directory.
set -eu
cd "$(dirname "$0")/.."
data=tests/fixtures/metadata_4_3/data/node-1

bold='' dim='' plain=''
if [ -t 1 ]; then
    bold=$(printf '\033[1m') dim=$(printf '\033[2m') plain=$(printf '\033[0m')
fi
say() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
run() {
    printf '%s$ %s%s\n' "$dim" "$*" "$plain"
    "$@"
}

say "1. What is this directory?"
run kraftline info "$data"

say "2. What happened to the topic 'orders'?"
run kraftline changes "$data" --topic orders

say "3. Why has orders-1 no leader at the end? And the same records for programs"
run kraftline why orders-1 --in "$data"
run kraftline dump "$data/__cluster_metadata-0" --type TOPIC --limit 2 --format jsonl

say "4. Is it sound?"
run kraftline verify "$data"

say "5. And if a disk flips one bit?"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$data" "$scratch/node-1"
log=$scratch/node-1/__cluster_metadata-0/00000000000000000000.log
python3 -c "
import sys
path = sys.argv[1]
data = bytearray(open(path, 'rb').read())
data[5000] ^= 4
open(path, 'wb').write(data)" "$log"
run kraftline verify --first "$scratch/node-1/__cluster_metadata-0" || true

printf '\nThe files are real: tests/fixtures/metadata_4_3/make.py says how they came to be.\n'
