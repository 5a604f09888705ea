import type { BudgetAsk, BudgetGrant } from '../../../shared/tunnel/gateway.gen.ts'

export type BudgetRequest = Omit<BudgetAsk, '$typeName'>

/** Questions of a node whether a call may be made, open until they are answered: without an answer no call is made. */
export function budgetRequests() {
  const open = new Map<string, { ask: BudgetRequest; resolve: (grant: BudgetGrant) => void }>()
  let send: (ask: BudgetRequest) => void = () => {}

  return {
    async ask(value: Omit<BudgetRequest, 'requestId'>, signal: AbortSignal): Promise<BudgetGrant> {
      const ask = { ...value, requestId: crypto.randomUUID() }
      const { promise, resolve, reject } = Promise.withResolvers<BudgetGrant>()
      const gone = () => reject(signal.reason)
      if (signal.aborted) gone()
      signal.addEventListener('abort', gone, { once: true })
      open.set(ask.requestId, { ask, resolve })
      send(ask)
      try {
        return await promise
      } finally {
        open.delete(ask.requestId)
        signal.removeEventListener('abort', gone)
      }
    },

    granted: (grant: BudgetGrant): void => open.get(grant.requestId)?.resolve(grant),

    /** To be sent again, on a new stream or because no answer came. */
    open: (): BudgetRequest[] => [...open.values()].map(({ ask }) => ask),

    onAsk(sends: (ask: BudgetRequest) => void): void {
      send = sends
    },
  }
}

export type BudgetRequests = ReturnType<typeof budgetRequests>
