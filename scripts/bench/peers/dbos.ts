import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chown, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort, untilAnswers } from '../free-port.ts'
import { type Engine, ended, poster, program } from './engine.ts'
import { installPeer, peerVersion } from './install.ts'

const DEBIAN = '/usr/lib/postgresql'

/** DBOS in a process, over a PostgreSQL of its own with the defaults of Debian (a commit syncs). Undefined where there is none. */
export async function dbosEngine(): Promise<Engine | undefined> {
  const version = (await readdir(DEBIAN).catch(() => [])).toSorted((a, b) => Number(b) - Number(a))[0]
  if (version === undefined) return undefined
  const folder = await installPeer('dbos')
  const database = await mkdtemp(join(tmpdir(), 'waybill-bench-postgres-'))
  // The server refuses to run as root.
  const [uid, gid] = ['-u', '-g'].map(flag => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' })))
  const who = process.getuid?.() === 0 ? { uid: uid!, gid: gid! } : {}
  if (process.getuid?.() === 0) await chown(database, uid!, gid!)
  const data = join(database, 'data')
  const made = ['-D', data, '-A', 'trust', '-U', 'bench']
  execFileSync(`${DEBIAN}/${version}/bin/initdb`, made, { ...who, cwd: database, stdio: 'ignore' })
  const [port, served] = [await freePort(), await freePort()]
  const args = ['-D', data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1', '-k', database]
  const children: ChildProcess[] = []
  children.push(spawn(`${DEBIAN}/${version}/bin/postgres`, args, { ...who, cwd: database, stdio: 'ignore' }))
  const ready = ['-h', '127.0.0.1', '-p', String(port), '-q']
  for (let tries = 0; ; tries++) {
    try {
      execFileSync(`${DEBIAN}/${version}/bin/pg_isready`, ready)
      break
    } catch (error) {
      if (tries > 100) throw error
      await wait(100)
    }
  }
  const url = `postgresql://bench@127.0.0.1:${port}/dbos`
  children.push(program('dbos-service.ts', { PEER: folder, PORT: String(served), DATABASE: url }))
  const origin = `http://127.0.0.1:${served}`
  await untilAnswers(origin)
  const { run, close } = poster(origin, '/')
  return {
    name: `DBOS ${peerVersion('dbos')} on PostgreSQL ${version}`,
    run,
    async close() {
      await close()
      await ended(children.toReversed())
      await rm(database, { recursive: true, force: true })
    },
  }
}
