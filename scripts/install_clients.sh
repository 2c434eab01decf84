#!/bin/sh
# Install the real clients that tests/clients runs, into .clients/ of this tree: about 1.4 GB, 2 to 4 minutes.
#
#   scripts/install_clients.sh [PYTHON]
#
# A second run costs nothing as long as the lists below are as they were. What cannot be installed is named, and the
# exit code is 0 all the same: the tests skip what is not there and say why.

set -u
cd "$(dirname "$0")/.." || exit 1

PYTHON=${1:-python3}
FOLDER=.clients
STAMP=$FOLDER/installed.txt
NPM_PACKAGES="@openai/codex@~0.171.0 opencode-ai@~1.18.33"
PIP_PACKAGES="claude-agent-sdk~=0.2.189 anthropic~=2.14 openai~=3.57 langchain~=1.5 langchain-openai~=1.7
    langchain-anthropic~=1.7 openai-agents~=0.24.0 pydantic-ai-slim[openai,anthropic]~=2.68"
missing=""

miss() {
    missing="$missing $1"
    echo "not installed: $1 ($2)"
}

install_npm() {
    if ! command -v npm >/dev/null 2>&1; then
        for package in $NPM_PACKAGES; do miss "$package" "npm is not there"; done
        return
    fi
    # Their install scripts only copy binaries, which are run from where they are.
    for package in $NPM_PACKAGES; do
        npm install --prefix "$FOLDER" --ignore-scripts --no-fund --no-audit --loglevel=error "$package" ||
            miss "$package" "npm said no"
    done
}

install_pip() {
    if ! "$PYTHON" -m venv "$FOLDER/venv"; then
        for package in $PIP_PACKAGES; do miss "$package" "$PYTHON cannot make a virtual environment"; done
        return
    fi
    pip="$FOLDER/venv/bin/python -m pip install --quiet --disable-pip-version-check"
    # shellcheck disable=SC2086 # words, not one text
    $pip $PIP_PACKAGES && return
    echo "not all at once; one by one:"
    for package in $PIP_PACKAGES; do
        $pip "$package" || miss "$package" "pip said no"
    done
}

wanted=$(echo "$NPM_PACKAGES $PIP_PACKAGES" | tr -s ' \n' '\n\n')
if [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$wanted" ]; then
    echo "the clients are installed in $FOLDER"
    exit 0
fi
mkdir -p "$FOLDER"
install_npm
install_pip
if [ -z "$missing" ]; then
    echo "$wanted" >"$STAMP"
    echo "the clients are installed in $FOLDER"
fi
exit 0
