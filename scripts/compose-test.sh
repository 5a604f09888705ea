#!/usr/bin/env bash
# Starts docs/deploy/compose-cluster.yaml with `docker compose`, sends runs to its nodes, kills a control plane and takes a shard away.
# It needs an engine that `docker compose` reaches (DOCKER_HOST; podman is one), caddy:2, SQLD_IMAGE, and the images that scripts/image-test.sh
# builds, or RUNTIME_IMAGE and AGENT_IMAGE. Where one is missing it says so and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."

not_run() {
  echo "compose-test: NOT RUN: $1"
  exit 0
}
docker compose version >/dev/null 2>&1 || not_run 'docker compose is not installed'
docker info >/dev/null 2>&1 || not_run 'no engine answers docker compose: set DOCKER_HOST'
[ -n "${SQLD_IMAGE:-}" ] || not_run 'SQLD_IMAGE names no image of a libSQL server'

export RUNTIME_IMAGE="${RUNTIME_IMAGE:-localhost/waybill-runtime:test}" AGENT_IMAGE="${AGENT_IMAGE:-localhost/waybill-node-agent:test}"
for image in "$SQLD_IMAGE" "$RUNTIME_IMAGE" "$AGENT_IMAGE"; do
  docker image inspect "$image" >/dev/null 2>&1 || not_run "there is no image $image"
done
export MASTER_KEY BOOTSTRAP_KEY ENROL_TOKEN_1='' ENROL_TOKEN_2=''
MASTER_KEY="$(openssl rand -base64 32)"
BOOTSTRAP_KEY="wb_live_$(openssl rand -hex 24)"
project="waybill-test-$$"
compose=(docker compose --project-name "$project" --profile nodes -f docs/deploy/compose-cluster.yaml)
trap '"${compose[@]}" down --volumes --timeout 5 >/dev/null 2>&1 || true' EXIT

fail() {
  echo "compose-test: FAIL: $1" >&2
  "${compose[@]}" logs --tail 20 >&2 || true
  exit 1
}
until_true() {
  for _ in $(seq 60); do
    "$@" && return
    sleep 1
  done
  fail "after a minute: $*"
}
call() { curl -sS --max-time 20 --retry 3 -H "authorization: Bearer $BOOTSTRAP_KEY" -H 'content-type: application/json' "http://127.0.0.1:8080$1" "${@:2}"; }
answers() { [ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:8080$1")" = 200 ]; }
field() { node -e 'let text = ""; process.stdin.on("data", piece => (text += piece)).on("end", () => console.log(JSON.parse(text)[process.argv[1]] ?? ""))' "$1"; }
count() { grep -o "\"status\":\"$1\"" | wc -l; }
online() { [ "$(call /v1/nodes | count online)" -eq 2 ]; }
ended() { [ "$(call '/v1/runs?limit=200' | count succeeded)" -eq "$1" ]; }
# A call that was in the killed process is cut off; the same key makes the second try safe.
start_runs() {
  for at in $(seq "$1" "$2"); do
    for _ in 1 2 3; do
      [ "$(call /v1/runs -o /dev/null -w '%{http_code}' -H "idempotency-key: run-$at" \
        -d '{"agentName":"far","input":{"prompt":"/call wait {\"seconds\":1}"}}')" = 201 ] && continue 2
    done
    fail "run $at was not taken"
  done
}

"${compose[@]}" up --detach --no-build balancer control-1 control-2 >/dev/null 2>&1 || fail 'it does not start'
until_true answers /readyz
for at in 1 2; do
  export "ENROL_TOKEN_$at=$(call /v1/nodes -d "{\"name\":\"node-$at\",\"pool\":\"default\"}" | field enrolToken)"
done
"${compose[@]}" up --detach --no-build >/dev/null 2>&1 || fail 'the nodes do not start'
until_true online
call /v1/agents -d '{"name":"far","labels":{"waybill.pool":"default"},"manifest":{"model":"demo/echo","tools":["wait"]}}' >/dev/null
start_runs 1 20
"${compose[@]}" kill control-1 >/dev/null 2>&1
start_runs 21 40
"${compose[@]}" start control-1 >/dev/null 2>&1
"${compose[@]}" stop --timeout 2 store-b >/dev/null 2>&1
start_runs 41 60
"${compose[@]}" start store-b >/dev/null 2>&1
until_true ended 60
until_true online
echo 'compose-test: ok: 60 runs on two nodes, a control plane killed, a shard away'
