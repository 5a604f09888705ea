import type { InStatement } from '@libsql/client/web'
import { utf8Bytes } from '../../shared/dialects/text-pieces.ts'
import type { Counter } from '../../shared/metrics/metrics.ts'
import { perKeyQueue } from '../../shared/time/work-queue.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import { type CallCost, NOTHING_SPENT } from '../execution/call-cost.ts'
import { RunFailure } from '../execution/failure.ts'
import type { Spent } from '../execution/journal/commit.ts'
import type { Claimed } from '../execution/lease-store.ts'
import { type FoundModel, IMAGE_TOKENS, type ModelRequest, type Models } from '../execution/models/model.ts'
import type { RunCandidate } from '../runs/service.ts'
import type { DayOf } from './day.ts'
import { type Forecasted, forecast } from './forecast.ts'
import { type Call, exceededLimit, holdFor, NO_LIMITS, type Refusal, refusalOfRun, roomForCall } from './limits.ts'
import type { BudgetNotices } from './notices.ts'
import { budgetExceeded, inWords } from './refusal.ts'
import { type BudgetRow, type BudgetStore, type CallPlace, isOverLimit } from './store.ts'

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
  /** The agent has no budget. */
  unlimited?: boolean
}

const NO_FORECAST = { tokens: 0, costNano: 0 }
const HISTORY_MS = 30 * 24 * 3600 * 1000
/** Other processes may spend between a look and a hold. */
const MOST_TRIES = 20

/** A run as far as its calls are held for it. */
type Holder = Pick<Claimed, 'id' | 'agentName' | 'depth'>

export type Ledger = ReturnType<typeof ledger>

