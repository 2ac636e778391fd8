#!/usr/bin/env bash
# Tests `grade --executor slurm`, `--collect` and `measure --on slurm` with a real Slurm: slurmctld, slurmd
# and munge from the distribution, with this machine as the only node. Needs Debian or Ubuntu and root: it
# installs packages and starts daemons, which end with the script. Do not run it on a machine that belongs to
# a Slurm cluster.
#
#   scripts/test_slurm.sh [CAPSTONE, default build/release/bin/capstone]
#
# Exit codes: 0 success · 1 something is wrong · 3 Slurm does not start.
set -euo pipefail
cd "$(dirname "$0")/.."
capstone=$(realpath "${1:-build/release/bin/capstone}")
[ "$(id -u)" -eq 0 ] || { echo "error: not root" >&2; exit 3; }
[ ! -e /etc/slurm/slurm.conf ] ||
  { echo "error: /etc/slurm/slurm.conf exists: this machine belongs to a cluster" >&2; exit 3; }
command -v slurmctld >/dev/null && command -v munged >/dev/null ||
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends slurmctld slurmd slurm-client munge; } >/dev/null

work=$(mktemp -d)
daemons=()
finish() {
  for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
export SLURM_CONF=$work/slurm.conf
mkdir -p "$work"/{state,spool}
chmod 755 "$work"
head -c 1024 /dev/urandom > "$work/munge.key"
chmod 400 "$work/munge.key"
host=$(hostname -s)
cat > "$SLURM_CONF" <<CONF
ClusterName=alone
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CryptoType=crypto/munge
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=60 State=UP
CONF
munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" \
  --pid-file="$work/munged.pid" --log-file="$work/munged.log" --seed-file="$work/munged.seed" &
daemons+=($!)
slurmctld -D -f "$SLURM_CONF" > "$work/slurmctld.out" 2>&1 &
daemons+=($!)
slurmd -D -f "$SLURM_CONF" > "$work/slurmd.out" 2>&1 &
daemons+=($!)
for _ in $(seq 60); do
  sinfo -h -o %T 2>/dev/null | grep -qE 'idle|mixed|alloc' && break
  sleep 1
done
sinfo -h -o %T 2>/dev/null | grep -qE 'idle|mixed|alloc' ||
  { echo "error: Slurm does not start" >&2; tail -n 5 "$work"/*.log "$work"/*.out >&2; exit 3; }

failed=0
wrong() { echo "wrong: $1" >&2; failed=1; }
cd "$work"
for name in ada "bob two"; do
  "$capstone" init vector_add "in/$name" --from 01 --member "$name" >/dev/null
done
printf '#error not today\n' > "in/bob two/human/kernel.cu"
grade=("$capstone" grade in --out out --backend emulated --hidden 0 --quick)
"${grade[@]}" --executor slurm --gres none > submitted 2>&1 &&
  wrong "it must report that nothing is graded yet" || [ $? -eq 4 ] || wrong "exit code"
grep -q '2 tasks submitted as job array' submitted || wrong "not submitted: $(cat submitted)"
for _ in $(seq 120); do
  [ -z "$(squeue -h)" ] && break
  sleep 1
done
"${grade[@]}" --collect > collected 2>&1 || wrong "collect: $(cat collected)"
grep -q '2 collected, 0 with Slurm' collected || wrong "not collected: $(cat collected)"
"$capstone" gradebook out --format csv | grep -q '^ada,ada,.*graded' || wrong "not in the gradebook"
grep -q '"DOES NOT BUILD"\|build_failed' "out/submissions/bob-two/result.json" ||
  wrong "bob's kernel was not judged"
"${grade[@]}" --executor slurm --gres none > again 2>&1 || wrong "again: $(cat again)"
grep -q '2 unchanged since they were graded' again || wrong "the same is judged twice: $(cat again)"
# A task that dies is a fault of the machine, so it is tried again.
printf '// more\n' >> "in/ada/human/kernel.cu"
"${grade[@]}" --executor slurm --gres none > /dev/null 2>&1 || true
scancel --name=capstone-grade || true
# A student's project: the record is added to the ledger; if the command is killed while it waits, rerunning
# it resumes the same job; a cancelled job is named.
measure=("$capstone" measure --on slurm:all --gres none --backend emulated --hidden 0 --quick -m "by Slurm")
"$capstone" init vector_add student --from 01 >/dev/null
cd student
"${measure[@]}" > ../measured 2>&1 || wrong "measure --on slurm: $(cat ../measured)"
grep -q '1 record from slurm:all added to the ledger' ../measured ||
  wrong "no record was added: $(cat ../measured)"
printf '// v2\n' >> human/kernel.cu
scontrol update PartitionName=all State=DOWN   # jobs wait
"${measure[@]}" > ../killed 2>&1 &
pid=$!
for _ in $(seq 30); do [ -n "$(squeue -h)" ] && break; sleep 1; done
sleep 2
kill -KILL "$pid"; wait "$pid" 2>/dev/null || true
scontrol update PartitionName=all State=UP
"${measure[@]}" > ../resumed 2>&1 || wrong "the job was not resumed: $(cat ../resumed)"
grep -q 'is with Slurm already' ../resumed || wrong "submitted twice: $(cat ../resumed)"
[ "$("$capstone" ledger | grep -c 'measurement.*PASS')" -eq 2 ] ||
  wrong "not two records: $("$capstone" ledger)"
printf '// v3\n' >> human/kernel.cu
scontrol update PartitionName=all State=DOWN
"${measure[@]}" > ../cancelled 2>&1 &
pid=$!
for _ in $(seq 30); do [ -n "$(squeue -h)" ] && break; sleep 1; done
scancel --name=capstone-measure
wait "$pid" && wrong "a cancelled job gave a result" || true
grep -q 'error: Slurm has lost job' ../cancelled || wrong "cancelled: $(cat ../cancelled)"
cd ..
[ "$failed" -eq 0 ] &&
  echo "ok: two submissions graded as a job array, collected, and not judged twice; a project measured by Slurm and resumed after a kill"
exit "$failed"
