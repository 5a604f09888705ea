#!/usr/bin/env bash
# Builds the images of docs/deploy/Dockerfile and starts each as docs/deploy shows it: an ordinary user, a read-only root, no
# capabilities. Where podman is missing or the account is not root it says what was not run, and succeeds.
#
# WAYBILL_IMAGE_BASE names the base image to build on. Without it a base is made from Debian's packages and the Node of this project,
# so that no image registry is needed.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ] || ! command -v podman >/dev/null; then
  echo 'image-test: NOT RUN: no image was built or started; it needs podman, and root'
  exit 0
fi
# Whether the service manager has both versions of control groups mounted is the machine's business; runc takes either.
podman=(podman --log-level fatal)
command -v runc >/dev/null && podman+=(--runtime runc)

make_base() {
  local tree
  if ! command -v debootstrap >/dev/null; then
    echo 'image-test: NOT RUN: no image was built or started; it needs debootstrap, or WAYBILL_IMAGE_BASE'
    exit 0
  fi
  tree="$(mktemp -d)"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$tree" >"$tree.log" 2>&1 || {
    cat "$tree.log" >&2
    exit 1
  }
  install -m755 node_modules/node/bin/node "$tree/usr/local/bin/node"
  mkdir -p "$tree/usr/local/lib/node_modules" "$tree/usr/local/etc"
  cp -a "$(npm root --global)/npm" "$tree/usr/local/lib/node_modules/"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$tree/usr/local/bin/npm"
  # What this machine's npm needs to reach its registry.
  cp "$(npm config get globalconfig)" "$tree/usr/local/etc/npmrc" 2>/dev/null || true
  cp /etc/ssl/certs/ca-certificates.crt "$tree/etc/ssl/certs/ca-certificates.crt"
  tar -C "$tree" -c . | "${podman[@]}" import --quiet - "$1" >/dev/null
  rm -rf "$tree" "$tree.log"
}

base="${WAYBILL_IMAGE_BASE:-}"
if [ -z "$base" ]; then
  base='localhost/waybill-base:bookworm'
  "${podman[@]}" image exists "$base" || make_base "$base"
fi

containers=()
cleanup() {
  [ "${#containers[@]}" -eq 0 ] || "${podman[@]}" rm --force --time 0 "${containers[@]}" >/dev/null 2>&1 || true
}
trap cleanup EXIT

fail() {
  echo "image-test: FAIL: $1" >&2
  exit 1
}

for target in runtime router node-agent; do
  image="localhost/waybill-$target:test"
  "${podman[@]}" build --quiet --format docker --network host --build-arg "BASE=$base" -f docs/deploy/Dockerfile --target "$target" -t "$image" . >/dev/null
  flags=(--read-only --cap-drop all --security-opt no-new-privileges --tmpfs /tmp --network none
    --ulimit nofile=4096:4096 --ulimit nproc=4096:4096)
  [ "$("${podman[@]}" run --rm "${flags[@]}" --entrypoint id "$image" -u)" = 10001 ] || fail "$target does not run as user 10001"
  if [ "$target" = node-agent ]; then
    "${podman[@]}" run --rm "${flags[@]}" "$image" doctor | grep -q '^ok  *wasm' || fail 'node-agent doctor finds no backend that needs no privileges'
    echo "image-test: ok: $target"
    continue
  fi
  container="waybill-$target-test-$$"
  containers+=("$container")
  "${podman[@]}" run --detach --name "$container" "${flags[@]}" "$image" >/dev/null
  for _ in $(seq 60); do
    "${podman[@]}" healthcheck run "$container" >/dev/null 2>&1 && healthy=yes && break
    sleep 1
  done
  [ "${healthy:-}" = yes ] || { "${podman[@]}" logs "$container" >&2; fail "$target did not become healthy"; }
  healthy=
  "${podman[@]}" exec "$container" sh -c 'touch /opt/waybill/x' 2>/dev/null && fail "$target may write to its root"
  "${podman[@]}" stop --time 45 "$container" >/dev/null
  [ "$("${podman[@]}" wait "$container")" = 0 ] || fail "$target did not leave with 0 after SIGTERM"
  echo "image-test: ok: $target"
done
