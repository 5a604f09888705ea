import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { NO_IMAGE } from '../../guest/image-manifest.ts'
import { kataDriver } from '../kata/kata-driver.ts'
import { escapeProbes } from '../testing/escape-probes.ts'
import { fakeFirecracker } from '../testing/fake-firecracker.ts'
import { hasGuestInputs, testImage } from '../testing/test-image.ts'
import { connectVsock, sendRequest } from './api-client.ts'
import { firecrackerDriver } from './firecracker-driver.ts'
import { bootRequests, jailerArgs, requestFault, restoreRequests, snapshotRequests } from './requests.ts'

const LIMITS = { memoryMb: 64, cpus: 0.5, pids: 16, diskMb: 16 }
const IMAGE = { rootfs: '/none', vmlinux: '/none', initramfs: '/none', digest: 'd', programs: [], rootMb: 0 }

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-fire-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('requests to firecracker, by our schema of its API', () => {
  it('fit it, and add no network interface', () => {
    const all = [...bootRequests(LIMITS, NO_IMAGE), ...snapshotRequests(), ...restoreRequests()]
    expect(all.map(requestFault).filter(Boolean)).toEqual([])
    expect(all.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'PUT /machine-config',
      'PUT /boot-source',
      'PUT /vsock',
      'PUT /entropy',
      'PUT /actions',
      'PATCH /vm',
      'PUT /snapshot/create',
      'PATCH /vm',
      'PUT /snapshot/load',
    ])
    expect(bootRequests(LIMITS, NO_IMAGE)[0]!.body).toMatchObject({ vcpu_count: 1, mem_size_mib: 176 })
  })

  it.each([
    ['PUT', '/machine-config', { vcpu_count: 1, mem_size_mb: 64 }],
    ['PUT', '/actions', { action_type: 'Start' }],
    ['PUT', '/vsock', { guest_cid: 2, uds_path: '/v' }],
    ['PUT', '/snapshot/load', { snapshot_path: '/s', mem_file_path: '/m' }],
    ['PUT', '/drives/root', { drive_id: 'other', path_on_host: '/d', is_root_device: true }],
    ['PUT', '/machine', {}],
    ['POST', '/actions', { action_type: 'InstanceStart' }],
  ])('that are wrong are found out: %s %s %j', (method, path, body) => {
    expect(requestFault({ method, path, body })).toBeTypeOf('string')
  })

  it('are refused before they are sent when they do not fit', () => {
    const wrong = { method: 'PUT' as const, path: '/machine-config', body: { vcpus: 1 } }
    expect(() => sendRequest(join(folder, 'none'), wrong, 100)).toThrow('does not fit the API')
  })

  it('name a jail for each machine, with limits in the words of the control groups here', () => {
    const jail = {
      id: 'wb-firecracker-1-2-0123456789ab',
      firecracker: '/fc',
      base: '/jails',
      uid: 9,
      memoryBytes: 4096,
      pids: 8,
    }
    expect(jailerArgs({ ...jail, cgroupVersion: 2 }).join(' ')).toContain(
      '--cgroup memory.max=4096 --cgroup pids.max=8',
    )
    expect(jailerArgs({ ...jail, cgroupVersion: 1 })).toContain('memory.limit_in_bytes=4096')
    expect(() => jailerArgs({ ...jail, id: 'no/way', cgroupVersion: 1 })).toThrow(RangeError)
  })
})

describe('against a fake of the API, behind which no machine runs', () => {
  it('boot, snapshot and resume come in an order that it takes', async () => {
    const socket = join(folder, 'api.sock')
    const fake = await fakeFirecracker(socket)
    for (const request of [...bootRequests(LIMITS, NO_IMAGE), ...snapshotRequests()])
      await sendRequest(socket, request, 1000)
    expect(fake.said[0]).toContain('no virtual machine runs')
    expect(fake.said.slice(1).every(line => line.startsWith('204'))).toBe(true)
    await fake.close()
  })

  it('a snapshot loads into a fresh process, and into no other', async () => {
    const [one, two] = [join(folder, 'one.sock'), join(folder, 'two.sock')]
    const [fresh, used] = [await fakeFirecracker(one), await fakeFirecracker(two)]
    await sendRequest(one, restoreRequests()[0]!, 1000)
    await sendRequest(two, bootRequests(LIMITS, NO_IMAGE)[0]!, 1000)
    await expect(sendRequest(two, restoreRequests()[0]!, 1000)).rejects.toThrow('only into a fresh process')
    await Promise.all([fresh.close(), used.close()])
  })

  it('what is out of order is refused with its reason', async () => {
    const socket = join(folder, 'api.sock')
    const fake = await fakeFirecracker(socket)
    const boot = bootRequests(LIMITS, NO_IMAGE)
    await expect(sendRequest(socket, boot.at(-1)!, 1000)).rejects.toThrow('no kernel was given')
    await expect(sendRequest(socket, snapshotRequests()[1]!, 1000)).rejects.toThrow('not paused')
    for (const request of boot) await sendRequest(socket, request, 1000)
    await expect(sendRequest(socket, boot[0]!, 1000)).rejects.toThrow('comes before the start')
    await fake.close()
  })
})

