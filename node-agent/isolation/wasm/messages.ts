/** What the node and its script process say to each other. */
export interface ScriptJob {
  id: number
  code: string
  fileName: string
  args: string[]
  stdin: Uint8Array
  deadlineMs: number
  memoryBytes: number
  outputBytes: number
  workspaceBytes: number
  /** Files that changed since the last job, `null` for one that is gone. */
  changed: [path: string, content: Uint8Array | null][]
}

export type ScriptVerdict =
  | { kind: 'done' }
  | { kind: 'threw' }
  | { kind: 'limit'; limit: 'memory' | 'stack' | 'time' | 'output' | 'disk' }

export type FromScripts =
  | { type: 'ready' }
  | { type: 'output'; id: number; stream: 'stdout' | 'stderr'; bytes: Uint8Array }
  | { type: 'end'; id: number; verdict: ScriptVerdict; changed: [path: string, content: Uint8Array | null][] }

/** A WASI program: one process, one program. Its output is the output of the process. */
export interface WasiJob {
  module: Uint8Array
  args: string[]
  env: Record<string, string>
  maxPages: number
}

export type FromWasi = { type: 'ready' } | { type: 'end'; code: number; pages: number; trap?: string }
