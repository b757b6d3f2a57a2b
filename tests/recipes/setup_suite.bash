# shellcheck shell=bash
# shellcheck source=../cli/setup_suite.bash
. "$(dirname "${BASH_SOURCE[0]}")/../cli/setup_suite.bash"
