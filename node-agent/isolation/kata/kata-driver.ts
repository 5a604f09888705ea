import { existsSync } from 'node:fs'
import { release } from 'node:os'
import type { GuestImage } from '../../guest/image-manifest.ts'
import { type Driver, IsolationError, type Probe } from '../driver.ts'
import { findProgram } from '../find-program.ts'
import { newOwnedId } from '../owned-id.ts'
import { runTool } from '../run-tool.ts'

export interface KataOptions {
  image: GuestImage
  /** Of containerd. */
  socket?: string
  path?: string
}

const RUNTIME = 'io.containerd.kata.v2'

/**
 * Kata runs behind containerd only: since its second version it has no command line of a runtime. Here it is found,
 * tried and reported; commands are not run in it yet, and asking for that is refused rather than done otherwise.
 */
export function kataDriver({ image, socket = '/run/containerd/containerd.sock', path }: KataOptions): Driver {
  async function missing(): Promise<string[]> {
    const lacking: string[] = []
    if ((await findProgram('ctr', path)) === undefined) lacking.push('The containerd client "ctr" was not found.')
    if (!existsSync(socket)) lacking.push(`containerd does not listen on ${socket}.`)
    if ((await findProgram('containerd-shim-kata-v2', path)) === undefined) {
      lacking.push('The shim "containerd-shim-kata-v2" was not found on PATH.')
    }
    if ((await findProgram('kata-runtime', path)) === undefined) {
      lacking.push('The program "kata-runtime" was not found on PATH.')
    }
    return lacking
  }

  async function examine(deadlineMs: number): Promise<{ reasons: string[]; kernelRelease?: string }> {
    const until = performance.now() + deadlineMs
    const reasons = await missing()
    if (reasons.length > 0) return { reasons }
    const tool = async (name: string, args: readonly string[]) =>
      runTool((await findProgram(name, path)) ?? name, args, Math.max(1, until - performance.now()))
    const check = await tool('kata-runtime', ['check'])
    if (check.code !== 0) {
      const end = check.timedOut ? 'it did not end in time' : `it ended with code ${check.code}`
      return { reasons: [`"kata-runtime check" failed: ${lastLine(check.stderr || check.stdout) || end}`] }
    }
    const run = [
      '-a',
      socket,
      'run',
      '--rm',
      '--runtime',
      RUNTIME,
      '--rootfs',
      image.rootfs,
      newOwnedId('kata'),
      // With a root that is no image the client sets no PATH.
      '/bin/uname',
      '-r',
    ]
    const probe = await tool('ctr', run)
    const kernelRelease = probe.stdout.trim()
    if (probe.timedOut) return { reasons: ['The probe container did not end in time, and was killed.'] }
    if (probe.code !== 0) return { reasons: [`The probe container failed: ${lastLine(probe.stderr)}`] }
    if (kernelRelease === release()) return { reasons: ["The probe container ran on the host's kernel."] }
    return { reasons: [], kernelRelease }
  }

  const refuse = async (): Promise<never> => {
    const reasons = await missing()
    const why = reasons.length > 0 ? reasons.join(' ') : 'This version runs no commands in it.'
    throw new IsolationError('isolation_unavailable', `Nothing was run under kata. ${why}`)
  }

  return {
    backend: 'kata',
    async probe(deadlineMs): Promise<Probe> {
      const { reasons, kernelRelease } = await examine(deadlineMs)
      return {
        backend: 'kata',
        available: false,
        ...(kernelRelease !== undefined && {
          kernelRelease,
          verifiedBy: 'ran a probe container whose kernel is its own',
        }),
        reasons:
          reasons.length > 0 ? reasons : ['Kata works here, but this version of the node runs no commands in it.'],
        install: reasons.length > 0 ? ['Install containerd and Kata Containers 2 or newer.'] : [],
      }
    },
    start: refuse,
    restore: refuse,
    reap: async () => [],
    async close() {},
  }
}

const lastLine = (text: string) => text.trim().split('\n').at(-1) ?? ''
