#!/bin/sh
# release.sh COMMIT FOLDER: FOLDER/rlock is built from the source of COMMIT, in FOLDER, unless that was done before.
set -eu

commit=$1 folder=$2
top=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
[ ! -x "$folder/$commit/src/rlock" ] || exit 0
git -C "$top" cat-file -e "$commit^{commit}" 2>/dev/null || { echo "there is no commit $commit here: git fetch --unshallow" >&2 && exit 77; }
rm -rf "$folder"
mkdir -p "$folder/source"
git -C "$top" archive "$commit" | tar -x -C "$folder/source"
cmake -S "$folder/source" -B "$folder/$commit" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRLOCK_TESTS=OFF -DCMAKE_UNITY_BUILD=ON
cmake --build "$folder/$commit" --parallel "$(nproc)" --target rlock
ln -sf "$folder/$commit/src/rlock" "$folder/rlock"
