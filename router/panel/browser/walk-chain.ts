/** What the check keeps of a record: a chain of 100,000 is about 30 MB. */
export interface Link {
  traceId: string
  /** NaN where the record says no whole number. */
  seq: number
  prev: string
  hash: string
  /** Whether the hash is that of the record's canonical bytes. */
  holds: boolean
}

export interface Head {
  seq: number
  hash: string
}

export type Reason = 'seq' | 'prev_hash' | 'hash' | 'trace_id'

export interface Walk {
  /** Of the chain, in its order. */
  records: number
  /** 0-based position of the first record that fails, with its id if there is a record. */
  broken?: { index: number; reason: Reason; traceId?: string }
  /** The last record before the break. */
  head: Head
  /** Records behind a gap at the end that came while the others were read; they are not judged. */
  late: number
}

/**
 * Walks one chain in the order of its numbers: lists come by time, and a long call is sealed after shorter ones that began later. A gap up
 * to `settled`, which was in the store before the reading began, is a break; one behind it may be a record that came meanwhile.
 */
export function walkChain(links: readonly Link[], start: Head, settled: number): Walk {
  const ids = new Set<string>()
  let head = start
  let index = 0
  const records = inOrder(links, start.seq)
  for (const link of records) {
    if (link.seq > head.seq + 1 && head.seq >= settled && link.holds) {
      return { records: index, head, late: records.length - index }
    }
    const reason = fault(link, head, ids)
    if (reason !== undefined) {
      // What is missing has no id: the record that stands in its place is another one.
      const missing = reason === 'seq' && link.seq > head.seq + 1
      const broken = { index, reason, ...(!missing && { traceId: link.traceId }) }
      return { records: records.length, broken, head, late: 0 }
    }
    head = { seq: link.seq, hash: link.hash }
    index++
  }
  return { records: records.length, head, late: 0 }
}

function fault(link: Link, head: Head, ids: Set<string>): Reason | undefined {
  if (link.seq !== head.seq + 1) return 'seq'
  if (link.prev !== head.hash) return 'prev_hash'
  if (!link.holds) return 'hash'
  if (ids.has(link.traceId)) return 'trace_id'
  ids.add(link.traceId)
  return undefined
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
