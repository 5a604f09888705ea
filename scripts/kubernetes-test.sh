#!/usr/bin/env bash
# Applies docs/deploy/kubernetes.yaml, then kubernetes-cluster.yaml, each in a namespace of its own that enforces the Pod Security Standard
# `restricted`. Sends runs, kills pods in the middle of them, rolls control planes and nodes, and verifies all receipts. Deletes the namespaces.
# It needs kubectl with a cluster that provisions volumes, and RUNTIME_IMAGE, AGENT_IMAGE and SQLD_IMAGE, which the cluster finds by these names.
# RUNS is how many runs each part sends; 200 by default. Where something is missing it says so and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."

not_run() {
  echo "kubernetes-test: NOT RUN: $1"
  exit 0
}
kubectl get namespaces >/dev/null 2>&1 || not_run 'kubectl reaches no cluster'
for name in RUNTIME_IMAGE AGENT_IMAGE SQLD_IMAGE; do
  [ -n "${!name:-}" ] || not_run "$name names no image"
done
runs="${RUNS:-200}"
work="$(mktemp -d)"
namespaces=()
background=()
namespace=
cleanup() {
  [ "${#background[@]}" -eq 0 ] || kill "${background[@]}" 2>/dev/null || true
  [ "${#namespaces[@]}" -eq 0 ] || kubectl delete namespace --wait=false "${namespaces[@]}" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap cleanup EXIT
fail() {
  echo "kubernetes-test: FAIL: $1" >&2
  kubectl -n "$namespace" get pods >&2 || true
  kubectl -n "$namespace" get events --field-selector type=Warning >&2 || true
  exit 1
}
k() { kubectl -n "$namespace" "$@"; }
until_true() {
  for _ in $(seq 90); do
    "$@" >/dev/null 2>&1 && return
    sleep 2
  done
  fail "after three minutes: $*"
}

# What the client pod runs. A call that was cut off or refused is made again under its idempotency key.
cat >"$work/client.mjs" <<'JS'
const [what, ...rest] = process.argv.slice(2)
const headers = {
  authorization: `Bearer ${process.env.PLATFORM_API_KEY}`,
  'content-type': 'application/json',
  connection: 'close',
}
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))
const refused = new Map()
async function call(path, body, key) {
  const init = body && { method: 'POST', body: JSON.stringify(body) }
  for (let tries = 0; tries < 1200; tries++) {
    try {
      const response = await fetch(process.env.PLATFORM_URL + path, {
        ...init,
        headers: { ...headers, ...(key && { 'idempotency-key': key }) },
        signal: AbortSignal.timeout(20_000),
      })
      const text = await response.text()
      if (response.ok) return Object.assign(JSON.parse(text), { next: /cursor=([^&>]+)[^>]*>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1] })
      if (response.status < 500 && response.status !== 409) throw Object.assign(new Error(`${response.status} ${text}`), { final: true })
      count(`${response.status} ${JSON.parse(text).code ?? ''}`)
    } catch (error) {
      if (error.final) throw error
      count(error.cause?.code ?? error.name)
    }
    await pause(100)
  }
  throw new Error(`${path}: no answer`)
}
const count = why => refused.set(why, (refused.get(why) ?? 0) + 1)
const commands = {
  async agent(name, pool) {
    const labels = pool && { 'waybill.pool': pool }
    await call('/v1/agents', { name, manifest: { model: 'demo/echo', tools: ['wait'] }, ...(labels && { labels }) })
  },
  node: async name => (await call('/v1/nodes', { name, pool: 'default' })).enrolToken,
  async online(wanted) {
    const nodes = await call('/v1/nodes')
    if (nodes.filter(({ status }) => status === 'online').length !== Number(wanted)) process.exit(1)
  },
  // Spread over some seconds, each run as long as three of them.
  async start(agent, number, label, seconds) {
    const input = { prompt: '/call wait {"seconds":3}' }
    const one = async at => {
      await pause((at * seconds * 1000) / number)
      await call('/v1/runs', { agentName: agent, input, labels: { part: label } }, `${label}-${at}`)
    }
    await Promise.all(Array.from({ length: Number(number) }, (_, at) => one(at)))
    return JSON.stringify({ started: Number(number), refused: Object.fromEntries(refused) })
  },
  async ended(number, label) {
    const found = []
    for (let cursor = ''; cursor !== undefined; ) {
      const page = await call(`/v1/runs?limit=200&fields=summary&label=part:${label}${cursor && `&cursor=${cursor}`}`)
      found.push(...page)
      cursor = page.next
    }
    const succeeded = new Set(found.filter(({ status }) => status === 'succeeded').map(({ id }) => id)).size
    console.log(`${succeeded} of ${found.length}`)
    if (succeeded !== Number(number) || found.length !== succeeded) process.exit(1)
  },
  // For some seconds one call after another, each on a connection of its own: none may fail.
  async steady(seconds) {
    let calls = 0
    const end = Date.now() + Number(seconds) * 1000
    for (; Date.now() < end; calls++)
      await call('/v1/runs', { agentName: 'near', input: { prompt: 'hello' } }, `steady-${end}-${calls}`)
    return JSON.stringify({ calls, refused: Object.fromEntries(refused) })
  },
}
const said = await commands[what](...rest)
if (typeof said === 'string') console.log(said)
JS

