import { EnvError } from '../../env/read-env.ts'
import type { Service } from '../serve.ts'

/** A service of several processes. */
export interface ProcessGroup extends Service {
  /** Replaces one process after the other. */
  restart(): Promise<void>
  /** Each process reads its config again, where it has one. */
  reload?(): void
}

/** Until it is closed SIGUSR2 replaces the processes of a service, and SIGHUP has them read their config. */
export function replacedOnSignal({ origin, restart, reload, close }: ProcessGroup): Service {
  const onReplace = () => void restart()
  process.on('SIGUSR2', onReplace)
  if (reload) process.on('SIGHUP', reload)
  return {
    origin,
    async close() {
      process.off('SIGUSR2', onReplace)
      if (reload) process.off('SIGHUP', reload)
      await close()
    },
  }
}

/** How many processes a setting asks for; `auto` is the service's to say. Refuses what this machine cannot do. */
export function processCount(name: string, asked: string, auto: () => number): number {
  const count = asked === 'auto' ? auto() : Number(asked)
  if (count > 1 && process.platform === 'win32')
    throw new EnvError(`${name}: several processes need Linux, macOS or BSD: leave it unset on Windows.`)
  return count
}
