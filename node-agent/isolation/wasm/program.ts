import { posix } from 'node:path'
import type { QuickJSContext, QuickJSDeferredPromise } from 'quickjs-emscripten-core'
import type { ProgramAnswer, ScriptJob } from './messages.ts'
import { MAX_CALL_PATH, MAX_PATH_CHARACTERS } from './workspace-limits.ts'

/** Above the bound of the step protocol, which says so in its own words. */
const MAX_BODY_CHARACTERS = 8 * 1024 * 1024
const CLIENT = 'waybill'

interface ProgramHost {
  fileOf: (name: string) => string | undefined
  textOf: Parameters<QuickJSContext['newFunction']>[1] extends (...values: infer V) => unknown
    ? (value: V[number] | undefined) => string
    : never
  send: (call: number, method: string, path: string, body: string) => void
}

/** A module in the interpreter, which goes on with each answer until it is settled; `over` gets what it threw, if anything. */
export function startProgram(
  context: QuickJSContext,
  { code, fileName, env, maxCalls }: ScriptJob,
  { fileOf, textOf, send }: ProgramHost,
  describe: (context: QuickJSContext, error: ReturnType<QuickJSContext['newError']>) => string,
  over: (failed: string | undefined) => void,
): (answer: ProgramAnswer) => void {
  const open = new Map<number, QuickJSDeferredPromise>()
  let made = 0
  let done = false
  const end = (failed: string | undefined) => {
    if (!done) over(failed)
    done = true
  }

  context.runtime.setModuleLoader(
    name => {
      if (name === CLIENT) return WAYBILL_MODULE
      const found = fileOf(name)
      if (found !== undefined) return found
      const problem = `there is no ${name} to import: a program under wasm imports 'waybill' and files of its workspace, as './name.js'`
      return { error: new Error(problem) }
    },
    (base, name) => (/^(?:\.{1,2}\/|\/work\/)/.test(name) ? nameIn(name, posix.dirname(base)) : name),
  )
  context
    .newFunction('waybillCall', (method, path, body) => {
      const [text, call] = [textOf(body), ++made]
      if (open.size >= maxCalls) throw new Error(`no more than ${maxCalls} calls may be open`)
      if (text.length > MAX_BODY_CHARACTERS) throw new Error(`a call may carry ${MAX_BODY_CHARACTERS} characters`)
      const [verb, place] = [textOf(method), textOf(path)]
      if (verb.length + place.length > MAX_CALL_PATH)
        throw new Error(`the path of a call is no longer than ${MAX_CALL_PATH} characters`)
      const promise = context.newPromise()
      open.set(call, promise)
      send(call, verb, place, text)
      return promise.handle
    })
    .consume(one => context.setProp(context.global, 'waybillCall', one))
  const globals = context.unwrapResult(context.evalCode(PROGRAM_GLOBALS))
  const given = [context.newString(fileName), context.newString(JSON.stringify(env))]
  context.unwrapResult(context.callFunction(globals, context.undefined, ...given)).dispose()

  const begun = context.evalCode(code, fileName, { type: 'module' })
  if (begun.error) {
    end(describe(context, begun.error))
    return () => undefined
  }
  const whole = begun.value

  function goOn(): void {
    for (;;) {
      const jobs = context.runtime.executePendingJobs()
      if (jobs.error) {
        end(describe(context, jobs.error))
        return
      }
      const state = context.getPromiseState(whole)
      if (state.type === 'rejected') {
        end(describe(context, state.error))
        return
      }
      if (state.type === 'fulfilled' && open.size === 0) {
        end(undefined)
        return
      }
      if (open.size > 0) return
      const stalled = context.getProp(context.global, 'waybillStalled')
      const wakes =
        context.typeof(stalled) === 'function' &&
        context.dump(context.unwrapResult(context.callFunction(stalled, context.undefined))) === true
      if (!wakes) {
        end('Error: the program waits for something that never comes')
        return
      }
    }
  }
  goOn()

  return ({ call, status, text }) => {
    const promise = open.get(call)
    if (promise === undefined || done) return
    open.delete(call)
    const answer = context.newArray()
    context.setProp(answer, 0, context.newNumber(status))
    context.setProp(answer, 1, context.newString(text))
    promise.resolve(answer)
    goOn()
  }
}

