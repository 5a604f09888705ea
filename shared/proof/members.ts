/** The members that a fixed format has, at every level; below `true` anything may stand. */
export interface Members {
  readonly [name: string]: true | Members | readonly [Members]
}

/** Members whose values are not looked into here. */
function open(names: string): Members {
  return Object.fromEntries(names.split(' ').map(name => [name, true]))
}

const PAYLOAD: Members = {
  ...open(
    'version runId tenantId agentName agentVersionId manifestHash status inputHash outputHash tokensIn tokensOut',
  ),
  ...open('costUsd models isolation nodeId chain journalHash eventCount createdAt finishedAt issuedAt keyId'),
  node: open('publicKey signature'),
}

export const RECEIPT: Members = { ...open('signature algorithm publicKey'), payload: PAYLOAD }

/** `payload` and `meta` are free, and under the hash as they are. */
const EVENT = open('seq kind stepId runId attempt at payload meta hash')

export const JOURNAL: Members = { ...open('runId chain genesis head eventCount sealed'), events: [EVENT] }

export const RUNTIME_KEYS: Members = {
  ...open('algorithm keyId publicKey keyFingerprint chain canonicalization docs'),
  keys: [open('keyId publicKey keyFingerprint status notBefore notAfter')],
}

const SEAL = open('seq prev_hash hash')

export const TRACE: Members = {
  ...SEAL,
  ...open('v trace_id tenant_id ts session_id mode route_ix'),
  request: {
    ...open('api method path prompt_hash body_sha256_in body_sha256_out'),
    features: {
      ...open('requested_model agent subagent task language tool_count image_count has_thinking_history stream'),
      ...open('background body_bytes size_bucket message_count max_tokens n'),
    },
  },
  policy: {
    ...open('id start_rung propensity mode_profile explore config_hash price_table_hash overrides'),
    dropped: [open('rung model reason because')],
    stay: open('from to stays cached_tokens cached_for_ms stay_usd go_usd without_usd balance_usd'),
  },
  attempts: [
    {
      ...open('rung provider model gate verdict cost score usage_source latency_ms ttfb_ms status finish cause'),
      ...open('error_class'),
      gates: [open('gate_id kind verdict score cost latency_ms reason evidence_ref')],
      adapted: [open('path from to why')],
      tokens: open('uncached cache_write_5m cache_write_1h cache_read output'),
    },
  ],
  final: {
    ...open('served_rung served_model served_from status total_cost_usd gate_cost_usd baseline_same_token_usd'),
    ...open('baseline_calibrated_usd savings_usd savings_calibrated_usd escalations failovers wall_ms overhead_ms'),
    ...open('response_id upstream_request_id client_request_id truncated'),
  },
}

export const FEEDBACK: Members = {
  ...SEAL,
  ...open('v tenant_id feedback_id trace_id gate_id reporter verdict score ts supersedes'),
}

export const CHECKPOINT = open('v kind tenant_id seq hash feedback_seq feedback_hash ts key_id prev_checkpoint sig')

export const ROUTER_KEYS: Members = {
  ...open('v heads_url'),
  keys: [open('key_id alg public_key created_at retired_at')],
}

/** Where a member stands that the format has not, such as `events/1/output`; undefined where there is none. */
export function unknownMember(value: unknown, members: Members, path = ''): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, member] of Object.entries(value)) {
    const place = path === '' ? name : `${path}/${name}`
    const known = Object.hasOwn(members, name) ? members[name] : undefined
    if (known === undefined) return place
    if (known === true) continue
    const [one] = Array.isArray(known) ? known : []
    const found =
      one === undefined
        ? unknownMember(member, known as Members, place)
        : Array.isArray(member)
          ? unknownInList(member, one, place)
          : undefined
    if (found !== undefined) return found
  }
  return undefined
}

function unknownInList(values: readonly unknown[], members: Members, path: string): string | undefined {
  for (const [at, value] of values.entries()) {
    const found = unknownMember(value, members, `${path}/${at}`)
    if (found !== undefined) return found
  }
  return undefined
}
