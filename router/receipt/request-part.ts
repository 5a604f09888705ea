import type { Span } from '../../shared/dialects/json-scan.ts'
import type { RequestFacts } from '../../shared/dialects/request-facts.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import type { Features, UnsealedTrace } from '../../shared/wire/router/trace.ts'
import { headerValue } from '../upstream/headers.ts'
import type { HeaderList } from '../upstream/transport.ts'

export interface Hashing {
  sha256: Sha256
  /** Keeps hashes of guessable prompts from being looked up. */
  salt: Uint8Array
}

/** What was called, of a call that is only passed on. */
export interface PassedCall {
  method: string
  /** Without its query, which may hold a secret. */
  path: string
  headers: HeaderList
}

export interface InboundRequest {
  api: UnsealedTrace['request']['api']
  headers: HeaderList
  body: Uint8Array
  /** Undefined when the body did not parse. */
  facts: RequestFacts | undefined
}

export type RequestPart = Omit<UnsealedTrace['request'], 'body_sha256_out'> & { session_id: string }

/** What stands of a request on the receipt, in the order of the names. */
export function requestSealed(
  { api, body_sha256_in, features, method, path, prompt_hash }: Omit<RequestPart, 'session_id'>,
  body_sha256_out: string | null,
): UnsealedTrace['request'] {
  return { api, body_sha256_in, body_sha256_out, features, method, path, prompt_hash }
}

/** What a receipt says about the request: hashes, counts and names, never a word of it (docs/spec/router.md §1.1). */
export function requestPart(request: InboundRequest, hashing: Hashing): RequestPart {
  const { api, body, facts } = request
  return { ...decidedOn(request, hashing), api, ...bodyHashes({ body, prompt: promptOf(facts) }, hashing) }
}

/** The same of a call to a path that is only passed on. */
export function passedRequestPart(call: PassedCall, request: InboundRequest, hashing: Hashing): RequestPart {
  return { ...requestPart(request, hashing), ...calledOf(call) }
}

export interface UnreadCall {
  api: InboundRequest['api']
  headers: HeaderList
  passed: Omit<PassedCall, 'headers'> | undefined
}

/** The same where the body was hashed on its way and not kept. */
export function unreadRequestPart(
  { api, headers, passed }: UnreadCall,
  { size, ...hashes }: Pick<RequestPart, 'prompt_hash' | 'body_sha256_in'> & { size: number },
  hashing: Hashing,
): RequestPart {
  const { features, session_id } = decidedOn({ headers, body: new Uint8Array(0), facts: undefined }, hashing)
  return {
    session_id,
    api,
    ...(passed && calledOf(passed)),
    ...hashes,
    features: { ...features, body_bytes: size, size_bucket: sizeBucket(size) },
  }
}

const calledOf = ({ method, path }: Pick<PassedCall, 'method' | 'path'>) => ({
  method: method.slice(0, 512),
  path: path.slice(0, 512),
})

/** The part that a decision reads. */
export function decidedOn(
  { headers, body, facts }: Omit<InboundRequest, 'api'>,
  hashing: Hashing,
): Pick<RequestPart, 'features' | 'session_id'> {
  const own = headerValue(headers, 'x-router-session')
  return {
    features: features(headers, body, facts),
    session_id:
      own !== undefined && own !== ''
        ? own.slice(0, 128)
        : 'd_' +
          saltedHash(hashing, 'session', [
            ...parts(body, facts?.system, facts?.tools),
            ...parts(body, facts?.firstUser).map(unmarked),
          ]).slice(0, 32),
  }
}

const MARK = utf8('"cache_control"')
const MARKS = /,\s*"cache_control"\s*:\s*\{[^{}]*\}|"cache_control"\s*:\s*\{[^{}]*\}\s*,?/g

/** A message without the marks of its cache: clients move them on with each turn, and the first message is the newest one only once. */
function unmarked(message: Uint8Array): Uint8Array {
  for (let at = message.indexOf(QUOTE); at >= 0; at = message.indexOf(QUOTE, at + 1)) {
    if (MARK.every((byte, i) => message[at + i] === byte))
      return utf8(new TextDecoder().decode(message).replace(MARKS, ''))
  }
  return message
}
const QUOTE = 0x22

/** A body, and which of its bytes are the prompt. */
export interface Prompted {
  body: Uint8Array
  /** In the order of the body; undefined where it did not parse: then all of it. */
  prompt: readonly Span[] | undefined
}

export function promptOf(facts: RequestFacts | undefined): readonly Span[] | undefined {
  return facts && [facts.system, facts.messages].filter(one => one !== undefined).sort((a, b) => a.start - b.start)
}

