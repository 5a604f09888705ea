import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createLog } from '../../shared/log/log.ts'
import type { ProcessJob, ProcessOutcome } from '../gates/gate-host.ts'
import { processRunner } from './run-process.ts'

const vars = { PATH: process.env.PATH, SECRET_API_KEY: 'k', CI: 'yes' }
const run = processRunner({ vars })
/** With this one, what ends soon has ended by SIGTERM. */
const patient = processRunner({ vars, graceMs: 15_000 })
const never = new AbortController().signal
let marks = 0

function job(script: string, more: Partial<ProcessJob> = {}): ProcessJob {
  marks += 1
  const env = { ROUTER_GATE_ID: `mark-${process.pid}-${marks}` }
  return {
    cmd: ['sh', '-c', script],
    cwd: null,
    env,
    envPass: [],
    stdin: new Uint8Array(),
    stdoutLimit: 65_536,
    stderrLimit: 8192,
    ...more,
  }
}

/** Living processes that inherited the job's environment, in whatever group they are. */
function leftOf({ env }: ProcessJob): string[] {
  return readdirSync('/proc').filter(pid => {
    if (!/^\d+$/.test(pid)) return false
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`ROUTER_GATE_ID=${env.ROUTER_GATE_ID}\0`)
    } catch {
      return false
    }
  })
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

function stdoutOf(outcome: ProcessOutcome): string {
  if (outcome.kind !== 'exited') throw new Error(outcome.kind)
  return text(outcome.stdout)
}

