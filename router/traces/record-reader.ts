import { readJson } from '../../shared/json/read-json.ts'
import type { TraceRecord } from '../../shared/wire/router/trace.ts'
import type { RowPart } from './trace-row.ts'

/** What a verification reads of a record: its place and its hash, and what its row repeats. */
export type ReadRecord = RowPart & Pick<TraceRecord, 'seq' | 'hash' | 'prev_hash'>

/** A record of any kind; undefined for what is no JSON object. Its members are checked one by one where they are used. */
export function parseRecord(text: string): TraceRecord | undefined {
  try {
    const value: unknown = readJson(text)
    return isObject(value) ? (value as unknown as TraceRecord) : undefined
  } catch {
    return undefined
  }
}

/** Shapes known at once: each that does not fit costs a part of what parsing does. */
const MAX_SHAPES = 6
/** How many are made at first, and of how many records one more: making one costs as much as parsing ten. */
const FIRST_SHAPES = 12
const RECORDS_FOR_A_SHAPE = 256

type Shape = (text: string) => ReadRecord | undefined

/**
 * Reads records like `parseRecord`, but for members that nobody asks for, in less than half of the time. Records have a handful of shapes;
 * of each, a regular expression is made from a record that was parsed. A text that it matches is JSON with the same members, each once,
 * and with values of the same kinds; any other text is parsed. What is given is valid until the next record is read.
 */
export function recordReader(): (text: string) => ReadRecord | undefined {
  const shapes: Shape[] = []
  let read = 0
  let parsed = 0
  let made = 0
  return text => {
    // Where most have a shape of their own, none is looked for.
    if (++read > 2 * parsed || read < 1000) {
      for (let at = 0; at < shapes.length; at++) {
        const record = shapes[at]!(text)
        if (record === undefined) continue
        // What is common moves to the front.
        if (at > 0) [shapes[at - 1], shapes[at]] = [shapes[at]!, shapes[at - 1]!]
        return record
      }
    }
    parsed++
    const record = parseRecord(text)
    if (record === undefined || made >= FIRST_SHAPES + read / RECORDS_FOR_A_SHAPE) return record
    made++
    const shape = shapeOf(record)
    if (shape?.(text) !== undefined) shapes.splice(Math.min(shapes.length, MAX_SHAPES - 1), 1, shape)
    return record
  }
}

/** The members that are read; of others only the kind matters. */
interface Members {
  [name: string]: true | Members | [Members]
}

const wanted: Members = {
  ...leaves('trace_id tenant_id ts session_id mode route_ix seq hash prev_hash'),
  attempts: [{ gates: [leaves('gate_id verdict cost latency_ms')] }],
  final: leaves(
    'served_from served_rung served_model total_cost_usd gate_cost_usd baseline_same_token_usd baseline_calibrated_usd escalations failovers response_id upstream_request_id client_request_id',
  ),
}

function leaves(names: string): Members {
  return Object.fromEntries(names.split(' ').map(name => [name, true]))
}

type Slot = [into: Record<string, unknown>, name: string, number: boolean]

// A text without anything escaped, and a number, as JSON writes them.
const TEXT = '[ !#-[\\]-~]*'
const NUMBER = '-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?'

class NoShape extends Error {}

function shapeOf(record: TraceRecord): Shape | undefined {
  const slots: Slot[] = []
  try {
    const { pattern, kept } = objectPattern(record as unknown as Record<string, unknown>, wanted, slots)
    const whole = new RegExp(`^${pattern}$`)
    return text => {
      const found = whole.exec(text)
      if (found === null) return undefined
      for (let at = 0; at < slots.length; at++) {
        const [into, name, number] = slots[at]!
        const value = found[at + 1]!
        into[name] = number ? Number(value) : value
      }
      return kept as unknown as ReadRecord
    }
  } catch (error) {
    if (error instanceof NoShape) return undefined
    throw error
  }
}

function objectPattern(members: Record<string, unknown>, want: Members, slots: Slot[]) {
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
  want: Members[string],
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
