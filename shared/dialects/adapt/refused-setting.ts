import { tryParsePlain } from '../json-text.ts'
import { asArray, asObject, asString, isObject, type Json, type JsonObject } from '../json-value.ts'
import { outOfList } from '../upstream-error.ts'
import { ADVISORY, refusedMember } from './adapt-request.ts'

/** Statuses by which a provider says that it does not know a setting. */
const STATUSES: ReadonlySet<number> = new Set([400, 422])

/** No error of a provider has to be longer to name a setting. */
const MOST_TEXT = 2000
const MOST_BODY = 64 * 1024

/** How providers name a setting, where that is not its path in the request. */
const SPELLINGS: Readonly<Record<string, string>> = {
  effort: 'output_config.effort',
  'output_config.effort': 'output_config.effort',
  'reasoning.effort': 'reasoning.effort',
  'reasoning.summary': 'reasoning.summary',
  'text.verbosity': 'text.verbosity',
  reasoningEffort: 'reasoning_effort',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  'stream_options.include_usage': 'stream_options',
  include_usage: 'stream_options',
  max_tokens: 'max_tokens',
  max_completion_tokens: 'max_completion_tokens',
}

export interface RefusedSetting {
  readonly setting: string
  /** The provider refused the value that it has, and may take another one. */
  readonly ofValue: boolean
}

interface Recogniser {
  readonly text: RegExp
  /** The setting that the sentence is about; without it the group names it. */
  readonly setting?: string
  readonly ofValue?: true
}

/** A name in quotes, backticks or none; long enough for any setting, and too short to make matching slow. */
const NAME = '[`\'"]?([A-Za-z_][A-Za-z0-9_.[\\]]{0,80})[`\'"]?'

/** Sentences of Anthropic, Bedrock, OpenAI, Azure, Groq, Mistral, xAI, Ollama, vLLM and servers that copy them. */
const RECOGNISERS: readonly Recogniser[] = [
  { text: /adaptive thinking is not supported/i, setting: 'thinking', ofValue: true },
  { text: /does not support (?:adaptive |extended )?thinking/i, setting: 'thinking' },
  {
    text: /thinking\.(?:type\.)?(?:enabled|adaptive|disabled|between_tools)["`']? is not supported/i,
    setting: 'thinking',
    ofValue: true,
  },
  { text: /^thinking: Input tag /, setting: 'thinking', ofValue: true },
  { text: /^context_management\.edits\./, setting: 'context_management' },
  { text: /does not support effort level/i, setting: 'output_config.effort', ofValue: true },
  { text: /does not support (?:the )?effort/i, setting: 'output_config.effort' },
  { text: /`?temperature`? and `?top_p`? cannot both be specified/, setting: 'top_p' },
  { text: /encrypted content is not supported/i, setting: 'include' },
  { text: /for the `?anthropic-beta`? header|invalid beta flag/i, setting: 'anthropic-beta' },
  { text: /cache_control\.(?:ephemeral\.)?ttl: Extra inputs/, setting: 'cache_control.ttl' },
  { text: new RegExp(`^${NAME}: Extra inputs are not permitted`) },
  { text: new RegExp(`Extra inputs are not permitted, field: ${NAME}`) },
  { text: new RegExp(`extraneous key \\[${NAME}\\] is not permitted`) },
  { text: new RegExp(`unknown (?:field|name|parameter):? ${NAME}`, 'i') },
  { text: new RegExp(`unrecognized request arguments? supplied: ${NAME}`, 'i') },
  { text: new RegExp(`unsupported parameter:? ${NAME}`, 'i') },
  { text: new RegExp(`unsupported value:? ${NAME}`, 'i'), ofValue: true },
  { text: new RegExp(`property ${NAME} is unsupported`) },
  { text: new RegExp(`does not support (?:the )?parameter ${NAME}`) },
  { text: new RegExp(`^${NAME} (?:is not supported|is deprecated)`) },
  { text: new RegExp(`^${NAME} must be one of`), ofValue: true },
  { text: new RegExp(`'extra_forbidden', 'loc': \\('body', ${NAME}`) },
]

/**
 * The advisory setting that a provider refused, by the word of its error; undefined for any other refusal. What the error says is foreign
 * text: it is compared with fixed sentences and names, and nothing of it goes further.
 */
export function refusedSetting(status: number, body: Uint8Array): RefusedSetting | undefined {
  if (!STATUSES.has(status) || body.length > MOST_BODY) return undefined
  const said = outOfList(tryParsePlain(body))
  if (!isObject(said)) return undefined
  const error = isObject(said.error) ? said.error : said
  return (
    byParameter(error) ??
    byPlace(said) ??
    bySentence(textOf(said.error) ?? textOf(error.message) ?? textOf(said.message))
  )
}

const textOf = (value: Json | undefined): string | undefined => {
  const text = asString(value)
  return text === null ? undefined : text.slice(0, MOST_TEXT)
}

const CODES: ReadonlySet<string> = new Set(['unsupported_parameter', 'unsupported_value', 'unknown_parameter'])

/** OpenAI names the parameter beside its sentence. */
function byParameter({ param, code }: JsonObject): RefusedSetting | undefined {
  const setting = CODES.has(String(code)) ? knownSetting(asString(param)) : undefined
  return setting === undefined ? undefined : { setting, ofValue: code === 'unsupported_value' }
}

/** Mistral, vLLM and what else reads a body with pydantic say where the member stands. */
function byPlace(said: JsonObject): RefusedSetting | undefined {
  const details = [said.detail, asObject(said.message).detail].flatMap(asArray).map(asObject)
  for (const { type, loc } of details) {
    const place = asArray(loc)
    const path = place.slice(1).map(one => asString(one) ?? '')
    const found = type === 'extra_forbidden' ? knownSetting(path.join('.')) : undefined
    if (found !== undefined) return { setting: found, ofValue: false }
  }
  return undefined
}

function bySentence(text: string | undefined): RefusedSetting | undefined {
  if (text === undefined) return undefined
  for (const { text: sentence, setting, ofValue = false } of RECOGNISERS) {
    const match = sentence.exec(text)
    const found = match && (setting ?? knownSetting(match[1] ?? null))
    if (found) return { setting: found, ofValue }
  }
  return undefined
}

function knownSetting(said: string | null): string | undefined {
  const name = said?.replace(/\.$/, '')
  if (name === undefined) return undefined
  if (Object.hasOwn(SPELLINGS, name)) return SPELLINGS[name]
  return Object.hasOwn(ADVISORY, name) ? name : refusedMember(name)
}
