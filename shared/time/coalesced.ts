export interface Coalesced {
  /** Cheap to call often: what is asked for while it works is done once more, and not once for each call. */
  wake(): void
  idle(): Promise<void>
}

/** Work that is done after each call of `wake`, one at a time. */
export function coalesced(work: () => Promise<void>, failed: (error: unknown) => void): Coalesced {
  let working: Promise<void> | undefined
  let again = false
  return {
    wake() {
      again = true
      working ??= (async () => {
        while (again) {
          again = false
          await work().catch(failed)
        }
        working = undefined
      })()
    },
    async idle() {
      while (working) await working
    },
  }
}
