import { waitingForStore } from '../../../shared/sql/db-fault.ts'
import type { Clock } from '../../../shared/time/clock.ts'
import type { Credential } from '../definition.ts'
import type { Install } from '../install.ts'
import { VendorFailure } from '../vendor-failure.ts'
import type { OAuthClients } from './clients.ts'
import type { TokenCalls } from './token-calls.ts'
import type { OAuthClient, OAuthVendor } from './vendors.ts'

/** A row with tokens; its revision grows whenever they are others. */
export interface Refreshable {
  id: string
  revision: number
}

/** An install with its credentials opened. */
export interface OpenedInstall<I extends Refreshable = Install> {
  install: I
  credential: Credential
}

/** What a refresh takes. */
export interface RefreshMeans {
  vendor: OAuthVendor
  client: OAuthClient
  refreshToken: string
}

export interface RefreshStore<I extends Refreshable> {
  /** The row as it is now, under whatever id. */
  now(install: I): Promise<I | undefined>
  claimRefresh(install: I, nowMs: number, untilMs: number): Promise<boolean>
  releaseRefresh(install: I): Promise<void>
  renew(install: I, tokens: { sealed: string; expiresMs: number | undefined; nowMs: number }): Promise<I | undefined>
  mark(install: I, status: 'installed' | 'expired', nowMs: number): Promise<void>
}

export interface RefresherDeps<I extends Refreshable> {
  store: RefreshStore<I>
  calls: Pick<TokenCalls, 'refresh'>
  clock: Clock
  wait: (ms: number, signal: AbortSignal) => Promise<void>
  /** Undefined where there is no refresh to be made. */
  meansOf: (held: OpenedInstall<I>) => RefreshMeans | undefined
  open: (install: I) => Promise<Credential>
  seal: (install: I, values: Readonly<Record<string, string>>) => Promise<string>
}

/** So long before its end a token is not used any more (docs/spec/runtime.md §8), and at most for so much of its life. */
const AHEAD_MS = 60_000
const AHEAD_SHARE = 0.25
/** Longer than a refresh may take, so that no second process begins while one is at it. */
const CLAIM_MS = 35_000
const LOOK_MS = 100
/** What a vendor has refused is not asked for again by every call. */
const REFUSED_MS = 60_000

/** Whose token it is: that of the client in the install's own config, or of this installation. */
export function clientOf({ values }: Credential, vendor: OAuthVendor, clients: OAuthClients): OAuthClient | undefined {
  if (values.clientId !== undefined) return { id: values.clientId, secret: values.clientSecret }
  return clients.get(vendor.client)
}

/** Keeps access tokens fresh: of all calls that want one install's at once, in whatever process, one refreshes it. */
export function refresher<I extends Refreshable>(deps: RefresherDeps<I>) {
  const { store, calls, clock, wait, meansOf, open, seal } = deps
  const flights = new Map<string, Promise<OpenedInstall<I>>>()
  const refused = new Map<string, { revision: number; at: number }>()
  /** Of tokens that live so short that this matters. */
  const aheadOf = new Map<string, number>()
  const nowMs = () => clock.now().getTime()

  function means(held: OpenedInstall<I>): RefreshMeans | undefined {
    const { id, revision } = held.install
    const before = refused.get(id)
    if (before?.revision === revision && clock.monotonic() - before.at < REFUSED_MS) return undefined
    return meansOf(held)
  }

  async function refresh(
    held: OpenedInstall<I>,
    { vendor, client, refreshToken }: RefreshMeans,
  ): Promise<OpenedInstall<I>> {
    const { install, credential } = held
    const until = clock.monotonic() + CLAIM_MS
    while (!(await store.claimRefresh(install, nowMs(), nowMs() + CLAIM_MS))) {
      const now = await store.now(install)
      if (now?.id !== install.id) throw new VendorFailure({ message: 'it was uninstalled meanwhile', declined: true })
      if (now.revision !== install.revision) return { install: now, credential: await open(now) }
      if (clock.monotonic() > until) {
        throw new VendorFailure({ message: 'its tokens are being refreshed and do not come', unreachable: true })
      }
      await wait(LOOK_MS, new AbortController().signal)
    }
    const heldUntil = clock.monotonic() + CLAIM_MS
    try {
      const granted = await calls.refresh(vendor, client, refreshToken)
      const values: Record<string, string> = { ...credential.values, accessToken: granted.accessToken }
      if (granted.refreshToken !== undefined) values.refreshToken = granted.refreshToken
      const lifeMs = granted.expiresInMs
      const expiresMs = lifeMs === undefined ? undefined : nowMs() + lifeMs
      if (lifeMs !== undefined && lifeMs * AHEAD_SHARE < AHEAD_MS) aheadOf.set(install.id, lifeMs * AHEAD_SHARE)
      else aheadOf.delete(install.id)
      // In the store before anything is done with it: what it replaces may be of no use any more.
      const tokens = { sealed: await seal(install, values), expiresMs, nowMs: nowMs() }
      const kept = await waitingForStore(
        () => store.renew(install, tokens),
        () => clock.monotonic() < heldUntil,
      )
      if (kept) return { install: kept, credential: await open(kept) }
    } catch (error) {
      await store.releaseRefresh(install)
      if (error instanceof VendorFailure && error.refused) {
        refused.set(install.id, { revision: install.revision, at: clock.monotonic() })
        await store.mark(install, 'expired', nowMs())
      }
      throw error
    }
    // It was installed anew meanwhile: the new credentials count.
    const now = await store.now(install)
    if (now?.id !== install.id) throw new VendorFailure({ message: 'it was uninstalled meanwhile', declined: true })
    return { install: now, credential: await open(now) }
  }

  function once(held: OpenedInstall<I>, by: RefreshMeans): Promise<OpenedInstall<I>> {
    const { id } = held.install
    const flight = flights.get(id)
    if (flight) return flight
    const made = refresh(held, by).finally(() => flights.delete(id))
    flights.set(id, made)
    return made
  }

  return {
    /** The install with a token that has a while to live, as far as that is known. */
    async fresh(held: OpenedInstall<I>): Promise<OpenedInstall<I>> {
      const { expiresMs } = held.credential
      const aheadMs = aheadOf.get(held.install.id) ?? AHEAD_MS
      const by = expiresMs !== undefined && nowMs() >= expiresMs - aheadMs ? means(held) : undefined
      if (!by) return held
      try {
        return await once(held, by)
      } catch (error) {
        // The vendor was not to be had, and the old token has not ended yet.
        if (error instanceof VendorFailure && !error.refused && nowMs() < expiresMs!) return held
        throw error
      }
    },

    /** New tokens for ones that the vendor has just refused; undefined where there is no way to any. */
    async renewed(held: OpenedInstall<I>): Promise<OpenedInstall<I> | undefined> {
      const by = means(held)
      return by && once(held, by)
    },
  }
}
