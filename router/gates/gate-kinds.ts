import type { GateDefinition } from './define-gate.ts'
import { consistency } from './kinds/consistency.ts'
import { functionGate } from './kinds/function.ts'
import { http } from './kinds/http.ts'
import { jsonValid } from './kinds/json-valid.ts'
import { judge } from './kinds/judge.ts'
import { length } from './kinds/length.ts'
import { nonEmpty } from './kinds/non-empty.ts'
import { regex } from './kinds/regex.ts'
import { schema } from './kinds/schema.ts'
import { subprocess } from './kinds/subprocess.ts'
import { toolArgs } from './kinds/tool-args.ts'

/** Every kind of gate, in the order of docs/settings.md: those that are quick, then those that are slow. */
const kinds = {
  [nonEmpty.kind]: nonEmpty,
  [jsonValid.kind]: jsonValid,
  [schema.kind]: schema,
  [toolArgs.kind]: toolArgs,
  [regex.kind]: regex,
  [length.kind]: length,
  [subprocess.kind]: subprocess,
  [http.kind]: http,
  [functionGate.kind]: functionGate,
  [judge.kind]: judge,
  [consistency.kind]: consistency,
}

export type GateKind = keyof typeof kinds
/** What the table of each kind reads to, and what that resolves to. */
export type GateTables = { [K in GateKind]: Parameters<(typeof kinds)[K]['resolve']>[0] }
export type GateConfigs = { [K in GateKind]: Parameters<(typeof kinds)[K]['build']>[0] }
export type GateTable = GateTables[GateKind]
/** A gate of the config with its defaults applied. */
export type GateConfig<K extends GateKind = GateKind> = GateConfigs[K]

export const gateKinds: { readonly [K in GateKind]: GateDefinition<K, GateTables[K], GateConfigs[K]> } = kinds

export const isGateKind = (name: unknown): name is GateKind => typeof name === 'string' && Object.hasOwn(kinds, name)