/** The name of a file of the workspace; throws for what is outside. */
export function nameIn(path: string, folder = '.'): string {
  const name = posix.relative('/work', posix.resolve('/work', folder, path))
  if (name === '' || name === '..' || name.startsWith('../') || path.includes('\0'))
    throw new Error(`${JSON.stringify(path.slice(0, MAX_PATH_CHARACTERS))} is no file of the workspace /work`)
  if (name.length > MAX_PATH_CHARACTERS) throw new Error(`a path is longer than ${MAX_PATH_CHARACTERS} characters`)
  return name
}

/**
 * The client of the step protocol for programs in the interpreter, with the names of `guest/clients/waybill.js`. There is one
 * host function below it, and no timer or network beside it: a program that waits while no call is open waits for ever.
 */
const WAYBILL_MODULE = `
const ask = globalThis.waybillCall
delete globalThis.waybillCall
const waiting = []
let busy = false
let inFunction = false
let open = 0

export class CallError extends Error {
  constructor(message, code, status) {
    super(message)
    this.name = 'CallError'
    this.code = code
    this.status = status
  }
}

async function send(method, path, body) {
  const [status, text] = await ask(method, path, body === undefined ? '' : JSON.stringify(body))
  const answer = JSON.parse(text)
  if (status === 200) return answer
  throw new CallError(answer.error, answer.code, status)
}

const nested = () => new CallError('the function of a step makes no calls of its own', 'refused', 409)

function inOrder(make) {
  if (inFunction) return Promise.reject(nested())
  return new Promise((resolve, reject) => {
    waiting.push({ make, resolve, reject, during: open > 0 })
    next()
  })
}

function next() {
  if (busy || waiting.length === 0) return
  busy = true
  const { make, resolve, reject } = waiting.shift()
  make().then(resolve, reject).then(() => {
    busy = false
    next()
  })
}

/** Nothing can go on: a call that was made while a step is open is one of its function, which waits for it. */
globalThis.waybillStalled = () => {
  const at = waiting.findLastIndex(one => one.during)
  if (at < 0) return false
  waiting.splice(at, 1)[0].reject(nested())
  return true
}

async function called(make, now) {
  open++
  try {
    let result
    inFunction = true
    try {
      result = make(now)
    } finally {
      inFunction = false
    }
    return await result
  } finally {
    open--
  }
}

async function made({ stepId, attempt, idempotencyKey }, make) {
  let now = { attempt, idempotencyKey }
  for (;;) {
    let output
    try {
      output = await called(make, now)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      const transient = typeof error === 'object' && error !== null && error.transient === true
      const after = await send('POST', '/v0/steps/' + stepId + '/fail', { error: message.slice(0, 10000), transient })
      if (!after.retry) throw error
      now = { attempt: after.attempt, idempotencyKey: after.idempotencyKey }
      continue
    }
    await send('POST', '/v0/steps/' + stepId + '/complete', { output })
    return output
  }
}

export const input = async () => (await send('GET', '/v0/input')).input
export const given = () => send('GET', '/v0/input')
export const step = (name, input, make, { effect } = {}) => {
  const [about, act] = typeof input === 'function' ? [undefined, input] : [input, make]
  return inOrder(async () => {
    const begun = await send('POST', '/v0/steps', { name, input: about, effect })
    return begun.cached ? begun.output : made(begun, act)
  })
}
export const model = asked => inOrder(() => send('POST', '/v0/model', typeof asked === 'string' ? { prompt: asked } : asked))
export const tool = (name, about = {}) =>
  inOrder(async () => (await send('POST', '/v0/tool', { name, arguments: about })).output)
export const approval = prompt => inOrder(() => send('POST', '/v0/approval', { prompt }))
export const sleep = time =>
  inOrder(() => send('POST', '/v0/sleep', time instanceof Date ? { until: time.toISOString() } : { seconds: time }))
export const finish = output => inOrder(() => send('POST', '/v0/finish', { output }))
`

/** What a program finds beside the functions of a script. */
const PROGRAM_GLOBALS = `(fileName, env) => {
  const word = value =>
    value instanceof Error ? value.name + ': ' + value.message
    : typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)
  const say = to => (...values) => to(values.map(word).join(' '))
  const [log, error] = [say(print), say(printError)]
  globalThis.console = { log, info: log, debug: log, warn: error, error }
  globalThis.process = { argv: ['node', fileName, ...args], env: JSON.parse(env) }
}`
