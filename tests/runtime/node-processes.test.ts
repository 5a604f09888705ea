import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Node, NodeCreated } from '../../shared/wire/runtime/node.ts'
import type { Receipt, VerifyResult } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { makeNamespace, type Namespace, namespacesAvailable } from '../backends/namespaces.ts'
import { programEnv } from '../program-env.ts'
import { KEY } from './api.ts'
import { until } from './node-fixture.ts'

const CANARY = 'canary-7f3a91'
const MAIN = { control: 'runtime/cli/main.ts', node: 'node-agent/main.ts' }

let folder: string
let children: ChildProcess[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-processes-'))
  children = []
})
afterEach(async () => {
  await Promise.all(children.map(child => killed(child)))
  await rm(folder, { recursive: true, force: true })
})

function start(command: readonly string[], vars: Record<string, string>): ChildProcess {
  const [program = process.execPath, ...args] = command
  const child = spawn(program, args, { env: { ...programEnv, ...vars }, stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout?.resume()
  child.stderr?.resume()
  children.push(child)
  return child
}

async function killed(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  const ended = new Promise<number | null>(resolve => child.once('close', resolve))
  child.kill(signal)
  return ended
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise(resolve => server.close(resolve))
  return port
}

/** A control plane that executes nothing itself, and a node in a process of its own. */
async function pair(host: string, enter: readonly string[] = []) {
  const [api, tunnel] = [await freePort(), await freePort()]
  const insecure = host === '127.0.0.1' ? '0' : '1'
  const controlVars = {
    PLATFORM_BIND: `127.0.0.1:${api}`,
    PLATFORM_TUNNEL_BIND: `${host}:${tunnel}`,
    PLATFORM_EMBEDDED_NODE: 'off',
    PLATFORM_DATA_DIR: join(folder, 'control'),
    PLATFORM_BOOTSTRAP_KEY: KEY,
    PLATFORM_TUNNEL_INSECURE: insecure,
  }
  const nodeVars = {
    PLATFORM_CONTROL_URL: `http://${host}:${tunnel}`,
    PLATFORM_DATA_DIR: join(folder, 'node'),
    PLATFORM_TUNNEL_INSECURE: insecure,
    NODE_AGENT_BACKENDS: 'none',
    NODE_AGENT_STATE_DIR: join(folder, 'state'),
    NODE_AGENT_IMAGE_DIR: join(folder, 'image'),
  }
  async function call<T>(method: string, path: string, body?: unknown): Promise<{ status: number; body: T }> {
    const answer = await fetch(`http://127.0.0.1:${api}${path}`, {
      method,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: (await answer.json().catch(() => undefined)) as T }
  }
  const startControl = async () => {
    const child = start([process.execPath, MAIN.control, 'serve'], controlVars)
    await until(
      async () => (await call('GET', '/readyz').catch(() => undefined))?.status === 200,
      'it is ready',
      30_000,
    )
    return child
  }
  const startNode = (token = '') =>
    start([...enter, process.execPath, MAIN.node, 'run'], { ...nodeVars, PLATFORM_ENROL_TOKEN: token })

  let control = await startControl()
  const { body: announced } = await call<NodeCreated>('POST', '/v1/nodes', { name: 'one' })
  let node = startNode(announced.enrolToken)
  const status = async () => (await call<Node>('GET', `/v1/nodes/${announced.id}`)).body.status
  const stands = (wanted: Node['status'], ms = 30_000) =>
    until(async () => (await status()) === wanted, `the node is ${wanted}`, ms)
  await stands('online')
  await call('POST', '/v1/agents', { name: 'slow', manifest: { tools: ['wait'] } })

  return {
    call,
    startNode,
    stands,
    nodeId: announced.id,
    async begin(waits: number, seconds: number): Promise<string> {
      const prompt = `${CANARY}\n/call*${waits} wait {"seconds":${seconds}}`
      const { body } = await call<Run>('POST', '/v1/runs', { agentName: 'slow', input: { prompt } })
      return body.id
    },
    running: (id: string) =>
      until(
        async () => (await call<Run>('GET', `/v1/runs/${id}?fields=summary`)).body.status === 'running',
        'the run runs',
      ),
    /** It ended once, rightly, with every event once, on its node, and the receipt says so. */
    async endedRightly(id: string): Promise<void> {
      await until(
        async () => isTerminal((await call<Run>('GET', `/v1/runs/${id}?fields=summary`)).body.status),
        'the run ends',
        40_000,
      )
      const run = await until(
        async () => {
          const read = await call<Run>('GET', `/v1/runs/${id}`)
          return read.status === 200 && read.body
        },
        'the run is read',
        40_000,
      )
      expect(run).toMatchObject({ status: 'succeeded', nodeId: announced.id })
      expect(JSON.stringify(run.input)).toContain(CANARY)
      const { body: journal } = await call<JournalExport>('GET', `/v1/runs/${id}/journal`)
      expect(journal.events.map(({ seq }) => seq)).toEqual(journal.events.map((_, at) => at + 1))
      const completed = journal.events.filter(({ kind }) => kind === 'step_completed').map(({ stepId }) => stepId)
      expect(new Set(completed).size).toBe(completed.length)
      const { body: receipt } = await call<Receipt>('GET', `/v1/runs/${id}/receipt`)
      const { body: verified } = await call<VerifyResult>('POST', '/v1/runs/receipts/verify', { receipt, journal })
      expect(verified).toMatchObject({ valid: true, checks: { signature: 'ok', journal: 'ok', record: 'ok' } })
    },
    async killControl(): Promise<void> {
      await killed(control)
      control = await startControl()
    },
    async killNode(): Promise<void> {
      await killed(node)
      node = startNode()
    },
    stopNode: () => killed(node, 'SIGTERM'),
  }
}

async function held(side: string): Promise<boolean> {
  const names = (await readdir(join(folder, side))).filter(name => name.includes('.db'))
  expect(names.length).toBeGreaterThan(0)
  const files = await Promise.all(names.map(name => readFile(join(folder, side, name))))
  return files.some(file => file.includes(CANARY))
}

describe('a control plane and a node in processes of their own', () => {
  it('end a node whose store another one sealed, with a sentence', async () => {
    const { stopNode, startNode } = await pair('127.0.0.1')
    await stopNode()
    const db = await openDb(join(folder, 'node', 'node.db'))
    await db.execute(
      `update runtime_meta set value = 'wbs1.0000000000000000' || substr(value, 22) where key = 'master_key_canary'`,
    )
    db.close()
    const node = startNode()
    let said = ''
    node.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    await until(async () => node.exitCode !== null, 'it ends')
    expect([node.exitCode, said]).toEqual([1, expect.stringContaining('bring that file back')])
  })

  it('end every run once, rightly and on its node, whoever is killed', async () => {
    const { begin, running, endedRightly, killControl, killNode, stopNode, stands } = await pair('127.0.0.1')
    const first = await begin(4, 0.3)
    await running(first)
    await killNode()
    const second = await begin(4, 0.3)
    await endedRightly(first)
    const third = await begin(6, 0.3)
    await running(third)
    await killControl()
    await endedRightly(second)
    await endedRightly(third)
    // Sealed there, and nowhere else.
    expect(await held('node')).toBe(false)
    expect(await held('control')).toBe(false)
    expect(await stopNode()).toBe(0)
    await stands('offline')
  }, 120_000)
})

if (namespacesAvailable()) {
  describe('a node in a network of its own', () => {
    let cable: Namespace
    beforeEach(async () => {
      cable = await makeNamespace()
    })
    afterEach(() => cable.remove())

    it('goes on with its run while the cable is cut, and tells of it afterwards', async () => {
      const { begin, running, endedRightly, stands, call } = await pair(cable.egress, cable.enter)
      const id = await begin(4, 0.5)
      await running(id)
      await cable.cut()
      await stands('lost', 60_000)
      expect((await call('GET', `/v1/runs/${id}`)).status).toBe(503)
      expect((await call<Run>('GET', `/v1/runs/${id}?fields=summary`)).body).toMatchObject({ status: 'running' })
      expect((await call<Run[]>('GET', '/v1/runs')).body[0]).toMatchObject({ id, dataAvailable: false })
      await cable.mend()
      await endedRightly(id)
      expect(await held('control')).toBe(false)
    }, 180_000)
  })
}
