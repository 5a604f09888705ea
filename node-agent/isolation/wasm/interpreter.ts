import type { ChildProcess } from 'node:child_process'
import type { Duplex } from 'node:stream'
import { collect } from '../byte-queue.ts'
import { type Exec, type ExecRequest, type Exit, IsolationError, type SandboxLimits } from '../driver.ts'
import { type CgroupLimits, CPU_PERIOD, removeGroup } from '../oci/cgroups.ts'
import { newOwnedId } from '../owned-id.ts'
import { withDeadline } from '../with-deadline.ts'
import { type Command, limitExit, startCommand } from './command.ts'
import { type ProgramFile, programUrl, startConfined } from './confined-process.ts'
import type { ChangedFiles, FromProgram, ModuleJob, ProgramAnswer, ScriptJob, Verdict } from './messages.ts'
import { capMemory, ModuleRefusedError, PAGE_BYTES } from './module-memory.ts'
import { MAX_CALLS, programCalls } from './program-calls.ts'
import type { memoryWorkspace } from './workspace.ts'

/** Node itself, with the interpreter, before the first script. */
const NODE_OVERHEAD_MB = 192
const NODE_TASKS = 64
const START_MS = 10_000
/** An answer of the interpreter's process that says: no more memory. */
const OUT_OF_MEMORY: readonly (number | null)[] = [4, 134, null]

type Worker = Exclude<ProgramFile, 'program-process'>
/** What only a request says about its job; the rest is the same for all. */
type OwnPart =
  | Pick<ScriptJob, 'program' | 'code' | 'fileName' | 'maxCalls' | 'deadlineMs' | 'memoryBytes' | 'args'>
  | Pick<ModuleJob, 'module' | 'maxPages' | 'args'>

interface Interpreted {
  worker: Worker
  job: OwnPart
  /** It may call the step protocol, and has its process for itself. */
  isProgram: boolean
}

type Workspace = ReturnType<typeof memoryWorkspace>

/** The process in which code runs, and what it has not heard of the workspace yet. There is one at a time, for one kind of worker. */
function codeProcess(id: string, limits: SandboxLimits, workspace: Workspace) {
  const children = new Set<ChildProcess>()
  let groups = 0
  let current: { worker: Worker; child: Promise<ChildProcess> } | undefined
  let dirty = new Map<string, Uint8Array | null>()

  async function started(worker: Worker, waitMs: number): Promise<ChildProcess> {
    const group = groups++ === 0 ? id : newOwnedId('wasm')
    const child = await startConfined({
      id: group,
      args: [programUrl(worker).href, String(limits.memoryMb + 64)],
      cgroup: cgroupOf(limits),
    })
    children.add(child)
    // A message to a process that is ending; its end says the rest.
    child.on('error', () => undefined)
    child.once('exit', () => {
      children.delete(child)
      void removeGroup(group)
    })
    const ready = new Promise<void>((resolve, reject) => {
      child.once('message', () => resolve())
      child.once('exit', code => reject(new IsolationError('start_failed', `Its process ended with code ${code}.`)))
    })
    await withDeadline(ready, waitMs, `no interpreter within ${Math.round(waitMs)} ms`).catch((error: unknown) => {
      child.kill('SIGKILL')
      throw error
    })
    return child
  }

  return {
    async of(worker: Worker, waitMs: number): Promise<ChildProcess> {
      if (current !== undefined && current.worker !== worker) {
        const { child } = current
        current = undefined
        await child.then(one => one.kill('SIGKILL')).catch(() => undefined)
      }
      if (current === undefined) {
        // A new process knows no file.
        dirty = new Map(workspace.entries())
        const child = started(worker, waitMs)
        const its = { worker, child }
        current = its
        const forget = () => {
          if (current === its) current = undefined
        }
        child.then(one => one.once('exit', forget), forget)
      }
      return current.child
    },
    /** It takes a moment to die, and gets nothing further meanwhile. */
    kill(child: ChildProcess | undefined): void {
      current = undefined
      child?.kill('SIGKILL')
    },
    noteWritten: (name: string, content: Uint8Array) => void dirty.set(name, content),
    taken(): ChangedFiles {
      const changed = [...dirty]
      dirty = new Map()
      return changed
    },
    async stop(): Promise<void> {
      const gone = [...children].map(child => new Promise(resolve => child.once('exit', resolve)))
      for (const child of children) child.kill('SIGKILL')
      await Promise.all(gone)
    },
  }
}

