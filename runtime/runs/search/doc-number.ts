/** Entries of the index of words that one millisecond has room for. */
export const DOCS_OF_MS = 1_048_576

/** Tells the entries of runs of one millisecond apart: twenty bits of the FNV-1a hash of the id. */
export function docNumber(id: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 20)) & 0xfffff
}
