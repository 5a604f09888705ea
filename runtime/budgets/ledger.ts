import type { InStatement } from '@libsql/client/web'
import type { Counter } from '../../shared/metrics/metrics.ts'
import { RunFailure } from '../execution/failure.ts'
import type { Claimed } from '../execution/lease-store.ts'
import type { FoundModel, ModelRequest, Models } from '../execution/models/model.ts'
import type { RunCandidate } from '../runs/service.ts'
import type { DayOf } from './day.ts'
import { type Forecasted, forecast } from './forecast.ts'
import { type Call, holdFor, type Refusal, refusalOfRun, roomForCall } from './limits.ts'
import type { BudgetNotices } from './notices.ts'
import { oneAtATime } from './one-at-a-time.ts'
import { budgetExceeded, inWords } from './refusal.ts'
import { type BudgetStore, type CallPlace, isOverLimit } from './store.ts'
import { mostTokensIn } from './worst-case.ts'

export interface LedgerDeps {
  store: BudgetStore
  models: Pick<Models, 'find'>
  dayOf: DayOf
  now: () => Date
  refused: Pick<Counter, 'add'>
  softly: Pick<Counter, 'add'>
  notices: BudgetNotices
}

export interface Admission {
  statements: InStatement[]
  /** A soft limit is passed. */
  exceeded: boolean
}

const HISTORY_MS = 30 * 24 * 3600 * 1000
/** Other processes may spend between a look and a hold. */
const MOST_TRIES = 20

export type Ledger = ReturnType<typeof ledger>

