#!/bin/sh
# bitfed data fetch against a server on this machine: what arrives whole, and what each failure leaves.
#   fetch_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -eu
program=$1
work=$3
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
rm -rf "$work" && mkdir -p "$work/home" "$work/target"
cd "$work"

# /broken/ promises more bytes than it sends; anything else is served from home/.
cat >server.py <<'PYTHON'
import http.server, sys

class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args):
        super().__init__(*args, directory="home")
    def do_GET(self):
        if not self.path.startswith("/broken/"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"cut short")
    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
PYTHON
python3 server.py >port 2>server.log &
server=$!
trap 'kill $server 2>/dev/null' EXIT
tries=0
until [ -s port ]; do
  tries=$((tries + 1))
  [ $tries -lt 100 ] || { echo "the server did not start"; cat server.log; exit 1; }
  sleep 0.1
done
address=http://127.0.0.1:$(cat port)
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY 2>/dev/null || true

# fetch NAME MIRROR TARGET STATUS TEXT: runs it and checks the status, one line of error, its text.
fetch() {
  status=0
  BITFED_MIRROR=$2 "$program" data fetch "$1" --data-dir "$3" >out 2>err || status=$?
  [ $status = "$4" ] || { echo "fetch $1: status $status, expected $4"; cat err; exit 1; }
  [ "$4" = 0 ] && return
  grep '^bitfed: ' err >line || { echo "fetch $1: no error line"; cat err; exit 1; }
  [ "$(wc -l <line)" = 1 ] || { echo "fetch $1: more than one error line"; cat err; exit 1; }
  grep -q -- "$5" line || { echo "fetch $1: expected '$5' in:"; cat line; exit 1; }
}
nothing_in() {
  [ -z "$(find "$1" -type f)" ] || { echo "left behind:"; find "$1" -type f; exit 1; }
}

echo "-- not there"
fetch mnist "$address" target 1 'mnist/train-images-idx3-ubyte.gz: download failed: the server answered with status 404 (attempts: 1)'
nothing_in target

echo "-- wrong content"
mkdir -p home/mnist
echo wrong >home/mnist/train-images-idx3-ubyte.gz
fetch mnist "$address" target 1 'has sha256 [0-9a-f]*, expected 440fcabf'
nothing_in target

echo "-- cut short by the server"
fetch mnist "$address/broken" target 1 'download failed: .* (attempts: 3)'
nothing_in target

echo "-- nobody listens"
fetch svhn http://127.0.0.1:1 target 1 'train_32x32.mat: download failed: .* (attempts: 3)'
nothing_in target

echo "-- a folder that cannot be created"
echo file >in_the_way
fetch mnist "$address" in_the_way/data 1 'in_the_way/data/mnist: the folder cannot be created'
if [ "$(id -u)" != 0 ]; then
  mkdir locked && chmod 555 locked
  fetch mnist "$address" locked 1 'locked/mnist: the folder cannot be created: Permission denied'
fi

echo "-- names"
fetch mnits "$address" target 2 "unknown data set 'mnits'"
fetch watch "$address" target 2 "cannot be fetched; put "

echo "-- whole"
real=$(BITFED_DATA=${BITFED_DATA:-} "$program" data list | sed -n 's/^mnist .*  //p')
case $real in
  missing*) echo "mnist is not on this machine: the successful fetch was not tried"; exit 77 ;;
esac
cp "$real"/mnist/*.gz home/mnist/ 2>/dev/null || { echo "mnist is here, but not packed"; exit 77; }
chmod u+w home/mnist/*
fetch mnist "$address" target 0 ''
grep -q 'fetched into target' out
[ "$(find target -type f | wc -l)" = 4 ]
"$program" data info mnist --data-dir target | grep -q '60000 for training, 10000 for testing'
fetch mnist "$address" target 0 ''
grep -q 'already in target' out
