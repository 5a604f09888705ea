import { readFileSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { cpus, loadavg, release, totalmem } from 'node:os'
import type { Driver, Sandbox, SandboxLimits } from '../../node-agent/isolation/driver.ts'
import { firecrackerDriver } from '../../node-agent/isolation/firecracker/firecracker-driver.ts'
import { kataDriver } from '../../node-agent/isolation/kata/kata-driver.ts'
import { kvmRemark } from '../../node-agent/isolation/kvm.ts'
import { cgroupVersion } from '../../node-agent/isolation/oci/cgroups.ts'
import { ociDriver } from '../../node-agent/isolation/oci/oci-driver.ts'
import { gvisor, runc } from '../../node-agent/isolation/oci/oci-flavours.ts'
import { qemuDriver } from '../../node-agent/isolation/qemu/qemu-driver.ts'
import { testImage } from '../../node-agent/isolation/testing/test-image.ts'

export type LiveBackend = 'firecracker' | 'qemu-kvm' | 'qemu-tcg' | 'kata' | 'gvisor' | 'runc'

const { env } = process
export const backend = env.WAYBILL_LIVE_BACKEND as LiveBackend
export const slowness = Number(env.WAYBILL_LIVE_SLOWNESS ?? 1)
/** Not that of ordinary containers, nor of their shim under Kata's name. */
export const hasOwnKernel = backend !== 'runc' && env.WAYBILL_LIVE_KATA_STAND_IN === undefined
export const isMachine = backend !== 'gvisor' && backend !== 'runc' && backend !== 'kata'

/** A driver of the backend as the environment says; each its own. */
export async function liveDriver(stateDir: string): Promise<Driver> {
  const built = await testImage()
  const image = env.WAYBILL_LIVE_KERNEL === undefined ? built : { ...built, vmlinux: env.WAYBILL_LIVE_KERNEL }
  if (backend === 'gvisor') return ociDriver(gvisor(), { image, stateDir })
  if (backend === 'kata') return kataDriver({ image, stateDir, ownKernel: hasOwnKernel })
  if (backend === 'runc') return ociDriver(runc(), { image, stateDir })
  const qemu = {
    image,
    stateDir,
    poolSize: 1,
    slowness,
    ...(env.WAYBILL_LIVE_QEMU !== undefined && { binary: env.WAYBILL_LIVE_QEMU }),
  }
  if (backend === 'qemu-kvm') return qemuDriver({ ...qemu, accel: 'kvm' })
  if (backend === 'qemu-tcg') return qemuDriver({ ...qemu, accel: 'tcg' })
  return firecrackerDriver({
    image,
    stateDir,
    slowness,
    poolSize: 1,
    ...(env.FIRECRACKER_BIN !== undefined && { binary: env.FIRECRACKER_BIN }),
    ...(env.FIRECRACKER_JAILER !== undefined && { jailer: env.FIRECRACKER_JAILER }),
  })
}

/** The same driver, whose commands have as much longer as its kernel may be slower. */
export function patient(driver: Driver): Driver {
  const slowed = (sandbox: Sandbox): Sandbox => ({
    ...sandbox,
    exec: request => sandbox.exec({ ...request, deadlineMs: request.deadlineMs * slowness }),
  })
  return {
    ...driver,
    start: async (limits: SandboxLimits, deadlineMs) => slowed(await driver.start(limits, deadlineMs * slowness)),
    restore: async (ref, deadlineMs) => slowed(await driver.restore(ref, deadlineMs * slowness)),
  }
}

export async function note(line: string): Promise<void> {
  await appendFile(env.WAYBILL_LIVE_FACTS!, `${line}\n`)
}

/** What the figures are of. */
export async function noteMachine(): Promise<void> {
  const flags = readFileSync('/proc/cpuinfo', 'utf8').match(/^flags\s*:(.*)$/m)?.[1] ?? ''
  const virtual = ['vmx', 'svm', 'hypervisor'].filter(flag => flags.split(' ').includes(flag))
  await note(`- ${new Date().toISOString().slice(0, 16)}Z, backend ${backend}, time scale ${slowness}`)
  await note(
    `- host: kernel ${release()}, ${cpus().length} processors (${cpus()[0]?.model}; ${virtual.join(', ') || 'no vmx, no svm'}), ` +
      `${Math.round(totalmem() / 2 ** 30)} GiB, control groups v${await cgroupVersion()}, load ${loadavg()[0]!.toFixed(1)}`,
  )
  const remark = await kvmRemark()
  if (isMachine && remark !== undefined) await note(`- ${remark}`)
}
