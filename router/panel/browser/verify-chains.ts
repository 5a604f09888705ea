import { fromBase64 } from '../../../shared/sign/bytes.ts'
import { publicKey } from '../../../shared/sign/ed25519.ts'
import { recordHash } from '../../../shared/sign/record-chain.ts'
import type { Checkpoint, CheckpointList, RouterKeys, VerifyReport } from '../../../shared/wire/router/checkpoint.ts'
import type { TrustedKeys } from '../../traces/checkpoint.ts'
import { verifyRecords } from '../../traces/verify.ts'

/** Where the records come from: the router's own API. What it says is taken for nothing but what it is to be checked against. */
export interface ChainSource {
  traces(before: string | undefined): Promise<{ traces: readonly unknown[]; next: string | null }>
  checkpoints(after: string | undefined): Promise<CheckpointList>
  feedback(after: string | undefined): Promise<{
    feedback: readonly { tenant_id: string; record: unknown }[]
    next: string | null
  }>
  keys(): Promise<RouterKeys>
}

export interface ChainVerdict {
  tenant: string
  records: number
  /** Of feedback, in a chain of their own. */
  reports: number
  /** The first thing that fails; the index is the 0-based position of a record, or of a report where the reason begins with `feedback_`. */
  broken?: { index: number; reason: string; traceId?: string }
  /** Records behind the last checkpoint that holds: nothing signed names them yet. */
  unanchored: number
  checkpoints: number
  signatures: 'checked' | 'none'
  keyIds: string[]
  late: number
}

export interface VerifyHooks {
  /** Called with the number of records that were read so far. */
  onRecords?: (records: number) => void
  signal?: AbortSignal
}

interface Evidence {
  checkpoints: readonly Checkpoint[]
  chains: ReadonlyMap<string, ReadChain>
  reports: ReadonlyMap<string, readonly unknown[]>
}

/** Holds every chain that the source shows against its checkpoints, with the verifier of `router verify`. */
export async function verifyChains(source: ChainSource, hooks: VerifyHooks = {}): Promise<ChainVerdict[]> {
  const keys = keysById(await source.keys())
  const { checkpoints, chains, reports } = await readAll(source, hooks)
  const report = await verifyRecords({
    records: lots([...chains].map(([tenantId, { links }]) => links.map(({ record }) => lineOf(tenantId, record)))),
    feedback: lots([...reports].map(([tenantId, records]) => records.map(record => lineOf(tenantId, record)))),
    checkpoints,
    keys,
  })
  return report.tenants.map(tenant => toVerdict(tenant, { checkpoints, chains, reports }))
}

/** What was pruned while the records were read is missing among them: then all is read again. */
async function readAll(source: ChainSource, hooks: VerifyHooks): Promise<Evidence> {
  for (;;) {
    // Before the records: what a checkpoint names was in the store by then.
    const checkpoints = await allCheckpoints(source, hooks.signal)
    const links = await readLinks(source, hooks)
    const reports = await allFeedback(source, hooks.signal)
    if (prunes(await allCheckpoints(source, hooks.signal)).length > prunes(checkpoints).length) continue
    const signed = Map.groupBy(checkpoints, one => one.tenant_id)
    const cuts = new Map(prunes(checkpoints).map(one => [one.tenant_id, one]))
    return {
      checkpoints,
      chains: new Map(
        [...links].map(([tenant, { read, settled }]) => {
          const known = Math.max(settled, ...(signed.get(tenant) ?? []).map(({ seq }) => seq))
          return [tenant, chainOf(read, cuts.get(tenant)?.seq ?? -1, known)]
        }),
      ),
      reports: new Map(
        [...reports].map(([tenant, all]) => {
          const cut = cuts.get(tenant)?.feedback_seq ?? -1
          return [tenant, all.filter(record => !(seqOf(record) <= cut))]
        }),
      ),
    }
  }
}

const prunes = (checkpoints: readonly Checkpoint[]) => checkpoints.filter(({ kind }) => kind === 'prune')

const lineOf = (tenantId: string, record: unknown) => ({ tenantId, text: JSON.stringify(record) })

async function* lots<T>(lists: readonly T[]): AsyncGenerator<T> {
  yield* lists
}

function toVerdict(
  { tenant_id: tenant, records, broken_at: index, reason, ...report }: VerifyReport['tenants'][number],
  { checkpoints, chains, reports }: Evidence,
): ChainVerdict {
  const own = checkpoints.filter(one => one.tenant_id === tenant)
  const { links = [], late = 0 } = chains.get(tenant) ?? {}
  const held = own.filter(({ seq }) => seq <= (report.last_checkpoint ?? -1))
  return {
    tenant,
    records,
    reports: reports.get(tenant)?.length ?? 0,
    ...(index !== null && reason !== null && { broken: brokenAt(index, reason, links) }),
    unanchored: report.unanchored_tail,
    checkpoints: own.length,
    signatures: own.length === 0 ? 'none' : 'checked',
    keyIds: [...new Set(held.map(({ key_id }) => key_id))],
    late,
  }
}

/** What is missing has no id: the record that stands in its place is another one. A checkpoint or a report is no record. */
function brokenAt(index: number, reason: string, links: readonly Link[]): NonNullable<ChainVerdict['broken']> {
  const link = links[index]
  const before = links[index - 1]
  const isMissing = reason === 'seq' && link !== undefined && link.seq > (before?.seq ?? -1) + 1
  const isOfRecord = !/^(?:checkpoint|feedback|tail)_/.test(reason)
  return { index, reason, ...(isOfRecord && !isMissing && link && { traceId: link.traceId }) }
}

