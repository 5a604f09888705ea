import { cpus, freemem, loadavg, totalmem } from 'node:os'

const MB = 1024 * 1024

/** What this machine has, and how much of it is in use. */
export function hostMachine() {
  const count = cpus().length
  return {
    cpu: Math.min(1, (loadavg()[0] ?? 0) / Math.max(1, count)),
    vcpus: count,
    memoryMb: Math.floor(totalmem() / MB),
    memoryFreeMb: Math.floor(freemem() / MB),
  }
}
