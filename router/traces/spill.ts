import { readJson } from '../../shared/json/read-json.ts'
import type { UnsealedTrace } from '../../shared/wire/router/trace.ts'

/** Records that could not go into the store, kept on a disk until they can. */
export interface Spill {
  /** Resolves once the lines are on the disk. */
  append(line: string): Promise<void>
  /**
   * Sets aside what was appended so far and returns it in pieces, oldest first, those that an earlier process left included. What is
   * appended from now on goes elsewhere, so a piece never changes.
   */
  parts(): Promise<SpillPart[]>
  /** Bytes not yet in the store. */
  bytes(): number
}

export interface SpillPart {
  name: string
  read(): Promise<string>
  /** Called only after every record of the part is committed. */
  remove(): Promise<void>
}

export interface SpillContent {
  /** In the order of their `ts`. */
  records: UnsealedTrace[]
  /** Lines that are no record: a process died while it wrote them. */
  torn: number
}

export function spillLine(record: UnsealedTrace): string {
  return JSON.stringify(record)
}

export function readSpill(text: string): SpillContent {
  const records: UnsealedTrace[] = []
  let torn = 0
  for (const line of text.split('\n')) {
    if (line === '') continue
    const record = readLine(line)
    if (record === undefined) torn++
    else records.push(record)
  }
  records.sort((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : 0))
  return { records, torn }
}

function readLine(line: string): UnsealedTrace | undefined {
  try {
    const value: unknown = readJson(line)
    if (typeof value !== 'object' || value === null) return undefined
    const { trace_id, tenant_id, ts, final } = value as Record<string, unknown>
    const whole =
      typeof trace_id === 'string' &&
      typeof tenant_id === 'string' &&
      typeof ts === 'string' &&
      typeof final === 'object'
    return whole ? (value as UnsealedTrace) : undefined
  } catch {
    return undefined
  }
}
