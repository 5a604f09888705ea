import { spawn, spawnSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
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
import { requireBackend } from '../tests/backends/require.ts'
import { nodeEnv } from './env.ts'
import { hasGuestInputs, hasInterpreters, testImageFolder } from './isolation/testing/test-image.ts'
import { nodeSandboxes } from './sandboxes.ts'

const isRoot = process.getuid?.() === 0
const has = (binary: string) => isRoot && spawnSync(binary, ['--version']).status === 0
const here =
  hasGuestInputs() && hasInterpreters() && requireBackend('runc', has('runc'), 'apt-get install runc, and run as root')
const hasGvisor = requireBackend('runsc', has('runsc'), 'apt-get install runsc, and run as root')
const hasQemu = requireBackend('qemu-system-x86_64', has('qemu-system-x86_64'), 'apt-get install qemu-system-x86')

let folder: string
let image: string
let sandboxes: ReturnType<typeof nodeSandboxes>
const open: { close(): Promise<void> }[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-code-'))
  await chmod(folder, 0o711)
  if (!here) return
  image = await testImageFolder({ interpreters: true })
  const env = nodeEnv.parse({ NODE_AGENT_STATE_DIR: folder, NODE_AGENT_IMAGE_DIR: image, NODE_AGENT_QEMU_ACCEL: 'tcg' })
  sandboxes = nodeSandboxes({ env, workspaces: join(folder, 'workspaces'), log: silentLog() })
})
afterAll(async () => {
  await sandboxes?.close()
  await rm(folder, { recursive: true, force: true })
})
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function ran(manifest: ManifestInput, options: Partial<FixtureOptions> = {}, waitMs = 60_000) {
  const made = await engineFixture({
    manifest: { isolation: 'runc', ...manifest },
    sandboxes,
    ask: script([says('forty-two')]),
    ...options,
  })
  open.push(made)
  await made.engine.start()
  const id = await made.create({ prompt: 'go' })
  made.engine.wake()
  const run = await made.until(id, undefined, waitMs)
  return { run, events: await made.runs.events(id, 1, 1000), made, id }
}

const shell = (line: string): ManifestInput['entrypoint'] => ({ command: 'sh', args: ['-c', line] })

const JAVASCRIPT = `
import fs from 'node:fs'
import { CallError, finish, input, model, step, tool } from 'waybill'
const given = await input()
const facts = await step('facts', { from: given }, async ({ idempotencyKey }) => {
  fs.writeFileSync('facts.txt', 'kept')
  return { key: idempotencyKey, pid: typeof process.pid }
})
const [answer, listed] = await Promise.all([model('What is it?'), tool('list_files')])
const refused = await tool('exec', { command: 'true' }).catch(error => error instanceof CallError && error.message)
const nested = await step('outer', () => tool('list_files')).catch(error => error.code)
await finish({ given, facts, answer, names: listed.files.map(one => one.name).sort(), refused, nested })
`

const PYTHON = `
import waybill
tries = 0
def fetch():
    global tries
    tries += 1
    if tries < 2:
        raise waybill.Transient("not yet")
    return {"tries": tries}
facts = waybill.step("facts", fetch)
try:
    waybill.tool("nothing")
    refused = None
except waybill.CallError as error:
    refused = str(error)
answer = waybill.model("What is it?")
waybill.sleep(0)
waybill.finish({"given": waybill.input(), "facts": facts, "answer": answer, "refused": refused})
`

describe.runIf(here)('a code agent in a sandbox', () => {
  it('in JavaScript makes steps, asks the model, calls listed tools, and finishes', async () => {
    const { run, events } = await ran({
      entrypoint: { command: 'node', args: ['main.mjs'] },
      files: [{ path: 'main.mjs', content: JAVASCRIPT }],
      tools: ['list_files'],
    })
    expect(run).toMatchObject({
      status: 'succeeded',
      output: {
        given: { prompt: 'go' },
        facts: { key: expect.stringMatching(/:code-facts-1:1$/), pid: 'number' },
        answer: { text: 'forty-two', stop: 'end' },
        names: ['facts.txt', 'main.mjs'],
        refused: 'there is no tool called exec',
        nested: 'refused',
      },
      tokensIn: 10,
      isolation: { used: 'runc' },
    })
    expect(checkJournal(run.id, events).ok).toBe(true)
  })

  it.each<[string, boolean]>([
    ['runc', true],
    ['gvisor', hasGvisor],
    ['qemu', hasQemu],
  ])(
    'in Python does so under %s',
    async (isolation, installed) => {
      if (!installed) return
      const { run } = await ran(
        {
          isolation,
          limits: { memoryMb: 256, diskMb: 64 },
          retry: { maxAttempts: 3, backoffMs: 1 },
          entrypoint: { command: 'python3', args: ['main.py'] },
          files: [{ path: 'main.py', content: PYTHON }],
        },
        {},
        150_000,
      )
      expect(run).toMatchObject({
        status: 'succeeded',
        output: {
          given: { prompt: 'go' },
          facts: { tries: 2 },
          refused: 'there is no tool called nothing',
          answer: { text: 'forty-two' },
        },
        isolation: { used: isolation },
      })
    },
    160_000,
  )

  it('is a shell script as well, with what it prints as its result', async () => {
    const { run } = await ran({
      entrypoint: shell('echo "run $WAYBILL_RUN_ID" | cut -c1-3; cat greeting'),
      files: [{ path: 'greeting', content: 'hello' }],
    })
    expect(run).toMatchObject({ status: 'succeeded', output: { result: 'run\nhello' } })
  })

  it('has the tools python and node', async () => {
    const made = await engineFixture({ manifest: { isolation: 'runc', tools: ['python', 'node'] }, sandboxes })
    open.push(made)
    await made.engine.start()
    const id = await made.create({
      prompt: '/call python {"code":"print(6*7)"}\n/call node {"code":"console.log(process.version.slice(0,3))"}',
    })
    made.engine.wake()
    expect(await made.until(id, undefined, 30_000)).toMatchObject({ status: 'succeeded' })
    const done = (await made.runs.events(id, 1, 100)).filter(
      ({ kind, stepId }) => kind === 'step_completed' && stepId.startsWith('exec'),
    )
    expect(done.map(({ payload }) => (payload.output as { stdout: string }).stdout)).toEqual(['42\n', 'v18\n'])
  })
})

