/** Files that changed since the other side last heard of them, `null` for one that is gone. */
export type ChangedFiles = [path: string, content: Uint8Array | null][]

/** What the node and its script process say to each other. */
export interface ScriptJob {
  type: 'job'
  id: number
  /** A module that may import and call; else a script that is evaluated once. */
  program: boolean
  code: string
  fileName: string
  args: string[]
  /** Of a program. */
  env: Record<string, string>
  /** That may be open at a time. */
  maxCalls: number
  stdin: Uint8Array
  deadlineMs: number
  memoryBytes: number
  outputBytes: number
  workspaceBytes: number
  changed: ChangedFiles
}

/** What the host answered to a call of a program. */
export interface ScriptAnswer {
  type: 'answer'
  call: number
  status: number
  text: string
  changed: ChangedFiles
}

/** A request of a program to the host's step protocol. */
export interface ScriptCall {
  type: 'call'
  id: number
  call: number
  method: string
  path: string
  body: string
  changed: ChangedFiles
}

export type ScriptVerdict =
  | { kind: 'done' }
  | { kind: 'threw' }
  | { kind: 'limit'; limit: 'memory' | 'stack' | 'time' | 'output' | 'disk' }

export type FromScripts =
  | { type: 'ready' }
  | { type: 'output'; id: number; stream: 'stdout' | 'stderr'; bytes: Uint8Array }
  | ScriptCall
  | { type: 'end'; id: number; verdict: ScriptVerdict; changed: ChangedFiles }

/** A WASI program: one process, one program. Its output is the output of the process. */
export interface WasiJob {
  module: Uint8Array
  args: string[]
  env: Record<string, string>
  maxPages: number
}

export type FromWasi = { type: 'ready' } | { type: 'end'; code: number; pages: number; trap?: string }
