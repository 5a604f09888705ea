// The thread in which one WASI program runs. All of its world is in this thread's memory, and the calls that it makes wait here.

import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { Fd, WASI, WASIProcExit, wasi } from '@bjorn3/browser_wasi_shim'
import type { ChangedFiles, FromProgram, ModuleJob, ProgramAnswer, Verdict } from './messages.ts'
import { boundedCalls, type WasiCalls, wasiFiles } from './wasi-files.ts'
import { cappedOutput, LimitMet, MAX_CALL_PATH } from './workspace-limits.ts'

/** Above the bound of the step protocol, which says so in its own words. */
const MAX_BODY_BYTES = 8 * 1024 * 1024
const PAGE_BYTES = 65_536
const TRAPPED = 134

const sent = workerData as Int32Array
const port = parentPort!
const say = (message: FromProgram) => port.postMessage(message)
const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Standard input: bytes, then the end. */
class Input extends Fd {
  #rest: Uint8Array
  constructor(bytes: Uint8Array) {
    super()
    this.#rest = bytes
  }
  override fd_fdstat_get() {
    return { ret: wasi.ERRNO_SUCCESS, fdstat: new wasi.Fdstat(wasi.FILETYPE_CHARACTER_DEVICE, 0) }
  }
  override fd_read(size: number) {
    const data = this.#rest.subarray(0, size)
    this.#rest = this.#rest.subarray(data.length)
    return { ret: wasi.ERRNO_SUCCESS, data }
  }
}

class Output extends Fd {
  readonly #write: (bytes: Uint8Array) => void
  constructor(write: (bytes: Uint8Array) => void) {
    super()
    this.#write = write
  }
  override fd_fdstat_get() {
    return { ret: wasi.ERRNO_SUCCESS, fdstat: new wasi.Fdstat(wasi.FILETYPE_CHARACTER_DEVICE, 0) }
  }
  override fd_write(data: Uint8Array) {
    this.#write(data)
    return { ret: wasi.ERRNO_SUCCESS, nwritten: data.length }
  }
}

async function run(job: ModuleJob): Promise<void> {
  const put = cappedOutput(say, job)
  const output = (stream: 'stdout' | 'stderr') => (bytes: Uint8Array) => {
    if (put(stream, bytes)) throw new LimitMet('output')
  }
  const fds: Fd[] = [new Input(job.stdin), new Output(output('stdout')), new Output(output('stderr'))]
  const files = wasiFiles(job.workspaceBytes, fds)
  files.put(job.changed)
  fds.push(files.root)
  const env = Object.entries(job.env).map(([name, value]) => `${name}=${value}`)
  const system = new WASI(job.args, env, fds, { debug: false })
  let memory: WebAssembly.Memory | undefined
  const memoryOf = () => {
    if (memory === undefined) throw new Error('the module exports no memory')
    return memory
  }
  let verdict: Verdict
  try {
    const compiled = await WebAssembly.compile(new Uint8Array(job.module))
    const instance = await WebAssembly.instantiate(compiled, {
      wasi_snapshot_preview1: {
        ...boundedCalls(system.wasiImport as WasiCalls, fds, files, memoryOf),
        ...mended(job.args, memoryOf),
      },
      waybill: calls(job.id, files, memoryOf),
    })
    if (instance.exports.memory instanceof WebAssembly.Memory) memory = instance.exports.memory
    if (typeof instance.exports._start !== 'function') throw new Error('the module has no _start: it is no command')
    const code = system.start(instance as Parameters<typeof system.start>[0])
    verdict = { kind: 'exited', code }
  } catch (error) {
    verdict = verdictOf(error, put)
  }
  // A refused growth is seen only by the program; one that then fails with its memory all but used up met the limit.
  const pages = (memory?.buffer.byteLength ?? 0) / PAGE_BYTES
  if (verdict.kind === 'exited' && verdict.code !== 0 && pages * 4 >= job.maxPages * 3)
    verdict = { kind: 'limit', limit: 'memory' }
  let changed: ChangedFiles = []
  try {
    changed = files.taken()
  } catch (error) {
    verdict = verdictOf(error, put)
  }
  say({ type: 'end', id: job.id, verdict, changed })
}

function verdictOf(error: unknown, put: ReturnType<typeof cappedOutput>): Verdict {
  if (error instanceof WASIProcExit) return { kind: 'exited', code: error.code }
  if (error instanceof LimitMet) return { kind: 'limit', limit: error.limit }
  const text = error instanceof Error ? error.message : String(error)
  if (/call stack/.test(text)) return { kind: 'limit', limit: 'stack' }
  put('stderr', encoder.encode(`${text}\n`))
  return { kind: 'exited', code: TRAPPED }
}

