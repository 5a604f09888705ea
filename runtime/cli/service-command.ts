import { Command, Option, UsageError } from 'clipanion'
import { REFUSED, UNREACHABLE } from '../../shared/cli/exit-code.ts'
import { ClientError, type RuntimeClient, runtimeClient } from '../../shared/client/client.ts'
import { nonFiniteAt } from '../../shared/json/finite.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { responseHeaders } from '../../shared/wire/router/headers.ts'
import { currentContext } from './contexts.ts'

export const DEFAULT_URL = 'http://127.0.0.1:8080'

/** For the help of each command that talks to a service. */
export const WHERE =
  'Talks to a running runtime over HTTP: --url and --key, else PLATFORM_URL and PLATFORM_API_KEY, else what runtime login kept.'

/** Rows of one page of a list. */
export const PAGE = 200

/** The lists that together have every run of the tenant. */
export const EVERY_RUN = [{ limit: PAGE }, { limit: PAGE, trigger: 'session' }] as const

/** Whether the service answered, and said no. */
export const isRefusal = (error: unknown): boolean => error instanceof ClientError && error.status !== undefined

/** What the person at the terminal reads of an error. */
export function explanationOf(error: Error): string {
  if (!(error instanceof ClientError)) return error.message
  if (error.headers?.has(responseHeaders.traceId)) {
    return `That is a router. The runtime is at another address, by default ${DEFAULT_URL}: say which with --url.`
  }
  if (error.status !== undefined) return error.message
  const fault = certificateFault(error)
  return fault === undefined
    ? `${error.message}: is the runtime running there? Say where with --url.`
    : `${error.message}, since its certificate is not trusted (${fault}): it has to be valid now, for that address, and of an authority that Node or NODE_EXTRA_CA_CERTS trusts.`
}

/** The word of OpenSSL, or of Node, for a certificate that proves nothing. */
function certificateFault(error: Error): string | undefined {
  for (let at: unknown = error, depth = 0; depth < 8 && at instanceof Error; at = at.cause, depth++) {
    const code = 'code' in at ? String(at.code) : ''
    if (/^(?:CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_)/.test(code)) return code
  }
  return undefined
}

/** JSON that was given on the command line. */
export function givenJson(name: string, text: string, expected: string): unknown {
  let value: unknown
  try {
    value = readJson(text)
  } catch (error) {
    throw new UsageError(`${name}: expected ${expected}; ${(error as Error).message}`)
  }
  requireFinite(name, value)
  return value
}

/** What JSON would make null on its way to the service: 1e400, or the .inf and .nan of YAML and TOML. */
export function requireFinite(name: string, value: unknown): void {
  const at = nonFiniteAt(value)
  if (at !== undefined) throw new UsageError(`${name}: ${at === '' ? 'it' : at} is no number that JSON can carry`)
}

/** The `--input` of a run, which is an object. */
export function givenInput(text: string): Record<string, unknown> {
  const value = givenJson('--input', text, `JSON such as '{"prompt":"hello"}'`)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new UsageError('--input: expected a JSON object')
}

/** An address that a person gave, which has to say how it is spoken to. */
export function addressOf(given: string): string {
  if (/^https?:\/\//.test(given) && URL.canParse(given)) return given
  const meant = URL.canParse(`http://${given}`) ? `: did you mean http://${given}?` : '.'
  throw new UsageError(`An address begins with http:// or https://, and "${given}" does not${meant}`)
}

/** A command that talks to a running runtime; what the service refuses is one line and exit code 1. */
export abstract class ServiceCommand extends Command {
  url = Option.String('--url', { description: `The address of the runtime; default ${DEFAULT_URL}.` })
  key = Option.String('--key', { description: 'An API key.' })

  protected abstract act(client: RuntimeClient): Promise<number>

  override async execute(): Promise<number> {
    const { stderr, env } = this.context
    const kept = await currentContext(env)
    const key = this.key || env.PLATFORM_API_KEY || env.PLATFORM_BOOTSTRAP_KEY || kept?.key
    if (key === undefined) {
      throw new UsageError(
        'A key is needed: give --key, set PLATFORM_API_KEY, or keep one with `runtime login`. `runtime keys create` makes one.',
      )
    }
    const url = addressOf(this.url || env.PLATFORM_URL || kept?.url || DEFAULT_URL)
    try {
      // The person at the terminal reads at once what is wrong, and decides whether to try again.
      return await this.act(runtimeClient({ url, key, retries: 0 }))
    } catch (error) {
      if (!(error instanceof ClientError)) throw error
      stderr.write(explanationOf(error) + '\n')
      return isRefusal(error) ? REFUSED : UNREACHABLE
    }
  }

  protected say(line: string): void {
    this.context.stdout.write(line + '\n')
  }
}
