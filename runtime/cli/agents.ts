import { readFile } from 'node:fs/promises'
import { Command, Option, UsageError } from 'clipanion'
import { ClientError, type RuntimeClient } from '../../shared/client/client.ts'
import { readJson } from '../../shared/json/read-json.ts'
import type { AgentCreate, AgentCreated } from '../../shared/wire/runtime/agent.ts'
import { PAGE, ServiceCommand, WHERE } from './service-command.ts'

/** `runtime agents list`: one line for each agent. */
export class AgentsListCommand extends ServiceCommand {
  static override paths = [['agents', 'list']]
  static override usage = Command.Usage({
    description: 'List the agents of the tenant, newest first.',
    details: `${WHERE} Each line: the name, the version in use, when it was made, its description.`,
    examples: [['The agents of a service', '$0 agents list --url http://127.0.0.1:8080 --key wb_live_…']],
  })

  protected async act(client: RuntimeClient): Promise<number> {
    for await (const agent of client.agents.list.each({ query: { limit: PAGE } })) {
      const { name, currentVersionId, createdAt, description = '' } = agent
      this.say([name, currentVersionId, createdAt, description].join('  ').trimEnd())
    }
    return 0
  }
}

/** `runtime agents apply`: a file in a repository is the truth about an agent. */
export class AgentsApplyCommand extends ServiceCommand {
  static override paths = [['agents', 'apply']]
  static override usage = Command.Usage({
    description: 'Publish agents from files.',
    details: `
      ${WHERE}

      A file is TOML, YAML or JSON, by its ending: the members of POST /v1/agents, which are name, manifest, labels and description.
      What differs from the version in use becomes a new version and is used from then on; what is equal changes nothing, so a file
      can be applied again and again. A YAML file may hold several agents, divided by ---. Nothing is applied when one of the files
      cannot be read.
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
  const text = await readFile(file, 'utf8').catch(() => {
    throw new UsageError(`${file} cannot be read`)
  })
  const found = await parse(file, text).catch((error: unknown) => {
    throw new UsageError(`${file}: ${error instanceof Error ? error.message : String(error)}`)
  })
  return found.map(agent => {
    if (isAgent(agent)) return agent
    throw new UsageError(`${file}: expected an agent, with a name and a manifest`)
  })
}

/** Only what names an agent is looked at here: the service checks the rest, and says what is wrong with it. */
function isAgent(value: unknown): value is AgentCreate {
  return typeof value === 'object' && value !== null && 'name' in value
}

async function parse(file: string, text: string): Promise<unknown[]> {
  switch (/\.(\w+)$/.exec(file)?.[1]?.toLowerCase()) {
    case 'toml':
      return [(await import('smol-toml')).parse(text)]
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
