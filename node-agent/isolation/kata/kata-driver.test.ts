import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requireBackend } from '../../../tests/backends/require.ts'
import { until } from '../../../tests/runtime/node-fixture.ts'
import { NO_IMAGE } from '../../guest/image-manifest.ts'
import type { Driver, SandboxLimits } from '../driver.ts'
import { cgroupVersion, listGroups } from '../oci/cgroups.ts'
import { escapeProbes } from '../testing/escape-probes.ts'
import { shell } from '../testing/run-command.ts'
import { hasGuestInputs, testImage } from '../testing/test-image.ts'
import { kataDriver } from './kata-driver.ts'

const LIMITS: SandboxLimits = { memoryMb: 48, cpus: 1, pids: 24, diskMb: 16 }

const SHIM = '/usr/bin/containerd-shim-runc-v2'
const here =
  requireBackend(
    'containerd',
    process.getuid?.() === 0 && spawnSync('containerd', ['--version']).status === 0,
    'apt-get install containerd, and run as root',
  ) && hasGuestInputs()

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-kata-'))
  await chmod(folder, 0o711)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('Kata where it is not installed', () => {
  it('is refused with each reason, and nothing runs', async () => {
    const driver = kataDriver({ image: NO_IMAGE, stateDir: folder, socket: join(folder, 'no.sock'), path: folder })
    expect(await driver.probe(1000)).toEqual({
      backend: 'kata',
      available: false,
      reasons: [
        'There is no guest image: build it with "node-agent image".',
        'The containerd client "ctr" was not found.',
        `containerd does not listen on ${folder}/no.sock.`,
        'The shim "containerd-shim-kata-v2" was not found on PATH.',
      ],
      install: ['Install containerd and Kata Containers 3, with sandbox_cgroup_only = true in its configuration.'],
    })
    await expect(driver.start(LIMITS, 1000)).rejects.toMatchObject({ code: 'isolation_unavailable' })
    await expect(driver.restore({ backend: 'kata', key: '', folder, limits: LIMITS }, 1)).rejects.toMatchObject({
      code: 'unsupported',
    })
    expect(await driver.reap()).toEqual([])
  })
})

