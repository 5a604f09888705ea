import {
  atArray,
  atObject,
  atString,
  eachItem,
  eachMember,
  keyTable,
  readLimit,
  readNumber,
  readSpan,
  readString,
  readTrue,
  wholeObject,
} from '../json-members.ts'
import type { Cursor, Span } from '../json-scan.ts'
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
  'reasoning_effort',
  'verbosity',
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'response_format',
  'service_tier',
  'store',
  'metadata',
  'prompt_cache_key',
  'prompt_cache_retention',
  'safety_identifier',
  'user',
  'seed',
  'logprobs',
  'parallel_tool_calls',
  'thinking',
] as const
const TOP = keyTable([
  'model',
  'stream',
  'stream_options',
  'n',
  'max_tokens',
  'max_completion_tokens',
  'messages',
  'system',
  'tools',
  'functions',
  ...SETTINGS,
])
const STREAM_OPTIONS = keyTable(['include_usage'])
const KINDS = {
  types: keyTable(['image_url', 'input_audio', 'file']),
  images: new Set(['image_url']),
  media: new Set(['image_url', 'input_audio', 'file']),
  document: 'file',
  thinking: new Set<string>(),
  callIds: true,
} as const

/** Facts of a chat-completions request, from one scan of its bytes that also proves the body is JSON. */
export function scanChat(body: Uint8Array): ScanResult {
  return scanned(() => read(body))
}

function countItems(c: Cursor): number {
  if (atArray(c)) return eachItem(c, () => undefined)
  readSpan(c)
  return 0
}

function readIncludeUsage(c: Cursor): boolean {
  let wanted = false
  if (atObject(c))
    eachMember(c, STREAM_OPTIONS, key => {
      if (key === 'include_usage') wanted = readTrue(c)
    })
  return wanted
}

function read(body: Uint8Array): RequestFacts {
  let model: ModelLiteral | null = null
  const settings: Setting[] = []
  let stream = false
  let includeUsage = false
  let n: number | undefined
  let maxTokens: number | undefined
  let system: Span | undefined
  let tools: Span | undefined
  let toolCount = 0
  let functionCount = 0
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
        case 'stream_options':
          includeUsage = readIncludeUsage(c)
          if (c.at === start) readSpan(c)
          noteSetting(c, settings, key, from, start)
          break
        case 'n':
          n = Math.max(n ?? 0, atString(c) ? Number.POSITIVE_INFINITY : (readNumber(c) ?? 1))
          break
        case 'max_tokens':
        case 'max_completion_tokens':
          maxTokens = looserLimit(maxTokens, readLimit(c))
          if (c.at === start) readSpan(c)
          noteSetting(c, settings, key, from, start)
          break
        case 'system':
          system = readSpan(c)
          break
        case 'tools':
          toolCount = countItems(c)
          tools = { start, end: c.at }
          break
        case 'functions':
          functionCount = countItems(c)
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
    includeUsage,
    n: n ?? 1,
    maxTokens: limitOf(maxTokens),
    toolCount: toolCount + functionCount,
    imageCount: history.images,
    mediaCount: history.media,
    mediaBytes: history.mediaBytes,
    documentBytes: history.documentBytes,
    messageCount: history.count,
    hasThinkingHistory: history.thinking,
    ...(history.callIds.length > 0 && { callIds: history.callIds }),
    ...(history.developerRoles.length > 0 && { developerRoles: history.developerRoles }),
    ...(history.afterTools.length > 0 && { afterTools: history.afterTools }),
    settings,
    system,
    messages: history.span,
    tools,
    firstUser: history.firstUser,
  }
}
