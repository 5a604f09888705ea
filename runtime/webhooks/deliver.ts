import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import { type Log, REPEATS_OMITTED, rateLimitedLog } from '../../shared/log/log.ts'
import type { Counter } from '../../shared/metrics/metrics.ts'
import { type Clock, setBacks } from '../../shared/time/clock.ts'
import { dueLoop } from '../../shared/time/due-loop.ts'
import { type Sent, send } from './send.ts'
import type { WebhookStore } from './store.ts'
import { bodyText, type DeliveryRow, type WebhookRow } from './webhook.ts'

export interface WebhookDeliveryDeps {
  store: Pick<WebhookStore, 'take' | 'getMany' | 'settle' | 'nextDue' | 'hasten' | 'prune'>
  openSecret: (webhook: WebhookRow) => Promise<string>
  fetch: EgressClient['fetch']
  deliveries: Counter
  clock: Clock
  random: () => number
  log: Log
  /** How long one attempt may take. */
  deadlineMs?: number
}

/** Deliveries that one process has on their way. */
const MOST = 64
/** Of those, to one webhook: a slow receiver holds up no other. */
const MOST_OF_ONE = 4
/** Beyond the deadline of a delivery, so that no process takes one that is still under way. */
const LEASE_MS = 60_000
const KEPT_MS = 30 * 86_400_000
const FIRST_RETRY_MS = 10_000
const LAST_RETRY_MS = 6 * 60 * 60_000
const MOST_RETRIES = 8
/** Spreads what failed together; it only lengthens, so that nothing is sent again earlier than it was said. */
const JITTER = 0.2
const PRUNE_EVERY_MS = 60_000
const PRUNE_MOST = 1000
/** What a host without timers spends on one call. */
const ONCE_MS = 25_000

export type WebhookDelivery = ReturnType<typeof webhookDelivery>

/** Sends what is in the outbox, and again what did not arrive. A delivery may arrive twice, under one `webhook-id`. */
export function webhookDelivery(deps: WebhookDeliveryDeps) {
  const { store, clock, log } = deps
  const underWay = new Map<Promise<void>, { webhookId: string; tenantId: string }>()
  const wasSetBack = setBacks(clock)
  let stop = new AbortController()
  let pruneAt = 0
  const once = rateLimitedLog(clock)

  const nowMs = () => clock.now().getTime()

  function begin(webhook: WebhookRow | undefined, row: DeliveryRow): void {
    const one = deliver(deps, stop.signal, webhook, row)
      .catch((error: unknown) => {
        // Its lease ends and it is tried again; that it was an attempt is already counted.
        log.error('a webhook delivery failed for an internal reason', { error, webhookId: row.webhookId })
      })
      .finally(() => {
        underWay.delete(one)
        loop.wake()
      })
    underWay.set(one, { webhookId: row.webhookId, tenantId: webhook?.tenantId ?? '' })
  }

  /** How many are on their way, by webhook or tenant. */
  function underWayBy(key: 'webhookId' | 'tenantId') {
    const counts = new Map<string, number>()
    for (const { [key]: id } of underWay.values()) counts.set(id, (counts.get(id) ?? 0) + 1)
    return counts
  }

  /** Starts what is due and finds room; false when there was nothing. */
  async function startDue(): Promise<boolean> {
    const most = MOST - underWay.size
    if (most <= 0) return false
    const rows = await store.take({
      nowMs: nowMs(),
      leaseMs: LEASE_MS,
      most,
      mostOfWebhook: MOST_OF_ONE,
      underWay: { ofWebhook: underWayBy('webhookId'), ofTenant: underWayBy('tenantId') },
    })
    if (rows.length === 0) return false
    const webhooks = await store.getMany([...new Set(rows.map(row => row.webhookId))])
    for (const row of rows) begin(webhooks.get(row.webhookId), row)
    return true
  }

  async function look(): Promise<number | undefined> {
    if (wasSetBack()) await store.hasten(nowMs(), 0)
    // One read of an index while nothing is due.
    let due = await store.nextDue()
    while (due !== undefined && due <= nowMs() && (await startDue())) due = await store.nextDue()
    if (clock.monotonic() >= pruneAt) {
      pruneAt = clock.monotonic() + PRUNE_EVERY_MS
      await store.hasten(nowMs(), LAST_RETRY_MS)
      await store.prune(nowMs() - KEPT_MS, PRUNE_MOST)
    }
    // Without room, the end of a delivery wakes the loop.
    return due !== undefined && due <= nowMs() ? undefined : due
  }

  const loop = dueLoop({
    clock,
    look,
    failed: error => once('failed', () => log.error(`webhooks could not be delivered; ${REPEATS_OMITTED}`, { error })),
  })

  async function settled(): Promise<void> {
    await Promise.allSettled(underWay.keys())
  }

  return {
    start: loop.start,
    /** For hosts without timers: sends what is due until nothing is left or the time is up. */
    async once(): Promise<void> {
      const until = clock.monotonic() + ONCE_MS
      while (clock.monotonic() < until && (await startDue())) await settled()
    },
    /** Takes no more, and gives what is under way up to `ms`. */
    async stop(ms: number): Promise<void> {
      await loop.stop()
      const timer = setTimeout(() => stop.abort(new Error('the service is stopping')), ms)
      await settled()
      clearTimeout(timer)
      stop = new AbortController()
    },
  }
}

async function deliver(
  deps: WebhookDeliveryDeps,
  stop: AbortSignal,
  webhook: WebhookRow | undefined,
  row: DeliveryRow,
): Promise<void> {
  let sent: Sent = { delivered: false, status: undefined, error: 'the webhook is switched off' }
  const on = webhook?.enabled === true
  const secret = on ? await secretOf(deps, webhook) : undefined
  if (on && secret === undefined) sent.error = 'its secret could not be opened: see the log of the service'
  if (on && secret !== undefined) {
    const message = { url: webhook.url, secret, id: row.eventId, body: bodyText(webhook.tenantId, row) }
    sent = await send(
      {
        fetch: deps.fetch,
        now: deps.clock.now,
        stop,
        ...(deps.deadlineMs && { deadlineMs: deps.deadlineMs }),
      },
      message,
    )
    // Broken off here: the lease ends, and the next process sends it.
    if (stop.aborted && !sent.delivered) return
  }
  const delayMs = sent.delivered || !on ? undefined : retryDelayMs(row.attempt, deps.random)
  const outcome = sent.delivered ? 'delivered' : delayMs === undefined ? 'failed' : 'retrying'
  const dueMs = delayMs === undefined ? undefined : deps.clock.now().getTime() + delayMs
  await deps.store.settle(row, { outcome, status: sent.status, error: sent.error, dueMs })
  deps.deliveries.add(1, { outcome })
}

async function secretOf(deps: WebhookDeliveryDeps, webhook: WebhookRow): Promise<string | undefined> {
  try {
    return await deps.openSecret(webhook)
  } catch (error) {
    deps.log.error('the secret of a webhook could not be opened', { error, webhookId: webhook.id })
    return undefined
  }
}

/**
 * How long after a failed attempt the next one follows, counting attempts from 1: 10 s, then three times as long each time, up
 * to 6 h (docs/spec/runtime.md §15). Undefined after the eighth retry: the receiver is gone.
 */
export function retryDelayMs(attempt: number, random: () => number): number | undefined {
  if (attempt > MOST_RETRIES) return undefined
  return Math.round(Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 3 ** (attempt - 1) * (1 + JITTER * random())))
}
