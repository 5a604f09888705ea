#!/usr/bin/env bash
# Installs the Debian packages that the tests can use. Needs root; run once per machine. Nothing here is needed to run
# the services themselves.
set -euo pipefail

packages=(
  sqlite3         # reads our store files with the engine's own shell
  zsh             # reads the lines that `router onboard` writes
  fish            # the same, in a language of its own
  chromium        # opens the router's panel
  chromium-driver # drives it, over WebDriver
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then
  echo 'setup-host: everything is installed'
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "setup-host: run as root to install: ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "setup-host: installed ${missing[*]}"
