import { type Mode, modes, type Profile, profiles } from './conventions.ts'

/** docs/spec/router.md §2.2. Every `x-router-*` request header is consumed, known or not. */
export const ROUTER_HEADER_PREFIX = 'x-router-'

export const requestHeaders = {
  mode: 'x-router-mode',
  key: 'x-router-key',
  agent: 'x-router-agent',
  subagent: 'x-router-subagent',
  session: 'x-router-session',
  task: 'x-router-task',
  language: 'x-router-language',
  maxCostUsd: 'x-router-max-cost-usd',
  lateHeaders: 'x-router-late-headers',
} as const

export const responseHeaders = {
  traceId: 'x-router-trace-id',
  mode: 'x-router-mode',
  servedRung: 'x-router-served-rung',
  servedModel: 'x-router-served-model',
  costUsd: 'x-router-cost-usd',
  /** `failed: a, b` where the answer that was served did not pass these gates; absent where it passed. */
  gates: 'x-router-gates',
} as const

export const modeValues = [...modes, ...profiles] as const
export type ModeValue = Mode | Profile

/** Reads `x-router-mode`; undefined for any other value, which is a 400. */
export const readMode = (value: string): ModeValue | undefined =>
  modeValues.find(known => known === value.trim().toLowerCase())

/** The longest match or feature value that a header may carry. */
export const MAX_FEATURE_LENGTH = 128
