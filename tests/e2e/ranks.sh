# What the tests with several ranks share; to be sourced after tiny.sh.
command -v mpirun >/dev/null || { echo "skipped: mpirun is missing (package openmpi-bin)"; exit 77; }
[ -e "$(dirname "$program")/bitfed-mpi.so" ] || { echo "skipped: the program was built without MPI"; exit 77; }
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe  # of Open MPI 5
# More ranks than cores, and as root, which Open MPI does only when told. No network is needed on one machine.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl=self,vader OMPI_MCA_plm=isolated OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_orte_tmpdir_base=/tmp OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_odls_base_sigkill_timeout=3

# The tiny recipe of a method, and what turns it into one.
method_recipe() {
  case $1 in
    fedtmos | fedtm-bank) echo "one-shot.toml --set method.name=$1" ;;
    fedtm) echo "fedtm.toml" ;;
    fed-bin-mlp) echo "people.toml" ;;
    *) echo "network.toml --set method.name=$1" ;;
  esac
}
all_methods="fedtmos fedtm-bank fedtm fed-bin-mlp fedbnn fedavg fedbat fedmud fedprox scaffold"

# The line of ours in what a launcher printed.
our_line() {
  grep '^bitfed: ' "$1" || true
}

# until_rounds FOLDER ROUNDS PID: waits until the run has finished so many rounds, or the process has ended.
until_rounds() {
  local done=0
  while [ $done -lt $2 ] && kill -0 $3 2>/dev/null; do
    sleep 0.05
    [ -e $1/events.jsonl ] && done=$(grep -c round-finished $1/events.jsonl || true)
  done
}
