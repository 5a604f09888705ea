import { posix } from 'node:path'
import type { QuickJSContext, QuickJSDeferredPromise } from 'quickjs-emscripten-core'
import type { ProgramAnswer, ScriptJob } from './messages.ts'
import { PROGRAM_GLOBALS, WAYBILL_MODULE } from './waybill-module.ts'
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
