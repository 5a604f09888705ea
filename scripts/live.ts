import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * `npm run test:live -- firecracker|qemu-kvm|qemu-tcg|kata|gvisor|runc`: the whole contract of a backend on a machine that has it, as root, and a
 * report. FIRECRACKER_BIN, FIRECRACKER_JAILER and WAYBILL_LIVE_QEMU name the programs, WAYBILL_LIVE_KERNEL another kernel than the image's, and
 * WAYBILL_LIVE_SLOWNESS how many times longer than on hardware things may take. WAYBILL_LIVE_KATA_STAND_IN says that the shim of ordinary
 * containers bears Kata's name.
 */
const BACKENDS = ['firecracker', 'qemu-kvm', 'qemu-tcg', 'kata', 'gvisor', 'runc']
const [backend, ...rest] = process.argv.slice(2)
if (backend === undefined || !BACKENDS.includes(backend)) {
  console.error(`npm run test:live -- ${BACKENDS.join('|')}`)
  process.exit(2)
}
const folder = mkdtempSync(join(tmpdir(), 'waybill-live-report-'))
const facts = join(folder, 'facts')
writeFileSync(facts, '')
const root = new URL('..', import.meta.url).pathname
const { status } = spawnSync(`${root}node_modules/.bin/vitest`, ['run', '--config', 'tests/live.config.ts', ...rest], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, WAYBILL_LIVE_BACKEND: backend, WAYBILL_LIVE_FACTS: facts },
})
rmSync(folder, { recursive: true })
process.exitCode = status ?? 1
