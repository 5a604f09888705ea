import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { UsageError } from 'clipanion'
import { isTty } from '../../shared/cli/style.ts'
import { listVerb, membersText, timeText, verb, wholeNumber } from './verb.ts'

export const SecretsListCommand = listVerb('secrets list', {
  about: 'List the names of the secrets; their values are never shown.',
  rows: client => client.settings.secrets(),
  columns: [
    ['SECRET', one => one.name],
    ['UPDATED', one => timeText(one.updatedAt)],
    ['HOSTS', one => one.hosts?.map(it => [it.host, ...(it.ports ?? [])].join(':')).join(', ') ?? 'any'],
    ['TOOLS', one => one.tools?.join(', ') ?? 'any'],
  ],
  empty: 'No secret yet. `runtime secrets set <name>` keeps one.',
})

export const SecretsSetCommand = verb('secrets set', {
  about: 'Store a secret, read from standard input so that it stays out of the shell history.',
  examples: [['From another program', 'secrets set github-token < token.txt']],
  words: ['name'],
  options: { hosts: 'The only hosts that it may go to, with commas between them.' },
  act: async (client, { name, hosts }, { stdin }) =>
    client.settings.saveSecret({
      params: { name },
      body: { value: await fromStdin(stdin), ...(hosts !== undefined && { hosts: hostsOf(hosts) }) },
    }),
  show: ({ name }) => `${name} kept`,
})

export const SecretsDeleteCommand = verb('secrets delete', {
  about: 'Delete a secret; a run that needs it fails with secret_missing.',
  words: ['name'],
  act: (client, { name }) => client.settings.removeSecret({ params: { name } }),
  show: (_, { name }) => `${name} deleted`,
})

export const ProvidersListCommand = listVerb('providers list', {
  about: 'List the model providers that have a key.',
  rows: client => client.settings.providers(),
  columns: [
    ['PROVIDER', one => one.provider],
    ['KEY FROM', one => one.source],
    ['BASE URL', one => one.baseUrl],
  ],
  empty: 'No provider yet. `runtime providers set anthropic < key.txt` keeps a key; the model demo/echo needs none.',
})

export const ProvidersSetCommand = verb('providers set', {
  about: 'Store the key of a model provider, read from standard input.',
  examples: [['The key of Anthropic', 'providers set anthropic < key.txt']],
  words: ['provider'],
  options: { baseUrl: 'Another address than that of the vendor.' },
  act: async (client, { provider, baseUrl }, { stdin }) =>
    client.settings.saveProvider({ body: { provider, apiKey: await fromStdin(stdin), baseUrl } }),
  show: ({ provider }) => `${provider} kept; \`runtime providers test ${provider}\` tries it`,
})

export const ProvidersTestCommand = verb('providers test', {
  about: 'Call a model provider to see whether its key works.',
  words: ['provider'],
  act: (client, { provider }) => client.settings.testProvider({ params: { provider } }),
  failed: ({ success }) => !success,
  show: ({ success, ...more }) => membersText({ result: success ? 'ok' : 'failed', ...more }),
})

export const ProvidersDeleteCommand = verb('providers delete', {
  about: 'Delete the key of a model provider.',
  words: ['provider'],
  act: (client, { provider }) => client.settings.removeProvider({ params: { provider } }),
  show: (_, { provider }) => `${provider} deleted`,
})

function hostsOf(given: string) {
  return given.split(',').map(one => {
    const [host = '', port] = one.trim().split(':')
    const ports = wholeNumber('--hosts', port, { least: 1 })
    return { host, ...(ports !== undefined && { ports: [ports] }) }
  })
}

/** A secret has no place among the arguments, which every account of the machine can read. */
async function fromStdin(stdin: Readable): Promise<string> {
  if (isTty(stdin))
    throw new UsageError(
      'Give the value on standard input, as in `… < file`; an argument would stay in the history of the shell.',
    )
  const value = (await text(stdin)).replace(/\r?\n$/, '')
  if (value === '') throw new UsageError('Standard input was empty: give the value there.')
  return value
}
