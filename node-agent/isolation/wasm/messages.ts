/** Files that changed since the other side last heard of them, `null` for one that is gone. */
export type ChangedFiles = [path: string, content: Uint8Array | null][]

interface Job {
  type: 'job'
  id: number
  args: string[]
  env: Record<string, string>
  stdin: Uint8Array
  outputBytes: number
  workspaceBytes: number
  changed: ChangedFiles
}

/** JavaScript, for the process of the interpreter. */
export interface ScriptJob extends Job {
  /** A module that may import and call; else a script that is evaluated once. */
  program: boolean
  code: string
  fileName: string
  /** That may be open at a time. */
  maxCalls: number
  deadlineMs: number
  memoryBytes: number
}

/** A WebAssembly module that asks for WASI, for a process of its own. Its memory is capped at `maxPages`. */
export interface ModuleJob extends Job {
  module: Uint8Array
  maxPages: number
}

/** What the host answered to a call of a program. */
export interface ProgramAnswer {
  type: 'answer'
  call: number
  status: number
  text: string
  changed: ChangedFiles
}

/** A request of a program to the host's step protocol. */
export interface ProgramCall {
  type: 'call'
  id: number
  call: number
  method: string
  path: string
  body: string
  changed: ChangedFiles
}

export type Verdict =
  | { kind: 'exited'; code: number }
  | { kind: 'limit'; limit: 'memory' | 'stack' | 'time' | 'output' | 'disk' }

export type FromProgram =
  | { type: 'ready' }
  | { type: 'output'; id: number; stream: 'stdout' | 'stderr'; bytes: Uint8Array }
  | ProgramCall
  | { type: 'end'; id: number; verdict: Verdict; changed: ChangedFiles }
