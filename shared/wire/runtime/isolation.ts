import { z } from 'zod'
import { count } from '../bounds.ts'
import { named } from '../named.ts'
import { id } from './conventions.ts'

/** Runtime contract §3, "Isolation values". Rank orders strength for reports; only `satisfiedBy` decides. */
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

/** The listed tools that the declared isolation can never run; publishing them is a 400. */
export function toolsRefusedBy<T extends string>(value: Isolation, tools: readonly T[]): T[] {
  const refused: readonly string[] =
    value === 'wasm' ? notInWasm : value === 'runc' || value === 'gvisor' ? needsMicrovm : []
  return tools.filter(tool => refused.includes(tool))
}
