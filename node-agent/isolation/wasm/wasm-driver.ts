import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import type { Duplex } from 'node:stream'
import { byteQueue, collect } from '../byte-queue.ts'
import {
  type Driver,
  type Exec,
  type ExecRequest,
  type Exit,
  IsolationError,
  type LimitName,
  type Probe,
  type Reaped,
  type Sandbox,
  type SandboxLimits,
} from '../driver.ts'
import { type CgroupLimits, CPU_PERIOD, listGroups, removeGroup } from '../oci/cgroups.ts'
import { isOrphan, newOwnedId } from '../owned-id.ts'
import { withDeadline } from '../with-deadline.ts'
import { programUrl, startConfined } from './confined-process.ts'
import type {
  ChangedFiles,
  FromScripts,
  FromWasi,
  ScriptAnswer,
  ScriptJob,
  ScriptVerdict,
  WasiJob,
} from './messages.ts'
import { capMemory, ModuleRefusedError, PAGE_BYTES } from './module-memory.ts'
import { MAX_CALLS, programCalls } from './program-calls.ts'
import { memoryWorkspace } from './workspace.ts'

/** Node itself, with the interpreter, before the first script. */
const NODE_OVERHEAD_MB = 192
const NODE_TASKS = 64
const START_MS = 10_000
/** How long the engine has to notice its own deadline before the process is killed. */
const GRACE_MS = 250
const KERNEL = `wasm-v8-${process.versions.v8}`

const DETAIL: Record<string, string> = {
  memory: 'no more memory could be had',
  stack: 'the stack is used up',
  time: 'it ran out of time',
  output: 'too much output',
  disk: 'the workspace is full',
}
const limitExit = (limit: LimitName, detail = DETAIL[limit] ?? limit): Exit => ({ kind: 'limit', limit, detail })

/**
 * Functions without an operating system around them. `exec` takes `js <file> …`, `js -e <code> …`,
 * `wasi <file.wasm> …`, and `node <file> …` for a program: a module that calls the step protocol as `waybill`. Scripts see `args`, `stdin`, `print`, `printError`, `readFile`, `writeFile`, `listFiles`, and
 * programs see their arguments, their input and their output.
 */