/** What only the receipt holds of a body: no decision waits for it. */
export function bodyHashes(
  { body, prompt }: Prompted,
  hashing: Hashing,
): Pick<RequestPart, 'prompt_hash' | 'body_sha256_in'> {
  return {
    prompt_hash: saltedHash(hashing, 'prompt', prompt ? parts(body, ...prompt) : [body]),
    body_sha256_in: bodyHash(hashing, body),
  }
}

const parts = (body: Uint8Array, ...spans: readonly (Span | undefined)[]): Uint8Array[] =>
  spans.flatMap(span => (span === undefined ? [] : [body.subarray(span.start, span.end)]))

/** SHA-256(salt ‖ `body\0` ‖ bytes): equal on both sides exactly when no byte changed. */
export function bodyHash(hashing: Hashing, body: Uint8Array): string {
  return saltedHash(hashing, 'body', [body])
}

const LABELS = { prompt: utf8('prompt\0'), body: utf8('body\0'), session: utf8('session\0') }

// One buffer for all: what is hashed here is hashed before the next one is put together. A very large body leaves no large buffer behind.
const MOST_KEPT = 1024 * 1024
let scratch = new Uint8Array(64 * 1024)

function roomFor(size: number): Uint8Array {
  if (size <= scratch.length) return scratch
  const made = new Uint8Array(Math.max(size, Math.min(2 * size, MOST_KEPT)))
  if (made.length <= MOST_KEPT) scratch = made
  return made
}

/** What stands before the bytes under a salted hash. */
export function hashStart({ salt }: Hashing, purpose: keyof typeof LABELS): readonly Uint8Array[] {
  return [salt, LABELS[purpose]]
}

function saltedHash({ sha256, salt }: Hashing, purpose: keyof typeof LABELS, parts: readonly Uint8Array[]): string {
  const label = LABELS[purpose]
  let size = salt.length + label.length
  for (const part of parts) size += part.length
  const bytes = roomFor(size)
  bytes.set(salt)
  bytes.set(label, salt.length)
  let at = salt.length + label.length
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return sha256Hex(bytes.subarray(0, size), sha256)
}

function features(headers: HeaderList, body: Uint8Array, facts: RequestFacts | undefined): Features {
  const named = (name: string) => headerValue(headers, name)?.slice(0, 128) || undefined
  return {
    agent: agentOfHeaders(headers).slice(0, 128),
    background: facts?.background ? true : undefined,
    body_bytes: body.length,
    has_thinking_history: facts?.hasThinkingHistory ?? false,
    image_count: facts?.imageCount ?? 0,
    language: named('x-router-language'),
    max_tokens: facts?.maxTokens === undefined ? undefined : countOf(facts.maxTokens),
    message_count: facts?.messageCount ?? 0,
    n: countOf(facts?.n ?? 1),
    requested_model: facts?.model?.value.slice(0, 512) ?? '',
    size_bucket: sizeBucket(body.length),
    stream: facts?.stream ?? false,
    subagent: named('x-router-subagent'),
    task: named('x-router-task'),
    tool_count: facts?.toolCount ?? 0,
  }
}

/** A number of a client as a record can hold it: no other one could be sealed. */
const countOf = (given: number) => Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.trunc(given)))

const sizeBucket = (bytes: number) => Math.floor(Math.log2(Math.max(1, bytes)))

export function agentOfHeaders(headers: HeaderList): string {
  return agentOf(headerValue(headers, 'x-router-agent'), headerValue(headers, 'user-agent'))
}

/** Programs that name themselves otherwise in `user-agent` than people do. */
const AGENTS: ReadonlyMap<string, string> = new Map([
  ['claude-cli', 'claude-code'],
  ['codex_cli_rs', 'codex'],
  ['codex_exec', 'codex'],
])

/** docs/spec/router.md §6.2: the header, else the first product of `user-agent`, else `unknown`. */
export function agentOf(header: string | undefined, userAgent: string | undefined): string {
  const named = header?.trim()
  if (named) return named
  const product = /^[^\s/;(]+/.exec(userAgent?.trim() ?? '')?.[0].toLowerCase()
  if (product === undefined) return 'unknown'
  return AGENTS.get(product) ?? product
}

/** Programs that leave their name out of `user-agent`, and what stands there instead. */
const UNNAMED: ReadonlyMap<string, readonly string[]> = new Map([['aider', ['litellm', 'openai']]])

/** What a rule has to say for a program that it can never match by its own name; undefined for every other. */
export const namesInstead = (agent: string): readonly string[] | undefined => UNNAMED.get(agent.toLowerCase())
