import type { Driver, Probe } from './driver.ts'

/** Longer than an emulated machine takes to boot beside other work: a backend that is only slow is not missing. */
export const PROBE_MS = 45_000

/** Beyond a probe's own deadline, for ending what it started. */
const CLEANUP_MS = 15_000

/** The probe of a backend, or that it is not available when its driver has not answered in time. */
export async function boundedProbe(driver: Driver, deadlineMs: number, cleanupMs = CLEANUP_MS): Promise<Probe> {
  const { promise: late, resolve } = Promise.withResolvers<Probe>()
  const timer = setTimeout(
    () =>
      resolve({ backend: driver.backend, available: false, reasons: ['Its probe did not end in time.'], install: [] }),
    deadlineMs + cleanupMs,
  )
  try {
    return await Promise.race([driver.probe(deadlineMs), late])
  } finally {
    clearTimeout(timer)
  }
}
