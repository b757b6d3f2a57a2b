#!/bin/bash
# reproducible.sh: runs packaging/release.sh in two clones and fails unless every artefact has the same bytes. The clones differ in name
# and depth of the folder, umask, time zone, locale and user name. If you are root, the user nobody builds the second clone. Needs root
# only if release.sh has to install packages.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
top=$(dirname "$(dirname "$here")")
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

make_first() {
  git clone --quiet "$top" "$folder/a" && "$folder/a/packaging/release.sh"
}

make_second() (
  umask 077
  export TZ=Pacific/Kiritimati LANG=C LC_ALL=C USER=somebody LOGNAME=somebody HOME=$folder/deeper/home
  as_another=()
  mkdir -p "$folder/deeper/down" "$HOME"
  git clone --quiet "$top" "$folder/deeper/down/b"
  if [ "$(id -u)" -eq 0 ]; then
    # The packages are installed by now: the first clone needed them, too.
    chmod 711 "$folder"
    chown -R nobody: "$folder/deeper"
    as_another=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
  fi
  "${as_another[@]}" "$folder/deeper/down/b/packaging/release.sh"
)

make_first
make_second
diff -r "$folder/a/dist" "$folder/deeper/down/b/dist"
echo "the same bytes twice:"
cat "$folder/a/dist/SHA256SUMS"
