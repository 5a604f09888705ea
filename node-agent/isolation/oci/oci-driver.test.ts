import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import { requireBackend } from '../../../tests/backends/require.ts'
import type { GuestImage } from '../../guest/image-manifest.ts'
import type { Driver, SandboxLimits } from '../driver.ts'
import { newOwnedId } from '../owned-id.ts'
import { escapeProbes } from '../testing/escape-probes.ts'
import { shell } from '../testing/run-command.ts'
import { hasGuestInputs, testImage } from '../testing/test-image.ts'
import { CGROUP_PARENT, listGroups } from './cgroups.ts'
import { type OciFlavour, ociDriver } from './oci-driver.ts'
import { gvisor, runc } from './oci-flavours.ts'

const LIMITS: SandboxLimits = { memoryMb: 48, cpus: 1, pids: 24, diskMb: 16 }

const isRoot = process.getuid?.() === 0
const has = (binary: string) => isRoot && spawnSync(binary, ['--version']).status === 0
const installed = {
  runc: requireBackend('runc', has('runc'), 'apt-get install runc, and run as root'),
  gvisor: requireBackend('runsc', has('runsc'), 'apt-get install runsc, and run as root'),
}
const image = hasGuestInputs()

it.runIf(isRoot)('leaves nothing mounted in its state, however often its runtime has mounted it', async () => {
  const stateDir = await mkdtemp(join(tmpdir(), 'waybill-oci-'))
  const driver = ociDriver(gvisor(), { image: {} as GuestImage, stateDir })
  const shared = join(stateDir, 'gvisor', 'state', 'null-netns')
  await makeFolder(join(stateDir, 'gvisor', 'state'), 0o711)
  await writeFile(shared, '')
  for (let times = 0; times < 2; times++) spawnSync('mount', ['--bind', '/proc/self/ns/net', shared])
  await driver.close()
  expect(readFileSync('/proc/self/mounts', 'utf8')).not.toContain(stateDir)
  await rm(stateDir, { recursive: true })
})

