import { listIn, objectIn, type RowOf, readRow, textIn } from '../../../shared/sql/db.ts'
import type { Labels } from '../../../shared/wire/runtime/conventions.ts'
import { type Backend, backends, isolationTable } from '../../../shared/wire/runtime/isolation.ts'
import type { Node, NodeBackend } from '../../../shared/wire/runtime/node.ts'
import type { nodes } from '../../schema/tables.ts'

export interface NodeRow {
  id: string
  tenantId: string
  name: string
  pool: string
  labels: Labels
  createdMs: number
  enrolledMs: number | undefined
  signKey: Uint8Array<ArrayBuffer> | undefined
  version: string | undefined
  os: string | undefined
  arch: string | undefined
  vcpus: number | undefined
  memoryMb: number | undefined
  slots: number
  backends: readonly NodeBackend[]
  draining: boolean
  /** It said goodbye. */
  signedOff: boolean
  lastSeenMs: number | undefined
  activeRuns: number
  /** The control plane that it has dialled, where others can ask that one. */
  peerUrl: string | undefined
}

/** How a node stands, from what was last heard of it (docs/spec/runtime.md §14). */
export function statusOf(
  {
    enrolledMs,
    lastSeenMs,
    signedOff,
    draining,
  }: Pick<NodeRow, 'enrolledMs' | 'lastSeenMs' | 'signedOff' | 'draining'>,
  nowMs: number,
  lostMs: number,
): Node['status'] {
  if (enrolledMs === undefined) return 'pending'
  if (lastSeenMs === undefined || signedOff) return 'offline'
  if (nowMs - lastSeenMs > lostMs) return 'lost'
  return draining ? 'draining' : 'online'
}

export function toNode(row: NodeRow, nowMs: number, lostMs: number): Node {
  return {
    id: row.id,
    name: row.name,
    pool: row.pool,
    status: statusOf(row, nowMs, lostMs),
    ...(row.version !== undefined && { version: row.version }),
    ...(row.os !== undefined && { os: row.os }),
    ...(row.arch !== undefined && { arch: row.arch }),
    labels: row.labels,
    ...(row.vcpus !== undefined && { vcpus: row.vcpus }),
    ...(row.memoryMb !== undefined && { memoryMb: row.memoryMb }),
    activeRuns: row.activeRuns,
    ...(row.lastSeenMs !== undefined && { lastSeenAt: new Date(row.lastSeenMs).toISOString() }),
    capabilities: { isolation: [...row.backends] },
  }
}

/** The backends that a node has run, of those that this version knows. */
export function provenBackends({ backends: told }: Pick<NodeRow, 'backends'>): Backend[] {
  return told.filter(({ ok }) => ok).map(({ backend }) => backend)
}

/** What a node says of its backends, as the wire shows it; names that this version does not know are left out. */
export function readBackends(
  told: readonly { name: string; ok: boolean; detail: string; verifiedUnix: bigint; accel: string }[],
): NodeBackend[] {
  return told.flatMap(({ name, ok, detail, verifiedUnix, accel }) => {
    const backend = backends.find(known => known === name)
    if (backend === undefined) return []
    const verified = Number(verifiedUnix)
    return [
      {
        backend,
        rank: isolationTable[backend].rank,
        ok,
        detail: detail.slice(0, 2000).toWellFormed(),
        ...(verified > 0 && verified < 8e12 && { verifiedAt: new Date(verified * 1000).toISOString() }),
        ...(accel !== '' && { accel: accel.slice(0, 32).toWellFormed() }),
      },
    ]
  })
}

export type StoredNode = RowOf<typeof nodes>

export function toNodeRow(row: StoredNode): NodeRow {
  return readRow(`node ${row.id}`, row, () => ({
    id: row.id,
    tenantId: row.tenant_id,
    name: textIn(row.name),
    pool: row.pool,
    labels: objectIn<Labels>(row.labels),
    createdMs: row.created_ms,
    enrolledMs: row.enrolled_ms ?? undefined,
    signKey: row.sign_key === null ? undefined : new Uint8Array(row.sign_key),
    version: row.version ?? undefined,
    os: row.os ?? undefined,
    arch: row.arch ?? undefined,
    vcpus: row.vcpus ?? undefined,
    memoryMb: row.memory_mb ?? undefined,
    slots: row.slots,
    backends: listIn<NodeBackend>(row.backends),
    draining: row.draining === 1,
    signedOff: row.signed_off === 1,
    lastSeenMs: row.last_seen_ms ?? undefined,
    activeRuns: row.active_runs,
    peerUrl: row.peer_url ?? undefined,
  }))
}
