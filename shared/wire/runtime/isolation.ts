import { z } from 'zod'
import { count } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { id } from './conventions.ts'

/** docs/spec/runtime.md §3, "Isolation values". Rank orders strength for reports; only `satisfiedBy` decides. */
export const isolationTable = {
  shared: { rank: 0, satisfiedBy: ['any'] },
  runc: { rank: 10, satisfiedBy: ['runc'] },
  wasm: { rank: 20, satisfiedBy: ['wasm'] },
  gvisor: { rank: 30, satisfiedBy: ['gvisor'] },
  microvm: { rank: 40, satisfiedBy: ['firecracker', 'kata', 'qemu'] },
  kata: { rank: 40, satisfiedBy: ['kata'] },
  firecracker: { rank: 40, satisfiedBy: ['firecracker'] },
  qemu: { rank: 40, satisfiedBy: ['qemu'] },
} as const

export type Isolation = keyof typeof isolationTable
export const isolationValues = Object.keys(isolationTable) as [Isolation, ...Isolation[]]

export const backends = ['runc', 'wasm', 'gvisor', 'kata', 'firecracker', 'qemu'] as const
export type Backend = (typeof backends)[number]
export const backend = z.enum(backends)
export const isBackend = (name: string): name is Backend => backend.safeParse(name).success

const stored = z.enum(isolationValues)

/** Case does not matter going in; stored in lower case. */
export const isolation = z
  .string()
  .transform(value => value.toLowerCase())
  .pipe(stored)

export const isolationStored = stored

export const isolationItem = named(
  'Isolation',
  z.object({
    value: stored,
    rank: count,
    satisfiedBy: z.array(z.string()),
    availableOn: z.array(id),
  }),
)
export type IsolationItem = z.infer<typeof isolationItem>

/** Tools that run foreign code and so need hardware virtualisation. */
const needsMicrovm = ['browse', 'install_packages'] as const
const notInWasm = ['exec', 'node', ...needsMicrovm] as const

/** Commands of an entrypoint under `wasm`, each with what its first argument is. */
const MODULES: ReadonlyMap<string, RegExp> = new Map([
  ['node', /^[^-].*\.m?js$/],
  ['wasi', /^[^-].*\.wasm$/],
])

/** Of a guest image of a node; its folder has the same. */
export const IMAGE_NAME = /^[a-z][a-z0-9-]{0,31}$/

interface ForeignCode {
  entrypoint?: { command: string; args: readonly string[] } | undefined
  mcpServers: readonly { name: string; command?: string | undefined }[]
  image?: string | undefined
}

/** What else of a manifest the interpreter of `wasm` can never run: anything but a JavaScript or WASI module; publishing it is a 400. */
export function refusedInWasm({
  entrypoint,
  mcpServers,
  image,
}: ForeignCode): { path: (string | number)[]; message: string }[] {
  const ofImage =
    image === undefined
      ? []
      : [{ path: ['image'], message: 'wasm has no guest image; declare microvm, gvisor or runc' }]
  const ofServers = mcpServers.flatMap(({ name, command }, at) =>
    command === undefined
      ? []
      : [
          {
            path: ['mcpServers', at, 'command'],
            message: `the MCP server ${name} is a command, and wasm starts no commands; declare runc, gvisor or microvm, or give the server a url`,
          },
        ],
  )
  const refused = [...ofImage, ...ofServers]
  if (entrypoint === undefined) return refused
  const { command, args } = entrypoint
  const module = MODULES.get(command)
  if (module?.test(args[0] ?? '')) return refused
  const message =
    "under wasm an entrypoint is a module of its files: the command 'node' with a .js or .mjs file as its first argument, or 'wasi' with a .wasm file; declare microvm, gvisor or runc for other programs"
  return [...refused, { path: ['entrypoint', module === undefined ? 'command' : 'args'], message }]
}

/** The listed tools that the declared isolation can never run; publishing them is a 400. */
export function toolsRefusedBy<T extends string>(value: Isolation, tools: readonly T[]): T[] {
  const refused: readonly string[] =
    value === 'wasm' ? notInWasm : value === 'runc' || value === 'gvisor' ? needsMicrovm : []
  return tools.filter(tool => refused.includes(tool))
}