/** Starts a job and aborts it once the script has written to the folder it was given. */
async function abortedOnceUp(
  script: string,
  runner = run,
): Promise<{ outcome: ProcessOutcome; ms: number; left: string[] }> {
  const abort = new AbortController()
  const one = job(script)
  const running = runner(one, abort.signal)
  // The script runs `sleep` when it is set up: that name among its processes is the event to wait for.
  while (!leftOf(one).some(pid => readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sleep'))) {
    await new Promise(resolve => setImmediate(resolve))
  }
  const from = performance.now()
  abort.abort()
  const outcome = await running
  return { outcome, ms: performance.now() - from, left: leftOf(one) }
}

describe('running a program', () => {
  it('gives it stdin to the end and takes what it writes and its exit code', async () => {
    const one = job('cat; echo oops >&2; exit 3', { stdin: new TextEncoder().encode('x'.repeat(60_000)) })
    const outcome = await run(one, never)
    expect(outcome).toMatchObject({ kind: 'exited', code: 3 })
    expect(stdoutOf(outcome)).toBe('x'.repeat(60_000))
    expect(outcome.kind === 'exited' && text(outcome.stderr)).toBe('oops\n')
  })

  it('gives it a clean environment and a private empty home that is gone afterwards', async () => {
    const outcome = await run(
      job('env; echo "[$(ls -A "$HOME")]"; stat -c %a "$HOME"; touch "$HOME/x"', { envPass: ['CI', 'UNSET'] }),
      never,
    )
    const lines = stdoutOf(outcome).trim().split('\n')
    const vars = Object.fromEntries(lines.slice(0, -2).map(line => line.split(/=(.*)/s)))
    // `_`, PWD and SHLVL are the shell's own.
    const names = Object.keys(vars).filter(name => !['_', 'PWD', 'SHLVL', 'OLDPWD'].includes(name))
    expect(names.sort()).toEqual(['CI', 'HOME', 'LANG', 'PATH', 'ROUTER_GATE_ID', 'TMPDIR', 'TZ'])
    expect(lines.slice(-2)).toEqual(['[]', '700'])
    expect(() => readdirSync(vars.HOME!)).toThrow('ENOENT')
  })

  it('passes nothing through a shell', async () => {
    const outcome = await run(job('', { cmd: ['printf', '%s|', '$HOME', '; exit 1', '*'] }), never)
    expect(stdoutOf(outcome)).toBe('$HOME|; exit 1|*|')
  })

  it('takes the answer of a program that closes stdin early', async () => {
    const one = job('exec 0<&-; echo done', { stdin: new Uint8Array(4_000_000) })
    expect(stdoutOf(await run(one, never))).toBe('done\n')
  })

  it.each([
    ['a program that is not there', { cmd: ['/no/such/program'] }],
    ['a folder that is not there', { cwd: '/no/such/folder' }],
    ['an argument no program can get', { cmd: ['echo', 'a\0b'] }],
  ])('says that %s cannot be started', async (_, more) => {
    expect(await run(job('true', more), never)).toEqual({ kind: 'spawn_failed' })
  })

  it('ends a program that floods stdout, and reads a flood on stderr to its end', async () => {
    const flood = job('yes')
    expect(await run(flood, never)).toEqual({ kind: 'output_too_large' })
    expect(leftOf(flood)).toEqual([])
    const outcome = await run(job('head -c 3000000 /dev/zero >&2; echo ok'), never)
    expect(stdoutOf(outcome)).toBe('ok\n')
    expect(outcome.kind === 'exited' && outcome.stderr.length).toBe(8192)
  })

  it('leaves nothing that a program started in the background, with or without its pipes', async () => {
    const one = job('sleep 60 & sleep 61 >/dev/null 2>&1 </dev/null & echo ok')
    const from = performance.now()
    expect(stdoutOf(await patient(one, never))).toBe('ok\n')
    expect(leftOf(one)).toEqual([])
    expect(performance.now() - from).toBeLessThan(5000)
  })

  it('does not wait for a process that left the group and kept the pipe', async () => {
    const one = job('setsid sleep 60 & echo ok')
    const from = performance.now()
    try {
      expect(stdoutOf(await run(one, never))).toBe('ok\n')
      expect(performance.now() - from).toBeLessThan(5000)
    } finally {
      for (const pid of leftOf(one)) process.kill(Number(pid), 'SIGKILL')
    }
  })

  it('ends a hanging program and its children on abort with SIGTERM', async () => {
    const { outcome, ms, left } = await abortedOnceUp('sleep 60 & sleep 60', patient)
    expect([outcome, left]).toEqual([{ kind: 'aborted' }, []])
    expect(ms).toBeLessThan(5000)
  })

  it('ends what ignores SIGTERM after half a second, children included', async () => {
    const { outcome, ms, left } = await abortedOnceUp(
      `trap '' TERM; (trap '' TERM; sleep 60; sleep 60) & sleep 60; sleep 60`,
    )
    expect([outcome, left]).toEqual([{ kind: 'aborted' }, []])
    expect(ms).toBeGreaterThan(450)
    expect(ms).toBeLessThan(5000)
  })

  it('says once where no folder can be made for a program, and the program did not start', async () => {
    const lines: string[] = []
    const log = createLog({ filter: { all: 'info', byTarget: new Map() }, write: line => lines.push(line) })
    const runner = processRunner({ vars, log })
    const { TMPDIR } = process.env
    process.env.TMPDIR = '/nonexistent'
    try {
      for (const one of [job('true'), job('true')]) expect(await runner(one, never)).toEqual({ kind: 'spawn_failed' })
    } finally {
      if (TMPDIR === undefined) delete process.env.TMPDIR
      else process.env.TMPDIR = TMPDIR
    }
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('/nonexistent')
  })

  it('starts nothing when it is aborted before', async () => {
    const one = job('sleep 60')
    expect(await run(one, AbortSignal.abort())).toEqual({ kind: 'aborted' })
    expect(leftOf(one)).toEqual([])
  })

  it('ends everything when it is closed, and starts nothing after', async () => {
    const start = processRunner({ vars })
    const one = job(`trap '' TERM; sleep 60; sleep 60`)
    const running = start(one, never)
    while (leftOf(one).length < 2) await new Promise(resolve => setImmediate(resolve))
    await start.close()
    expect(leftOf(one)).toEqual([])
    expect([await running, await start(one, never)]).toEqual([{ kind: 'aborted' }, { kind: 'aborted' }])
  })
})
