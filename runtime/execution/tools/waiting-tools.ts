import { readJson } from '../../../shared/json/read-json.ts'
import { type Db, type RowOf, rowsOf } from '../../../shared/sql/db.ts'
import type { Clock } from '../../../shared/time/clock.ts'
import { sleep } from '../../../shared/time/sleep.ts'
import type { Tool } from '../../../shared/wire/runtime/tool.ts'
import type { signals } from '../../schema/tables.ts'
import type { Records } from '../../vault/records.ts'
import type { Approvals } from '../approvals.ts'
import { StepFailure, Suspended } from '../failure.ts'
import type { ExposedTool } from './exposed-tool.ts'

export interface WaitingDeps {
  run: { id: string; epoch: number }
  db: Db
  records: Records
  clock: Clock
  approvals: Approvals
}

/** A shorter wait is sat out; a longer one gives the worker back. */
const SIT_OUT_MS = 1000

/** A clock that was set back by less makes a wait longer by that, and no more. */
const SET_BACK_MS = 60_000

/** What is left of a wait until a moment. More than the whole of it: its clock was ahead when it began, and it is woken when its time has passed. */
function leftUntil(atMs: number, seconds: unknown, nowMs: number): number {
  const left = atMs - nowMs
  return typeof seconds === 'number' && left > seconds * 1000 + SET_BACK_MS ? 0 : left
}

const idempotent: Pick<ExposedTool, 'family' | 'effect' | 'onInterrupted'> = {
  family: 'tools',
  effect: () => 'idempotent',
  onInterrupted: () => 'retry',
}

export function waitTool({ clock }: WaitingDeps, { needsApproval }: Tool): ExposedTool {
  return {
    ...idempotent,
    name: 'wait',
    kind: 'timer',
    needsApproval,
    description: 'Waits for a number of seconds, or until a moment in ISO 8601.',
    parameters: {
      type: 'object',
      properties: { seconds: { type: 'number', minimum: 0, maximum: 31_536_000 }, until: { type: 'string' } },
      additionalProperties: false,
    },
    intent: given => ({ until: new Date(wakeMs(given, clock.now().getTime())).toISOString() }),
    async call(given, _place, { intent, signal }) {
      const atMs = Date.parse(String(intent.until))
      if (Number.isNaN(atMs)) throw new StepFailure('bad_arguments', 'wait needs seconds, or until as an ISO 8601 time')
      const left = leftUntil(atMs, given.until === undefined ? given.seconds : undefined, clock.now().getTime())
      if (left > SIT_OUT_MS) throw new Suspended({ on: 'timer', atMs })
      if (left > 0) await sleep(left, signal)
      return { output: { waitedUntil: intent.until } }
    },
  }
}

/** A moment that cannot be read is a date that does not exist; the call then says so. */
function wakeMs({ seconds, until }: Record<string, unknown>, nowMs: number): number {
  if (typeof until === 'string') {
    const at = Date.parse(until)
    return Number.isNaN(at) ? nowMs : at
  }
  return nowMs + (typeof seconds === 'number' ? seconds * 1000 : 0)
}

export function waitSignalTool({ run, db, records, clock }: WaitingDeps, { needsApproval }: Tool): ExposedTool {
  const taken = new Set<string>()
  return {
    ...idempotent,
    name: 'wait_signal',
    kind: 'signal',
    needsApproval,
    description: 'Waits until this run gets a signal of that name and gives its value.',
    parameters: {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 128 },
        timeoutSeconds: { type: 'number', minimum: 0, maximum: 31_536_000 },
      },
      required: ['name'],
      additionalProperties: false,
    },
    intent: ({ timeoutSeconds }) =>
      typeof timeoutSeconds === 'number'
        ? { until: new Date(clock.now().getTime() + timeoutSeconds * 1000).toISOString() }
        : {},
    async call(given, _place, { intent }) {
      const name = String(given.name)
      const found = await db.execute({
        sql: `select id, value from signals where run_id = ? and name = ?
          and id not in (select value from json_each(?)) order by id limit 1`,
        args: [run.id, name, JSON.stringify([...taken])],
      })
      const [row] = rowsOf<Pick<RowOf<typeof signals>, 'id' | 'value'>>(found)
      if (row) {
        const { id } = row
        taken.add(id)
        // Taken off in the commit that records its value, so that it is used once whatever happens in between.
        const sql = `delete from signals where id = ?
          and exists (select 1 from runs where id = ? and epoch = ? and status = 'running')`
        const value = records.open(row.value, { record: run.id, field: `signal ${id}` })
        const output = { signal: name, value: readJson(value) as unknown }
        return { output, extra: [{ sql, args: [id, run.id, run.epoch] }] }
      }
      const atMs = typeof intent.until === 'string' ? Date.parse(intent.until) : undefined
      if (atMs !== undefined && leftUntil(atMs, given.timeoutSeconds, clock.now().getTime()) <= 0)
        return { output: { signal: name, timedOut: true } }
      throw new Suspended({ on: 'signal', name, ...(atMs !== undefined && { atMs }) })
    },
  }
}

export function askHumanTool({ approvals }: WaitingDeps): ExposedTool {
  return {
    ...idempotent,
    name: 'ask_human',
    kind: 'approval',
    needsApproval: false,
    description: 'Asks a human a question and gives the answer.',
    parameters: {
      type: 'object',
      properties: { prompt: { type: 'string', minLength: 1, maxLength: 10_000 } },
      required: ['prompt'],
      additionalProperties: false,
    },
    async call(given, { stepId }, { attempt }) {
      const prompt = String(given.prompt)
      const { approved, comment, output } = await approvals.ask({ stepId, attempt, reason: 'question', prompt })
      if (!approved) throw new StepFailure('rejected', comment ?? 'no answer was given')
      // Approved without a word: to a question of yes or no that is the answer.
      return { output: { answer: output ?? comment ?? 'yes' } }
    },
  }
}
