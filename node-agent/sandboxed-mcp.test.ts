import { spawnSync } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { engineFixture, says, script } from '../runtime/execution/testing/engine-fixture.ts'
import { silentLog } from '../shared/log/log.ts'
import type { ManifestInput } from '../shared/wire/runtime/manifest.ts'
import { requireBackend } from '../tests/backends/require.ts'
import { sandboxTools } from '../tests/mcp/sandbox-tools.ts'
import { nodeEnv } from './env.ts'
import { hasGuestInputs, testImageFolder } from './isolation/testing/test-image.ts'
import { nodeSandboxes } from './sandboxes.ts'

const isRoot = process.getuid?.() === 0
const has = (binary: string) => isRoot && spawnSync(binary, ['--version']).status === 0
const inputs = hasGuestInputs()
const hasRunc = inputs && requireBackend('runc', has('runc'), 'apt-get install runc, and run as root')
const hasGvisor = inputs && requireBackend('gvisor', has('runsc'), 'apt-get install runsc, and run as root')
const hasQemu =
  inputs && requireBackend('qemu-system-x86_64', has('qemu-system-x86_64'), 'apt-get install qemu-system-x86')

const FILESYSTEM = '/opt/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js'

const folders: string[] = []
const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})
afterAll(async () => {
  for (const one of folders) await rm(one, { recursive: true, force: true })
})

type Calls = readonly { name: string; arguments?: Record<string, unknown> }[]

/** A run in a real sandbox whose model makes these calls, one turn after the other. */
async function run(manifest: ManifestInput, turns: readonly Calls[], tools: string | undefined) {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-node-'))
  folders.push(folder)
  await chmod(folder, 0o711)
  const env = nodeEnv.parse({
    NODE_AGENT_STATE_DIR: folder,
    NODE_AGENT_IMAGE_DIR: await testImageFolder(),
    NODE_AGENT_QEMU_ACCEL: 'tcg',
    NODE_AGENT_SANDBOX_TOOLS: tools,
  })
  const sandboxes = nodeSandboxes({ env, workspaces: join(folder, 'workspaces'), log: silentLog() })
  open.push(sandboxes)
  const ask = script([...turns.map(calls => says('', [...calls])), says('done')])
  const made = await engineFixture({ manifest, sandboxes, ask, secretOf: async () => 'canary-of-a-secret' })
  open.push(made)
  await made.engine.start()
  const id = await made.create({ prompt: 'go' })
  made.engine.wake()
  const ended = await made.until(id, undefined, 90_000)
  const events = await made.runs.events(id, 1, 1000)
  return {
    run: ended,
    events,
    of: (stepId: string) => events.findLast(one => one.stepId === stepId),
    texts: (stepId: string) => JSON.stringify(events.findLast(one => one.stepId === stepId)?.payload),
  }
}

const files = (more: object = {}) => ({
  name: 'fs',
  command: 'node',
  args: [FILESYSTEM, '/work'],
  allow: ['*'],
  ...more,
})
const write = (path: string, content: string) => ({ name: 'mcp__fs__write_file', arguments: { path, content } })
const read = (path: string) => ({ name: 'mcp__fs__read_text_file', arguments: { path } })

describe.each([
  ['runc', hasRunc],
  ['gvisor', hasGvisor],
] as const)('server-filesystem of npm inside %s', (isolation, here) => {
  it.runIf(here)(
    'is used by a run through its pipe, shares the workspace with exec, and sees nothing of the host',
    async () => {
      const tools = sandboxTools('@modelcontextprotocol/server-filesystem')
      const secrets = [{ env: 'CANARY', ref: 'secret/canary' }]
      const {
        run: ended,
        of,
        texts,
      } = await run(
        { isolation, mcpServers: [files()], tools: ['exec'], secrets, limits: { memoryMb: 1024, diskMb: 64 } },
        [
          [write('/work/a.txt', 'from the server')],
          [read('/work/a.txt'), read('/etc/passwd'), read('/opt/bin/node')],
          [{ name: 'exec', arguments: { command: 'cat /work/a.txt; id -u; echo $CANARY > c.txt; touch /opt/x' } }],
          [read('/work/c.txt')],
        ],
        tools,
      )
      expect(ended).toMatchObject({ status: 'succeeded', isolation: { used: isolation } })
      expect(of('mcp-1-1')).toMatchObject({ kind: 'step_completed', meta: { backend: isolation } })
      expect(of('mcp-list-fs')).toMatchObject({ kind: 'step_completed', meta: { backend: isolation } })
      expect(texts('mcp-2-1')).toContain('from the server')
      for (const outside of ['mcp-2-2', 'mcp-2-3']) expect(texts(outside)).toContain('Access denied')
      expect(texts('exec-3-1')).toMatch(/\/opt\/x: (?:Read-only file system|Permission denied).*from the server1000/)
      expect(texts('mcp-4-1')).toContain('***')
      expect(texts('mcp-4-1')).not.toContain('canary')
    },
    120_000,
  )
})

