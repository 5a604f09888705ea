import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programEnv } from '../program-env.ts'

const MAIN = new URL('../../node-agent/main.ts', import.meta.url).pathname

export interface PoolNode {
  kill(): Promise<void>
  start(token?: string): void
}

/** Nodes as processes of their own, each with its store, that dial one address. */
export async function nodePool(size: number, controlUrl: string) {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-pool-'))
  const said: string[] = []
  const nodes = Array.from({ length: size }, (_, number): PoolNode => {
    const home = join(folder, String(number))
    let child: ChildProcess | undefined
    return {
      start(token = '') {
        const started = spawn(process.execPath, [MAIN, 'run'], {
          env: {
            ...programEnv,
            PLATFORM_CONTROL_URL: controlUrl,
            PLATFORM_ENROL_TOKEN: token,
            PLATFORM_DATA_DIR: join(home, 'data'),
            NODE_AGENT_STATE_DIR: join(home, 'state'),
            NODE_AGENT_IMAGE_DIR: join(home, 'image'),
            NODE_AGENT_BACKENDS: 'none',
            PLATFORM_LOG_LEVEL: 'error',
          },
          stdio: ['ignore', 'ignore', 'pipe'],
        })
        started.stderr?.on('data', (chunk: Buffer) => {
          said.push(`node ${number}: ${String(chunk)}`)
          if (said.length > 200) said.shift()
        })
        child = started
      },
      async kill() {
        if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
        const ended = once(child, 'exit')
        child.kill('SIGKILL')
        await ended
      },
    }
  })
  return {
    nodes,
    said,
    async close() {
      await Promise.all(nodes.map(node => node.kill()))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A balancer of connections: each goes to the next of the ports with a listener, after `spread` was called. */
export async function balancer(all: readonly number[]) {
  let ports = all.slice(0, 1)
  const open = new Set<Socket>()
  let turn = 0
  const server = createServer(client => {
    open.add(client)
    client.on('close', () => open.delete(client)).on('error', () => undefined)
    const next = (tries: number): void => {
      const port = ports[turn++ % ports.length]!
      const remote = connect(port, '127.0.0.1')
      remote.once('connect', () => {
        remote.off('error', again)
        remote.on('error', () => client.destroy()).on('close', () => client.destroy())
        client.on('close', () => remote.destroy())
        client.pipe(remote).pipe(client)
      })
      const again = () => (tries < ports.length && !client.destroyed ? next(tries + 1) : client.destroy())
      remote.once('error', again)
    }
    next(1)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    spread(): void {
      ports = [...all]
    },
    url: `http://127.0.0.1:${port}`,
    async close() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