describe.runIf(here)('a hostile program', () => {
  const limits = { memoryMb: 64, diskMb: 64 }
  it.each<[string, ManifestInput, { code: string; message: RegExp }]>([
    ['floods its output', { entrypoint: shell('yes') }, { code: 'entrypoint_failed', message: /limit of output/ }],
    [
      'sleeps for ever',
      { entrypoint: shell('sleep 1000000'), limits: { ...limits, timeoutSeconds: 2 } },
      { code: 'timeout', message: /2 s/ },
    ],
    [
      'forks without end',
      { entrypoint: shell('f() { f | f & }; f; sleep 1; true; echo; ls; exit 1') },
      { code: 'entrypoint_failed', message: /pids/ },
    ],
    [
      'takes all memory',
      { entrypoint: shell('head -c 300m /dev/zero | tail -c 300m >/dev/null; exit 1') },
      { code: 'entrypoint_failed', message: /memory/ },
    ],
    ['is not there', { entrypoint: { command: '/no/such/program' } }, { code: 'entrypoint_failed', message: /ENOENT/ }],
    [
      'floods the step protocol',
      {
        entrypoint: shell(
          'while :; do wget -q -O - "$WAYBILL_STEP_URL/v0/input" --header "authorization: Bearer $WAYBILL_STEP_TOKEN"; done',
        ),
        limits: { ...limits, maxSteps: 1 },
      },
      { code: 'limit_exceeded', message: /requests/ },
    ],
    [
      'sends what is no HTTP, then dies',
      { entrypoint: shell('yes | head -c 100000 | nc 127.0.0.1 7701 >/dev/null; exit 9') },
      { code: 'entrypoint_failed', message: /exit code 9/ },
    ],
  ])(
    'that %s is ended with the reason, and the node goes on',
    async (_what, manifest, error) => {
      const { run } = await ran({ limits, ...manifest })
      expect(run).toMatchObject({
        status: 'failed',
        error: { code: error.code, message: expect.stringMatching(error.message) },
      })
      expect((await ran({ limits, entrypoint: shell('echo alive') })).run).toMatchObject({
        output: { result: 'alive' },
      })
    },
    60_000,
  )

  it('learns nothing by another token', async () => {
    const { run } = await ran({
      limits,
      entrypoint: shell(
        'wget -S -O - "$WAYBILL_STEP_URL/v0/input" --header "authorization: Bearer guess" 2>&1 | grep -q 401 && echo refused',
      ),
    })
    expect(run.output).toEqual({ result: 'refused' })
  })
})

describe.runIf(here)('a process that is killed in the middle of a code agent', () => {
  const program = new URL('./isolation/testing/code-agent-child.ts', import.meta.url).pathname

  function life(at: string, killAt?: string) {
    const child = spawn(process.execPath, [program, at, image, folder, ...(killAt ? [killAt] : [])], {
      stdio: ['ignore', 'inherit', 'inherit'],
      timeout: 60_000,
    })
    return new Promise<string | number | null>(resolve => child.on('close', (code, signal) => resolve(signal ?? code)))
  }

  it.each(['code-one-1', 'model-2', 'code-three-3', 'entrypoint'])(
    'at %s leaves a run that ends as if nothing had happened',
    async killAt => {
      const at = join(folder, `killed-at-${killAt}`)
      await mkdir(at)
      expect(await life(at, killAt)).toBe('SIGKILL')
      expect(await life(at)).toBe(0)
      const db = await openDb(join(at, 'run.db'))
      const runs = runStore(db, clearRecords)
      const [row] = (await db.execute('select id from runs')).rows
      const run = (await runs.get(String(row![0])))!
      const events = await runs.events(run.id, 1, 1000)
      db.close()
      expect(run).toMatchObject({
        status: 'succeeded',
        tokensIn: 10,
        tokensOut: 2,
        // Files that a step wrote are there, though its function is not called again.
        output: { result: 'one:forty-two:three' },
      })
      expect(checkJournal(run.id, events).ok).toBe(true)
      const completed = events.filter(({ kind }) => kind === 'step_completed').map(({ stepId }) => stepId)
      expect(completed).toEqual(['code-one-1', 'model-2', 'code-three-3', 'entrypoint'])
      // The model was asked once, but where the process died before its answer was on record.
      const asked = (await readFile(join(at, 'asked.log'), 'utf8')).trim().split('\n')
      expect(asked).toHaveLength(killAt === 'model-2' ? 2 : 1)
    },
    90_000,
  )
})