# A namespace with the secret and one of the files, and a pod to call from.
begin() {
  namespace="waybill-test-$1-$$"
  namespaces+=("$namespace")
  kubectl create namespace "$namespace" >/dev/null
  kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted >/dev/null
  k create secret generic waybill --from-literal=PLATFORM_MASTER_KEY="$(openssl rand -base64 32)" \
    --from-literal=PLATFORM_BOOTSTRAP_KEY="wb_live_$(openssl rand -hex 24)" >/dev/null
  sed -E -e "s#registry.example.com/waybill-runtime:.*#$RUNTIME_IMAGE#" -e "s#registry.example.com/waybill-node-agent:.*#$AGENT_IMAGE#" \
    -e "s#registry.example.com/libsql-server:.*#$SQLD_IMAGE#" "docs/deploy/$2" | k apply -f - >"$work/applied" 2>&1 || fail "$2 is not taken: $(cat "$work/applied")"
  ! grep -i warning "$work/applied" >&2 || fail "$2 is warned about"
  k apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: { name: client }
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: { runAsNonRoot: true, runAsUser: 10001, seccompProfile: { type: RuntimeDefault } }
  containers:
    - name: client
      image: $RUNTIME_IMAGE
      command: [sleep, infinity]
      workingDir: /tmp
      env:
        - { name: PLATFORM_URL, value: 'http://waybill:8080' }
        - { name: PLATFORM_API_KEY, valueFrom: { secretKeyRef: { name: waybill, key: PLATFORM_BOOTSTRAP_KEY } } }
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL] } }
YAML
  k wait --for=condition=Ready pod/client --timeout=180s >/dev/null || fail 'the client does not start'
  k exec -i client -- sh -c 'cat >/tmp/client.mjs' <"$work/client.mjs"
  until_true k rollout status statefulset/waybill --timeout=2s
  client agent near
}
client() { k exec client -- node /tmp/client.mjs "$@"; }
# Starts runs of an agent over a minute, in the background; what it said is in a file.
load() {
  client start "$1" "$runs" "$2" 60 >"$work/$2" 2>&1 &
  background+=("$!")
}
# A pod that is deleted by force gets no signal to end by itself.
force() { k delete pod "$1" --force --grace-period=0 >/dev/null 2>&1; }
loaded() {
  local one
  for one in "${background[@]}"; do wait "$one" || fail 'a call was never answered'; done
  background=()
}
all_ended() {
  until_true client ended "$runs" "$1"
  echo "kubernetes-test: ok: $1: $runs runs ended once; starting them was refused: $(cat "$work/$1")"
}
verified() {
  local program=(k exec client -- node /opt/waybill/dist/runtime/cli/main.js)
  until_true "${program[@]}" archive --days 0 --to archive
  "${program[@]}" archive verify "$(k exec client -- sh -c 'ls -t archive/runs-*.jsonl' | head -1)" --key archive/keys.json >"$work/verified" ||
    fail "receipts do not verify: $(cat "$work/verified")"
  echo "kubernetes-test: ok: $(cat "$work/verified")"
}

begin one kubernetes.yaml
load near near-one
sleep 15
k delete pod waybill-0 >/dev/null
sleep 15
force waybill-0
loaded
all_ended near-one
verified

begin many kubernetes-cluster.yaml
k create secret generic waybill-nodes --from-literal=waybill-node-0="$(client node waybill-node-0)" \
  --from-literal=waybill-node-1="$(client node waybill-node-1)" >/dev/null
until_true client online 2
client agent far default
load near near-many
load far far-many
for pod in waybill-0 waybill-store-1 waybill-node-0 waybill-1 waybill-store-0 waybill-node-1 waybill-store-2; do
  sleep 4
  force "$pod" &
  sleep 4
done
loaded
all_ended near-many
all_ended far-many
until_true client online 2
client steady 60 >"$work/steady" &
background+=("$!")
for set in waybill waybill-node; do
  k rollout restart "statefulset/$set" >/dev/null
  until_true k rollout status "statefulset/$set" --timeout=2s
done
loaded
grep -q '"refused":{}' "$work/steady" || fail "a rollout failed calls: $(cat "$work/steady")"
echo "kubernetes-test: ok: two sets rolled: $(cat "$work/steady")"
verified
