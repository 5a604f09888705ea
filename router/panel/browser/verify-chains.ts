import { CHECKPOINT, TRACE, unknownMember } from '../../../shared/proof/members.ts'
import { fromBase64, toBase64Url, toHex, utf8 } from '../../../shared/sign/bytes.ts'
import { canonicalize } from '../../../shared/sign/jcs.ts'
import type { Checkpoint, CheckpointList, RouterKeys } from '../../../shared/wire/router/checkpoint.ts'
import { recordHash, sha256 } from './record-hash.ts'
import { type Head, type Link, type Walk, walkChain } from './walk-chain.ts'
import { type FeedbackWalk, walkFeedback } from './walk-feedback.ts'

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
  /** `unsupported`: this browser has no Ed25519. */
  signatures: 'checked' | 'unsupported' | 'none'
  keyIds: string[]
  late: number
}

export interface VerifyHooks {
  /** Called with the number of records that were hashed so far. */
  onRecords?: (records: number) => void
  signal?: AbortSignal
}

const GENESIS = '0'.repeat(64)
/** Of a checkpoint's signed bytes (docs/spec/proof.md); shared/wire says it too, together with all of its schemas. */
const DOMAIN = 'router-checkpoint-v1\n'
const UNSUPPORTED = Symbol('no Ed25519')

/** Re-derives every chain that the source shows, and holds it against its checkpoints. */
export async function verifyChains(
  source: ChainSource,
  { onRecords, signal }: VerifyHooks = {},
): Promise<ChainVerdict[]> {
  // Before the records: what a checkpoint names was in the store by then.
  const signed = Map.groupBy(await allCheckpoints(source, signal), one => one.tenant_id)
  const keys = await importKeys(await source.keys())
  const read = await readLinks(source, { onRecords, signal })
  const reports = await allFeedback(source, signal)
  // After them: what was pruned meanwhile is not missing.
  const pruned = Map.groupBy(
    (await allCheckpoints(source, signal)).filter(({ kind }) => kind === 'prune'),
    one => one.tenant_id,
  )
  const tenants = [...new Set([...signed.keys(), ...read.keys(), ...reports.keys()])].sort()
  return Promise.all(
    tenants.map(tenant => {
      const checkpoints = signed.get(tenant) ?? []
      const { links = [], settled = -1 } = read.get(tenant) ?? {}
      const cut = pruned.get(tenant)?.at(-1)
      const start = cut === undefined ? { seq: -1, hash: GENESIS } : { seq: cut.seq, hash: cut.hash }
      const known = Math.max(settled, ...checkpoints.map(({ seq }) => seq))
      const walk = walkChain(links, start, known)
      return conclude({
        tenant,
        checkpoints,
        start,
        walk,
        keys,
        hashes: new Map(links.map(one => [one.seq, one.hash])),
        feedback: walkFeedback(
          reports.get(tenant) ?? [],
          cut === undefined ? start : { seq: cut.feedback_seq, hash: cut.feedback_hash },
          checkpoints,
        ),
      })
    }),
  )
}

interface Evidence {
  tenant: string
  checkpoints: readonly Checkpoint[]
  start: Head
  walk: Walk
  keys: Keys
  hashes: ReadonlyMap<number, string>
  feedback: Promise<FeedbackWalk>
}

async function conclude({ tenant, checkpoints, start, walk, keys, hashes, feedback }: Evidence): Promise<ChainVerdict> {
  let previous = GENESIS
  let last = start.seq
  let broken: ChainVerdict['broken'] = walk.broken
  let signatures: ChainVerdict['signatures'] = checkpoints.length === 0 ? 'none' : 'checked'
  const keyIds = new Set<string>()
  for (const checkpoint of checkpoints) {
    const signature = await isSigned(checkpoint, keys)
    if (signature === UNSUPPORTED) signatures = 'unsupported'
    const reason =
      signature === false
        ? 'checkpoint_signature'
        : checkpoint.prev_checkpoint !== previous
          ? 'checkpoint_link'
          : headFault(checkpoint, { start, walk, hashes })
    if (reason !== undefined) {
      const index = Math.min(Math.max(0, checkpoint.seq - start.seq - 1), walk.records)
      if (broken === undefined || index < broken.index) broken = { index, reason }
      break
    }
    previous = await sha256(signedText(checkpoint))
    last = Math.max(last, checkpoint.seq)
    keyIds.add(checkpoint.key_id)
  }
  const { reports, broken: reported } = await feedback
  // A break of the records themselves is reported first, as `router verify` does.
  broken ??= reported
  return {
    tenant,
    records: walk.records,
    reports,
    ...(broken && { broken }),
    unanchored: Math.max(0, walk.head.seq - last),
    checkpoints: checkpoints.length,
    signatures,
    keyIds: [...keyIds],
    late: walk.late,
  }
}

