# shellcheck shell=bash
# bats loads this by its name: once for each file, since each is a test of its own.
setup_suite() { :; }

# Every JSON that the tests left in their folders, or that helpers.bash kept, fits its schema.
teardown_suite() {
  "$(dirname "${BASH_SOURCE[0]}")/../style/validate.py" "$BATS_RUN_TMPDIR"
}