interface ReadTenant {
  read: Link[]
  /** The highest number of the first page: every lower one was in the store by then. */
  settled: number
}

async function readLinks(source: ChainSource, { onRecords, signal }: VerifyHooks): Promise<Map<string, ReadTenant>> {
  const tenants = new Map<string, ReadTenant>()
  let records = 0
  let tenant = ''
  let next = source.traces(undefined)
  for (let first = true; ; first = false) {
    const page = await next
    signal?.throwIfAborted()
    // The router reads the next page while this one is hashed.
    if (page.next !== null) next = source.traces(page.next)
    for (const link of page.traces.map(toLink)) {
      // A record whose tenant does not read belongs to the chain it stands in.
      tenant = link.tenant ?? tenant
      const known = tenants.get(tenant) ?? { read: [], settled: -1 }
      tenants.set(tenant, known)
      known.read.push(link)
      if (first && link.holds && link.seq > known.settled) known.settled = link.seq
    }
    records += page.traces.length
    onRecords?.(records)
    if (page.next === null) return tenants
  }
}

async function allCheckpoints(source: ChainSource, signal: AbortSignal | undefined): Promise<Checkpoint[]> {
  const all: Checkpoint[] = []
  for (let after: string | undefined; ; ) {
    const page = await source.checkpoints(after)
    signal?.throwIfAborted()
    all.push(...page.checkpoints)
    if (page.next === null) return all
    after = page.next
  }
}

/** By the tenant whose row each stands in, whatever it says itself. */
async function allFeedback(source: ChainSource, signal: AbortSignal | undefined): Promise<Map<string, unknown[]>> {
  const all = new Map<string, unknown[]>()
  for (let after: string | undefined; ; ) {
    const page = await source.feedback(after)
    signal?.throwIfAborted()
    for (const { tenant_id, record } of page.feedback) {
      const known = all.get(tenant_id) ?? []
      all.set(tenant_id, known)
      known.push(record)
    }
    if (page.next === null) return all
    after = page.next
  }
}

/** The id is taken from the key, so that a listed one cannot lend its name to another. */
function keysById({ keys }: RouterKeys): TrustedKeys {
  const known = new Map<string, Uint8Array<ArrayBuffer>>()
  for (const { public_key } of keys) {
    try {
      const { keyId, publicKey: raw } = publicKey(fromBase64(public_key))
      known.set(keyId, raw)
    } catch {
      // No key: nothing is signed by it.
    }
  }
  return known
}

/** A record as the router's list has it, and what it says of its place. */
interface Link {
  record: unknown
  tenant: string | undefined
  traceId: string
  /** NaN where the record says no whole number. */
  seq: number
  /** Whether the hash is that of the record's canonical bytes. */
  holds: boolean
}

interface ReadChain {
  /** In the order of their numbers. */
  links: readonly Link[]
  /** Records behind a gap at the end that came while the others were read; they are not judged. */
  late: number
}

function toLink(record: unknown): Link {
  return {
    record,
    tenant: memberOf(record, 'tenant_id'),
    traceId: memberOf(record, 'trace_id') ?? '',
    seq: seqOf(record),
    holds: holdsOwnHash(record),
  }
}

function seqOf(record: unknown): number {
  const seq = typeof record === 'object' && record !== null && 'seq' in record ? record.seq : undefined
  return typeof seq === 'number' && Number.isSafeInteger(seq) ? seq : Number.NaN
}

/**
 * One chain in the order of its numbers: lists come by time, and a long call is sealed after shorter ones that began later. A gap up to
 * `settled`, which was in the store before the reading began, is a break; one behind it may be a record that came meanwhile.
 */
function chainOf(read: readonly Link[], start: number, settled: number): ReadChain {
  const links = inOrder(read, start)
  const at = links.findIndex(({ seq, holds }, at) => {
    const before = at === 0 ? start : links[at - 1]!.seq
    return seq > before + 1 && before >= settled && holds
  })
  return at === -1 ? { links, late: 0 } : { links: links.slice(0, at), late: links.length - at }
}

/**
 * By number. One that does not read, or that a record claims whose hash does not hold though another one has it rightly, comes last: the
 * place where such a record belongs shows as a gap, and one that belongs nowhere as a record too many.
 */
function inOrder(links: readonly Link[], start: number): Link[] {
  const sound = new Set(links.filter(({ holds }) => holds).map(({ seq }) => seq))
  const isLost = ({ seq, holds }: Link) => Number.isNaN(seq) || (!holds && (seq <= start || sound.has(seq)))
  // Its number was one of the chain, so that it was pruned while the records were read.
  const isPruned = ({ seq, holds }: Link) => seq >= 0 && seq <= start && holds
  const place = (link: Link) => (isLost(link) ? Number.MAX_VALUE : link.seq)
  return links.filter(link => !isPruned(link)).sort((a, b) => place(a) - place(b))
}

function holdsOwnHash(record: unknown): boolean {
  if (typeof record !== 'object' || record === null) return false
  try {
    return recordHash(record) === memberOf(record, 'hash')
  } catch {
    // It has no canonical form.
    return false
  }
}

function memberOf(record: unknown, name: string): string | undefined {
  if (typeof record !== 'object' || record === null) return undefined
  const value: unknown = (record as Record<string, unknown>)[name]
  return typeof value === 'string' ? value : undefined
}
