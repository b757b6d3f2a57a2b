#!/bin/bash
# image.sh PROGRAM: an image of the portable rlock, PROGRAM, by packaging/image.py: its digests, its bytes twice, what skopeo says to it
# where that is installed; and a run as process 1 of the image's root, where nothing else is. Needs root.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
top=$(dirname "$(dirname "$here")")
program=$(realpath "$1")
# shellcheck source=../../packaging/debian.sh
. "$top/packaging/debian.sh"
# shellcheck source=../../packaging/verify/steps.sh
. "$top/packaging/verify/steps.sh"

folder=$(mktemp -d)
server=""

finish() {
  if [ -n "$server" ]; then
    kill "$server" || true
    wait "$server" || true
  fi
  rm -rf --one-file-system "$folder" "$log" "$scratch"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

[ "$(id -u)" -eq 0 ] || { echo "image.sh: needs root" >&2 && exit 77; }
if ldd "$program" 2>/dev/null | grep -q "=>"; then
  echo "image.sh: $program is not the portable flavour" >&2
  exit 77
fi

make_image() {
  SOURCE_DATE_EPOCH=1000000000 python3 -B "$top/packaging/image.py" "$program" 1.2.3 amd64 "$1"
}

# Unpacks the image as an engine does, and stops at the first digest that is not that of its blob.
unpack() {
  python3 - "$1" "$2" <<'PYTHON'
import hashlib, io, json, sys, tarfile

image = tarfile.open(sys.argv[1])


def blob(descriptor):
    kind, digest = descriptor["digest"].split(":")
    data = image.extractfile(f"blobs/{kind}/{digest}").read()
    assert hashlib.sha256(data).hexdigest() == digest and len(data) == descriptor["size"], descriptor
    return data


assert json.load(image.extractfile("oci-layout"))["imageLayoutVersion"] == "1.0.0"
manifest = json.loads(blob(json.load(image.extractfile("index.json"))["manifests"][0]))
config = json.loads(blob(manifest["config"]))
[layer] = manifest["layers"]
files = tarfile.open(fileobj=io.BytesIO(blob(layer)))
files.fileobj.seek(0)
assert "sha256:" + hashlib.sha256(files.fileobj.read()).hexdigest() == config["rootfs"]["diff_ids"][0]
assert config["config"]["Entrypoint"] == ["/rlock"]
files.extractall(sys.argv[2])
PYTHON
}

# As process 1 of its own, in a root with the image's files alone: no libc, no shell, neither /proc nor /dev.
in_image() {
  unshare --mount --propagation private --pid --fork --kill-child chroot "$folder/root" /rlock "$@"
}

make_image "$folder/image.tar"
make_image "$folder/again.tar"
cmp "$folder/image.tar" "$folder/again.tar"
step "the same program makes the same image"
unpack "$folder/image.tar" "$folder/root"
step "each digest is that of its blob"
if command -v skopeo >/dev/null; then
  expect 0 skopeo inspect "oci-archive:$folder/image.tar"
  has '"Architecture": "amd64"'
  expect 0 skopeo copy --quiet --insecure-policy "oci-archive:$folder/image.tar" "dir:$folder/copy"
  step "skopeo reads and copies it"
fi
provide_server "$folder/server"
redis-server --port 0 --unixsocket "$folder/root/redis.sock" --save '' --dir "$folder" >/dev/null &
server=$!
await redis-cli -s "$folder/root/redis.sock" ping
export RLOCK_URL=unix:///redis.sock
expect 0 in_image --version
expect 0 in_image run nightly -- /rlock --version
has "rlock "
expect 0 in_image run nightly -- /rlock run -n other -- /rlock status --json nightly
has '"state":"held"'
expect 75 in_image run nightly -- /rlock run -n --no-reentrant nightly -- /rlock --version
expect 127 in_image run nightly -- no-such-command
step "rlock runs as process 1 of an empty root, and exits as its command"
command -v skopeo >/dev/null || echo "skipped: what skopeo says, which is not installed"
