import type { Duplex } from 'node:stream'
import { z } from 'zod'
import { readJson } from '../../../shared/json/read-json.ts'

const message = z.union([
  z.object({ QMP: z.object({ version: z.unknown() }) }),
  z.object({ return: z.unknown(), id: z.number() }),
  z.object({ error: z.object({ class: z.string(), desc: z.string() }), id: z.number().optional() }),
  z.object({ event: z.string(), data: z.record(z.string(), z.unknown()).optional() }),
])

export class QmpError extends Error {
  override name = 'QmpError'
}

export type Qmp = ReturnType<typeof qmpClient>

/** QEMU's machine protocol over a socket: one JSON object a line, answers by id, events between them. */
export function qmpClient(socket: Duplex) {
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  const watchers = new Set<(event: string, data: Record<string, unknown>) => boolean>()
  let nextId = 1
  let rest = ''
  let broken: Error | undefined

  socket.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '') take(line)
  })
  const fail = () => {
    broken ??= new QmpError('QEMU closed its control channel.')
    for (const { reject } of waiting.values()) reject(broken)
    waiting.clear()
  }
  socket.on('close', fail)
  socket.on('error', fail)

  function take(line: string) {
    const said = message.parse(readJson(line))
    if ('event' in said) {
      for (const watcher of watchers) if (watcher(said.event, said.data ?? {})) watchers.delete(watcher)
      return
    }
    if ('QMP' in said || said.id === undefined) return
    const asked = waiting.get(said.id)
    waiting.delete(said.id)
    if ('error' in said) asked?.reject(new QmpError(`QEMU refused: ${said.error.desc}`))
    else asked?.resolve(said.return)
  }

  function run(execute: string, args?: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (broken !== undefined) return reject(broken)
      const id = nextId++
      waiting.set(id, { resolve, reject })
      socket.write(`${JSON.stringify({ execute, id, ...(args && { arguments: args }) })}\n`)
    })
  }

  return {
    run,
    /** Starts a migration of either direction and settles when its stream is through. */
    async migrate(execute: 'migrate' | 'migrate-incoming', uri: string): Promise<void> {
      const { promise: through, resolve, reject } = Promise.withResolvers<void>()
      const watcher = (event: string, data: Record<string, unknown>) => {
        if (event !== 'MIGRATION') return false
        if (data.status === 'completed') resolve()
        if (data.status === 'failed') reject(new QmpError('QEMU could not move the state of the machine.'))
        return data.status === 'completed' || data.status === 'failed'
      }
      watchers.add(watcher)
      socket.once('close', () => reject(new QmpError('QEMU ended while it moved the state of the machine.')))
      through.catch(() => undefined)
      await run(execute, { uri })
      await through
    },
  }
}
