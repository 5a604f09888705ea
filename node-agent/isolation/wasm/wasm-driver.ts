import type { Duplex } from 'node:stream'
import { collect } from '../byte-queue.ts'
import { type Driver, IsolationError, type Probe, type Reaped, type Sandbox, type SandboxLimits } from '../driver.ts'
import { listGroups, removeGroup } from '../oci/cgroups.ts'
import { isOrphan, newOwnedId } from '../owned-id.ts'
import { lacksLimits } from '../probe-by-run.ts'
import { interpreter } from './interpreter.ts'
import { memoryWorkspace } from './workspace.ts'

const KERNEL = `wasm-v8-${process.versions.v8}`

/**
 * Programs without an operating system around them. `exec` takes `js <file> …` and `js -e <code> …` for a script, `node <file> …` for a
 * JavaScript module and `wasi <file.wasm> …` for a WebAssembly one; both may call the step protocol as `waybill`.
 */
export function wasmDriver(): Driver {
  const open = new Set<Sandbox>()

  async function start(limits: SandboxLimits, deadlineMs: number): Promise<Sandbox> {
    const id = newOwnedId('wasm')
    const workspace = memoryWorkspace(limits.diskMb * 1024 * 1024)
    const ports = new Map<number, (stream: Duplex) => void>()
    const { promise: ended, resolve: end } = Promise.withResolvers<string>()
    const code = interpreter(id, limits, workspace, ports)
    let stopped = false

    const sandbox: Sandbox = {
      id,
      backend: 'wasm',
      kernelRelease: KERNEL,
      ended,
      async exec(request) {
        if (stopped) throw new IsolationError('exec_failed', 'The sandbox was stopped.')
        return code.exec(request)
      },
      async writeFile(path, content) {
        code.noteWritten(workspace.write(path, content), content)
      },
      readFile: async (path, maxBytes) => workspace.read(path, maxBytes),
      listFiles: async path => workspace.list(path),
      archive: {
        pack: () => workspace.packed(),
        async unpack(chunks) {
          for (const name of workspace.unpack(await collect(chunks))) code.noteWritten(name, workspace.get(name)!)
        },
      },
      async serve(port, accept) {
        ports.set(port, accept)
      },
      async snapshot() {
        throw new IsolationError('unsupported', 'A wasm sandbox cannot be snapshotted.')
      },
      async stop() {
        stopped = true
        open.delete(sandbox)
        await code.stop()
        await removeGroup(id)
        end('the sandbox was stopped')
      },
    }
    await code.ready(deadlineMs)
    open.add(sandbox)
    return sandbox
  }

  return {
    backend: 'wasm',
    probe: deadlineMs => probe(start, deadlineMs),
    start,
    async restore() {
      throw new IsolationError('unsupported', 'A wasm sandbox cannot be restored.')
    },
    async reap() {
      const reaped: Reaped[] = []
      for (const id of (await listGroups()).filter(id => isOrphan(id, 'wasm'))) {
        await removeGroup(id)
        reaped.push({ backend: 'wasm', id })
      }
      return reaped
    },
    async close() {
      await Promise.all([...open].map(sandbox => sandbox.stop()))
    },
  }
}

/** A WASI module with one page of memory whose `_start` returns at once. */
const NOTHING = Uint8Array.from(
  Buffer.from('AGFzbQEAAAABBAFgAAADAgEABQMBAAEHEwIGbWVtb3J5AgAGX3N0YXJ0AAAKBAECAAs=', 'base64'),
)

/** Runs a script and a WASI module, and ends a script that would not end. */
async function probe(
  start: (limits: SandboxLimits, deadlineMs: number) => Promise<Sandbox>,
  deadlineMs: number,
): Promise<Probe> {
  const about = { backend: 'wasm' as const, version: `Node ${process.versions.node}` }
  const failed = (reason: string, install: string[] = []): Probe => ({
    ...about,
    available: false,
    reasons: [reason],
    install,
  })
  try {
    const sandbox = await start({ memoryMb: 16, cpus: 1, pids: 1, diskMb: 1 }, deadlineMs)
    try {
      const sum = await sandbox.exec({
        argv: ['js', '-e', 'print([typeof process, typeof require, 6 * 7].join())'],
        deadlineMs: Math.min(1000, deadlineMs),
        outputBytes: 1000,
      })
      const said = new TextDecoder().decode(await collect(sum.stdout)).trim()
      if (said !== 'undefined,undefined,42') return failed(`A script said ${said}.`)
      const loop = await sandbox.exec({ argv: ['js', '-e', 'for (;;);'], deadlineMs: 50, outputBytes: 10 })
      if ((await loop.exit).kind !== 'limit') return failed('An endless script was not ended.')
      await sandbox.writeFile('nothing.wasm', NOTHING)
      const module = await sandbox.exec({ argv: ['wasi', 'nothing.wasm'], deadlineMs, outputBytes: 1000 })
      const end = await module.exit
      if (end.kind !== 'code' || end.code !== 0)
        return failed(`A WASI module ended otherwise than it should: ${end.kind}.`)
      const verifiedBy = 'ran a script and a WASI module in confined processes, and ended a script that would not end'
      return { ...about, available: true, verifiedBy, reasons: [], install: [] }
    } finally {
      await sandbox.stop()
    }
  } catch (error) {
    const install = lacksLimits(error) ? [] : ['Run the node with Node 24 or newer.']
    return failed(error instanceof Error ? error.message : String(error), install)
  }
}
