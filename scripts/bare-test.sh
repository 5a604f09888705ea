#!/usr/bin/env bash
# `npm ci && npm test` as a newcomer meets it: a fresh clone, an ordinary user, and a PATH with a shell, the basic tools, git, Node and
# npm. No optional program, no inputs of the guest image, no libSQL server. Needs root, to become that user. With a file as its argument it
# writes there which test files have nothing left for a full run.
set -euo pipefail
[ -z "${1:-}" ] || set -- "$(realpath "$1")"
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo 'bare-test: run it as root; it becomes an ordinary user itself' >&2
  exit 1
fi
user=waybill-test
id "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$user"

place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
mkdir "$place/bin" "$place/home" "$place/tmp"
for package in bash dash coreutils grep sed findutils tar gzip hostname procps; do
  for path in $(dpkg -L "$package" | grep -E '^(/usr)?/bin/[^/]+$'); do
    [ -x "$path" ] && ln -sf "$path" "$place/bin/${path##*/}"
  done
done
for program in sh awk git node npm npx; do ln -sf "$(command -v "$program")" "$place/bin/$program"; done

git clone --quiet . "$place/waybill"
chown -R "$user": "$place"
chmod 755 "$place"

cd "$place/waybill"
as_newcomer=(setpriv --reuid "$user" --regid "$user" --clear-groups env -i
  "HOME=$place/home" "TMPDIR=$place/tmp" "PATH=$place/bin" LANG=C.UTF-8 WAYBILL_GUEST_INPUTS="$place/none")
for variable in WAYBILL_TEST_SEED WAYBILL_TEST_FULL npm_config_cache; do
  [ -z "${!variable:-}" ] || as_newcomer+=("$variable=${!variable}")
done
"${as_newcomer[@]}" npm ci
"${as_newcomer[@]}" "WAYBILL_TEST_PASSED=$place/passed" npm test
[ -z "${1:-}" ] || cp "$place/passed" "$1"
