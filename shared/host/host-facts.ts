import { statfs } from 'node:fs/promises'
import type { HostFacts } from '../metrics/host-metrics.ts'

/** Of this process, and of the disk that holds a folder. */
export function hostFacts(folder: string | undefined): HostFacts {
  return {
    startedMs: performance.timeOrigin,
    residentBytes: () => process.memoryUsage.rss(),
    freeBytes:
      folder === undefined
        ? undefined
        : async () => {
            const { bavail, bsize } = await statfs(folder)
            return bavail * bsize
          },
  }
}
