const OTHER = /[^A-Za-z0-9_-]/g

/** Whether this dialect takes the id of a call. */
export const isCallId = (id: string): boolean => id !== '' && id.search(OTHER) < 0

/**
 * The ids of a conversation's calls as this dialect takes them, of any provider: of letters, digits, `_` and `-`, and none twice. Some
 * providers give one id to several calls; their results come in the order of the calls.
 */
export function callIds() {
  const used = new Set<string>()
  const open = new Map<string, string[]>()
  const last = new Map<string, string>()
  const times = new Map<string, number>()
  const plain = (id: string) => id.replace(OTHER, '_') || '_'

  return {
    ofCall(id: string): string {
      const name = plain(id)
      let own = name
      while (used.has(own)) {
        const n = (times.get(name) ?? 1) + 1
        times.set(name, n)
        own = `${name}_${n}`
      }
      used.add(own)
      open.set(id, [...(open.get(id) ?? []), own])
      last.set(id, own)
      return own
    },
    ofResult: (id: string): string => open.get(id)?.shift() ?? last.get(id) ?? plain(id),
  }
}

export type CallIds = ReturnType<typeof callIds>