/** Budgets kept: what is looked at before a run is made and before a model is asked (runtime contract §12). */
export function ledger({ store, models, dayOf, now, refused, softly, notices }: LedgerDeps) {
  const inTurn = oneAtATime()

  async function estimate({
    tenantId,
    versionId,
    manifest,
    input,
  }: RunCandidate): Promise<Forecasted & { model: string }> {
    const hasTools = manifest.tools.length + manifest.connectors.length + manifest.subAgents.length > 0
    const model = await models.find(tenantId, manifest.model, { tools: hasTools })
    const costOf = (await model?.prices?.()) ?? null
    const made = forecast({
      past: await store.past(versionId, now().getTime() - HISTORY_MS),
      manifest: {
        ...{ hasTools, maxOutputTokens: manifest.limits.maxOutputTokens },
        characters: manifest.systemPrompt.length + input.length + JSON.stringify(manifest.tools).length,
      },
      costOf,
    })
    return { ...made, model: model?.id ?? manifest.model }
  }

  /** Whether one more run fits now, and the forecast that says so. */
  async function look(candidate: RunCandidate) {
    const day = dayOf(now().getTime())
    const budget = await store.get(candidate.agentId)
    const made = await estimate(candidate)
    const size = { tokens: made.tokensIn + made.tokensOut, costNano: made.costNano }
    const today = await store.today(candidate.agentId, day)
    return { budget, today, made, size, refusal: budget && refusalOfRun(budget, today, size), day }
  }

  /**
   * Makes a run with what it takes to stay within its agent's budget; `create` gets the statements that belong to the same
   * transaction. Refused with 402 before anything is written.
   */
  async function admit<T>(
    candidate: RunCandidate,
    runId: string,
    create: (admission: Admission) => Promise<T>,
  ): Promise<T> {
    if (!(await store.get(candidate.agentId))) return create({ statements: [], exceeded: false })
    return inTurn(candidate.agentId, async () => {
      for (let tries = 1; ; tries++) {
        const { budget, today, size, refusal, day } = await look(candidate)
        if (!budget) return create({ statements: [], exceeded: false })
        if (refusal && budget.hardFail) {
          refused.add(1, { dimension: refusal.dimension })
          throw budgetExceeded(candidate.agentName, refusal)
        }
        if (refusal) softly.add(1, { dimension: refusal.dimension })
        try {
          const statements = store.admission({ runId, agentId: candidate.agentId, day }, size)
          if (refusal) statements.push(notices.exceeded(budget, runId, refusal))
          const made = await create({ statements, exceeded: refusal !== undefined })
          await notices.nearing(budget, { ...today, runs: today.runs + 1 }, day)
          return made
        } catch (error) {
          if (!isOverLimit(error) || tries === MOST_TRIES) throw error
        }
      }
    })
  }

  /** The same for a transaction that is not made here; undefined: there is no room. */
  async function offer(candidate: RunCandidate, runId: string): Promise<Admission | undefined> {
    if (!(await store.get(candidate.agentId))) return { statements: [], exceeded: false }
    const { budget, today, size, refusal, day } = await look(candidate)
    if (refusal) (budget?.hardFail ? refused : softly).add(1, { dimension: refusal.dimension })
    if (refusal && budget?.hardFail) return undefined
    const statements = store.admission({ runId, agentId: candidate.agentId, day }, size)
    if (budget && refusal) statements.push(notices.exceeded(budget, runId, refusal))
    if (budget) await notices.nearing(budget, { ...today, runs: today.runs + 1 }, day)
    return { statements, exceeded: refusal !== undefined }
  }

  /** Holds the worst case of a call; gives the output that fits. Ends the run where nothing does. */
  async function hold(run: Claimed, place: CallPlace, request: Call): Promise<number> {
    for (let tries = 1; ; tries++) {
      const found = await store.beforeCall(place)
      if (!found) return request.maxOutputTokens
      const { budget, today, own, before } = found
      if (before?.attempt === place.attempt) {
        await store.uncertain(place, before)
        continue
      }
      await notices.nearing(budget, today, place.day)
      // An earlier attempt failed on record: what it took goes back to the forecast.
      if (before) {
        own.forecast.tokens += before.moved.tokens
        own.forecast.costNano += before.moved.costNano
        today.heldTokens -= before.tokens - before.moved.tokens
        today.heldNano -= before.costNano - before.moved.costNano
      }
      const room = roomForCall(budget, today, own, request)
      let wanted = 'refused' in room ? undefined : room
      if ('refused' in room) {
        if (budget.hardFail) throw stopped(run, place, room.refused)
        if (await store.overSoftly(run.id, notices.exceeded(budget, run.id, room.refused)))
          softly.add(1, { dimension: room.refused.dimension })
        wanted = holdFor(request, request.maxOutputTokens, own.forecast)
      }
      try {
        await store.hold(place, wanted!)
        return budget.hardFail ? wanted!.maxOutputTokens : request.maxOutputTokens
      } catch (error) {
        if (!isOverLimit(error) || tries === MOST_TRIES) throw error
      }
    }
  }

  function stopped(run: Claimed, { stepId }: CallPlace, refusal: Refusal): RunFailure {
    refused.add(1, { dimension: refusal.dimension })
    return new RunFailure('budget_exceeded', inWords(run.agentName, refusal), { stepId })
  }

  return {
    look,
    admit,
    offer,

    /** The model as a run may ask it: within its agent's budget, whatever it is asked. */
    within(run: Claimed, model: FoundModel): FoundModel {
      return {
        ...model,
        async ask(request: ModelRequest, call) {
          const [stepId, attempt] = placeOf(call.key, run.id)
          const place = { runId: run.id, agentId: run.agentId, day: dayOf(now().getTime()), stepId, attempt }
          if (!(await store.get(run.agentId))) return model.ask(request, call)
          const costOf = (await model.prices?.()) ?? null
          const worst = { tokensIn: mostTokensIn(request), maxOutputTokens: request.maxOutputTokens, costOf }
          const maxOutputTokens = await inTurn(run.agentId, () => hold(run, place, worst))
          const answer = await model.ask({ ...request, maxOutputTokens }, call)
          const { tokensIn, tokensOut, costNano } = answer.spent
          const used = { tokens: tokensIn + tokensOut, costNano }
          return { ...answer, beside: [...(answer.beside ?? []), ...store.settlement(run.id, run.epoch, stepId, used)] }
        },
      }
    },
  }
}

/** `<runId>:<stepId>:<attempt>`. */
function placeOf(key: string, runId: string): [stepId: string, attempt: number] {
  const rest = key.slice(runId.length + 1)
  const colon = rest.lastIndexOf(':')
  return [rest.slice(0, colon), Number(rest.slice(colon + 1))]
}
