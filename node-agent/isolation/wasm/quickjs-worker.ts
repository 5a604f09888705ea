import { parentPort } from 'node:worker_threads'
import { newQuickJSWASMModuleFromVariant, type QuickJSContext, type QuickJSHandle } from 'quickjs-emscripten-core'
import type { FromProgram, ProgramAnswer, ScriptJob, Verdict } from './messages.ts'
import { nameIn, startProgram } from './program.ts'
import { cappedOutput, MAX_FILES } from './workspace-limits.ts'

/** On the main thread deep recursion reached the end of the host's stack and ended the process; here it is an error. */
const STACK_BYTES = 128 * 1024

const files = new Map<string, Uint8Array>()
const encoder = new TextEncoder()
const decoder = new TextDecoder()
const say = (message: FromProgram) => parentPort!.postMessage(message)
const quickjs = await newQuickJSWASMModuleFromVariant(import('@jitl/quickjs-wasmfile-release-sync'))

/** Goes on with the program that waits for an answer; a program has its interpreter for itself. */
let answered: (answer: ProgramAnswer) => void = () => undefined

parentPort!.on('message', (message: ScriptJob | ProgramAnswer) => {
  for (const [path, content] of message.changed) content === null ? files.delete(path) : files.set(path, content)
  if (message.type === 'answer') return answered(message)
  const changed = new Map<string, Uint8Array | null>()
  if (message.program) return program(message, changed)
  say({ type: 'end', id: message.id, verdict: run(message, changed), changed: [...changed] })
})
say({ type: 'ready' })

/** One script, from its beginning to its end. */
function run(job: ScriptJob, changed: Map<string, Uint8Array | null>): Verdict {
  const { context, runtime, toJson, verdict } = interpreter(job, changed)
  try {
    const failed = evaluate(context, job)
    toJson.dispose()
    return verdict(failed)
  } finally {
    // After a script that used up its memory the engine may not be able to count what it frees; its memory is dropped
    // with it all the same.
    try {
      context.dispose()
      runtime.dispose()
    } catch {
      process.exit(3)
    }
  }
}

/** A program ends when it is settled. What it leaves behind is not freed here: its process ends with it. */
function program(job: ScriptJob, changed: Map<string, Uint8Array | null>): void {
  const { context, textOf, verdict } = interpreter(job, changed)
  const taken = () => {
    const now = [...changed]
    changed.clear()
    return now
  }
  const end = (failed: string | undefined) =>
    say({ type: 'end', id: job.id, verdict: verdict(failed), changed: taken() })
  try {
    const next = startProgram(
      context,
      job,
      {
        fileOf: name => {
          const content = files.get(name)
          return content && decoder.decode(content)
        },
        textOf,
        send: (call, method, path, body) =>
          say({ type: 'call', id: job.id, call, method, path, body, changed: taken() }),
      },
      describe,
      end,
    )
    answered = answer => {
      try {
        next(answer)
      } catch (error) {
        end(String(error))
      }
    }
  } catch (error) {
    end(String(error))
  }
}

