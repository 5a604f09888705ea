import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { engineFixture, type FixtureOptions, says, script } from '../runtime/execution/testing/engine-fixture.ts'
import { runStore } from '../runtime/runs/store.ts'
import { clearRecords } from '../runtime/vault/records.ts'
import { openDb } from '../shared/host/open-libsql.ts'
import { silentLog } from '../shared/log/log.ts'
import { checkJournal } from '../shared/sign/testing/check-journal.ts'
import type { ManifestInput } from '../shared/wire/runtime/manifest.ts'
import { nodeEnv } from './env.ts'
import { nodeSandboxes } from './sandboxes.ts'

let folder: string
let sandboxes: ReturnType<typeof nodeSandboxes>
const open: { close(): Promise<void> }[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-wasm-'))
  const env = nodeEnv.parse({ NODE_AGENT_STATE_DIR: folder, NODE_AGENT_IMAGE_DIR: join(folder, 'no-image') })
  sandboxes = nodeSandboxes({ env, workspaces: join(folder, 'workspaces'), log: silentLog() })
})
afterAll(async () => {
  await sandboxes.close()
  await rm(folder, { recursive: true, force: true })
})
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

const limits = { memoryMb: 64, diskMb: 64 }

async function ran(program: string, manifest: ManifestInput = {}, options: Partial<FixtureOptions> = {}) {
  const made = await engineFixture({
    manifest: {
      isolation: 'wasm',
      limits,
      entrypoint: { command: 'node', args: ['main.mjs', 'a'] },
      ...manifest,
      files: [{ path: 'main.mjs', content: program }, ...(manifest.files ?? [])],
    },
    sandboxes,
    ask: script([says('forty-two')]),
    ...options,
  })
  open.push(made)
  await made.engine.start()
  const id = await made.create({ prompt: 'go' })
  made.engine.wake()
  const run = await made.until(id, undefined, 60_000)
  return { run, events: await made.runs.events(id, 1, 1000) }
}

const PROGRAM = `
import { CallError, finish, input, model, step, tool } from 'waybill'
import { shout } from './lib/words.js'
const given = await input()
let tries = 0
const facts = await step('facts', { from: given }, async ({ attempt, idempotencyKey }) => {
  if (++tries < 2) throw Object.assign(new Error('not yet'), { transient: true })
  writeFile('facts.txt', 'kept')
  return { attempt, key: idempotencyKey }
})
const [answer, listed] = await Promise.all([model('What is it?'), tool('list_files')])
await tool('write_file', { path: 'by-tool.txt', content: 'seen' })
const refused = await tool('exec', { command: 'true' }).catch(error => error instanceof CallError && error.message)
const nested = await step('outer', async () => { await null; return tool('list_files') }).catch(error => error.code)
await finish({
  given, facts, answer, refused, nested, loud: shout('word'), read: readFile('by-tool.txt'),
  names: listed.files.map(one => one.name).sort(), secret: process.env.KEY, argv: process.argv,
  token: Object.keys(process.env).filter(name => name.startsWith('WAYBILL_STEP')),
})
`

describe('a JavaScript agent under wasm', () => {
  it('makes steps, asks the model, calls listed tools, imports its files, and finishes', async () => {
    const { run, events } = await ran(
      PROGRAM,
      {
        tools: ['list_files', 'write_file'],
        files: [{ path: 'lib/words.js', content: 'export const shout = word => word.toUpperCase()' }],
        secrets: [{ env: 'KEY', ref: 'secret/key' }],
        retry: { backoffMs: 1 },
      },
      { secretOf: async () => 'abcdefgh' },
    )
    expect(run.error).toBeUndefined()
    expect(run).toMatchObject({
      status: 'succeeded',
      output: {
        given: { prompt: 'go' },
        answer: { text: 'forty-two' },
        loud: 'WORD',
        read: 'seen',
        nested: 'refused',
        facts: { attempt: 2, key: expect.stringMatching(/:code-facts-1:2$/) },
        names: ['facts.txt', 'lib', 'main.mjs'],
        refused: 'there is no tool called exec',
        secret: '***',
        argv: ['node', 'main.mjs', 'a'],
        token: [],
      },
      tokensIn: 10,
      isolation: { used: 'wasm' },
    })
    expect(checkJournal(run.id, events).ok).toBe(true)
  })

  it('has what it printed as its result when it says nothing else', async () => {
    expect((await ran('console.log("six", { by: 7 })')).run).toMatchObject({
      status: 'succeeded',
      output: { result: 'six {"by":7}' },
    })
  })

  it.each<[string, string, ManifestInput, string, RegExp]>([
    ['throws', 'throw new TypeError("not so")', {}, 'entrypoint_failed', /exit code 1: TypeError: not so/],
    ['imports what is not there', 'import "node:fs"', {}, 'entrypoint_failed', /there is no node:fs to import/],
    ['leaves the workspace', 'writeFile("../../etc/x", "y")', {}, 'entrypoint_failed', /no file of the workspace/],
    ['waits for nothing', 'await new Promise(() => {})', {}, 'entrypoint_failed', /never comes/],
    [
      'takes all memory',
      'const all = []; for (;;) all.push(new Array(1e5).fill(all.length))',
      {},
      'entrypoint_failed',
      /limit of memory/,
    ],
    ['floods its output', 'for (;;) print("x".repeat(1e5))', {}, 'entrypoint_failed', /limit of output/],
    ['never ends', 'for (;;);', { limits: { ...limits, timeoutSeconds: 2 } }, 'timeout', /2 s/],
    [
      'floods the step protocol',
      'import { input } from "waybill"; for (;;) await input()',
      { limits: { ...limits, maxSteps: 1 } },
      'limit_exceeded',
      /requests/,
    ],
    [
      'opens calls without end',
      'import { input } from "waybill"; const all = []; for (;;) { all.push(input()); await all.at(-17) }',
      {},
      'entrypoint_failed',
      /no more than 16 calls/,
    ],
  ])(
    'that %s ends with the reason, and the node goes on',
    async (_what, program, manifest, code, message) => {
      expect((await ran(program, manifest)).run).toMatchObject({
        status: 'failed',
        error: { code, message: expect.stringMatching(message) },
      })
      expect((await ran('print("alive")')).run).toMatchObject({ output: { result: 'alive' } })
    },
    60_000,
  )
})

