const NAME = 'waybill-router-key'

/** The key for as long as the tab is open: in memory, and in the session storage so that a reload keeps it. */
export function sessionKey(storage: () => Storage) {
  let key = tried(() => storage().getItem(NAME) ?? undefined)
  return {
    get: () => key,
    set(value: string | undefined): void {
      key = value
      tried(() => (value === undefined ? storage().removeItem(NAME) : storage().setItem(NAME, value)))
    },
  }
}

/** A browser that is set to store nothing throws; the key is then in memory only. */
function tried<T>(what: () => T): T | undefined {
  try {
    return what()
  } catch {
    return undefined
  }
}
