import { recordHash } from '../../../shared/sign/record-chain.ts'

/** A record as the router's list has it, and what it says of its place. */
export interface Link {
  record: unknown
  tenant: string | undefined
  traceId: string
  /** NaN where the record says no whole number. */
  seq: number
  /** Whether the hash is that of the record's canonical bytes. */
  holds: boolean
}

export interface ReadChain {
  /** In the order of their numbers. */
  links: readonly Link[]
  /** Records behind a gap at the end that came while the others were read; they are not judged. */
  late: number
}

export function toLink(record: unknown): Link {
  return {
    record,
    tenant: memberOf(record, 'tenant_id'),
    traceId: memberOf(record, 'trace_id') ?? '',
    seq: seqOf(record),
    holds: holdsOwnHash(record),
  }
}

export function seqOf(record: unknown): number {
  const seq = typeof record === 'object' && record !== null && 'seq' in record ? record.seq : undefined
  return typeof seq === 'number' && Number.isSafeInteger(seq) ? seq : Number.NaN
}

/**
 * One chain in the order of its numbers: lists come by time, and a long call is sealed after shorter ones that began later. A gap up to
 * `settled`, which was in the store before the reading began, is a break; one behind it may be a record that came meanwhile.
 */
export function chainOf(read: readonly Link[], start: number, settled: number): ReadChain {
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
  const place = (link: Link) => (isLost(link) ? Number.MAX_VALUE : link.seq)
  return links.filter(({ seq, holds }) => !(seq <= start && holds)).sort((a, b) => place(a) - place(b))
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
