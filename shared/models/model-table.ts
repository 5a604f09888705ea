import type { DialectName } from '../dialects/candidate.ts'
import { MISTRAL, SIGNED_CALLS, THOUGHT_TURNS } from '../dialects/chat/answer.ts'

/** Where the facts below were last compared with what the makers document; stands beside the price table in capabilities. */
export const MODEL_TABLE_VERSION = 'waybill-models@2026-11-26'

/** From the least to the most. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof efforts)[number]

/** The last is off as well, but for a few words between calls of tools. */
export const thinkingForms = ['adaptive', 'enabled', 'disabled', 'between_tools'] as const
export type ThinkingForm = (typeof thinkingForms)[number]

/** `one`: temperature or top_p, `default`: neither changed, `without_effort`: neither changed while the model reasons. */
export const samplings = ['any', 'one', 'default', 'without_effort'] as const
export type Sampling = (typeof samplings)[number]

export const limitNames = ['max_tokens', 'max_completion_tokens'] as const

/** What a model takes in a request. A member that is absent is not known, and changes nothing. */
export interface Accepted {
  /** Values of `thinking.type`. */
  readonly thinking?: readonly ThinkingForm[]
  /** Values of the effort; none where it has no such setting. */
  readonly efforts?: readonly Effort[]
  /** Those that it takes while its thinking is off, where they are fewer. */
  readonly effortsWithoutThinking?: readonly Effort[]
  readonly sampling?: Sampling
  readonly contextManagement?: boolean
  readonly structuredOutput?: boolean
  readonly verbosity?: boolean
  /** Whether the system may speak among the turns. */
  readonly systemTurns?: boolean
  /** Whether a cache entry may live for an hour. */
  readonly longCache?: boolean
  readonly maxOutput?: number
  /** The one name that it knows for the limit of the output. */
  readonly limitName?: (typeof limitNames)[number]
  /** Ids of calls are nine letters and digits, and any other is refused. */
  readonly shortCallIds?: boolean
  /** Calls of the history without a signature are refused. */
  readonly signedCalls?: boolean
  /** Turns of the assistant without what it thought are refused. */
  readonly thoughtTurns?: boolean
  /** Whether the user may speak right after the result of a tool. */
  readonly userAfterTool?: boolean
  /** Whether it knows the role `developer`; every host knows `system`. */
  readonly developer?: boolean
}

interface Row {
  readonly models: RegExp
  readonly accepted: Accepted
}

const NO_EFFORT = { efforts: [] } as const
const BUDGETED = { thinking: ['enabled', 'disabled'] } as const
const UP_TO_HIGH = ['low', 'medium', 'high'] as const
const EVERY_EFFORT = ['low', 'medium', 'high', 'xhigh', 'max'] as const
const BEFORE_FOUR = { ...NO_EFFORT, contextManagement: false, structuredOutput: false, systemTurns: false } as const
const FROM_FOUR = { ...NO_EFFORT, ...BUDGETED, contextManagement: true, systemTurns: false } as const
const ADAPTIVE_ONLY = { efforts: EVERY_EFFORT, sampling: 'default', structuredOutput: true } as const
const FROM_FIVE = { ...ADAPTIVE_ONLY, maxOutput: 128_000 } as const
const HIGH_WITHOUT_THINKING = { ...FROM_FIVE, effortsWithoutThinking: UP_TO_HIGH } as const

/** Of the messages dialect; names as `modelIdentity` has them, with dashes for dots. */
const CLAUDE: readonly Row[] = [
  { models: /^claude-3-(?:opus|sonnet|haiku)$/, accepted: { ...BEFORE_FOUR, thinking: ['disabled'], maxOutput: 4096 } },
  { models: /^claude-3-5-(?:sonnet|haiku)$/, accepted: { ...BEFORE_FOUR, thinking: ['disabled'], maxOutput: 8192 } },
  { models: /^claude-3-7-sonnet$/, accepted: { ...BEFORE_FOUR, ...BUDGETED } },
  {
    models: /^claude-opus-4(?:-0)?$/,
    accepted: { ...FROM_FOUR, structuredOutput: false, maxOutput: 32_000 },
  },
  {
    models: /^claude-sonnet-4(?:-0)?$/,
    accepted: { ...FROM_FOUR, structuredOutput: false, maxOutput: 64_000 },
  },
  {
    models: /^claude-opus-4-1$/,
    accepted: { ...FROM_FOUR, sampling: 'one', structuredOutput: true, maxOutput: 32_000 },
  },
  {
    models: /^claude-(?:sonnet|haiku)-4-5$/,
    accepted: { ...FROM_FOUR, sampling: 'one', structuredOutput: true, maxOutput: 64_000 },
  },
  {
    models: /^claude-opus-4-5$/,
    accepted: { ...FROM_FOUR, efforts: UP_TO_HIGH, sampling: 'one', structuredOutput: true, maxOutput: 64_000 },
  },
  {
    models: /^claude-(?:opus|sonnet)-4-6$/,
    accepted: {
      efforts: ['low', 'medium', 'high', 'max'],
      sampling: 'one',
      structuredOutput: true,
      systemTurns: false,
      maxOutput: 128_000,
    },
  },
  {
    models: /^claude-opus-4-7$/,
    accepted: { ...ADAPTIVE_ONLY, thinking: ['adaptive', 'disabled'], maxOutput: 128_000, systemTurns: false },
  },
  {
    models: /^claude-opus-4-8$/,
    accepted: { ...ADAPTIVE_ONLY, thinking: ['adaptive', 'disabled'], maxOutput: 128_000, systemTurns: true },
  },
  { models: /^claude-sonnet-5$/, accepted: { ...FROM_FIVE, thinking: ['adaptive', 'disabled'], systemTurns: false } },
  { models: /^claude-haiku-5$/, accepted: { ...ADAPTIVE_ONLY, thinking: ['adaptive', 'disabled'] } },
  {
    models: /^claude-(?:opus-5|haiku-5-5)$/,
    accepted: { ...HIGH_WITHOUT_THINKING, thinking: ['adaptive', 'disabled'] },
  },
  { models: /^claude-sonnet-5-5$/, accepted: { ...HIGH_WITHOUT_THINKING, thinking: ['adaptive', 'between_tools'] } },
  { models: /^claude-(?:(?:fable|mythos)-5(?:-[12])?|opus-5-5)$/, accepted: { ...FROM_FIVE, thinking: ['adaptive'] } },
  { models: /^claude-mythos-preview$/, accepted: { ...ADAPTIVE_ONLY, thinking: ['adaptive'] } },
]

