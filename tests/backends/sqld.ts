import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../scripts/bench/free-port.ts'
import { hasSqld, sqldPath } from '../../scripts/sqld.ts'
import { requireBackend } from './require.ts'

export interface Sqld {
  /** HTTP address of the server that takes writes. */
  primaryUrl: string
  /** HTTP address of the read replica; it passes writes on to the primary. */
  replicaUrl: string | undefined
  /** Kills the primary and keeps its data, as a machine that goes down does; `back` starts it again at the same address. */
  down(): Promise<void>
  back(): Promise<void>
  stop(): Promise<void>
}

/** For the top of a test file: `if (await sqldAvailable()) describe(…)`. */
export async function sqldAvailable(): Promise<boolean> {
  return requireBackend('sqld', await hasSqld(), 'npx node scripts/sqld.ts')
}

// A test process may end without a word: a failed test, a killed worker (an `exit` handler is not run then, tried). So each server
// has a watcher that waits for the end of this process's pipe, then kills the server and removes its data.
const watched = `
folder=$1; shift
"$@" & server=$!
exec 3<&0
( cat <&3 >/dev/null; kill -9 $server 2>/dev/null; rm -rf -- "$folder"; rmdir -- "$(dirname -- "$folder")" 2>/dev/null ) &
wait $server`

/** A libSQL server on free loopback ports with its data in a temporary folder, and on request a read replica of it. Ready when it resolves. */
export async function startSqld({ replica = false }: { replica?: boolean } = {}): Promise<Sqld> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-sqld-'))
  const servers: Server[] = []
  async function stop() {
    await Promise.all(servers.map(server => server.stop()))
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const [http, grpc, replicaHttp] = [await freePort(), await freePort(), await freePort()]
    const primary = () => launch(http, join(folder, 'primary'), ['--grpc-listen-addr', `127.0.0.1:${grpc}`])
    servers.push(primary())
    await servers[0]?.ready()
    if (replica) {
      servers.push(launch(replicaHttp, join(folder, 'replica'), ['--primary-grpc-url', `http://127.0.0.1:${grpc}`]))
      await servers[1]?.ready()
    }
    return {
      primaryUrl: address(http),
      replicaUrl: replica ? address(replicaHttp) : undefined,
      stop,
      down: async () => servers[0]?.kill(),
      async back() {
        servers[0] = primary()
        await servers[0].ready()
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}

interface Server {
  ready(): Promise<void>
  /** Kills it and its watcher: the data stays. */
  kill(): Promise<void>
  stop(): Promise<void>
}

function address(port: number | undefined): string {
  return `http://127.0.0.1:${port}`
}

function launch(port: number | undefined, folder: string, args: string[]): Server {
  const options = ['--db-path', folder, '--http-listen-addr', `127.0.0.1:${port}`, '--no-welcome', ...args]
  const child = spawn('sh', ['-c', watched, 'sh', folder, sqldPath, ...options], {
    stdio: ['pipe', 'pipe', 'pipe'],
    // A group of its own, which can be killed as one.
    detached: true,
    env: { ...process.env, RUST_LOG: 'warn', NO_COLOR: '1' },
  })
  let output = ''
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-2000)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  const ended = new Promise<string>(resolve => {
    child.once('error', error => resolve(error.message))
    child.once('exit', (code, signal) => resolve(`it ended with ${signal ?? code}`))
  })
  let gone: string | undefined
  void ended.then(why => {
    gone = why
  })
  return {
    async ready() {
      const deadline = performance.now() + 20_000
      for (;;) {
        if (gone !== undefined) throw new Error(`sqld did not start: ${gone}\n${output}`)
        const answer = await fetch(`${address(port)}/health`, { signal: AbortSignal.timeout(2000) }).catch(
          () => undefined,
        )
        await answer?.body?.cancel()
        if (answer?.ok) return
        if (performance.now() > deadline) throw new Error(`sqld was not healthy after 20 s\n${output}`)
        await Promise.race([ended, new Promise(resolve => setTimeout(resolve, 25))])
      }
    },
    async kill() {
      if (child.pid !== undefined && gone === undefined) process.kill(-child.pid, 'SIGKILL')
      await ended
    },
    async stop() {
      // The watcher kills it: test data is no reason to wait for a graceful end.
      child.stdin.end()
      await ended
    },
  }
}
