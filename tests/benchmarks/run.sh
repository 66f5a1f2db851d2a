#!/usr/bin/env bash
# make bench: every tests/benchmarks/bench_*.py, one after the other; they print ratios measured in one run.
# usage: run.sh [NAME ...], for example `run.sh judging`. Peers of the judge get an environment each, made here once,
# because they need different versions of the openai client. A peer that cannot be installed is skipped by name.
set -uo pipefail
cd "$(dirname "$0")/../.."
export OMP_WAIT_POLICY=PASSIVE TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
main=.venv/bin/python
wanted() { [ ${#names[@]} -eq 0 ] || [[ " ${names[*]} " == *" $1 "* ]]; }
names=("$@")
if wanted judging; then
  for peer in autorubric==1.6.1 verifiers==0.4.0 inspect-ai==0.3.285; do
    venv=build/bench-${peer%%==*}
    [ -e "$venv/.ready" ] && continue
    $main -m venv "$venv" && "$venv/bin/python" -m pip install -q --disable-pip-version-check "$peer" &&
      touch "$venv/.ready" || echo "not installed: $peer"
  done
fi
status=0
for f in tests/benchmarks/bench_*.py; do
  name=$(basename "$f" .py)
  wanted "${name#bench_}" || continue
  echo "== $name"
  $main "$f" || status=1
done
exit $status
