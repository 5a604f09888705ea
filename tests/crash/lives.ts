import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stepsOf } from '../../runtime/runs/steps.ts'
import { runStore } from '../../runtime/runs/store.ts'
import { clearRecords } from '../../runtime/vault/records.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { checkJournal } from '../../shared/sign/testing/check-journal.ts'
import type { CrashCase } from './corpus.ts'
import { RUN_ID } from './run-id.ts'

export const momentKinds = ['before-commit', 'during-commit', 'after-commit', 'before-effect', 'after-effect'] as const
/** What may happen to a process at a commit beside its end; the clock jumps by so many seconds. */
export const troubles = ['disk-full', 'clock+7200', 'clock-3', 'busy'] as const
export interface Moment {
  kind: (typeof momentKinds)[number] | (typeof troubles)[number]
  at: number
}

const MOMENT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g

/** What is left of a case once its process has ended for good. */
export interface Remains {
  status: string
  error: string | undefined
  output: unknown
  tokens: [number, number]
  costUsd: number
  chain: ReturnType<typeof checkJournal>
  /** Per step, what its journal says, without times, ids and the traces of an interruption. */
  steps: Record<string, unknown[]>
  /** How often each call reached the far end, by its key. */
  effects: Record<string, number>
  whats: Record<string, string>
  stepIds: string[]
  counts: { commit: number; effect: number; refused: number }
}

const program = fileURLToPath(new URL('./crash-child.ts', import.meta.url))

