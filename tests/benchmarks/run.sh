#!/usr/bin/env bash
# make bench: every tests/benchmarks/bench_*.py, one after the other; they print ratios measured in one run.
# Those that name a peer run in build/bench-venv (made here once), the others in the kit's environment.
set -uo pipefail
cd "$(dirname "$0")/../.."
export OMP_WAIT_POLICY=PASSIVE TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
main=.venv/bin/python
venv=build/bench-venv
if [ ! -e $venv/.ready ]; then
  $main -m venv $venv
  $venv/bin/python -m pip install -q --disable-pip-version-check "$(grep -E '^torch==' constraints.txt)"
  # one at a time: a peer that cannot be had is said by the benchmark, the others still run
  grep -vE '^(#|$)' tests/benchmarks/peers.txt | while read -r peer; do
    $venv/bin/python -m pip install -q --disable-pip-version-check "$peer" || echo "not installed: $peer"
  done
  # inspect-ai wants openai 3, verifiers and autorubric want 2: a folder of its own, put before the others for inspect-ai only
  $venv/bin/python -m pip install -q --disable-pip-version-check --target build/bench-openai3 "$(grep -E '^openai==' constraints.txt)"
  $venv/bin/python -m pip install -q --disable-pip-version-check hatchling editables
  $venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . && touch $venv/.ready
fi
status=0
for f in tests/benchmarks/bench_*.py; do
  [ $# -eq 0 ] || [[ " $* " == *" $(basename "$f" .py | sed s/bench_//) "* ]] || continue
  python=$main
  grep -q '^# environment: peers' "$f" && python=$venv/bin/python
  echo "== $(basename "$f")"
  $python "$f" || status=1
done
exit $status