/** Budgets kept: what is looked at before a run is made and before a model is asked (docs/spec/runtime.md §12). */
export function ledger(deps: LedgerDeps) {
  const { store, refused, softly, notices } = deps
  const inTurn = perKeyQueue()

  /**
   * Makes a run with what it takes to stay within its agent's budget; `create` gets the statements that belong to the same
   * transaction. Refused with 402 before anything is written.
   */
  async function admit<T>(
    candidate: RunCandidate,
    runId: string,
    create: (admission: Admission) => Promise<T>,
  ): Promise<T> {
    if (!(await store.get(candidate.agentId))) return create({ statements: [], exceeded: false, unlimited: true })
    return inTurn(candidate.agentId, async () => {
      for (let tries = 1; ; tries++) {
        const { budget, today, size, refusal, day } = await look(deps, candidate)
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

  /** The same for a call that is made elsewhere: the longest answer that fits, or why there is none. Asked again, it is held once. */
  function grant(run: Holder, place: CallPlace & { requestId: string }, call: Call): Promise<number | string> {
    return inTurn(place.agentId, async () => {
      const known = await store.granted(place)
      if (known !== undefined) return known
      try {
        return await hold(deps, run, place, call)
      } catch (error) {
        if (error instanceof RunFailure) return error.message
        throw error
      }
    })
  }

  return {
    grant,

    unpricedModel: (tenantId: string, manifest: Manifest) => unpricedModel(deps, tenantId, manifest),

    look: (candidate: RunCandidate) => look(deps, candidate),

    lostCall: (run: Claimed, stepId: string) => lostCall(deps, run, stepId),

    /** A call of a run that another process has ended. What was held for it is counted by that one; where nothing was held, nothing is. */
    async cutElsewhere(runId: string, { spent, model = '', extraStatements = [] }: CallCost): Promise<void> {
      const used = { tokens: spent.tokensIn + spent.tokensOut, costNano: spent.costNano }
      if (extraStatements.length > 0 || used.tokens + used.costNano === 0) return
      await deps.store.uncertainBy({ runId, day: deps.dayOf(deps.now().getTime()) }, model, used)
    },

    /** A run on a node has used what is stored of it by now. */
    noteFar: (run: Holder & { agentId: string }, day: string) =>
      noticeSpent(deps, run, { runId: run.id, agentId: run.agentId, day, stepId: '', attempt: 0 }, NOTHING_SPENT),

    admit,

    offer: (candidate: RunCandidate, runId: string) => offer(deps, candidate, runId),

    within: (run: Claimed, model: FoundModel) => limitedModel(deps, inTurn, run, model),
  }
}

/** The model as a run may ask it: within its agent's budget, whatever it is asked. */
function limitedModel(
  deps: LedgerDeps,
  inTurn: ReturnType<typeof perKeyQueue>,
  run: Claimed,
  model: FoundModel,
): FoundModel {
  return {
    ...model,
    async ask(request: ModelRequest, call) {
      const [stepId, attempt] = stepOf(call.key, run.id)
      const place = { runId: run.id, agentId: run.agentId, day: deps.dayOf(deps.now().getTime()), stepId, attempt }
      const limited = (await deps.store.get(run.agentId)) ?? (run.depth > 0 && (await deps.store.hasLimitAbove(run.id)))
      if (!limited && !call.repeated) return model.ask(request, call)
      const costOf = (await model.prices?.()) ?? null
      const worst = {
        model: model.id,
        tokensIn: mostTokensIn(request),
        maxOutputTokens: request.maxOutputTokens,
        costOf: costOf && ((tokensIn: number, tokensOut: number) => costOf(tokensIn, tokensOut, true)),
      }
      if (!limited) {
        await deps.store.uncertainBy(place, model.id, holdFor(worst, worst.maxOutputTokens, NO_FORECAST))
        return model.ask(request, call)
      }
      const settled = <T extends Pick<CallCost, 'spent' | 'extraStatements'>>(cost: T, epoch = run.epoch): T => {
        const { tokensIn, tokensOut, costNano } = cost.spent
        const used = { tokens: tokensIn + tokensOut, costNano }
        return {
          ...cost,
          extraStatements: [...(cost.extraStatements ?? []), ...deps.store.settlement(run.id, epoch, stepId, used)],
        }
      }
      const unused = () => call.metered?.(async epoch => settled({ spent: NOTHING_SPENT }, epoch))
      unused()
      let maxOutputTokens = await inTurn(run.agentId, () => hold(deps, run, place, worst))
      let metered = false
      const lost = (epoch = run.epoch): CallCost => ({
        spent: NOTHING_SPENT,
        extraStatements: lostCall(deps, { ...run, epoch }, stepId, model.id),
      })
      call.metered?.(async epoch => lost(epoch))
      try {
        const answer = settled(
          await model.ask(
            { ...request, maxOutputTokens },
            {
              ...call,
              pricedOnly: call.pricedOnly || costOf !== null,
              async standIn(lost) {
                if (call.standIn) return call.standIn(lost)
                maxOutputTokens = await inTurn(run.agentId, () => hold(deps, run, place, worst, lost))
                return maxOutputTokens
              },
              metered(reading) {
                metered = true
                call.metered?.(async epoch => {
                  const cost = await reading()
                  return call.signal.aborted && wasSilent(cost) ? lost(epoch) : settled(cost, epoch)
                })
              },
            },
          ),
        )
        if (limited !== true && !limited.hardFail) await noticeSpent(deps, run, place, answer.spent)
        const capped = answer.stop === 'length' && maxOutputTokens < request.maxOutputTokens
        return capped ? { ...answer, cappedByBudget: true } : answer
      } catch (error) {
        // It ended by itself, and says of nothing that it used.
        if (!metered && !call.signal.aborted) unused()
        throw error
      }
    },
  }
}

/** Cut off before a word of its answer: its provider may have been thinking until then, and bills that. */
const wasSilent = ({ estimated, spent }: CallCost): boolean => estimated === true && spent.tokensOut === 0

async function estimate(
  deps: LedgerDeps,
  { tenantId, versionId, manifest, input }: RunCandidate,
): Promise<Forecasted & { model: string; unpriced: string | undefined }> {
  const hasTools = usesTools(manifest)
  const model = await deps.models.find(tenantId, manifest.model, { tools: hasTools })
  const costOf = (await model?.prices?.()) ?? null
  const made = forecast({
    past: await deps.store.past(versionId, deps.now().getTime() - HISTORY_MS),
    manifest: {
      hasTools,
      maxOutputTokens: manifest.limits.maxOutputTokens,
      characters: manifest.systemPrompt.length + input.length + JSON.stringify(manifest.tools).length,
    },
    costOf,
  })
  return { ...made, model: model?.id ?? manifest.model, unpriced: model && costOf === null ? model.id : undefined }
}

/** Whether one more run fits now, and the forecast that says so. */
async function look(deps: LedgerDeps, candidate: RunCandidate) {
  const day = deps.dayOf(deps.now().getTime())
  const budget = await deps.store.get(candidate.agentId)
  const made = await estimate(deps, candidate)
  const size = { tokens: made.tokensIn + made.tokensOut, costNano: made.costNano ?? 0, unpriced: made.unpriced }
  const today = await deps.store.today(candidate.agentId, day)
  return { budget, today, made, size, refusal: budget && refusalOfRun(budget, today, size), day }
}

/** The same for a transaction that is not made here; undefined: there is no room. */
async function offer(deps: LedgerDeps, candidate: RunCandidate, runId: string): Promise<Admission | undefined> {
  if (!(await deps.store.get(candidate.agentId))) return { statements: [], exceeded: false }
  const { budget, today, size, refusal, day } = await look(deps, candidate)
  if (refusal) (budget?.hardFail ? deps.refused : deps.softly).add(1, { dimension: refusal.dimension })
  if (refusal && budget?.hardFail) return undefined
  const statements = deps.store.admission({ runId, agentId: candidate.agentId, day }, size)
  if (budget && refusal) statements.push(deps.notices.exceeded(budget, runId, refusal))
  if (budget) await deps.notices.nearing(budget, { ...today, runs: today.runs + 1 }, day)
  return { statements, exceeded: refusal !== undefined }
}

/**
 * Holds the worst case of a call; gives the output that fits. Ends the run where nothing does. `lost`: used by models that were asked in this
 * call before and gave no answer.
 */
async function hold(deps: LedgerDeps, run: Holder, place: CallPlace, request: Call, lost?: Spent): Promise<number> {
  const { tokensIn, tokensOut, costNano: lostNano } = lost ?? NOTHING_SPENT
  const lostTokens = tokensIn + tokensOut
  for (let tries = 1; ; tries++) {
    const found = await deps.store.beforeCall(place, run.depth > 0)
    if (!found) return request.maxOutputTokens
    const { budget, today, own, above, before } = found
    const limits = budget?.hardFail ? budget : NO_LIMITS
    if (before?.attempt === place.attempt && lost === undefined) {
      await deps.store.uncertain(place, request.model)
      continue
    }
    if (budget) await deps.notices.nearing(budget, today, place.day)
    // An earlier attempt failed on record, or a model before this one: what was held for it goes back to the forecast.
    if (before) {
      own.forecast.tokens += before.moved.tokens
      own.forecast.costNano += before.moved.costNano
      today.heldTokens -= before.tokens - before.moved.tokens
      today.heldNano -= before.costNano - before.moved.costNano
    }
    today.heldTokens += lostTokens
    today.heldNano += lostNano
    for (const one of [own, ...above]) one.usedNano += lostNano
    if (budget && !budget.hardFail) await noticeSoft(deps, run, budget, roomForCall(budget, today, own, request))
    const room = roomForCall(limits, today, own, request, above)
    if ('refused' in room) throw stopped(deps, run, place, room.refused)
    try {
      const held = { ...room, tokens: room.tokens + lostTokens, costNano: room.costNano + lostNano }
      await deps.store.hold(place, held, above.length > 0 || limits.costNanoRun !== null)
      return room.maxOutputTokens
    } catch (error) {
      if (!isOverLimit(error) || tries === MOST_TRIES) throw error
    }
  }
}

async function noticeSoft(
  deps: LedgerDeps,
  run: Holder,
  budget: BudgetRow,
  room: ReturnType<typeof roomForCall>,
): Promise<void> {
  if ('refused' in room) await notePassed(deps, run, budget, room.refused)
}

async function notePassed(deps: LedgerDeps, run: Holder, budget: BudgetRow, refusal: Refusal): Promise<void> {
  if (await deps.store.overSoftly(run.id, deps.notices.exceeded(budget, run.id, refusal)))
    deps.softly.add(1, { dimension: refusal.dimension })
}

/** A soft limit shortens no answer, so what a call has used may pass one that it seemed to fit. */
async function noticeSpent(
  deps: LedgerDeps,
  run: Holder,
  place: CallPlace,
  { tokensIn, tokensOut, costNano }: Spent,
): Promise<void> {
  const found = await deps.store.beforeCall(place, false)
  if (!found?.budget || found.budget.hardFail) return
  const { budget, today, own } = found
  const day = { tokens: today.tokens + tokensIn + tokensOut, costNano: today.costNano + costNano }
  const refusal = exceededLimit(budget, day, own.usedNano + costNano)
  if (refusal) await notePassed(deps, run, budget, refusal)
}

function stopped(deps: LedgerDeps, run: Holder, { stepId }: CallPlace, refusal: Refusal): RunFailure {
  deps.refused.add(1, { dimension: refusal.dimension })
  return new RunFailure('budget_exceeded', inWords(run.agentName, refusal), { stepId })
}

/** What is held for a call whose usage is unknown. */
function lostCall(
  deps: LedgerDeps,
  { id, epoch }: Pick<Claimed, 'id' | 'epoch'>,
  stepId: string,
  model = '',
): InStatement[] {
  return deps.store.lost({ runId: id, epoch, day: deps.dayOf(deps.now().getTime()), stepId, model })
}

/** The model that a manifest asks for, where it exists without a price. */
async function unpricedModel(deps: LedgerDeps, tenantId: string, manifest: Manifest): Promise<string | undefined> {
  const model = await deps.models.find(tenantId, manifest.model, { tools: usesTools(manifest) })
  return model && (await model.prices?.()) == null ? model.id : undefined
}

function usesTools({ tools, connectors, subAgents }: Manifest): boolean {
  return tools.length + connectors.length + subAgents.length > 0
}

/** `<runId>:<stepId>:<attempt>`. */
function stepOf(key: string, runId: string): [stepId: string, attempt: number] {
  const rest = key.slice(runId.length + 1)
  const colon = rest.lastIndexOf(':')
  return [rest.slice(0, colon), Number(rest.slice(colon + 1))]
}

/** Tokens that a message costs beside its text. */
const PER_MESSAGE = 8
/** Prose and code have about four bytes to a token, tables and other scripts fewer; what is held must not be too little. */
const BYTES_PER_TOKEN = 3

/** What goes with a schema: the tool that the answer is given by, and what a provider says to the model about it. */
const ANSWER_FORM_BYTES = 2048

/** The most tokens that a request is likely to be counted as. Only the provider knows the number. */
export function mostTokensIn({ system, messages, tools, outputSchema }: ModelRequest): number {
  let bytes = utf8Bytes(system)
  if (outputSchema !== undefined) bytes += ANSWER_FORM_BYTES + utf8Bytes(JSON.stringify(outputSchema))
  let pieces = 1 + messages.length + tools.length
  for (const message of messages) {
    if (message.role === 'tool') {
      pieces += message.results.length
      for (const { content, name, images = [] } of message.results) {
        bytes += utf8Bytes(content) + name.length + images.length * IMAGE_TOKENS * BYTES_PER_TOKEN
      }
      continue
    }
    bytes += utf8Bytes(message.text)
    if (message.role === 'assistant') {
      for (const call of message.toolCalls) bytes += utf8Bytes(JSON.stringify(call.arguments)) + call.name.length
      pieces += message.toolCalls.length
    }
  }
  for (const { name, description, parameters } of tools) {
    bytes += name.length + utf8Bytes(description) + JSON.stringify(parameters).length
  }
  return Math.ceil(bytes / BYTES_PER_TOKEN) + pieces * PER_MESSAGE
}
