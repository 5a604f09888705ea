import { readJson } from '../../shared/json/read-json.ts'
import { CHECKPOINT, type Members, ROUTER_KEYS, unknownMember } from '../../shared/proof/members.ts'
import { ProofTextError, type ReadFault, readProof } from '../../shared/proof/read-proof.ts'
import { fromBase64, toBase64 } from '../../shared/sign/bytes.ts'
import { publicKey } from '../../shared/sign/ed25519.ts'
import type { Checkpoint, RouterKeys } from '../../shared/wire/router/checkpoint.ts'
import type { RecordLine } from './check-stretch.ts'

type LineKind = 'record' | 'feedback' | 'checkpoint' | 'keys'

/** A line that is no record cannot be taken for what it should be, so nothing is said of the rest. */
export class ExportLineError extends Error {
  override name = 'ExportLineError'
  readonly reason: ReadFault | 'unknown_member' | 'shape' | 'columns'
  constructor(what: string, reason: ExportLineError['reason'], why: string) {
    super(`a line is no ${what}: ${why}`)
    this.reason = reason
  }
}

/** White space of JSON alone: such a line is passed over. */
export const isBlank = (line: string): boolean => /^[ \t\r]*$/.test(line)

/** Which kind of line this is, by a member that only this kind has. Nothing else of a record is read for that. */
function kindOfLine(line: string): LineKind {
  if (line.includes('"attempts":')) return 'record'
  const found = membersOf(line)
  const has = (name: string) => (found === undefined ? line.includes(`"${name}":`) : Object.hasOwn(found, name))
  return KINDS.find(([name]) => has(name))?.[1] ?? 'record'
}

const KINDS: readonly [member: string, kind: LineKind][] = [
  ['attempts', 'record'],
  ['prev_checkpoint', 'checkpoint'],
  ['heads_url', 'keys'],
  ['feedback_id', 'feedback'],
]

/** The top-level members, to tell the kind of a line; undefined where it is no JSON, which the strict reader refuses later. */
function membersOf(line: string): object | undefined {
  try {
    const value = readJson(line)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return undefined
  }
}

export interface Extras {
  checkpoints: Checkpoint[]
  keys: RouterKeys[]
  feedback: boolean
}

type Lots = AsyncIterable<readonly string[]>

/** What an export holds besides records. */
export async function exportExtras(lots: Lots): Promise<Extras> {
  const extras: Extras = { checkpoints: [], keys: [], feedback: false }
  for await (const lines of lots) {
    for (const line of lines) {
      const kind = kindOfLine(line)
      if (kind === 'checkpoint') extras.checkpoints.push(toCheckpoint(line))
      if (kind === 'keys') extras.keys.push(toKeys(line))
      if (kind === 'feedback') extras.feedback = true
    }
  }
  return extras
}

/** The lines of an export that are records, or feedback. */
export async function* exportRecords(lots: Lots, kind: 'record' | 'feedback'): AsyncGenerator<RecordLine[]> {
  for await (const lines of lots) yield lines.filter(line => kindOfLine(line) === kind).map(text => ({ text }))
}

export function toCheckpoint(line: string): Checkpoint {
  const value = strictly(line, 'checkpoint', CHECKPOINT) as Partial<Checkpoint>
  const { tenant_id, kind, seq, sig } = value
  const whole =
    typeof tenant_id === 'string' &&
    (kind === 'head' || kind === 'prune') &&
    Number.isSafeInteger(seq) &&
    typeof sig === 'string'
  if (whole) return value as Checkpoint
  throw new ExportLineError('checkpoint', 'shape', line.slice(0, 60))
}

/** Published keys; the id of each is taken from the key, so that a listed one cannot lend its name to another. */
export function toKeys(line: string): RouterKeys {
  const value = strictly(line, 'list of keys', ROUTER_KEYS) as Partial<RouterKeys>
  const keys = Array.isArray(value.keys) ? value.keys : []
  for (const { key_id, public_key, alg } of keys) {
    if (alg !== 'Ed25519' || !isKey(public_key, key_id)) {
      throw new ExportLineError('list of keys', 'shape', `${String(key_id)} is not the id of the key beside it`)
    }
  }
  if (keys.length > 0) return value as RouterKeys
  throw new ExportLineError('list of keys', 'shape', line.slice(0, 60))
}

function isKey(text: unknown, id: unknown): boolean {
  try {
    const raw = fromBase64(String(text))
    return toBase64(raw) === text && publicKey(raw).keyId === id
  } catch {
    return false
  }
}

function strictly(line: string, what: string, members: Members): object {
  let value: unknown
  try {
    value = readProof(line)
  } catch (error) {
    throw error instanceof ProofTextError ? new ExportLineError(what, error.reason, error.message) : error
  }
  const extra = unknownMember(value, members)
  if (extra !== undefined) throw new ExportLineError(what, 'unknown_member', `none has a member ${extra}`)
  if (typeof value === 'object' && value !== null) return value
  throw new ExportLineError(what, 'shape', line.slice(0, 60))
}
