import { readJson } from '../../shared/json/read-json.ts'
import { type Members, TRACE, unknownMember } from '../../shared/proof/members.ts'
import { ProofTextError, readProof } from '../../shared/proof/read-proof.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import type { RowPart } from './trace-row.ts'

/** What a verification reads of a record: its place and its hash, and what its row repeats. */
export type ReadRecord = RowPart & Pick<TraceRecord, 'seq' | 'hash' | 'prev_hash'>

/** One line as it was read. */
export interface ReadLine {
  /** Undefined for what is no JSON object. Its members are checked one by one where they are used. */
  record: ReadRecord | undefined
  /** Why nothing more is said of the line. */
  fault: 'parse' | 'duplicate_member' | 'number_form' | 'lone_surrogate' | 'unknown_member' | undefined
  /** The text is the canonical form of the record. */
  isCanonical: boolean
}

/** A line of an export or of a store, read strictly. */
export function readLine(text: string, members: Members): ReadLine {
  try {
    const value = readProof(text)
    if (!isObject(value)) return { record: undefined, fault: 'parse', isCanonical: false }
    const fault = unknownMember(value, members) === undefined ? undefined : 'unknown_member'
    return { record: value as unknown as ReadRecord, fault, isCanonical: false }
  } catch (error) {
    if (!(error instanceof ProofTextError)) throw error
    const fault = error.reason === 'not_json' ? 'parse' : error.reason
    return { record: parseRecord(text), fault, isCanonical: false }
  }
}

/** The record of a line that is not what it should be: it says in which chain that is. */
function parseRecord(text: string): ReadRecord | undefined {
  try {
    const value: unknown = readJson(text)
    return isObject(value) ? (value as unknown as ReadRecord) : undefined
  } catch {
    return undefined
  }
}

/** Shapes known at once: each that does not fit costs a part of what parsing does. */
const MAX_SHAPES = 6
/** How many are made at first, and of how many records one more: making one costs as much as parsing ten. */
const FIRST_SHAPES = 12
const RECORDS_FOR_A_SHAPE = 256

type Shape = (text: string) => ReadLine | undefined

/**
 * Reads records like `readLine`, but for members that the verification does not need, in less than half of the time. Records have a handful of shapes;
 * of each, a regular expression is made from a record that was parsed and whose text is its canonical form. A text that it matches is
 * canonical, with the same members and with values of the same kinds; any other text is parsed. What is given is valid until the next
 * record is read.
 */
export function recordReader(): (text: string) => ReadLine {
  const shapes: Shape[] = []
  let read = 0
  let parsed = 0
  let made = 0
  return text => {
    // Where most have a shape of their own, none is looked for.
    if (++read > 2 * parsed || read < 1000) {
      for (let at = 0; at < shapes.length; at++) {
        const line = shapes[at]!(text)
        if (line === undefined) continue
        // What is common moves to the front.
        if (at > 0) [shapes[at - 1], shapes[at]] = [shapes[at]!, shapes[at - 1]!]
        return line
      }
    }
    parsed++
    const line = readLine(text, TRACE)
    const { record, fault } = line
    if (record === undefined || fault !== undefined || made >= FIRST_SHAPES + read / RECORDS_FOR_A_SHAPE) return line
    made++
    const shape = canonicalize(record) === text ? shapeOf(record) : undefined
    if (shape?.(text) !== undefined) shapes.splice(Math.min(shapes.length, MAX_SHAPES - 1), 1, shape)
    return line
  }
}

/** The members that are read; of others only the kind matters. */
interface Wanted {
  [name: string]: true | Wanted | [Wanted]
}

const wanted: Wanted = {
  ...leaves('trace_id tenant_id ts session_id mode route_ix seq hash prev_hash'),
  attempts: [{ gates: [leaves('gate_id verdict cost latency_ms')] }],
  final: leaves(
    'served_from served_rung served_model total_cost_usd gate_cost_usd baseline_same_token_usd baseline_calibrated_usd escalations failovers response_id upstream_request_id client_request_id',
  ),
}

function leaves(names: string): Wanted {
  return Object.fromEntries(names.split(' ').map(name => [name, true]))
}

type Slot = [into: Record<string, unknown>, name: string, number: boolean]

// A text without anything escaped, and a number, as JSON writes them.
const TEXT = '[ !#-[\\]-~]*'
// Every number of at most 15 digits has one canonical spelling, and this is it where no exponent is in it; others are parsed.
const NUMBER = '(?:0|-?(?!0\\.000000)(?:[1-9]\\d{0,14}|(?:0|[1-9]\\d{0,5})\\.\\d{0,8}[1-9]))'

class NoShape extends Error {}

function shapeOf(record: ReadRecord): Shape | undefined {
  const slots: Slot[] = []
  try {
    const { pattern, kept } = objectPattern(record as unknown as Record<string, unknown>, wanted, slots)
    const whole = new RegExp(`^${pattern}$`)
    const line: ReadLine = { record: kept as unknown as ReadRecord, fault: undefined, isCanonical: true }
    return text => {
      const found = whole.exec(text)
      if (found === null) return undefined
      for (let at = 0; at < slots.length; at++) {
        const [into, name, number] = slots[at]!
        const value = found[at + 1]!
        into[name] = number ? Number(value) : value
      }
      return line
    }
  } catch (error) {
    if (error instanceof NoShape) return undefined
    throw error
  }
}

function objectPattern(members: Record<string, unknown>, want: Wanted, slots: Slot[]) {
  const kept: Record<string, unknown> = {}
  const parts = Object.entries(members).map(([name, value]) => {
    if (!/^\w+$/.test(name)) throw new NoShape()
    const part = Object.hasOwn(want, name) ? want[name] : undefined
    return `"${name}":${part === undefined ? loose(value) : kindOf(value, part, { into: kept, name }, slots)}`
  })
  return { pattern: `\\{${parts.join(',')}\\}`, kept }
}

function kindOf(
  value: unknown,
  want: Wanted[string],
  { into, name }: { into: Record<string, unknown>; name: string },
  slots: Slot[],
): string {
  if (want === true) {
    into[name] = value
    if (value === null) return 'null'
    if (typeof value !== 'string' && typeof value !== 'number') throw new NoShape()
    slots.push([into, name, typeof value === 'number'])
    return typeof value === 'number' ? `(${NUMBER})` : `"(${TEXT})"`
  }
  const list = Array.isArray(want)
  if (list !== Array.isArray(value)) throw new NoShape()
  const found = (list ? (value as unknown[]) : [value]).map(item => {
    if (!isObject(item)) throw new NoShape()
    return objectPattern(item, list ? want[0] : want, slots)
  })
  into[name] = list ? found.map(({ kept }) => kept) : found[0]!.kept
  const inner = found.map(({ pattern }) => pattern).join(',')
  return list ? `\\[${inner}\\]` : inner
}

/** Any value of the same kinds. */
function loose(value: unknown): string {
  if (typeof value === 'string') return `"${TEXT}"`
  if (typeof value === 'number') return NUMBER
  if (typeof value === 'boolean') return '(?:true|false)'
  if (value === null) return 'null'
  if (Array.isArray(value)) return `\\[${value.map(loose).join(',')}\\]`
  return objectPattern(value as Record<string, unknown>, {}, []).pattern
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