/** Whether the chain has, at its place, the head that was signed. Behind a break of the chain nothing more is said. */
function headFault({ seq, hash }: Checkpoint, { start, walk, hashes }: Pick<Evidence, 'start' | 'walk' | 'hashes'>) {
  if (seq < start.seq || seq < 0) return undefined
  if (seq === start.seq) return hash === start.hash ? undefined : 'checkpoint_head'
  if (seq > walk.head.seq) return walk.broken === undefined ? 'tail_cut' : undefined
  return hashes.get(seq) === hash ? undefined : 'checkpoint_head'
}

interface ReadTenant {
  links: Link[]
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
    const hashed = await Promise.all(page.traces.map(toLink))
    for (const [i, link] of hashed.entries()) {
      // A record whose tenant does not read belongs to the chain it stands in.
      tenant = memberOf(page.traces[i], 'tenant_id') ?? tenant
      const known = tenants.get(tenant) ?? { links: [], settled: -1 }
      tenants.set(tenant, known)
      known.links.push(link)
      if (first && link.holds && link.seq > known.settled) known.settled = link.seq
    }
    records += hashed.length
    onRecords?.(records)
    if (page.next === null) return tenants
  }
}

async function toLink(record: unknown): Promise<Link> {
  const hash = memberOf(record, 'hash') ?? ''
  const seq = typeof record === 'object' && record !== null && 'seq' in record ? record.seq : undefined
  return {
    traceId: memberOf(record, 'trace_id') ?? '',
    seq: typeof seq === 'number' && Number.isSafeInteger(seq) ? seq : Number.NaN,
    prev: memberOf(record, 'prev_hash') ?? '',
    hash,
    holds: hash !== '' && unknownMember(record, TRACE) === undefined && (await recordHash(record)) === hash,
  }
}

function memberOf(record: unknown, name: string): string | undefined {
  if (typeof record !== 'object' || record === null) return undefined
  const value = (record as Record<string, unknown>)[name]
  return typeof value === 'string' ? value : undefined
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

function signedText({ sig: _sig, ...body }: Checkpoint): string {
  return DOMAIN + canonicalize(body)
}

type Keys = ReadonlyMap<string, CryptoKey | typeof UNSUPPORTED>

async function importKeys({ keys }: RouterKeys): Promise<Keys> {
  const imported = new Map<string, CryptoKey | typeof UNSUPPORTED>()
  for (const { key_id, public_key } of keys) {
    try {
      const raw = fromBase64(public_key)
      // The id is taken from the key, so that a listed one cannot lend its name to another.
      if ((await digestOf(raw)).slice(0, 16) !== key_id) continue
      imported.set(key_id, await crypto.subtle.importKey('raw', raw, { name: 'Ed25519' }, false, ['verify']))
    } catch (error) {
      if (error instanceof DOMException && error.name === 'NotSupportedError') imported.set(key_id, UNSUPPORTED)
    }
  }
  return imported
}

async function digestOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}

async function isSigned(checkpoint: Checkpoint, keys: Keys): Promise<boolean | typeof UNSUPPORTED> {
  if (unknownMember(checkpoint, CHECKPOINT) !== undefined) return false
  const key = keys.get(checkpoint.key_id)
  if (key === undefined || key === UNSUPPORTED) return key ?? false
  try {
    const signature = fromBase64(checkpoint.sig)
    if (toBase64Url(signature) !== checkpoint.sig) return false
    return await crypto.subtle.verify({ name: 'Ed25519' }, key, signature, utf8(signedText(checkpoint)))
  } catch {
    return false
  }
}
