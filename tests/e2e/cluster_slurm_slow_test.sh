#!/bin/bash
# Slurm on this machine alone: srun gives the model of one process; a job that Slurm stops before its time is over
# queues itself again and ends with that model.
#   cluster_slurm_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/ranks.sh"
for tool in slurmctld slurmd srun munged; do
  command -v $tool >/dev/null || { echo "skipped: $tool is missing (packages slurm-wlm, munge)"; exit 77; }
done
[ $EUID = 0 ] || { echo "skipped: Slurm's daemons need root"; exit 77; }
unset OMPI_MCA_plm OMPI_MCA_rmaps_base_oversubscribe PRTE_MCA_rmaps_default_mapping_policy

daemons=()
base=
end() {
  # Jobs outlive the daemons.
  scancel --full --signal=KILL --user=root 2>/dev/null || true
  scancel --user=root 2>/dev/null || true
  for _ in $(seq 100); do [ -z "$(squeue -h 2>/dev/null)" ] && break; sleep 0.1; done
  for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  rm -rf "$base"
}
trap end EXIT

# A key, a munge daemon and a Slurm of our own, all in a short path: sockets' names are limited.
base=$(mktemp -d /tmp/slurm.XXXXXX)
mkdir -p "$base"/{munge,state,spool}
dd if=/dev/urandom of="$base/munge/key" bs=1024 count=1 status=none
chmod 700 "$base/munge"
chmod 600 "$base/munge/key"
chmod 755 "$base"
munged --foreground --force --key-file="$base/munge/key" --socket="$base/munge/socket" --pid-file="$base/munge/pid" \
  --log-file="$base/munge/log" --seed-file="$base/munge/seed" >"$base/munged.log" 2>&1 &
daemons+=($!)
host=$(hostname -s)
cat >"$base/slurm.conf" <<S
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$base/munge/socket
CredType=cred/munge
SlurmctldPort=26817
SlurmdPort=26818
StateSaveLocation=$base/state
SlurmdSpoolDir=$base/spool
SlurmctldPidFile=$base/ctld.pid
SlurmdPidFile=$base/d.pid
SlurmctldLogFile=$base/ctld.log
SlurmdLogFile=$base/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=pmix
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobRequeue=1
SlurmdParameters=config_overrides
MinJobAge=300
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 CoresPerSocket=4 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
S
export SLURM_CONF=$base/slurm.conf
for _ in $(seq 50); do [ -S "$base/munge/socket" ] && break; sleep 0.1; done
slurmctld -D -c -f "$SLURM_CONF" >"$base/ctld.out" 2>&1 &
daemons+=($!)
slurmd -D -c -f "$SLURM_CONF" >"$base/d.out" 2>&1 &
daemons+=($!)
for _ in $(seq 100); do
  sinfo -h -o %t 2>/dev/null | grep -q idle && break
  sleep 0.2
done
sinfo -h -o %t | grep -q idle || { cat "$base"/*.out "$base"/*.log; fail "Slurm does not start"; }
srun --mpi=list 2>&1 | grep -q pmix || { echo "skipped: Slurm was built without PMIx"; exit 77; }

sed 's/^rounds = 6/rounds = 400/' people.toml >long.toml
"$program" run long.toml --out long --json --quiet >long.json
srun -K -n 3 --mpi=pmix "$program" run long.toml --out srun --json --quiet >out.json 2>err || fail "srun: $(cat err)"
[ "$(field out.json model_sha256)" = "$(field long.json model_sha256)" ] || fail "srun: another model"
[ "$(field out.json ranks)" = 3 ] || fail "srun: $(field out.json ranks) ranks"
echo "srun: $(field out.json model_sha256)"

# Tasks that do not see each other are not taken for as many runs.
status=0
srun -n 2 --mpi=none "$program" run long.toml --out apart --quiet >out 2>err || status=$?
[ $status != 0 ] || fail "--mpi=none went unnoticed"
[ ! -e apart ] || fail "--mpi=none: a run all the same"

# The job script of docs/guide/cluster.md, stopped on its way. It queues itself again.
sed -i 's/^rounds = 400/rounds = 4000/' long.toml
"$program" run long.toml --out longer --json --quiet >longer.json
sed -n '/^#!\/bin\/bash/,/^```$/{/^```$/d;p}' "$source_dir/docs/guide/cluster.md" >job.sh
# With its options, as far as there are nodes and cores.
sed -i "s|--nodes=4|--nodes=1|; s|--ntasks=4|--ntasks=3|; s|--threads 32|--threads 2|; /^#SBATCH --time/d; s|bitfed run recipe.toml|\"$program\" run long.toml --quiet|; s|runs/mine|$PWD/job|g" job.sh
id=$(sbatch --parsable --output="$PWD/job.log" --open-mode=append job.sh)
until_rounds job 50 $$
scancel --signal=TERM "$id"  # as Slurm does before the time is over
for _ in $(seq 6000); do  # Slurm waits two minutes before it starts a requeued job
  [ -e job/summary.json ] && break
  sleep 0.1
done
[ -e job/summary.json ] || { scontrol show job "$id"; cat job.log; fail "the job did not end"; }
grep -q -- --resume job.log || fail "the job was not stopped: $(cat job.log)"
[ "$(field job/summary.json model_sha256)" = "$(field longer.json model_sha256)" ] || fail "requeued: another model"
echo "requeued: $(field job/summary.json model_sha256)"
nothing_half_written
