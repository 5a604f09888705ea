import { spawnSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { release, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { engineFixture, type FixtureOptions } from '../runtime/execution/testing/engine-fixture.ts'
import { readAllowEntry } from '../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../shared/http/outbound/outbound-rule.ts'
import { silentLog } from '../shared/log/log.ts'
import type { ManifestInput } from '../shared/wire/runtime/manifest.ts'
import { requireBackend } from '../tests/backends/require.ts'
import { type NodeEnv, nodeEnv } from './env.ts'
import { buildImage } from './guest/build-image.ts'
import { INPUTS_FOLDER } from './guest/image-inputs.ts'
import { openImage } from './guest/image-manifest.ts'
import { describe as describeDiagnosis, examine } from './isolation/doctor.ts'
import { hasGuestInputs, testImageFolder } from './isolation/testing/test-image.ts'
import { nodeSandboxes } from './sandboxes.ts'

const isRoot = process.getuid?.() === 0
const has = (binary: string) => isRoot && spawnSync(binary, ['--version']).status === 0
const here = hasGuestInputs() && requireBackend('runc', has('runc'), 'apt-get install runc, and run as root')
const hasQemu = requireBackend('qemu-system-x86_64', has('qemu-system-x86_64'), 'apt-get install qemu-system-x86')

let folder: string
let env: NodeEnv
let sandboxes: ReturnType<typeof nodeSandboxes>
const open: { close(): Promise<void> }[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-node-'))
  await chmod(folder, 0o711)
  if (!here) return
  env = nodeEnv.parse({
    NODE_AGENT_STATE_DIR: folder,
    NODE_AGENT_IMAGE_DIR: await testImageFolder(),
    NODE_AGENT_IMAGES_DIR: join(folder, 'images'),
    NODE_AGENT_QEMU_ACCEL: 'tcg',
  })
  sandboxes = nodeSandboxes({ env, workspaces: join(folder, 'workspaces'), log: silentLog() })
})
afterAll(async () => {
  await sandboxes?.close()
  await rm(folder, { recursive: true, force: true })
})
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function room(manifest: ManifestInput, options: Partial<FixtureOptions> = {}) {
  const made = await engineFixture({ manifest, sandboxes, ...options })
  open.push(made)
  await made.engine.start()
  return made
}

/** What the calls of a run gave, in order. */
async function ran(made: Awaited<ReturnType<typeof room>>, lines: readonly string[]) {
  const id = await made.create({ prompt: lines.join('\n') })
  made.engine.wake()
  // A machine under software emulation takes its time where others work too.
  const run = await made.until(id, undefined, 60_000)
  const events = await made.runs.events(id, 1, 1000)
  const done = events.filter(({ kind, stepId }) => kind === 'step_completed' && stepId.startsWith('exec-'))
  return { id, run, events, outputs: done.map(({ payload }) => (payload as { output: unknown }).output), done }
}

const exec = (command: string) => `/call exec ${JSON.stringify({ command })}`

describe.runIf(here)('sandbox tools of a run', () => {
  it('run in the declared backend, with one workspace for all of them, and leave nothing behind', async () => {
    const made = await room({ isolation: 'runc', tools: ['exec', 'write_file', 'read_file', 'list_files'] })
    const { run, outputs, done } = await ran(made, [
      '/call write_file {"path":"in.txt","content":"six words of text, in a file"}',
      exec('wc -c < in.txt > out.txt; id -u; exit 3'),
      '/call read_file {"path":"out.txt"}',
      '/call list_files {}',
    ])
    expect(run).toMatchObject({ status: 'succeeded', isolation: { used: 'runc' } })
    expect(outputs).toMatchObject([
      { written: 28 },
      { stdout: expect.stringMatching(/^[1-9]\d*\n$/), exitCode: 3 },
      { content: expect.stringMatching(/^\s*28\n$/), encoding: 'utf8' },
      { files: expect.arrayContaining([expect.objectContaining({ name: 'in.txt', bytes: 28 })]) },
    ])
    expect(done[1]!.meta).toMatchObject({ backend: 'runc', kernelRelease: release() })
    await expect.poll(() => readdir(join(folder, 'workspaces'))).toEqual([])
  })

  it('find the workspace again after a wait, in another sandbox', async () => {
    const made = await room({ isolation: 'runc', tools: ['exec', 'wait_signal'] })
    const id = await made.create({
      prompt: [
        exec('echo kept > note; mkdir -p mod/pkg; echo x > mod/pkg/x; chmod 555 mod/pkg mod'),
        '/call wait_signal {"name":"go"}',
        exec('cat note mod/pkg/x; stat -c %a mod mod/pkg'),
      ].join('\n'),
    })
    made.engine.wake()
    await expect.poll(async () => (await made.runs.summary(id))?.parked?.reason).toBe('signal')
    await made.runs.signal(id, { id: 'one', name: 'go', value: 'null', atMs: Date.now() })
    made.engine.wake()
    expect(await made.until(id)).toMatchObject({ status: 'succeeded' })
    const events = await made.runs.events(id, 1, 100)
    const said = events.flatMap(({ kind, stepId, payload }) =>
      kind === 'step_completed' && stepId.startsWith('exec-')
        ? [(payload as { output: { stdout: string } }).output.stdout.split('\n')]
        : [],
    )
    expect(said[1]).toEqual(['kept', 'x', '555', '555', ''])
  })

  it('name what of a workspace cannot be kept', async () => {
    const made = await room({ isolation: 'runc', tools: ['exec'] })
    const { events } = await ran(made, [exec('echo x > shut; chmod 000 shut')])
    expect(JSON.stringify(events)).toContain("the workspace could not be kept: exit code 1: tar: can't open './shut'")
    const small = await room({ isolation: 'runc', tools: ['exec'], limits: { diskMb: 64 } })
    // The first would fit into an archive with room for its headers, and not into the next sandbox.
    for (const size of ['65M', '90M']) {
      const holed = await ran(small, [exec(`truncate -s ${size} holed`)])
      expect(JSON.stringify(holed.events)).toContain(
        'could not be kept: it is more than 64 MB, as files with holes count',
      )
    }
    const full = await ran(small, [exec('truncate -s 60M holed')])
    expect(full.run).toMatchObject({ status: 'succeeded' })
  })

  it('keep secrets out of the journal, and give them to the command', async () => {
    const made = await room(
      { isolation: 'runc', tools: ['exec'], secrets: [{ env: 'TOKEN', ref: 'secret/token' }] },
      { secretOf: async (_tenant, name) => (name === 'token' ? 's3cret-value' : undefined) },
    )
    const { outputs, events } = await ran(made, [exec('echo $TOKEN; echo -n $TOKEN | wc -c')])
    expect(outputs).toMatchObject([{ stdout: '***\n12\n' }])
    expect(JSON.stringify(events)).not.toContain('s3cret-value')
  })

  it('end a run that names a secret nobody stored', async () => {
    const made = await room({ isolation: 'runc', tools: ['exec'], secrets: [{ env: 'TOKEN', ref: 'secret/none' }] })
    expect((await ran(made, [exec('true')])).run).toMatchObject({ status: 'failed', error: { code: 'secret_missing' } })
  })

  it('reach what the egress rules name and nothing else, and each decision is told', async () => {
    const remote = createServer((_request, response) => response.end('from afar'))
    await new Promise<void>(done => remote.listen(0, '127.0.0.1', done))
    const { port } = remote.address() as AddressInfo
    const decisions: string[] = []
    const made = await room(
      { isolation: 'runc', tools: ['exec'], egress: [{ host: 'far.example', ports: [port] }] },
      {
        async egressDecided(_run, { allowed, host }) {
          decisions.push(`${allowed} ${host}`)
        },
        sandboxes: nodeSandboxes({
          env,
          workspaces: join(folder, 'workspaces'),
          log: silentLog(),
          rule: outboundRule([readAllowEntry(`127.0.0.1:${port}`)!]),
          resolve: async () => [{ address: '127.0.0.1', family: 4 }],
        }),
      },
    )
    const connect = (authority: string) =>
      `printf 'CONNECT ${authority} HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n' | nc 127.0.0.1 7702 | head -1`
    const tricks = ['169.254.169.254:80', `[::1]:${port}`, 'far.example:22', `far.example@169.254.169.254:${port}`]
    const { outputs, done } = await ran(made, [
      exec(`wget -q -O - http://far.example:${port}/`),
      exec(`wget -q -O - http://other.example:${port}/ 2>&1; nc 127.0.0.1 ${port} 2>&1 < /dev/null`),
      exec(tricks.map(connect).join('; ')),
      exec('echo nothing more'),
    ])
    remote.close()
    expect(outputs[0]).toMatchObject({ stdout: 'from afar', exitCode: 0 })
    expect(outputs[1]).toMatchObject({ stdout: expect.stringMatching(/403[\s\S]*refused/i), exitCode: 1 })
    expect(outputs[2]).toMatchObject({ stdout: 'HTTP/1.1 403 Refused\r\n'.repeat(tricks.length) })
    expect(decisions.slice(0, 2)).toEqual(['true far.example', 'false other.example'])
    expect(new Set(decisions.slice(2).map(one => one.split(' ')[0]))).toEqual(new Set(['false']))
    // What each step has reached stands in its event, under the chain that the receipt signs.
    const reached = done.map(({ meta }) => meta.egress)
    expect(reached[0]).toMatchObject([{ host: 'far.example', port, address: '127.0.0.1', calls: 1, refused: 0 }])
    expect(reached[0]![0]!.sentBytes).toBeGreaterThan(20)
    expect(reached[0]![0]!.receivedBytes).toBeGreaterThan('from afar'.length)
    expect(reached[1]).toEqual([{ host: 'other.example', port, calls: 0, refused: 1, sentBytes: 0, receivedBytes: 0 }])
    expect(reached[2]!.every(({ calls, refused }) => calls === 0 && refused > 0)).toBe(true)
    expect(reached[3]).toBeUndefined()
  })

  it('tell the model which limit ended a command, and go on', async () => {
    const made = await room({
      isolation: 'runc',
      limits: { memoryMb: 64, diskMb: 64 },
      tools: [{ name: 'exec', timeoutSeconds: 1 }],
    })
    const { run, outputs } = await ran(made, [exec('sleep 30'), exec('yes | head -c 3000000'), exec('echo still here')])
    expect(run.status).toBe('succeeded')
    expect(outputs).toMatchObject([
      { limit: { name: 'time' } },
      { limit: { name: 'output' }, truncated: true },
      { stdout: 'still here\n', exitCode: 0 },
    ])
  })

  it.each([
    ['firecracker', { isolation: 'firecracker', tools: ['exec'] }, /exec.*|its isolation needs firecracker/],
    ['kata', { isolation: 'kata' }, /its isolation needs kata/],
    ['an interpreter that the image lacks', { isolation: 'runc', tools: ['python'] }, /python needs python3/],
  ] satisfies [string, ManifestInput, RegExp][])(
    'end before the first step when a run asks for %s',
    async (_, manifest, why) => {
      const made = await room(manifest)
      const { run, events } = await ran(made, [exec('touch /work/ran')])
      expect(run).toMatchObject({
        status: 'failed',
        tokensIn: 0,
        tokensOut: 0,
        error: { code: 'isolation_unavailable', message: expect.stringMatching(why) },
      })
      expect(events).toEqual([])
    },
  )

  it.runIf(hasQemu)(
    'run in a machine with a kernel of its own, marked as emulated',
    async () => {
      const made = await room({ tools: ['exec'], limits: { memoryMb: 128, diskMb: 64 } })
      const { run, outputs, done } = await ran(made, [exec('uname -r')])
      expect(run).toMatchObject({ status: 'succeeded', isolation: { used: 'qemu' } })
      expect((outputs[0] as { stdout: string }).stdout.trim()).not.toBe(release())
      expect(done[0]!.meta).toMatchObject({ backend: 'qemu', accel: 'tcg' })
    },
    90_000,
  )
})

describe.runIf(here)('an agent that names an image', () => {
  const named = { image: 'notes', tools: ['exec'] } satisfies ManifestInput
  const read = exec('cat /usr/local/share/note')
  beforeAll(async () => {
    const files = join(folder, 'files')
    await mkdir(join(files, 'usr/local/share'), { recursive: true })
    await writeFile(join(files, 'usr/local/share/note'), 'of the image\n')
    await buildImage(INPUTS_FOLDER, join(folder, 'images/notes'), { added: files })
  })

  it('has the files of that image, another agent of the same node has not, and the event says which image it was', async () => {
    const made = await room({ ...named, isolation: 'runc' })
    const { outputs, done } = await ran(made, [read])
    expect(outputs).toMatchObject([{ stdout: 'of the image\n', exitCode: 0 }])
    const { digest } = (await openImage(join(folder, 'images/notes')))!
    expect(done[0]!.meta).toMatchObject({ backend: 'runc', image: { name: 'notes', digest } })
    const other = await room({ tools: ['exec'], isolation: 'runc' })
    const without = await ran(other, [read])
    expect(without.outputs).toMatchObject([{ exitCode: 1 }])
    expect(without.done[0]!.meta).not.toHaveProperty('image')
  })

  it.runIf(hasQemu)(
    'gets it from a pool of its own as a virtual machine',
    async () => {
      const made = await room({ ...named, isolation: 'qemu' })
      for (const _ of [1, 2]) expect((await ran(made, [read])).outputs).toMatchObject([{ stdout: 'of the image\n' }])
      const other = await room({ tools: ['exec'], isolation: 'qemu' })
      expect((await ran(other, [read])).outputs).toMatchObject([{ exitCode: 1 }])
    },
    240_000,
  )

  it('that is built anew is another one, in its calls and in what is on record of them, and a command in the old one goes on', async () => {
    const [files, image] = [join(folder, 'files'), join(folder, 'images/anew')]
    const build = async (note: string) => {
      await writeFile(join(files, 'usr/local/share/note'), note)
      await buildImage(INPUTS_FOLDER, image, { added: files })
      return (await openImage(image))!.digest
    }
    const first = await build('first\n')
    const made = await room({ ...named, image: 'anew', isolation: 'runc' })
    const before = await ran(made, [read])
    expect(before.outputs).toMatchObject([{ stdout: 'first\n' }])
    const slow = ran(made, [exec('sleep 6; cat /usr/local/share/note')])
    await new Promise(resolve => setTimeout(resolve, 2000))
    const second = await build('second\n')
    const after = await ran(made, [read])
    expect(after.outputs).toMatchObject([{ stdout: 'second\n' }])
    const imageOf = ({ done }: typeof after) => done[0]!.meta
    expect([imageOf(before), imageOf(after)]).toMatchObject([
      { image: { digest: first } },
      { image: { digest: second } },
    ])
    const meanwhile = await slow
    expect(meanwhile.outputs).toMatchObject([{ stdout: 'first\n', exitCode: 0 }])
    expect(imageOf(meanwhile)).toMatchObject({ image: { digest: first } })
  }, 60_000)

  it('is not run where its manifest is damaged, which doctor says', async () => {
    await mkdir(join(folder, 'images/broken'), { recursive: true })
    await writeFile(join(folder, 'images/broken/manifest.json'), '{')
    const made = await room({ ...named, image: 'broken', isolation: 'runc' })
    const { run } = await ran(made, [read])
    expect(run).toMatchObject({ status: 'failed', error: { code: 'isolation_unavailable' } })
    const said = describeDiagnosis(await examine(env, 1000, []))
    expect(said).toContain(`${join(folder, 'images/broken/manifest.json')} is damaged`)
  })

  it('is not run in another image where the node has none of that name', async () => {
    const made = await room({ ...named, image: 'missing', isolation: 'runc' })
    const { run } = await ran(made, [read])
    expect(run).toMatchObject({ status: 'failed', error: { code: 'isolation_unavailable' } })
    expect(run!.error!.message).toContain('"node-agent image --name missing" builds it')
  })
})