const PLAIN = { ...NO_EFFORT, verbosity: false } as const
const REASONING = { sampling: 'default', limitName: 'max_completion_tokens' } as const
const O_SERIES = { ...REASONING, verbosity: false, maxOutput: 100_000 } as const
const FIVE = { ...REASONING, maxOutput: 128_000 } as const
const FROM_FIVE_ONE = { ...FIVE, sampling: 'without_effort' } as const

/** Of the chat and the responses dialect. */
const OPENAI: readonly Row[] = [
  { models: /^gpt-(?:3\.5|4)-turbo$/, accepted: { ...PLAIN, maxOutput: 4096 } },
  { models: /^(?:chat)?gpt-4o(?:-mini)?$/, accepted: { ...PLAIN, maxOutput: 16_384 } },
  { models: /^gpt-4\.1(?:-mini|-nano)?$/, accepted: { ...PLAIN, maxOutput: 32_768 } },
  { models: /^o(?:1|3|3-mini|4-mini)$/, accepted: { ...O_SERIES, efforts: UP_TO_HIGH } },
  { models: /^gpt-5(?:-mini|-nano)?$/, accepted: { ...FIVE, efforts: ['minimal', 'low', 'medium', 'high'] } },
  { models: /^gpt-5(?:\.1)?-codex(?:-mini)?$/, accepted: { ...FIVE, efforts: UP_TO_HIGH } },
  {
    models: /^gpt-5\.(?:1-codex-max|2-codex|3-codex)$/,
    accepted: { ...FIVE, efforts: ['low', 'medium', 'high', 'xhigh'] },
  },
  { models: /^gpt-5-pro$/, accepted: { ...FIVE, efforts: ['high'] } },
  { models: /^gpt-5\.1$/, accepted: { ...FROM_FIVE_ONE, efforts: ['none', 'low', 'medium', 'high'] } },
  {
    models: /^gpt-5\.[24](?:-mini)?$/,
    accepted: { ...FROM_FIVE_ONE, efforts: ['none', 'low', 'medium', 'high', 'xhigh'] },
  },
  { models: MISTRAL, accepted: { shortCallIds: true, userAfterTool: false, limitName: 'max_tokens' } },
  { models: SIGNED_CALLS, accepted: { signedCalls: true } },
  { models: THOUGHT_TURNS, accepted: { thoughtTurns: true } },
  { models: /^grok-4(?:-fast(?:-non)?(?:-reasoning)?)?$/, accepted: NO_EFFORT },
]

const OF_OPENAI = /^(?:chatgpt|gpt-\d|o\d|codex)/

/** What the table says of a model by its identity; undefined for one that it does not know. */
export function acceptedBy(identity: string, dialect: DialectName): Accepted | undefined {
  const isMessages = dialect === 'messages'
  const name = isMessages ? identity.replaceAll('.', '-') : identity
  const found = (isMessages ? CLAUDE : OPENAI).find(({ models }) => models.test(name))?.accepted
  // Models of other makers know no such role, and their servers refuse a request with it.
  return dialect === 'chat' && !OF_OPENAI.test(name) ? { ...found, developer: false } : found
}

/** Thinking budgets for the levels of effort that turn it on. */
const BUDGETS: Readonly<Partial<Record<Effort, number>>> = {
  low: 1024,
  medium: 4096,
  high: 16_384,
  xhigh: 32_768,
  max: 32_768,
}

export const LEAST_BUDGET = 1024

/** The budget for an effort within a limit of the answer, half of which stays for what is said; undefined where no thinking fits. */
export function budgetFor(effort: Effort, maxTokens: number): number | undefined {
  const budget = BUDGETS[effort]
  if (budget === undefined) return undefined
  const fitting = Math.min(budget, Math.floor(maxTokens / 2))
  return fitting < LEAST_BUDGET ? undefined : fitting
}

/** The effort that a budget stands for. */
export function effortFor(budget: number): 'low' | 'medium' | 'high' {
  return budget <= 2048 ? 'low' : budget <= 8192 ? 'medium' : 'high'
}
