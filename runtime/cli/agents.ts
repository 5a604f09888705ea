import { readFile } from 'node:fs/promises'
import { Command, Option, UsageError } from 'clipanion'
import { fileProblem } from '../../shared/cli/file-problem.ts'
import { ClientError, type RuntimeClient } from '../../shared/client/client.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { AgentCreate, AgentCreated } from '../../shared/wire/runtime/agent.ts'
import { differences } from './differences.ts'
import { PAGE, requireFinite, ServiceCommand, WHERE } from './service-command.ts'
import { listVerb, timeText, verb } from './verb.ts'

export const AgentsListCommand = listVerb('agents list', {
  about: 'List the agents of the tenant, the newest first.',
  examples: [['Their names alone', 'agents list --quiet']],
  rows: client => client.agents.list.each({ query: { limit: PAGE } }),
  columns: [
    ['AGENT', agent => agent.name],
    ['VERSION', agent => agent.currentVersionId],
    ['CREATED', agent => timeText(agent.createdAt)],
    ['DESCRIPTION', agent => agent.description],
  ],
  empty: 'No agent yet. `runtime init` writes a first one, and `runtime agents apply` publishes it.',
})

export const AgentsGetCommand = verb('agents get', {
  about: 'Print an agent as a file that `runtime agents apply` takes.',
  examples: [['Into a repository', 'agents get helper > helper.yaml']],
  words: ['agent'],
  options: { version: 'The id of a version; default: the one in use.' },
  act: async (client, { agent, version }) => {
    const { name, description, labels, manifest } = await client.agents.get({ params: { name: agent } })
    const of = version === undefined ? manifest : await manifestOf(client, agent, version)
    return { name, ...(description !== undefined && { description }), labels, manifest: of }
  },
  show: async agent => (await import('yaml')).stringify(agent),
})

export const AgentsVersionsCommand = listVerb('agents versions', {
  about: 'List the versions of an agent, the newest first.',
  words: ['agent'],
  rows: (client, { agent }) => client.agents.versions.each({ params: { name: agent } }),
  columns: [
    ['VERSION', version => version.id],
    ['NUMBER', version => version.number],
    ['IN USE', version => (version.current ? 'yes' : 'no')],
    ['CREATED', version => timeText(version.createdAt)],
    ['BY', version => version.createdBy],
    ['NOTE', version => version.note],
  ],
  empty: 'No such agent.',
})

export const AgentsDiffCommand = verb('agents diff', {
  about: 'Show what differs between two versions of an agent.',
  details: 'Without --to the version in use is compared. Each line is a member: - as it was, + as it is.',
  words: ['agent', 'version'],
  options: { to: 'The id of the other version.' },
  act: async (client, { agent, version, to }) => {
    const before = await manifestOf(client, agent, version)
    const after =
      to === undefined
        ? (await client.agents.get({ params: { name: agent } })).manifest
        : await manifestOf(client, agent, to)
    return differences(before, after)
  },
  show: found =>
    found.length === 0
      ? 'nothing differs'
      : found
          .flatMap(({ path, before, after }) => [
            ...(before === undefined ? [] : [`- ${path}: ${JSON.stringify(before)}`]),
            ...(after === undefined ? [] : [`+ ${path}: ${JSON.stringify(after)}`]),
          ])
          .join('\n'),
})

export const AgentsPromoteCommand = verb('agents promote', {
  about: 'Make another version of an agent the current one. Runs under way keep theirs.',
  examples: [['Back to an earlier one', 'agents promote helper 0190…']],
  words: ['agent', 'version'],
  act: (client, { agent, version }) => client.agents.promote({ params: { name: agent, versionId: version } }),
  show: (_, { agent, version }) => `${agent} uses ${version}`,
})

export const AgentsDeleteCommand = verb('agents delete', {
  about: 'Delete an agent. Its runs stay, with what was said in them, and so do its versions and their prompts.',
  words: ['agent'],
  act: (client, { agent }) => client.agents.remove({ params: { name: agent } }),
  show: (_, { agent }) => `${agent} deleted`,
})

async function manifestOf(client: RuntimeClient, name: string, versionId: string) {
  return (await client.agents.version({ params: { name, versionId } })).manifest
}