describe('the vsock of a machine', () => {
  async function answering(line: string) {
    const path = join(folder, 'vsock')
    const server = createServer(socket => socket.once('data', () => socket.write(line)))
    await new Promise<void>(resolve => server.listen(path, resolve))
    return { path, close: () => server.close() }
  }

  it('is asked for a port, and gives what follows its answer to the channel', async () => {
    const { path, close } = await answering('OK 77\nfirst bytes')
    const socket = await connectVsock(path, 1024, 1000)
    const rest = await new Promise<Buffer>(resolve => socket.once('data', resolve))
    expect(String(rest)).toBe('first bytes')
    socket.destroy()
    close()
  })

  it('that says anything else is not spoken to', async () => {
    const { path, close } = await answering('NO\n')
    await expect(connectVsock(path, 1024, 1000)).rejects.toThrow('it said "NO\\n"')
    await expect(connectVsock(join(folder, 'absent'), 1, 1000)).rejects.toMatchObject({ code: 'start_failed' })
    close()
  })
})

describe('where firecracker or kata are not installed', () => {
  it('firecracker is refused with each reason, and nothing runs', async () => {
    const driver = firecrackerDriver({
      image: IMAGE,
      stateDir: folder,
      binary: '/no/firecracker',
      jailer: '/no/jailer',
    })
    const probe = await driver.probe(1000)
    expect(probe).toMatchObject({ backend: 'firecracker', available: false })
    expect(probe.reasons[0]).toBe('The firecracker binary was not found (looked in FIRECRACKER_BIN, PATH).')
    expect(probe.verifiedBy).toBeUndefined()
    await expect(driver.start(LIMITS, 1000)).rejects.toMatchObject({
      code: 'isolation_unavailable',
      message: expect.stringMatching(/^Nothing was run under firecracker\. The firecracker binary was not found/),
    })
    await expect(driver.restore({ backend: 'firecracker', key: 'x', folder, limits: LIMITS }, 1000)).rejects.toThrow()
  })

  it('kata is refused with each reason, and nothing runs', async () => {
    const driver = kataDriver({ image: IMAGE, socket: join(folder, 'no.sock'), path: folder })
    expect(await driver.probe(1000)).toMatchObject({
      backend: 'kata',
      available: false,
      reasons: [
        'The containerd client "ctr" was not found.',
        `containerd does not listen on ${folder}/no.sock.`,
        'The shim "containerd-shim-kata-v2" was not found on PATH.',
      ],
    })
    await expect(driver.start(LIMITS, 1000)).rejects.toMatchObject({ code: 'isolation_unavailable' })
  })
})

const live = process.env.FIRECRACKER_BIN
if (live === undefined) {
  it.skip('runs a real machine: set FIRECRACKER_BIN, FIRECRACKER_JAILER and FIRECRACKER_KERNEL', () => {})
} else if (hasGuestInputs()) {
  describe('a real machine of firecracker', () => {
    let driver: ReturnType<typeof firecrackerDriver>
    beforeAll(async () => {
      driver = firecrackerDriver({
        image: await testImage(),
        stateDir: await mkdtemp(join(tmpdir(), 'waybill-fire-live-')),
        binary: live,
        ...(process.env.FIRECRACKER_JAILER && { jailer: process.env.FIRECRACKER_JAILER }),
        ...(process.env.FIRECRACKER_KERNEL && { kernel: process.env.FIRECRACKER_KERNEL }),
      })
    })
    escapeProbes({
      driver: () => driver,
      limits: LIMITS,
      ownKernel: true,
      survives: { memory: true, pids: true },
      startMs: 20_000,
    })
  })
}