/** Code of one sandbox, one command at a time. Scripts share a process; a program has its own. */
export function interpreter(
  id: string,
  limits: SandboxLimits,
  workspace: Workspace,
  ports: ReadonlyMap<number, (stream: Duplex) => void>,
) {
  const live = new Set<Command>()
  const code = codeProcess(id, limits, workspace)
  let nextJob = 1
  let turn: Promise<unknown> = Promise.resolve()

  /** Follows one job in its process to the end of its command. */
  async function follow(child: ChildProcess, job: ScriptJob | ModuleJob, request: ExecRequest, command: Command) {
    const calls = programCalls(ports, request.env, (call, status, text) => {
      const answer: ProgramAnswer = { type: 'answer', call, status, text, changed: code.taken() }
      if (child.connected) child.send(answer)
    })
    const listen = (message: FromProgram) => {
      if (message.type === 'ready' || message.id !== job.id || command.isOver()) return
      if (message.type === 'output') return command.receive(message.stream, message.bytes)
      try {
        workspace.put(message.changed)
        if (message.type === 'call') return calls.make(message)
      } catch (error) {
        const full = error instanceof IsolationError && error.limit === 'disk'
        return command.cut(full ? limitExit('disk') : { kind: 'lost', detail: String(error) })
      }
      command.finish(exitOf(message.verdict))
    }
    const gone = (exitCode: number | null) =>
      command.finish(
        OUT_OF_MEMORY.includes(exitCode)
          ? limitExit('memory', 'the interpreter ended')
          : { kind: 'lost', detail: `the interpreter ended with code ${exitCode}` },
      )
    child.on('message', listen)
    child.once('exit', gone)
    child.send(job)
    await command.exec.exit
    calls.close()
    child.off('message', listen)
    child.off('exit', gone)
  }

  return {
    /** Starts the process of scripts, so that the first of them does not wait for it. */
    ready: (deadlineMs: number) => code.of('quickjs-worker', deadlineMs),
    noteWritten: code.noteWritten,
    async exec(request: ExecRequest): Promise<Exec> {
      const { worker, job: own, isProgram } = interpreted(request, limits, workspace)
      const stdin = await inputOf(request)
      let child: ChildProcess | undefined
      const command = startCommand(request, live, () => code.kill(child))
      const mine = turn.then(async () => {
        if (command.isOver()) return
        child = await code.of(worker, START_MS)
        const job: ScriptJob | ModuleJob = {
          ...own,
          type: 'job',
          id: nextJob++,
          env: programEnv(request.env),
          stdin,
          outputBytes: request.outputBytes,
          workspaceBytes: limits.diskMb * 1024 * 1024,
          changed: code.taken(),
        }
        await follow(child, job, request, command)
        if (isProgram) code.kill(child)
      })
      turn = mine.catch((error: unknown) => command.finish({ kind: 'lost', detail: String(error) }))
      return command.exec
    },
    async stop(): Promise<void> {
      for (const command of [...live]) command.cut({ kind: 'lost', detail: 'the sandbox was stopped' })
      await code.stop()
    },
  }
}

/** What a command line asks for; throws for what cannot be started here. */
function interpreted(
  { argv: [kind, first, ...rest], deadlineMs }: ExecRequest,
  limits: SandboxLimits,
  workspace: Workspace,
): Interpreted {
  const refused = (message: string) => new IsolationError('exec_failed', message)
  const content = first === undefined || first === '-e' ? undefined : workspace.get(first)
  if (kind === 'wasi') {
    if (first === undefined || content === undefined) throw refused('wasi needs a module of the workspace.')
    const maxPages = Math.floor((limits.memoryMb * 1024 * 1024) / PAGE_BYTES)
    try {
      const job = { module: capMemory(content, maxPages), maxPages, args: [first, ...rest] }
      return { worker: 'wasi-worker', job, isProgram: true }
    } catch (error) {
      throw error instanceof ModuleRefusedError ? refused(`${first}: ${error.message}`) : error
    }
  }
  if (kind !== 'js' && kind !== 'node')
    throw refused(`${kind} cannot be started: only "js", "node" and "wasi" are here.`)
  const isProgram = kind === 'node'
  const isInline = !isProgram && first === '-e'
  const code = isInline ? rest[0] : content && new TextDecoder().decode(content)
  if (code === undefined)
    throw refused(
      isProgram
        ? `There is no ${first ?? 'file'} in the workspace for node to run.`
        : 'js needs a file of the workspace, or -e and a text.',
    )
  const job = {
    program: isProgram,
    code,
    fileName: isInline ? 'inline.js' : workspace.nameOf(first!),
    maxCalls: MAX_CALLS,
    deadlineMs,
    memoryBytes: limits.memoryMb * 1024 * 1024,
    args: isInline ? rest.slice(1) : rest,
  }
  return { worker: 'quickjs-worker', job, isProgram }
}

function cgroupOf({ memoryMb, diskMb, cpus }: SandboxLimits): CgroupLimits | undefined {
  if (process.getuid?.() !== 0) return undefined
  return {
    memoryBytes: (memoryMb + 2 * diskMb + NODE_OVERHEAD_MB) * 1024 * 1024,
    pids: NODE_TASKS,
    cpuQuota: Math.round(cpus * CPU_PERIOD),
  }
}

/** The step protocol is spoken by the host on a program's behalf; its token stays outside. */
function programEnv(env: ExecRequest['env'] = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('WAYBILL_STEP_')))
}

async function inputOf({ stdin }: ExecRequest): Promise<Uint8Array> {
  if (stdin === undefined) return new Uint8Array()
  return stdin instanceof Uint8Array ? stdin : collect(stdin)
}

const exitOf = (verdict: Verdict): Exit =>
  verdict.kind === 'exited' ? { kind: 'code', code: verdict.code } : limitExit(verdict.limit)
