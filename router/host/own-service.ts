import { execFile, spawn } from 'node:child_process'
import { open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { homeFolder } from '../../shared/host/operator-file.ts'
import { probeRouter } from './probe-router.ts'

type Vars = Readonly<Record<string, string | undefined>>

/** The router that onboard started. */
export interface OwnService {
  pid: number
  origin: string
}

/** The service did not start or does not stop. The message is one sentence for the person at the terminal. */
export class OwnServiceError extends Error {
  override name = 'OwnServiceError'
}

const START_MS = 20_000
const POLL_MS = 25

export interface ServiceAad {
  folder: string
  pidFile: string
  logFile: string
}

/** The home folder, for what cannot be done without one. */
export function neededHome(vars: Vars): string {
  const home = homeFolder(vars)
  if (home === undefined) throw new OwnServiceError('This account has no home folder: set HOME.')
  return home
}

/** Where the service of this account keeps what is its own. */
export function serviceAad(vars: Vars): ServiceAad {
  const folder = join(vars.XDG_STATE_HOME || join(neededHome(vars), '.local', 'state'), 'waybill')
  return { folder, pidFile: join(folder, 'router.pid'), logFile: join(folder, 'router.log') }
}

/** The service if it is alive. A number that another process has by now is not it: the time at which a process began is kept beside it. */
export async function ownService({ pidFile }: ServiceAad): Promise<OwnService | undefined> {
  const text = await readFile(pidFile, 'utf8').catch(() => '')
  const [number = '', began, origin = ''] = text.split('\n')
  const pid = Number(number)
  if (!Number.isSafeInteger(pid) || pid <= 1 || began === undefined || began === '') return undefined
  return (await beginningOf(pid)) === began ? { pid, origin } : undefined
}

export interface StartOptions {
  place: ServiceAad
  origin: string
  vars: Vars
}

/** Starts `router serve` beside this process and lets it go on without it; resolves when it answers. */
export async function startOwn({ place, origin, vars }: StartOptions): Promise<OwnService> {
  await makeFolder(place.folder, 0o700)
  const log = await open(place.logFile, 'a', 0o600)
  const program = new URL(`../cli/main${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url)
  const child = spawn(process.execPath, [fileURLToPath(program), 'serve'], {
    cwd: place.folder,
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
    env: { ...vars },
  })
  let ended: string | undefined
  child.once('error', error => {
    ended = error.message
  })
  child.once('exit', (code, signal) => {
    ended = `it ended with ${signal ?? code}`
  })
  try {
    const { pid } = child
    const began = pid === undefined ? undefined : await beginningOf(pid)
    if (pid !== undefined && began !== undefined) {
      await writeWhole(place.pidFile, `${pid}\n${began}\n${origin}\n`)
      const deadline = performance.now() + START_MS
      while (ended === undefined && performance.now() < deadline) {
        if ((await probeRouter(origin)) === 'router' && ended === undefined) return { pid, origin }
        await pause(POLL_MS)
      }
      if (ended === undefined) child.kill('SIGKILL')
    }
    await rm(place.pidFile, { force: true })
    throw new OwnServiceError(`The router did not start: ${ended ?? 'it did not answer'}. See ${place.logFile}.`)
  } finally {
    child.unref()
    await log.close()
  }
}

/** Stops the service and forgets it; resolves when it has ended. Gives what was stopped. */
export async function stopOwn(place: ServiceAad, waitMs: number): Promise<OwnService | undefined> {
  const own = await ownService(place)
  if (own !== undefined) {
    process.kill(own.pid, 'SIGTERM')
    const deadline = performance.now() + waitMs
    while ((await ownService(place)) !== undefined) {
      if (performance.now() > deadline)
        throw new OwnServiceError(
          `The router (process ${own.pid}) is still at work: end it yourself, then run this again.`,
        )
      await pause(POLL_MS)
    }
  }
  await rm(place.pidFile, { force: true })
  return own
}

async function writeWhole(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 })
  await rename(`${path}.new`, path)
}

/** A word for when a living process began; undefined when there is none with this number. */
async function beginningOf(pid: number): Promise<string | undefined> {
  if (process.platform !== 'linux') {
    const asked = promisify(execFile)('ps', ['-o', 'lstart=', '-p', String(pid)])
    return asked.then(
      ({ stdout }) => stdout.trim() || undefined,
      () => undefined,
    )
  }
  const [stat, boot] = await Promise.all([
    readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''),
    readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => ''),
  ])
  // The name in brackets may hold anything; of what follows it, the first is the state and the twentieth the start.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, began] = [fields[0], fields[19]]
  // A process that ended and was not reaped yet is still listed.
  return began === undefined || state === 'Z' || state === 'X' ? undefined : `${boot.trim()} ${began}`
}
