# What ./quickstart and ./test share: packages, configuration, build. To be sourced at the root of the source.

log_dir=build
build_packages=(g++ cmake ninja-build libfmt-dev nlohmann-json3-dev
  zlib1g-dev libcurl4-openssl-dev libpng-dev libjpeg-dev)
# For bitfed serve, join and certs; without them the rest is built.
rpc_packages=(libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libsqlite3-dev libssl-dev)
# For mpirun bitfed run; without them the rest is built.
mpi_packages=(libopenmpi-dev openmpi-bin)

# For the Python package, whose other needs are in python/requirements-test.txt; without them the rest is built.
python_packages=(python3-dev python3-venv)

say() { echo "== $*"; }

fail() {
  echo "$*" >&2
  exit 1
}

# Runs a command with its output in a log, which is shown if it fails.
quietly() {
  local log=$log_dir/$1.log
  shift
  mkdir -p "$log_dir"
  if ! "$@" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    fail "failed: $* (all of its output: $log)"
  fi
}

missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

# Installs what is missing of the Debian packages named.
need_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "no Debian or Ubuntu: these packages, or what your system calls them, must be installed: $*"
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} > 0)) || return 0
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "please install as root: apt-get install ${missing[*]}"
    as_root=(sudo)
    sudo -v  # asks for the password where it can be seen
  fi
  say "installing ${missing[*]}"
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  # Stale lists or an unreachable third source need not matter: installing will tell.
  "${as_root[@]}" apt-get update >/dev/null 2>&1 || true
  quietly apt-install "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"
}

# What builds and tests the Python package, in an environment of its own that CMake finds by VIRTUAL_ENV.
need_python() {
  say "installing what python/requirements-test.txt names into build/venv"
  (need_packages "${python_packages[@]}") &&
    (quietly venv python3 -m venv build/venv) &&
    (quietly pip build/venv/bin/pip install --disable-pip-version-check -r python/requirements-test.txt) &&
    export VIRTUAL_ENV=$PWD/build/venv
}

# Configures and builds one of the presets.
build_preset() {
  say "building into build/$1 (a few minutes the first time)"
  quietly "$1-configure" cmake --preset "$1"
  quietly "$1-build" cmake --build --preset "$1"
}
