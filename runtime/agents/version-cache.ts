import type { VersionRow } from './agent.ts'

/** Published versions never change, so a cached one is never stale. Bounded by the text it holds; the least used goes first. */
export function versionCache(mostCharacters = 16 * 1024 * 1024) {
  const held = new Map<string, { version: VersionRow; weight: number }>()
  let total = 0

  function drop(id: string): void {
    total -= held.get(id)?.weight ?? 0
    held.delete(id)
  }

  return {
    get(id: string): VersionRow | undefined {
      const found = held.get(id)
      if (found === undefined) return undefined
      held.delete(id)
      held.set(id, found)
      return found.version
    },
    put(version: VersionRow, weight: number): void {
      drop(version.versionId)
      if (weight > mostCharacters) return
      held.set(version.versionId, { version, weight })
      total += weight
      for (const id of held.keys()) {
        if (total <= mostCharacters) break
        drop(id)
      }
    },
  }
}
