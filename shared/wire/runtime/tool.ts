import { z } from 'zod'
import { expected, int } from '../bounds.ts'

export const effects = ['read', 'idempotent', 'once', 'unknown'] as const
export type Effect = (typeof effects)[number]
export const onInterruptedValues = ['retry', 'fail', 'ask', 'verify'] as const
export type OnInterrupted = (typeof onInterruptedValues)[number]

interface BuiltIn {
  /** Absent where each call decides: `http_request` is `read` for GET and HEAD and `once` otherwise. */
  readonly effect?: Effect
  /** Absent: waits as long as it is asked to. */
  readonly timeoutSeconds?: number
}

/** docs/spec/runtime.md §3, "Built-in tools". */
export const builtInTools = {
  exec: { effect: 'once', timeoutSeconds: 60 },
  python: { effect: 'once', timeoutSeconds: 60 },
  node: { effect: 'once', timeoutSeconds: 60 },
  read_file: { effect: 'read', timeoutSeconds: 15 },
  list_files: { effect: 'read', timeoutSeconds: 15 },
  write_file: { effect: 'idempotent', timeoutSeconds: 15 },
  install_packages: { effect: 'idempotent', timeoutSeconds: 300 },
  browse: { effect: 'once', timeoutSeconds: 120 },
  http_request: { timeoutSeconds: 30 },
  wait: { effect: 'idempotent' },
  wait_signal: { effect: 'idempotent' },
  ask_human: { effect: 'idempotent' },
} as const satisfies Record<string, BuiltIn>

export type BuiltInTool = keyof typeof builtInTools
export const builtInToolNames = Object.keys(builtInTools) as [BuiltInTool, ...BuiltInTool[]]

const toolName = z.enum(builtInToolNames, {
  error: issue =>
    issue.input === undefined ? 'Required' : `expected one of the built-in tools ${builtInToolNames.join(', ')}`,
})

/** A tool as it is stored: every default written out. */
export const tool = z.strictObject({
  name: toolName,
  effect: z.enum(effects).optional(),
  needsApproval: z.boolean(),
  timeoutSeconds: int(1, 3600).optional(),
  onInterrupted: z.enum(onInterruptedValues).optional(),
})
export type Tool = z.infer<typeof tool>

const toolGiven = z
  .strictObject({
    name: toolName,
    effect: z.enum(effects).optional(),
    idempotent: z.boolean().optional(),
    needsApproval: z.boolean().optional(),
    timeoutSeconds: int(1, 3600).optional(),
    onInterrupted: z.enum(onInterruptedValues).optional(),
  })
  .refine(({ effect, idempotent }) => effect === undefined || idempotent !== true || effect === 'idempotent', {
    path: ['idempotent'],
    error: 'differs from effect; send only effect',
  })

/** What a crash in the middle of a call means, unless the manifest says otherwise. */
export const interruptedDefault = (effect: Effect): OnInterrupted =>
  effect === 'read' || effect === 'idempotent' ? 'retry' : 'ask'

/** Writes out a tool's defaults. The same tool written short or long gives the same value, hence the same hash. */
export function normaliseTool(given: BuiltInTool | z.output<typeof toolGiven>): Tool {
  const { idempotent, ...own } = typeof given === 'string' ? { name: given, idempotent: undefined } : given
  const known: BuiltIn = builtInTools[own.name]
  const effect = own.effect ?? (idempotent === true ? 'idempotent' : known.effect)
  const timeoutSeconds = own.timeoutSeconds ?? known.timeoutSeconds
  const onInterrupted = own.onInterrupted ?? (effect === undefined ? undefined : interruptedDefault(effect))
  return {
    name: own.name,
    ...(effect !== undefined && { effect }),
    needsApproval: own.needsApproval ?? false,
    ...(timeoutSeconds !== undefined && { timeoutSeconds }),
    ...(onInterrupted !== undefined && { onInterrupted }),
  }
}

export const toolEntry = z
  .union([toolName, toolGiven], { error: expected('a tool name or an object with a name') })
  .transform(normaliseTool)
  .pipe(tool)