export function wasmDriver(): Driver {
  const open = new Set<Sandbox>()

  const cgroupOf = ({ memoryMb, diskMb, cpus }: SandboxLimits): CgroupLimits | undefined =>
    process.getuid?.() === 0
      ? {
          memoryBytes: (memoryMb + 2 * diskMb + NODE_OVERHEAD_MB) * 1024 * 1024,
          pids: NODE_TASKS,
          cpuQuota: Math.round(cpus * CPU_PERIOD),
        }
      : undefined

  async function start(limits: SandboxLimits, deadlineMs: number): Promise<Sandbox> {
    const id = newOwnedId('wasm')
    const workspace = memoryWorkspace(limits.diskMb * 1024 * 1024)
    const { promise: ended, resolve: end } = Promise.withResolvers<string>()
    const live = new Set<(exit: Exit) => void>()
    const children = new Set<ChildProcess>()
    let stopped = false
    let groups = 0
    let scripts: Promise<ChildProcess> | undefined
    let dirty = new Map<string, Uint8Array | null>()
    let nextJob = 1
    const ports = new Map<number, (stream: Duplex) => void>()
    /** Scripts take turns: one interpreter, one script at a time. */
    let turn: Promise<unknown> = Promise.resolve()

    async function confined(program: 'script-process' | 'wasi-process', waitMs: number): Promise<ChildProcess> {
      const group = groups++ === 0 ? id : newOwnedId('wasm')
      const isScript = program === 'script-process'
      const child = await startConfined({
        id: group,
        program,
        args: isScript ? [programUrl('quickjs-worker').href, String(limits.memoryMb + 64)] : [],
        flags: isScript ? ['--allow-worker'] : ['--allow-wasi'],
        stdio: isScript ? 'ignore' : 'pipe',
        cgroup: cgroupOf(limits),
      })
      children.add(child)
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

    function scriptProcess(waitMs: number): Promise<ChildProcess> {
      if (scripts === undefined) {
        // A new interpreter knows no file.
        dirty = new Map(workspace.entries())
        const coming = confined('script-process', waitMs)
        scripts = coming
        const forget = () => {
          if (scripts === coming) scripts = undefined
        }
        coming.then(child => child.once('exit', forget), forget)
      }
      return scripts
    }

    /** Output, caps, deadline and end of one command, whatever runs it. */
    function command({ deadlineMs, outputBytes }: ExecRequest, kill: () => void) {
      const queues = { stdout: byteQueue(), stderr: byteQueue() }
      const { promise: exit, resolve } = Promise.withResolvers<Exit>()
      let bytes = 0
      let done = false
      const finish = (result: Exit) => {
        if (done) return
        done = true
        clearTimeout(late)
        live.delete(cut)
        queues.stdout.end()
        queues.stderr.end()
        resolve(result)
      }
      const cut = (result: Exit) => {
        if (done) return
        finish(result)
        kill()
      }
      const late = setTimeout(
        () => cut(limitExit('time', `still running after ${deadlineMs} ms`)),
        deadlineMs + GRACE_MS,
      )
      live.add(cut)
      const receive = (stream: 'stdout' | 'stderr', chunk: Uint8Array) => {
        if (done) return
        const room = outputBytes - bytes
        bytes += chunk.length
        if (room > 0) queues[stream].push(chunk.length > room ? chunk.slice(0, room) : chunk)
        if (chunk.length > room) cut(limitExit('output', `more than ${outputBytes} bytes of output`))
      }
      const exec: Exec = {
        stdout: queues.stdout.chunks,
        stderr: queues.stderr.chunks,
        exit,
        signal: name => {
          if (constants.signals[name] !== undefined) cut({ kind: 'signal', signal: name })
        },
      }
      return { exec, receive, finish, cut, over: () => done }
    }

    /** What the interpreter has not heard of yet. */
    function taken(): ChangedFiles {
      const changed = [...dirty]
      dirty = new Map()
      return changed
    }

    async function execScript(request: ExecRequest): Promise<Exec> {
      const [kind, first, second, ...rest] = request.argv
      const program = kind === 'node'
      const inline = !program && first === '-e'
      const content = inline ? undefined : first === undefined ? undefined : workspace.get(first)
      const code = inline ? second : content && new TextDecoder().decode(content)
      if (code === undefined)
        throw new IsolationError(
          'exec_failed',
          program
            ? `There is no ${first ?? 'file'} in the workspace for node to run.`
            : 'js needs a file of the workspace, or -e and a text.',
        )
      const stdin = await inputOf(request)
      let child: ChildProcess | undefined
      const { exec, receive, finish, cut, over } = command(request, () => {
        // It takes a moment to die, and must get no further script meanwhile.
        scripts = undefined
        child?.kill('SIGKILL')
      })
      const mine = turn.then(async () => {
        if (over()) return
        child = await scriptProcess(START_MS)
        const job: ScriptJob = {
          type: 'job',
          id: nextJob++,
          program,
          code,
          env: scriptEnv(request.env),
          maxCalls: MAX_CALLS,
          fileName: inline ? 'inline.js' : workspace.nameOf(first!),
          args: inline ? rest : second === undefined ? [] : [second, ...rest],
          stdin,
          deadlineMs: request.deadlineMs,
          memoryBytes: limits.memoryMb * 1024 * 1024,
          outputBytes: request.outputBytes,
          workspaceBytes: limits.diskMb * 1024 * 1024,
          changed: taken(),
        }
        const its = child
        const calls = programCalls(ports, request.env, (call, status, text) => {
          const answer: ScriptAnswer = { type: 'answer', call, status, text, changed: taken() }
          if (its.connected) its.send(answer)
        })
        const listen = (message: FromScripts) => {
          if (message.type === 'ready' || message.id !== job.id || over()) return
          if (message.type === 'output') return receive(message.stream, message.bytes)
          try {
            for (const [name, bytes] of message.changed) if (bytes !== null) workspace.write(name, bytes)
            if (message.type === 'call') return calls.make(message)
          } catch (error) {
            const full = error instanceof IsolationError && error.limit === 'disk'
            return cut(full ? limitExit('disk') : { kind: 'lost', detail: String(error) })
          }
          finish(exitOf(message.verdict))
        }
        const gone = (code: number | null) =>
          finish(
            code === 4 || code === 134 || code === null
              ? limitExit('memory', 'the interpreter ended')
              : { kind: 'lost', detail: `the interpreter ended with code ${code}` },
          )
        child.on('message', listen)
        child.once('exit', gone)
        child.send(job)
        await exec.exit
        calls.close()
        child.off('message', listen)
        child.off('exit', gone)
        if (!program) return
        // It had the interpreter for itself.
        scripts = undefined
        child.kill('SIGKILL')
      })
      turn = mine.catch((error: unknown) => finish({ kind: 'lost', detail: String(error) }))
      return exec
    }

    async function execWasi(request: ExecRequest): Promise<Exec> {
      const [, path, ...args] = request.argv
      const bytes = path === undefined ? undefined : workspace.get(path)
      if (bytes === undefined) throw new IsolationError('exec_failed', 'wasi needs a module of the workspace.')
      const maxPages = Math.floor((limits.memoryMb * 1024 * 1024) / PAGE_BYTES)
      let module: Uint8Array
      try {
        module = capMemory(bytes, maxPages)
      } catch (error) {
        if (!(error instanceof ModuleRefusedError)) throw error
        throw new IsolationError('exec_failed', `${path}: ${error.message}`)
      }
      const stdin = await inputOf(request)
      const child = await confined('wasi-process', START_MS)
      const { exec, receive, finish } = command(request, () => child.kill('SIGKILL'))
      let result: Exit | undefined
      child.stdout!.on('data', chunk => receive('stdout', chunk))
      child.stderr!.on('data', chunk => receive('stderr', chunk))
      child.stdin!.on('error', () => undefined)
      child.on('message', (message: FromWasi) => {
        if (message.type === 'ready') return
        const failed = message.trap !== undefined || message.code !== 0
        // A refused growth is seen only by the program; one that then fails with its memory all but used up met the limit.
        if (failed && message.pages * 4 >= maxPages * 3) result = limitExit('memory')
        else if (/call stack/.test(message.trap ?? '')) result = limitExit('stack')
        else if (message.trap !== undefined) {
          receive('stderr', new TextEncoder().encode(`${message.trap}\n`))
          result = { kind: 'code', code: 134 }
        } else result = { kind: 'code', code: message.code }
      })
      child.once('close', () => finish(result ?? { kind: 'lost', detail: 'the process of the program ended' }))
      const job: WasiJob = { module, args: [path!, ...args], env: { ...request.env }, maxPages }
      child.send(job)
      child.stdin!.end(stdin)
      return exec
    }

    const sandbox: Sandbox = {
      id,
      backend: 'wasm',
      kernelRelease: KERNEL,
      ended,
      async exec(request) {
        if (stopped) throw new IsolationError('exec_failed', 'The sandbox was stopped.')
        if (request.argv[0] === 'js' || request.argv[0] === 'node') return execScript(request)
        if (request.argv[0] === 'wasi') return execWasi(request)
        throw new IsolationError(
          'exec_failed',
          `${request.argv[0]} cannot be started: only "js", "node" and "wasi" are here.`,
        )
      },
      async writeFile(path, content) {
        dirty.set(workspace.write(path, content), content)
      },
      readFile: async (path, maxBytes) => workspace.read(path, maxBytes),
      listFiles: async path => workspace.list(path),
      archive: {
        pack: () => workspace.packed(),
        async unpack(chunks) {
          for (const name of workspace.unpack(await collect(chunks))) dirty.set(name, workspace.get(name)!)
        },
      },
      async serve(port, accept) {
        ports.set(port, accept)
      },
      async snapshot() {
        throw new IsolationError('unsupported', 'A wasm sandbox cannot be snapshotted.')
      },
      async stop() {
        stopped = true
        open.delete(sandbox)
        for (const cut of [...live]) cut({ kind: 'lost', detail: 'the sandbox was stopped' })
        const gone = [...children].map(child => new Promise(resolve => child.once('exit', resolve)))
        for (const child of children) child.kill('SIGKILL')
        await Promise.all(gone)
        await removeGroup(id)
        end('the sandbox was stopped')
      },
    }
    await scriptProcess(deadlineMs)
    open.add(sandbox)
    return sandbox
  }

  async function probe(deadlineMs: number): Promise<Probe> {
    const limits = { memoryMb: 16, cpus: 1, pids: 1, diskMb: 1 }
    const about = { backend: 'wasm' as const, version: `Node ${process.versions.node}` }
    try {
      const sandbox = await start(limits, deadlineMs)
      try {
        const run = (code: string) =>
          sandbox.exec({ argv: ['js', '-e', code], deadlineMs: Math.min(1000, deadlineMs), outputBytes: 1000 })
        const sum = await run('print([typeof process, typeof require, 6 * 7].join())')
        const said = new TextDecoder().decode(await collect(sum.stdout)).trim()
        if (said !== 'undefined,undefined,42')
          return { ...about, available: false, reasons: [`A script said ${said}.`], install: [] }
        const loop = await sandbox.exec({ argv: ['js', '-e', 'for (;;);'], deadlineMs: 50, outputBytes: 10 })
        const exit = await loop.exit
        if (exit.kind !== 'limit')
          return { ...about, available: false, reasons: ['An endless script was not ended.'], install: [] }
        return {
          ...about,
          available: true,
          verifiedBy: 'ran a script in a confined process, and ended one that would not end',
          reasons: [],
          install: [],
        }
      } finally {
        await sandbox.stop()
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      return { ...about, available: false, reasons: [reason], install: ['Run the node with Node 24 or newer.'] }
    }
  }

  return {
    backend: 'wasm',
    probe,
    async prepare() {},
    start,
    async restore() {
      throw new IsolationError('unsupported', 'A wasm sandbox cannot be restored.')
    },
    async reap() {
      const reaped: Reaped[] = []
      for (const id of (await listGroups()).filter(id => isOrphan(id, 'wasm'))) {
        await removeGroup(id)
        reaped.push({ backend: 'wasm', id })
      }
      return reaped
    },
    async close() {
      await Promise.all([...open].map(sandbox => sandbox.stop()))
    },
  }
}

/** The step protocol is spoken by the host on a program's behalf; its token stays outside. */
function scriptEnv(env: ExecRequest['env'] = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('WAYBILL_STEP_')))
}

async function inputOf({ stdin }: ExecRequest): Promise<Uint8Array> {
  if (stdin === undefined) return new Uint8Array()
  return stdin instanceof Uint8Array ? stdin : collect(stdin)
}

function exitOf(verdict: ScriptVerdict): Exit {
  if (verdict.kind === 'done') return { kind: 'code', code: 0 }
  return verdict.kind === 'threw' ? { kind: 'code', code: 1 } : limitExit(verdict.limit)
}
