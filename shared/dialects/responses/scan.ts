import {
  atArray,
  atString,
  eachItem,
  eachMember,
  keyTable,
  readLimit,
  readSpan,
  readString,
  readTrue,
  wholeObject,
} from '../json-members.ts'
import type { Cursor, Span } from '../json-scan.ts'
import {
  emptyHistory,
  type HistoryFacts,
  limitOf,
  looserLimit,
  type ModelLiteral,
  noteSetting,
  type RequestFacts,
  readHistory,
  type ScanResult,
  type Setting,
  scanned,
} from '../request-facts.ts'

const SETTINGS = [
  'reasoning',
  'text',
  'include',
  'temperature',
  'top_p',
  'service_tier',
  'metadata',
  'client_metadata',
  'prompt_cache_key',
  'prompt_cache_retention',
  'safety_identifier',
  'user',
  'parallel_tool_calls',
  'truncation',
] as const
const TOP = keyTable([
  'model',
  'stream',
  'max_output_tokens',
  'instructions',
  'input',
  'tools',
  'background',
  ...SETTINGS,
])
const KINDS = {
  types: keyTable(['input_image', 'input_audio', 'input_file', 'reasoning']),
  images: new Set(['input_image']),
  media: new Set(['input_image', 'input_audio', 'input_file']),
  document: 'input_file',
  thinking: new Set(['reasoning']),
}

/** Facts of a request to the Responses API, from one scan of its bytes that also proves the body is JSON. */
export function scanResponses(body: Uint8Array): ScanResult {
  return scanned(() => read(body))
}

/** The input is a list of items, or one text, which is what a user says. */
function readInput(c: Cursor): HistoryFacts {
  if (!atString(c)) return readHistory(c, KINDS)
  const span = readSpan(c)
  return { ...emptyHistory(), span, count: 1, firstUser: span }
}

function read(body: Uint8Array): RequestFacts {
  let model: ModelLiteral | null = null
  const settings: Setting[] = []
  let stream = false
  let background = false
  let maxTokens: number | undefined
  let system: Span | undefined
  let tools: Span | undefined
  let toolCount = 0
  let history = emptyHistory()
  wholeObject(body, c =>
    eachMember(c, TOP, (key, from) => {
      const start = c.at
      switch (key) {
        case 'model':
          model = atString(c) ? { value: readString(c) ?? '', start, end: c.at } : null
          break
        case 'stream':
          stream = readTrue(c)
          break
        case 'background':
          background = readTrue(c)
          break
        case 'max_output_tokens':
          maxTokens = looserLimit(maxTokens, readLimit(c))
          if (c.at === start) readSpan(c)
          noteSetting(c, settings, key, from, start)
          break
        case 'instructions':
          system = readSpan(c)
          break
        case 'tools':
          toolCount = 0
          if (atArray(c)) toolCount = eachItem(c, () => undefined)
          else readSpan(c)
          tools = { start, end: c.at }
          break
        case 'input':
          history = readInput(c)
          break
        case undefined:
          break
        default:
          readSpan(c)
          noteSetting(c, settings, key, from, start)
      }
    }),
  )
  return {
    model,
    stream,
    includeUsage: true,
    n: 1,
    maxTokens: limitOf(maxTokens),
    toolCount,
    imageCount: history.images,
    mediaCount: history.media,
    mediaBytes: history.mediaBytes,
    documentBytes: history.documentBytes,
    messageCount: history.count,
    hasThinkingHistory: history.thinking,
    settings,
    ...(background ? { background } : {}),
    system,
    messages: history.span,
    tools,
    firstUser: history.firstUser,
  }
}
