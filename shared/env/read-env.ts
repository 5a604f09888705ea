import { z } from 'zod'
import { type LogFilter, parseLogFilter } from '../log/log.ts'
import { nearest } from '../wire/nearest.ts'

/** One line for each variable that does not read, with what was expected; secrets are never repeated. */
export class EnvError extends Error {
  override name = 'EnvError'
}

/**
 * Parses a process environment at the door. An empty value counts as unset, as in a shell script that exports a
 * variable it has no value for.
 */
export function readEnv<T extends z.ZodObject>(schema: T, env: Record<string, string | undefined>): z.output<T> {
  const given: Record<string, string> = {}
  for (const name of Object.keys(schema.shape)) {
    const value = env[name]
    if (value !== undefined && value !== '') given[name] = value
  }
  const result = schema.safeParse(given)
  if (result.success) return result.data
  const lines = result.error.issues.map(issue => {
    const name = String(issue.path[0] ?? 'environment')
    const got =
      SECRET.test(name) || given[name] === undefined ? '' : `, got "${withoutLogin(given[name]).slice(0, 100)}"`
    return `${name}: ${issue.message}${got}`
  })
  throw new EnvError(lines.join('\n'))
}

const SECRET = /(KEY|KEYS|SECRET|TOKEN|SALT|PASSWORD|HEADERS)$/

/** An address may have a name and a password before its host. */
const withoutLogin = (text: string) => text.replace(/(:\/\/)[^/?#@]*@/, '$1…@')

/** What a thread of its own is given of the environment: how it goes out, and nothing else. */
export function networkVars(vars: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(vars).flatMap(([name, value]) =>
      value !== undefined && /^(?:https?|no)_proxy$/i.test(name) ? [[name, value]] : [],
    ),
  )
}

/** Whether a proxy is named for what leaves this machine; what reads the names is loaded only then. */
export function namesProxy(vars: Readonly<Record<string, string | undefined>>): boolean {
  return Boolean(vars.https_proxy || vars.HTTPS_PROXY || vars.http_proxy || vars.HTTP_PROXY)
}

/** A comma list whose parts are each read alone; `expected` says in words what a part is. */
export const listOf = <T>(read: (part: string) => T | undefined, expected: string) =>
  z.string().transform((text, ctx): T[] =>
    text.split(',').flatMap(given => {
      const part = given.trim()
      if (part === '') return []
      const value = read(part)
      if (value !== undefined) return [value]
      ctx.addIssue({ code: 'custom', message: `expected ${expected}; "${part}" is none` })
      return []
    }),
  )

/** A log level or filter list from the environment. */
export const logFilter = z.string().transform((text, ctx): LogFilter => {
  const filter = parseLogFilter(text)
  if (filter) return filter
  ctx.addIssue({ code: 'custom', message: 'expected error, warn, info, debug, trace, off, or a list target=level' })
  return z.NEVER
})

/** How a process writes its log; unset, by whether a person reads it. */
export const logFormat = z.enum(['json', 'text'])

/** The one name of a proxy that other programs read and these do not. */
export function unreadProxy(vars: Readonly<Record<string, string | undefined>>): string[] {
  const name = ['all_proxy', 'ALL_PROXY'].find(one => vars[one])
  if (name === undefined || namesProxy(vars)) return []
  return [
    `${name} is set, and nothing reads it: calls go straight. Name an HTTP proxy in HTTPS_PROXY and HTTP_PROXY; SOCKS is not supported`,
  ]
}

/** Variables that look like settings of a service and that nothing reads: most often a name that was mistyped. */
export function unreadNames(
  vars: Readonly<Record<string, string | undefined>>,
  { prefix, known }: { prefix: string; known: ReadonlySet<string> },
): string[] {
  const own = Object.keys(vars)
    .filter(name => name.startsWith(prefix) && vars[name] && !known.has(name))
    .map(name => {
      const near = nearest(name, known)
      return `${name} is set, and nothing reads it${near === undefined ? '' : `: did you mean ${near}?`}`
    })
  return [...own, ...unreadProxy(vars)]
}

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/

/** `30`, `30s`, `500ms`, `5m` or `24h`, as milliseconds; a plain number means seconds. */
export const duration = z.string().transform((text, ctx) => {
  const ms = parseDuration(text)
  if (ms !== undefined) return ms
  ctx.addIssue({ code: 'custom', message: 'expected a duration such as 30s, 500ms, 5m or 24h' })
  return z.NEVER
})

/** What a timer waits for: one of more than 24.8 days would overflow, and ring at once. */
export const timeout = duration.refine(ms => ms <= 576 * UNIT_MS.h, 'expected at most 576h')

export const interval = timeout.refine(ms => ms > 0, 'expected a duration above 0')

function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text.trim())
  if (!match) return undefined
  const unit = (match[2] ?? 's') as keyof typeof UNIT_MS
  return Math.round(Number(match[1]) * UNIT_MS[unit])
}