/** The library counts characters where bytes are asked for, and reads a subscription otherwise than it is laid out. */
const mended = (args: readonly string[], memory: () => WebAssembly.Memory): WasiCalls => ({
  args_sizes_get(countAt, sizeAt) {
    const view = new DataView(memory().buffer)
    const bytes = args.reduce((sum, one) => sum + encoder.encode(one).length + 1, 0)
    view.setUint32(Number(countAt), args.length, true)
    view.setUint32(Number(sizeAt), bytes, true)
    return wasi.ERRNO_SUCCESS
  },
  poll_oneoff: (...values) => poll(new DataView(memory().buffer), values.map(Number)),
})

/**
 * The step protocol for a program that can wait: `call` gives the status, and its answer is then taken with `answer_size` and
 * `answer`. A call without a body is a GET.
 */
function calls(id: number, files: ReturnType<typeof wasiFiles>, memory: () => WebAssembly.Memory) {
  let made = 0
  let answer: Uint8Array = new Uint8Array()
  const textAt = (at: number, length: number) => decoder.decode(new Uint8Array(memory().buffer, at >>> 0, length >>> 0))
  return {
    call(pathAt: number, pathLength: number, bodyAt: number, bodyLength: number): number {
      if (pathLength >>> 0 > MAX_CALL_PATH)
        throw new Error(`the path of a call is no longer than ${MAX_CALL_PATH} bytes`)
      if (bodyLength >>> 0 > MAX_BODY_BYTES) throw new Error(`a call may carry ${MAX_BODY_BYTES} bytes`)
      const call = ++made
      const method = bodyLength === 0 ? 'GET' : 'POST'
      const [path, body] = [textAt(pathAt, pathLength), textAt(bodyAt, bodyLength)]
      say({ type: 'call', id, call, method, path, body, changed: files.taken() })
      const { status, text, changed } = answerTo(call)
      files.put(changed)
      answer = encoder.encode(text)
      return status
    },
    answer_size: (): number => answer.length,
    answer(at: number): void {
      new Uint8Array(memory().buffer, at >>> 0, answer.length).set(answer)
    },
  }
}

function answerTo(call: number): ProgramAnswer {
  for (;;) {
    const seen = Atomics.load(sent, 0)
    const received: { message: ProgramAnswer } | undefined = receiveMessageOnPort(port)
    if (received === undefined) Atomics.wait(sent, 0, seen)
    else if (received.message.call === call) return received.message
  }
}

// It listens on after its one job: a thread that has ended would take its process with it before its last word is out.
port.on('message', (job: ModuleJob) => void run(job))
say({ type: 'ready' })

const SUBSCRIPTION_BYTES = 48
const EVENT_BYTES = 32
const never = new Int32Array(new SharedArrayBuffer(4))

/** `poll_oneoff` of preview 1: files and streams are always ready, and a clock is waited for by sleeping. */
function poll(memory: DataView, [inAt = 0, outAt = 0, count = 0, readyAt = 0]: readonly number[]): number {
  if (count === 0) return wasi.ERRNO_INVAL
  const asked = Array.from({ length: count }, (_, index) => subscription(memory, inAt + index * SUBSCRIPTION_BYTES))
  if (asked.every(({ type }) => type === wasi.EVENTTYPE_CLOCK)) {
    const soonest = Math.min(...asked.map(({ msLeft }) => msLeft()))
    if (soonest > 0) Atomics.wait(never, 0, 0, soonest)
  }
  const ready = asked.filter(({ type, msLeft }) => type !== wasi.EVENTTYPE_CLOCK || msLeft() <= 0)
  // A timer may wake a moment early, and an answer without an event is none.
  for (const [index, one] of (ready.length > 0 ? ready : asked.slice(0, 1)).entries()) {
    const at = outAt + index * EVENT_BYTES
    for (let word = 0; word < EVENT_BYTES; word += 8) memory.setBigUint64(at + word, 0n, true)
    memory.setBigUint64(at, one.userdata, true)
    memory.setUint8(at + 10, one.type)
    if (one.type !== wasi.EVENTTYPE_CLOCK) memory.setBigUint64(at + 16, 1n, true)
  }
  memory.setUint32(readyAt, Math.max(ready.length, 1), true)
  return wasi.ERRNO_SUCCESS
}

function subscription(memory: DataView, at: number) {
  const [clock, flags] = [memory.getUint32(at + 16, true), memory.getUint16(at + 40, true)]
  const now = () => (clock === wasi.CLOCKID_REALTIME ? Date.now() : performance.now())
  const time = Number(memory.getBigUint64(at + 24, true)) / 1e6
  const until = (flags & wasi.SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME) !== 0 ? time : now() + time
  return { userdata: memory.getBigUint64(at, true), type: memory.getUint8(at + 8), msLeft: () => until - now() }
}
