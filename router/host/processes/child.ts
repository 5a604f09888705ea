import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { keepCompiled } from '../../../shared/host/keep-compiled.ts'
import type { Ending } from '../../../shared/host/processes/messages.ts'
import { parentChannel } from '../../../shared/host/processes/parent-channel.ts'
import { shutInspector } from '../../../shared/host/shut-inspector.ts'
import type { ProcessExit, RouterQuestion } from './messages.ts'
import { joinProcesses } from './other-processes.ts'
import { serveWriter, type WriterProcess } from './writer-process.ts'

/** How long the writer of a service whose first process is gone stays for what is being answered. */
const ORPHAN_MS = 60_000
const LOOK_MS = 100

shutInspector()
keepCompiled()
const [role, path = '', given = '', origin = ''] = process.argv.slice(2)

// A terminal signals all processes; the first one tells the others when to end.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGUSR2', 'SIGHUP'] as const) process.on(signal, () => undefined)

try {
  await (role === 'writer' ? write() : serve())
} catch (error) {
  const failed = error instanceof Error ? error.message : String(error)
  if (process.connected) process.send?.({ failed }, () => process.exit(1))
  else process.exit(1)
}

async function write(): Promise<void> {
  const ended = Promise.withResolvers<void>()
  const started = Promise.withResolvers<WriterProcess>()
  const channel = parentChannel<RouterQuestion, ProcessExit>({
    end: () => ended.resolve(),
    notice: ({ gone }) => void started.promise.then(writer => writer.gone(gone)),
  })
  const writer = await serveWriter(path, { vars: process.env, left: given.split(',').filter(Boolean).map(Number) })
  started.resolve(writer)
  const end = () => void orphaned(writer).then(ended.resolve)
  // It may have gone while this one started.
  if (process.connected) process.on('disconnect', end)
  else end()
  channel.answer(async question => (question === 'page' ? writer.page() : ''))
  channel.say({ ready: true })
  await ended.promise
  await writer.close()
  channel.say({ last: await writer.page() })
  process.exit(0)
}

/** The first process is gone. The others end their calls before they let go of the writer, which then removes its folder. */
async function orphaned(writer: WriterProcess): Promise<void> {
  const late = performance.now() + ORPHAN_MS
  while (writer.isWanted() && performance.now() < late) await pause(LOOK_MS)
  await rm(dirname(path), { recursive: true, force: true })
}

async function serve(): Promise<void> {
  const ended = Promise.withResolvers<Ending>()
  const channel = parentChannel<RouterQuestion, ProcessExit>({ end: ended.resolve })
  // Without the first process there is nothing to accept; what is being answered is answered.
  let isServing = false
  process.on('disconnect', () => {
    // No connection will ever come.
    if (!isServing) process.exit(1)
    ended.resolve('stop')
  })
  if (!process.connected) process.exit(1)
  const { serveRouter } = await import('../node.ts')
  const count = Number(process.env.ROUTER_PROCESSES)
  const others = joinProcesses({ process: Number(given), path, channel })
  const service = await serveRouter(process.env, {
    among: { others, count, writer: path, accepted: { origin, each: channel.each } },
  })
  isServing = true
  channel.say({ ready: true })
  await service.close(await ended.promise)
  process.exit(0)
}