describe('a command that cannot be isolated', () => {
  it.runIf(hasRunc)('is refused before the model is asked where the root has no Node', async () => {
    const { run: ended, events } = await run({ isolation: 'runc', mcpServers: [files()] }, [], undefined)
    expect(ended.error).toMatchObject({
      code: 'isolation_unavailable',
      message: expect.stringContaining('needs node, which the root of runc'),
    })
    expect(events.some(({ kind }) => kind === 'step_started')).toBe(false)
  })

  it.runIf(hasRunc)(
    'is told with its reason where it cannot be started, and with its last words where it ends',
    async () => {
      const none = await run({ isolation: 'runc', mcpServers: [files({ command: 'npx' })] }, [], undefined)
      expect(none.run.error).toMatchObject({
        code: 'mcp_failed',
        message: expect.stringContaining('npx cannot be started'),
      })
      const args = ['-c', 'echo no licence found >&2; exit 3']
      const sh = await run({ isolation: 'runc', mcpServers: [files({ command: '/bin/sh', args })] }, [], undefined)
      expect(sh.run.error).toMatchObject({ code: 'mcp_failed' })
      expect(sh.run.error!.message).toMatch(/exit code 3: no licence found/)
    },
  )

  it.each([
    ['runc', 'no enrolled node offers runc (runc) for it'],
    ['shared', 'no enrolled node offers a microVM (firecracker, kata, qemu) for it'],
  ] as const)('is refused in %s where that cannot be had, before anything is asked', async (isolation, message) => {
    const made = await engineFixture({ manifest: { isolation, mcpServers: [files()] } })
    open.push(made)
    await made.engine.start()
    const id = await made.create({ prompt: 'go' })
    made.engine.wake()
    const ended = await made.until(id)
    expect(ended.error).toMatchObject({ code: 'isolation_unavailable', message: expect.stringContaining(message) })
  })
})

describe('a static server of the image', () => {
  /** A shell is all that a machine has: one that answers the three requests of a client by their order. */
  const SHELL = `
id() { printf '%s' "$1" | sed 's/.*"id":\\([0-9]*\\).*/\\1/'; }
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\\n' "$1" "$2"; }
while read -r line; do case "$line" in
*'"initialize"'*) say "$(id "$line")" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
*'"tools/list"'*) say "$(id "$line")" '{"tools":[{"name":"kernel","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
*'"tools/call"'*) say "$(id "$line")" "{\\"content\\":[{\\"type\\":\\"text\\",\\"text\\":\\"kernel $(uname -r)\\"}]}" ;;
esac; done`

  it.runIf(hasQemu)(
    'works inside a virtual machine as well',
    async () => {
      const server = { name: 'sh', command: '/bin/sh', args: ['-c', SHELL], allow: ['*'] }
      const {
        run: ended,
        of,
        texts,
      } = await run(
        { isolation: 'qemu', mcpServers: [server], limits: { memoryMb: 128, diskMb: 64 } },
        [[{ name: 'mcp__sh__kernel' }]],
        undefined,
      )
      expect(ended).toMatchObject({ status: 'succeeded', isolation: { used: 'qemu' } })
      expect(texts('mcp-1-1')).toContain(`kernel ${String(of('mcp-1-1')!.meta!.kernelRelease)}`)
    },
    120_000,
  )
})
