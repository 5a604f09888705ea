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
  const { isolation, entrypoint, image } = manifest
  const servers = commandsElsewhere ? [] : manifest.mcpServers.filter(server => server.command !== undefined)
  // Of a manifest from before these were refused when it was published.
  const [refused] = isolation === 'wasm' ? refusedInWasm({ entrypoint, mcpServers: servers.slice(0, 1) }) : []
  if (refused) throw unavailable(`${refused.message}; nothing is run`)
  const wanted = backendsFor(manifest, servers.length > 0)
  if (wanted.length === 0) return undefined
  const offered = await sandboxes.offered(wanted, image)
  const found = wanted.flatMap(backend => offered.find(one => one.backend === backend) ?? [])[0]
  if (found !== undefined) {
    const lacking = lackingIn(found, manifest, servers)
    if (lacking !== undefined) throw unavailable(lacking)
    return found
  }
  if (image !== undefined && (await sandboxes.offered(wanted)).length > 0) {
    throw unavailable(
      `the guest image ${image} is not on this node, or does not start there: nothing is run without it. "node-agent image --name ${image}" builds it`,
    )
  }
  throw unavailable(notOffered(manifest, wanted, servers[0]?.name))
}

const unavailable = (message: string) => new RunFailure('isolation_unavailable', message)

/** Why a run waits for a backend that no node offers. */
function notOffered(
  { isolation, entrypoint, tools }: Manifest,
  wanted: readonly Backend[],
  command: string | undefined,
): string {
  const what = `${isolation === 'shared' ? 'a microVM' : isolation} (${wanted.join(', ')})`
  if (command !== undefined) {
    return `the MCP server ${command} is a command, which runs inside a sandbox and never on the host itself; no enrolled node offers ${what} for it: give the server a url instead`
  }
  const sandboxed = [...(entrypoint ? ['its entrypoint'] : []), ...tools.map(({ name }) => name).filter(isSandboxTool)]
  const why = isolation === 'shared' ? sandboxed.join(', ') : 'its isolation'
  return `${why} needs ${what}, and no enrolled node offers it: nothing is run without it. "node-agent doctor" says what is missing`
}

/** The first program that a run needs and its backend does not have, in words. */
function lackingIn(
  { backend, programs }: Offered,
  { tools, entrypoint }: Manifest,
  servers: Manifest['mcpServers'],
): string | undefined {
  const lacks = (program: string | undefined) => program !== undefined && !programs.has(program)
  for (const { name } of tools) {
    if (!lacks(PROGRAM[name])) continue
    const how = backend === 'wasm' ? ELSEWHERE : name === 'browse' ? BUILD_BROWSER : BUILD_ONE
    return `the tool ${name} needs ${PROGRAM[name]}, which the image of ${backend} does not have: nothing is run without it. ${how}`
  }
  for (const { name, command = '' } of servers) {
    if (!lacks(INTERPRETERS[command])) continue
    return `the MCP server ${name} needs ${command}, which the root of ${backend} does not have: nothing is run without it. ${BUILD_ONE}`
  }
  const interpreter = entrypoint && INTERPRETERS[entrypoint.command.replace(/^.*\//, '')]
  if (!lacks(interpreter)) return undefined
  return `the entrypoint needs ${interpreter}, which the image of ${backend} does not have: nothing is run without it. ${BUILD_ONE}`
}
