import { type Backend, type Isolation, isolationTable, refusedInWasm } from '../../../shared/wire/runtime/isolation.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'
import type { BuiltInTool } from '../../../shared/wire/runtime/tool.ts'
import { BROWSER } from '../browse/launch.ts'
import { RunFailure } from '../failure.ts'
import type { Offered, Sandboxes } from './sandboxes.ts'

export const SANDBOX_TOOLS = [
  'exec',
  'python',
  'node',
  'read_file',
  'list_files',
  'write_file',
  'install_packages',
  'browse',
] as const
export type SandboxTool = (typeof SANDBOX_TOOLS)[number]

const PROGRAM: Partial<Record<BuiltInTool, string>> = {
  python: 'python3',
  node: 'node',
  install_packages: 'pip',
  browse: BROWSER,
}

const BUILD_ONE =
  '"node-agent image --interpreters" builds one that has, and NODE_AGENT_SANDBOX_TOOLS puts programs into containers'

const ELSEWHERE = 'It runs JavaScript alone: declare microvm, gvisor or runc'

const BUILD_BROWSER =
  '"node-agent image --browser" builds one that has; --interpreters beside it keeps Python and Node in it'

const INTERPRETERS: Readonly<Record<string, string>> = {
  python: 'python3',
  python3: 'python3',
  node: 'node',
  nodejs: 'node',
}

export const isSandboxTool = (name: string): name is SandboxTool => (SANDBOX_TOOLS as readonly string[]).includes(name)

/** Whether foreign code of a run is to be put into something: commands that a model calls, or a program of its own. */
export const needsSandbox = ({ tools, entrypoint }: Pick<Manifest, 'tools' | 'entrypoint'>): boolean =>
  entrypoint !== undefined || tools.some(({ name }) => isSandboxTool(name))

/** The backends that honour a manifest, the strongest first; none where nothing foreign runs. `commands`: MCP servers that are started. */
export function backendsFor(
  manifest: Pick<Manifest, 'isolation' | 'tools' | 'entrypoint'>,
  commands: boolean,
): readonly Backend[] {
  const { isolation } = manifest
  // A model loop holds no foreign code, but what it calls in a sandbox does.
  const needed: Isolation = isolation === 'shared' && (commands || needsSandbox(manifest)) ? 'microvm' : isolation
  return isolationTable[needed].satisfiedBy.filter(one => one !== 'any')
}

/**
 * The backend for a run, before its first step; undefined where it needs none. Nothing is ever run in a weaker one: what cannot be
 * honoured ends the run.
 */
export async function placed(
  manifest: Manifest,
  sandboxes: Sandboxes,
  { commandsElsewhere }: { commandsElsewhere: boolean },
): Promise<Offered | undefined> {
  const { isolation, tools, entrypoint, mcpServers, image } = manifest
  const command = commandsElsewhere ? undefined : mcpServers.find(server => server.command !== undefined)
  const ofCommand =
    command && `the MCP server ${command.name} is a command, which runs inside a sandbox and never on the host itself`
  // Of a manifest from before these were refused when it was published.
  const refused = isolation === 'wasm' ? refusedInWasm({ entrypoint, mcpServers: command ? [command] : [] }) : []
  if (refused[0]) throw new RunFailure('isolation_unavailable', `${refused[0].message}; nothing is run`)
  const wanted = backendsFor(manifest, command !== undefined)
  if (wanted.length === 0) return undefined
  const offered = await sandboxes.offered(wanted, image)
  const found = wanted.flatMap(backend => offered.find(one => one.backend === backend) ?? [])[0]
  if (found === undefined && image !== undefined && (await sandboxes.offered(wanted)).length > 0) {
    const message = `the guest image ${image} is not on this node, or does not start there: nothing is run without it. "node-agent image --name ${image}" builds it`
    throw new RunFailure('isolation_unavailable', message)
  }
  if (found === undefined) {
    const sandboxed = [
      ...(entrypoint ? ['its entrypoint'] : []),
      ...tools.map(({ name }) => name).filter(isSandboxTool),
    ]
    const what = isolation === 'shared' ? 'a microVM' : isolation
    if (ofCommand !== undefined) {
      const message = `${ofCommand}; no enrolled node offers ${what} (${wanted.join(', ')}) for it: give the server a url instead`
      throw new RunFailure('isolation_unavailable', message)
    }
    const why = isolation === 'shared' ? sandboxed.join(', ') : 'its isolation'
    const message = `${why} needs ${what} (${wanted.join(', ')}), and no enrolled node offers it: nothing is run without it. "node-agent doctor" says what is missing`
    throw new RunFailure('isolation_unavailable', message)
  }
  for (const { name } of tools) {
    const program = PROGRAM[name]
    if (program !== undefined && !found.programs.has(program)) {
      const message = `the tool ${name} needs ${program}, which the image of ${found.backend} does not have: nothing is run without it. ${found.backend === 'wasm' ? ELSEWHERE : name === 'browse' ? BUILD_BROWSER : BUILD_ONE}`
      throw new RunFailure('isolation_unavailable', message)
    }
  }
  for (const { name, command: program } of commandsElsewhere ? [] : mcpServers) {
    if (program === undefined || INTERPRETERS[program] === undefined || found.programs.has(INTERPRETERS[program]))
      continue
    const why = `the MCP server ${name} needs ${program}, which the root of ${found.backend} does not have`
    throw new RunFailure('isolation_unavailable', `${why}: nothing is run without it. ${BUILD_ONE}`)
  }
  const interpreter = entrypoint && INTERPRETERS[entrypoint.command.replace(/^.*\//, '')]
  if (interpreter !== undefined && !found.programs.has(interpreter)) {
    const message = `the entrypoint needs ${interpreter}, which the image of ${found.backend} does not have: nothing is run without it. ${BUILD_ONE}`
    throw new RunFailure('isolation_unavailable', message)
  }
  return found
}
