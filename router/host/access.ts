import { EnvError } from '../../shared/env/read-env.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { readOperatorText } from '../../shared/host/operator-file.ts'
import { isLoopback } from '../../shared/http/bind.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Access } from '../auth/access.ts'
import { parseKeys, secretsOf } from '../auth/keys.ts'
import type { RouterEnv } from '../env.ts'

/** Who may call a router that listens where the environment says (docs/spec/router.md §2.6). */
export async function readAccess(env: RouterEnv, log: Log): Promise<Access> {
  const text = await keysText(env.ROUTER_KEYS)
  for (const secret of secretsOf(text ?? '')) log.redact.register(secret)
  const access: Access = {
    keys: text === undefined ? [] : parseKeys(text, nativeSha256),
    reach: isLoopback(env.ROUTER_BIND.host) ? 'loopback' : 'network',
    insecure: env.ROUTER_INSECURE,
    metricsOpen: env.ROUTER_METRICS_OPEN,
    allowedOrigins: env.ROUTER_ALLOWED_ORIGINS,
  }
  if (access.reach === 'network' && access.keys.length === 0) {
    log.warn(
      access.insecure
        ? 'everyone who reaches this address may read every trace: ROUTER_INSECURE is set and ROUTER_KEYS is not'
        : 'everyone who reaches this address may send calls through it, and the audit paths are closed: set ROUTER_KEYS',
    )
  }
  return access
}

async function keysText(given: string | undefined): Promise<string | undefined> {
  if (!given?.startsWith('@')) return given
  const path = given.slice(1)
  return readOperatorText(path).catch((cause: unknown) => {
    throw new EnvError(`ROUTER_KEYS names the file ${path}, which cannot be read.`, { cause })
  })
}
