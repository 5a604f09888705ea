import { canonicalize } from '../../../shared/sign/jcs.ts'
import { type Sha256, sha256Hex } from '../../../shared/sign/sha256.ts'
import { IMAGE_TOKENS, type Message } from '../models/model.ts'

/** As many characters of JSON as a message has tokens for. */
export function charactersOf(message: Message): number {
  const { message: text, images } = textOnly(message)
  return canonicalize(text).length + images * IMAGE_TOKENS * CHARACTERS_PER_TOKEN
}

const CHARACTERS_PER_TOKEN = 4

/** What a model is sent, with a digest and a size that cost as much as the new message and not as the history. */
export function conversation(seed: string, sha256: Sha256) {
  let messages: Message[] = []
  let digest = sha256Hex(seed, sha256)
  let characters = 0

  function add(message: Message): void {
    const text = canonicalize(message)
    digest = sha256Hex(digest + text, sha256)
    characters += charactersOf(message)
    messages.push(message)
  }

  return {
    add,
    /** The same conversation with everything but the last `keep` messages replaced by one. */
    replace(summary: Message, keep: number): void {
      const kept = keep === 0 ? [] : messages.slice(-keep)
      messages = []
      characters = 0
      for (const message of [summary, ...kept]) add(message)
    },
    get messages(): readonly Message[] {
      return messages
    },
    get inputHash() {
      return digest
    },
    /** About four characters of JSON to a token. */
    get tokens() {
      return Math.ceil(characters / CHARACTERS_PER_TOKEN)
    },
  }
}

/** docs/spec/runtime.md §4: the one text of an input that has a single well-known key, else the input as JSON. */
export function userMessage(input: Readonly<Record<string, unknown>>): string {
  const [key, ...more] = Object.keys(input)
  if (key !== undefined && more.length === 0 && TEXT_KEYS.has(key)) {
    const value = input[key]
    if (typeof value === 'string') return value
  }
  return JSON.stringify(input)
}

const TEXT_KEYS = new Set(['prompt', 'message', 'task', 'text', 'question', 'query'])

/** A message as far as it is text, and how many images it has. */
export function textOnly(message: Message): { message: Message; images: number } {
  if (message.role !== 'tool') return { message, images: 0 }
  const images = message.results.reduce((sum, result) => sum + (result.images?.length ?? 0), 0)
  if (images === 0) return { message, images }
  return { message: { ...message, results: message.results.map(({ images: _, ...result }) => result) }, images }
}
