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
import type { Span } from '../json-scan.ts'
import {
  emptyHistory,
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
  'thinking',
  'output_config',
  'output_format',
  'context_management',
  'temperature',
  'top_p',
  'top_k',
  'tool_choice',
  'service_tier',
  'speed',
  'metadata',
  'cache_control',
] as const
const TOP = keyTable(['model', 'stream', 'max_tokens', 'system', 'messages', 'tools', ...SETTINGS])
const KINDS = {
  types: keyTable(['image', 'document', 'thinking', 'redacted_thinking', 'tool_result']),
  images: new Set(['image']),
  media: new Set(['image', 'document']),
  document: 'document',
  thinking: new Set(['thinking', 'redacted_thinking']),
  results: new Set(['tool_result']),
}

/** Facts of a messages request, from one scan of its bytes that also proves the body is JSON. */
export function scanMessages(body: Uint8Array): ScanResult {
  return scanned(() => read(body))
}

function read(body: Uint8Array): RequestFacts {
  let model: ModelLiteral | null = null
  const settings: Setting[] = []
  let stream = false
  let maxTokens: number | undefined
  let lastLimit: number | undefined
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
        case 'max_tokens':
          lastLimit = readLimit(c)
          maxTokens = looserLimit(maxTokens, lastLimit)
          if (c.at === start) readSpan(c)
          noteSetting(c, settings, key, from, start)
          break
        case 'system':
          system = readSpan(c)
          break
        case 'tools':
          toolCount = atArray(c) ? eachItem(c, () => undefined) : 0
          if (c.at === start) readSpan(c)
          tools = { start, end: c.at }
          break
        case 'messages':
          history = readHistory(c, KINDS)
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
    includeUsage: false,
    n: 1,
    maxTokens: limitOf(maxTokens),
    ...(lastLimit === 0 ? { onlyCaches: true } : {}),
    toolCount,
    imageCount: history.images,
    mediaCount: history.media,
    mediaBytes: history.mediaBytes,
    documentBytes: history.documentBytes,
    messageCount: history.count,
    hasThinkingHistory: history.thinking,
    ...(history.endsWithResults ? { openTurn: history.thoughtLast ? 'thinking' : 'plain' } : {}),
    ...(history.systemRoles.length > 0 ? { systemRoles: history.systemRoles } : {}),
    settings,
    system,
    messages: history.span,
    tools,
    firstUser: history.firstUser,
  }
}