describe.each<[OciFlavour, Parameters<typeof escapeProbes>[0]['survives']]>([
  [runc(), { memory: true, pids: true }],
  // Its memory is one process of the host, and its tasks are the host's: at either limit the whole of it ends.
  [gvisor(), { memory: false, pids: false }],
])('$backend', (flavour, survives) => {
  const here = image && installed[flavour.backend]
  let stateDir: string
  let driver: Driver

  beforeAll(async () => {
    if (!here) return
    stateDir = await mkdtemp(join(tmpdir(), 'waybill-oci-'))
    await chmod(stateDir, 0o711)
    driver = ociDriver(flavour, { image: await testImage(), stateDir })
  })
  afterAll(async () => {
    if (!here) return
    await driver?.close()
    await rm(stateDir, { recursive: true, force: true })
  })

  describe.runIf(here)('against foreign code', () => {
    escapeProbes({
      driver: () => driver,
      limits: LIMITS,
      ownKernel: flavour.backend === 'gvisor',
      survives,
      startMs: 10_000,
    })
  })

  describe.runIf(here)('on this host', () => {
    it('is found to work by running it', async () => {
      expect(await driver.probe(15_000)).toMatchObject({
        available: true,
        verifiedBy: expect.stringContaining('read back'),
      })
    })

    it('leaves nothing behind', async () => {
      const sandbox = await driver.start(LIMITS, 10_000)
      expect(await listGroups()).toContain(sandbox.id)
      await sandbox.stop()
      expect(await listGroups()).not.toContain(sandbox.id)
      expect(await readdir(join(stateDir, flavour.backend, 'bundles'))).not.toContain(sandbox.id)
    })

    it('refuses to snapshot and to restore instead of pretending', async () => {
      const sandbox = await driver.start(LIMITS, 10_000)
      await expect(sandbox.snapshot()).rejects.toMatchObject({ code: 'unsupported' })
      const ref = { backend: flavour.backend, key: 'none', folder: stateDir, limits: LIMITS }
      await expect(driver.restore(ref, 1000)).rejects.toMatchObject({ code: 'unsupported' })
      await sandbox.stop()
    })

    it('ends with the process of its node, and what stayed is reaped', async () => {
      // Another process starts a sandbox and is killed before it can clean up.
      const script = `
        import { ociDriver } from '${new URL('oci-driver.ts', import.meta.url)}'
        import { ${flavour.backend} } from '${new URL('oci-flavours.ts', import.meta.url)}'
        const driver = ociDriver(${flavour.backend}(), ${JSON.stringify({ image: await testImage(), stateDir })})
        const { id } = await driver.start(${JSON.stringify(LIMITS)}, 10000)
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
      const kept = await driver.start(LIMITS, 10_000)
      expect(await driver.reap()).toEqual([{ backend: flavour.backend, id }])
      expect(await listGroups()).not.toContain(id)
      expect((await shell(kept, 'echo still here')).stdout).toBe('still here\n')
      await kept.stop()
    })

    it('is refused when the limits are not in force', async () => {
      // A runtime that takes the bundle and drops its limits, as some do behind a flag.
      const folder = await mkdtemp(join(tmpdir(), 'waybill-lax-'))
      const binary = join(folder, flavour.binary)
      const drop = `const fs = require('node:fs'); const at = process.argv[1] + '/config.json'
        const config = JSON.parse(fs.readFileSync(at)); delete config.linux.resources.pids
        fs.writeFileSync(at, JSON.stringify(config))`
      await writeFile(
        binary,
        `#!/bin/bash
previous=
for word in "$@"; do
  [ "$previous" = --bundle ] && ${process.execPath} -e '${drop.replaceAll("'", `'\\''`)}' "$word"
  previous="$word"
done
exec ${flavour.binary} "$@"
`,
      )
      await chmod(binary, 0o755)
      const lax = ociDriver({ ...flavour, binary }, { image: await testImage(), stateDir })
      await expect(lax.start(LIMITS, 10_000)).rejects.toMatchObject({
        code: 'limits_not_in_force',
        message: expect.stringMatching(/^Nothing was run under \w+: processes are limited to max, not to \d+\.$/),
      })
      await rm(folder, { recursive: true })
    })

    it('is refused in time when the runtime hangs', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'waybill-hang-'))
      const binary = join(folder, 'hangs')
      await writeFile(
        binary,
        `#!/bin/sh\ncase "$*" in *" run "*) while :; do :; done;; *) exec ${flavour.binary} "$@";; esac\n`,
      )
      await chmod(binary, 0o755)
      const hanging = ociDriver({ ...flavour, binary }, { image: await testImage(), stateDir })
      const from = performance.now()
      const probe = await hanging.probe(1000)
      expect(probe).toMatchObject({ available: false, reasons: [expect.stringContaining('killed at the deadline')] })
      expect(performance.now() - from).toBeLessThan(6000)
      await rm(folder, { recursive: true })
    })
  })

  it('is reported as missing, with what to install, where there is no such program', async () => {
    const nowhere = { rootfs: '/', vmlinux: '/', initramfs: '/', digest: '', programs: [], rootMb: 0 }
    const missing = ociDriver(
      { ...flavour, ...named(flavour, '/no/such/program') },
      { image: nowhere, stateDir: '/tmp' },
    )
    expect(await missing.probe(1000)).toMatchObject({
      available: false,
      reasons: ['There is no program "/no/such/program".'],
      install: [expect.stringMatching(/^Install /)],
    })
  })
})

const named = (flavour: OciFlavour, binary: string) => (flavour.backend === 'runc' ? runc(binary) : gvisor(binary))

describe('control groups', () => {
  it.runIf(existsSync('/sys/fs/cgroup'))('of this node stand in one place of their own', async () => {
    expect(CGROUP_PARENT).toBe('/waybill')
    expect((await listGroups()).every(name => name.startsWith('wb-'))).toBe(true)
    expect(newOwnedId('runc')).toMatch(/^wb-runc-\d+-\d+-[0-9a-f]{12}$/)
  })
})
