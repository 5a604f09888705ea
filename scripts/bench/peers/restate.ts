import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from '../free-port.ts'
import { type Engine, ended, poster, program } from './engine.ts'
import { installPeer, peerVersion } from './install.ts'

/** Restate's server with its defaults (a log that syncs) and a service of its SDK, each a process; the store is on the project's disk. */
export async function restateEngine(): Promise<Engine> {
  const folder = await installPeer('restate')
  const data = join(folder, 'data')
  await rm(data, { recursive: true, force: true })
  await mkdir(data)
  const [service, ingress, admin, fabric] = [await freePort(), await freePort(), await freePort(), await freePort()]
  const children: ChildProcess[] = [program('restate-service.ts', { PEER: folder, PORT: String(service) })]
  const binary = join(folder, `node_modules/@restatedev/restate-server-${platform()}-${arch()}/bin/restate-server`)
  const env = {
    PATH: process.env.PATH,
    DO_NOT_TRACK: '1',
    RESTATE_BASE_DIR: data,
    RESTATE_LOG_FILTER: 'off',
    RESTATE_INGRESS__BIND_PORT: String(ingress),
    RESTATE_ADMIN__BIND_PORT: String(admin),
  }
  const args = ['--no-logo', '--bind-ip', '127.0.0.1', '--bind-port', String(fabric), '--listen-mode', 'tcp']
  children.push(spawn(binary, args, { env, stdio: 'ignore' }))
  await registered(`http://127.0.0.1:${admin}/deployments`, `http://127.0.0.1:${service}`)
  const { run, close } = poster(`http://127.0.0.1:${ingress}`, '/noop/run')
  return {
    name: `Restate ${peerVersion('restate')}`,
    run,
    async close() {
      await close()
      await ended(children)
      await rm(data, { recursive: true, force: true })
    },
  }
}

async function registered(deployments: string, uri: string): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    const answer = await fetch(deployments, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ uri }),
    }).catch(() => undefined)
    await answer?.body?.cancel()
    if (answer?.ok) return
    await wait(100)
  }
  throw new Error('Restate did not take its service within 30 seconds')
}
