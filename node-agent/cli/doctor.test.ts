import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { programEnv } from '../../tests/program-env.ts'

const main = new URL('../main.ts', import.meta.url).pathname
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-doctor-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

function nodeAgent(
  args: string[],
  vars: Record<string, string> = {},
): Promise<{ code: number; out: string; err: string }> {
  const env = { ...programEnv, NODE_AGENT_STATE_DIR: folder, NODE_AGENT_IMAGE_DIR: join(folder, 'none'), ...vars }
  return new Promise(resolve => {
    execFile(process.execPath, [main, ...args], { env }, (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err })
    })
  })
}

describe('node-agent doctor', () => {
  it('runs what can be run and says what each other backend lacks', async () => {
    const { code, out } = await nodeAgent(['doctor', '--json', '--deadline', '15'])
    const { probes, host } = JSON.parse(out) as { probes: { backend: string; available: boolean }[]; host: object }
    expect(code).toBe(0)
    expect(probes.map(({ backend }) => backend)).toEqual(['wasm', 'runc', 'gvisor', 'qemu', 'kata', 'firecracker'])
    expect(probes[0]).toMatchObject({ available: true, verifiedBy: expect.any(String) })
    expect(probes[1]).toMatchObject({
      available: false,
      reasons: [expect.stringContaining('There is no guest image in')],
      install: [expect.stringContaining('node-agent image')],
    })
    expect(host).toMatchObject({ kvm: expect.any(String) })
  })

  it('tells people the same, and fails when nothing works', async () => {
    const { code, out } = await nodeAgent(['doctor', '--only', 'firecracker'], { FIRECRACKER_BIN: '/no/such' })
    expect(code).toBe(1)
    expect(out).toMatch(/^no {3}firecracker\n {7}The firecracker binary was not found/)
    expect(out).toContain('→ Install firecracker')
  })

  it('refuses a deadline or a setting that it cannot read', async () => {
    expect((await nodeAgent(['doctor', '--deadline', 'soon'])).err).toContain('--deadline expects seconds')
    const { code, err } = await nodeAgent(['doctor'], { NODE_AGENT_QEMU_ACCEL: 'fast' })
    expect([code, err]).toEqual([2, 'NODE_AGENT_QEMU_ACCEL: expected kvm or tcg, got "fast"\n'])
  })
})

it('node-agent image says where its inputs come from when they are not there', async () => {
  const { code, err } = await nodeAgent(['image', '--inputs', join(folder, 'nothing')])
  expect([code, err]).toEqual([1, expect.stringContaining('bash scripts/setup-host.sh')])
})
