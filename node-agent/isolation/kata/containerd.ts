import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { z } from 'zod'
import { readJson } from '../../../shared/json/read-json.ts'
import { runTool } from '../run-tool.ts'

/** Sandboxes of nodes stand in a namespace of containerd of their own. */
const NAMESPACE = 'waybill'

const RUNTIME = 'io.containerd.kata.v2'

const CALL_MS = 10_000

/** What a container may take, as the statistics of its shim say: in the shape of either version of control groups. */
const statistics = z.object({
  pids: z.object({ limit: z.number() }),
  memory: z.object({
    usage_limit: z.number().optional(),
    usage: z.object({ limit: z.number() }).or(z.number()).optional(),
  }),
})

export type Attached = ChildProcessByStdio<Writable, Readable, Readable>

export type Containerd = ReturnType<typeof containerd>

/** What is asked of containerd, by its own client. */
export function containerd(ctr: string, socket: string) {
  const flags = ['--address', socket, '--namespace', NAMESPACE]
  const call = (...args: string[]) => runTool(ctr, [...flags, ...args], CALL_MS)

  return {
    /** A container of an OCI `config.json`. Its standard input and output are those of the child. */
    run: (id: string, config: string): Attached =>
      spawn(ctr, [...flags, 'run', '--rm', '--runtime', RUNTIME, '--config', config, id], {
        detached: true,
        stdio: ['pipe', 'pipe', 'pipe'],
      }),

    /** The process on the host that stands for the container: of a machine its hypervisor. */
    async pidOf(id: string): Promise<number | undefined> {
      const { stdout } = await call('tasks', 'ls')
      const [, pid] =
        stdout
          .split('\n')
          .map(line => line.split(/\s+/))
          .find(([task]) => task === id) ?? []
      return pid === undefined ? undefined : Number(pid)
    },

    async limitsOf(id: string): Promise<{ memoryBytes: number; pids: number } | undefined> {
      const { stdout } = await call('tasks', 'metrics', '--format', 'json', id)
      const read = statistics.safeParse(parsed(stdout))
      if (!read.success) return undefined
      const { pids, memory } = read.data
      const held = typeof memory.usage === 'object' ? memory.usage.limit : memory.usage_limit
      return held === undefined ? undefined : { memoryBytes: held, pids: pids.limit }
    },

    list: async (): Promise<string[]> => (await call('containers', 'ls', '-q')).stdout.split('\n').filter(Boolean),

    async remove(id: string): Promise<void> {
      await call('tasks', 'rm', '--force', id)
      await call('containers', 'rm', id)
    },
  }
}

function parsed(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined
  }
}
