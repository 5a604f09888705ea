import { Command, Option, UsageError } from 'clipanion'
import { isKnownFault } from '../../shared/host/known-fault.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { ClientError, type ServiceClient, serviceClient } from './service-client.ts'

const DEFAULT_URL = 'http://127.0.0.1:8080'

/** For the help of each command that talks to a service. */
export const WHERE =
  'Talks to a running runtime over HTTP; where it is and who asks may also stand in PLATFORM_URL and PLATFORM_API_KEY.'

/** A command that talks to a running runtime; what the service refuses is one line and exit code 1. */
export abstract class ServiceCommand extends Command {
  url = Option.String('--url', { description: `The address of the runtime; default PLATFORM_URL or ${DEFAULT_URL}.` })
  key = Option.String('--key', { description: 'An API key; default PLATFORM_API_KEY.' })

  protected abstract act(client: ServiceClient): Promise<number>

  override async execute(): Promise<number> {
    const { stderr, env } = this.context
    const key = this.key ?? env.PLATFORM_API_KEY ?? env.PLATFORM_BOOTSTRAP_KEY
    if (key === undefined || key === '') {
      stderr.write('a key is needed: give --key or set PLATFORM_API_KEY (`runtime keys create` makes one)\n')
      return 1
    }
    try {
      return await this.act(serviceClient({ url: this.url ?? env.PLATFORM_URL ?? DEFAULT_URL, key }))
    } catch (error) {
      if (!(error instanceof ClientError) && !isKnownFault(error)) throw error
      stderr.write(error.message + '\n')
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
