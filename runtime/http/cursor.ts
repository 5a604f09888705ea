import { fromBase64, toBase64Url, utf8 } from '../../shared/sign/bytes.ts'
import { sha256Hex } from '../../shared/sign/sha256.ts'

/** The place of a row in a list that is ordered newest first: its creation in milliseconds, then its id. */
export interface Position {
  at: number
  id: string
}

const TEXT = /^([0-9a-z]{1,11})\.([A-Za-z0-9_-]{1,64})\.([0-9a-f]{16})$/
const decoder = new TextDecoder()

/**
 * An opaque cursor. `list` names what was asked for: operation, tenant and filters. Its digest tells a broken cursor, and
 * one of another list, from a good one; it is no secret, because a position opens nothing that the list does not.
 */
export function writeCursor({ at, id }: Position, list: string): string {
  const place = `${at.toString(36)}.${id}`
  return toBase64Url(utf8(`${place}.${sum(place, list)}`))
}

/** Undefined for anything that `writeCursor` did not write for this very list. */
export function readCursor(cursor: string, list: string): Position | undefined {
  const [, at, id, given] = TEXT.exec(decode(cursor)) ?? []
  if (at === undefined || id === undefined || given !== sum(`${at}.${id}`, list)) return undefined
  return { at: Number.parseInt(at, 36), id }
}

function sum(place: string, list: string): string {
  return sha256Hex(`waybill/cursor/v1\n${list}\n${place}`).slice(0, 16)
}

function decode(cursor: string): string {
  try {
    return decoder.decode(fromBase64(cursor))
  } catch {
    return ''
  }
}
