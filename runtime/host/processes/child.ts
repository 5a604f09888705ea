import { keepCompiled } from '../../../shared/host/keep-compiled.ts'
import type { Ending } from '../../../shared/host/processes/messages.ts'
import { parentChannel } from '../../../shared/host/processes/parent-channel.ts'
import { shutInspector } from '../../../shared/host/shut-inspector.ts'
import type { JoinedProcesses } from './join-processes.ts'
import type { RuntimeFacts, RuntimeNotice, RuntimeQuestion } from './messages.ts'

shutInspector()
keepCompiled()
const [number = '', origin = ''] = process.argv.slice(2)

// A terminal signals all processes; the first one tells the others when to end.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGUSR2', 'SIGHUP'] as const) process.on(signal, () => undefined)

try {
  await serve()
} catch (error) {
  const failed = error instanceof Error ? error.message : String(error)
  if (process.connected) process.send?.({ failed }, () => process.exit(1))
  else process.exit(1)
}

async function serve(): Promise<void> {
  const ended = Promise.withResolvers<Ending>()
  const joined = Promise.withResolvers<JoinedProcesses>()
  const channel = parentChannel<RuntimeQuestion, RuntimeNotice, RuntimeFacts>({
    end: ended.resolve,
    notice: notice => void joined.promise.then(({ heard }) => heard(notice)),
    opened: () => void joined.promise.then(({ opened }) => opened()),
  })
  // Without the first process there is nothing to accept; what is being answered is answered.
  let isServing = false
  process.on('disconnect', () => {
    // No connection will ever come.
    if (!isServing) process.exit(1)
    ended.resolve('stop')
  })
  if (!process.connected) process.exit(1)
  const { joinProcesses } = await import('./join-processes.ts')
  const among = await joinProcesses({ channel, origin })
  joined.resolve(among)
  const { serveRuntime } = await import('../node.ts')
  const service = await serveRuntime(process.env, { among, offersSetup: number === '1' })
  isServing = true
  channel.say({ ready: { peerUrl: among.peer.url, setupLink: service.setupLink } })
  await service.close(await ended.promise)
  await among.close()
  process.exit(0)
}