/** Runs a case to its end, with a kill on the way when a moment is given. `store`: an empty server, where it is no file. */
export async function live(one: CrashCase, moment?: Moment, store?: string): Promise<Remains & { killed: boolean }> {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-crash-'))
  const env = { ...process.env, ...(store !== undefined && { CRASH_STORE: store }) }
  try {
    const first = await life(folder, one, moment, env)
    const killed = first.signal === 'SIGKILL'
    const last = killed ? await life(folder, one, undefined, env) : first
    if (last.code !== 0)
      throw new Error(`${one.name}: the process ended with ${last.code ?? last.signal}: ${last.stderr}`)
    return { ...(await remains(folder, store)), killed, counts: JSON.parse(last.stdout) as Remains['counts'] }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Pauses the process of a case at a moment, lets a second one take the run over once the lease has ended, and then lets the
 * first go on: what it still tries to write must not be kept.
 */
export async function paused(one: CrashCase, moment: Moment): Promise<Remains & { paused: boolean }> {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-crash-'))
  try {
    const env = { ...process.env, CRASH_LEASE_MS: '600' }
    const first = begin([folder, one.name, `pause-${moment.kind}`, String(moment.at)], env)
    const stopped = await Promise.race([first.stopped, first.ended.then(() => false)])
    const second = await begin([folder, one.name], env).ended
    first.child.kill('SIGCONT')
    const last = await first.ended
    if (second.code !== 0) throw new Error(`${one.name}: ${second.code ?? second.signal}: ${second.stderr}`)
    if (last.code !== 0) throw new Error(`${one.name}, paused: ${last.code ?? last.signal}: ${last.stderr}`)
    return { ...(await remains(folder)), paused: stopped, counts: JSON.parse(second.stdout) as Remains['counts'] }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function life(
  folder: string,
  { name }: CrashCase,
  moment?: Moment,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Ended> {
  return begin([folder, name, ...(moment ? [moment.kind, String(moment.at)] : [])], env).ended
}

interface Ended {
  code: number | null
  signal: string | null
  stdout: string
  stderr: string
}

function begin(args: string[], env: NodeJS.ProcessEnv) {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'], timeout: 30_000, env })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', chunk => {
    stdout += String(chunk)
  })
  child.stderr.on('data', chunk => {
    stderr += String(chunk)
  })
  const ended = new Promise<Ended>(resolve => {
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
  return { child, ended, stopped: isStopped(child.pid ?? 0) }
}

/** Resolves once the system says that the process is stopped, or false when it is gone. */
async function isStopped(pid: number): Promise<boolean> {
  for (;;) {
    try {
      if (/\) T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))) return true
    } catch {
      return false
    }
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

async function remains(folder: string, store = join(folder, 'run.db')): Promise<Omit<Remains, 'counts'>> {
  const db = await openDb(store)
  try {
    const runs = runStore(db, clearRecords)
    const run = await runs.get(RUN_ID)
    if (!run) throw new Error('the run is gone')
    // As they were inserted: the clock may have been set back between them.
    const all = await db.execute('select id from runs order by rowid')
    const steps: Record<string, unknown[]> = {}
    let chain = checkJournal(RUN_ID, [])
    const stepIds: string[] = []
    for (const [place, row] of all.rows.entries()) {
      const id = String(row[0])
      const events = await runs.events(id, 1, 100_000)
      const checked = checkJournal(id, events)
      if (id === RUN_ID || !checked.ok) chain = checked
      // Children have random ids: they are distinguished by the order in which they came.
      const prefix = id === RUN_ID ? '' : `child${place}:`
      stepIds.push(...stepsOf(events, 0).map(step => prefix + step.stepId))
      for (const { kind, stepId, attempt, payload } of events) {
        const list = steps[prefix + stepId] ?? []
        steps[prefix + stepId] = list
        if (payload.code === 'uncertain' || payload.reason === 'uncertain_step') continue
        const { approvalId: _a, expiresAt: _e, nextAt: _n, ...said } = payload
        const line = JSON.stringify([kind, attempt, said]).replaceAll(MOMENT, 'then')
        // A call that a human had repeated says its intent again.
        if (kind === 'step_started' && list.includes(line)) continue
        list.push(line)
      }
    }
    const effects: Record<string, number> = {}
    const whats: Record<string, string> = {}
    for (const line of readFileSync(join(folder, 'effects.log'), 'utf8').trim().split('\n')) {
      const { what, key } = JSON.parse(line) as { what: string; key: string }
      effects[key] = (effects[key] ?? 0) + 1
      whats[key] = what
    }
    return {
      status: run.status,
      error: run.error?.code,
      output: run.output,
      costUsd: run.costUsd,
      tokens: [run.tokensIn, run.tokensOut],
      chain,
      steps,
      effects,
      whats,
      stepIds,
    }
  } finally {
    db.close()
  }
}

/** What is wrong with a life that was disturbed, compared with the same life undisturbed. Empty: nothing. */
export function differences(one: CrashCase, golden: Remains, after: Remains): string[] {
  const found: string[] = []
  const look = (what: string, a: unknown, b: unknown) => {
    if (JSON.stringify(a) !== JSON.stringify(b))
      found.push(`${what}: ${JSON.stringify(b)}, expected ${JSON.stringify(a)}`)
  }
  if (!after.chain.ok) found.push(`the chain is broken at ${after.chain.brokenAt}`)
  let repeated = 0
  for (const [key, times] of Object.entries(after.effects)) {
    if (times === 1) continue
    repeated += times - 1
    if (!/^(model|GET) ?/.test(after.whats[key] ?? ''))
      found.push(`${after.whats[key]} happened ${times} times under ${key}`)
  }
  if (repeated > 1 && !one.name.startsWith('calls side by side') && !one.name.startsWith('agents'))
    found.push(`${repeated} calls were repeated, at most the open one may be`)
  if (one.mayFail !== undefined && after.status === 'failed') {
    look('error', one.mayFail, after.error)
    return found
  }
  look('status', golden.status, after.status)
  look('output', golden.output, after.output)
  look('tokens', golden.tokens, after.tokens)
  look('cost', golden.costUsd, after.costUsd)
  look('steps', Object.keys(golden.steps).sort(), Object.keys(after.steps).sort())
  for (const [stepId, events] of Object.entries(golden.steps)) look(stepId, events, after.steps[stepId])
  look('calls', new Set(Object.values(golden.whats)).size, new Set(Object.values(after.whats)).size)
  return found
}
