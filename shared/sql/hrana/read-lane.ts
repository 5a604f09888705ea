import type { ResultSet } from '@libsql/client/web'
import { nextTurn } from '../../time/sleep.ts'
import { refusedBy } from './server-error.ts'
import { batchOf, type HranaStream } from './stream.ts'
import {
  bare,
  type Condition,
  FRESH_SCHEMA,
  fromWire,
  type Step,
  type StreamRequest,
  type StreamResult,
  type WireBatch,
  type WireRows,
  type WireStatement,
} from './wire.ts'

/** Most requests that are sent together: the answer of one is not had before that of the last. */
const MOST_TOGETHER = 64

interface Waiting {
  request: StreamRequest
  resolve: (result: StreamResult) => void
  reject: (error: unknown) => void
}

export type ReadLane = ReturnType<typeof readLane>

/** Callers of the same moment are a few promise hops apart. */
const aTurn = () => new Promise<void>(nextTurn)

/** Reads on one stream: those that come while others are under way are sent together. */
export function readLane(stream: HranaStream, gather: () => Promise<void> = aTurn) {
  const queue: Waiting[] = []
  let sent = 0

  /**
   * Statements as the steps of one batch, without a transaction: each request of its own costs a server a change of threads, which is more
   * than a short read. Undefined where the batch as a whole was refused, since one does not parse or the answers are too large together.
   */
  async function asOne(requests: readonly StreamRequest[]): Promise<StreamResult[] | undefined> {
    const steps: Step[] = [{ stmt: FRESH_SCHEMA }]
    for (const request of requests) {
      if (request.type !== 'execute') return undefined
      steps.push({ stmt: request.stmt })
    }
    const [answer] = await stream.send([{ type: 'batch', batch: { steps } }], { harmless: true })
    if (answer?.type !== 'ok') return undefined
    const { step_results, step_errors } = batchOf(answer)
    return requests.map((_, at) => {
      const error = step_errors[at + 1]
      return error ? { type: 'error', error } : { type: 'ok', response: { result: step_results[at + 1] } }
    })
  }

  async function oneByOne(requests: readonly StreamRequest[]): Promise<StreamResult[]> {
    const [, ...results] = await stream.send([NOTICE, ...requests], { harmless: true })
    // A batch that broke off left its transaction open, and later reads would see an old moment.
    const brokeOff = results.some(({ type }, at) => type === 'error' && requests[at]?.type === 'batch')
    if (brokeOff) await stream.close()
    return results
  }

  async function drain(): Promise<void> {
    while (queue.length > 0) {
      await gather()
      const group = queue.splice(0, MOST_TOGETHER)
      sent = group.length
      try {
        const requests = group.map(({ request }) => request)
        const results = (await asOne(requests)) ?? (await oneByOne(requests))
        for (const [at, waiting] of group.entries()) waiting.resolve(results[at] as StreamResult)
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
      sent = 0
    }
  }

  function send(request: StreamRequest): Promise<StreamResult> {
    return new Promise((resolve, reject) => {
      queue.push({ request, resolve, reject })
      if (queue.length + sent > 1 || sent > 0) return
      void drain()
    })
  }

  return {
    /** How many are before the next one; none where the next request takes it along. */
    get ahead() {
      return sent === 0 ? 0 : sent + queue.length
    },
    async execute(stmt: WireStatement): Promise<ResultSet> {
      return fromWire(resultOf(await send({ type: 'execute', stmt })) as WireRows)
    },
    /** Several reads of one moment. */
    async batch(statements: readonly WireStatement[]): Promise<ResultSet[]> {
      const result = resultOf(await send({ type: 'batch', batch: { steps: readSteps(statements) } })) as WireBatch
      const { step_results, step_errors } = result
      for (const [at, error] of step_errors.entries()) if (error) throw refusedBy(error, at - FIRST)
      return statements.map((_, at) => fromWire(step_results[at + FIRST] as WireRows))
    },
    close: () => stream.close(),
  }
}

function resultOf(result: StreamResult): unknown {
  if (result.type === 'error') throw refusedBy(result.error)
  return result.response.result
}

const NOTICE: StreamRequest = { type: 'execute', stmt: FRESH_SCHEMA }

/** Where the first statement of the caller stands. */
const FIRST = 3

function readSteps(statements: readonly WireStatement[]): Step[] {
  const ended: Condition = { type: 'is_autocommit' }
  const open: Condition = { type: 'not', cond: ended }
  // A batch before it in the same request may have broken off.
  const begin = { stmt: bare('begin transaction readonly') }
  const steps: Step[] = [{ stmt: bare('rollback'), condition: open }, begin, { stmt: FRESH_SCHEMA }]
  for (const stmt of statements) steps.push({ stmt, condition: { type: 'ok', step: steps.length - 1 } })
  const last: Condition = { type: 'ok', step: steps.length - 1 }
  steps.push({ stmt: bare('commit'), condition: last })
  steps.push({ stmt: bare('rollback'), condition: open })
  return steps
}
