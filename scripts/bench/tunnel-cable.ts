import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** The way from the node to the control plane, which can be cut: what is open breaks, and nothing can be opened. */
export async function cable(to: number) {
  const open = new Set<Socket>()
  let isCut = false
  const server = createServer(near => {
    if (isCut) return near.destroy()
    const remote = connect(to, '127.0.0.1')
    for (const [one, other] of [
      [near, remote],
      [remote, near],
    ] as const) {
      open.add(one)
      one.setNoDelay(true)
      one.pipe(other)
      one.on('error', () => undefined)
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    isCut = true
    for (const socket of open) socket.destroy()
  }
  return {
    port: (server.address() as { port: number }).port,
    cut,
    mend() {
      isCut = false
    },
    async close() {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}
