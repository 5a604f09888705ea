import type { ServerResponse } from 'node:http'
import type { Seen } from '../upstream/scripted.ts'

interface Block {
  type?: string
  cache_control?: { type: string }
}
interface Body {
  tools?: Block[]
  system?: string | Block[]
  messages: { role: string; content: string | Block[] }[]
}

export interface CacheUse {
  written: number
  read: number
  uncached: number
  markers: number
}

const MOST_MARKERS = 4
const LOOK_BACK = 20
/** The shortest prefix that a model of this size caches. */
const LEAST_TOKENS = 1024

/**
 * The far end of the messages API as far as its prompt cache is documented: prefixes are cached at markers, in the order tools, system,
 * messages; a marker finds the longest prefix that was cached at one of the 20 blocks before it; shorter prefixes than the least are not
 * cached; more than four markers are refused. A token is four characters.
 */
export function cacheKeeper(answer: (turn: number) => { content: object[]; stop_reason: string }) {
  const cached = new Set<string>()
  const uses: CacheUse[] = []

  function blocksOf({ tools = [], system = [], messages }: Body): Block[] {
    const texts = typeof system === 'string' ? [{ type: 'text', text: system }] : system
    const said = messages.flatMap(({ role, content }) =>
      (typeof content === 'string' ? [{ type: 'text', text: content }] : content).map(block => ({ role, ...block })),
    )
    return [...tools, ...texts, ...said]
  }

  function use(body: Body): CacheUse | string {
    const blocks = blocksOf(body)
    const markers = blocks.flatMap(({ cache_control }, at) => (cache_control ? [at] : []))
    if (markers.length > MOST_MARKERS)
      return `A maximum of 4 blocks with cache_control may be provided. Found ${markers.length}.`
    const prefixes: { text: string; tokens: number }[] = []
    let text = ''
    for (const { cache_control: _, ...block } of blocks) {
      text += JSON.stringify(block)
      prefixes.push({ text, tokens: Math.ceil(text.length / 4) })
    }
    const total = prefixes.at(-1)?.tokens ?? 0
    const found = markers.flatMap(marker =>
      prefixes.slice(Math.max(0, marker - LOOK_BACK + 1), marker + 1).filter(prefix => cached.has(prefix.text)),
    )
    const read = Math.max(0, ...found.map(({ tokens }) => tokens))
    const kept = markers.map(at => prefixes[at]!).filter(({ tokens }) => tokens >= LEAST_TOKENS)
    for (const prefix of kept) cached.add(prefix.text)
    const upTo = Math.max(read, ...kept.map(({ tokens }) => tokens))
    return { written: upTo - read, read, uncached: total - upTo, markers: markers.length }
  }

  return {
    uses,
    script(response: ServerResponse, { body }: Seen): void {
      const used = use(JSON.parse(body.toString()) as Body)
      response.writeHead(typeof used === 'string' ? 400 : 200, { 'content-type': 'application/json' })
      if (typeof used === 'string') {
        response.end(JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: used } }))
        return
      }
      uses.push(used)
      const { content, stop_reason } = answer(uses.length)
      response.end(
        JSON.stringify({
          id: `msg_${uses.length}`,
          type: 'message',
          role: 'assistant',
          model: 'claude-sonnet-4-5',
          stop_sequence: null,
          content,
          stop_reason,
          usage: {
            input_tokens: used.uncached,
            output_tokens: 30,
            cache_creation_input_tokens: used.written,
            cache_read_input_tokens: used.read,
          },
        }),
      )
    },
  }
}
