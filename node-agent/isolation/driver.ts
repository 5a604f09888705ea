import type { Duplex } from 'node:stream'

/** What can hold foreign code. A manifest's value maps to exactly one of these; none stands in for another. */
export type Backend = 'runc' | 'gvisor' | 'qemu' | 'kata' | 'firecracker' | 'wasm'

/** `tcg` is QEMU's software emulation: for development, and shown wherever a run is shown. */
export type Accel = 'kvm' | 'tcg'

export interface Probe {
  backend: Backend
  available: boolean
  version?: string
  accel?: Accel
  /** Of the kernel inside. */
  kernelRelease?: string
  /** What was run to know it; absent where nothing ran. */
  verifiedBy?: string
  /** Why it is not available, or what an operator should know; sentences. */
  reasons: readonly string[]
  /** What to install or set; sentences. */
  install: readonly string[]
}

export interface SandboxLimits {
  memoryMb: number
  /** Share of processors; 0.5 is half of one. */
  cpus: number
  pids: number
  /** Of the workspace, /work. It is held in memory, which is counted on top of `memoryMb`. */
  diskMb: number
}

export type LimitName = 'memory' | 'pids' | 'time' | 'output' | 'disk' | 'stack' | 'heartbeat'

export type Exit =
  | { kind: 'code'; code: number }
  | { kind: 'signal'; signal: string }
  /** A limit ended it: by its own failure at the limit, or by the host's kill. */
  | { kind: 'limit'; limit: LimitName; detail: string }
  /** The sandbox ended under it, or was ended because it broke the protocol. */
  | { kind: 'lost'; detail: string }

export interface ExecRequest {
  argv: readonly [string, ...string[]]
  env?: Readonly<Record<string, string>>
  /** Default /work. */
  cwd?: string
  stdin?: AsyncIterable<Uint8Array> | Uint8Array
  /** Milliseconds from now until the host ends it. */
  deadlineMs: number
  /** Of stdout and stderr together; more ends the command. */
  outputBytes: number
}

export interface Exec {
  readonly stdout: AsyncIterable<Uint8Array>
  readonly stderr: AsyncIterable<Uint8Array>
  /** Never rejects. What the command left running is gone when it settles. */
  readonly exit: Promise<Exit>
  signal(name: NodeJS.Signals): void
}

export interface FileEntry {
  name: string
  kind: 'file' | 'folder' | 'link' | 'other'
  bytes: number
}

/** A place where commands run until it is stopped. */
export interface Sandbox {
  readonly id: string
  readonly backend: Backend
  readonly accel?: Accel
  /** It had been started ahead of its use. */
  readonly pooled?: boolean
  readonly kernelRelease: string
  /** Settles when it is gone, for any reason; the text says why. */
  readonly ended: Promise<string>
  /** Throws IsolationError `exec_failed` when the program cannot be started. */
  exec(request: ExecRequest): Promise<Exec>
  /** Paths are taken from /work. Throws `file_failed`; `limit` is set when the workspace is full. */
  writeFile(path: string, content: Uint8Array, options?: { executable?: boolean }): Promise<void>
  readFile(path: string, maxBytes: number): Promise<Uint8Array>
  listFiles(path: string): Promise<FileEntry[]>
  /** All files of the workspace as bytes, and back, where there is no `tar` inside that could do it. */
  readonly archive?: { pack(): AsyncIterable<Uint8Array>; unpack(chunks: AsyncIterable<Uint8Array>): Promise<void> }
  /**
   * From now on the host answers what commands call on this port of their loopback; there is no other way out of a sandbox.
   * Throws `unsupported` where the backend cannot.
   */
  serve(port: number, accept: (stream: Duplex) => void): Promise<void>
  /** Throws `unsupported` where the backend cannot. The sandbox goes on running. */
  snapshot(): Promise<SnapshotRef>
  stop(): Promise<void>
}

/** A sandbox as it was, on this node. `key` is a hash of everything that must be the same to bring it back. */
export interface SnapshotRef {
  backend: Backend
  key: string
  folder: string
  limits: SandboxLimits
  /** The key of its files, where the backend seals them. It is in no file, so what a process leaves behind cannot be opened. */
  sealKey?: Uint8Array
}

export interface Reaped {
  backend: Backend
  id: string
}

export interface Driver {
  readonly backend: Backend
  /** Runs the backend for real, within the deadline. */
  probe(deadlineMs: number): Promise<Probe>
  start(limits: SandboxLimits, deadlineMs: number): Promise<Sandbox>
  restore(ref: SnapshotRef, deadlineMs: number): Promise<Sandbox>
  /** Removes what an earlier process of this node left behind; called before the first `start`. */
  reap(): Promise<Reaped[]>
  /** Ends every sandbox, pool and template of this driver. */
  close(): Promise<void>
}

/** A driver that has machines waiting for the next start. */
export interface PooledDriver extends Driver {
  /** As if one of this kind had been asked for; settles when as many wait as shall. */
  prepare(limits: SandboxLimits): Promise<void>
}

export type IsolationErrorCode =
  | 'isolation_unavailable' // the backend is not here, or did not do what was asked
  | 'limits_not_in_force' // what was set is not what the kernel says; nothing was run
  | 'unsupported' // the backend has no such operation
  | 'exec_failed' // the program could not be started
  | 'file_failed' // a file operation inside the sandbox failed
  | 'start_failed' // no sandbox came up within the deadline

export class IsolationError extends Error {
  override name = 'IsolationError'
  readonly code: IsolationErrorCode
  readonly limit: LimitName | undefined
  constructor(code: IsolationErrorCode, message: string, options: ErrorOptions & { limit?: LimitName } = {}) {
    super(message, options)
    this.code = code
    this.limit = options.limit
  }
}