describe('a WASI agent under wasm', () => {
  const content = readFileSync(new URL('../tests/wasi-agent/agent.wasm', import.meta.url)).toString('base64')
  const agent = (args: string[], manifest: ManifestInput = {}) =>
    ran('', {
      entrypoint: { command: 'wasi', args: ['agent.wasm', ...args] },
      files: [{ path: 'agent.wasm', content, encoding: 'base64' }],
      ...manifest,
    })

  it('makes steps, asks the model, and finishes', async () => {
    const { run, events } = await agent([])
    expect(run.error).toBeUndefined()
    expect(run).toMatchObject({
      status: 'succeeded',
      output: { result: 'one:forty-two:three' },
      tokensIn: 10,
      isolation: { used: 'wasm' },
    })
    expect(checkJournal(run.id, events).ok).toBe(true)
    const completed = events.filter(({ kind }) => kind === 'step_completed').map(({ stepId }) => stepId)
    expect(completed).toEqual(['code-one-1', 'model-2', 'code-three-3', 'entrypoint'])
  })

  it('shares its files with listed tools, and has no tool beside them', async () => {
    const { run } = await agent(['tools'], { tools: ['write_file'] })
    expect(run).toMatchObject({ status: 'succeeded' })
    const [read, refused, input] = String(run.output!.result).split('\n')
    expect([read, refused]).toEqual(['seen', expect.stringMatching(/^502 .*there is no tool called exec/)])
    expect(JSON.parse(input!)).toEqual({ input: { prompt: 'go' } })
  })

  it('has what it printed as its result when it says nothing else', async () => {
    const { run } = await agent(['print', 'a'], {
      entrypoint: { command: 'wasi', args: ['agent.wasm', 'print', 'a'], env: { KEY: 'value' } },
    })
    expect(run).toMatchObject({ status: 'succeeded', output: { result: 'agent.wasm print a value' } })
  })

  it.each<[string, ManifestInput, string, RegExp]>([
    ['exit', {}, 'entrypoint_failed', /exit code 9/],
    ['panic', {}, 'entrypoint_failed', /exit code 134.*not so/s],
    ['memory', {}, 'entrypoint_failed', /limit of memory/],
    ['flood', {}, 'entrypoint_failed', /limit of output/],
    ['spin', { limits: { ...limits, timeoutSeconds: 2 } }, 'timeout', /2 s/],
    ['calls', { limits: { ...limits, maxSteps: 1 } }, 'limit_exceeded', /requests/],
  ])(
    'that meets "%s" ends with the reason, and the node goes on',
    async (what, manifest, code, message) => {
      expect((await agent([what], manifest)).run).toMatchObject({
        status: 'failed',
        error: { code, message: expect.stringMatching(message) },
      })
      expect((await ran('print("alive")')).run).toMatchObject({ output: { result: 'alive' } })
    },
    60_000,
  )
})

describe('a process that is killed in the middle of an agent under wasm', () => {
  const child = new URL('./isolation/testing/code-agent-child.ts', import.meta.url).pathname
  function life(at: string, language: string, killAt = '') {
    const args = [child, at, join(folder, 'no-image'), folder, killAt, 'wasm', language]
    const one = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'], timeout: 60_000 })
    return new Promise<string | number | null>(resolve => one.on('close', (code, signal) => resolve(signal ?? code)))
  }

  it.each(
    ['code-one-1', 'code-three-3', 'entrypoint'].flatMap(
      killAt =>
        [
          [killAt, 'node'],
          [killAt, 'wasi'],
        ] as const,
    ),
  )(
    'at %s, in a program for %s, leaves a run that ends as if nothing had happened',
    async (killAt, language) => {
      const at = join(folder, `killed-at-${killAt}-${language}`)
      await mkdir(at)
      expect(await life(at, language, killAt)).toBe('SIGKILL')
      expect(await life(at, language)).toBe(0)
      const db = await openDb(join(at, 'run.db'))
      const runs = runStore(db, clearRecords)
      const [row] = (await db.execute('select id from runs')).rows
      const run = (await runs.get(String(row![0])))!
      const events = await runs.events(run.id, 1, 1000)
      db.close()
      expect(run).toMatchObject({ status: 'succeeded', tokensIn: 10, output: { result: 'one:forty-two:three' } })
      expect(checkJournal(run.id, events).ok).toBe(true)
      const completed = events.filter(({ kind }) => kind === 'step_completed').map(({ stepId }) => stepId)
      expect(completed).toEqual(['code-one-1', 'model-2', 'code-three-3', 'entrypoint'])
    },
    90_000,
  )
})
