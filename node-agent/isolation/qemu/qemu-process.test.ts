import { chmod, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NO_IMAGE } from '../../guest/image-manifest.ts'
import { CPU_PERIOD } from '../oci/cgroups.ts'
import { machineArgs } from './machine.ts'
import { startQemu, takeRamFolder } from './qemu-process.ts'

const root = process.getuid?.() === 0
const STARTS = 25

describe.runIf(root)('a QEMU that ends while its limits are read back', () => {
  let folder: string
  let binary: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-qemu-'))
    await chmod(folder, 0o755)
    binary = join(folder, 'ends-in-its-group')
    const script =
      '#!/bin/sh\nuntil grep -qE "(cpu|0:).*/waybill/" /proc/$$/cgroup; do :; done\necho "no such device" >&2\nexit 1\n'
    await writeFile(binary, script, { mode: 0o755 })
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('is refused in its own words, although the kernel holds no group for it any more', async () => {
    const cgroup = { memoryBytes: 64 << 20, pids: 8, cpuQuota: CPU_PERIOD }
    for (let start = 0; start < STARTS; start++) {
      const machine = {
        id: `wb-qemu-${process.pid}-ends-${start}`,
        accel: 'tcg',
        image: NO_IMAGE,
        ramMb: 64,
        ram: { kind: 'empty' },
        incoming: false,
      } as const
      await expect(startQemu({ binary, machine, cgroup })).rejects.toMatchObject({
        code: 'start_failed',
        message: 'QEMU started no machine: no such device',
      })
    }
  })

  it('gets nothing of the environment of the service, in which secrets stand', async () => {
    process.env.WAYBILL_TEST_SECRET = 'of the service'
    const says = join(folder, 'says-its-environment')
    await writeFile(says, '#!/bin/sh\necho "secret: $WAYBILL_TEST_SECRET." >&2\nexit 1\n', { mode: 0o755 })
    const machine = {
      id: `wb-qemu-${process.pid}-environment`,
      accel: 'tcg',
      image: NO_IMAGE,
      ramMb: 64,
      ram: { kind: 'empty' },
      incoming: false,
    } as const
    await expect(startQemu({ binary: says, machine })).rejects.toMatchObject({
      message: 'QEMU started no machine: secret: .',
    })
    delete process.env.WAYBILL_TEST_SECRET
  })
})

describe('the processor of a machine', () => {
  const cpuOf = (accel: 'kvm' | 'tcg', vendor: string) => {
    const args = machineArgs({
      id: 'a',
      accel,
      image: NO_IMAGE,
      ramMb: 64,
      ram: { kind: 'empty' },
      incoming: false,
      vendor,
    })
    return args[args.indexOf('-cpu') + 1]
  }

  it('has under KVM what its host has, but no register of Intel on the processors of others', () => {
    expect(cpuOf('kvm', 'GenuineIntel')).toBe('host')
    expect(cpuOf('kvm', 'AuthenticAMD')).toBe('host,arch-capabilities=off')
    expect(cpuOf('kvm', 'HygonGenuine')).toBe('host,arch-capabilities=off')
    expect(cpuOf('tcg', 'AuthenticAMD')).toBe('max')
  })
})

describe('the folder of the memory of machines', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-qemu-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('is made so that QEMU walks through it, under any umask', async () => {
    const place = join(folder, 'own')
    const before = process.umask(0o077)
    try {
      expect(await takeRamFolder(place)).toBe(place)
      await chmod(place, 0o700)
      await takeRamFolder(place)
    } finally {
      process.umask(before)
    }
    expect((await stat(place)).mode & 0o777).toBe(0o711)
  })

  it('is not taken from another account that laid it there first', async () => {
    const [open, away, link] = ['open', 'away', 'link'].map(name => join(folder, name)) as [string, string, string]
    await mkdir(open)
    await chmod(open, 0o777)
    await mkdir(away, { mode: 0o711 })
    await symlink(away, link)
    for (const place of [open, link, ...(root ? [] : ['/proc'])]) {
      await expect(takeRamFolder(place)).rejects.toMatchObject({ code: 'start_failed' })
    }
  })
})
