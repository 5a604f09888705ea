import { execFile, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requireBackend } from '../../tests/backends/require.ts'
import { programEnv } from '../../tests/program-env.ts'

const ALONE = ['--mount', '--propagation', 'private', 'sh', '-c']
const canUnmount = requireBackend(
  'unshare',
  spawnSync('unshare', [...ALONE, 'umount -R /sys/fs/cgroup']).status === 0,
  'run as root on Linux with control groups mounted',
)
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

  it('lists the images that agents may name', async () => {
    const data = join(folder, 'images/data')
    await mkdir(data, { recursive: true })
    await mkdir(join(folder, 'images/empty'))
    const digest = 'a'.repeat(64)
    const outputs = { agent: digest, vmlinux: digest, initramfs: digest }
    await writeFile(
      join(data, 'manifest.json'),
      JSON.stringify({ version: 1, inputs: [], outputs, programs: ['python3'] }),
    )
    const { out } = await nodeAgent(['doctor', '--only', 'wasm'], { NODE_AGENT_IMAGES_DIR: join(folder, 'images') })
    expect(out).toMatch(/\nguest image data: [0-9a-f]{64}, with python3\n/)
    expect(out).not.toContain('guest image empty')
  })

  it.runIf(canUnmount)('names no program to install where control groups are what is missing', async () => {
    const doctor = 'umount -R /sys/fs/cgroup && exec "$0" "$@"'
    const args = [process.execPath, main, 'doctor', '--json', '--only', 'wasm']
    const { stdout } = spawnSync('unshare', [...ALONE, doctor, ...args], { env: programEnv, encoding: 'utf8' })
    const { probes } = JSON.parse(stdout) as { probes: object[] }
    expect(probes).toEqual([
      expect.objectContaining({
        install: [],
        reasons: [expect.stringMatching(/^No control groups are mounted at .* mount them/)],
      }),
    ])
  })

  it('refuses a deadline or a setting that it cannot read', async () => {
    expect((await nodeAgent(['doctor', '--deadline', 'soon'])).err).toContain('--deadline expects seconds')
    expect((await nodeAgent(['doctor', '--only', 'wasm,rnuc'])).err).toContain('--only expects a comma list of runc')
    const names = await nodeAgent(['doctor'], { NODE_AGENT_BACKENDS: 'wasm, rnuc' })
    expect([names.code, names.err]).toEqual([
      2,
      expect.stringMatching(/^NODE_AGENT_BACKENDS: expected runc, .* or none; "rnuc" is not one/),
    ])
    const { code, err } = await nodeAgent(['doctor'], { NODE_AGENT_QEMU_ACCEL: 'fast' })
    expect([code, err]).toEqual([2, 'NODE_AGENT_QEMU_ACCEL: expected kvm or tcg, got "fast"\n'])
  })
})

it('node-agent image says where its inputs come from when they are not there', async () => {
  const { code, err } = await nodeAgent(['image', '--inputs', join(folder, 'nothing')])
  expect([code, err]).toEqual([1, expect.stringContaining('bash scripts/setup-host.sh')])
})

it('node-agent image says what a name may be, and that it stands in place of a folder', async () => {
  expect((await nodeAgent(['image', '--name', '../x'])).err).toContain('"../x" cannot be the name of an image')
  expect((await nodeAgent(['image', '--name', 'data', '--out', 'x'])).err).toBe('Give either --name or --out.\n')
})
