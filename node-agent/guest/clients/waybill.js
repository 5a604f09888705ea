// The client of the step protocol for programs in a sandbox, for Node 18 and later: require('waybill') or import 'waybill'.
const { AsyncLocalStorage } = require('node:async_hooks')
const http = require('node:http')

const inStep = new AsyncLocalStorage()
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
let last = Promise.resolve()

/** What a call answered that did not work. Uncaught, it ends the run with the code of what failed. */
class CallError extends Error {
  constructor(message, code, status) {
    super(message)
    this.name = 'CallError'
    this.code = code
    this.status = status
  }
}

function send(method, path, body) {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? '' : JSON.stringify(body)
    const headers = {
      authorization: `Bearer ${process.env.WAYBILL_STEP_TOKEN}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    }
    const request = http.request(new URL(path, process.env.WAYBILL_STEP_URL), { method, agent, headers }, response => {
      let said = ''
      response.setEncoding('utf8')
      response.on('data', piece => {
        said += piece
      })
      response.on('error', reject)
      response.on('end', () => {
        const answer = JSON.parse(said)
        if (response.statusCode === 200) resolve(answer)
        else reject(new CallError(answer.error, answer.code, response.statusCode))
      })
    })
    request.on('error', reject)
    request.end(text)
  })
}

/** Calls are made one after another, in the order in which the program makes them: that is how they are found again. */
function inOrder(make) {
  if (inStep.getStore()) {
    return Promise.reject(new CallError('the function of a step makes no calls of its own', 'refused', 409))
  }
  const mine = last.then(make, make)
  last = mine.catch(() => undefined)
  return mine
}

async function made({ stepId, attempt, idempotencyKey }, make) {
  let now = { attempt, idempotencyKey }
  for (;;) {
    let output
    try {
      output = await inStep.run(true, () => make(now))
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      const transient = typeof error === 'object' && error !== null && error.transient === true
      const next = await send('POST', `/v0/steps/${stepId}/fail`, { error: message.slice(0, 10_000), transient })
      if (!next.retry) throw error
      now = { attempt: next.attempt, idempotencyKey: next.idempotencyKey }
      continue
    }
    await send('POST', `/v0/steps/${stepId}/complete`, { output })
    return output
  }
}

/** The input of the run. */
exports.input = async () => (await send('GET', '/v0/input')).input
/** All that the run was given: `input`, and `messages` in a turn of a session. */
exports.given = () => send('GET', '/v0/input')
/**
 * Runs `make` once for the run, however often the program begins again, and gives what it returned, which must be JSON.
 * It is told `{ attempt, idempotencyKey }`. An error with `transient: true` has it run again, as the manifest says.
 */
exports.step = (name, input, make, { effect } = {}) => {
  const [given, act] = typeof input === 'function' ? [undefined, input] : [input, make]
  return inOrder(async () => {
    const begun = await send('POST', '/v0/steps', { name, input: given, effect })
    return begun.cached ? begun.output : made(begun, act)
  })
}
/** `{ text, stop }`. `asked` is a prompt, or `{ prompt | messages, system, maxOutputTokens, temperature }`. */
exports.model = asked => inOrder(() => send('POST', '/v0/model', typeof asked === 'string' ? { prompt: asked } : asked))
/** What a tool of the manifest gave. */
exports.tool = (name, given = {}) =>
  inOrder(async () => (await send('POST', '/v0/tool', { name, arguments: given })).output)
/** `{ approved, comment?, answer? }`, once a human has decided. */
exports.approval = prompt => inOrder(() => send('POST', '/v0/approval', { prompt }))
/** Seconds, or a Date. A long one gives the worker back, and the program begins again after it. */
exports.sleep = time =>
  inOrder(() => send('POST', '/v0/sleep', time instanceof Date ? { until: time.toISOString() } : { seconds: time }))
/** The output of the run. Nothing after it is certain to be executed. */
exports.finish = output => inOrder(() => send('POST', '/v0/finish', { output }))
exports.CallError = CallError
