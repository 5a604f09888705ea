import { describe, expect, it } from 'vitest'
import { manifest } from '../../shared/wire/runtime/manifest.ts'
import { noSandboxes, type Offered, type Sandboxes, type SessionMachine } from '../execution/sandbox/sandboxes.ts'
import { sessionMachinesOf } from './session-vms.ts'

function backendsOf(...backends: Offered['backend'][]) {
  const acquired: SessionMachine[] = []
  const sandboxes: Sandboxes = {
    ...noSandboxes,
    offered: async wanted =>
      wanted.filter(backend => backends.includes(backend)).map(backend => ({ backend, programs: new Set() })),
    sessions: {
      async acquire(machine) {
        acquired.push(machine)
        return { backend: machine.offered.backend, state: 'cold', acquiredMs: 7 }
      },
      of: () => undefined,
      release: async () => undefined,
    },
  }
  return { machines: sessionMachinesOf(sandboxes, false), acquired }
}
const asking = (isolation: string) =>
  manifest.parse({ isolation, session: { dedicatedMicrovm: true, idleTimeoutSeconds: 90 } })

describe('a session whose agent asks for a machine of its own', () => {
  it('gets one of the backend that the manifest means, the strongest that is here', async () => {
    const { machines, acquired } = backendsOf('qemu', 'kata', 'runc')
    expect(await machines.acquire('s', 'a', asking('shared'))).toMatchObject({ backend: 'kata' })
    expect(await machines.acquire('s', 'a', asking('qemu'))).toMatchObject({ backend: 'qemu', state: 'cold' })
    expect(acquired[1]).toMatchObject({ id: 's', idleMs: 90_000, limits: { memoryMb: 512 } })
  })

  it.each(['runc', 'gvisor', 'firecracker'])(
    'is refused where %s is declared and no machine can be that',
    async isolation => {
      const { machines, acquired } = backendsOf('qemu', 'runc', 'gvisor')
      await expect(machines.acquire('s', 'a', asking(isolation))).rejects.toMatchObject({
        code: 'isolation_unavailable',
      })
      expect(acquired).toEqual([])
    },
  )

  it('is refused by a host that holds none, and others ask for nothing', async () => {
    const machines = sessionMachinesOf(noSandboxes, false)
    await expect(machines.acquire('s', 'a', asking('shared'))).rejects.toMatchObject({ code: 'isolation_unavailable' })
    expect(await machines.acquire('s', 'a', manifest.parse({}))).toBeUndefined()
  })
})
