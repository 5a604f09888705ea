import { release } from 'node:os'
import { collect } from './byte-queue.ts'
import { type Driver, IsolationError, type Probe } from './driver.ts'
import { requireCgroups } from './oci/cgroups.ts'
import { runTool } from './run-tool.ts'

export interface ProbeByRun {
  binary: string
  versionOf: (text: string) => string | undefined
  deadlineMs: number
  /** Whether the kernel inside must be another than the host's. */
  ownKernel: boolean
  verifiedBy: string
  install: string
}

const PROBE_LIMITS = { memoryMb: 64, cpus: 1, pids: 8, diskMb: 8 }

/** Starts a small sandbox, asks it for its kernel, and says what came of it. */
export async function probeByRun(
  driver: Driver,
  { binary, versionOf, deadlineMs, ownKernel, verifiedBy, install }: ProbeByRun,
): Promise<Probe> {
  const until = performance.now() + deadlineMs
  const asked = await runTool(binary, ['--version'], deadlineMs)
  const version = versionOf(asked.stdout)
  const failed = (reason: string, todo = [install]): Probe => ({
    backend: driver.backend,
    available: false,
    ...(version !== undefined && { version }),
    reasons: [reason],
    install: todo,
  })
  if (asked.missing) return failed(`There is no program "${binary}".`)
  try {
    await requireCgroups()
    const sandbox = await driver.start(PROBE_LIMITS, until - performance.now())
    try {
      const left = Math.max(1, until - performance.now())
      const uname = await sandbox.exec({ argv: ['uname', '-r'], deadlineMs: left, outputBytes: 1024 })
      const said = new TextDecoder().decode(await collect(uname.stdout)).trim()
      const exit = await uname.exit
      if (exit.kind !== 'code' || exit.code !== 0) return failed(`A command ended with ${JSON.stringify(exit)}.`)
      if (ownKernel === (said === release())) {
        return failed(`The kernel inside is ${said}, and that of the host is ${release()}.`)
      }
      return {
        backend: driver.backend,
        available: true,
        ...(version !== undefined && { version }),
        ...(sandbox.accel !== undefined && { accel: sandbox.accel }),
        kernelRelease: said,
        verifiedBy,
        reasons: [],
        install: [],
      }
    } finally {
      await sandbox.stop()
    }
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error), lacksLimits(error) ? [] : undefined)
  }
}

/** Then no program is missing, and the reason says what is. */
export const lacksLimits = (error: unknown) => error instanceof IsolationError && error.code === 'limits_not_in_force'
