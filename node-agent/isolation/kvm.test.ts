import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kvmGroup, qemuKvmTrouble } from './kvm.ts'

describe.runIf(process.getuid?.() === 0)('the device of KVM, for the user that a node of root starts QEMU as', () => {
  let folder: string
  let device: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waybill-kvm-'))
    device = join(folder, 'kvm')
    await writeFile(device, '')
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  it.each([
    [0o600, 0],
    [0o600, 104],
    [0o640, 104],
    [0o660, 0],
  ])('is of no use with mode %o and group %d, and what to do is said', async (mode, group) => {
    await chown(device, 0, group)
    await chmod(device, mode)
    expect(await qemuKvmTrouble(device)).toEqual({
      reason: expect.stringMatching(`has mode 0${mode.toString(8)} and the group ${group}. QEMU runs as a user`),
      install: expect.stringContaining(`chgrp kvm ${device} && chmod 0660 ${device}`),
    })
  })

  it.each([
    [0o660, 104, 104],
    [0o666, 0, undefined],
    [0o666, 104, undefined],
  ])('may be opened with mode %o and group %d, and gives QEMU the group %s', async (mode, group, needs) => {
    await chown(device, 0, group)
    await chmod(device, mode)
    expect([await qemuKvmTrouble(device), await kvmGroup(device)]).toEqual([undefined, needs])
  })

  it('that is not there is said to be missing', async () => {
    expect((await qemuKvmTrouble(join(folder, 'none')))?.reason).toContain('There is no')
  })
})
