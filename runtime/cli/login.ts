import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { Command, Option, UsageError } from 'clipanion'
import { REFUSED, UNREACHABLE } from '../../shared/cli/exit-code.ts'
import { isTty, styleOf } from '../../shared/cli/style.ts'
import { toTable } from '../../shared/cli/text-table.ts'
import { ClientError, runtimeClient } from '../../shared/client/client.ts'
import { readContexts, writeContexts } from './contexts.ts'
import { addressOf, DEFAULT_URL, explanationOf, isRefusal } from './service-command.ts'

/** `runtime login`: keeps the address and the key of a service, so that no command has to name them. */
export class LoginCommand extends Command {
  static override paths = [['login']]
  static override usage = Command.Usage({
    description: 'Keep the address and the key of a service for the commands that talk to it.',
    details: `
      Asks for the key, or reads it from standard input, and tries it before it is kept. Address and key are kept in
      waybill/contexts.json of XDG_CONFIG_HOME (~/.config), which no other account can read. --url, --key, PLATFORM_URL and
      PLATFORM_API_KEY take precedence.
    `,
    examples: [
      ['The service on this machine', '$0 login'],
      ['Another one, under a name of its own', '$0 login --name staging --url https://agents.example < key.txt'],
    ],
  })

  url = Option.String('--url', DEFAULT_URL, { description: `The address; default ${DEFAULT_URL}.` })
  name = Option.String('--name', { description: 'What it is called; default: the host of the address.' })

  override async execute(): Promise<number> {
    const { stdin, stdout, stderr, env } = this.context
    const name = this.name ?? new URL(addressOf(this.url)).host
    const key = await givenKey(stdin, stderr)
    try {
      await runtimeClient({ url: this.url, key, retries: 0 }).agents.list({ query: { limit: 1 } })
    } catch (error) {
      if (!(error instanceof ClientError)) throw error
      // A key that may not list agents is a key.
      if (error.status !== 403) {
        stderr.write(`Nothing was kept. ${explanationOf(error)}\n`)
        return isRefusal(error) ? REFUSED : UNREACHABLE
      }
    }
    const { contexts } = await readContexts(env)
    await writeContexts(env, { current: name, contexts: { ...contexts, [name]: { url: this.url, key } } })
    stdout.write(`${name} is kept and in use\n`)
    return 0
  }
}

/** `runtime logout`: forgets what `login` kept. */
export class LogoutCommand extends Command {
  static override paths = [['logout']]
  static override usage = Command.Usage({
    description: 'Forget a service that `runtime login` kept.',
    details: 'The key itself stays valid: `runtime keys revoke` ends it.',
  })

  name = Option.String({ name: 'name', required: false })

  override async execute(): Promise<number> {
    const { stdout, env } = this.context
    const { current, contexts } = await readContexts(env)
    const name = this.name ?? current
    if (name === undefined || contexts[name] === undefined) throw new UsageError(unknownContext(name, contexts))
    const { [name]: _, ...rest } = contexts
    await writeContexts(env, { contexts: rest, ...(current !== name && current !== undefined && { current }) })
    stdout.write(`${name} is forgotten\n`)
    return 0
  }
}

/** `runtime contexts list`. */
export class ContextsListCommand extends Command {
  static override paths = [['contexts', 'list']]
  static override usage = Command.Usage({ description: 'List the services that `runtime login` kept.' })

  override async execute(): Promise<number> {
    const { stdout, stderr, env } = this.context
    const { current, contexts } = await readContexts(env)
    const rows = Object.entries(contexts).map(([name, { url }]) => [name, url, name === current ? 'yes' : 'no'])
    if (rows.length === 0) stderr.write('None is kept. `runtime login` keeps one.\n')
    else stdout.write(toTable(['NAME', 'URL', 'IN USE'], rows, styleOf(stdout, env).dim))
    return 0
  }
}

/** `runtime contexts use`. */
export class ContextsUseCommand extends Command {
  static override paths = [['contexts', 'use']]
  static override usage = Command.Usage({ description: 'Switch to another of the services that `runtime login` kept.' })

  name = Option.String({ name: 'name' })

  override async execute(): Promise<number> {
    const { stdout, env } = this.context
    const kept = await readContexts(env)
    if (kept.contexts[this.name] === undefined) throw new UsageError(unknownContext(this.name, kept.contexts))
    await writeContexts(env, { ...kept, current: this.name })
    stdout.write(`${this.name} is in use\n`)
    return 0
  }
}

function unknownContext(name: string | undefined, contexts: Readonly<Record<string, unknown>>): string {
  const known = Object.keys(contexts)
  if (known.length === 0) return 'No service is kept: `runtime login` keeps one.'
  return `${name === undefined ? 'None is in use' : `There is no "${name}"`}: kept are ${known.join(', ')}.`
}

/** Typed by a person, without an echo, or given on standard input. */
async function givenKey(stdin: Readable, stderr: NodeJS.WritableStream): Promise<string> {
  const given = isTty(stdin) ? await typed(stdin, stderr) : await text(stdin)
  const key = given.trim()
  if (key === '') throw new UsageError('No key was given. `runtime keys create --name laptop` makes one.')
  return key
}

function typed(stdin: Readable, stderr: NodeJS.WritableStream): Promise<string> {
  // Without an output nothing of what is typed is shown; the terminal has to be in that state before the key is asked for.
  const lines = createInterface({ input: stdin, terminal: true, historySize: 0 })
  stderr.write('API key: ')
  return new Promise(resolve => {
    lines.once('line', resolve)
    lines.once('line', () => lines.close())
    lines.once('close', () => {
      stderr.write('\n')
      resolve('')
    })
  })
}
