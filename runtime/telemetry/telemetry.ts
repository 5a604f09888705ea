import type { Log } from '../../shared/log/log.ts'
import type { Metrics } from '../../shared/metrics/metrics.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import type { Collector } from '../../shared/telemetry/collector.ts'
import {
  attributes,
  type Exporter,
  type ExporterOptions,
  exporter,
  nanoTime,
  type Span,
} from '../../shared/telemetry/exporter.ts'
import { VERSION } from '../../shared/version.ts'
import type { EndedRun, RunObserver } from '../execution/engine-deps.ts'
import type { JournalEntry } from '../execution/journal/event.ts'
import type { Claimed } from '../execution/lease-store.ts'

/** Runs as traces. What a run was given and what it said never leaves with them: names, counts, codes and times do. */
export function telemetry(exporter: Pick<Exporter, 'add'>, sha256: Sha256): RunObserver {
  const starts = new WeakMap<Claimed, Map<string, JournalEntry>>()

  function startsOf(run: Claimed): Map<string, JournalEntry> {
    const known = starts.get(run)
    if (known) return known
    // What an earlier owner began.
    const began = run.events.filter(({ kind }) => kind === 'step_started')
    const made = new Map(began.map(entry => [entry.stepId, entry]))
    starts.set(run, made)
    return made
  }

  return {
    kept(run, entries) {
      const open = startsOf(run)
      for (const entry of entries) {
        if (entry.kind === 'step_started') open.set(entry.stepId, entry)
        const span = stepSpan(run, entry, open.get(entry.stepId), sha256)
        if (span) exporter.add(span)
      }
    },
    ended(ended) {
      exporter.add(runSpan(ended, sha256))
    },
  }
}

const COST = 'waybill.cost_usd'

/** A run is one trace, and its id is the trace's: with one of them the other is found. */
function traceIdOf(runId: string): string {
  return runId.replaceAll('-', '')
}

/** The same after a restart, so that a span that is sent again is the same span. */
function spanIdOf(runId: string, stepId: string, attempt: number, sha256: Sha256): string {
  return sha256Hex(utf8(`${runId}:${stepId}:${attempt}`), sha256).slice(0, 16)
}

/** For the service that goes on with the trace below an attempt of a step, by the key of that attempt: `runId:stepId:attempt`. */
export function traceparentOf(key: string, sha256: Sha256): string {
  const [runId = '', stepId = '', attempt] = key.split(':')
  return `00-${traceIdOf(runId)}-${spanIdOf(runId, stepId, Number(attempt), sha256)}-01`
}

const rootOf = (runId: string, sha256: Sha256) => spanIdOf(runId, '', 0, sha256)

/** The end of an attempt of a step as a span, in the words of the GenAI conventions; undefined for any other event. */
function stepSpan(
  run: Pick<Claimed, 'id' | 'agentName'>,
  end: JournalEntry,
  start: JournalEntry | undefined,
  sha256: Sha256,
): Span | undefined {
  const { kind, stepId, attempt, payload, meta } = end
  if (kind !== 'step_completed' && kind !== 'step_failed' && kind !== 'step_retrying') return undefined
  if (meta.copiedFrom !== undefined) return undefined
  const of = { ...start?.meta, ...meta }
  const endMs = Date.parse(end.at)
  const startMs = start ? Date.parse(start.at) : endMs - (meta.durationMs ?? 0)
  const model = of.stepKind === 'model'
  const name = String(of.name ?? stepId)
  // What went wrong may repeat what was sent; its code never does.
  const error = kind === 'step_completed' ? undefined : String(payload.code)
  return {
    traceId: traceIdOf(run.id),
    spanId: spanIdOf(run.id, stepId, attempt, sha256),
    parentSpanId: rootOf(run.id, sha256),
    name: model ? `chat ${ownName(name)}` : `execute_tool ${name}`,
    kind: model ? 3 : 1,
    startTimeUnixNano: nanoTime(Math.min(startMs, endMs)),
    endTimeUnixNano: nanoTime(endMs),
    attributes: attributes(
      {
        'gen_ai.operation.name': model ? 'chat' : 'execute_tool',
        'gen_ai.agent.name': run.agentName,
        ...(model
          ? {
              'gen_ai.provider.name': textOf(of.provider) ?? name.split('/', 1)[0],
              'gen_ai.request.model': ownName(name),
              'gen_ai.response.model': ownName(textOf(of.model)),
              'gen_ai.usage.input_tokens': of.tokensIn,
              'gen_ai.usage.output_tokens': of.tokensOut,
            }
          : { 'gen_ai.tool.name': name, 'gen_ai.tool.type': 'function', 'gen_ai.tool.call.id': stepId }),
        'waybill.run.id': run.id,
        'waybill.step.id': stepId,
        'waybill.step.kind': textOf(of.stepKind),
        'waybill.step.attempt': attempt,
        // Of a model without a price the cost is unknown, and not 0.
        [COST]: of.unpriced === true ? undefined : of.costUsd,
        'error.type': error,
      },
      [COST],
    ),
    status: { code: error === undefined ? 1 : 2 },
  }
}

/** The whole run, above its steps. A run that another run started is a trace of its own, linked to where it came from. */
function runSpan(ended: EndedRun, sha256: Sha256): Span {
  const { run, status, error, spent, unpricedCalls, isolation, finishedMs, models } = ended
  const parent = run.parentRunId
  return {
    traceId: traceIdOf(run.id),
    spanId: rootOf(run.id, sha256),
    name: `invoke_agent ${run.agentName}`,
    kind: 1,
    startTimeUnixNano: nanoTime(run.createdMs),
    endTimeUnixNano: nanoTime(Math.max(run.createdMs, finishedMs)),
    attributes: attributes(
      {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': run.agentName,
        'gen_ai.agent.id': run.agentId,
        'gen_ai.conversation.id': run.sessionId,
        'gen_ai.response.model': ownName(models.at(-1)),
        'gen_ai.usage.input_tokens': spent.tokensIn,
        'gen_ai.usage.output_tokens': spent.tokensOut,
        'waybill.run.id': run.id,
        'waybill.run.status': status,
        'waybill.agent.version.id': run.versionId,
        'waybill.tenant.id': run.tenantId,
        'waybill.isolation': isolation,
        [COST]: spent.costNano / 1e9,
        'waybill.unpriced_calls': unpricedCalls || undefined,
        'error.type': error?.code,
      },
      [COST],
    ),
    status: { code: status === 'succeeded' ? 1 : status === 'failed' ? 2 : 0 },
    ...(parent !== undefined && {
      links: [{ traceId: traceIdOf(parent), spanId: rootOf(parent, sha256), attributes: [] }],
    }),
  }
}

/** A model as its provider calls it: the conventions name the provider beside it, and collectors know prices by it. */
function ownName<T extends string | undefined>(name: T): T | string {
  return name === undefined ? name : name.slice(name.indexOf('/') + 1)
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

interface TracingOptions extends Collector, Pick<ExporterOptions, 'limits'> {
  metrics: Metrics
  log: Log
  sha256: Sha256
}

/** Traces of runs, on their way to a collector. */
export function assembleTracing({ resource, sha256, ...rest }: TracingOptions) {
  const sending = exporter({ ...rest, resource: attributes(resource), scope: { name: 'waybill', version: VERSION } })
  return { observer: telemetry(sending, sha256), close: sending.close }
}