/** `runtime agents apply`: a file in a repository is the truth about an agent. */
export class AgentsApplyCommand extends ServiceCommand {
  static override paths = [['agents', 'apply']]
  static override usage = Command.Usage({
    description: 'Publish agents from files.',
    details: `
      ${WHERE}

      A file is TOML, YAML or JSON, by its extension, with the members of POST /v1/agents: name, manifest, labels and description.
      A file that differs from the current version becomes a new version and the current one. An equal file changes nothing, so you
      can apply it again and again. A YAML file may hold several agents, separated by ---. If one of the files cannot be read, nothing
      is applied.
    `,
    examples: [
      ['An agent from a file', '$0 agents apply helper.toml'],
      ['All of a folder', '$0 agents apply agents/*.yaml'],
      ['What a file looks like', `printf 'name = "helper"\\n[manifest]\\nsystemPrompt = "Be brief."\\n' > helper.toml`],
    ],
  })

  files = Option.Rest({ required: 1, name: 'file' })

  protected async act(client: RuntimeClient): Promise<number> {
    const read: { file: string; agent: AgentCreate }[] = []
    for (const file of this.files) for (const agent of await readAgents(file)) read.push({ file, agent })
    const before = new Map<string, string>()
    for await (const { name, currentVersionId } of client.agents.list.each({ query: { limit: PAGE } })) {
      before.set(name, currentVersionId)
    }
    for (const { file, agent } of read) {
      const { name, currentVersionId, version, warnings } = await apply(client, file, agent)
      const was = before.get(name)
      const what = was === undefined ? 'created' : was === currentVersionId ? 'unchanged' : 'published'
      this.say(`${name}  ${what}  version ${version}`)
      for (const warning of warnings) this.context.stderr.write(`${file}: ${warning}\n`)
    }
    return 0
  }
}

/** A problem that the service finds is shown with the file that it is in. */
async function apply(client: RuntimeClient, file: string, agent: AgentCreate): Promise<AgentCreated> {
  try {
    return await client.agents.create({ body: agent })
  } catch (error) {
    if (!(error instanceof ClientError)) throw error
    throw new ClientError(`${file}: ${error.message}`, error)
  }
}

async function readAgents(file: string): Promise<AgentCreate[]> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const isThere = error.code !== 'ENOENT' && error.code !== 'ENOTDIR'
    throw new UsageError(fileProblem(error, file) ?? `${file} ${isThere ? 'cannot be read' : 'is not there'}`)
  })
  const found = await parse(file, text).catch((error: unknown) => {
    const message = error instanceof Error ? error.message : String(error)
    throw new UsageError(`${file}: ${message.replace('Maximum call stack size exceeded', TOO_DEEP)}`)
  })
  return found.map(agent => {
    requireFinite(file, agent)
    requireShallow(file, agent)
    if (isAgent(agent)) return agent
    throw new UsageError(`${file}: expected an agent, with a name and a manifest`)
  })
}

const TOO_DEEP = 'it is nested too deep'

/** The engine writes no JSON that is some thousand levels deep, and no service reads it. */
function requireShallow(file: string, agent: unknown): void {
  try {
    JSON.stringify(agent)
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(`${file}: ${TOO_DEEP}`)
    throw error
  }
}

/** Only what names an agent is looked at here: the service checks the rest, and says what is wrong with it. */
function isAgent(value: unknown): value is AgentCreate {
  return typeof value === 'object' && value !== null && 'name' in value
}

/** Of a fault the parser's sentence and its place, without the whole line that follows. */
async function readToml(text: string): Promise<unknown> {
  const { parse, TomlError } = await import('smol-toml')
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const [what = ''] = error.message.replace('Invalid TOML document: ', '').split('\n', 1)
    throw new Error(`line ${error.line}, column ${error.column}: ${what}`, { cause: error })
  }
}

async function parse(file: string, text: string): Promise<unknown[]> {
  switch (/\.(\w+)$/.exec(file)?.[1]?.toLowerCase()) {
    case 'toml':
      return [await readToml(text)]
    case 'yaml':
    case 'yml': {
      const documents = (await import('yaml')).parseAllDocuments(text)
      for (const { errors } of documents) if (errors[0]) throw errors[0]
      return documents.map(document => document.toJS() as unknown)
    }
    case 'json':
      return [readJson(text)]
    default:
      throw new Error('expected a file that ends in .toml, .yaml, .yml or .json')
  }
}