/** A runtime of its own: nothing but what is given here is in reach. */
function interpreter(job: ScriptJob, changed: Map<string, Uint8Array | null>) {
  const until = performance.now() + job.deadlineMs
  let limit: 'time' | 'output' | 'disk' | undefined
  const put = cappedOutput(say, job)
  const runtime = quickjs.newRuntime()
  runtime.setMemoryLimit(job.memoryBytes)
  runtime.setMaxStackSize(STACK_BYTES)
  runtime.setInterruptHandler(() => {
    if (performance.now() > until) limit ??= 'time'
    return limit === 'time' || limit === 'output'
  })
  const context = runtime.newContext()
  const define = (name: string, value: QuickJSHandle) =>
    value.consume(one => context.setProp(context.global, name, one))
  const hostFunction = (name: string, call: (...values: QuickJSHandle[]) => QuickJSHandle | undefined) =>
    define(
      name,
      context.newFunction(name, (...values) => call(...values) ?? context.undefined),
    )
  const toJson = context.unwrapResult(context.evalCode('JSON.stringify'))
  /** A text crosses as a C string, which a NUL ends: one that came short crosses again as JSON. */
  const textOf = (value: QuickJSHandle | undefined): string => {
    if (value === undefined) return ''
    const text = context.getString(value)
    if (context.typeof(value) !== 'string') return text
    const length = context.getProp(value, 'length').consume(one => context.getNumber(one))
    if (length === text.length) return text
    const json = context.unwrapResult(context.callFunction(toJson, context.undefined, value))
    return String(JSON.parse(json.consume(one => context.getString(one))))
  }
  const print =
    (stream: 'stdout' | 'stderr') =>
    (...values: QuickJSHandle[]) => {
      if (limit === 'output') return undefined
      if (put(stream, encoder.encode(`${values.map(textOf).join(' ')}\n`))) limit ??= 'output'
      return undefined
    }
  hostFunction('print', print('stdout'))
  hostFunction('printError', print('stderr'))
  hostFunction('readFile', path => {
    const content = files.get(textOf(path))
    return content === undefined ? context.null : stringOf(context, decoder.decode(content))
  })
  hostFunction('listFiles', () => listOf(context, [...files.keys()]))
  hostFunction('writeFile', (path, content) => {
    const [name, bytes] = [nameIn(textOf(path)), encoder.encode(textOf(content))]
    const others = [...files].reduce((sum, [at, { length }]) => sum + (at === name ? 0 : length), 0)
    if (others + bytes.length > job.workspaceBytes || (files.size >= MAX_FILES && !files.has(name))) {
      limit ??= 'disk'
      throw new Error('the workspace is full')
    }
    files.set(name, bytes)
    changed.set(name, bytes)
    return undefined
  })
  define('args', listOf(context, job.args))
  define('stdin', stringOf(context, decoder.decode(job.stdin)))
  const verdict = (failed: string | undefined): Verdict => {
    if (limit === 'time' || limit === 'output') return { kind: 'limit', limit }
    if (failed === undefined) return { kind: 'exited', code: 0 }
    if (/^InternalError: out of memory/.test(failed)) return { kind: 'limit', limit: 'memory' }
    if (/^(?:InternalError|RangeError): .*stack (?:overflow|size)/.test(failed))
      return { kind: 'limit', limit: 'stack' }
    if (limit === 'disk') return { kind: 'limit', limit }
    if (put('stderr', encoder.encode(`${failed}\n`))) return { kind: 'limit', limit: 'output' }
    return { kind: 'exited', code: 1 }
  }
  return { context, runtime, toJson, textOf, verdict }
}

/** Evaluates the script and what it left to do later; answers what it threw. */
function evaluate(context: QuickJSContext, { code, fileName }: ScriptJob): string | undefined {
  const result = context.evalCode(code, fileName)
  if (result.error) return describe(context, result.error)
  result.value.dispose()
  const jobs = context.runtime.executePendingJobs()
  if (jobs.error) return describe(context, jobs.error)
  return undefined
}

function describe(context: QuickJSContext, error: QuickJSHandle): string {
  const dumped: unknown = context.dump(error)
  error.dispose()
  if (typeof dumped !== 'object' || dumped === null) return String(dumped)
  const { name, message } = dumped as { name?: unknown; message?: unknown }
  return `${name ?? 'Error'}: ${message ?? ''}`
}

const stringOf = (context: QuickJSContext, text: string): QuickJSHandle =>
  text.includes('\0') ? context.unwrapResult(context.evalCode(JSON.stringify(text))) : context.newString(text)

function listOf(context: QuickJSContext, texts: readonly string[]): QuickJSHandle {
  const list = context.newArray()
  for (const [index, text] of texts.entries()) stringOf(context, text).consume(one => context.setProp(list, index, one))
  return list
}
