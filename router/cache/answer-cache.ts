import { joined, utf8 } from '../../shared/sign/bytes.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import type { HeaderList } from '../upstream/transport.ts'

interface Entry<Answer> {
  answer: Answer
  bytes: number
  at: number
  /** The call that it answered first, and those that it was given to since. */
  traceIds: string[]
}

export interface AnswerCacheOptions {
  monotonic: () => number
  maxBytes?: number
  maxAnswers?: number
}

/** A larger answer is not kept. */
const MOST_OF_ONE = 1024 * 1024
/** Traces by which one answer can be taken back. */
const MOST_TRACES = 1000

export type AnswerCache<Answer> = ReturnType<typeof answerCache<Answer>>

/**
 * Answers that passed their gates, in this process and in memory only: outputs are never stored (docs/spec/router.md §1.5). The ones that
 * were asked for longest ago go first.
 */
export function answerCache<Answer>({
  monotonic,
  maxBytes = 64 * 1024 * 1024,
  maxAnswers = 10_000,
}: AnswerCacheOptions) {
  const entries = new Map<string, Entry<Answer>>()
  const keyOf = new Map<string, string>()
  let bytes = 0

  function drop(key: string): void {
    const entry = entries.get(key)
    if (entry === undefined) return
    entries.delete(key)
    bytes -= entry.bytes
    for (const id of entry.traceIds) keyOf.delete(id)
  }

  function name(entry: Entry<Answer>, key: string, traceId: string): void {
    entry.traceIds.push(traceId)
    keyOf.set(traceId, key)
    if (entry.traceIds.length > MOST_TRACES) keyOf.delete(entry.traceIds.splice(1, 1)[0]!)
  }

  return {
    /** An answer that is no older than that; the call that gets it can take it back as well. */
    find(key: string, ttlS: number, traceId: string): Answer | undefined {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      if (monotonic() - entry.at > ttlS * 1000) {
        drop(key)
        return undefined
      }
      entries.delete(key)
      entries.set(key, entry)
      name(entry, key, traceId)
      return entry.answer
    },
    keep(key: string, traceId: string, answer: Answer, size: number): void {
      if (size > MOST_OF_ONE) return
      drop(key)
      const entry: Entry<Answer> = { answer, bytes: size, at: monotonic(), traceIds: [] }
      name(entry, key, traceId)
      entries.set(key, entry)
      bytes += size
      while (bytes > maxBytes || entries.size > maxAnswers) drop(entries.keys().next().value!)
    },
    /** The answer of this call was reported wrong: it is not served again. */
    retract(traceId: string): void {
      const key = keyOf.get(traceId)
      if (key !== undefined) drop(key)
    },
    get size() {
      return { answers: entries.size, bytes, traces: keyOf.size }
    },
  }
}

export interface KeyParts {
  tenantId: string
  /** Another config may gate differently, so it knows no answers of this one. */
  configHash: string
  routeIx: number
  profile: string
  target: string
  headers: HeaderList
  body: Uint8Array
}

/** Headers that change what a provider answers, or decide whether it answers at all. */
const TELLING = /^(?:authorization|x-api-key|(?:anthropic|openai)-.+)$/

/** Undefined where the client wants no answer that was kept. Who asks with another key asks something else. */
export function cacheKey({ headers, body, ...named }: KeyParts, sha256: Sha256): string | undefined {
  const telling: string[] = []
  for (const [name, value] of headers) {
    const low = name.toLowerCase()
    if (low === 'cache-control' && /no-(?:cache|store)/i.test(value)) return undefined
    if (TELLING.test(low)) telling.push(`${low}:${value}`)
  }
  const { tenantId, configHash, routeIx, profile, target } = named
  const head = JSON.stringify([tenantId, configHash, routeIx, profile, target, telling.sort()])
  return sha256Hex(joined([utf8(`${head}\0`), body]), sha256)
}
