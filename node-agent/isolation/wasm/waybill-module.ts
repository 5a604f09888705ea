/**
 * The client of the step protocol for programs in the interpreter, with the names of `guest/clients/waybill.js`. There is one
 * host function below it, and no timer or network beside it: a program that waits while no call is open waits for ever.
 */
export const WAYBILL_MODULE = `
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
export const PROGRAM_GLOBALS = `(fileName, env) => {
  const word = value =>
    value instanceof Error ? value.name + ': ' + value.message
    : typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)
  const say = to => (...values) => to(values.map(word).join(' '))
  const [log, error] = [say(print), say(printError)]
  globalThis.console = { log, info: log, debug: log, warn: error, error }
  globalThis.process = { argv: ['node', fileName, ...args], env: JSON.parse(env) }
}`
