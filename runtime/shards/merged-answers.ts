import type { Readyz } from '../../shared/wire/runtime/health.ts'
import type { ReceiptKeys } from '../../shared/wire/runtime/receipt.ts'

export interface OfShard<T> {
  shard: string
  value: T
}

/**
 * A process serves while one of its shards can be used: with a 503 a balancer would take the tenants of all of them away. What is wrong with
 * a shard stands in the check.
 */
export function readinessOfAll(all: readonly OfShard<Readyz>[]): Readyz {
  const checks: Record<string, string> = {}
  for (const name of ['database', 'migrations', 'masterKey'] as const) {
    const said = all.flatMap(({ shard, value }) => {
      const check = value.checks[name]
      return check === undefined || check === 'ok' ? [] : [`shard ${shard}: ${check}`]
    })
    if (all.some(({ value }) => value.checks[name] !== undefined)) checks[name] = said.join('; ') || 'ok'
  }
  const statuses = all.map(({ value }) => value.status)
  const status = statuses.find(one => one === 'draining') ?? statuses.find(one => one === 'ready') ?? statuses[0]
  return { status: status ?? 'failing', checks }
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (.*)$/

/** The pages of several registries as one, each sample with the name of its shard. */
export function metricsOfAll(pages: readonly OfShard<string>[]): string {
  const families = new Map<string, { head: string[]; samples: string[] }>()
  for (const { shard, value } of pages) {
    let family: { head: string[]; samples: string[] } | undefined
    for (const line of value.split('\n')) {
      const [, word, name] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? []
      if (name !== undefined) {
        family = families.get(name) ?? { head: [], samples: [] }
        families.set(name, family)
        if (!family.head.some(known => known.startsWith(`# ${word} `))) family.head.push(line)
        continue
      }
      const [, sample, labels, number] = SAMPLE.exec(line) ?? []
      if (sample === undefined) continue
      const all = labels === undefined ? `{shard="${shard}"}` : `${labels.slice(0, -1)},shard="${shard}"}`
      family?.samples.push(`${sample}${all} ${number}`)
    }
  }
  return [...families.values()]
    .flatMap(({ head, samples }) => [...head, ...samples, ''])
    .join('\n')
    .replaceAll('\n\n', '\n')
}

/** The keys of all shards: a receipt may have been signed before its tenant came to where it is now. */
export function receiptKeysOfAll(all: readonly ReceiptKeys[]): ReceiptKeys | undefined {
  const [first] = all
  if (first === undefined) return undefined
  const byId = new Map<string, ReceiptKeys['keys'][number]>()
  for (const { keys } of all) {
    for (const key of keys) {
      const known = byId.get(key.keyId)
      // A key that one shard has revoked is revoked.
      if (known === undefined || (key.status === 'revoked' && known.status !== 'revoked')) byId.set(key.keyId, key)
    }
  }
  return { ...first, keys: [...byId.values()] }
}
