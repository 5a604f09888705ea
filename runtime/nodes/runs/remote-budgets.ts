import type { Clock } from '../../../shared/time/clock.ts'
import { sleep } from '../../../shared/time/sleep.ts'
import type { BudgetAsk, BudgetGrant } from '../../../shared/tunnel/gateway.gen.ts'
import { isTerminal } from '../../../shared/wire/runtime/run.ts'
import type { Budgets } from '../../budgets/assemble.ts'
import type { Ledger } from '../../budgets/ledger.ts'
import { StepFailure } from '../../execution/failure.ts'
import type { NodeRow } from '../registry/node.ts'
import type { RemoteRunStore } from './remote-run-store.ts'

export interface RemoteBudgetsDeps {
  remote: Pick<RemoteRunStore, 'get'>
  grant: Ledger['grant']
  useTool: Budgets['useTool']
  dayOf: (ms: number) => string
  clock: Clock
}

/** What a node is answered. */
export type Granted = Omit<BudgetGrant, '$typeName'>

/** What a node has told is written down within moments. */
const BEHIND_MS = 5000
const LOOK_MS = 20
const MOST = BigInt(Number.MAX_SAFE_INTEGER)

/**
 * Says whether a run on a node may make its next call. That of an action is counted here. Of a model call the worst case is held here, under the budget of its agent, until the
 * event comes that says what it used. Undefined: the run is not that node's any more, or not in that life of it.
 */
export function remoteBudgets({ remote, grant, useTool, dayOf, clock }: RemoteBudgetsDeps) {
  async function runOf(node: NodeRow, { runId, epoch }: BudgetAsk) {
    const run = await remote.get(runId)
    const is = run?.nodeId === node.id && BigInt(run.epoch) === epoch && !isTerminal(run.status)
    return is ? run : undefined
  }

  return async (node: NodeRow, ask: BudgetAsk): Promise<Granted | undefined> => {
    const { requestId, stepId, attempt, model, unpriced } = ask
    const sizes = [ask.tokens, ask.outputTokens, ask.costNanoUsd, ask.inputCostNanoUsd]
    if (!/^[0-9a-f-]{36}$/.test(requestId) || stepId === '' || stepId.length > 256) return undefined
    if (!sizes.every(size => size >= 0n && size <= MOST) || ask.outputTokens > ask.tokens) return undefined
    const until = clock.monotonic() + BEHIND_MS
    let run = await runOf(node, ask)
    // What earlier calls used is on its way, and is not held twice: once as used, and once as what it could have been.
    while (run !== undefined && BigInt(run.eventSeq) < ask.lastEvent && clock.monotonic() < until) {
      await sleep(LOOK_MS)
      run = await runOf(node, ask)
    }
    if (run === undefined) return undefined
    if (ask.tool !== '') {
      const place = { runId: run.id, agentId: run.agentId, stepId: stepId.toWellFormed(), tool: ask.tool }
      const refusal = await useTool(place).then(() => '', refusalOf)
      return { requestId, refusal, outputTokens: 0n, tokens: 0n, costNanoUsd: 0n }
    }
    const [tokens, output] = [Number(ask.tokens), Number(ask.outputTokens)]
    const [cost, inputCost] = [Number(ask.costNanoUsd), Number(ask.inputCostNanoUsd)]
    const place = {
      runId: run.id,
      agentId: run.agentId,
      day: dayOf(clock.now().getTime()),
      stepId: stepId.toWellFormed(),
      attempt,
      requestId,
    }
    const found = await grant(run, place, {
      model: model.slice(0, 300).toWellFormed(),
      tokensIn: tokens - output,
      maxOutputTokens: output,
      costOf: unpriced ? null : (_in, out) => inputCost + Math.ceil(((cost - inputCost) * out) / Math.max(1, output)),
    })
    const said = typeof found === 'string' ? { refusal: found, longest: 0 } : { refusal: '', longest: found }
    const { refusal, longest } = said
    const held = refusal === '' ? BigInt(tokens - output + longest) : 0n
    return { requestId, refusal, outputTokens: BigInt(longest), tokens: held, costNanoUsd: 0n }
  }
}

function refusalOf(error: unknown): string {
  if (error instanceof StepFailure) return error.message
  throw error
}
