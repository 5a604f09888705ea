import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { hasGuestInputs, testImageFolder } from '../../node-agent/isolation/testing/test-image.ts'
import { runStore } from '../../runtime/runs/store.ts'
import { clearRecords } from '../../runtime/vault/records.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { checkJournal } from '../../shared/sign/testing/check-journal.ts'
import { requireBackend } from '../backends/require.ts'
import { everythingOverHttp, FILESYSTEM } from '../mcp/real-servers.ts'
import { sandboxTools } from '../mcp/sandbox-tools.ts'
import { RUN_ID } from './run-id.ts'

const open: { close(): Promise<void> | void }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

function folder(): string {
  const made = realpathSync(mkdtempSync(join(tmpdir(), 'waybill-mcp-crash-')))
  open.push({ close: () => rmSync(made, { recursive: true }) })
  return made
}

type Moment = 'before-call' | 'after-call' | 'after-pin'

const program = fileURLToPath(new URL('./mcp-child.ts', import.meta.url))

async function life(at: string, given: object, moment?: Moment): Promise<void> {
  const args = [program, at, JSON.stringify(given), ...(moment ? [moment] : [])]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: 30_000 })
  let said = ''
  child.stderr.on('data', chunk => {
    said += String(chunk)
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (moment ? signal !== 'SIGKILL' : code !== 0) throw new Error(`ended with ${code ?? signal}: ${said}`)
}

/** What the store and the far end say after a life that was cut off and one that was not. */
async function killed(at: string, given: object, moment: Moment) {
  await life(at, given, moment)
  await life(at, given)
  const db = await openDb(join(at, 'run.db'))
  try {
    const runs = runStore(db, clearRecords)
    const events = await runs.events(RUN_ID, 1, 1000)
    expect(checkJournal(RUN_ID, events).ok).toBe(true)
    const asked = await db.execute("select reason, action from approvals where status = 'pending'")
    return {
      run: (await runs.get(RUN_ID))!,
      calls: existsSync(join(at, 'calls.log')) ? readFileSync(join(at, 'calls.log'), 'utf8').trim().split('\n') : [],
      listed: events.flatMap(({ stepId, kind }) => (stepId === 'mcp-list-all' ? [kind] : [])),
      of: events.flatMap(({ stepId, kind, attempt }) => (stepId === 'mcp-1-1' ? [`${kind} ${attempt}`] : [])),
      output: events.findLast(({ stepId, kind }) => stepId === 'mcp-1-1' && kind === 'step_completed')?.payload,
      asked: asked.rows.map(row => [row.reason, JSON.parse(String(row.action))]),
    }
  } finally {
    db.close()
  }
}

const key = `${RUN_ID}:mcp-1-1:1`

it.each(['before-call', 'after-call'] as const)(
  'a read of server-everything over streamable HTTP is made again under its key: %s',
  async moment => {
    const server = await everythingOverHttp()
    open.push(server)
    const given = {
      server: { name: 'all', url: server.url },
      call: { name: 'get-sum', arguments: { a: 2, b: 3 } },
    }
    const after = await killed(folder(), given, moment)
    expect(after.run).toMatchObject({ status: 'succeeded', output: { result: 'done' } })
    expect(after.of).toEqual(['step_started 1', 'step_completed 1'])
    expect(after.output).toMatchObject({ output: { content: [{ text: 'The sum of 2 and 3 is 5.' }] } })
    expect(after.calls).toEqual(moment === 'before-call' ? [key] : [key, key])
  },
  60_000,
)

it('a listing that was cut off after the definitions were kept gets its last word', async () => {
  const server = await everythingOverHttp()
  open.push(server)
  const given = { server: { name: 'all', url: server.url }, call: { name: 'get-sum', arguments: { a: 2, b: 3 } } }
  const after = await killed(folder(), given, 'after-pin')
  expect(after.run.status).toBe('succeeded')
  expect(after.listed).toEqual(['step_started', 'step_completed'])
})

it('a write of server-filesystem over stdio that may be repeated is', async () => {
  const at = folder()
  const files = folder()
  const path = join(files, 'a.txt')
  const server = { name: 'fs', command: process.execPath, args: [FILESYSTEM, files] }
  const given = { server, call: { name: 'write_file', arguments: { path, content: 'written' } } }
  const after = await killed(at, given, 'after-call')
  expect(after.run.status).toBe('succeeded')
  expect(after.calls).toEqual([key, key])
  expect(readFileSync(path, 'utf8')).toBe('written')
})

it.each(['before-call', 'after-call'] as const)(
  'a move of server-filesystem over stdio is not made again: a human says whether it happened: %s',
  async moment => {
    const at = folder()
    const files = folder()
    const [source, destination] = [join(files, 'a.txt'), join(files, 'b.txt')]
    writeFileSync(source, 'moved')
    const server = { name: 'fs', command: process.execPath, args: [FILESYSTEM, files] }
    const given = { server, call: { name: 'move_file', arguments: { source, destination } } }
    const after = await killed(at, given, moment)
    expect(after.run.status).toBe('waiting')
    expect(after.of).toEqual(['step_started 1', 'step_waiting 1'])
    expect(after.asked).toEqual([
      ['uncertain_step', { name: 'mcp__fs__move_file', arguments: { source, destination } }],
    ])
    expect([existsSync(source), existsSync(destination)]).toEqual([moment === 'before-call', moment === 'after-call'])
    expect(after.calls.length).toBe(moment === 'before-call' ? 0 : 1)
  },
  60_000,
)

const has = (binary: string) => spawnSync(binary, ['--version']).status === 0
const here =
  hasGuestInputs() &&
  requireBackend('runc', process.getuid?.() === 0 && has('runc'), 'apt-get install runc, and run as root')

describe.runIf(here)('server-filesystem inside runc, under a service that is killed', () => {
  const server = {
    name: 'fs',
    command: 'node',
    args: ['/opt/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js', '/work'],
  }
  const given = async (at: string, call: object) => ({
    server,
    call,
    node: {
      NODE_AGENT_STATE_DIR: at,
      NODE_AGENT_IMAGE_DIR: await testImageFolder(),
      NODE_AGENT_SANDBOX_TOOLS: sandboxTools('@modelcontextprotocol/server-filesystem'),
    },
  })
  const walkable = () => {
    const at = folder()
    chmodSync(at, 0o711)
    return at
  }

  it('writes again what may be written twice, in a sandbox that is new', async () => {
    const at = walkable()
    const call = { name: 'write_file', arguments: { path: '/work/a.txt', content: 'written' } }
    const after = await killed(at, await given(at, call), 'after-call')
    expect(after.run.status).toBe('succeeded')
    expect(after.calls).toEqual([key, key])
    expect(after.of).toEqual(['step_started 1', 'step_completed 1'])
    // The sandbox of the life that was cut off is gone as well.
    expect(readdirSync(join(at, 'runc/state'))).toEqual([])
  })

  it('does not move again what it may have moved: a human says whether it happened', async () => {
    const at = walkable()
    const call = { name: 'move_file', arguments: { source: '/work/a', destination: '/work/b' } }
    const after = await killed(at, await given(at, call), 'after-call')
    expect(after.run.status).toBe('waiting')
    expect(after.calls).toEqual([key])
    expect(after.asked).toEqual([['uncertain_step', { name: 'mcp__fs__move_file', arguments: call.arguments }]])
  })
})
