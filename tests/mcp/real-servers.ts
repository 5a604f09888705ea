import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { StdioTransportOf } from '../../runtime/execution/mcp/deps.ts'

const program = (name: string) =>
  fileURLToPath(new URL(`../../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url))

export const EVERYTHING = program('server-everything')
export const FILESYSTEM = program('server-filesystem')

/** `@modelcontextprotocol/server-everything` over streamable HTTP, as a process of its own. */
export async function everythingOverHttp() {
  const port = await freePort()
  const env = { PATH: process.env.PATH ?? '', PORT: String(port) }
  const child = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const gone = once(child, 'exit')
  await Promise.race([
    new Promise<void>(resolve => {
      const look = (chunk: unknown) => String(chunk).includes('listening on port') && resolve()
      child.stdout.on('data', look)
      child.stderr.on('data', look)
    }),
    gone.then(() => Promise.reject(new Error('server-everything ended before it listened'))),
  ])
  return {
    origin: `http://127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}/mcp`,
    async close() {
      child.kill('SIGKILL')
      await gone
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/**
 * FOR TESTS ONLY: starts the command as a child of the test process, without any isolation, through the port that a node's
 * sandbox implements. Nothing in the product does this.
 */
export const testOnlyChildProcess: StdioTransportOf = async (_run, { command, args }) =>
  new StdioClientTransport({
    command,
    args: [...args],
    stderr: 'ignore',
    env: { PATH: process.env.PATH ?? '' },
  })