/** containerd itself, in which the shim of ordinary containers answers by Kata's name: all but the machine is as with Kata. */
describe.runIf(here)('Kata, with an ordinary shim in its place', () => {
  let daemon: ChildProcess
  let driver: Driver
  const at = (name: string) => join(folder, name)
  const program = (name: string, text: string) => writeFile(at(name), text, { mode: 0o755 })
  const options = async (more: object = {}) => ({
    image: await testImage(),
    stateDir: folder,
    socket: at('containerd.sock'),
    path: `${folder}:${process.env.PATH}`,
    ownKernel: false,
    ...more,
  })

  beforeAll(async () => {
    await symlink(SHIM, at('containerd-shim-kata-v2'))
    await writeFile(
      at('containerd.toml'),
      `version = 2
root = "${at('root')}"
state = "${at('state')}"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "${at('containerd.sock')}"
`,
    )
    daemon = spawn('containerd', ['--config', at('containerd.toml')], {
      stdio: 'ignore',
      env: { ...process.env, PATH: `${folder}:${process.env.PATH}` },
    })
    await until(
      async () => spawnSync('ctr', ['--address', at('containerd.sock'), 'version']).status === 0,
      'containerd answers',
    )
    driver = kataDriver(await options())
  }, 60_000)
  afterAll(async () => {
    await driver?.close()
    const ended = new Promise(resolve => daemon.once('exit', resolve))
    daemon.kill()
    await ended
  })

  describe('against foreign code', () => {
    escapeProbes({
      driver: () => driver,
      limits: LIMITS,
      ownKernel: false,
      survives: { memory: true, pids: true },
      startMs: 20_000,
    })
  })

  it('is found to work by running it', async () => {
    expect(await driver.probe(20_000)).toMatchObject({
      available: true,
      version: expect.stringMatching(/^\d+\.\d+/),
      verifiedBy: expect.stringContaining('read back on both sides'),
    })
  })

  it('is refused when the kernel inside is that of the host', async () => {
    const strict = kataDriver(await options({ ownKernel: true }))
    await expect(strict.start(LIMITS, 20_000)).rejects.toMatchObject({
      code: 'limits_not_in_force',
      message: expect.stringMatching(/^Nothing was run under kata: its kernel is the host's/),
    })
    await program('kata-runtime', '#!/bin/sh\necho "no vmx or svm" >&2\nexit 1\n')
    const { available, reasons } = await strict.probe(20_000)
    expect([available, reasons]).toEqual([
      false,
      [expect.stringContaining("its kernel is the host's"), '"kata-runtime check" failed: no vmx or svm'],
    ])
    await program('kata-runtime', '#!/bin/sh\nexit 3\n')
    expect((await strict.probe(20_000)).reasons).toContain('"kata-runtime check" failed: it ended with code 3')
    await rm(at('kata-runtime'))
  })

  it.each([
    ['outside of its group', 's#/waybill/[^"]*/sandbox#/waybill-elsewhere#', /which is not its own group/],
    ['without a limit of processes inside', 's#"pids":{"limit":[0-9]*}#"pids":{"limit":0}#', /inside/],
  ])('is refused when it stands %s', async (_, edit, said) => {
    const lax = at('lax')
    await rm(lax, { recursive: true, force: true })
    spawnSync('mkdir', [lax])
    await writeFile(
      join(lax, 'ctr'),
      `#!/bin/sh\nfor word in "$@"; do case "$word" in */config.json) sed -i '${edit}' "$word";; esac; done\nexec /usr/bin/ctr "$@"\n`,
      { mode: 0o755 },
    )
    const wrong = kataDriver(await options({ path: `${lax}:${folder}:${process.env.PATH}` }))
    await expect(wrong.start(LIMITS, 20_000)).rejects.toMatchObject({
      code: 'limits_not_in_force',
      message: expect.stringMatching(said),
    })
    await wrong.close()
  })

  it('says what containerd said when it starts nothing', async () => {
    const broken = kataDriver(await options({ image: { ...(await testImage()), rootfs: '/nowhere' } }))
    await expect(broken.start(LIMITS, 20_000)).rejects.toMatchObject({
      code: 'start_failed',
      message: expect.stringMatching(/^containerd started no sandbox: .*nowhere/),
    })
  })

  it('leaves no container, group or folder behind, and removes what a killed process left', async () => {
    const sandbox = await driver.start(LIMITS, 20_000)
    expect((await shell(sandbox, 'echo $$ > /work/a; cat /work/a')).exit).toEqual({ kind: 'code', code: 0 })
    await sandbox.stop()
    const script = `
      import { kataDriver } from '${new URL('kata-driver.ts', import.meta.url)}'
      const driver = kataDriver(${JSON.stringify(await options())})
      const { id } = await driver.start(${JSON.stringify(LIMITS)}, 20000)
      console.log(id)
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const id = String(await new Promise(resolve => child.stdout.once('data', resolve))).trim()
    expect(await driver.reap()).toEqual([])
    const ended = new Promise(resolve => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
    expect(await driver.reap()).toEqual([{ backend: 'kata', id }])
    const left = spawnSync('ctr', [
      '--address',
      at('containerd.sock'),
      '--namespace',
      'waybill',
      'containers',
      'ls',
      '-q',
    ])
    expect(String(left.stdout)).toBe('')
    expect((await listGroups()).filter(name => name.startsWith('wb-kata-'))).toEqual([])
    expect(await readdir(at('kata'))).toEqual([])
  })

  it('holds the whole machine in its group on the host', async () => {
    const sandbox = await driver.start({ ...LIMITS, cpus: 0.25 }, 20_000)
    const root = (await cgroupVersion()) === 2 ? '/sys/fs/cgroup/waybill' : '/sys/fs/cgroup/cpu/waybill'
    expect(await readdir(join(root, sandbox.id))).toContain('sandbox')
    await sandbox.stop()
  })
})
