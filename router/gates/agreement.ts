import type { CandidateChoice, ToolCall } from '../../shared/dialects/candidate.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { canonicalize, type Json } from '../../shared/sign/jcs.ts'

/** An answer as far as another one can agree with it. */
export type Sample = Pick<CandidateChoice, 'text' | 'toolCalls'>

/** Whether there is anything to compare; a refusal is no sample. */
export function isUsable({ text, toolCalls, refusal }: CandidateChoice): boolean {
  return refusal === null && (text.trim() !== '' || toolCalls.length > 0)
}

/** Mean agreement over all pairs; undefined with fewer than two samples. */
export function meanAgreement(samples: readonly Sample[]): number | undefined {
  const read = samples.map(readSample)
  let sum = 0
  let pairs = 0
  for (let i = 0; i < read.length; i++) {
    for (let j = i + 1; j < read.length; j++) {
      sum += agreement(read[i]!, read[j]!)
      pairs++
    }
  }
  return pairs === 0 ? undefined : sum / pairs
}

interface ReadSample {
  text: string
  number: string | undefined
  /** The number is all that the text says, or is named as what it comes to. */
  concludes: boolean
  subject: ReadonlySet<string>
  calls: string | undefined
  tokens: ReadonlySet<string>
}

/** Two texts with so much of their longer words in common speak of the same thing. */
const SAME_SUBJECT = 0.2

/**
 * docs/spec/router.md §5.2: 1 if the normalised texts, the final numbers that both come to, or the canonical tool calls are equal, else the Jaccard index
 * of their tokens. Where one of the two calls tools, the calls are the answer, and what is written beside them decides nothing.
 */
function agreement(a: ReadSample, b: ReadSample): number {
  const calling = a.calls !== undefined || b.calls !== undefined
  if (calling) return a.calls === b.calls ? 1 : jaccard(a.tokens, b.tokens)
  if (a.text === b.text || comeToTheSame(a, b)) return 1
  return jaccard(a.tokens, b.tokens)
}

/** Any two texts may end in a 2; it is the answer of both where each concludes with it, or both speak of the same thing. */
function comeToTheSame(a: ReadSample, b: ReadSample): boolean {
  if (a.number === undefined || a.number !== b.number) return false
  return (a.concludes && b.concludes) || jaccard(a.subject, b.subject) >= SAME_SUBJECT
}

function readSample({ text, toolCalls }: Sample): ReadSample {
  const normal = normalised(text)
  const calls = toolCalls.length === 0 ? undefined : canonicalCalls(toolCalls)
  return {
    text: normal,
    number: finalNumber(normal),
    concludes: concludes(normal),
    subject: new Set(normal.match(LONG_WORD)),
    calls,
    tokens: tokensOf(`${normal} ${calls ?? ''}`),
  }
}

const normalised = (text: string): string => text.normalize('NFKC').toLowerCase().replace(/\s+/gu, ' ').trim()

const NUMBER = /(?<![\p{L}\p{N}_.])[-+\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d{1,3})?/gu

const LONG_WORD = /\p{L}{4,}/gu

const RESULT = /\b(?:answer|result|total|sum|solution|equals?|comes to)\b|=|####|\\boxed/u
const FEW_WORDS = 3

/** Whether a text is little more than its number, or names a result where it ends. */
function concludes(normal: string): boolean {
  const words = normal.match(/\p{L}+/gu)?.length ?? 0
  if (words <= FEW_WORDS) return true
  const last = normal.split(/(?<=[.!?;])\s/u).findLast(sentence => /\p{N}/u.test(sentence))
  return last !== undefined && RESULT.test(last)
}

/** The last number of a text in one spelling: `1,234.50` and `1234.5` are the same. */
export function finalNumber(text: string): string | undefined {
  const last = text.match(NUMBER)?.at(-1)
  if (last === undefined) return undefined
  const plain = last.replaceAll(',', '').replace('\u2212', '-')
  // Beyond what a double holds exactly, two different numbers would look equal.
  if (plain.replace(/\D/g, '').length > 15) return plain
  return String(Number(plain) + 0)
}

const WORD = /[\p{L}\p{N}]+/gu

const tokensOf = (text: string): ReadonlySet<string> => new Set(text.match(WORD))

function jaccard(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const union = new Set([...a, ...b]).size
  return union === 0 ? 0 : (a.size + b.size - union) / union
}

/** Names and arguments in their order; ids are new in every answer. */
function canonicalCalls(calls: readonly ToolCall[]): string {
  return JSON.stringify(calls.map(({ name, arguments: args }) => [name, canonicalJson(args)]))
}

function canonicalJson(text: string): string {
  try {
    return canonicalize(readJson(text) as Json)
  } catch {
    // Not JSON, or nothing that has a canonical form: then only the same text is the same call.
    return text
  }
}
