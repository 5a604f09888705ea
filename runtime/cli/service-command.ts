import { Command, Option, UsageError } from 'clipanion'
import { ClientError, type RuntimeClient, runtimeClient } from '../../shared/client/client.ts'
import { isKnownFault } from '../../shared/host/known-fault.ts'
import { readJson } from '../../shared/json/read-json.ts'

const DEFAULT_URL = 'http://127.0.0.1:8080'

/** For the help of each command that talks to a service. */
export const WHERE =
  'Talks to a running runtime over HTTP; where it is and who asks may also stand in PLATFORM_URL and PLATFORM_API_KEY.'

/** Rows of one page of a list. */
export const PAGE = 200

/** The lists that together have every run of the tenant. */
export const EVERY_RUN = [{ limit: PAGE }, { limit: PAGE, trigger: 'session' }] as const

/** Whether the service answered, and said no. */
export const isRefusal = (error: unknown): boolean => error instanceof ClientError && error.status !== undefined

/** What the person at the terminal reads of an error. */
export function explanationOf(error: Error): string {
  const isAbsent = error instanceof ClientError && error.status === undefined
  return isAbsent ? `${error.message}: is the runtime running there? Say where with --url.` : error.message
}

/** A command that talks to a running runtime; what the service refuses is one line and exit code 1. */
export abstract class ServiceCommand extends Command {
  url = Option.String('--url', { description: `The address of the runtime; default PLATFORM_URL or ${DEFAULT_URL}.` })
  key = Option.String('--key', { description: 'An API key; default PLATFORM_API_KEY.' })

  protected abstract act(client: RuntimeClient): Promise<number>

  override async execute(): Promise<number> {
    const { stderr, env } = this.context
    const key = this.key ?? env.PLATFORM_API_KEY ?? env.PLATFORM_BOOTSTRAP_KEY
    if (key === undefined || key === '') {
      stderr.write('a key is needed: give --key or set PLATFORM_API_KEY (`runtime keys create` makes one)\n')
      return 1
    }
    try {
      // The person at the terminal reads at once what is wrong, and decides whether to try again.
      return await this.act(runtimeClient({ url: this.url ?? env.PLATFORM_URL ?? DEFAULT_URL, key, retries: 0 }))
    } catch (error) {
      if (!(error instanceof ClientError) && !isKnownFault(error)) throw error
      stderr.write(explanationOf(error) + '\n')
      return 1
    }
  }

  protected say(line: string): void {
    this.context.stdout.write(line + '\n')
  }

  /** JSON that was given as an option, as an object. */
  protected readObject(name: string, text: string): Record<string, unknown> {
    let value: unknown
    try {
      value = readJson(text)
    } catch {
      throw new UsageError(`${name}: expected JSON such as '{"prompt":"hello"}'`)
    }
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
    throw new UsageError(`${name}: expected a JSON object`)
  }
}
