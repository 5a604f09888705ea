import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import { NO_IMAGE } from '../../guest/image-manifest.ts'
import { fakeFirecracker } from '../testing/fake-firecracker.ts'
import { connectVsock, NoAnswerError, sendRequest } from './api-client.ts'
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

  it('name a jail for each machine, and the group in which it stands already', () => {
    const jail = { id: 'wb-firecracker-1-2-0123456789ab', firecracker: '/fc', base: '/jails', uid: 9 }
    const args = jailerArgs({ ...jail, cgroupVersion: 2 }).join(' ')
    expect(args).toContain('--cgroup-version 2 --parent-cgroup waybill/wb-firecracker-1-2-0123456789ab ')
    expect(args).not.toContain('--cgroup ')
    expect(() => jailerArgs({ ...jail, id: 'no/way', cgroupVersion: 1 })).toThrow(RangeError)
  })
})

describe('against a fake of the API, behind which no machine runs', () => {
  const at = (name: string) => join(folder, name)
  async function fakeIn(name: string) {
    await makeFolder(at(name))
    return { socket: at(`${name}/api.sock`), ...(await fakeFirecracker(at(name))) }
  }

  it('boot, snapshot and resume come in an order that it takes', async () => {
    const fake = await fakeIn('one')
    for (const request of [...bootRequests(LIMITS, NO_IMAGE), ...snapshotRequests()])
      await sendRequest(fake.socket, request, 30_000)
    expect(fake.said[0]).toContain('no virtual machine runs')
    expect(fake.said.slice(1).every(line => line.startsWith('204'))).toBe(true)
    await fake.close()
  })

  it('a snapshot loads into a fresh process without the socket of another, and into no other', async () => {
    const [first, used, fresh] = [await fakeIn('one'), await fakeIn('used'), await fakeIn('fresh')]
    for (const request of [...bootRequests(LIMITS, NO_IMAGE), ...snapshotRequests()])
      await sendRequest(first.socket, request, 30_000)
    for (const name of ['used', 'fresh'])
      for (const file of ['state', 'memory']) await copyFile(at(`one/${file}`), at(`${name}/${file}`))
    await sendRequest(used.socket, bootRequests(LIMITS, NO_IMAGE)[0]!, 30_000)
    await expect(sendRequest(used.socket, restoreRequests()[0]!, 30_000)).rejects.toThrow('only into a fresh process')
    await writeFile(at('fresh/agent.vsock'), '')
    await expect(sendRequest(fresh.socket, restoreRequests()[0]!, 30_000)).rejects.toThrow('Address in use')
    await rm(at('fresh/agent.vsock'))
    await sendRequest(fresh.socket, restoreRequests()[0]!, 30_000)
    await Promise.all([first, used, fresh].map(fake => fake.close()))
  })

  it('what is out of order is refused with its reason', async () => {
    const fake = await fakeIn('one')
    const boot = bootRequests(LIMITS, NO_IMAGE)
    await expect(sendRequest(fake.socket, boot.at(-1)!, 1000)).rejects.toThrow('no kernel was given')
    await expect(sendRequest(fake.socket, snapshotRequests()[1], 1000)).rejects.toThrow('not paused')
    for (const request of boot) await sendRequest(fake.socket, request, 1000)
    await expect(sendRequest(fake.socket, boot[0]!, 1000)).rejects.toThrow('comes before the start')
    await fake.close()
  })

  it('what is refused without a fault_message has its reason all the same', async () => {
    const socket = at('api.sock')
    const server = createHttpServer((_request, answer) =>
      answer.writeHead(400).end('{"error":"Invalid \\"method\\"."}'),
    )
    await new Promise<void>(resolve => server.listen(socket, resolve))
    const asked = sendRequest(socket, snapshotRequests()[0], 1000)
    await expect(asked).rejects.toThrow('Firecracker refused PATCH /vm: Invalid "method".')
    server.close()
  })

  it('tells a socket without a listener from a refusal', async () => {
    await expect(sendRequest(at('none'), snapshotRequests()[0], 1000)).rejects.toBeInstanceOf(NoAnswerError)
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
    await expect(connectVsock(join(folder, 'absent'), 1, 1000)).rejects.toBeInstanceOf(NoAnswerError)
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
})
