#!/usr/bin/env bash
# make bench: every tests/benchmarks/bench_*.py, one after the other; they print ratios measured in one run.
# usage: run.sh [NAME ...], for example `run.sh judging numbers`. Peers live in environments under build/, made here
# once: one for each peer of the judge, because they need different versions of the openai client, and one for the
# peers of the numbers, which borrows torch and numpy from .venv. A peer that cannot be installed is skipped by name.
set -uo pipefail
cd "$(dirname "$0")/../.."
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
main=.venv/bin/python
names=("$@")
wanted() { [ ${#names[@]} -eq 0 ] || [[ " ${names[*]} " == *" $1 "* ]]; }
packages() { "$1" -c 'import site; print(site.getsitepackages()[0])'; }

# install NAME PACKAGE ...: build/bench-NAME with these packages
install() {
  local venv=build/bench-$1
  [ -e "$venv/.ready" ] && return
  echo "installing ${*:2} into $venv (once)"
  $main -m venv "$venv" || return
  [ "$1" = numbers ] && packages $main >"$(packages "$venv/bin/python")/main.pth"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check "${@:2}" && touch "$venv/.ready" ||
    echo "not installed: ${*:2}"
}

if wanted judging; then
  install autorubric autorubric==1.6.1
  install verifiers verifiers==0.4.0
  install inspect-ai inspect-ai==0.3.285 openai==3.57.0
fi
wanted numbers && install numbers netcal==1.4.0 torchmetrics==1.9.0 relplot==1.0.3

status=0
for f in tests/benchmarks/bench_*.py; do
  name=$(basename "$f" .py)
  wanted "${name#bench_}" || continue
  echo "== ${name#bench_}"
  python=$main
  [ "$name" = bench_numbers ] && [ -e build/bench-numbers/.ready ] && python=build/bench-numbers/bin/python
  PYTHONPATH=$PWD $python "$f" || status=1
done
exit $status
