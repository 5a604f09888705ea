import { appendFile } from 'node:fs/promises'
import { readEnv } from '../../shared/env/read-env.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { listen, type Service } from '../../shared/host/serve.ts'
import { createLog } from '../../shared/log/log.ts'
import { type RouterEnv, routerEnv } from '../env.ts'
import type { Keeping } from '../receipts.ts'
import { createRouter } from '../router.ts'
import type { LineSink } from '../traces/checkpointer.ts'
import { readAccess } from './access.ts'
import { besideConfig, readConfigFile } from './config-file.ts'
import { directRelay } from './direct-relay.ts'
import { nativeSha256 } from './native-sha256.ts'
import { regexWorkers } from './regex-worker.ts'
import { processRunner } from './run-process.ts'
import { shed } from './shed.ts'
import { readSigningKey } from './signing-key.ts'
import { openSpillFile } from './spill-file.ts'
import { undiciTransport } from './undici-transport.ts'
import { writerIsGone, writerName } from './writer-name.ts'

const HEADER_BYTES = 65_536

type Vars = Record<string, string | undefined>

/** The router on Node: environment and files in, a listening socket out. */
export async function serveRouter(vars: Vars): Promise<Service> {
  const env = readEnv(routerEnv, vars)
  const log = createLog({ filter: env.ROUTER_LOG ?? env.RUST_LOG, write: line => process.stderr.write(line + '\n') })
  for (const [name, value] of Object.entries(vars))
    if (/(?:KEY|SECRET|TOKEN|SALT)$/.test(name)) log.redact.register(value)
  const access = await readAccess(env, log)
  const { ROUTER_CONFIG: configFile } = env
  const readConfig = configFile === undefined ? undefined : () => readConfigFile(configFile)
  const config = await readConfig?.()
  const db = await openDb(env.ROUTER_DB, {
    synchronous: env.ROUTER_RECEIPTS === 'durable' ? 'full' : 'normal',
    ...(env.ROUTER_DB_TOKEN && { token: env.ROUTER_DB_TOKEN }),
  })
  const transport = undiciTransport({ connectMs: 10_000 })
  const regexRunner = regexWorkers()
  const runProcess = processRunner({ vars })
  const path = localPath(env.ROUTER_DB)
  const spill = env.ROUTER_RECEIPTS === 'durable' && path !== undefined ? await openSpillFile(path) : undefined
  let inFlight = 0
  const router = createRouter({
    ...(config !== undefined && { config }),
    ...(readConfig && { readConfig }),
    configFile: configFile ?? 'config',
    readFile: besideConfig(configFile),
    access,
    inFlight: () => inFlight,
    db,
    keeping: await keeping(env, path, spill),
    log,
    transport,
    sha256: nativeSha256,
    gates: { runProcess, regexRunner, fetch, env: name => vars[name] },
    env: { ...vars, ROUTER_MODE: env.ROUTER_MODE },
    tenantId: env.ROUTER_TENANT,
    ...(env.ROUTER_PROMPT_SALT !== undefined && { promptSalt: env.ROUTER_PROMPT_SALT }),
    responseHeaders: env.ROUTER_RESPONSE_HEADERS,
  })
  await router.ready()
  const relaying = router.relaying()
  const direct = directRelay({ ...relaying, agent: transport.agent })
  const server = await listen({
    bind: env.ROUTER_BIND,
    fetch: router.fetch,
    direct(request, response) {
      if (inFlight >= relaying.active().config.limits.maxConcurrency && shed(request, response)) return true
      inFlight++
      response.on('close', () => inFlight--)
      return direct(request, response)
    },
    bodyMs: 60_000,
    maxHeaderBytes: HEADER_BYTES,
  })
  const stopReloading = readConfig ? reloadOnHangup(router.reload) : () => undefined
  return {
    origin: server.origin,
    async close() {
      stopReloading()
      router.drain()
      await server.close(env.ROUTER_DRAIN_SECONDS * 1000)
      await router.close()
      await spill?.close()
      await runProcess.close()
      await regexRunner.close()
      db.close()
    },
  }
}

async function keeping(env: RouterEnv, path: string | undefined, spill: Keeping['spill']): Promise<Keeping> {
  const signer = await readSigningKey({
    key: env.ROUTER_SIGNING_KEY,
    keyFile: env.ROUTER_SIGNING_KEY_FILE,
    dbPath: path,
  })
  const files = [
    ...(path ? [`${path}.checkpoints.jsonl`] : []),
    ...(env.ROUTER_ANCHOR_FILE ? [env.ROUTER_ANCHOR_FILE] : []),
  ]
  return {
    durable: env.ROUTER_RECEIPTS === 'durable',
    ...(signer && { signer }),
    ...(spill && { spill }),
    sinks: files.map(fileSink),
    holder: writerName(),
    isGone: writerIsGone,
  }
}

function fileSink(file: string): LineSink {
  return { name: file, append: line => appendFile(file, line.endsWith('\n') ? line : line + '\n', { mode: 0o600 }) }
}

/** The file behind a store's address; undefined for a server and for memory. */
function localPath(address: string): string | undefined {
  if (address.startsWith('file:')) return address.slice('file:'.length).replace(/^\/\/(?=\/)/, '')
  return /^[a-z][a-z0-9+.-]+:|^:memory:/i.test(address) ? undefined : address
}

/** SIGHUP reads the config anew; one that cannot be used is logged and the old one stays. */
function reloadOnHangup(reload: () => Promise<unknown>): () => void {
  const onHangup = () => void reload().catch(() => undefined)
  process.on('SIGHUP', onHangup)
  return () => void process.off('SIGHUP', onHangup)
}
