import type { NodeEnv } from '../env.ts'
import type { GuestImage } from '../guest/image-manifest.ts'
import type { Driver, Probe, Reaped } from './driver.ts'
import { firecrackerDriver } from './firecracker/firecracker-driver.ts'
import { kataDriver } from './kata/kata-driver.ts'
import { ociDriver } from './oci/oci-driver.ts'
import { gvisor, runc } from './oci/oci-flavours.ts'
import { qemuDriver } from './qemu/qemu-driver.ts'
import { wasmDriver } from './wasm/wasm-driver.ts'

/** Every backend, one driver each; which of them work here is for their probes to say. */
export function driversOf(env: NodeEnv, image: GuestImage): Driver[] {
  const stateDir = env.NODE_AGENT_STATE_DIR
  const tools = env.NODE_AGENT_SANDBOX_TOOLS
  const poolSize = env.PLATFORM_WARM_POOL
  const oci = { image, stateDir, ...(tools !== undefined && { tools }) }
  return [
    wasmDriver(),
    ociDriver(runc(), oci),
    ociDriver(gvisor(), oci),
    qemuDriver({ image, stateDir, accel: env.NODE_AGENT_QEMU_ACCEL, poolSize }),
    kataDriver(oci),
    firecrackerDriver({
      image,
      stateDir,
      poolSize,
      ...(env.FIRECRACKER_BIN !== undefined && { binary: env.FIRECRACKER_BIN }),
      ...(env.FIRECRACKER_JAILER !== undefined && { jailer: env.FIRECRACKER_JAILER }),
      ...(env.FIRECRACKER_KERNEL !== undefined && { kernel: env.FIRECRACKER_KERNEL }),
    }),
  ]
}

/** What earlier processes of this node left behind, of every backend; before the first sandbox is started. */
export async function reapAll(drivers: readonly Driver[]): Promise<Reaped[]> {
  const reaped: Reaped[] = []
  for (const driver of drivers) reaped.push(...(await driver.reap()))
  return reaped
}

/** Longer than an emulated machine takes to boot beside other work: a backend that is only slow is not missing. */
export const PROBE_MS = 45_000

/** Beyond a probe's own deadline, for ending what it started. */
const CLEANUP_MS = 15_000

/** The probe of a backend, or that it is not available when its driver has not answered in time. */
export async function boundedProbe(driver: Driver, deadlineMs: number): Promise<Probe> {
  const { promise: late, resolve } = Promise.withResolvers<Probe>()
  const timer = setTimeout(
    () =>
      resolve({ backend: driver.backend, available: false, reasons: ['Its probe did not end in time.'], install: [] }),
    deadlineMs + CLEANUP_MS,
  )
  try {
    return await Promise.race([driver.probe(deadlineMs), late])
  } finally {
    clearTimeout(timer)
  }
}
