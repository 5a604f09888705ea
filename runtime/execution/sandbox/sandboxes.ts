import type { Backend } from '../../../shared/wire/runtime/isolation.ts'
import type { Reached } from '../../../shared/wire/runtime/journal.ts'
import type { Manifest } from '../../../shared/wire/runtime/manifest.ts'

/** On the loopback of a sandbox that may reach hosts: the way out. */
export const EGRESS_PORT = 7702

/** A backend that passed this node's self-test. */
export interface Offered {
  backend: Backend
  accel?: 'kvm' | 'tcg'
  /** Interpreters, what installs packages for them, and a browser, as far as its guests have them. */
  programs: ReadonlySet<string>
  /** Of its guests, where it is not the node's usual one. */
  image?: { name: string; digest: string }
}

/** What was decided about a call out of a sandbox. */
export interface EgressDecision {
  allowed: boolean
  /** `CONNECT` where the call itself is encrypted. */
  method: string
  host: string
  port: number
  reason?: string
}

export interface Egress {
  rules: Manifest['egress']
  /** Told before a decision takes effect; what it cannot be told of is not let through. */
  decided: (decision: EgressDecision) => Promise<void>
}

/** The machine that a session has for itself. */
export interface SessionVm {
  backend: Backend
  /** `warm`: it was there already, from a pool or put away; `released`: it is put away, or was ended. */
  state: 'warm' | 'cold' | 'released'
  /** How long it took to have it. */
  acquiredMs: number
}

export interface SessionMachine {
  id: string
  offered: Offered
  limits: Manifest['limits']
  idleMs: number
}

/** Machines of sessions: they outlive turns, and are saved when the session is idle. */
export interface SessionSandboxes {
  acquire(machine: SessionMachine): Promise<SessionVm>
  of(sessionId: string): SessionVm | undefined
  /** Its session is over: nothing of it stays. */
  release(sessionId: string): Promise<void>
}

export interface SandboxFor {
  runId: string
  /** The session whose own machine this is a turn in. */
  session?: { id: string; idleMs: number } | undefined
  offered: Offered
  limits: Manifest['limits']
  files: Manifest['files']
  /** Secrets of the run; they are in the environment of every command and nowhere else. */
  env: Readonly<Record<string, string>>
  egress: Egress
  /** How a node keeps the key of a file that holds data of this run: as run data is kept. */
  fileKeys: { seal(text: string): string; open(sealed: string): string }
}

export interface Command {
  argv: readonly [string, ...string[]]
  cwd?: string
  stdin?: string
  /** On top of the variables of every command. */
  env?: Readonly<Record<string, string>>
}

export interface CommandLimits {
  deadlineMs: number
  signal: AbortSignal
  /** Of both its outputs together; absent: what a model is shown. */
  outputBytes?: number
}

/** How a command ended; `limit` names the bound that ended it. */
export interface CommandEnd {
  stdout: string
  stderr: string
  exitCode?: number
  signal?: string
  limit?: { name: string; detail: string }
  truncated?: boolean
}

/** A program that is spoken with while it runs. */
export interface SandboxPipe {
  readonly stdout: AsyncIterable<Uint8Array>
  write(bytes: Uint8Array): void
  /** How many of what was written the program has still to read. */
  readonly unread: number
  /** Settles when it is gone, with the reason in words; never rejects. */
  readonly ended: Promise<string>
  kill(): void
}

export interface FileEntry {
  name: string
  kind: string
  bytes: number
}

/** The place where the commands of one run are executed. Failures are StepFailures. */
export interface RunSandbox {
  readonly offered: Offered
  readonly kernelRelease: string
  run(command: Command, limits: CommandLimits): Promise<CommandEnd>
  /** Starts a program that lives until it is killed, or the sandbox is closed. */
  pipe(argv: Command['argv']): Promise<SandboxPipe>
  /** From now on this answers what commands call by HTTP on the port of their loopback. */
  serve(port: number, answer: (request: Request) => Promise<Response>): Promise<void>
  writeFile(path: string, content: Uint8Array): Promise<void>
  readFile(path: string, maxBytes: number): Promise<Uint8Array>
  listFiles(path: string): Promise<FileEntry[]>
  /** Where its programs have been since this was last asked for. */
  reached(): Reached[]
  /** Keeps the workspace as it is now, for a sandbox that takes over after a wait or a crash. */
  keep(): Promise<void>
  close(): Promise<void>
}

/** What a node can put foreign code into. */
export interface Sandboxes {
  /**
   * Those of the given backends that work here, each tried for real the first time it is asked for. With the name of an image: those that
   * start it; none where this node has no such image.
   */
  offered(backends: readonly Backend[], image?: string): Promise<readonly Offered[]>
  /** Those that have passed so far with the usual image; nothing is tried for it. */
  known(): readonly Offered[]
  /** Begins with the workspace as it was last kept, or with the files of the manifest. */
  open(run: SandboxFor): Promise<RunSandbox>
  /** Absent where no machine can be held between turns. */
  sessions?: SessionSandboxes
  /** The run is over: nothing of its workspace stays. */
  forget(runId: string): Promise<void>
}

/** A host that holds no foreign code. */
export const noSandboxes: Sandboxes = {
  offered: async () => [],
  known: () => [],
  open: async () => {
    throw new Error('this host has no sandboxes')
  },
  forget: async () => undefined,
}
