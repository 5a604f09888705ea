import { readJson } from '../../shared/json/read-json.ts'
import type { Log } from '../../shared/log/log.ts'
import type { Clock } from '../../shared/time/clock.ts'
import type { Credential } from '../connectors/definition.ts'
import type { McpTarget } from '../connectors/oauth/consent.ts'
import { type OpenedInstall, refresher } from '../connectors/oauth/refresher.ts'
import type { Granted, TokenCalls } from '../connectors/oauth/token-calls.ts'
import { VendorFailure } from '../connectors/vendor-failure.ts'
import type { McpGrants } from '../execution/mcp/deps.ts'
import { type Sealing, vaultToStore } from '../vault/vault.ts'
import { aadOf, type Grant } from './grant.ts'
import type { GrantStore } from './store.ts'

export interface GrantServiceDeps {
  store: GrantStore
  calls: Pick<TokenCalls, 'refresh' | 'revoke'>
  sealing: Sealing
  clock: Clock
  newId: () => string
  wait: (ms: number, signal: AbortSignal) => Promise<void>
  /** Takes a secret out of every log line from now on. */
  redact: (secret: string | undefined) => void
  log: Log
}

export type GrantService = ReturnType<typeof grantService>

/** Tokens for MCP servers that ask for them: kept sealed, refreshed once for all who wait, and given back at the end. */
export function grantService(deps: GrantServiceDeps) {
  const { store, calls, clock, newId, wait, log } = deps
  const nowMs = () => clock.now().getTime()

  const refreshing = refresher<Grant>({
    store: store.refreshing,
    calls,
    clock,
    wait,
    open: grant => openGrant(deps, grant),
    seal: (grant, values) => sealGrant(deps, grant, values),
    meansOf({ credential: { values } }) {
      const { vendor, client } = targetIn(values)
      return values.refreshToken === undefined ? undefined : { vendor, client, refreshToken: values.refreshToken }
    },
  })

  async function heldFor(tenantId: string, url: string): Promise<OpenedInstall<Grant> | undefined> {
    const grant = await store.of(tenantId, url)
    return grant && { install: grant, credential: await openGrant(deps, grant) }
  }

  const port: McpGrants = {
    async tokenFor(tenantId, url) {
      const held = await heldFor(tenantId, url)
      try {
        return held && (await refreshing.fresh(held)).credential.values.accessToken
      } catch (error) {
        if (!(error instanceof VendorFailure)) throw error
        // The server has the last word on the old one, and says then that a person has to consent anew.
        log.warn('a token of an MCP server could not be renewed', { error })
        return held?.credential.values.accessToken
      }
    },

    async renewed(tenantId, url, refused) {
      const held = await heldFor(tenantId, url)
      // Another process has renewed it meanwhile.
      if (held && held.credential.values.accessToken !== refused) return held.credential.values.accessToken
      try {
        const renewed = held && (await refreshing.renewed(held))
        if (held && !renewed) await store.refreshing.mark(held.install, 'expired', nowMs())
        return renewed?.credential.values.accessToken
      } catch (error) {
        if (!(error instanceof VendorFailure)) throw error
        log.warn('a token of an MCP server could not be renewed', { error })
        return undefined
      }
    },
  }

  return {
    store,
    port,

    async keep(
      tenantId: string,
      target: McpTarget,
      { accessToken, refreshToken, expiresInMs }: Granted,
    ): Promise<Grant> {
      const { resource, vendor } = target
      const values = {
        accessToken,
        target: JSON.stringify(target),
        ...(refreshToken !== undefined && { refreshToken }),
      }
      return store.keep({
        tenantId,
        resource,
        id: newId(),
        issuer: vendor.issuer ?? '',
        sealed: await sealGrant(deps, { tenantId, resource }, values),
        scope: vendor.scopes.length === 0 ? undefined : vendor.scopes.join(' '),
        expiresMs: expiresInMs === undefined ? undefined : nowMs() + expiresInMs,
        updatedMs: nowMs(),
      })
    },

    /** Takes a grant away and gives its tokens back. */
    async remove(grant: Grant): Promise<boolean> {
      const { values } = await openGrant(deps, grant)
      if (!(await store.remove(grant))) return false
      const { vendor, client } = targetIn(values)
      const { accessToken = '', refreshToken } = values
      const told = await calls.revoke(vendor, client, { accessToken, refreshToken }).catch(() => false)
      if (!told)
        log.warn('an authorization server has not been told that its tokens are not needed any more', {
          issuer: grant.issuer,
        })
      return true
    },
  }
}

async function openGrant(deps: GrantServiceDeps, grant: Grant): Promise<Credential> {
  const vault = await deps.sealing()
  if (!vault) throw new Error('this service was started without the master key that its secrets are sealed with')
  const values = readJson(await vault.open(grant.sealed, aadOf(grant))) as Record<string, string>
  redactAll(deps, values)
  return { method: 'oauth2', values, ...(grant.expiresMs !== undefined && { expiresMs: grant.expiresMs }) }
}

async function sealGrant(
  deps: GrantServiceDeps,
  grant: Pick<Grant, 'tenantId' | 'resource'>,
  values: Readonly<Record<string, string>>,
) {
  redactAll(deps, values)
  const vault = await vaultToStore(deps.sealing, 'a token')
  return vault.seal(JSON.stringify(values), aadOf(grant))
}

function redactAll(
  deps: GrantServiceDeps,
  { accessToken, refreshToken, ...values }: Readonly<Record<string, string>>,
): void {
  for (const secret of [accessToken, refreshToken, targetIn(values).client.secret]) deps.redact(secret)
}

const targetIn = ({ target }: Readonly<Record<string, string>>) => readJson(target ?? '') as McpTarget
