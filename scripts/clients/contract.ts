import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { messagesAnswer } from '../../tests/upstream/answers.ts'
import { answer, scriptedUpstream } from '../../tests/upstream/scripted.ts'
import { freePort, untilAnswers } from '../bench/free-port.ts'

/**
 * Holds both services against their own OpenAPI documents, with the requests that Schemathesis makes of them: what is documented is what is
 * answered, and nothing ends in a fault of the service. `npm run contract [-- SECONDS]`; ends with 1 where it is not so.
 */
const run = promisify(execFile)
const folder = fileURLToPath(new URL('../../.cache/contract', import.meta.url))
const program = (name: string) => fileURLToPath(new URL(`../../${name}/cli/main.ts`, import.meta.url))
const VERSION = '4.32.5'
const KEY = `wb_live_${'c'.repeat(43)}`
const SECONDS = Number(process.argv[2] ?? 120)
if (!(SECONDS >= 1)) throw new Error(`${process.argv[2]}: expected for how many seconds each service is asked`)

/**
 * Left out: the key travels in every request, so none is without it; TRACE is no method here; a schema cannot say that a cursor is of this
 * list; `null` and `undefined` in a query mean that a parameter is absent.
 */
const NOT_ASKED = ['ignored_auth', 'unsupported_method', 'positive_data_acceptance', 'negative_data_rejection']
/** These look hosts up, which takes as long as the resolver of the machine takes. */
const LOOK_HOSTS_UP = 'Webhook|startMcp'

async function held(name: string, origin: string, headers: string[]): Promise<boolean> {
  const args = ['run', `${origin}/openapi.json`, ...headers, '--phases', 'coverage,fuzzing', '-n', '25', '--no-color']
  args.push('--max-time', String(SECONDS), '--request-timeout', '15', '--continue-on-failure')
  args.push('--exclude-checks', NOT_ASKED.join(','), '--exclude-operation-id-regex', LOOK_HOSTS_UP)
  console.info(`${name}: at least ${SECONDS} s …`)
  const child = spawn(join(folder, 'venv/bin/schemathesis'), args, {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code === 0
}

async function served<T>(
  name: string,
  vars: Record<string, string>,
  origin: string,
  use: () => Promise<T>,
): Promise<T> {
  const env = { PATH: process.env.PATH, HOME: folder, ...vars }
  const child = spawn(process.execPath, [program(name), 'serve'], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  try {
    await untilAnswers(origin)
    return await use()
  } finally {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'exit')
  }
}

await makeFolder(folder)
await run('python3', ['-m', 'venv', 'venv'], { cwd: folder })
await run('venv/bin/pip', ['install', '-q', `schemathesis==${VERSION}`], { cwd: folder, timeout: 300_000 })
const data = await mkdtemp(join(tmpdir(), 'waybill-contract-'))
const upstream = await scriptedUpstream()
upstream.always(answer(200, JSON.stringify(messagesAnswer('Done.'))))
const binds = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`] as const
const [runtime, router] = binds.map(bind => `http://${bind}`) as [string, string]
const quiet = { PLATFORM_LOG_LEVEL: 'error', ROUTER_LOG: 'error' }
try {
  const ofRuntime = {
    PLATFORM_BIND: binds[0],
    PLATFORM_DATA_DIR: data,
    PLATFORM_BOOTSTRAP_KEY: KEY,
    PLATFORM_TUNNEL_BIND: `127.0.0.1:${await freePort()}`,
    ...quiet,
  }
  const ofRouter = {
    ROUTER_BIND: binds[1],
    ROUTER_DB: join(data, 'router.db'),
    ROUTER_UPSTREAM_MESSAGES: upstream.origin,
    ROUTER_UPSTREAM_CHAT: `${upstream.origin}/v1`,
    ...quiet,
  }
  const key = ['-H', `authorization: Bearer ${KEY}`]
  const found = [
    await served('runtime', ofRuntime, runtime, () => held('runtime', runtime, key)),
    await served('router', ofRouter, router, () => held('router', router, [])),
  ]
  process.exitCode = found.every(Boolean) ? 0 : 1
} finally {
  await upstream.close()
  await rm(data, { recursive: true, force: true })
}
